"""Recorded runs: what took too long for a page, or needs a machine that the reader may not have.

A record is one JSON file in ``benchmarks/results/``, written by ``make results`` (or by a script
that measures). A page draws from it, and says when and where it was made: those of
chapters 07, 08, 09, 10 and 12, and of the misconceptions. A wheel has the records in itself, as
they were when it was built.

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
for token t with t - 1 in the cache. Both give the logits of the last token alone. Their operations
are counted in ``eq-cost-full`` and ``eq-cost-cached``.

A record that ``benchmarks/kv_cache.py`` made holds ``sections`` too: by name, with ``status``,
whatever was measured, and what went wrong. It says how the device was known (``IDENTITY``): a
record of a CPU that was renamed, or a GPU's without its driver, is refused. A ``share`` is the
time that a ceiling allows over the time it took, so that 1 is the ceiling: ``share_of_bandwidth``
for the bytes alone, ``share_of_roof`` for the roofline (``prp-roofline``, chapter 10).
:func:`decoding_problems` lists what such a record lacks, :func:`decoding_summary` says in short
lines what it found.
"""

import json
import statistics
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

from lib.crossover import crossover

__all__ = [
    "check_decoding",
    "decoding_problems",
    "decoding_summary",
    "decoding_table",
    "load",
    "names",
]

PACKAGE = Path(__file__).resolve().parent
# A wheel has the records beside its modules (pyproject.toml), the repository elsewhere.
PACKED = PACKAGE / "records"
FOLDER = PACKED if PACKED.is_dir() else PACKAGE.parent / "benchmarks" / "results"
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
# By device type: what a record with sections says besides, and what its times were taken by.
IDENTITY = {"cuda": ("clock", "capability", "memory_bytes"), "cpu": ("clock", "memory_bytes")}
CLOCKS = {"cuda": "CUDA events", "cpu": "perf_counter"}
AIM = 0.7  # of the bandwidth limit, for the best step of the largest model
SECTIONS = (  # what each one holds is said in benchmarks/README.md
    "ceilings",
    "correctness",
    "growth",
    "steps",
    "roofline",
    "memory",
    "exercise",
    "transformers",
    "compiled",
    "tuned",
)


def names(pattern: str = "*") -> list[str]:
    """The records there are, in alphabetical order.

    Args:
        pattern: of the file's name without ``.json``, as for a shell: ``"kv_cache*"``.

    Returns:
        Names that :func:`load` takes; an empty list if there are none.
    """
    return sorted(path.stem for path in FOLDER.glob(f"{pattern}.json"))


def load(name: str) -> dict:
    """Read one record.

    Args:
        name: the file's name without ``.json``.

    Returns:
        What the file holds, as JSON gives it; nothing is checked.

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
        ValueError: if something is missing, the record says of itself what cannot be true of its
            device, the two speeds are not positive, there is no run, or the times of a run do
            not fit its lengths.
    """
    _need("the record", record, DECODING)
    _need("versions", record["versions"], ("python", "torch"))
    _check_identity(record)
    for name in ("bandwidth", "throughput"):
        if not (record[name] or 0) > 0:
            raise ValueError(f"{name} must be positive, got {record[name]}")
    if not record["runs"]:
        raise ValueError("the record has no runs: runs=[]")
    for run in record["runs"]:
        _need("a run", run, RUN)
        _need("model", run["model"], MODEL)
        crossover(run["lengths"], run["uncached"], run["cached"])  # refuses what does not fit
    return record


def _check_identity(record: dict) -> None:
    """A CPU's record never poses as a GPU's, nor the other way round."""
    kind = record["device_type"]
    if kind not in CLOCKS:
        raise ValueError(f"device_type must be one of {', '.join(CLOCKS)}, got {kind!r}")
    found = record["versions"]
    if kind == "cuda":
        _need("versions of a record of a GPU", found, ("cuda",))
    if "sections" in record:
        _need(f"the record of device_type {kind!r}", record, IDENTITY[kind])
        if kind == "cuda":
            _need("versions of a record of a GPU", found, ("driver",))
    gpu = [name for name in ("cuda", "driver") if name in found]
    gpu += [name for name in ("capability",) if name in record]
    if kind == "cpu" and gpu:
        raise ValueError(f"device_type is 'cpu', but the record has a GPU's {', '.join(gpu)}")
    if record.get("clock", CLOCKS[kind]) != CLOCKS[kind]:
        raise ValueError(
            f"device_type is {kind!r}, but the clock was {record['clock']!r}: times on it are "
            f"taken by {CLOCKS[kind]!r}"
        )


