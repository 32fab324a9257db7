"""Sections of :mod:`benchmarks.kv_cache` that time steps, prefill and growth, after the check."""

import copy
import statistics
import time
from dataclasses import replace

import torch

from benchmarks.growth import exponent
from benchmarks.kv_cache_plan import Shape
from benchmarks.kv_cache_run import (
    Operators,
    Run,
    agree,
    difference,
    filled,
    operations,
    short,
    step_bytes,
    step_of,
)
from lib.crossover import crossover
from lib.timing import matmul_throughput, memory_bandwidth


@torch.inference_mode()
def ceilings(run: Run) -> None:
    """The two speeds of the roofline, from a large copy and a large product of random numbers."""
    plan, device = run.plan, run.device
    copy_speed = memory_bandwidth(device.device, n_bytes=plan.copy_bytes)
    run.record["bandwidth"] = run.section["bandwidth"] = short(copy_speed)
    run.section["throughput"] = {}
    for name in dict.fromkeys((plan.dtype, *plan.roofline_dtypes)):
        speed = matmul_throughput(device.device, size=plan.product_size, dtype=getattr(torch, name))
        run.section["throughput"][name] = short(speed)
    run.record["throughput"] = run.section["throughput"][plan.dtype]
    run.section["float32_products"] = torch.get_float32_matmul_precision()
    device.clear()


@torch.inference_mode()
def correctness(run: Run) -> None:
    """Cached logits against the full forward, and the fused path against the readable one.

    In float32 the relative difference is at most 1e-4. In bfloat16 everything is compared with
    float32 on the same weights, and what is tested may be at most twice as far off as the full
    forward in bfloat16 is: the rounding is measured, not guessed.
    """
    plan, device = run.plan, run.device
    checks = run.section["checks"] = []
    length, prompt = 41, 29
    for shape in plan.shapes:
        for kv in sorted({shape.n_heads, 2 if shape.n_heads % 2 == 0 else 1, 1}, reverse=True):
            named = replace(shape, n_kv_heads=kv)
            for dtype in (torch.float32, torch.bfloat16):
                point = f"{shape.name}, {kv} key heads, {dtype}"
                if run.late(point):
                    continue
                model = named.make(device.device, dtype)
                tokens = run.tokens(shape, 2, length)
                state = model.decode_state(2, length)
                pieces = [model(tokens[:, :prompt], state=state)]
                for m in range(prompt, length):
                    pieces.append(model(tokens[:, m : m + 1], state=state))
                full = model(tokens)
                found = {
                    "cached": torch.cat(pieces, dim=1),
                    "readable": model(tokens, return_weights=True)[0],
                }
                if dtype == torch.float32:
                    reference, most = full, 1e-4
                else:
                    reference = copy.deepcopy(model).float()(tokens)
                    most = max(2 * difference(full, reference), 1e-3)
                if device.graphs:
                    replay = device.capture(step_of(model, state, tokens, length))
                    off = difference(replay(), full[:, -1:])
                    checks.append(
                        {"what": f"{point}, graph", "off": short(off), "most": short(3 * most)}
                    )
                for name, logits in found.items():
                    off = difference(logits, reference)
                    checks.append(
                        {"what": f"{point}, {name}", "off": short(off), "most": short(most)}
                    )
        device.clear()
    wrong = [check["what"] for check in checks if not check["off"] <= check["most"]]
    if wrong:
        raise RuntimeError(f"wrong logits: {'; '.join(wrong)}")


