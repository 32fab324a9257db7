"""A small course in a temporary folder: one assignment, no packages to import, quick to grade."""

import csv
import json
import shutil
import sqlite3
from pathlib import Path

import nbformat
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from grading.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
NAME = "warmup"
SECRET = "secret_expectation"

DOUBLE = """def double(x):
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION"""
TEST_DOUBLE = f"""assert double(1) == 2, "double(1) should be 2"
### BEGIN HIDDEN TESTS
{SECRET} = 14
assert double(7) == {SECRET}, f"double(7) should be 14, got {{double(7)}}"
### END HIDDEN TESTS"""
SHOUT = """def shout(text):
    ### BEGIN SOLUTION
    return text.upper() + "!"
    ### END SOLUTION"""
TEST_SHOUT = """assert shout("a") == "A!", "shout('a') should be 'A!'"
### BEGIN HIDDEN TESTS
assert shout("bc") == "BC!", "shout('bc') should be 'BC!'"
### END HIDDEN TESTS"""


def _cell(name: str, source: str, *, points: int | None = None):
    marks = {"grade_id": name, "schema_version": 3, "task": False}
    marks |= {"solution": points is None, "grade": points is not None, "locked": points is not None}
    if points is not None:
        marks["points"] = points
    cell = new_code_cell(source, id=name)
    cell.metadata["nbgrader"] = marks
    return cell


def source() -> nbformat.NotebookNode:
    """The instructor's notebook: 2 points for double, 3 for shout."""
    cells = [
        new_markdown_cell("# Warm-up", id="title"),
        _cell("double", DOUBLE),
        _cell("double-test", TEST_DOUBLE, points=2),
        _cell("shout", SHOUT),
        _cell("shout-test", TEST_SHOUT, points=3),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


def answers(double: str | None = None, shout: str | None = None) -> nbformat.NotebookNode:
    """What a learner hands in: the release, with answers where they are given."""
    notebook = source()
    blank = "raise NotImplementedError()"
    given = {
        "double": double or f"def double(x):\n    {blank}",
        "shout": shout or f"def shout(text):\n    {blank}",
        "double-test": TEST_DOUBLE.split("\n###")[0],
        "shout-test": TEST_SHOUT.split("\n###")[0],
    }
    for cell in notebook.cells:
        cell.source = given.get(cell.id, cell.source)
    return notebook


RIGHT = {
    "double": "def double(x):\n    return x + x",
    "shout": "def shout(text):\n    return f'{text.upper()}!'",
}


class Folder:
    """A course folder, what is handed in to it, and what comes out of it."""

    def __init__(self, root: Path, assignment: str = NAME):
        self.root = root
        self.assignment = assignment
        shutil.copy(ROOT / "nbgrader_config.py", root)

    def publish(self, notebook: nbformat.NotebookNode) -> None:
        folder = self.root / "solutions" / self.assignment
        folder.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, folder / f"{self.assignment}.ipynb")

    def path(self, learner: str) -> Path:
        """Where a learner's notebook goes."""
        folder = self.root / "submitted" / learner / self.assignment
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{self.assignment}.ipynb"

    def hand_in(self, learner: str, what) -> None:
        """Hand in a notebook, or bytes as they are."""
        data = what if isinstance(what, bytes) else json.dumps(what).encode()
        self.path(learner).write_bytes(data)

    def grade(self, *options: str) -> int:
        return main([self.assignment, "--course", str(self.root), *options])

    def table(self) -> dict[str, dict[str, str]]:
        """The CSV, by learner."""
        path = self.root / "reports" / f"grades-{self.assignment}.csv"
        with path.open(newline="", encoding="utf-8") as file:
            return {row["learner"]: row for row in csv.DictReader(file)}

    def scores(self) -> dict[str, tuple[str, str]]:
        return {name: (row["score"], row["status"]) for name, row in self.table().items()}

    def gradebook(self) -> dict[str, float]:
        """What nbgrader's own database says: the sum of each learner's automatic scores."""
        query = """select submitted_assignment.student_id, total(grade.auto_score)
            from grade join submitted_notebook on grade.notebook_id = submitted_notebook.id
            join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id
            group by 1"""
        with sqlite3.connect(self.root / "gradebook.db") as database:
            result = dict(database.execute(query).fetchall())
        database.close()
        return result

    def page(self, learner: str) -> str:
        path = self.root / "feedback" / learner / self.assignment / f"{self.assignment}.html"
        return path.read_text(encoding="utf-8")

    def words(self, learner: str) -> str:
        """A feedback page as it is read, without the spaces of its HTML."""
        return " ".join(BeautifulSoup(self.page(learner), "html.parser").body.text.split())
