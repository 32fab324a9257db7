"""What :mod:`benchmarks.kv_cache` measures on: a GPU, or a CPU through the same calls."""

import contextlib
import gc
import os
import platform
import subprocess
import time
from collections.abc import Callable

import numpy as np
import torch

from benchmarks.machine import processor
from lib.timing import time_call


class Cpu:
    """This machine's processor, with the methods that a GPU needs."""

    kind = "cpu"
    clock = "perf_counter"
    graphs = False  # whether a call can be captured and replayed
    compiler: str | None = None  # the back end of torch.compile; None: it is left out
    tuning: dict | None = None  # the compiler's options in the section `tuned`

    def __init__(self) -> None:
        self.device = torch.device(self.kind)

    def describe(self) -> dict:
        """The device's part of a record."""
        threads = torch.get_num_threads()
        return {
            "device": f"{processor()}, {threads} thread" + "s" * (threads > 1),
            "device_type": self.kind,
            "clock": self.clock,
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "versions": versions(),
        }

    def wait(self) -> None:
        """Wait until the device has done everything."""

    def seconds(self, fn: Callable[[], object], calls: int = 1) -> float:
        """One sample: from an idle device until ``calls`` calls are done, per call."""

        def many():
            for _ in range(calls):
                fn()

        return time_call(many, device=self.device, warmup=0, repeats=1).samples[0] / calls

    def host_seconds(self, fn: Callable[[], object]) -> float:
        """How long Python takes to start a call on an idle device, whatever the device does."""
        self.wait()
        start = time.perf_counter()
        fn()
        taken = time.perf_counter() - start
        self.wait()
        return taken

    def capture(self, fn: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
        """A call that replays all of ``fn``'s work and returns the same tensor each time."""
        raise RuntimeError("no graphs on a CPU")

    def allocated(self) -> int | None:
        """Bytes in tensors now; None where they are not counted."""
        return None

    def free(self) -> int | None:
        """Bytes that could be allocated now."""
        return None

    def clear(self) -> None:
        """Free memory that is not in use."""


class Cuda(Cpu):
    """The GPU that torch uses by default."""

    kind = "cuda"
    clock = "CUDA events"
    graphs = True
    compiler = "inductor"

    def __init__(self) -> None:
        super().__init__()
        self.tuning = {"coordinate_descent_tuning": True}
        torch.zeros(1, device=self.device)  # raises where there is none

    def describe(self) -> dict:
        properties = torch.cuda.get_device_properties(self.device)
        return {
            "device": torch.cuda.get_device_name(),
            "device_type": self.kind,
            "clock": self.clock,
            "memory_bytes": properties.total_memory,
            "capability": f"{properties.major}.{properties.minor}",
            "versions": {**versions(), "cuda": torch.version.cuda, "driver": driver()},
        }

    def wait(self) -> None:
        torch.cuda.synchronize()

    def capture(self, fn: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # libraries make their handles before the capture
            for _ in range(3):
                fn()
        torch.cuda.current_stream().wait_stream(stream)
        self.wait()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            output = fn()

        def replay() -> torch.Tensor:
            graph.replay()
            return output

        return replay

    def allocated(self) -> int | None:
        return torch.cuda.memory_allocated()

    def free(self) -> int | None:
        return torch.cuda.mem_get_info()[0]

    def clear(self) -> None:
        gc.collect()
        torch.cuda.empty_cache()


def versions() -> dict[str, str]:
    """Versions of what every machine has."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


def driver() -> str:
    """The GPU driver's version, from its own tool; else the CUDA version that it supports."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        output = subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=20,
        ).stdout.split()
        if output:
            return output[0]
    return f"for CUDA {torch._C._cuda_getDriverVersion()}"
