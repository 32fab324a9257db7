"""Tests of :mod:`lib.timing`. How fast a machine is cannot be tested, only how it is measured."""

import time

import pytest
import torch

from lib.timing import Timing, matmul_throughput, memory_bandwidth, time_call


def test_timing_by_hand():
    timing = Timing((4.0, 1.0, 2.0, 3.0, 100.0), "cpu")
    assert timing.median == 3.0
    assert timing.best == 1.0


@pytest.mark.parametrize(("warmup", "repeats"), [(0, 1), (3, 4)])
def test_calls_are_counted(warmup, repeats):
    calls = []
    timing = time_call(lambda: calls.append(1), device="cpu", warmup=warmup, repeats=repeats)
    assert len(calls) == warmup + repeats
    assert len(timing.samples) == repeats
    assert timing.device == "cpu"


def test_each_call_is_timed_by_itself_and_warm_up_does_not_count(monkeypatch):
    clock = {"now": 0.0}
    lasts = iter([100.0, 100.0, 1.0, 2.0, 4.0])

    def fn():
        clock["now"] += next(lasts)

    monkeypatch.setattr("lib.timing.time.perf_counter", lambda: clock["now"])
    assert time_call(fn, device="cpu", warmup=2, repeats=3).samples == (1.0, 2.0, 4.0)


def test_seconds_are_seconds():
    timing = time_call(lambda: time.sleep(0.02), device="cpu", warmup=0, repeats=3)
    assert 0.02 <= timing.best < 0.2


def test_probes_count_bytes_and_operations(monkeypatch):
    calls = []

    def one_second(fn, *, device, repeats):
        fn()
        calls.append((device, repeats))
        return Timing((3.0, 0.5), "cpu")  # the fastest counts

    monkeypatch.setattr("lib.timing.time_call", one_second)
    assert memory_bandwidth("cpu", n_bytes=1000, repeats=7) == 2 * 1000 / 0.5  # read and written
    assert matmul_throughput("cpu", size=10, repeats=8) == 2 * 10**3 / 0.5
    assert calls == [("cpu", 7), ("cpu", 8)]


def test_probes_run():
    assert memory_bandwidth("cpu", n_bytes=2**20, repeats=2) > 0
    assert matmul_throughput("cpu", size=64, repeats=2, dtype=torch.float64) > 0


def test_bad_counts_are_refused():
    for warmup, repeats in ((-1, 3), (0, 0)):
        with pytest.raises(ValueError, match=f"got warmup={warmup}, repeats={repeats}"):
            time_call(lambda: None, device="cpu", warmup=warmup, repeats=repeats)
    with pytest.raises(ValueError, match="need n_bytes >= 1, got n_bytes=0"):
        memory_bandwidth("cpu", n_bytes=0)
    with pytest.raises(ValueError, match="need size >= 1, got size=0"):
        matmul_throughput("cpu", size=0)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu():
    x = torch.ones(4096, 4096, device="cuda")

    def fn():
        y = x
        for _ in range(20):
            y = y @ x

    timing = time_call(fn, device="cuda", repeats=5)
    start = time.perf_counter()
    fn()
    torch.cuda.synchronize()
    whole = time.perf_counter() - start
    assert 0.5 * whole < timing.median < 2 * whole  # the work itself, not only its start
    assert 1e10 < memory_bandwidth("cuda") < 1e14
    assert 1e11 < matmul_throughput("cuda", size=4096) < 1e16
