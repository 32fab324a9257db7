"""What ran, how times are compared, and tables to print: shared by the benchmarks."""

import datetime
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent


def processor() -> str:
    """The name of the CPU, as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(
            line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def commit() -> str:
    """The commit that is checked out, short; "unknown" outside a repository."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
        )
    except OSError:  # no git here
        return "unknown"
    return done.stdout.strip() or "unknown"


def describe() -> str:
    """One line: processor, load, threads, versions, date and commit."""
    return (
        f"{processor()}, {os.cpu_count()} cores (load {os.getloadavg()[0]:.1f}), "
        f"{torch.get_num_threads()} threads, Python {platform.python_version()}, "
        f"torch {torch.__version__}, {datetime.date.today().isoformat()}, "
        f"commit {commit()}"
    )


def in_turn(ways: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Time each way once per round, one after another, so that all run under the same load.

    Args:
        ways: name and call.
        rounds: number of rounds.

    Returns:
        Seconds of each round, by name.
    """
    seconds = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def ratio(above: list[float], below: list[float], *, percent: bool = False) -> str:
    """The ratio of two ways, round by round: the median and, in brackets, the quartiles.

    Args:
        above: a number per round.
        below: likewise.
        percent: write percentages instead of factors.
    """
    low, middle, high = quartiles(above, below)
    if percent:
        return f"{middle:.0%} ({low:.0%} to {high:.0%})"
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def quartiles(above: list[float], below: list[float]) -> list[float]:
    """The quartiles of the ratio of two ways, round by round; the second is the median.

    Args:
        above: a number per round, two rounds or more.
        below: likewise.
    """
    ratios = [a / b for a, b in zip(above, below, strict=True)]
    return statistics.quantiles(ratios, n=4, method="inclusive")


class Table:
    """A markdown table, printed row by row as the numbers are measured.

    Args:
        header: the columns' names; a cell is padded to the width of its name.
    """

    def __init__(self, *header: str) -> None:
        self.widths = [max(len(name), 12) for name in header]
        self.row(*header)
        self.row(*("-" * width for width in self.widths))

    def row(self, *cells: str) -> None:
        """Print one row."""
        padded = (cell.ljust(width) for cell, width in zip(cells, self.widths, strict=True))
        print("| " + " | ".join(padded) + " |", flush=True)
