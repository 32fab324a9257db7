"""Decoding with and without the KV cache, on a GPU or a CPU: the record that chapter 10 quotes.

``python3 -m benchmarks.kv_cache --device cuda --commit HASH --out FILE.json`` needs this
repository, torch and numpy, and eight minutes or less. ``--device cpu`` runs smaller sizes,
``--quick`` very small ones.

The measurements are divided into sections (`SECTIONS`, in the order they run), and each section
is one call of ``python3 -m benchmarks.kv_cache --section NAME``: a process of its own, which
writes its result to a file as it goes. The command starts these processes in turn, kills
one that runs past its time, and rewrites the record after each. A section that raises, hangs or
crashes loses what it had not yet measured, and the next one starts on a clean device.

Logits are compared with those of the full forward pass before anything is timed. Alternatives
run in turn, round after round. Times are :func:`lib.timing.time_call`'s: CUDA events on a GPU.
"Graph" is the replay of a CUDA graph, one captured for each measured length: it fixes shapes,
positions and the slot that is written. (In production one would capture a few capacities and mask.)
"""

import argparse
import datetime
import gc
import hashlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import torch

from benchmarks import kv_cache_beside as beside
from benchmarks import kv_cache_sections as sections
from benchmarks.kv_cache_device import Cpu, Cuda
from benchmarks.kv_cache_plan import CPU, GPU, QUICK, SEED, Plan
from benchmarks.kv_cache_sections import Run, one_line, short
from benchmarks.machine import ROOT, commit
from lib import results
from lib.crossover import crossover
from tools.files import write_whole

# The sections in the order they run, and the seconds after which each leaves out further points.
SECTIONS: dict[str, tuple[Callable[[Run], None], float]] = {
    "ceilings": (sections.ceilings, 15.0),
    "correctness": (sections.correctness, 35.0),
    "growth": (sections.growth, 70.0),
    "steps": (sections.steps, 25.0),
    "roofline": (sections.roofline, 60.0),
    "memory": (sections.memory, 20.0),
    "exercise": (beside.exercise, 25.0),
    "transformers": (beside.transformers, 40.0),
    "compiled": (sections.compiled, 70.0),
    "tuned": (sections.tuned, 80.0),
}
SECONDS = 435.0  # for all of them; what is over is for starting, and for GRACE once
GRACE = 30.0  # seconds that a section gets beyond its own, the start of its process included
UNTIMED = ("ceilings", "correctness", "memory")  # run even if logits were wrong
DEVICES = {"cpu": Cpu, "cuda": Cuda}
PLANS = {"cpu": CPU, "cuda": GPU}
README = ROOT / "README.md"
MARKS = (
    "<!-- kv_cache: written by `python -m benchmarks.kv_cache --quote` -->",
    "<!-- kv_cache -->",
)
MISSING = """\
**The run on a GPU is missing.** No GPU could be had where the course was built. The command above
makes the record, from this folder, with torch and numpy and nothing installed; chapter 10 and this
page then show it."""


def code_hash() -> str:
    """Hash the files that are measured and that measure, for where no commit is known."""
    files = [*(ROOT / "lib").glob("*.py"), *(ROOT / "benchmarks").glob("kv_cache*.py")]
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def new_record(device: Cpu, plan: Plan, at_commit: str) -> dict:
    """A record in which nothing has been measured yet."""
    return {
        **device.describe(),
        "date": datetime.date.today().isoformat(),
        "commit": at_commit,
        "code": code_hash(),
        "seed": SEED,
        "dtype": plan.dtype,
        "bandwidth": None,
        "throughput": None,
        "runs": [],
        "plan": asdict(plan),
        "sections": {name: {"status": "waiting"} for name in SECTIONS},
    }


def measure(name: str, run: Run) -> dict:
    """Run one section in this process; if it raises, its result holds the error."""
    gc.collect()
    gc.freeze()  # what exists now stays, so that later collections are quick
    start = time.monotonic()
    try:
        SECTIONS[name][0](run)
        run.device.wait()
        run.result["status"] = "done"
    except Exception as problem:
        traceback.print_exc()
        run.result |= {"status": "failed", "error": one_line(problem)}
    run.result["took"] = round(time.monotonic() - start, 2)
    run.save()
    return run.result


