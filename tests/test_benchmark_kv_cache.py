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
from benchmarks import kv_cache, kv_cache_sections
from benchmarks.kv_cache import GRACE, SECONDS, SECTIONS, add, fill, in_own_process, measure
from benchmarks.kv_cache_device import Cpu, Cuda, versions
from benchmarks.kv_cache_plan import GPU, QUICK, SEED, Shape
from benchmarks.kv_cache_sections import Run
from lib import results
from lib.kv_cache import KVCache

SHAPES = (Shape("small", 1, 24, 2, 32, 48, llama=False), Shape("large", 2, 32, 4, 48, 64))
PLAN = replace(
    QUICK,
    shapes=SHAPES,
    lengths=(4, 8),
    kv_heads=(4, 1),
    roofline_dtypes=("float32", "bfloat16"),
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


def new_record(device, plan=PLAN):
    return kv_cache.new_record(device, plan, "abcdef0")


def record_of(device, *only, plan=PLAN):
    """A record of these sections, all measured in this process."""
    record = new_record(device, plan)
    for name in only:
        add(record, name, measure(name, Run(device, plan)))
    return record


# --- the whole of it


def test_a_gpus_record_is_complete(double, monkeypatch, tmp_path):
    monkeypatch.setitem(kv_cache.DEVICES, "cuda", lambda: double)
    monkeypatch.setitem(kv_cache.PLANS, "cuda", PLAN)
    monkeypatch.setattr(
        kv_cache, "in_own_process", lambda command, name, seconds: measure(name, Run(double, PLAN))
    )
    out = tmp_path / "record.json"
    assert kv_cache.main(["--device", "cuda", "--commit", "abcdef0", "--out", str(out)]) == 0
    record = json.loads(out.read_text())
    assert (record["commit"], record["seed"], len(record["code"])) == ("abcdef0", SEED, 16)
    assert record["plan"]["rounds"] == PLAN.rounds
    assert kv_cache.problems_of(record) == []
    assert results.check_decoding(record) is record
    sections = record["sections"]
    assert [run["model"]["name"] for run in record["runs"]] == ["small", "large"]
    for run in record["runs"]:
        assert run["lengths"] == run["graph"]["lengths"] == [4, 8]
        assert set(run["fits"]) == {"eager", "graph"}
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
    # two phases, two formats, two numbers of KV heads, two batches
    assert len(sections["roofline"]["entries"]) == 16
    assert {e["batch_size"] for e in sections["roofline"]["entries"]} == {1, 3}
    # 32 layers, 4 KV heads, keys and values of 8 numbers, 4 bytes
    assert sections["memory"]["longest"][0]["bytes_per_token"] == 32 * 4 * 16 * 4
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
    table = kv_cache.table_of(record)
    assert len(table) == 2 + 2
    assert "not measured" not in " ".join(table)


def whole_weights():
    shape = SHAPES[1]
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

    monkeypatch.setattr(kv_cache_sections, "KVCache", Limited)
    answer = kv_cache_sections.longest(Run(double, PLAN), SHAPES[1])
    assert answer["by_formula"] == 25_000
    expected = min(fitting, 25_000)
    assert expected - 50 <= answer["by_allocation"] <= expected


def test_the_weights_of_a_whole_model_are_counted():
    model = SHAPES[1].make(torch.device("cpu"), torch.float32)
    matrices = sum(p.nbytes for p in model.parameters() if p.dim() == 2)
    assert matrices == whole_weights()


def test_a_step_reads_weights_and_cache():
    shape = SHAPES[1]
    model = shape.make(torch.device("cpu"), torch.bfloat16)
    n_layer = 4 * 32 * 32 + 3 * 32 * 48 + 2 * 32  # four squares, the feed-forward, two norms
    weights = 2 * (2 * n_layer + 32 + 64 * 32)  # the last norm, the output matrix
    assert kv_cache_sections.step_bytes(shape, model, 7, 3) == weights + 3 * 7 * 2 * 32 * 2 * 2
    described = shape.described(model)
    assert described["n_weights"] == 2 * (n_layer - 2 * 32)
    one = 2 * described["n_weights"] + 4 * 2 * 32 * 7
    assert kv_cache_sections.operations(described, 5, 7, 3) == 3 * (5 * one + 2 * 64 * 32)


def test_shares_are_of_this_runs_ceilings():
    record = new_record(Cpu())
    ceilings = {"status": "done", "bandwidth": 100.0, "throughput": {"float32": 50.0}}
    add(record, "ceilings", ceilings)
    assert (record["bandwidth"], record["throughput"]) == (100.0, 50.0)
    step = {"dtype": "float32", "bytes": 200, "seconds": {"eager": [9.0, 4.0, 3.0]}}
    add(record, "steps", {"status": "done", "entries": [step]})
    assert step["share_of_bandwidth"] == {"eager": 0.5}  # 2 s at 100 B/s, 4 s measured
    entry = {**step, "operations": 150}
    add(record, "roofline", {"status": "done", "entries": [entry]})
    assert entry["operations_per_second"] == 37.5
    assert entry["bytes_per_second"] == 50.0
    assert entry["share_of_peak"] == entry["share_of_roof"] == 0.75  # 3 s at 50 operations/s
    assert entry["share_of_bandwidth"] == 0.5
    add(record, "ceilings", {"status": "failed"})
    add(record, "compiled", {"status": "done", "entries": [step]})
    assert step["share_of_bandwidth"] == {}


# --- what goes wrong


def test_a_section_that_raises_leaves_its_error_and_the_rest_goes_on(double, monkeypatch):
    def broken(run):
        raise RuntimeError("the device\nis lost")

    monkeypatch.setitem(SECTIONS, "steps", (broken, 9.0))
    record = record_of(double, "ceilings", "steps", "memory")
    problems = kv_cache.problems_of(record)
    assert "steps: failed, RuntimeError: the device is lost" in problems
    assert record["sections"]["memory"]["status"] == "done"


def test_a_graph_that_cannot_be_captured_costs_the_graphs_alone(double, monkeypatch):
    def refuse(self, fn):
        raise RuntimeError("not permitted while capturing")

    monkeypatch.setattr(Double, "capture", refuse)
    record = record_of(double, "ceilings", "growth", "steps", "roofline")
    sections = record["sections"]
    assert sections["steps"]["status"] == sections["roofline"]["status"] == "done"
    assert [run["lengths"] for run in record["runs"]] == [[4, 8], [4, 8]]
    assert "graph" not in record["runs"][0]
    assert all("not permitted" in error for error in sections["growth"]["errors"])
    assert len(kv_cache.problems_of(record)) >= 4


def test_wrong_logits_are_never_timed(double, monkeypatch, tmp_path):
    update = KVCache.update

    def forgets_the_newest_key(self, k, v):
        return update(self, torch.zeros_like(k) if k.shape[2] == 1 else k, v)

    monkeypatch.setattr(KVCache, "update", forgets_the_newest_key)
    timed = []
    monkeypatch.setattr(Run, "samples", lambda *args, **options: timed.append(1))
    record, end = new_record(double), time.monotonic() + 600
    fill(record, tmp_path / "r.json", end, lambda name, seconds: measure(name, Run(double, PLAN)))
    sections = record["sections"]
    assert "wrong logits" in sections["correctness"]["error"]
    wrong = [c["what"] for c in sections["correctness"]["checks"] if c["difference"] > c["allowed"]]
    for part in ("float32, cached", "bfloat16, cached"):
        assert any(part in what for what in wrong)
    for name in ("growth", "steps", "roofline", "exercise", "transformers", "compiled", "tuned"):
        assert sections[name]["error"] == "not timed: the section correctness failed"
    assert not timed


def test_logits_that_are_not_numbers_are_wrong():
    nan = torch.tensor([float("nan"), 1.0])
    with pytest.raises(RuntimeError, match="the logits differ by inf"):
        kv_cache_sections.agree("here", nan, torch.ones(2), torch.bfloat16)


def test_without_time_points_are_left_out_and_named(double):
    points = [f"{name}, {t} tokens" for name in ("small", "large") for t in (4, 8)]
    assert measure("growth", Run(double, PLAN, seconds=0.0))["left_out"] == points
    for name in ("steps", "roofline", "transformers", "compiled", "tuned"):
        result = measure(name, Run(double, PLAN, seconds=0.0))
        assert result["status"] == "failed"
        assert result["left_out"]


def test_a_device_that_no_longer_answers_ends_its_section(double, monkeypatch):
    def broken(*args, **options):
        raise RuntimeError("an illegal memory access was encountered")

    monkeypatch.setattr(Double, "wait", broken)
    monkeypatch.setattr(Double, "seconds", broken)
    result = measure("growth", Run(double, PLAN))
    assert result["status"] == "failed"
    assert "illegal memory access" in result["error"]
    assert result["errors"] == result["runs"] == []  # no second length was tried


def test_the_record_is_saved_after_each_section_until_no_time_is_left(tmp_path):
    out, saved = tmp_path / "record.json", []

    def section(name, seconds):
        saved.append(json.loads(out.read_text())["sections"])
        assert 0 < seconds <= SECTIONS[name][1]
        return {"status": "done", "took": 1.0}

    record = new_record(Cpu())
    fill(record, out, time.monotonic() + 600, section)
    for index, sections in enumerate(saved):
        done = [name for name in SECTIONS if sections[name]["status"] == "done"]
        assert done == list(SECTIONS)[:index]
    fill(record, out, time.monotonic() - 1, section)
    assert len(saved) == len(SECTIONS)
    assert json.loads(out.read_text())["sections"]["tuned"]["error"] == "no time was left"


@pytest.mark.parametrize(
    ("name", "part"), [("growth", "runs"), ("steps", "entries"), ("roofline", "entries")]
)
def test_a_section_saves_what_it_has_as_it_goes(double, tmp_path, monkeypatch, name, part):
    run, save, sizes = Run(double, PLAN, out=tmp_path / "section.json"), Run.save, []

    def noted(self):
        save(self)
        sizes.append(len(json.loads(self.out.read_text())[part]))

    monkeypatch.setattr(Run, "save", noted)
    measure(name, run)
    assert 0 < sizes[0] < sizes[-1]


# A section's process without torch. It writes half of its result, then does what a test says.
CHILD = """
import json, os, sys, time
out = sys.argv[-1]
assert sys.argv[1:] == ["--section", "growth", "--seconds", "0.5", "--out", out]
def write(**result):
    with open(out, "w") as file:
        json.dump(result, file)
write(entries=[1])
"""


@pytest.mark.parametrize(
    ("then", "status", "error"),
    [
        ("write(entries=[1], status='done'); os._exit(9)", "done", None),
        ("write(entries=[1], status='failed', error='x'); sys.exit(1)", "failed", "x"),
        ("os._exit(9)", "failed", "its process ended with status 9"),
        ("os.kill(os.getpid(), 11)", "failed", "its process ended with status -11"),
        ("time.sleep(60)", "failed", "it ran past its time and was killed"),
    ],
)
def test_a_process_that_hangs_or_dies_keeps_what_it_measured(then, status, error):
    result = in_own_process([sys.executable, "-c", CHILD + then], "growth", 0.5, grace=4.0)
    assert result["entries"] == [1]
    assert result["status"] == status
    assert result.get("error") == error


def test_a_process_that_cannot_start_has_failed():
    result = in_own_process([sys.executable, "-c", "raise SystemExit(1)"], "growth", 9.0)
    assert result == {"status": "failed", "error": "its process ended with status 1"}


def test_a_section_runs_as_a_command():
    command = [sys.executable, "-m", "benchmarks.kv_cache", "--device", "cpu", "--quick"]
    result = in_own_process(command, "ceilings", 60.0)
    assert result["status"] == "done"
    assert result["bandwidth"] > 0


# --- a CPU's record is no GPU's


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"device_type": "cuda"}, "versions.cuda is missing in a record of device_type 'cuda'"),
        ({"device_type": "mps"}, "device_type must be 'cuda' or 'cpu', got 'mps'"),
        ({"clock": "CUDA events"}, "device_type is 'cpu', but the clock was 'CUDA events'"),
        ({"capability": "9.0"}, "device_type is 'cpu', but the record has a GPU's capability"),
        ({"versions": {"python": "3", "torch": "2", "cuda": "13"}}, "has a GPU's versions.cuda"),
        ({"versions": {"python": "3", "torch": "2", "driver": "5"}}, "has a GPU's versions.driver"),
    ],
)
def test_a_cpus_record_that_poses_as_a_gpus_is_refused(change, message):
    record = minimal_record(Cpu())
    results.check_decoding(record)
    with pytest.raises(ValueError, match=message):
        results.check_decoding({**record, **change})


