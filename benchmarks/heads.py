"""Record what the heads of the language model attend to: part of ``make results``.

The record ``benchmarks/results/heads.json`` holds every attention weight on the texts of
:mod:`lib.heads`, in whole percents. Chapter 13 falls back on it where the weights are not
installed. Needs the extra ``pretrained``; a test runs the model again and compares.
"""

import hashlib
import json
from importlib.metadata import version

import torch

from benchmarks.machine import ROOT
from benchmarks.record import where_and_when
from lib import heads, results, smollm
from tools.files import write_whole


def measure() -> results.HeadsRecord:
    """Run the model on the texts.

    Raises:
        ValueError: if the weights are not installed.
    """
    observed = heads.observe(*smollm.load())
    made = {
        **where_and_when(),
        smollm.PACKAGE: version(smollm.PACKAGE),
        "sha256": hashlib.sha256(smollm.find().read_bytes()).hexdigest(),
    }
    return {"made": made, "texts": observed.to_record()}


def main() -> None:
    torch.set_num_threads(1)
    record = measure()
    path = results.FOLDER / "heads.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    print(f"{path.relative_to(ROOT)}: {len(record['texts'])} texts, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
