"""Recorded runs: what takes too long for a page, or needs a machine that the reader may not have.

A record is one JSON file in ``benchmarks/results/``, written by ``make results`` (or by a script
that measures). A page draws from it and shows when and where it was made. Such pages are
chapters 01, 02, 07 to 10, 12, 13 and 15, and the claims from popular notes. A wheel contains the
records as they were when it was built.

The classes below are the records' schemas. A record may hold more keys than its schema names;
:func:`load` refuses one that lacks a key or holds a value of another type.
"""

import hashlib
import io
import json
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, get_args, get_origin, get_type_hints

import numpy as np

from lib.crossover import crossover

__all__ = [
    "DecodingModel",
    "DecodingRecord",
    "DecodingRun",
    "GridArm",
    "GridRecord",
    "HeadsRecord",
    "HeadsText",
    "MeasuredRecord",
    "SavedWeights",
    "Section",
    "best_shares",
    "check_decoding",
    "decoding_summary",
    "load",
    "load_weights",
    "names",
]

PACKAGE = Path(__file__).resolve().parent
# A wheel has the records beside its modules (pyproject.toml), the repository elsewhere.
PACKED = PACKAGE / "records"
FOLDER = PACKED if PACKED.is_dir() else PACKAGE.parent / "benchmarks" / "results"


class SavedWeights(TypedDict):
    """A trained model's weights in float16, which give the losses of the arm's result."""

    file: str  # in the folder ``weights`` beside the records
    sha256: str


class GridArm(TypedDict):
    """One training run of a grid: its settings, what it gave, and where and when."""

    arm: dict[str, Any]  # the settings, the seed among them
    result: dict[str, Any]
    opening: dict[str, Any]  # the result after a few steps, which tests compute again
    seconds: float
    processor: str
    python: str
    torch: str
    date: str
    commit: str
    weights: NotRequired[SavedWeights]


class GridRecord(TypedDict):
    """A training grid (``benchmarks/record.py``)."""

    experiment: str  # its module
    code: str  # a hash of what the code does
    confirmed: str  # when the code last gave the same openings, as YYYY-MM-DD
    arms: list[GridArm]


class MeasuredRecord(TypedDict):
    """What was measured on trained weights.

    Chapters 12 and 13 write one each (:class:`lib.pretrained.Measured`), others come from
    ``benchmarks/length.py`` and ``benchmarks/decoding.py``.
    """

    made: dict[str, str]  # date, versions, and which weights
    results: dict[str, Any]  # in the chapters: by the name of the function that measures


class HeadsText(TypedDict):
    """One text of `HeadsRecord`."""

    tokens: list[str]
    weights: list[str]  # of each layer: base64, one byte for each head, query and key <= query


class HeadsRecord(TypedDict):
    """All attention weights of a language model on a few texts (:class:`lib.heads.Observed`)."""

    made: dict[str, str]  # as of `MeasuredRecord`
    texts: list[HeadsText]


class DecodingModel(TypedDict):
    """Sizes of a language model."""

    n_layers: int
    d_model: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    vocab_size: int
    n_weights: int  # in the matrices of all layers; the output matrix is not counted
    name: NotRequired[str]


class DecodingRun(TypedDict):
    """One model with and without the cache; only the logits of the last token are computed.

    The operations of both are counted in ``eq-cost-full`` and ``eq-cost-cached``.
    """

    model: DecodingModel
    batch_size: int
    lengths: list[int]  # t, increasing
    uncached: list[list[float]]  # for each length, seconds per round: a pass over t tokens
    cached: list[list[float]]  # likewise: a step for token t with t - 1 in the cache
    fits: NotRequired[dict[str, dict[str, Any]]]  # exponents and crossover


class Section(TypedDict):
    """A section of ``benchmarks/kv_cache.py``, with whatever it measured.

    A ``share`` in an entry is the time that a ceiling allows divided by the time it took:
    ``share_of_bandwidth`` for the bytes alone, ``share_of_roof`` for the roofline
    (``prp-roofline``, chapter 10).
    """

    status: str  # "done" if everything was measured
    error: NotRequired[str]
    left_out: NotRequired[list[str]]  # points for which no time was left
    errors: NotRequired[list[str]]
    entries: NotRequired[list[dict[str, Any]]]


class DecodingRecord(TypedDict):
    """Decoding steps with and without the cache, ``kv_cache_<device>`` (chapter 10)."""

    device: str  # name of the processor
    device_type: Literal["cuda", "cpu"]
    versions: dict[str, str]  # python and torch; on a GPU also cuda
    date: str  # YYYY-MM-DD
    commit: str
    dtype: str  # of weights and cache, as "bfloat16"
    bandwidth: float  # bytes per second, read and written (lib.timing.memory_bandwidth)
    throughput: float  # operations per second in dtype (lib.timing.matmul_throughput)
    runs: list[DecodingRun]  # one for each model and batch size
    sections: NotRequired[dict[str, Section]]


