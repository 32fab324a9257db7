"""The sections of :mod:`benchmarks.kv_cache`: each checks logits, then measures.

A section is a function of a :class:`Run`. It writes what it finds into ``run.section``, asks
``run.late`` before each point, and raises if there is nothing to show.
"""

import contextlib
import copy
import io
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.growth import exponent
from benchmarks.kv_cache_device import Cpu
from benchmarks.kv_cache_plan import SEED, Plan, Shape
from benchmarks.machine import ROOT
from lib.crossover import crossover
from lib.generation import generate
from lib.kv_cache import KVCache
from lib.timing import matmul_throughput, memory_bandwidth
from lib.transformer import LanguageModel

NOTEBOOK = ROOT / "solutions" / "10-kv-cache" / "10-kv-cache.ipynb"


class Run:
    """A device, a plan and the record, with the clock that a section runs against."""

    def __init__(self, device: Cpu, plan: Plan, record: dict, out: Path | None = None) -> None:
        self.device, self.plan, self.record, self.out = device, plan, record, out
        self.dtype = getattr(torch, plan.dtype)
        self.section: dict = {}
        self.end = float("inf")

    def save(self) -> None:
        """Write the record; at no moment is the file half written."""
        if self.out is not None:
            fresh = self.out.with_name(self.out.name + ".part")
            fresh.write_text(json.dumps(self.record, separators=(",", ":")) + "\n")
            fresh.replace(self.out)

    def late(self, point: str) -> bool:
        """Whether the section's time is over; then the point is noted as left out."""
        if time.monotonic() < self.end:
            return False
        self.section["left_out"].append(point)
        return True

    @contextlib.contextmanager
    def attempt(self, point: str) -> Iterator[None]:
        """Note an error at one point of a section, and go on."""
        try:
            yield
        except Exception as problem:
            self.device.wait()  # a device that no longer answers ends the section
            self.section["errors"].append(f"{point}: {said(problem)}")
            self.device.clear()

    def tokens(self, shape: Shape, batch: int, length: int) -> torch.Tensor:
        draw = torch.Generator().manual_seed(SEED)
        drawn = torch.randint(shape.vocab_size, (batch, length), generator=draw)
        return drawn.to(self.device.device)

    def samples(self, ways: dict, *, calls: int = 1, rounds: int | None = None) -> dict:
        """Seconds of each round for each way, all ways in turn in each round."""
        found: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(self.plan.rounds if rounds is None else rounds):
            for name, way in ways.items():
                found[name].append(short(self.device.seconds(way, calls)))
        return found


def said(problem: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(problem).split())
    return f"{type(problem).__name__}: {text}"[:400]


def short(number: float) -> float:
    """Five digits are more than a clock gives."""
    return float(f"{number:.5g}")


def difference(a: torch.Tensor, b: torch.Tensor) -> float:
    """The relative difference of two results; not a number is never small."""
    a, b = a.double(), b.double()
    found = ((a - b).norm() / b.norm()).item()
    return found if found == found else float("inf")


def agree(what: str, a: torch.Tensor, b: torch.Tensor, dtype: torch.dtype) -> float:
    """Stop before a wrong answer is timed. (The section `correctness` asks for more.)"""
    found, most = difference(a, b), 0.1 if dtype.itemsize == 2 else 1e-3
    if found > most:
        raise RuntimeError(f"{what}: the logits differ by {found:.2g}, allowed are {most}")
    return short(found)


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
    """A call that reads token t - 1 with those before it in the cache, again and again."""
    last = tokens[:, t - 1 : t].contiguous()

    def step() -> torch.Tensor:
        state.truncate(t - 1)
        return model(last, state=state, last_only=True)

    return step


def step_bytes(shape: Shape, model: LanguageModel, t: int, batch: int) -> int:
    """What a step must read: every weight once (of the embedding a row), and the cache."""
    weights = sum(p.nbytes for p in model.parameters()) - model.embedding.weight.nbytes
    return weights + shape.cache_bytes(t, batch, model.embedding.weight.dtype)


