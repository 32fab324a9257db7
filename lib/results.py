"""Recorded runs: what took too long for a page, or needs a machine that the reader may not have.

A record is one JSON file in ``benchmarks/results/``, written by ``make results`` (or by a script
that measures). A chapter draws from it, and says when and where it was made. Chapters 07, 08, 10
and 12 do.

A record of a training grid holds ``arms``: a list with, for each run, its ``arm`` (the settings),
its ``result`` and its ``opening`` (the result after a few steps, which tests compute again).

A record of decoding, ``kv_cache_<device>``, compares steps with and without the cache
(chapter 10; :func:`check_decoding` refuses anything else):

==================  ==========================================================================
key                 value
==================  ==========================================================================
``device``          name of the processor that ran it; ``device_type`` is ``"cuda"`` or ``"cpu"``
``versions``        by name, at least ``python`` and ``torch``; on a GPU also ``cuda``
``date``            ``YYYY-MM-DD``; ``commit`` is the commit that ran
``dtype``           dtype of weights and cache, as ``"bfloat16"``
``bandwidth``       bytes per second, read and written, by :func:`lib.timing.memory_bandwidth`
``throughput``      operations per second in ``dtype``, by :func:`lib.timing.matmul_throughput`
``runs``            a list, one entry for each model and batch size
==================  ==========================================================================

An entry of ``runs`` holds ``model`` (``n_layers``, ``d_model``, ``n_heads``, ``n_kv_heads``,
``head_dim``, ``vocab_size`` and ``n_weights``, the numbers in the matrices of all layers, the
output matrix not counted), ``batch_size``, ``lengths`` (increasing), and two lists with, for each
length t, the seconds of every round: ``uncached``, a pass over t tokens, and ``cached``, a step
for token t with t - 1 in the cache. Both give the logits of the last token alone.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from lib.crossover import crossover

__all__ = ["check_decoding", "load", "names"]

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks" / "results"
DECODING = (
    "device",
    "device_type",
    "versions",
    "date",
    "commit",
    "dtype",
    "bandwidth",
    "throughput",
    "runs",
)
RUN = ("model", "batch_size", "lengths", "uncached", "cached")
MODEL = ("n_layers", "d_model", "n_heads", "n_kv_heads", "head_dim", "vocab_size", "n_weights")


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


def check_decoding(record: dict) -> dict:
    """Check that a record of decoding has all that chapter 10 reads.

    Args:
        record: as :func:`load` gives it.

    Returns:
        The record itself.

    Raises:
        ValueError: if something is missing, the two speeds are not positive, there is no run, or
            the times of a run do not fit its lengths.
    """
    _need("the record", record, DECODING)
    _need("versions", record["versions"], ("python", "torch"))
    for name in ("bandwidth", "throughput"):
        if not record[name] > 0:
            raise ValueError(f"{name} must be positive, got {record[name]}")
    if not record["runs"]:
        raise ValueError("the record has no runs: runs=[]")
    for run in record["runs"]:
        _need("a run", run, RUN)
        _need("model", run["model"], MODEL)
        crossover(run["lengths"], run["uncached"], run["cached"])  # refuses what does not fit
    return record


def _need(what: str, found: Mapping, names: tuple[str, ...]) -> None:
    missing = [name for name in names if name not in found]
    if missing:
        raise ValueError(f"{what} lacks {', '.join(missing)}; it has {', '.join(found)}")
