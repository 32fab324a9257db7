r"""Measure how long a call takes, and how fast this machine is (chapter 10).

Work on a GPU is started, not finished, when a Python call returns: a clock around the call
measures the starting. On CUDA the times are taken by the GPU itself (events in its queue);
elsewhere the clock is read after the device has been waited for.

All times are in seconds. The two ceilings, bytes and operations per second, are W and P of the
roofline (``prp-roofline``, chapter 10).

Source: Williams, Waterman and Patterson, *Roofline: An Insightful Visual Performance Model for
Multicore Architectures*, 2009, doi:10.1145/1498765.1498785.
"""

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

__all__ = ["Timing", "matmul_throughput", "memory_bandwidth", "one_thread", "time_call"]


@dataclass(frozen=True)
class Timing:
    """The times of repeated calls.

    Attributes:
        samples: seconds of each call, in order.
        device: where it ran.
    """

    samples: tuple[float, ...]
    device: str

    @property
    def median(self) -> float:
        """Median in seconds; half of the calls took longer."""
        return statistics.median(self.samples)

    @property
    def best(self) -> float:
        """Seconds of the shortest call, which is what the device can do if nothing disturbs it."""
        return min(self.samples)


def one_thread() -> None:
    """Let PyTorch compute on one CPU thread, unless ``OMP_NUM_THREADS`` is set.

    PyTorch starts a thread per core. On tensors as small as those of the chapters, the threads
    spend more time waiting for one another than computing, and measured times vary with whatever
    else the machine does. Every chapter calls this through :func:`lib.figures.use_style`.
    """
    if not os.environ.get("OMP_NUM_THREADS"):
        torch.set_num_threads(1)


def time_call(
    fn: Callable[[], object], *, device: torch.device | str, warmup: int = 3, repeats: int = 20
) -> Timing:
    """Call ``fn`` again and again and time each call.

    Args:
        fn: what to time; takes no argument.
        device: where its work is done.
        warmup: calls before the first that counts (they load kernels and fill caches).
        repeats: calls that count.

    Returns:
        A :class:`Timing` with ``repeats`` samples.

    Raises:
        ValueError: if ``warmup`` is negative or ``repeats`` below 1.
    """
    if warmup < 0 or repeats < 1:
        raise ValueError(
            f"need warmup >= 0 and repeats >= 1, got warmup={warmup}, repeats={repeats}"
        )
    device = torch.device(device)
    for _ in range(warmup):
        fn()
    _wait(device)
    if device.type == "cuda":
        with torch.cuda.device(device):
            pairs = [
                (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
                for _ in range(repeats)
            ]
            for start, end in pairs:
                start.record()
                fn()
                end.record()
            _wait(device)
        samples = [start.elapsed_time(end) / 1e3 for start, end in pairs]  # given in ms
    else:
        samples = []
        for _ in range(repeats):
            start = time.perf_counter()
            fn()
            _wait(device)
            samples.append(time.perf_counter() - start)
    return Timing(tuple(samples), str(device))


def memory_bandwidth(
    device: torch.device | str, *, n_bytes: int = 2**28, repeats: int = 10
) -> float:
    """Bytes per second that the device reads and writes when it copies: W, the roof's slope.

    Args:
        device: which device.
        n_bytes: size of what is copied, at least 1; more than the device's caches hold.
        repeats: copies; the fastest counts.

    Returns:
        Bytes read plus bytes written, per second.

    Raises:
        ValueError: if ``n_bytes`` or ``repeats`` is below 1.
    """
    if n_bytes < 1:
        raise ValueError(f"nothing to copy: need n_bytes >= 1, got n_bytes={n_bytes}")
    # Random numbers: a GPU draws less power over equal ones, and is then faster.
    draw, size = torch.Generator(device).manual_seed(0), (min(n_bytes, 2**20),)
    piece = torch.randint(256, size, dtype=torch.uint8, device=device, generator=draw)
    source = piece.repeat(-(-n_bytes // piece.numel()))[:n_bytes]
    target = torch.empty_like(source)
    seconds = time_call(lambda: target.copy_(source), device=device, repeats=repeats).best
    return 2 * n_bytes / seconds


def matmul_throughput(
    device: torch.device | str,
    *,
    size: int = 1024,
    dtype: torch.dtype = torch.float32,
    repeats: int = 10,
) -> float:
    """Floating-point operations per second in a large matrix product: P, the roof's height.

    Args:
        device: which device.
        size: rows and columns of the two matrices, at least 1.
        dtype: dtype of the numbers.
        repeats: products; the fastest counts.

    Returns:
        Multiplications plus additions, per second; a product has ``2 * size**3``.

    Raises:
        ValueError: if ``size`` or ``repeats`` is below 1.
    """
    if size < 1:
        raise ValueError(f"nothing to multiply: need size >= 1, got size={size}")
    draw = torch.Generator(device).manual_seed(0)
    a, b = torch.randn(2, size, size, dtype=dtype, device=device, generator=draw)
    out = torch.empty_like(a)
    seconds = time_call(lambda: torch.mm(a, b, out=out), device=device, repeats=repeats).best
    return 2 * size**3 / seconds


def _wait(device: torch.device) -> None:
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
