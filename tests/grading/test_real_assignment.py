"""The first exercise of the course, from its release to scores: solved, begun, blank and wrong."""

import re
import shutil

import nbformat
import pytest
from course_folder import ROOT, Folder

from tools import answers

NAME = "01-attention"
SOURCE = answers.notebook(NAME)
POINTS = answers.graded(SOURCE)
KINDS = {"solution": [], "grade": []}
for cell in SOURCE.cells:
    for kind, names in KINDS.items():
        if cell.metadata.get("nbgrader", {}).get(kind):
            names.append(cell.id)
BEGUN = KINDS["solution"][:2]  # the first two tasks
WRONG = answers.bank(NAME, "wrong")[0]


def _release(filled: dict[str, str]) -> nbformat.NotebookNode:
    """What a learner downloads, with some cells filled in."""
    notebook = answers.notebook(NAME, "exercises")
    for cell in notebook.cells:
        cell.source = filled.get(cell.id, cell.source)
    return notebook


def _solutions(names: list[str]) -> dict[str, str]:
    return {cell.id: cell.source for cell in SOURCE.cells if cell.id in names}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    folder = Folder(tmp_path_factory.mktemp("course"), NAME)
    shutil.copytree(ROOT / "solutions" / NAME, folder.root / "solutions" / NAME)
    everything = _solutions(KINDS["solution"])
    folder.hand_in("full", _release(everything))
    folder.hand_in("partial", _release(_solutions(BEGUN)))
    folder.hand_in("blank", _release({}))
    folder.hand_in("wrong", _release({**everything, **WRONG.cells}))
    folder.hand_in("cut", b'{"nbformat": 4, "cells": [')
    folder.code = folder.grade()
    return folder


def _cells(row: dict[str, str]) -> dict[str, float]:
    return {name: float(row[name]) for name in POINTS}


def test_a_full_answer_gets_every_point_and_a_blank_one_none(course):
    assert course.code == 0
    table = course.table()
    total = sum(POINTS.values())
    assert {float(row["max_score"]) for row in table.values()} == {total}
    assert _cells(table["full"]) == POINTS
    assert float(table["full"]["score"]) == total
    assert set(_cells(table["blank"]).values()) == {0.0}
    assert course.scores()["blank"] == ("0.0", "graded")
    assert course.scores()["cut"] == ("0.0", "zero")


def test_a_begun_answer_gets_the_points_of_what_was_done(course):
    order = [cell.id for cell in SOURCE.cells]
    end = order.index(KINDS["solution"][len(BEGUN)])
    done = [name for name in KINDS["grade"] if order.index(name) < end]
    assert 0 < len(done) < len(POINTS)
    expected = {name: points if name in done else 0.0 for name, points in POINTS.items()}
    row = course.table()["partial"]
    assert _cells(row) == expected
    assert float(row["score"]) == sum(expected.values())
    assert course.gradebook()["partial"] == sum(expected.values())


def test_a_wrong_answer_loses_in_a_real_kernel_what_the_bank_says(course):
    cells = _cells(course.table()["wrong"])
    assert {name for name, points in cells.items() if points < POINTS[name]} == WRONG.loses
    assert "Tried: " in course.page("wrong")


def test_feedback_holds_no_hidden_test(course):
    shown = "".join(cell.source for cell in answers.notebook(NAME, "exercises").cells)
    hidden = {
        name
        for cell in SOURCE.cells
        for name in re.findall(r"^def (\w+)", cell.source, re.MULTILINE)
        if name not in shown
    }
    assert len(hidden) > 5
    for learner in ("full", "partial", "blank", "wrong"):
        page = course.page(learner)
        assert not [name for name in hidden if name in page]
