"""Grading a class: plain `nbgrader autograde` beside this course's grader.

    python -m benchmarks.grading [--submissions 40] [--out benchmarks/results/grading.json]
    python -m benchmarks.grading --quote

The same submissions, the answer bank's right and wrong ones, are graded in two course folders: in
one by nbgrader as it comes, in the other by ``python -m grading``, which also writes each learner's
feedback page. Each grades all of them with one command, in turn, in each round in a new folder; the
scores must be the same. Then: where the time goes, what the one process that writes can do alone,
how time and memory grow with the class, how much disk space a submission takes, and what dask's
scheduler costs. The record is what ``docs/scale.md`` quotes (``--quote`` writes it there).
"""

import argparse
import contextlib
import datetime
import importlib.metadata
import json
import math
import os
import platform
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat

from benchmarks.machine import ROOT, Table, commit, describe, processor
from tools import answers

RECORD = ROOT / "benchmarks" / "results" / "grading.json"
PAGE = ROOT / "docs" / "scale.md"
MARK = "<!-- grading: written by `python -m benchmarks.grading --quote` -->"
END = "<!-- grading -->"
CLASS = 10_000
PLAIN = """c = get_config()
c.CourseDirectory.course_id = "plain"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.ExecutePreprocessor.timeout = 120
"""


class Folder:
    """A course folder with submissions, and a way to grade them.

    Args:
        root: a new folder.
        slug: the assignment.
        notebooks: the submissions.
        plain: whether plain nbgrader grades them.
    """

    def __init__(self, root: Path, slug: str, notebooks: list, *, plain: bool = False):
        self.root, self.slug, self.plain, self.peak = root, slug, plain, {}
        folder = root / "solutions" / slug
        folder.mkdir(parents=True)
        shutil.copy(ROOT / "solutions" / slug / f"{slug}.ipynb", folder)
        config = root / "nbgrader_config.py"
        if plain:
            config.write_text(PLAIN)
            self._call("nbgrader", "generate_assignment", slug, "--force")
        else:
            shutil.copy(ROOT / "nbgrader_config.py", config)
        for number, notebook in enumerate(notebooks):
            folder = root / "submitted" / f"learner-{number:05d}" / slug
            folder.mkdir(parents=True)
            nbformat.write(notebook, folder / f"{slug}.ipynb")

    def _call(self, module: str, *words: str) -> float:
        """Run a command in the folder; seconds."""
        start = time.perf_counter()
        with tempfile.TemporaryFile("w+") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *words],
                cwd=self.root,
                env=os.environ
                | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
                # nbgrader starts `alembic` by its name
                | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
                stdout=log,
                stderr=log,
            )
            with _watched(process.pid) as self.peak:
                code = process.wait()
            seconds = time.perf_counter() - start
            if code:
                log.seek(0)
                sys.exit(f"{module} {' '.join(words)} failed:\n{log.read()[-3000:]}")
        return seconds

    def grade(self, jobs: int, *words: str) -> float:
        """Grade all; seconds."""
        if self.plain:
            return self._call("nbgrader", "autograde", self.slug)
        return self._call("grading", self.slug, "--jobs", str(jobs), *words)

    def summary(self) -> dict:
        """The machine-readable summary of the batch."""
        return json.loads((self.root / "reports" / f"grades-{self.slug}.json").read_text())

    def verdicts(self) -> list[dict]:
        folder = self.root / "progress" / self.slug / "verdicts"
        return [json.loads(path.read_text()) for path in folder.glob("*.json")]

    def scores(self) -> dict[str, float]:
        query = """select submitted_assignment.student_id, total(grade.auto_score)
            from grade join submitted_notebook on grade.notebook_id = submitted_notebook.id
            join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id
            group by 1"""
        with contextlib.closing(sqlite3.connect(self.root / "gradebook.db")) as database:
            return dict(database.execute(query).fetchall())

    def size(self, name: str) -> int:
        """Bytes of a file, or of all files in a folder."""
        paths = [self.root / name, *(self.root / name).rglob("*")]
        return sum(path.stat().st_size for path in paths if path.is_file())