def in_own_process(command: list[str], name: str, seconds: float, grace: float = GRACE) -> dict:
    """Run one section in a process of its own, and kill it if it runs past its time.

    Its result comes back in a file and not through a pipe: helpers that it started, such as the
    compiler's, may outlive it and would keep a pipe open.

    Args:
        command: this program with the options that every section gets.
        name: the section.
        seconds: after which the section leaves out the rest of its points.
        grace: further seconds before it is killed.

    Returns:
        What it measured. It has failed unless its process wrote another status.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "section.json"
        command = [*command, "--section", name, "--seconds", str(seconds), "--out", str(out)]
        try:
            status = subprocess.run(command, cwd=ROOT, timeout=seconds + grace).returncode
            error = f"its process ended with status {status}"
        except subprocess.TimeoutExpired:
            error = "it ran past its time and was killed"
        result = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    return result if "status" in result else {**result, "status": "failed", "error": error}


def fill(record: dict, out: Path, end: float, section: Callable[[str, float], dict]) -> None:
    """Measure every section, and save the record before the first and after each.

    Args:
        record: from :func:`new_record`; changed in place.
        out: the record's file.
        end: on `time.monotonic`'s clock, when no further section may start.
        section: measures one, given its name and its seconds.
    """
    save(record, out)
    for name in SECTIONS:
        seconds = min(SECTIONS[name][1], end - time.monotonic())
        if seconds <= 0:
            result = {"status": "failed", "error": "no time was left"}
        elif name not in UNTIMED and record["sections"]["correctness"]["status"] != "done":
            result = {"status": "failed", "error": "not timed: the section correctness failed"}
        else:
            result = section(name, seconds)
        add(record, name, result)
        save(record, out)
        print(f"{name:13} {result['status']:7} {result.get('took', 0.0):7.1f} s", flush=True)


def add(record: dict, name: str, result: dict) -> None:
    """Put one section's result into the record."""
    record["runs"] += result.pop("runs", [])
    record["sections"][name] = result
    ceilings = record["sections"]["ceilings"]
    bandwidth, throughput = ceilings.get("bandwidth"), ceilings.get("throughput", {})
    record["bandwidth"], record["throughput"] = bandwidth, throughput.get(record["dtype"])
    for entry in result.get("entries", ()):
        if name == "roofline":
            add_roof(entry, bandwidth, throughput.get(entry["dtype"]))
        elif "bytes" in entry:
            entry["share_of_bandwidth"] = {
                way: short(entry["bytes"] / bandwidth / statistics.median(seconds))
                for way, seconds in entry["seconds"].items()
                if bandwidth
            }


def add_roof(entry: dict, bandwidth: float | None, peak: float | None) -> None:
    """Add the operations and bytes per second, and their share of the ceilings."""
    best = min(statistics.median(seconds) for seconds in entry["seconds"].values())
    operations, n_bytes = entry["operations"], entry["bytes"]
    entry["operations_per_second"] = short(operations / best)
    entry["bytes_per_second"] = short(n_bytes / best)
    if bandwidth and peak:
        entry["share_of_peak"] = short(operations / peak / best)
        entry["share_of_bandwidth"] = short(n_bytes / bandwidth / best)
        entry["share_of_roof"] = short(max(operations / peak, n_bytes / bandwidth) / best)


