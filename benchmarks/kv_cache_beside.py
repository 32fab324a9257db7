"""Sections of :mod:`benchmarks.kv_cache` beside other code: the exercise's, and transformers'."""

import contextlib
import io
import json
import statistics
import time

import torch

from benchmarks.kv_cache_device import Cpu
from benchmarks.kv_cache_plan import SEED
from benchmarks.kv_cache_run import Run, agree, short
from benchmarks.machine import ROOT
from lib.generation import generate

NOTEBOOK = ROOT / "solutions" / "10-kv-cache" / "10-kv-cache.ipynb"


class Blank:
    """In the place of matplotlib: takes every call, and draws nothing."""

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
    """The solution of exercise 10 by itself: its timer against this one, then its own run."""
    plan, device, section = run.plan, run.device, run.section
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        names = exercise_names(device)
    layers, width, heads = 4, 256, 4
    longest_length = plan.exercise_lengths[-1]
    sizes = {"n_layers": layers, "n_heads": heads, "n_kv_heads": heads, "d_k": width // heads}
    draw = torch.Generator().manual_seed(SEED)
    model = names["make_model"](
        draw,
        vocabulary=64,
        d_model=width,
        d_v=width // heads,
        dtype=torch.float32,
        device=device.kind,
        **sizes,
    )
    tokens = torch.randint(64, (1, longest_length), generator=draw).to(device.device)
    shape = (1, heads, longest_length, width // heads, width // heads)
    caches = [names["KVCache"](*shape, torch.float32, device.kind) for _ in range(layers)]

    def update(layer, k, v):
        return caches[layer].update(k, v)

    section["timers"] = []
    for t in plan.exercise_lengths:
        held = caches[0].length
        if held < t - 1:
            names["read"](tokens[:, held : t - 1], held, model, update)

        def without(t=t):
            return names["forward"](tokens[:, :t], model)

        def with_cache(t=t):
            for cache in caches:
                cache.truncate(t - 1)
            return names["read"](tokens[:, t - 1 : t], t - 1, model, update)

        agree(f"exercise, {t} tokens", with_cache(), without()[:, -1:], torch.float32)
        for way, call in (("uncached", without), ("cached", with_cache)):
            call()
            found = {"exercise": [], "benchmark": []}
            for _ in range(plan.rounds):
                theirs = names["time_call"](
                    call, names["wait_for_machine"], time.perf_counter, 0, 3
                )
                found["exercise"].append(short(theirs))
                ours = statistics.median(device.seconds(call) for _ in range(3))
                found["benchmark"].append(short(ours))
            pairs = zip(found["exercise"], found["benchmark"], strict=True)
            section["timers"].append(
                {
                    "length": t,
                    "way": way,
                    "seconds": found,
                    "ratio": short(statistics.median(a / b for a, b in pairs)),
                }
            )
    worst = max((timer["ratio"] for timer in section["timers"]), key=lambda r: abs(r - 1))
    section["furthest_ratio"] = worst
    section["agrees_within_a_tenth"] = abs(worst - 1) <= 0.1
    source = names["picture_source"]
    if plan.thorough:
        source = source.replace("THOROUGH = False", "THOROUGH = True")
    with contextlib.redirect_stdout(printed):
        exec(compile(source, "machine-picture", "exec"), names)
    lines = printed.getvalue().splitlines()
    section["printed"] = lines
    if not any("the cache pays from" in line for line in lines):
        raise RuntimeError(f"the exercise's own run did not end: {lines[-1:]}")


@torch.inference_mode()
def transformers(run: Run) -> None:
    """Greedy decoding beside Hugging Face transformers, static and dynamic cache."""
    plan, device, section = run.plan, run.device, run.section
    try:
        import transformers as theirs_package
    except ImportError:
        section["not_here"] = "transformers is not installed"
        return
    from benchmarks.llama import from_transformers

    theirs_package.logging.set_verbosity_error()
    section["version"] = theirs_package.__version__
    entries = section["entries"] = []
    prompt_length, new = 32, plan.new_tokens
    for shape in plan.shapes[1:]:
        if run.late(shape.name):
            continue
        with run.attempt(shape.name):
            config = theirs_package.LlamaConfig(
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
                theirs = theirs_package.LlamaForCausalLM(config).eval()
                ours = from_transformers(theirs)
            for model in (theirs, ours):  # not the buffers: frequencies stay in float32
                for name, weight in list(model.named_parameters()):
                    owner = model.get_submodule(name.rpartition(".")[0])
                    narrow = torch.nn.Parameter(weight.to(run.dtype), requires_grad=False)
                    setattr(owner, name.rpartition(".")[2], narrow)
            prompt = run.tokens(shape, 1, prompt_length)
            off = agree(shape.name, ours(prompt), theirs(prompt).logits, run.dtype)

            def loop(cache, count, theirs=theirs, prompt=prompt):
                """The least one can write around their forward."""
                written, step = [], prompt
                for _ in range(count):
                    logits = theirs(
                        step, past_key_values=cache, use_cache=True, logits_to_keep=1
                    ).logits
                    step = logits[:, -1].argmax(dim=-1, keepdim=True)
                    written.append(step)
                return torch.cat(written, dim=1)

            def static(count, loop=loop, config=config):
                room = prompt_length + new
                return loop(theirs_package.StaticCache(config=config, max_cache_len=room), count)

            def dynamic(count, loop=loop, config=config):
                return loop(theirs_package.DynamicCache(config=config), count)

            def lib(count, ours=ours, prompt=prompt):
                return generate(ours, prompt, count)

            ways = {"lib": lib, "static": static, "dynamic": dynamic}
            written = {name: way(new) for name, way in ways.items()}  # and warm
            same = {n: (w == written["lib"]).float().mean().item() for n, w in written.items()}
            calls = {}
            for name, way in ways.items():
                calls[name] = lambda way=way: way(new)
                calls[f"{name}, first"] = lambda way=way: way(1)
            found = run.samples(calls, rounds=min(5, plan.rounds))
            per_token = {}
            for name in ways:
                both = zip(found[name], found[f"{name}, first"], strict=True)
                per_token[name] = [short((all_ - first) / (new - 1)) for all_, first in both]
            entries.append(
                {
                    "model": shape.described(ours),
                    "dtype": plan.dtype,
                    "prompt": prompt_length,
                    "new_tokens": new,
                    "off": off,
                    "same_tokens": same,
                    "seconds_per_token": per_token,
                    "ratio": {
                        name: short(
                            statistics.median(
                                a / b
                                for a, b in zip(per_token[name], per_token["lib"], strict=True)
                            )
                        )
                        for name in ("static", "dynamic")
                    },
                }
            )
            del ours, theirs
            device.clear()
    if not entries:
        raise RuntimeError("; ".join(section["errors"]) or "nothing was measured")
