"""Decoding with and without the KV cache, on a GPU or a CPU: the record that chapter 10 quotes.

``python3 -m benchmarks.kv_cache --device cuda --out FILE.json`` needs this repository, torch and
numpy, and eight minutes or less. ``--device cpu`` runs smaller sizes, ``--quick`` very small ones.

The work is cut into sections (`SECTIONS`, in the order they run). A section that fails leaves its
error in the record, one that runs out of time leaves out the rest of its points and names them, and
the record is written after each. All run in a second process; if a section crashes it or hangs,
the first process ends it, notes that, and starts another one for what is left.

Logits are compared with those of the full forward before anything is timed. Ways that are compared
run in turn, round after round. Times are :func:`lib.timing.time_call`'s: CUDA events on a GPU.
"Graph" is the replay of a CUDA graph, one captured for each measured length: shapes, positions and
the slot that is written are fixed in it. (In use one would capture a few capacities and mask.)
"""

import argparse
import datetime
import gc
import hashlib
import json
import subprocess
import sys
import time
import traceback
from dataclasses import asdict
from pathlib import Path

import torch

from benchmarks.kv_cache_device import Cpu, Cuda
from benchmarks.kv_cache_plan import CPU, GPU, QUICK, SEED, Plan
from benchmarks.kv_cache_run import Run, keep, said
from benchmarks.kv_cache_sections import SECTIONS
from benchmarks.machine import ROOT, commit
from lib import results

DEVICES = {"cpu": Cpu, "cuda": Cuda}
README = ROOT / "README.md"
MARKS = (
    "<!-- kv_cache: written by `python -m benchmarks.kv_cache --quote` -->",
    "<!-- kv_cache -->",
)
MISSING = """\
**The run on a GPU is missing.** No GPU could be had where the course was built. The command above
makes the record, from this folder, with torch and numpy and nothing installed; chapter 10 and this
page then show it."""
GRACE = 20.0  # seconds beyond its budget after which a section's process is ended
POISONED = 3  # exit status of a worker whose device no longer answers
UNTIMED = ("ceilings", "correctness", "memory")  # run even where logits were wrong


def code_hash() -> str:
    """Of the files that are measured and that measure, where no commit is known."""
    digest = hashlib.sha256()
    for path in (
        *sorted((ROOT / "lib").glob("*.py")),
        *sorted(Path(__file__).parent.glob("kv_cache*.py")),
    ):
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


def work(run: Run) -> int:
    """Run every section that waits; return 0, or `POISONED` if another process must go on."""
    for name, section_of in SECTIONS.items():
        section = run.section = run.record["sections"][name]
        if section["status"] != "waiting":
            continue
        if name not in UNTIMED and run.record["sections"]["correctness"]["status"] != "done":
            section |= {"status": "failed", "error": "not timed: the logits were not right"}
            run.save()
            continue
        remaining = run.record.get("end_by", float("inf")) - time.time()
        budget = min(run.plan.budget.get(name, 60.0), remaining)
        if budget <= 0:
            section |= {"status": "failed", "error": "no time was left"}
            run.save()
            continue
        section |= {"status": "running", "since": time.time(), "budget": round(budget, 1)}
        section |= {"left_out": [], "errors": []}
        run.save()
        gc.collect()
        gc.freeze()  # what is here stays, so that a later look for garbage is quick
        start = time.monotonic()
        run.end = start + budget
        try:
            section_of(run)
            run.device.wait()
            section["status"] = "done"
        except Exception as problem:
            print(f"{name}: {traceback.format_exc()}", file=sys.stderr, flush=True)
            section |= {"status": "failed", "error": said(problem)}
        section["took"] = round(time.monotonic() - start, 2)
        section.pop("since", None)
        run.save()
        print(f"{name:13} {section['status']:7} {section['took']:7.1f} s", flush=True)
        try:
            run.device.clear()
            run.device.wait()
        except Exception:
            return POISONED
    return 0


