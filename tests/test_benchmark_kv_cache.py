"""The record of decoding: complete, honest about its device, and safe against what can go wrong.

A double takes the GPU's place: it "captures" a call by keeping it, compiles without generating
code, and has a memory of a chosen size. Nothing here looks at a time.
"""

import contextlib
import json
import sys
import time
from dataclasses import replace

import pytest
import torch

import lib.stack
from benchmarks import kv_cache, kv_cache_memory, kv_cache_run
from benchmarks.kv_cache import new_record, supervise, work
from benchmarks.kv_cache_device import Cpu, Cuda, versions
from benchmarks.kv_cache_plan import BUDGET, GPU, QUICK, SEED, Shape
from benchmarks.kv_cache_run import Run
from benchmarks.kv_cache_sections import SECTIONS
from lib import results
from lib.kv_cache import KVCache

SHAPES = (Shape("small", 1, 24, 2, 32, 48, llama=False), Shape("large", 2, 32, 4, 48, 64))
PLAN = replace(
    QUICK,
    shapes=SHAPES,
    lengths=(4, 8),
    kv_heads=(4, 1),
    whole=SHAPES[1],
    compile_lengths=(9,),
    roofline_dtypes=("float32", "bfloat16"),
    budget=dict.fromkeys(SECTIONS, 120.0),
)


class Double(Cpu):
    """A GPU on paper."""

    graphs = True
    compiler = "eager"
    clock = "CUDA events"

    def __init__(self):
        super().__init__()
        self.captured = 0
        self.bytes = 0

    def describe(self):
        return {
            **super().describe(),
            "device": "Made-up 9000",
            "device_type": "cuda",
            "capability": "99.0",
            "versions": {**versions(), "cuda": "99.0", "driver": "1.2.3"},
        }

    def capture(self, fn):
        self.captured += 1
        for _ in range(3):
            fn()
        output = fn()
        return lambda: output.copy_(fn())

    def allocated(self):
        self.bytes += 512
        return self.bytes

    def free(self):
        return 2**20

    def clear(self):
        pass


@pytest.fixture
def double(monkeypatch):
    monkeypatch.setattr(lib.stack, "check_ids", lambda *args: None)  # as on a GPU: not looked at
    monkeypatch.setattr("lib.transformer.check_ids", lambda *args: None, raising=False)
    return Double()


def run_of(device, plan=PLAN, only=SECTIONS):
    record = new_record(device, plan, "abcdef0")
    for name in set(SECTIONS) - set(only):
        record["sections"][name]["status"] = "done"
    return Run(device, plan, record)


# --- the whole of it


def test_a_gpus_record_is_complete(double, tmp_path):
    run = run_of(double)
    run.out = tmp_path / "record.json"
    assert work(run) == 0
    record = json.loads(run.out.read_text())
    assert results.decoding_problems(record) == []
    assert results.check_decoding(record) is record
    sections = record["sections"]
    assert [run["model"]["name"] for run in record["runs"]] == ["small", "large"]
    for found in record["runs"]:
        assert found["lengths"] == found["graph"]["lengths"] == [4, 8]
        assert set(found["fits"]) == {"eager", "graph"}
    assert set(sections["compiled"]["entries"][0]["seconds"]) == {
        "eager",
        "compile",
        "graph",
        "compile + graph",
    }
    (entry,) = sections["tuned"]["entries"]
    assert {"tuned", "tuned + graph"} < set(entry["seconds"])
    assert entry["model"]["name"] == "large"
    assert set(sections["steps"]["entries"][0]["seconds"]) == {"eager", "graph"}
    assert sections["steps"]["entries"][0]["operators"] > 20
    # two phases, two formats, two numbers of key heads, two batches
    assert len(sections["roofline"]["entries"]) == 16
    assert {e["batch_size"] for e in sections["roofline"]["entries"]} == {1, 3}
    # 2 layers, 4 key heads, keys and values of 8 numbers, 4 bytes
    assert sections["memory"]["longest"][0]["bytes_per_token"] == 2 * 4 * 16 * 4
    assert sections["memory"]["caches"][0]["allocated"] == 512
    assert len(sections["exercise"]["timers"]) == 4
    assert any("the cache pays from" in line for line in sections["exercise"]["printed"])
    assert sections["transformers"]["entries"][0]["same_tokens"]["static"] == 1.0
    assert double.captured > 20
    lines = results.decoding_summary(record)
    assert lines[0] == "Made-up 9000, float32"
    for part in (
        "prefill, bfloat16",
        "ceilings: ",
        "large, graph: exponent",
        "compile + graph",
        "the aim of 70%",
    ):
        assert any(part in line for line in lines)
    assert max(map(len, lines)) <= 80
    table = results.decoding_table(record)
    assert len(table) == 2 + 2
    assert "not measured" not in " ".join(table)