def decoding_problems(record: dict) -> list[str]:
    """What a record of ``benchmarks/kv_cache.py`` lacks; an empty list if nothing.

    Args:
        record: as the script wrote it, whole or not.

    Returns:
        One sentence for each part that is missing, failed or was left out. What cannot be had
        where it ran (``not_here``) is no problem.
    """
    problems = []
    try:
        check_decoding(record)
    except ValueError as problem:
        problems.append(str(problem))
    for name in SECTIONS:
        section = record.get("sections", {}).get(name, {"status": "missing"})
        if section["status"] != "done":
            problems.append(f"{name}: {section['status']}, {section.get('error', 'no reason')}")
        problems += [f"{name}: left out: {point}" for point in section.get("left_out", ())]
        problems += [f"{name}: {error}" for error in section.get("errors", ())]
    return problems


def decoding_summary(record: dict) -> list[str]:
    """What a record of ``benchmarks/kv_cache.py`` found, in lines of 80 characters or less.

    Args:
        record: as the script wrote it, whole or not; sections that are missing are left out.

    Returns:
        The lines; one that was broken goes on with two spaces. Time grows like length to the
        exponent, which is taken over the longer half of the lengths.
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
    if best := _best_shares(sections):
        share, way = best.get("large", max(best.values()))
        verdict = "reached" if share >= AIM else "missed"
        yield f"best step of the largest: {share:.0%} ({way}); the aim of {AIM:.0%} is {verdict}"
    for entry in _entries(sections, "roofline"):
        if "share_of_roof" in entry:
            yield (
                f"{entry['phase']}, {entry['dtype']}, {entry['n_kv_heads']} key heads, "
                f"{entry['batch_size']} texts: {entry['share_of_roof']:.0%} of the roof"
            )
    for found in sections.get("memory", {}).get("longest", ()):
        if found["by_formula"] is not None:
            yield (
                f"{found['n_layers']} layers, {found['n_kv_heads']} key heads: "
                f"{found['by_formula']:,} tokens fit by the formula, "
                f"{found['by_allocation']:,} by trying"
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


def _best_shares(sections: Mapping) -> dict[str, tuple[float, str]]:
    """By model, the largest share of the bandwidth that a step reached, and by which way."""
    best: dict[str, tuple[float, str]] = {}
    for entry in _steps(sections):
        name = entry["model"]["name"]
        for way, share in entry["share_of_bandwidth"].items():
            best[name] = max(best.get(name, (0.0, "")), (share, way))
    return best


def _entries(sections: Mapping, name: str) -> list[dict]:
    return sections.get(name, {}).get("entries", [])


def decoding_table(record: dict) -> list[str]:
    """A markdown table of a record: for each model the cache's gain and the best step's share.

    Args:
        record: as :func:`check_decoding` accepts it.

    Returns:
        The table's lines, for each run the median milliseconds at its longest length, and
        :func:`lib.crossover.crossover`.

    Raises:
        ValueError: if the times of a run do not fit its lengths.
    """
    rows = [
        "| model | tokens | ms without | ms with | the cache pays from | best step, of the "
        "bandwidth limit |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    shares = _best_shares(record.get("sections", {}))
    for run in record["runs"]:
        name = run["model"].get("name", "model")
        above, below = (1e3 * statistics.median(run[way][-1]) for way in ("uncached", "cached"))
        first = crossover(run["lengths"], run["uncached"], run["cached"])
        share = f"{shares[name][0]:.0%}" if name in shares else "not measured"
        rows.append(
            f"| {name} | {run['lengths'][-1]:,} | {above:.2f} | {below:.2f} | "
            + ("nowhere measured" if first is None else f"t = {first:,}")
            + f" | {share} |"
        )
    return rows


def _need(what: str, found: Mapping, names: tuple[str, ...]) -> None:
    missing = [name for name in names if name not in found]
    if missing:
        raise ValueError(f"{what} lacks {', '.join(missing)}; it has {', '.join(found)}")
