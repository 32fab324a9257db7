"""Recorded runs: what took too long for a page, or needs a machine that the reader may not have.

A record is one JSON file in ``benchmarks/results/``, written by ``make results`` (or by a script
that measures). A chapter draws from it, and says when and where it was made. Chapters 07, 08
and 10 do.

A record of a training grid holds ``arms``: a list with, for each run, its ``arm`` (the settings),
its ``result`` and its ``opening`` (the result after a few steps, which tests compute again).
"""

import json
from pathlib import Path

__all__ = ["load", "names"]

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks" / "results"


def names(pattern: str = "*") -> list[str]:
    """The records there are, in alphabetical order.

    Args:
        pattern: of the file's name without ``.json``, as for a shell: ``"kv_cache*"``.
    """
    return sorted(path.stem for path in FOLDER.glob(f"{pattern}.json"))


def load(name: str) -> dict:
    """Read one record.

    Args:
        name: the file's name without ``.json``.

    Raises:
        ValueError: if there is no such record; the message names those there are.
    """
    path = FOLDER / f"{name}.json"
    if not path.is_file():
        raise ValueError(f"no record {name!r} in {FOLDER}, only {names()}: `make results` makes it")
    return json.loads(path.read_text(encoding="utf-8"))
