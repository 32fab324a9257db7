"""Grading a class: plain `nbgrader autograde`, beside this course's sandbox and split verdict.

    python -m benchmarks.grading [--submissions 40] [--jobs 2] [--assignment 05-rope]

The same submissions, honest ones of the answer bank, are graded in two course folders: in one by
nbgrader as it comes, in the other by ``python -m grading``, which also writes each learner's
feedback page. Both run as commands, in turn, in pieces of ten submissions; a ratio is taken for
each piece. The scores must be the same. Where the time of a submission goes is asked of the
verdicts. Then the batch is graded again with four times as many, for how time and memory grow.
"""

import argparse
import json
import os
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat

from benchmarks.machine import ROOT, Table, describe, ratio
from tools import answers

PIECE = 10
PLAIN = """c = get_config()
c.CourseDirectory.course_id = "plain"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.ExecutePreprocessor.timeout = 120
"""


class Folder:
    """A course folder with submissions, and a way to grade them."""

    def __init__(self, root: Path, slug: str, *, plain: bool):
        self.root, self.slug, self.plain = root, slug, plain
        folder = root / "solutions" / slug
        folder.mkdir(parents=True)
        shutil.copy(ROOT / "solutions" / slug / f"{slug}.ipynb", folder)
        config = root / "nbgrader_config.py"
        if plain:
            config.write_text(PLAIN)
            self.call("nbgrader", "generate_assignment", slug, "--force")
        else:
            shutil.copy(ROOT / "nbgrader_config.py", config)
        self.peak = 0

    def hand_in(self, learner: str, notebook: nbformat.NotebookNode) -> None:
        folder = self.root / "submitted" / learner / self.slug
        folder.mkdir(parents=True)
        nbformat.write(notebook, folder / f"{self.slug}.ipynb")

    def call(self, module: str, *words: str) -> float:
        """Run a command in the folder; seconds."""
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", module, *words],
            cwd=self.root,
            env=os.environ
            | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
            # nbgrader starts `alembic` by its name
            | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
        )
        seconds = time.perf_counter() - start
        if done.returncode:
            sys.exit(f"{module} {' '.join(words)} failed:\n{done.stderr[-3000:]}")
        return seconds

    def grade(self, learners: list[str], jobs: int) -> float:
        """Grade these learners' submissions; seconds."""
        if self.plain:
            # nbgrader takes one learner, or all: what was graded before it leaves alone.
            return self.call("nbgrader", "autograde", self.slug)
        return self.call("grading", self.slug, "--jobs", str(jobs), "--learner", *learners)

    def scores(self) -> dict[str, float]:
        query = """select submitted_assignment.student_id, total(grade.auto_score)
            from grade join submitted_notebook on grade.notebook_id = submitted_notebook.id
            join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id
            group by 1"""
        with sqlite3.connect(self.root / "gradebook.db") as database:
            return dict(database.execute(query).fetchall())


def submissions(slug: str, number: int) -> list[nbformat.NotebookNode]:
    """Right and wrong answers of the bank, in released notebooks: no two in a row are the same."""
    bank = answers.bank(slug, "right") + answers.bank(slug, "wrong")
    chosen = []
    for place in range(number):
        notebook = answers.notebook(slug, "exercises")
        answer = bank[place * 7 % len(bank)]
        for cell in notebook.cells:
            cell.source = answer.cells.get(cell.id, cell.source)
        notebook.cells[0].source += f"\n\nSubmission {place}."
        chosen.append(notebook)
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--submissions", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--assignment", default="05-rope")
    options = parser.parse_args()
    if options.submissions < 2 * PIECE:
        parser.error(f"--submissions {options.submissions}: at least {2 * PIECE} are needed")
    slug = options.assignment
    print(f"grading {options.submissions} submissions of {slug}; {describe()}\n")
    notebooks = submissions(slug, options.submissions)
    with tempfile.TemporaryDirectory(prefix="grading-") as place:
        plain = Folder(Path(place) / "plain", slug, plain=True)
        ours = Folder(Path(place) / "ours", slug, plain=False)
        seconds: dict[str, list[float]] = {"plain": [], "ours": []}
        for start in range(0, len(notebooks), PIECE):
            names = [f"learner-{n:03d}" for n in range(start, min(start + PIECE, len(notebooks)))]
            for name, notebook in zip(names, notebooks[start:], strict=False):
                plain.hand_in(name, notebook)
                ours.hand_in(name, notebook)
            seconds["plain"].append(plain.grade(names, options.jobs) / len(names))
            seconds["ours"].append(ours.grade(names, options.jobs) / len(names))
        same = plain.scores() == ours.scores()
        table = Table("way", "s/submission", "of plain's throughput")
        for name, each in seconds.items():
            table.row(name, f"{statistics.median(each):.2f}", ratio(seconds["plain"], each))
        print(f"\nscores are {'the same' if same else 'NOT the same'}")
        stored = (ours.root / "progress" / slug / "verdicts").glob("*.json")
        verdicts = [json.loads(path.read_text()) for path in stored]
        print("\nwhere a submission's run goes, ms, median:")
        table = Table("step", "ms")
        for step in verdicts[0]["seconds"]:
            table.row(step, f"{1e3 * statistics.median(v['seconds'][step] for v in verdicts):.0f}")
        more = Folder(Path(place) / "more", slug, plain=False)
        table = Table("submissions", "s/submission", "peak memory, MB")
        for number in (10, options.submissions, 4 * options.submissions):
            folder = more if number == 10 else Folder(Path(place) / f"n{number}", slug, plain=False)
            names = [f"learner-{n:03d}" for n in range(number)]
            for name, notebook in zip(names, submissions(slug, number), strict=True):
                folder.hand_in(name, notebook)
            took = folder.grade(names, options.jobs)
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            table.row(str(number), f"{took / number:.2f}", f"{peak:.0f}")


if __name__ == "__main__":
    main()