def _descendants(pid: int) -> list[int]:
    family, waiting = [], [pid]
    while waiting:
        family.append(waiting.pop())
        for path in Path(f"/proc/{family[-1]}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                waiting += map(int, path.read_text().split())
    return family


def _memory(pid: int) -> int:
    """Bytes that a process holds; memory shared by n processes counts as 1/n (PSS)."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return 1024 * int(line.split()[1])
    return 0


@contextlib.contextmanager
def _watched(pid: int) -> Iterator[dict[str, int]]:
    """The peak memory of a process, and of the process with all its descendants."""
    peak, done = {"command": 0, "tree": 0}, threading.Event()

    def watch() -> None:
        while not done.wait(0.5):
            each = {one: _memory(one) for one in _descendants(pid)}
            peak["command"] = max(peak["command"], each.get(pid, 0))
            peak["tree"] = max(peak["tree"], sum(each.values()))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def submissions(slug: str, number: int) -> list[nbformat.NotebookNode]:
    """Whole answers, most with one of the bank's mistakes; no two are the same."""
    right, wrong = answers.bank(slug, "right"), answers.bank(slug, "wrong")
    bank = right + wrong
    chosen = []
    for place in range(number):
        notebook = answers.notebook(slug, "exercises")
        cells = right[0].cells | bank[place * 7 % len(bank)].cells
        for cell in notebook.cells:
            cell.source = cells.get(cell.id, cell.source)
            if cell.metadata.get("nbgrader", {}).get("solution"):
                cell.source += f"\n# submission {place}"
        chosen.append(notebook)
    return chosen


def workers(root: Path, slug: str, notebooks: list, number: int) -> float | None:
    """Seconds that a class takes with so many dask workers here; None where dask is missing."""
    try:
        from distributed import LocalCluster
    except ImportError:
        return None
    words = {"n_workers": number, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**words) as cluster:
        there = ["--engine", "dask", "--scheduler", cluster.scheduler_address]
        return Folder(root, slug, notebooks).grade(number, *there)


def scheduler(job: dict, number: int = 500) -> float | None:
    """Seconds that dask takes to carry a job to a worker and back; None where it is missing."""
    try:
        from distributed import Client
    except ImportError:
        return None
    with (
        Client(
            processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None
        ) as client,
        client.get_executor(pure=False) as pool,
    ):
        list(pool.map(len, [job] * 10))
        start = time.perf_counter()
        for future in [pool.submit(len, job) for _ in range(number)]:
            future.result()
        return (time.perf_counter() - start) / number


def measure(options: argparse.Namespace) -> dict:
    """Run everything, print it, and return the record."""
    slug, number, jobs = options.assignment, options.submissions, options.jobs
    print(f"grading {number} submissions of {slug}; {describe()}\n", flush=True)
    record = {
        "device": processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "versions": {"python": platform.python_version()}
        | {name: importlib.metadata.version(name) for name in ("torch", "nbgrader")},
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "assignment": slug,
        "submissions": number,
        "jobs": jobs,
    }
    notebooks = submissions(slug, number)
    seconds: dict[str, list[float]] = {"plain": [], "ours": []}
    with tempfile.TemporaryDirectory(prefix="grading-") as place:
        table = Table("round", "plain, s", "ours, s", "plain / ours")
        for turn in range(options.rounds):
            folders = {
                way: Folder(Path(place) / f"{way}-{turn}", slug, notebooks, plain=way == "plain")
                for way in seconds
            }
            for way, each in seconds.items():
                each.append(round(folders[way].grade(jobs), 2))
            took = [each[-1] for each in seconds.values()]
            table.row(str(turn + 1), *(f"{t:.1f}" for t in took), f"{took[0] / took[1]:.2f}")
        ours = folders["ours"]
        record |= {"seconds": seconds, "same_scores": folders["plain"].scores() == ours.scores()}
        summary, verdicts = ours.summary(), ours.verdicts()
        start = round(seconds["ours"][-1] - summary["seconds"], 2)
        record["spent"] = summary["spent"] | {"start": start}
        record["run"] = {
            step: statistics.median(verdict["seconds"][step] for verdict in verdicts)
            for step in verdicts[0]["seconds"]
        }
        record["growth"] = []
        for size in options.growth:
            folder = Folder(Path(place) / f"n{size}", slug, submissions(slug, size))
            took = folder.grade(jobs)
            row = {"submissions": size, "seconds": round(took, 2), "peak": folder.peak}
            record["growth"].append(row)
        # The largest class in the other ways.
        notebooks = submissions(slug, size)
        ways = {
            "1 at a time": Folder(Path(place) / "one", slug, notebooks).grade(1),
            f"{jobs} at a time": took,
            "2 dask workers": workers(Path(place) / "dask", slug, notebooks, 2),
        }
        record["ways"] = {way: round(each, 2) for way, each in ways.items() if each}
        # The last folder again: the verdicts are reused, and everything is written again.
        for path in (folder.root / "progress" / slug).glob("*.json"):
            path.unlink()
        folder.grade(jobs)
        summary = folder.summary()
        spent = summary["spent"]
        record["writer_processor"] = round(summary["processor"] / size, 4)
        record["writer"] = round((spent["prepare"] + spent["write"]) / size, 4)
        record["bytes"] = {
            name: folder.size(name) // size
            for name in ("submitted", "progress", "autograded", "feedback", "gradebook.db")
        }
        text = nbformat.writes(notebooks[0])
        record["scheduler"] = scheduler({"cells": text})
    return record


def lines(record: dict) -> list[str]:
    """A record as Markdown, for ``docs/scale.md``."""
    number, run, write = record["submissions"], record["run"]["all"], record["writer"]
    ratios = [a / b for a, b in zip(*record["seconds"].values(), strict=True)]
    each = {way: statistics.median(s) / number for way, s in record["seconds"].items()}
    balance = math.ceil(run / write)
    busy = record.get("writer_processor")
    page = [
        f"Measured on {record['date']} (commit {record['commit']}) with {record['device']}, "
        f"{record['cores']} cores, load {record['load']} before: {number} submissions of "
        f"`{record['assignment']}`, {record['jobs']} at a time; Python "
        + ", ".join(f"{name} {v}" for name, v in record["versions"].items()).removeprefix("python ")
        + ".",
        "",
        f"- `nbgrader autograde`: {each['plain']:.2f} s a submission, start included. This path, "
        f"pages included: {each['ours']:.2f} s. So {statistics.median(ratios):.1f} times the "
        f"throughput (rounds: {', '.join(f'{r:.1f}' for r in ratios)}), with "
        f"{'the same scores' if record['same_scores'] else 'OTHER SCORES'}.",
        f"- Running one: {1e3 * run:.0f} ms on one core, of which "
        + ", ".join(f"{1e3 * record['run'][s]:.0f} {s}" for s in ("sandbox", "answer", "test"))
        + ".",
        f"- Writing one, by the one process that writes: {1e3 * write:.0f} ms, so "
        f"{1 / write:.1f} records a second"
        + (f"; {1e3 * busy:.0f} ms of processor time in that process." if busy else "."),
        f"- Carrying one to a worker and back by dask's scheduler: "
        f"{1e3 * record['scheduler']:.1f} ms."
        if record["scheduler"]
        else "- What dask's scheduler takes was not measured: it is not installed.",
        f"- On the disk: {sum(record['bytes'].values()) / 1024:.0f} kB a submission ("
        + ", ".join(f"{name} {size / 1024:.0f}" for name, size in record["bytes"].items())
        + ").",
        "",
        "| submissions | seconds | s a submission | peak memory of the command, MB | of all, MB |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in record["growth"]:
        peaks = (f"{row['peak'][what] / 2**20:.0f}" for what in ("command", "tree"))
        cells = (
            f"{row['submissions']}",
            f"{row['seconds']:.0f}",
            f"{row['seconds'] / row['submissions']:.2f}",
            *peaks,
        )
        page.append(f"| {' | '.join(cells)} |")
    if "ways" in record:
        each = ", ".join(f"{way} {seconds:.0f} s" for way, seconds in record["ways"].items())
        page += ["", f"{row['submissions']} of them on this machine: {each}."]
    page += [
        "",
        f"{CLASS:,} such submissions:",
        "",
        "| cores that run | running, min | writing, min | whole batch, min |",
        "| --- | --- | --- | --- |",
    ]
    for workers in sorted({1, 2, 4, 8, balance}):
        running, writing = CLASS * run / workers / 60, CLASS * write / 60
        whole = max(running, writing)
        page.append(f"| {workers} | {running:.0f} | {writing:.0f} | {whole:.0f} |")
    page += [
        "",
        f"The writer keeps {balance} {'core' if balance == 1 else 'cores'} of workers busy with "
        f"this assignment. One whose run takes ten times as long keeps "
        f"{math.ceil(10 * run / write)} busy.",
    ]
    return page


def quote(record: dict, page: str) -> str:
    """The page, with the record between its marks."""
    before, _, rest = page.partition(MARK)
    _, _, after = rest.partition(END)
    return "\n".join([f"{before}{MARK}", "", *lines(record), "", f"{END}{after}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--submissions", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--growth", type=int, nargs="+", default=[10, 40, 800])
    parser.add_argument("--assignment", default="05-rope")
    parser.add_argument("--out", type=Path, help="write the record there")
    parser.add_argument("--quote", action="store_true", help="bring docs/scale.md up to date only")
    options = parser.parse_args()
    if not options.quote:
        record = measure(options)
        print("\n" + "\n".join(lines(record)))
        if options.out:
            options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if options.quote:
        record = json.loads(RECORD.read_text(encoding="utf-8"))
        PAGE.write_text(quote(record, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