def whole_weights():
    shape = PLAN.whole
    layer = 4 * shape.d_model**2 + 3 * shape.d_model * shape.d_ff
    return 4 * (shape.n_layers * layer + 2 * shape.vocab_size * shape.d_model)


@pytest.mark.parametrize("fitting", [4_000, 24_000, 26_000])
def test_the_longest_context_is_found_by_halving(double, monkeypatch, fitting):
    monkeypatch.setattr(Double, "free", lambda self: whole_weights() + 25_000 * 512)

    class Limited(KVCache):
        def __init__(self, batch, heads, length, *args, **options):
            if length > fitting:
                raise torch.OutOfMemoryError("no")
            super().__init__(batch, heads, length, *args, **options)

    monkeypatch.setattr(kv_cache_memory, "KVCache", Limited)
    found = kv_cache_memory.longest(run_of(double), PLAN.whole)
    assert found["by_formula"] == 25_000
    expected = min(fitting, 25_000)
    assert expected - 50 <= found["by_allocation"] <= expected


def test_the_weights_of_a_whole_model_are_counted():
    model = PLAN.whole.make(torch.device("cpu"), torch.float32)
    matrices = sum(p.nbytes for p in model.parameters() if p.dim() == 2)
    assert matrices == whole_weights()


def test_a_step_reads_weights_and_cache():
    shape = SHAPES[1]
    model = shape.make(torch.device("cpu"), torch.bfloat16)
    n_layer = 4 * 32 * 32 + 3 * 32 * 48 + 2 * 32  # four squares, the feed-forward, two norms
    weights = 2 * (2 * n_layer + 32 + 64 * 32)  # the last norm, the output matrix
    assert kv_cache_run.step_bytes(shape, model, 7, 3) == weights + 3 * 7 * 2 * 32 * 2 * 2
    described = shape.described(model)
    assert described["n_weights"] == 2 * (n_layer - 2 * 32)
    one = 2 * described["n_weights"] + 4 * 2 * 32 * 7
    assert kv_cache_run.operations(described, 5, 7, 3) == 3 * (5 * one + 2 * 64 * 32)


# --- what goes wrong


def test_a_section_that_fails_leaves_its_error_and_the_rest_goes_on(double, monkeypatch):
    def broken(run):
        raise RuntimeError("the device\nsaid no")

    monkeypatch.setitem(SECTIONS, "steps", broken)
    run = run_of(double, only=("ceilings", "steps", "memory"))
    assert work(run) == 0
    sections = run.record["sections"]
    assert sections["steps"]["status"] == "failed"
    assert sections["steps"]["error"] == "RuntimeError: the device said no"
    assert sections["memory"]["status"] == "done"
    assert any(p.startswith("steps: failed") for p in results.decoding_problems(run.record))


def test_a_graph_that_cannot_be_captured_costs_the_graphs_alone(double, monkeypatch):
    def refuse(self, fn):
        raise RuntimeError("not permitted while capturing")

    monkeypatch.setattr(Double, "capture", refuse)
    run = run_of(double, only=("ceilings", "growth", "steps", "roofline"))
    assert work(run) == 0
    sections = run.record["sections"]
    assert sections["steps"]["status"] == sections["roofline"]["status"] == "done"
    assert [found["lengths"] for found in run.record["runs"]] == [[4, 8], [4, 8]]
    assert "graph" not in run.record["runs"][0]
    assert all("not permitted" in error for error in sections["growth"]["errors"])
    assert len(results.decoding_problems(run.record)) >= 4