def supervise(out: Path, command: list[str], *, grace: float = GRACE) -> None:
    """Start workers until no section waits, and end one that hangs."""

    def read() -> dict:
        return json.loads(out.read_text(encoding="utf-8"))

    while any(section["status"] == "waiting" for section in read()["sections"].values()):
        worker = subprocess.Popen(command, cwd=ROOT)
        started, ended = time.time(), ""
        while worker.poll() is None:
            time.sleep(0.2)
            running = [s for s in read()["sections"].values() if s["status"] == "running"]
            limits = [s["since"] + s["budget"] for s in running]
            idle = max(started, out.stat().st_mtime) + 60.0  # it starts, or is between two
            if time.time() > max(limits, default=idle) + grace:
                worker.kill()
                worker.wait()
                ended = "it ran past its time and was ended"
        record = read()
        broken = [s for s in record["sections"].values() if s["status"] == "running"]
        waiting = [s for s in record["sections"].values() if s["status"] == "waiting"]
        if not broken and waiting and worker.returncode != POISONED:
            broken = waiting  # it cannot even begin: another one could not either
        for section in broken:
            error = ended or f"its process ended with status {worker.returncode}"
            section |= {"status": "failed", "error": error}
            section.pop("since", None)
        keep(record, out)


def plan_of(arguments: argparse.Namespace) -> Plan:
    """The plan that the options name."""
    plan = QUICK if arguments.quick else {"cpu": CPU, "cuda": GPU}[arguments.device]
    only = set(arguments.only.split(",")) if arguments.only else set()
    if unknown := only - set(SECTIONS):
        raise SystemExit(f"no section {sorted(unknown)}, there are {', '.join(SECTIONS)}")
    return plan


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--device", choices=list(DEVICES), default="cpu")
    parser.add_argument("--out", type=Path, help="where the record goes; a passing file if not")
    parser.add_argument("--commit", help="the commit that runs, where git cannot tell")
    parser.add_argument("--quick", action="store_true", help="very small sizes: does it run?")
    parser.add_argument("--only", help="sections by name, with commas between")
    parser.add_argument("--seconds", type=float, default=435.0, help="most time for all sections")
    parser.add_argument(
        "--quote", action="store_true", help="measure nothing; write the record into README.md"
    )
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(given)
    if arguments.quote:
        README.write_text(quoted(README.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    plan = plan_of(arguments)
    torch.set_float32_matmul_precision("highest")
    if arguments.worker:
        record = json.loads(arguments.out.read_text(encoding="utf-8"))
        return work(Run(DEVICES[arguments.device](), plan, record, arguments.out))
    out = arguments.out or ROOT / "_build" / f"kv_cache_{arguments.device}.json"
    out = out.resolve()
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        device = DEVICES[arguments.device]()
    except (RuntimeError, AssertionError) as problem:
        raise SystemExit(f"there is no {arguments.device} here: {said(problem)}") from None
    record = new_record(device, plan, arguments.commit or commit())
    record["end_by"] = time.time() + arguments.seconds
    if arguments.only:
        for name in set(SECTIONS) - set(arguments.only.split(",")):
            record["sections"][name] = {"status": "left out", "error": "not asked for"}
    out.write_text(json.dumps(record) + "\n")
    command = [sys.executable, "-m", "benchmarks.kv_cache", "--worker", "--out", str(out)]
    command += ["--device", arguments.device, *(["--quick"] if arguments.quick else [])]
    start = time.monotonic()
    supervise(out, command)
    record = json.loads(out.read_text(encoding="utf-8"))
    record.pop("end_by", None)
    record["took"] = round(time.monotonic() - start, 1)
    out.write_text(one_line_per_part(record), encoding="utf-8")
    print("\n" + "\n".join(results.decoding_summary(record)))
    problems = results.decoding_problems(record)
    verdict = "NOT complete" if problems else "complete"
    print(f"\n{out.name}: {record['took']:.0f} s; {verdict}")
    for problem in problems:
        print(f"- {problem}")
    # `make bench` wants no record: there a busy machine is no failure.
    return 1 if problems and arguments.out and not arguments.only else 0


def quoted(text: str) -> str:
    """A page with the block between its two marks made anew from the records there are."""
    before, rest = text.split(MARKS[0])
    _, after = rest.split(MARKS[1])
    records = [results.check_decoding(results.load(name)) for name in results.names("kv_cache*")]
    block = "\n\n".join(map(block_of, (r for r in records if r["device_type"] == "cuda")))
    return f"{before}{MARKS[0]}\n\n{block or MISSING}\n\n{MARKS[1]}{after}"


def block_of(record: dict) -> str:
    """One record, as README.md shows it."""
    found = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    head = (
        f"Decoding on one {record['device']}, {record['dtype']}, one text; {found}; "
        f"{record['date']}, commit {record['commit']}:"
    )
    return "\n".join([head, "", *results.decoding_table(record)])


def one_line_per_part(record: dict) -> str:
    """JSON with one line for each value of the record, so that a difference can be read."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in record.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main())