# By device type: what a record with sections needs besides, and what its times were taken with.
IDENTITY = {
    "cuda": ("versions.driver", "clock", "capability", "memory_bytes"),
    "cpu": ("clock", "memory_bytes"),
}
CLOCKS = {"cuda": "CUDA events", "cpu": "perf_counter"}
# Records of other kinds than training grids.
SCHEMAS = {
    "decoding": MeasuredRecord,
    "heads": HeadsRecord,
    "language_model": MeasuredRecord,
    "length": MeasuredRecord,
    "pretrained": MeasuredRecord,
}
AIM = 0.7  # of the bandwidth limit, for the best step of the largest model


def names(pattern: str = "*") -> list[str]:
    """The names of all records, in alphabetical order.

    Args:
        pattern: of the file's name without ``.json``, as for a shell: ``"kv_cache*"``.

    Returns:
        Names that :func:`load` takes; an empty list if there are none.
    """
    return sorted(path.stem for path in FOLDER.glob(f"{pattern}.json"))


def load(name: str) -> dict:
    """Read one record, and check it.

    Args:
        name: the file's name without ``.json``.

    Raises:
        ValueError: if there is no such record, with the names of those there are; or if it does not
            fit its schema, with the file and the key; or as :func:`check_decoding`.
    """
    path = FOLDER / f"{name}.json"
    if not path.is_file():
        raise ValueError(f"no record {name!r} in {FOLDER}, only {names()}: `make results` makes it")
    record = json.loads(path.read_text(encoding="utf-8"))
    if name.startswith("kv_cache"):
        return check_decoding(record, path.name)
    for problem in _mismatches(record, SCHEMAS.get(name, GridRecord)):
        raise ValueError(f"{path.name}: {problem}")
    return record


def load_weights(name: str, /, **settings: Any) -> dict[str, np.ndarray]:
    """Read the weights that an arm of a training grid saved: float16, by parameter.

    Args:
        name: the record.
        **settings: the arm's, as ``scheme="rope", seed=0``; those of one arm alone.

    Raises:
        ValueError: if not exactly one arm has these settings and saved weights, or the file is
            missing or is not the one that belongs to the arm.
    """
    saved = [
        entry["weights"]
        for entry in load(name)["arms"]
        if "weights" in entry and settings.items() <= entry["arm"].items()
    ]
    if len(saved) != 1:
        raise ValueError(f"{name}.json: {len(saved)} arms with {settings} have saved weights")
    path = FOLDER / "weights" / saved[0]["file"]
    if not path.is_file():
        raise ValueError(f"{path} is missing, the file of {name}.json")
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != saved[0]["sha256"]:
        raise ValueError(f"{path} is not the file of {name}.json")
    with np.load(io.BytesIO(content)) as arrays:
        return dict(arrays)


def check_decoding(record: dict, file: str = "the record") -> dict:
    """Check that a record of decoding has all that chapter 10 reads.

    Args:
        record: what is checked.
        file: what errors call it.

    Returns:
        The record itself.

    Raises:
        ValueError: if it does not fit :class:`DecodingRecord`, contradicts its device type (a
            CPU's record under a GPU's name, or a GPU's without its driver), or has no run, a speed
            that is not positive, or times that do not fit their lengths.
    """
    for check in (_mismatches, _contradictions, _bad_numbers):
        for problem in check(record):
            raise ValueError(f"{file}: {problem}")
    return record


def _mismatches(value: Any, schema: Any = DecodingRecord, key: str = "") -> Iterator[str]:
    """Where a JSON value does not fit a type: what is missing, and what has another type."""
    if schema is Any:
        return
    kind, inner, dot = get_origin(schema) or schema, get_args(schema), "." if key else ""
    required = getattr(schema, "__required_keys__", None)  # of a TypedDict
    if kind is Literal:
        fits = value in inner
    else:
        allowed = dict if required is not None else (int, float) if kind is float else kind
        fits = isinstance(value, allowed) and not isinstance(value, bool)
    if not fits:
        expected = " or ".join(map(repr, inner)) if kind is Literal else kind.__name__
        yield f"{key or 'all of it'} must be {expected}, got {value!r:.60}"
    elif required is not None:
        yield from (f"{key}{dot}{name} is missing" for name in sorted(required - value.keys()))
        for name, each in get_type_hints(schema).items():
            if name in value:
                yield from _mismatches(value[name], each, f"{key}{dot}{name}")
    elif kind is list:
        for index, each in enumerate(value):
            yield from _mismatches(each, *inner, f"{key}[{index}]")
    elif kind is dict:
        for name, each in value.items():
            yield from _mismatches(each, inner[1], f"{key}{dot}{name}")