def test_wrong_logits_are_never_timed(double, monkeypatch):
    update = KVCache.update

    def forgets_the_newest_key(self, k, v):
        return update(self, torch.zeros_like(k) if k.shape[2] == 1 else k, v)

    monkeypatch.setattr(KVCache, "update", forgets_the_newest_key)
    timed = []
    monkeypatch.setattr(Run, "samples", lambda *args, **options: timed.append(1))
    run = run_of(double)
    assert work(run) == 0
    sections = run.record["sections"]
    assert "wrong logits" in sections["correctness"]["error"]
    wrong = [c["what"] for c in sections["correctness"]["checks"] if c["off"] > c["most"]]
    for part in ("float32, cached", "bfloat16, cached"):
        assert any(part in what for what in wrong)
    for name in ("growth", "steps", "roofline", "exercise", "transformers", "compiled", "tuned"):
        assert sections[name]["error"] == "not timed: the logits were not right"
    assert not timed


def test_logits_that_are_no_numbers_are_wrong():
    nan = torch.tensor([float("nan"), 1.0])
    with pytest.raises(RuntimeError, match="the logits differ by inf"):
        kv_cache_run.agree("here", nan, torch.ones(2), torch.bfloat16)


def test_without_time_points_are_left_out_and_named(double):
    plan = replace(PLAN, budget=dict.fromkeys(SECTIONS, 1e-9))
    run = run_of(double, plan, only=("growth", "steps", "roofline"))
    assert work(run) == 0
    assert run.record["sections"]["growth"]["left_out"] == [
        f"{name}, {t} tokens" for name in ("small", "large") for t in (4, 8)
    ]
    run = run_of(double, only=("growth",))
    run.record["end_by"] = time.time() - 1
    assert work(run) == 0
    assert run.record["sections"]["growth"]["error"] == "no time was left"


def test_a_device_that_no_longer_answers_ends_the_process(double, monkeypatch):
    def poison(run):
        monkeypatch.setattr(Double, "wait", broken)
        run.device.wait()

    def broken(self):
        raise RuntimeError("an illegal memory access was encountered")

    monkeypatch.setitem(SECTIONS, "growth", poison)
    run = run_of(double, only=("growth", "memory"))
    assert work(run) == kv_cache.POISONED
    assert run.record["sections"]["growth"]["status"] == "failed"
    assert run.record["sections"]["memory"]["status"] == "waiting"


# A worker without torch: it takes sections in order, and does with `b` what the test says.
WORKER = """
import json, os, sys, time
path = sys.argv[1]
while True:
    record = json.load(open(path))
    waiting = [n for n, s in record["sections"].items() if s["status"] == "waiting"]
    if not waiting:
        break
    section = record["sections"][waiting[0]]
    section |= {"status": "running", "since": time.time(), "budget": 0.2}
    json.dump(record, open(path + ".new", "w")); os.replace(path + ".new", path)
    if waiting[0] == "b":
        BREAK
    section["status"] = "done"
    json.dump(record, open(path + ".new", "w")); os.replace(path + ".new", path)
"""


@pytest.mark.parametrize(
    ("breaks", "status", "error"),
    [
        ("os._exit(9)", "failed", "its process ended with status 9"),
        ("time.sleep(60)", "failed", "it ran past its time and was ended"),
        ("section['error'] = 'x'; section['status'] = 'failed'; "
         "json.dump(record, open(path, 'w')); os._exit(3)", "failed", "x"),
    ],
)  # fmt: skip
def test_another_process_takes_over(tmp_path, breaks, status, error):
    out = tmp_path / "record.json"
    out.write_text(json.dumps({"sections": {name: {"status": "waiting"} for name in "abc"}}))
    supervise(out, [sys.executable, "-c", WORKER.replace("BREAK", breaks), str(out)], grace=0.3)
    sections = json.loads(out.read_text())["sections"]
    assert [sections[name]["status"] for name in "abc"] == ["done", status, "done"]
    assert sections["b"]["error"] == error


