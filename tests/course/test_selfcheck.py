"""``make check``: each task is done, not yet, or failing with its reason, in any notebook."""

import json
import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools import exercises, selfcheck, start

NAME = "01-small"
STUB = "def f{0}(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()"
TEST = """got = f{0}(3)
assert got == 6, f'f{0}(3) should be 6, got {{got}}'
probe.also("negative numbers, and {0} of "
           "them at once")"""
ANSWERS = {
    1: "def f1(x):\n    return helper(x)",
    2: None,  # as released
    3: "def f3(x):\n    return (2 * x",
    4: "def f4(x):\n    return x",
    5: "def f5(x):\n    while True:\n        pass",
    6: "def f6(x):\n    import os\n    os._exit(0)",
    7: """def f7(x):
    while True:
        try:
            while True:
                pass
        except KeyboardInterrupt:
            pass""",
    8: "y = 1\nf8 = helper.missing",
    9: "def f9(x):\n    raise NotImplementedError('later')",
    10: "def f10(x):\n    return helper(x)",
}


def cell(name, source, **marks):
    made = new_code_cell(source, id=name)
    base = {"grade": False, "locked": False, "solution": False, "task": False}
    made.metadata["nbgrader"] = {"grade_id": name, "schema_version": 3, **base, **marks}
    return made


def release() -> nbformat.NotebookNode:
    given = "given = 2\nclass probe:\n    also = print"
    cells = [cell("setup", given, locked=True)]
    for number in ANSWERS:
        cells += [
            new_markdown_cell(f"## Task {number} · Twice\n\nText.", id=f"t{number}"),
            cell(f"a{number}", STUB.format(number), solution=True),
            cell(f"g{number}", TEST.format(number), grade=True, locked=True, points=1),
            new_code_cell("raise SystemExit('a picture')", id=f"picture{number}"),
        ]
    return new_notebook(cells=cells)


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """The learner's copy of an exercise; the others of the course are out of sight."""
    monkeypatch.setattr(start, "EXERCISES", tmp_path / "exercises")
    monkeypatch.setattr(start, "WORK", tmp_path / "work")
    monkeypatch.setattr(selfcheck, "PATIENCE", 0.5)
    (tmp_path / "exercises" / NAME).mkdir(parents=True)
    nbformat.write(release(), tmp_path / "exercises" / NAME / f"{NAME}.ipynb")
    start.main([NAME])
    return start.mine(NAME)


def blocks(output: str) -> dict[str, str]:
    """What was said of each task, by its number."""
    parts = re.split(r"^(?=  \w.* Task \d)", output.split("\n\n")[0], flags=re.MULTILINE)[1:]
    return {part.split("Task ")[1].split(" ")[0]: " ".join(part.split()) for part in parts}


def test_every_task_gets_its_word_and_one_bad_cell_costs_no_other(copy, capsys):
    notebook = nbformat.read(copy, as_version=4)
    for answer in notebook.cells:
        if answer.id.startswith("a") and ANSWERS[int(answer.id[1:])]:
            answer.source = ANSWERS[int(answer.id[1:])]
    notebook.cells.insert(1, new_code_cell("def helper(x):\n    return given * x", id="my-own"))
    nbformat.write(notebook, copy)
    assert selfcheck.main([NAME, "--seconds", "2"]) == 1
    output = capsys.readouterr().out
    verdicts = blocks(output)
    assert verdicts["1"] == "done Task 1 · Twice"
    assert verdicts["2"] == "not yet Task 2 · Twice Nothing filled in yet."
    assert "fails Task 3" in verdicts["3"]
    assert "Your cell stops with SyntaxError: '(' was never closed" in verdicts["3"]
    assert "in line 2: return (2 * x" in verdicts["3"]
    assert "f4(3) should be 6, got 3" in verdicts["4"]
    assert "ran for 2 s and was stopped. Is there an endless loop?" in verdicts["5"]
    assert "called by the test, ended Python" in verdicts["6"]
    assert "ran for 2 s and was stopped" in verdicts["7"]
    assert "Your cell stops with AttributeError" in verdicts["8"]
    assert "in line 2: f8 = helper.missing" in verdicts["8"]
    assert "NotImplementedError: later" in verdicts["9"], "that is not the stub's"
    assert "fails" in verdicts["9"]
    # After three kernels that had to be replaced, what came before is known again.
    assert verdicts["10"] == "done Task 10 · Twice"
    assert "2 of 10 tasks done, 7 fails, 1 not yet." in output
    assert "a picture" not in output