def _contradictions(record: dict) -> Iterator[str]:
    """Where a record contradicts its device type: a CPU's must not pass for a GPU's."""
    kind = record["device_type"]
    present = record.keys() | {f"versions.{name}" for name in record["versions"]}
    needed = ("versions.python", "versions.torch", *(["versions.cuda"] if kind == "cuda" else []))
    for name in needed + (IDENTITY[kind] if "sections" in record else ()):
        if name not in present:
            yield f"{name} is missing in a record of device_type {kind!r}"
    gpu = sorted(present & {"versions.cuda", "versions.driver", "capability"})
    if kind == "cpu" and gpu:
        yield f"device_type is 'cpu', but the record has a GPU's {', '.join(gpu)}"
    if record.get("clock", CLOCKS[kind]) != CLOCKS[kind]:
        yield (
            f"device_type is {kind!r}, but the clock was {record['clock']!r}: its times are taken "
            f"with {CLOCKS[kind]!r}"
        )


def _bad_numbers(record: dict) -> Iterator[str]:
    for name in ("bandwidth", "throughput"):
        if not record[name] > 0:
            yield f"{name} must be positive, got {record[name]}"
    if not record["runs"]:
        yield "there are no runs: runs=[]"
    for index, run in enumerate(record["runs"]):
        try:
            crossover(run["lengths"], run["uncached"], run["cached"])
        except ValueError as problem:
            yield f"runs[{index}]: {problem}"


def decoding_summary(record: dict) -> list[str]:
    """What a record of ``benchmarks/kv_cache.py`` shows, in lines of 80 characters or less.

    Args:
        record: as the script wrote it, complete or not; missing sections are left out.

    Returns:
        The lines; a continuation is indented by two spaces. A line about growth gives the exponent
        of the length in the time, measured over the longer half of the lengths.
    """
    return [
        line
        for long in _summary(record)
        for line in textwrap.wrap(long, 80, subsequent_indent="  ")
    ]


def _summary(record: dict) -> Iterator[str]:
    sections = record.get("sections", {})
    yield f"{record['device']}, {record['dtype']}"
    if record["bandwidth"] and record["throughput"]:
        yield (
            f"ceilings: {record['bandwidth'] / 1e9:,.0f} GB/s, "
            f"{record['throughput'] / 1e12:,.1f} TFLOP/s"
        )
    for run in record["runs"]:
        name = run["model"].get("name", "model")
        for way, fit in run.get("fits", {}).items():
            first = fit["crossover"]
            yield (
                f"{name}, {way}: exponent {fit['uncached']['longer_half']:.2f} without, "
                f"{fit['cached']['longer_half']:.2f} with; pays from "
                + ("none" if first is None else f"t = {first}")
            )
    for entry in _steps(sections):
        shares = entry["share_of_bandwidth"]
        if shares:
            yield (
                f"{entry['model']['name']}, t = {entry['length']}, of the bandwidth: "
                + ", ".join(f"{way} {share:.0%}" for way, share in shares.items())
            )
    if best := best_shares(sections):
        share, way = best.get("large", max(best.values()))
        verdict = "reached" if share >= AIM else "missed"
        yield f"best step of the largest: {share:.0%} ({way}); the aim of {AIM:.0%} is {verdict}"
    for entry in _entries(sections, "roofline"):
        if "share_of_roof" in entry:
            yield (
                f"{entry['phase']}, {entry['dtype']}, {entry['n_kv_heads']} KV heads, "
                f"{entry['batch_size']} texts: {entry['share_of_roof']:.0%} of the roof"
            )
    for longest in sections.get("memory", {}).get("longest", ()):
        if longest["by_formula"] is not None:
            yield (
                f"{longest['n_layers']} layers, {longest['n_kv_heads']} KV heads: "
                f"{longest['by_formula']:,} tokens fit by the formula, "
                f"{longest['by_allocation']:,} by trying"
            )
    exercise = sections.get("exercise", {})
    if "furthest_ratio" in exercise:
        yield f"the exercise's timer over this one's, at worst: {exercise['furthest_ratio']:.3f}"
    for entry in _entries(sections, "transformers"):
        ratio = entry["ratio"]
        yield (
            f"{entry['model']['name']}: transformers takes {ratio['static']:.2f} times as long "
            f"(static), {ratio['dynamic']:.2f} (dynamic)"
        )


def _steps(sections: Mapping) -> list[dict]:
    """Every measured step, however it was made."""
    return [e for name in ("steps", "compiled", "tuned") for e in _entries(sections, name)]


def best_shares(sections: Mapping[str, Section]) -> dict[str, tuple[float, str]]:
    """By model, the largest share of the bandwidth that a step reached, and the way it was run."""
    best: dict[str, tuple[float, str]] = {}
    for entry in _steps(sections):
        name = entry["model"]["name"]
        for way, share in entry["share_of_bandwidth"].items():
            best[name] = max(best.get(name, (0.0, "")), (share, way))
    return best


def _entries(sections: Mapping, name: str) -> list[dict]:
    return sections.get(name, {}).get("entries", [])