@torch.inference_mode()
def growth(run: Run) -> None:
    """Time for one new token against the context, both ways, for three models."""
    plan, device = run.plan, run.device
    runs = run.record["runs"]
    for shape in plan.shapes:
        model = shape.make(device.device, run.dtype)
        lengths = plan.lengths + (plan.longer if shape is plan.shapes[-1] else ())
        tokens = run.tokens(shape, 1, lengths[-1])
        state = model.decode_state(1, lengths[-1])
        entry = {
            "model": shape.described(model),
            "batch_size": 1,
            "lengths": [],
            "uncached": [],
            "cached": [],
            "off": [],
        }
        graphs: dict = {"lengths": [], "uncached": [], "cached": []}
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

                off = agree(point, step(), whole(), run.dtype)
                ways = {"uncached": whole, "cached": step}
                for way in ways.values():
                    way()  # warm
                if device.graphs:
                    with run.attempt(f"{point}, graphs"):
                        replays = {n: device.capture(w) for n, w in ways.items()}
                        for name, replay in replays.items():
                            agree(f"{point}, graph {name}", replay(), ways[name](), run.dtype)
                        ways |= {f"graph {n}": replay for n, replay in replays.items()}
                found = run.samples(ways)
                entry["lengths"].append(t)
                entry["off"].append(off)
                entry["uncached"].append(found["uncached"])
                entry["cached"].append(found["cached"])
                if "graph cached" in found:
                    graphs["lengths"].append(t)
                    graphs["uncached"].append(found["graph uncached"])
                    graphs["cached"].append(found["graph cached"])
        for kind, curves in (("eager", entry), ("graph", graphs)):
            if len(curves["lengths"]) >= 2:
                entry.setdefault("fits", {})[kind] = fitted(curves)
        if graphs["lengths"]:
            entry["graph"] = graphs
        if entry["lengths"]:
            runs.append(entry)
        del model, state
        device.clear()
        run.save()
    if not runs:
        raise RuntimeError("no length was measured")