@pytest.mark.parametrize("name", ["clock", "capability", "memory_bytes", "driver", "cuda"])
def test_a_gpus_record_names_its_device_in_full(name):
    record = minimal_record(Double())
    results.check_decoding(record)
    (record["versions"] if name in record["versions"] else record).pop(name)
    with pytest.raises(ValueError, match=f"{name} is missing"):
        results.check_decoding(record)


def minimal_record(device):
    """A record with invented times of one run."""
    model = dict.fromkeys(results.DecodingModel.__required_keys__, 2)
    run = {"model": model, "batch_size": 1, "lengths": [1, 2]}
    run |= {"uncached": [[1.0, 1.0]] * 2, "cached": [[1.0, 1.0]] * 2}
    return {**new_record(device), "bandwidth": 1.0, "throughput": 1.0, "runs": [run]}


def test_eight_minutes_are_enough():
    assert sum(seconds for _, seconds in SECTIONS.values()) <= SECONDS + 5
    assert SECONDS + GRACE <= 8 * 60 - 15  # the command itself starts, too


# --- the plan for a GPU


def test_the_gpus_plan_covers_what_the_chapter_asks_for():
    plan = GPU
    assert plan.lengths[0] == 16
    assert plan.lengths[-1] == 8192
    assert plan.longer[-1] > 8192
    assert [shape.name for shape in plan.shapes] == ["tiny", "small", "large"]
    assert {plan.batches[0], plan.batches[-1]} == {1, 64}
    assert set(plan.roofline_dtypes) == {"bfloat16", "float32"}
    heads = plan.shapes[-1].n_heads
    assert plan.kv_heads[0] == heads  # MHA, then GQA, then MQA
    assert heads > plan.kv_heads[1] > plan.kv_heads[2] == 1
    assert plan.shapes[-1].d_model == 4096
    assert plan.step_lengths[-1] <= plan.lengths[-1]