def test_a_worker_that_cannot_begin_is_not_started_for_ever(tmp_path):
    out = tmp_path / "record.json"
    out.write_text(json.dumps({"sections": {name: {"status": "waiting"} for name in "ab"}}))
    supervise(out, [sys.executable, "-c", "raise SystemExit(1)"])
    for section in json.loads(out.read_text())["sections"].values():
        assert section["error"] == "its process ended with status 1"


# --- a CPU's record is no GPU's


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"device_type": "cuda"}, "versions of a record of a GPU lacks cuda"),
        ({"device_type": "mps"}, "device_type must be one of cuda, cpu, got 'mps'"),
        ({"clock": "CUDA events"}, "device_type is 'cpu', but the clock was 'CUDA events'"),
        ({"capability": "9.0"}, "device_type is 'cpu', but the record has a GPU's capability"),
        ({"versions": {"python": "3", "torch": "2", "cuda": "13"}}, "has a GPU's cuda"),
        ({"versions": {"python": "3", "torch": "2", "driver": "5"}}, "has a GPU's driver"),
    ],
)
def test_a_cpus_record_that_poses_as_a_gpus_is_refused(change, message):
    record = spoken_for(Cpu())
    results.check_decoding(record)
    with pytest.raises(ValueError, match=message):
        results.check_decoding({**record, **change})


@pytest.mark.parametrize("name", ["clock", "capability", "memory_bytes", "driver", "cuda"])
def test_a_gpus_record_names_its_device_in_full(name):
    record = spoken_for(Double())
    results.check_decoding(record)
    (record["versions"] if name in record["versions"] else record).pop(name)
    with pytest.raises(ValueError, match=f"lacks {name}"):
        results.check_decoding(record)


def spoken_for(device):
    """A record with invented times of one run."""
    model = dict.fromkeys(results.MODEL, 2)
    run = {"model": model, "batch_size": 1, "lengths": [1, 2]}
    run |= {"uncached": [[1.0, 1.0]] * 2, "cached": [[1.0, 1.0]] * 2}
    record = new_record(device, PLAN, "abcdef0")
    return {**record, "bandwidth": 1.0, "throughput": 1.0, "runs": [run]}


def test_sections_are_the_same_here_and_in_the_schema():
    assert tuple(SECTIONS) == results.SECTIONS == tuple(BUDGET)
    assert sum(BUDGET.values()) <= 440  # with the start of two processes: eight minutes


def test_the_record_says_where_when_and_with_what():
    record = new_record(Cpu(), PLAN, "abcdef0")
    assert {"python", "torch", "numpy"} <= set(record["versions"])
    assert record["commit"] == "abcdef0"
    assert len(record["code"]) == 16
    assert record["seed"] == SEED
    assert record["plan"]["rounds"] == PLAN.rounds


# --- the plan for a GPU


def test_the_gpus_plan_covers_what_the_chapter_asks_for():
    plan = GPU
    assert plan.lengths[0] == 16
    assert plan.lengths[-1] == 8192
    assert plan.longer[-1] > 8192
    assert [shape.name for shape in plan.shapes] == ["tiny", "small", "large"]
    assert {plan.batches[0], plan.batches[-1]} == {1, 64}
    assert set(plan.roofline_dtypes) == {"bfloat16", "float32"}
    heads = plan.roofline.n_heads
    assert plan.kv_heads[0] == heads  # MHA, then GQA, then MQA
    assert heads > plan.kv_heads[1] > plan.kv_heads[2] == 1
    assert plan.whole.d_model == plan.shapes[-1].d_model == 4096
    assert plan.step_lengths[-1] <= plan.lengths[-1]