def fitted(curves: dict) -> dict:
    """The exponents over all lengths and over the longer half, and where the cache pays."""
    lengths = curves["lengths"]
    late = min(len(lengths) // 2, len(lengths) - 2)
    found: dict = {}
    for way in ("uncached", "cached"):
        medians = [statistics.median(seconds) for seconds in curves[way]]
        found[way] = {
            "exponent": short(exponent(lengths, medians)),
            "longer_half": short(exponent(lengths[late:], medians[late:])),
        }
    found["crossover"] = crossover(lengths, curves["uncached"], curves["cached"])
    return found


def measure_step(
    run: Run, shape: Shape, model, t: int, *, name: str = "", options: dict | None = None
) -> dict:
    """One model at one length: every way of making a step, side by side.

    ``name`` is what a compiled step is called; nothing is compiled without one.
    """
    device, plan = run.device, run.plan
    state = filled(model, shape, 1, t - 1, t)
    step = step_of(model, state, run.tokens(shape, 1, t), t)
    expected = step().clone()
    with Operators() as counter:
        step()
    ways = {"eager": step}
    seconds_to_compile = None
    if name and device.compiler:
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
    found = run.samples(ways, calls=plan.calls)
    host = {name: [short(device.host_seconds(way)) for _ in range(plan.rounds)]
            for name, way in ways.items()}  # fmt: skip
    moved = step_bytes(shape, model, t, 1)
    shares = {}
    if run.record["bandwidth"]:
        limit = moved / run.record["bandwidth"]
        shares = {n: short(limit / statistics.median(s)) for n, s in found.items()}
    entry = {
        "model": shape.described(model),
        "batch_size": 1,
        "dtype": plan.dtype,
        "length": t,
        "bytes": moved,
        "operators": counter.number,
        "seconds": found,
        "host_seconds": host,
        "share_of_bandwidth": shares,
    }
    if seconds_to_compile is not None:
        entry["seconds_to_compile"] = seconds_to_compile
    return entry


def measure_steps(run: Run, shapes, lengths: tuple[int, ...], **how) -> list[dict]:
    """:func:`measure_step` for each model and length, as far as the section's time goes."""
    entries = run.section["entries"] = []
    for shape in shapes:
        model = shape.make(run.device.device, run.dtype)
        for t in lengths:
            point = f"{shape.name}, {t} tokens"
            if run.late(point):
                continue
            with run.attempt(point):
                entries.append(measure_step(run, shape, model, t, **how))
                run.save()
        del model
        run.device.clear()
    return entries


@torch.inference_mode()
def steps(run: Run) -> None:
    """How far a step is from the bandwidth limit: as Python starts it, and replayed."""
    entries = measure_steps(run, reversed(run.plan.shapes), run.plan.step_lengths)
    if not entries:
        raise RuntimeError("no step was measured")


@torch.no_grad()  # torch.compile has more trouble with inference mode
def compiled(run: Run) -> None:
    """Eager, torch.compile, and a graph of each, side by side; the largest model first."""
    compile_steps(run, reversed(run.plan.shapes), "compile", None)


@torch.no_grad()
def tuned(run: Run) -> None:
    """The same for the largest model, with products of one row made and tuned by the compiler."""
    compile_steps(run, run.plan.shapes[-1:], "tuned", run.plan.compile_options or None)


def compile_steps(run: Run, shapes, name: str, options: dict | None) -> None:
    """Compile each model's step and time it beside the others."""
    if run.device.compiler is None:
        run.section["not_here"] = "torch.compile is measured on a GPU only"
        return
    entries = measure_steps(run, shapes, run.plan.compile_lengths, name=name, options=options)
    if not any(name in entry["seconds"] for entry in entries):
        raise RuntimeError("; ".join(run.section["errors"]) or "nothing was compiled")


@torch.inference_mode()
def roofline(run: Run) -> None:
    """Prefill and decode: operations and bytes per second, over the ceilings of this run."""
    plan, device = run.plan, run.device
    entries = run.section["entries"] = []
    peaks = run.record["sections"]["ceilings"].get("throughput", {})
    # Every combination once at least: the extremes of the batch come first.
    order = sorted(plan.batches, key=lambda b: -abs(b - plan.batches[len(plan.batches) // 2]))
    for batch in order:
        for name in plan.roofline_dtypes:
            dtype = getattr(torch, name)
            for kv in plan.kv_heads:
                shape = replace(plan.roofline, n_kv_heads=kv)
                t = plan.roofline_length
                point = f"{name}, {kv} key heads, {batch} texts"
                if run.late(point):
                    continue
                with run.attempt(point):
                    model = shape.make(device.device, dtype)
                    described = shape.described(model)
                    state = filled(model, shape, batch, t - 1, t)
                    step = step_of(model, state, run.tokens(shape, batch, t), t)
                    expected = step().clone()
                    ways = {"eager": step}
                    if device.graphs:
                        with run.attempt(f"{point}, graph"):
                            replay = device.capture(step)
                            agree(point, replay(), expected, dtype)
                            ways["graph"] = replay
                    found = run.samples(ways, calls=plan.calls)
                    common = {"n_kv_heads": kv, "dtype": name, "batch_size": batch}
                    common["model"] = described
                    entries.append(
                        rated(
                            {**common, "phase": "decode", "length": t, "seconds": found},
                            operations(described, 1, t, batch),
                            step_bytes(shape, model, t, batch),
                            run.record["bandwidth"],
                            peaks.get(name),
                        )
                    )
                    del state, step, ways
                    device.clear()
                    rows = min(t, plan.prefill_tokens // batch)
                    tokens = run.tokens(shape, batch, rows)

                    def prefill(model=model, tokens=tokens):
                        return model(tokens, last_only=True)

                    prefill()
                    found = run.samples({"eager": prefill}, rounds=min(3, plan.rounds))
                    moved = step_bytes(shape, model, rows, batch)
                    entries.append(
                        rated(
                            {**common, "phase": "prefill", "length": rows, "seconds": found},
                            operations(described, rows, rows, batch),
                            moved,
                            run.record["bandwidth"],
                            peaks.get(name),
                        )
                    )
                    del model
                    device.clear()
        run.save()
    if not entries:
        raise RuntimeError("nothing was measured")


def rated(entry: dict, counted: int, moved: int, bandwidth, peak) -> dict:
    """Add what is reached, in operations and bytes per second, and its share of the ceilings."""
    best = min(statistics.median(seconds) for seconds in entry["seconds"].values())
    entry |= {"operations": counted, "bytes": moved}
    entry["operations_per_second"] = short(counted / best)
    entry["bytes_per_second"] = short(moved / best)
    if bandwidth and peak:
        entry["share_of_peak"] = short(counted / best / peak)
        entry["share_of_bandwidth"] = short(moved / best / bandwidth)
        roof = max(counted / peak, moved / bandwidth)
        entry["share_of_roof"] = short(roof / best)
    return entry
