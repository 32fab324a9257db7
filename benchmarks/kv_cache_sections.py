"""The sections of :mod:`benchmarks.kv_cache` that measure :mod:`lib`, and what all sections share.

A section is a function of a :class:`Run`. It checks logits, then measures: it adds plain data to
``run.result``, checks ``run.late`` before each point, and raises if it could measure nothing.
"""

import contextlib
import copy
import json
import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.growth import exponent
from benchmarks.kv_cache_device import Cpu
from benchmarks.kv_cache_plan import SEED, Plan, Shape
from lib.crossover import crossover
from lib.kv_cache import KVCache
from lib.timing import matmul_throughput, memory_bandwidth
from lib.transformer import LanguageModel
from tools.files import write_whole


class Run:
    """One run of a section: where and how much to measure, for how long, and the result so far."""

    def __init__(
        self, device: Cpu, plan: Plan, seconds: float = math.inf, out: Path | None = None
    ) -> None:
        self.device, self.plan, self.out = device, plan, out
        self.dtype = getattr(torch, plan.dtype)
        self.end = time.monotonic() + seconds
        self.result: dict = {"left_out": [], "errors": []}

    def save(self) -> None:
        """Write the result so far, so that it survives the end of this process."""
        if self.out is not None:
            write_whole(self.out, json.dumps(self.result))

    def late(self, point: str) -> bool:
        """Whether the section's time is over; the point is then listed as left out."""
        if time.monotonic() < self.end:
            return False
        self.result["left_out"].append(point)
        return True

    @contextlib.contextmanager
    def attempt(self, point: str) -> Iterator[None]:
        """Record an error at one point of a section, and go on."""
        try:
            yield
        except Exception as problem:
            self.device.wait()  # a device that no longer answers ends the section
            self.result["errors"].append(f"{point}: {one_line(problem)}")
            self.device.clear()

    def tokens(self, shape: Shape, batch: int, length: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(SEED)
        tokens = torch.randint(shape.vocab_size, (batch, length), generator=generator)
        return tokens.to(self.device.device)

    def samples(self, ways: dict, *, calls: int = 1, rounds: int | None = None) -> dict:
        """Seconds of each round for each way, all ways in turn in each round."""
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(self.plan.rounds if rounds is None else rounds):
            for name, way in ways.items():
                seconds[name].append(short(self.device.seconds(way, calls)))
        return seconds


def one_line(problem: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(problem).split())
    return f"{type(problem).__name__}: {text}"[:400]


def short(number: float) -> float:
    """Round to five digits, which is more than a clock's precision."""
    return float(f"{number:.5g}")


def relative_difference(a: torch.Tensor, b: torch.Tensor) -> float:
    """The relative difference of two results; infinite if either holds a NaN."""
    a, b = a.double(), b.double()
    difference = ((a - b).norm() / b.norm()).item()
    return math.inf if math.isnan(difference) else difference


def agree(what: str, a: torch.Tensor, b: torch.Tensor, dtype: torch.dtype) -> float:
    """Raise before a wrong answer is timed. (The section `correctness` is stricter.)"""
    difference, allowed = relative_difference(a, b), 0.1 if dtype.itemsize == 2 else 1e-3
    if difference > allowed:
        raise RuntimeError(f"{what}: the logits differ by {difference:.2g}, allowed are {allowed}")
    return short(difference)


# --- a step


def filled(model: LanguageModel, shape: Shape, batch: int, held: int, room: int):
    """A state with random keys and values: a step takes as long as with real ones."""
    state = model.decode_state(batch, room)
    weight = model.embedding.weight
    size = (batch, shape.kv_heads, held, shape.head_dim)
    for cache in state.caches if held else ():
        k = torch.randn(size, dtype=weight.dtype, device=weight.device)
        cache.update(k, torch.randn_like(k))
    if held:
        state.append(held)
    return state


def step_of(model: LanguageModel, state, tokens: torch.Tensor, t: int) -> Callable:
    """A call that reads token t - 1 after those in the cache, and can be repeated."""
    last = tokens[:, t - 1 : t].contiguous()

    def step() -> torch.Tensor:
        state.truncate(t - 1)
        return model(last, state=state, last_only=True)

    return step


def step_bytes(shape: Shape, model: LanguageModel, t: int, batch: int) -> int:
    """What a step must read: every weight once (one row of the embedding), and the cache."""
    weights = sum(p.nbytes for p in model.parameters()) - model.embedding.weight.nbytes
    return weights + shape.cache_bytes(t, batch, model.embedding.weight.dtype)


def operations(model: dict, rows: int, t: int, batch: int) -> int:
    """Of ``rows`` new tokens per text, each of which attends to t: as chapter 10 counts."""
    width = model["n_heads"] * model["head_dim"]
    per_row = 2 * model["n_weights"] + 4 * model["n_layers"] * width * t
    return batch * (rows * per_row + 2 * model["vocab_size"] * model["d_model"])


class Operators(TorchDispatchMode):
    """Count the operators that torch calls."""

    number = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.number += 1
        return function(*args, **(kwargs or {}))


# --- the sections


@torch.inference_mode()
def ceilings(run: Run) -> None:
    """The two speeds of the roofline, from a large copy and a large product of random numbers."""
    plan, device = run.plan, run.device.device
    run.result["bandwidth"] = short(memory_bandwidth(device, n_bytes=plan.copy_bytes))
    run.result["throughput"] = {}
    for name in dict.fromkeys((plan.dtype, *plan.roofline_dtypes)):
        speed = matmul_throughput(device, size=plan.product_size, dtype=getattr(torch, name))
        run.result["throughput"][name] = short(speed)
    run.result["float32_products"] = torch.get_float32_matmul_precision()


@torch.inference_mode()
def correctness(run: Run) -> None:
    """Cached logits against the full forward pass, and the fused path against the readable one.

    In float32 the relative difference is at most 1e-4. In bfloat16 everything is compared with
    float32 on the same weights, and what is tested may differ at most twice as much as the full
    forward pass in bfloat16 does: the rounding is measured, not guessed.
    """
    plan, device = run.plan, run.device
    checks = run.result["checks"] = []
    length, prompt = 41, 29

    def check(what: str, logits: torch.Tensor, reference: torch.Tensor, allowed: float) -> None:
        difference = short(relative_difference(logits, reference))
        checks.append({"what": what, "difference": difference, "allowed": short(allowed)})

    for shape in plan.shapes:
        for kv in sorted({shape.n_heads, 2 if shape.n_heads % 2 == 0 else 1, 1}, reverse=True):
            shape_kv = replace(shape, n_kv_heads=kv)
            for dtype in (torch.float32, torch.bfloat16):
                point = f"{shape.name}, {kv} key heads, {dtype}"
                if run.late(point):
                    continue
                model = shape_kv.make(device.device, dtype)
                tokens = run.tokens(shape_kv, 2, length)
                state = model.decode_state(2, length)
                pieces = [model(tokens[:, :prompt], state=state)]
                for m in range(prompt, length):
                    pieces.append(model(tokens[:, m : m + 1], state=state))
                full = model(tokens)
                readable = model(tokens, return_weights=True)[0]
                if dtype == torch.float32:
                    reference, allowed = full, 1e-4
                else:
                    reference = copy.deepcopy(model).float()(tokens)
                    allowed = max(2 * relative_difference(full, reference), 1e-3)
                if device.graphs:
                    replay = device.capture(step_of(model, state, tokens, length))
                    check(f"{point}, graph", replay(), full[:, -1:], 3 * allowed)
                check(f"{point}, cached", torch.cat(pieces, dim=1), reference, allowed)
                check(f"{point}, readable", readable, reference, allowed)
        device.clear()
    wrong = [check["what"] for check in checks if not check["difference"] <= check["allowed"]]
    if wrong:
        raise RuntimeError(f"wrong logits: {'; '.join(wrong)}")


@torch.inference_mode()
def growth(run: Run) -> None:
    """Time for one new token against the context, both ways, for three models."""
    plan, device = run.plan, run.device
    runs = run.result["runs"] = []
    for shape in plan.shapes:
        model = shape.make(device.device, run.dtype)
        lengths = plan.lengths + (plan.longer if shape is plan.shapes[-1] else ())
        tokens = run.tokens(shape, 1, lengths[-1])
        state = model.decode_state(1, lengths[-1])
        eager: dict = {"lengths": [], "uncached": [], "cached": []}
        graphs: dict = {"lengths": [], "uncached": [], "cached": []}
        differences = []
        for t in lengths:
            point = f"{shape.name}, {t} tokens"
            if run.late(point):
                continue
            with run.attempt(point):
                if state.length < t - 1:
                    model(tokens[:, state.length : t - 1], state=state, last_only=True)
                step = step_of(model, state, tokens, t)

                def whole(t=t, model=model, tokens=tokens):
                    return model(tokens[:, :t], last_only=True)

                difference = agree(point, step(), whole(), run.dtype)
                ways = {"uncached": whole, "cached": step}
                for way in ways.values():
                    way()  # warm
                if device.graphs:
                    with run.attempt(f"{point}, graphs"):
                        replays = {n: device.capture(w) for n, w in ways.items()}
                        for name, replay in replays.items():
                            agree(f"{point}, graph {name}", replay(), ways[name](), run.dtype)
                        ways |= {f"graph {n}": replay for n, replay in replays.items()}
                seconds = run.samples(ways)
                differences.append(difference)
                for prefix, curves in (("", eager), ("graph ", graphs)):
                    if f"{prefix}cached" in seconds:
                        curves["lengths"].append(t)
                        curves["uncached"].append(seconds[f"{prefix}uncached"])
                        curves["cached"].append(seconds[f"{prefix}cached"])
        entry = {"model": shape.described(model), "batch_size": 1, **eager}
        entry["differences"] = differences
        for name, curves in (("eager", eager), ("graph", graphs)):
            if len(curves["lengths"]) >= 2:
                entry.setdefault("fits", {})[name] = fitted(curves)
        if graphs["lengths"]:
            entry["graph"] = graphs
        if eager["lengths"]:
            runs.append(entry)
        del model, state
        device.clear()
        run.save()
    if not runs:
        raise RuntimeError("no length was measured")


def fitted(curves: dict) -> dict:
    """The exponents over all lengths and over the longer half, and where the cache pays."""
    lengths = curves["lengths"]
    half = min(len(lengths) // 2, len(lengths) - 2)
    fit: dict = {}
    for way in ("uncached", "cached"):
        medians = [statistics.median(seconds) for seconds in curves[way]]
        fit[way] = {
            "exponent": short(exponent(lengths, medians)),
            "longer_half": short(exponent(lengths[half:], medians[half:])),
        }
    fit["crossover"] = crossover(lengths, curves["uncached"], curves["cached"])
    return fit


@torch.inference_mode()
def steps(run: Run) -> None:
    """How far a step is from the bandwidth limit: as Python starts it, and replayed."""
    measure_steps(run, reversed(run.plan.shapes), run.plan.step_lengths)


@torch.no_grad()  # torch.compile has more trouble with inference mode
def compiled(run: Run) -> None:
    """Eager, torch.compile, and a graph of each, side by side; the largest model first."""
    measure_steps(run, reversed(run.plan.shapes), run.plan.compile_lengths, "compile")


@torch.no_grad()
def tuned(run: Run) -> None:
    """The same for the largest model, with products of one row made and tuned by the compiler."""
    shapes, options = run.plan.shapes[-1:], run.device.tuning
    measure_steps(run, shapes, run.plan.compile_lengths, "tuned", options)


def measure_steps(
    run: Run,
    shapes: Iterable[Shape],
    lengths: tuple[int, ...],
    name: str = "",
    options: dict | None = None,
) -> None:
    """:func:`measure_step` for each model and length, as far as the section's time goes."""
    if name and run.device.compiler is None:
        run.result["not_here"] = "torch.compile is measured on a GPU only"
        return
    entries = run.result["entries"] = []
    for shape in shapes:
        model = shape.make(run.device.device, run.dtype)
        for t in lengths:
            point = f"{shape.name}, {t} tokens"
            if run.late(point):
                continue
            with run.attempt(point):
                entries.append(measure_step(run, shape, model, t, name, options))
                run.save()
        del model
        run.device.clear()
    if not any((name or "eager") in entry["seconds"] for entry in entries):
        raise RuntimeError("; ".join(run.result["errors"]) or "nothing was measured")


def measure_step(
    run: Run, shape: Shape, model: LanguageModel, t: int, name: str, options: dict | None
) -> dict:
    """One model at one length: every way of making a step, side by side.

    ``name`` is that of the compiled step in the result; nothing is compiled without one.
    """
    device, plan = run.device, run.plan
    state = filled(model, shape, 1, t - 1, t)
    step = step_of(model, state, run.tokens(shape, 1, t), t)
    expected = step().clone()
    with Operators() as counter:
        step()
    ways = {"eager": step}
    seconds_to_compile = None
    if name:
        with run.attempt(f"{shape.name}, {t} tokens, {name}"):
            start = time.perf_counter()
            torch.compiler.reset()
            made = torch.compile(
                step, fullgraph=True, dynamic=False, backend=device.compiler, options=options
            )
            made()
            agree(f"{shape.name} compiled", made(), expected, run.dtype)
            device.wait()
            seconds_to_compile = short(time.perf_counter() - start)
            ways[name] = made
    if device.graphs:
        for way in list(ways):
            with run.attempt(f"{shape.name}, {t} tokens, graph of {way}"):
                replay = device.capture(ways[way])
                agree(f"graph of {way}", replay(), expected, run.dtype)
                ways["graph" if way == "eager" else f"{way} + graph"] = replay
    for way in ways.values():
        way()
    entry = {
        "model": shape.described(model),
        "batch_size": 1,
        "dtype": plan.dtype,
        "length": t,
        "bytes": step_bytes(shape, model, t, 1),
        "operators": counter.number,
        "seconds": run.samples(ways, calls=plan.calls),
        "host_seconds": {
            way: [short(device.host_seconds(call)) for _ in range(plan.rounds)]
            for way, call in ways.items()
        },
    }
    if seconds_to_compile is not None:
        entry["seconds_to_compile"] = seconds_to_compile
    return entry


@torch.inference_mode()
def roofline(run: Run) -> None:
    """Prefill and decode: operations and bytes, and the seconds that they take."""
    plan = run.plan
    entries = run.result["entries"] = []
    # Every combination once at least: the extremes of the batch come first.
    order = sorted(plan.batches, key=lambda b: -abs(b - plan.batches[len(plan.batches) // 2]))
    for batch in order:
        for dtype in plan.roofline_dtypes:
            for kv in plan.kv_heads:
                point = f"{dtype}, {kv} key heads, {batch} texts"
                if run.late(point):
                    continue
                with run.attempt(point):
                    two_phases(run, entries, point, dtype, kv, batch)
                run.device.clear()
                run.save()
    if not entries:
        raise RuntimeError("nothing was measured")


def two_phases(
    run: Run, entries: list[dict], point: str, dtype_name: str, kv: int, batch: int
) -> None:
    """Add one combination's entries: a step, then a prefill of as many tokens as fit."""
    plan, device, dtype = run.plan, run.device, getattr(torch, dtype_name)
    t = plan.roofline_length
    shape = replace(plan.shapes[-1], name="large, 2 layers", n_layers=2, n_kv_heads=kv)
    model = shape.make(device.device, dtype)
    described = shape.described(model)

    def add(phase: str, rows: int, length: int, seconds: dict) -> None:
        entries.append(
            {
                "n_kv_heads": kv,
                "dtype": dtype_name,
                "batch_size": batch,
                "model": described,
                "phase": phase,
                "length": length,
                "seconds": seconds,
                "operations": operations(described, rows, length, batch),
                "bytes": step_bytes(shape, model, length, batch),
            }
        )

    state = filled(model, shape, batch, t - 1, t)
    step = step_of(model, state, run.tokens(shape, batch, t), t)
    expected = step().clone()
    ways = {"eager": step}
    if device.graphs:
        with run.attempt(f"{point}, graph"):
            replay = device.capture(step)
            agree(point, replay(), expected, dtype)
            ways["graph"] = replay
    add("decode", 1, t, run.samples(ways, calls=plan.calls))
    state = step = ways = replay = None  # makes room for the prefill
    device.clear()
    rows = min(t, plan.prefill_tokens // batch)
    tokens = run.tokens(shape, batch, rows)

    def prefill() -> torch.Tensor:
        return model(tokens, last_only=True)

    prefill()
    add("prefill", rows, rows, run.samples({"eager": prefill}, rounds=min(3, plan.rounds)))


@torch.inference_mode()
def memory(run: Run) -> None:
    """Bytes of a cache against the formula, and the longest context that fits."""
    plan, device = run.plan, run.device
    caches = run.result["caches"] = []
    for shape in plan.shapes:
        model = shape.make(device.device, run.dtype)
        for batch, length in ((1, plan.lengths[-1]), (3, plan.lengths[-1] // 2)):
            device.clear()
            before = device.allocated()
            state = model.decode_state(batch, length)
            after = device.allocated()
            caches.append(
                {
                    "model": shape.described(model),
                    "batch_size": batch,
                    "length": length,
                    "formula": shape.cache_bytes(length, batch, run.dtype),
                    "keys_and_values": state.nbytes,
                    "allocated": None if before is None else after - before,
                }
            )
            del state
        del model
    wrong = [cache for cache in caches if cache["formula"] != cache["keys_and_values"]]
    if wrong:
        raise RuntimeError(f"not the formula's bytes: {wrong}")
    device.clear()
    run.result["longest"] = []
    for kv in plan.kv_heads:
        # As many layers as a model of 7 billion weights has.
        shape = replace(plan.shapes[-1], n_layers=32, n_kv_heads=kv)
        with run.attempt(f"longest context, {kv} key heads"):
            run.result["longest"].append(longest(run, shape))


def longest(run: Run, shape: Shape) -> dict:
    """The longest context beside the whole model's weights: by the formula, and by trying."""
    device = run.device
    width = shape.d_model
    heads = 2 * shape.n_heads + 2 * shape.kv_heads
    layer = width * heads * shape.head_dim + 3 * width * shape.d_ff
    weights = run.dtype.itemsize * (shape.n_layers * layer + 2 * shape.vocab_size * width)
    per_token = shape.cache_bytes(1, 1, run.dtype)
    device.clear()
    free = device.free()
    answer = {
        "n_kv_heads": shape.kv_heads,
        "n_layers": shape.n_layers,
        "bytes_per_token": per_token,
        "weight_bytes": weights,
        "free_bytes": free,
        "by_formula": None,
        "by_allocation": None,
    }
    if free is None:  # a CPU's memory is only promised when it is allocated
        return answer
    if free <= weights:
        return {**answer, "by_formula": 0, "by_allocation": 0}
    by_formula = (free - weights) // per_token
    held = torch.empty(weights, dtype=torch.uint8, device=device.device)

    def fits(length: int) -> bool:
        """Whether caches of all layers can be allocated, and their last slots written and read."""
        try:
            caches = []
            for _ in range(shape.n_layers):
                caches.append(
                    KVCache(1, shape.kv_heads, length, shape.head_dim, dtype=run.dtype,
                            device=device.device)
                )  # fmt: skip
                keys, values = caches[-1]._keys, caches[-1]._values
                keys[:, :, -1] = 1
                values[:, :, -1] = 1
            device.wait()
            return True
        except torch.OutOfMemoryError:
            return False
        finally:
            caches = keys = values = None
            device.clear()

    low, high = 0, by_formula + 1  # fits, does not
    tried = max(1, int(0.99 * by_formula))
    while high - low > max(1, by_formula // 500):
        low, high = (tried, high) if fits(tried) else (low, tried)
        tried = (low + high) // 2
    del held
    device.clear()
    return {**answer, "by_formula": by_formula, "by_allocation": low}