def operations(model: dict, rows: int, t: int, batch: int) -> int:
    """Of ``rows`` new tokens a text, each of which sees t: as chapter 10 counts."""
    width = model["n_heads"] * model["head_dim"]
    per_row = 2 * model["n_weights"] + 4 * model["n_layers"] * width * t
    return batch * (rows * per_row + 2 * model["vocab_size"] * model["d_model"])


class Operators(TorchDispatchMode):
    """Count what torch starts."""

    number = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.number += 1
        return function(*args, **(kwargs or {}))


# --- the sections


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


@torch.inference_mode()
def steps(run: Run) -> None:
    """How far a step is from the bandwidth limit: as Python starts it, and replayed."""
    entries = run.section["entries"] = []
    for shape in reversed(run.plan.shapes):
        model = shape.make(run.device.device, run.dtype)
        for t in run.plan.step_lengths:
            point = f"{shape.name}, {t} tokens"
            if run.late(point):
                continue
            with run.attempt(point):
                entries.append(measure_step(run, shape, model, t))
        del model
        run.device.clear()
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
    entries = run.section["entries"] = []
    for shape in shapes:
        model = shape.make(run.device.device, run.dtype)
        for t in run.plan.compile_lengths:
            point = f"{shape.name}, {t} tokens"
            if run.late(point):
                continue
            with run.attempt(point):
                entries.append(measure_step(run, shape, model, t, name=name, options=options))
                run.save()
        del model
        run.device.clear()
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


@torch.inference_mode()
def memory(run: Run) -> None:
    """Bytes of a cache against the formula, and the longest context that fits."""
    plan, device, section = run.plan, run.device, run.section
    section["caches"] = []
    for shape in plan.shapes:
        model = shape.make(device.device, run.dtype)
        for batch, length in ((1, plan.lengths[-1]), (3, plan.lengths[-1] // 2)):
            device.clear()
            before = device.allocated()
            state = model.decode_state(batch, length)
            after = device.allocated()
            section["caches"].append(
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
    wrong = [c for c in section["caches"] if c["formula"] != c["keys_and_values"]]
    if wrong:
        raise RuntimeError(f"not the formula's bytes: {wrong}")
    device.clear()
    section["longest"] = []
    for kv in plan.kv_heads:
        shape = replace(plan.whole, n_kv_heads=kv)
        with run.attempt(f"longest context, {kv} key heads"):
            section["longest"].append(longest(run, shape))


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
    found = {
        "n_kv_heads": shape.kv_heads,
        "n_layers": shape.n_layers,
        "bytes_per_token": per_token,
        "weight_bytes": weights,
        "free_bytes": free,
        "by_formula": None,
        "by_allocation": None,
    }
    if free is None:  # a CPU's memory is promised, not given, when it is asked for
        return found
    if free <= weights:
        return {**found, "by_formula": 0, "by_allocation": 0}
    found["by_formula"] = (free - weights) // per_token
    held = torch.empty(weights, dtype=torch.uint8, device=device.device)

    def fits(length: int) -> bool:
        """Whether caches of all layers can be had, and their last slots written and read."""
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

    low, high = 0, found["by_formula"] + 1  # fits, does not
    tried = max(1, int(0.99 * found["by_formula"]))
    while high - low > max(1, found["by_formula"] // 500):
        low, high = (tried, high) if fits(tried) else (low, tried)
        tried = (low + high) // 2
    del held
    device.clear()
    return {**found, "by_allocation": low}


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


SECTIONS: dict[str, Callable[[Run], None]] = {
    "ceilings": ceilings,
    "correctness": correctness,
    "growth": growth,
    "steps": steps,
    "roofline": roofline,
    "memory": memory,
    "exercise": exercise,
    "transformers": transformers,
    "compiled": compiled,
    "tuned": tuned,
}
