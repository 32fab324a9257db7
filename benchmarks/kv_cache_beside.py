"""Sections of :mod:`benchmarks.kv_cache` that compare with the exercise and with transformers."""

import contextlib
import io
import json
import statistics
import time
from dataclasses import replace

import torch

from benchmarks.kv_cache_device import Cpu
from benchmarks.kv_cache_plan import SEED, Shape
from benchmarks.kv_cache_sections import Run, agree, short
from benchmarks.machine import ROOT
from lib.generation import generate

NOTEBOOK = ROOT / "solutions" / "10-kv-cache" / "10-kv-cache.ipynb"


class Blank:
    """Replaces matplotlib: accepts every call, and draws nothing."""

    def __getattr__(self, name: str):
        return Blank()

    def __call__(self, *args, **kwargs):
        return Blank()

    def __iter__(self):
        return iter((Blank(), Blank()))


def exercise_names(device: Cpu) -> dict:
    """Run the solution's own cells, without the drawing, and return what they define."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    source = {cell["id"]: "".join(cell["source"]) for cell in cells}
    drawing = "import matplotlib.pyplot as plt\n"
    if drawing not in source["setup"]:
        raise RuntimeError(f"no line {drawing!r} in the exercise's first cell")
    source["setup"] = source["setup"].replace(drawing, "")
    names: dict = {"__name__": "exercise", "plt": Blank()}
    answers = [name for name in source if name.endswith("-answer")]
    for name in ("setup", "model-given", *answers, "machine-given"):
        exec(compile(source[name], name, "exec"), names)
    if device.kind == "cpu":
        names["machine"], names["wait_for_machine"] = "cpu", lambda: None
    names["picture_source"] = source["machine-picture"]
    return names


@torch.inference_mode()
def exercise(run: Run) -> None:
    """The solution of exercise 10: its timer against this one, then its own measurement."""
    plan, device, result = run.plan, run.device, run.result
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        names = exercise_names(device)
    layers, width, heads = 4, 256, 4
    longest_length = plan.exercise_lengths[-1]
    sizes = {"n_layers": layers, "n_heads": heads, "n_kv_heads": heads, "d_k": width // heads}
    generator = torch.Generator().manual_seed(SEED)
    model = names["make_model"](
        generator,
        vocabulary=64,
        d_model=width,
        d_v=width // heads,
        dtype=torch.float32,
        device=device.kind,
        **sizes,
    )
    tokens = torch.randint(64, (1, longest_length), generator=generator).to(device.device)
    shape = (1, heads, longest_length, width // heads, width // heads)
    caches = [names["KVCache"](*shape, torch.float32, device.kind) for _ in range(layers)]

    def update(layer, k, v):
        return caches[layer].update(k, v)

    timers = result["timers"] = []
    for t in plan.exercise_lengths:
        cached = caches[0].length
        if cached < t - 1:
            names["read"](tokens[:, cached : t - 1], cached, model, update)

        def without(t=t):
            return names["forward"](tokens[:, :t], model)

        def with_cache(t=t):
            for cache in caches:
                cache.truncate(t - 1)
            return names["read"](tokens[:, t - 1 : t], t - 1, model, update)

        agree(f"exercise, {t} tokens", with_cache(), without()[:, -1:], torch.float32)
        for way, call in (("uncached", without), ("cached", with_cache)):
            call()
            theirs, ours = [], []
            for _ in range(plan.rounds):
                seconds = names["time_call"](
                    call, names["wait_for_machine"], time.perf_counter, 0, 3
                )
                theirs.append(short(seconds))
                ours.append(short(statistics.median(device.seconds(call) for _ in range(3))))
            timers.append(
                {
                    "length": t,
                    "way": way,
                    "seconds": {"exercise": theirs, "benchmark": ours},
                    "ratio": median_ratio(theirs, ours),
                }
            )
    ratios = [timer["ratio"] for timer in timers]
    result["furthest_ratio"] = max(ratios, key=lambda ratio: abs(ratio - 1))
    source = names["picture_source"]
    if plan.thorough:
        source = source.replace("THOROUGH = False", "THOROUGH = True")
    with contextlib.redirect_stdout(printed):
        exec(compile(source, "machine-picture", "exec"), names)
    lines = result["printed"] = printed.getvalue().splitlines()
    if not any("the cache pays from" in line for line in lines):
        raise RuntimeError(f"the exercise's own measurement did not end: {lines[-1:]}")


def median_ratio(above: list[float], below: list[float]) -> float:
    """The median of the ratios, round by round."""
    return short(statistics.median(a / b for a, b in zip(above, below, strict=True)))


@torch.inference_mode()
def transformers(run: Run) -> None:
    """Greedy decoding beside Hugging Face transformers, static and dynamic cache."""
    try:
        import transformers as package
    except ImportError:
        run.result["not_here"] = "transformers is not installed"
        return
    package.logging.set_verbosity_error()
    run.result["version"] = package.__version__
    entries = run.result["entries"] = []
    for shape in run.plan.shapes[1:]:
        if run.late(shape.name):
            continue
        with run.attempt(shape.name):
            entries.append(beside_transformers(run, package, shape))
        run.device.clear()
        run.save()
    if not entries:
        raise RuntimeError("; ".join(run.result["errors"]) or "nothing was measured")


def beside_transformers(run: Run, package, shape: Shape) -> dict:
    """One Llama twice, with the same weights: seconds per token of both caches and of lib's."""
    from benchmarks.llama import from_transformers

    plan, device = run.plan, run.device
    prompt_length, new = 32, plan.new_tokens
    config = package.LlamaConfig(
        vocab_size=shape.vocab_size,
        hidden_size=shape.d_model,
        intermediate_size=shape.d_ff,
        num_hidden_layers=shape.n_layers,
        num_attention_heads=shape.n_heads,
        max_position_embeddings=prompt_length + new,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
    )
    torch.manual_seed(SEED)
    with torch.device(device.device):
        theirs = package.LlamaForCausalLM(config).eval()
        ours = from_transformers(theirs)
    for model in (theirs, ours):  # not the buffers: frequencies stay in float32
        for name, weight in list(model.named_parameters()):
            owner, _, last = name.rpartition(".")
            narrow = torch.nn.Parameter(weight.to(run.dtype), requires_grad=False)
            setattr(model.get_submodule(owner), last, narrow)
    prompt = run.tokens(shape, 1, prompt_length)
    difference = agree(shape.name, ours(prompt), theirs(prompt).logits, run.dtype)

    def loop(cache, count):
        """A minimal decoding loop around their forward."""
        written, step = [], prompt
        for _ in range(count):
            output = theirs(step, past_key_values=cache, use_cache=True, logits_to_keep=1)
            step = output.logits[:, -1].argmax(dim=-1, keepdim=True)
            written.append(step)
        return torch.cat(written, dim=1)

    ways = {
        "lib": lambda count: generate(ours, prompt, count),
        "static": lambda count: loop(
            package.StaticCache(config=config, max_cache_len=prompt_length + new), count
        ),
        "dynamic": lambda count: loop(package.DynamicCache(config=config), count),
    }
    written = {name: way(new) for name, way in ways.items()}  # also warms up
    same = {name: (w == written["lib"]).float().mean().item() for name, w in written.items()}
    calls = {}
    for name, way in ways.items():
        calls[name] = lambda way=way: way(new)
        calls[f"{name}, first"] = lambda way=way: way(1)
    seconds = run.samples(calls, rounds=min(5, plan.rounds))
    per_token = {
        name: [
            short((whole - first) / (new - 1))
            for whole, first in zip(seconds[name], seconds[f"{name}, first"], strict=True)
        ]
        for name in ways
    }
    return {
        "model": replace(shape, llama=True).described(ours),
        "dtype": plan.dtype,
        "prompt": prompt_length,
        "new_tokens": new,
        "difference": difference,
        "same_tokens": same,
        "seconds_per_token": per_token,
        "ratio": {
            name: median_ratio(per_token[name], per_token["lib"]) for name in ("static", "dynamic")
        },
    }