def test_where_there_is_no_gpu_nothing_is_written(monkeypatch, tmp_path):
    def none():
        raise RuntimeError("Found no driver")

    monkeypatch.setitem(kv_cache.DEVICES, "cuda", none)
    out = tmp_path / "record.json"
    with pytest.raises(SystemExit, match="there is no cuda here: RuntimeError: Found no driver"):
        kv_cache.main(["--device", "cuda", "--out", str(out)])
    assert not out.exists()


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
    described = device.describe()
    assert described["capability"] == "99.1"
    assert described["memory_bytes"] == 5 * 2**30
    assert described["versions"]["driver"] == "1.2.3"
    assert {*results.IDENTITY["cuda"]} - {"versions.driver"} <= set(described)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_all_sections_on_a_gpu():
    """Everything but the two that compile, at very small sizes, in one process."""
    record = record_of(Cuda(), *[name for name in SECTIONS if name not in ("compiled", "tuned")])
    problems = kv_cache.problems_of(record)
    assert [p for p in problems if not p.startswith(("compiled: waiting", "tuned: waiting"))] == []
    for run in record["runs"]:
        assert run["graph"]["lengths"] == run["lengths"]


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
    (tmp_path / "kv_cache_here.json").write_text(json.dumps(minimal_record(Cpu())))
    assert kv_cache.MISSING in kv_cache.quoted(page)
    (tmp_path / "kv_cache_there.json").write_text(json.dumps(minimal_record(Double())))
    text = kv_cache.quoted(page)
    assert kv_cache.MISSING not in text
    assert "Decoding on one Made-up 9000, float32" in text
    assert "driver 1.2.3; " in text
    assert "| model | 2 | 1000.00 | 1000.00 | nowhere measured | not measured |" in text
    assert text.startswith("before ")
    assert text.endswith(" after")


def test_half_precision_beside_transformers(double):
    record = record_of(double, "transformers", plan=replace(PLAN, dtype="bfloat16"))
    (entry,) = record["sections"]["transformers"]["entries"]
    assert entry["dtype"] == "bfloat16"
    assert entry["difference"] < 0.03
