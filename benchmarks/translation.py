"""The training of chapter 09 with several seeds: the record ``translation`` (``make results``).

The chapter's own cells train and measure; they run here once for each arm. :mod:`benchmarks.record`
decides which arms are run.
"""

import contextlib
import functools
import io
from typing import Any

import matplotlib as mpl
import nbformat
import torch

from benchmarks.machine import ROOT

CHAPTER = ROOT / "book" / "09-transformer.ipynb"
# The cells that define the data, the model, the training and the measurements, in order.
CELLS = (
    "setup",
    "pairs",
    "split-check",
    "machine",
    "train-tools",
    "accuracy",
    "map-tools",
    "effect",
    "agree",
)
NOT_TRAINING = ("from lib import results", "from lib.figures", "from lib.interactive")
ARMS = ("translator", "one vector", "balanced", "leak")
SEEDS = (0, 1, 2, 3, 4)
WINDOW = 10  # steps, over which the training loss is averaged


def cells() -> dict[str, str]:
    """The source of the cells, by id, without lines of comment and empty lines."""
    notebook = nbformat.read(CHAPTER, as_version=4)
    sources = {cell.id: cell.source for cell in notebook.cells}
    return {
        name: "\n".join(
            line
            for line in sources[name].splitlines()
            if line.strip() and not line.strip().startswith("#")
        )
        for name in CELLS
    }


def source() -> str:
    """The code that the record depends on, without imports for drawing and reading records."""
    lines = "\n".join(cells().values()).splitlines()
    return "\n".join(line for line in lines if not line.startswith(NOT_TRAINING))


@functools.cache
def page() -> dict[str, Any]:
    """What the cells define."""
    namespace = {"__name__": "chapter"}
    mpl.use("Agg")
    with mpl.rc_context(), contextlib.redirect_stdout(io.StringIO()):
        for name, code in cells().items():
            exec(compile(code, f"{CHAPTER.stem}:{name}", "exec"), namespace)
    return namespace


def arms() -> list[dict[str, Any]]:
    """The grid: one dictionary of settings for each arm."""
    return [{"name": name, "seed": seed} for name in ARMS for seed in SEEDS]


def run(arm: dict[str, Any], n_steps: int | None = None) -> dict[str, Any]:
    """Train one arm.

    Args:
        arm: one of :func:`arms`.
        n_steps: stop after so many steps of the schedule; all of them when not given.

    Returns:
        ``losses``: the training loss, in nats per token, averaged over `WINDOW` steps after
        `WINDOW` steps; what the chapter's ``measure`` returns; and, for a translator, what its
        ``agreement`` returns.
    """
    dtype = torch.get_default_dtype()
    try:
        functions = page()
        torch.set_default_dtype(torch.float64)  # as the set-up cell does
        model, losses = functions["fit"](arm["name"], arm["seed"], n_steps)
        windows = torch.tensor(losses).unfold(0, WINDOW, WINDOW).mean(dim=1)
        result = {"losses": windows.tolist(), **functions["measure"](model)}
        if arm["name"] == "translator":
            result["agreement"] = functions["agreement"](model)
        return result
    finally:
        torch.set_default_dtype(dtype)