def solve(copy, **otherwise):
    notebook = nbformat.read(copy, as_version=4)
    for each in notebook.cells:
        if each.id.startswith("a"):
            each.source = f"def f{each.id[1:]}(x):\n    return 2 * x"
        each.source = otherwise.get(each.id, each.source)
    notebook.cells = [each for each in notebook.cells if each.source is not None]
    nbformat.write(notebook, copy)


def test_a_full_notebook_is_done_and_the_exit_status_says_so(copy, capsys):
    solve(copy)
    assert selfcheck.main([]) == 0
    output = capsys.readouterr().out
    assert "10 of 10 tasks done." in output
    assert "hidden ones look at more" in output
    assert output.count("negative numbers") == 10
    assert output.endswith("  Task 10 · Twice: negative numbers, and 10 of them at once.\n")
    assert "given cells" not in output


def test_changed_and_deleted_tests_are_put_back(copy, capsys):
    solve(copy, a1="def f1(x):\n    return 0", g1="assert True", a2="def f2(x): return 1", g2=None)
    assert selfcheck.main([NAME]) == 1
    output = " ".join(capsys.readouterr().out.split())
    assert "f1(3) should be 6, got 0" in output
    assert "f2(3) should be 6, got 1" in output
    assert "The given cells g1, g2 are not as released in your notebook." in output


def test_a_copy_of_an_older_release_is_told_of_the_newer_one(copy, capsys):
    solve(copy)
    newer = release()
    newer.cells[3].source = "assert f1(4) == 9, 'new in this release'"
    nbformat.write(newer, start.EXERCISES / NAME / f"{NAME}.ipynb")
    assert selfcheck.main([NAME]) == 1
    output = " ".join(capsys.readouterr().out.split())
    assert "new in this release" in output
    assert "given cells g1 are not as released in your notebook: there is a newer release" in output


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "The file is empty"),
        (b'{"cells": [', "its JSON is broken"),
        (b"<<<<<<< HEAD\n{}", "its JSON is broken (line 1)"),
        ("café".encode("latin-1"), "is not UTF-8"),
        (b"[]", "is JSON, but not a notebook"),
        (json.dumps({"nbformat": 3, "worksheets": []}).encode(), "has format 3"),
        (
            json.dumps({"nbformat": 4, "cells": [{"cell_type": "code"}]}).encode(),
            "Cell 1 of the notebook has no text",
        ),
    ],
    ids=["empty", "cut", "merge", "latin", "list", "old", "sourceless"],
)
def test_a_broken_file_is_said_in_words(copy, capsys, content, reason):
    copy.write_bytes(content)
    assert selfcheck.main([NAME]) == 2
    captured = capsys.readouterr()
    output = " ".join(captured.err.split())
    assert f"work/{NAME}/{NAME}.ipynb cannot be checked." in output
    assert reason in output
    assert "Revert Notebook to Checkpoint" in output
    assert "hand in" not in output
    assert copy.read_bytes() == content


def test_what_is_not_there_is_said_with_the_command_that_makes_it(copy, capsys):
    copy.unlink()
    assert selfcheck.main([NAME]) == 2
    assert f"is not there yet: make start EXERCISE={NAME}" in capsys.readouterr().err
    assert selfcheck.main([]) == 2
    assert "holds no exercise yet: make start" in capsys.readouterr().err
    assert selfcheck.main(["77-nothing"]) == 2
    assert "there is no exercise '77-nothing'" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("slug", exercises.slugs())
def test_every_exercise_is_not_yet_when_blank_and_done_when_solved(
    slug, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(start, "WORK", tmp_path / "work")
    start.main([slug])
    assert selfcheck.main([slug]) == 1
    output = capsys.readouterr().out
    count = len(selfcheck.tasks(nbformat.read(start.mine(slug), as_version=4)))
    assert f"0 of {count} tasks done, {count} not yet." in output
    start.mine(slug).write_bytes((exercises.SOLUTIONS / slug / f"{slug}.ipynb").read_bytes())
    assert selfcheck.main([slug]) == 0
    assert f"{count} of {count} tasks done." in capsys.readouterr().out