def save(record: dict, out: Path) -> None:
    """Write JSON with one line for each value of the record, so that a difference can be read."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in record.items()]
    write_whole(out, "{\n" + ",\n".join(lines) + "\n}\n")


def quoted(text: str) -> str:
    """A page in which the block between the two marks is made anew from the records."""
    before, rest = text.split(MARKS[0])
    _, after = rest.split(MARKS[1])
    records = [results.load(name) for name in results.names("kv_cache*")]
    block = "\n\n".join(map(block_of, (r for r in records if r["device_type"] == "cuda")))
    return f"{before}{MARKS[0]}\n\n{block or MISSING}\n\n{MARKS[1]}{after}"


def block_of(record: dict) -> str:
    """One record, as README.md shows it."""
    versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    head = (
        f"Decoding on one {record['device']}, {record['dtype']}, one text; {versions}; "
        f"{record['date']}, commit {record['commit']}:"
    )
    return "\n".join([head, "", *table_of(record)])


def table_of(record: dict) -> list[str]:
    """For each run the median milliseconds at its longest length, and what the cache gains."""
    lines = [
        "| model | tokens | ms without | ms with | the cache pays from | best step, of the "
        "bandwidth limit |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    shares = results.best_shares(record.get("sections", {}))
    for run in record["runs"]:
        name = run["model"].get("name", "model")
        above, below = (1e3 * statistics.median(run[way][-1]) for way in ("uncached", "cached"))
        first = crossover(run["lengths"], run["uncached"], run["cached"])
        lines.append(
            f"| {name} | {run['lengths'][-1]:,} | {above:.2f} | {below:.2f} | "
            f"{'nowhere measured' if first is None else f't = {first:,}'} | "
            f"{f'{shares[name][0]:.0%}' if name in shares else 'not measured'} |"
        )
    return lines


def problems_of(record: dict) -> list[str]:
    """What a record lacks: parts that are missing, failed or were left out.

    What cannot be measured where it ran (``not_here``) is no problem.
    """
    problems = []
    try:
        results.check_decoding(record)
    except ValueError as problem:
        problems.append(str(problem))
    for name in SECTIONS:
        section = record.get("sections", {}).get(name, {"status": "missing"})
        if section["status"] != "done":
            problems.append(f"{name}: {section['status']}, {section.get('error', 'no reason')}")
        problems += [f"{name}: left out: {point}" for point in section.get("left_out", ())]
        problems += [f"{name}: {error}" for error in section.get("errors", ())]
    return problems


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--device", choices=list(DEVICES), default="cpu")
    parser.add_argument("--out", type=Path, help="the record's file; by default one in _build")
    parser.add_argument("--commit", help="the commit that runs, where git cannot tell")
    parser.add_argument("--quick", action="store_true", help="very small sizes: does it run?")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="limit for all sections")
    parser.add_argument("--section", choices=list(SECTIONS), help="run one; print its result")
    parser.add_argument(
        "--quote", action="store_true", help="measure nothing; write the records into README.md"
    )
    options = parser.parse_args(arguments)
    if options.quote:
        README.write_text(quoted(README.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    plan = QUICK if options.quick else PLANS[options.device]
    torch.set_float32_matmul_precision("highest")
    try:
        device = DEVICES[options.device]()
    except (RuntimeError, AssertionError) as problem:
        raise SystemExit(f"there is no {options.device} here: {one_line(problem)}") from None
    if options.section:
        result = measure(options.section, Run(device, plan, options.seconds, options.out))
        if options.out is None:
            print(json.dumps(result, indent=1))
        return 0 if result["status"] == "done" else 1
    out = options.out or ROOT / "_build" / f"kv_cache_{options.device}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    record = new_record(device, plan, options.commit or commit())
    command = [sys.executable, "-m", "benchmarks.kv_cache", "--device", options.device]
    command += ["--quick"] if options.quick else []
    start = time.monotonic()
    fill(record, out, start + options.seconds, partial(in_own_process, command))
    record["took"] = round(time.monotonic() - start, 1)
    save(record, out)
    print("\n" + "\n".join(results.decoding_summary(record)))
    problems = problems_of(record)
    verdict = "NOT complete" if problems else "complete"
    print(f"\n{out.name}: {record['took']:.0f} s; {verdict}")
    for problem in problems:
        print(f"- {problem}")
    # `make bench` writes no record: there a busy machine is no failure.
    return 1 if problems and options.out else 0


if __name__ == "__main__":
    sys.exit(main())