def test_where_there_is_no_gpu_nothing_is_written(monkeypatch, tmp_path):
    def none():
        raise RuntimeError("Found no driver")

    monkeypatch.setitem(kv_cache.DEVICES, "cuda", none)
    out = tmp_path / "record.json"
    with pytest.raises(SystemExit, match="there is no cuda here: RuntimeError: Found no driver"):
        kv_cache.main(["--device", "cuda", "--out", str(out)])
    assert not out.exists()


def test_a_section_that_nobody_knows_is_refused():
    with pytest.raises(SystemExit, match=r"no section \['speed'\]"):
        kv_cache.main(["--only", "speed"])


# --- the GPU's own calls


class Events:
    """In the place of `torch.cuda`: notes what is asked of it, in order."""

    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        def note(*args, **kwargs):
            self.asked.append(name)
            return contextlib.nullcontext() if name in ("stream", "graph") else self

        return note


def test_a_capture_warms_up_on_its_own_stream_and_replays(monkeypatch):
    events, calls = Events(), []
    for name in ("Stream", "stream", "current_stream", "CUDAGraph", "graph", "synchronize"):
        monkeypatch.setattr(torch.cuda, name, getattr(events, name))
    device = Cuda.__new__(Cuda)
    output = torch.ones(2)

    def step():
        calls.append(len(events.asked))
        return output

    replay = device.capture(step)
    assert len(calls) == 3 + 1
    order = events.asked
    assert order[calls[0] - 1] == "stream"  # the warm-up is on the stream
    assert order[calls[3] - 1] == "graph"  # and the last call inside the capture
    assert "synchronize" in order[calls[2] : calls[3]]
    assert replay() is output
    assert events.asked[-1] == "replay"
    assert len(calls) == 4


def test_a_gpu_is_described(monkeypatch):
    class Properties:
        total_memory, major, minor = 5 * 2**30, 99, 1

    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: Properties)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Made-up 9000")
    monkeypatch.setattr(torch.version, "cuda", "99.0")
    monkeypatch.setattr("benchmarks.kv_cache_device.driver", lambda: "1.2.3")
    device = Cuda.__new__(Cuda)
    device.device = torch.device("cuda")
    found = device.describe()
    assert found["capability"] == "99.1"
    assert found["memory_bytes"] == 5 * 2**30
    assert found["versions"]["driver"] == "1.2.3"
    assert set(results.IDENTITY["cuda"]) <= set(found)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_all_sections_on_a_gpu():
    """Everything but the two that compile, at very small sizes."""
    run = run_of(Cuda(), PLAN, only=set(SECTIONS) - {"compiled", "tuned"})
    assert work(run) == 0
    assert results.decoding_problems(run.record) == []
    for found in run.record["runs"]:
        assert found["graph"]["lengths"] == found["lengths"]


# --- what README.md says


def test_the_readme_quotes_the_records_there_are():
    text = kv_cache.README.read_text(encoding="utf-8")
    assert kv_cache.quoted(text) == text
    assert any(results.load(n)["device_type"] == "cuda" for n in results.names("kv_cache*")) == (
        kv_cache.MISSING not in text
    )


def test_a_cpus_record_is_not_quoted_and_a_gpus_is(monkeypatch, tmp_path):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    page = f"before {' '.join(kv_cache.MARKS)} after"
    (tmp_path / "kv_cache_here.json").write_text(json.dumps(spoken_for(Cpu())))
    assert kv_cache.MISSING in kv_cache.quoted(page)
    (tmp_path / "kv_cache_there.json").write_text(json.dumps(spoken_for(Double())))
    text = kv_cache.quoted(page)
    assert kv_cache.MISSING not in text
    assert "Decoding on one Made-up 9000, float32" in text
    assert "driver 1.2.3; " in text
    assert "| model | 2 | 1000.00 | 1000.00 | nowhere measured | not measured |" in text
    assert text.startswith("before ")
    assert text.endswith(" after")


def test_half_precision_beside_transformers(double):
    run = run_of(double, replace(PLAN, dtype="bfloat16"), only=("ceilings", "transformers"))
    assert work(run) == 0
    (entry,) = run.record["sections"]["transformers"]["entries"]
    assert entry["dtype"] == "bfloat16"
    assert entry["off"] < 0.03
