"""``make start`` and the copies of chapters: what is copied, and that nothing is overwritten."""

import json
import os
import subprocess
import sys

import pytest

from tools import start

NAME = "01-small"


def notebook(*texts: str) -> dict:
    cells = [
        {"cell_type": "code", "id": f"c{place}", "metadata": {}, "outputs": [], "source": [text]}
        for place, text in enumerate(texts)
    ]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course with two exercises and a chapter; the function changes what is in one of them."""

    def write(folder: str, name: str, *texts: str) -> None:
        path = tmp_path / folder / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(notebook(*texts)))

    write(f"exercises/{NAME}", NAME, "first release")
    write("exercises/02-other", "02-other", "another")
    write("book", NAME, "first edition")
    for name, folder in (("EXERCISES", "exercises"), ("BOOK", "book"), ("WORK", "work")):
        monkeypatch.setattr(start, name, tmp_path / folder)
    return write


def texts(path) -> list[str]:
    return ["".join(cell["source"]) for cell in start.read(path)["cells"]]


def type_into(path, text: str) -> None:
    """Change a cell as JupyterLab would save it: with outputs, and the text as one string."""
    notebook = start.read(path)
    notebook["cells"][0]["source"] = text
    notebook["cells"][0]["outputs"] = [{"name": "stdout", "output_type": "stream", "text": "out"}]
    path.write_text(json.dumps(notebook))


@pytest.mark.usefixtures("course")
def test_the_first_start_copies_and_says_where(capsys):
    assert start.main([NAME]) == 0
    output = capsys.readouterr().out
    assert f"work/{NAME}/{NAME}.ipynb is yours now" in output
    assert f"make check EXERCISE={NAME}" in output
    assert texts(start.mine(NAME)) == ["first release"]
    assert start.started() == [NAME]
    assert os.listdir(start.mine(NAME).parent) == [f"{NAME}.ipynb"]


def test_a_second_start_overwrites_nothing(course, capsys):
    start.main([NAME])
    type_into(start.mine(NAME), "my answer")
    before = start.mine(NAME).read_bytes()
    capsys.readouterr()
    assert start.main([NAME]) == 0
    output = capsys.readouterr().out
    assert f"work/{NAME}/{NAME}.ipynb was there already and was not overwritten" in output
    assert "newer" not in output
    course(f"exercises/{NAME}", NAME, "second release")
    assert start.main([NAME]) == 0
    assert "newer release of this exercise. To get it" in capsys.readouterr().out
    assert start.mine(NAME).read_bytes() == before
    assert os.listdir(start.mine(NAME).parent) == [f"{NAME}.ipynb"]


def test_a_newer_release_is_put_beside_under_another_name_if_asked_for(course, capsys):
    start.main([NAME])
    assert start.main([NAME, "--new"]) == 0
    assert "no newer release" in capsys.readouterr().out
    type_into(start.mine(NAME), "my answer")
    course(f"exercises/{NAME}", NAME, "second release")
    start.main([NAME, "--new"])
    beside = start.mine(NAME).with_name(f"{NAME}-new.ipynb")
    assert f"beside it: work/{NAME}/{NAME}-new.ipynb" in capsys.readouterr().out
    assert texts(beside) == ["second release"]
    type_into(beside, "my other answer")
    for arguments in ([NAME], [NAME, "--new"]):  # it is there: told again, not written again
        start.main(arguments)
        assert f"beside it: work/{NAME}/{NAME}-new.ipynb" in capsys.readouterr().out
    course(f"exercises/{NAME}", NAME, "third release")
    start.main([NAME, "--new"])
    assert texts(beside) == ["my other answer"]
    assert texts(start.mine(NAME)) == ["my answer"]
    assert texts(start.mine(NAME).with_name(f"{NAME}-new-2.ipynb")) == ["third release"]


def test_whoever_renames_the_newer_release_has_gone_over_to_it(course, capsys):
    start.main([NAME])
    course(f"exercises/{NAME}", NAME, "second release")
    start.main([NAME, "--new"])
    start.mine(NAME).rename(start.mine(NAME).with_name("old.ipynb"))
    start.mine(NAME).with_name(f"{NAME}-new.ipynb").rename(start.mine(NAME))
    capsys.readouterr()
    start.main([NAME])
    assert "newer" not in capsys.readouterr().out


@pytest.mark.usefixtures("course")
def test_a_broken_or_linked_copy_is_left_alone_too(tmp_path, capsys):
    start.mine(NAME).parent.mkdir(parents=True)
    start.mine(NAME).write_text("{ not a notebook")
    assert start.main([NAME]) == 0
    assert "was not overwritten" in capsys.readouterr().out
    assert start.mine(NAME).read_text() == "{ not a notebook"
    start.mine(NAME).unlink()
    start.mine(NAME).symlink_to(tmp_path / "nowhere.ipynb")
    assert start.main([NAME]) == 0
    assert not (tmp_path / "nowhere.ipynb").exists()


@pytest.mark.usefixtures("course")
def test_where_files_cannot_be_linked_nothing_is_overwritten_either(monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert start.main([NAME]) == 0
    type_into(start.mine(NAME), "my answer")
    assert start.main([NAME]) == 0
    assert texts(start.mine(NAME)) == ["my answer"]


@pytest.mark.usefixtures("course")
@pytest.mark.parametrize("asked", ["03-nothing", "", "0"])
def test_an_exercise_that_there_is_not_is_answered_with_those_there_are(asked, capsys):
    assert start.main([asked]) == 2
    output = capsys.readouterr().err
    assert f"  {NAME}\n  02-other\n" in output
    assert not start.WORK.exists()


@pytest.mark.usefixtures("course")
def test_the_number_alone_will_do():
    assert start.find("01") == NAME


def test_another_notebook_beside_a_released_one_is_no_exercise(course):
    """Whoever tried something out in ``exercises/`` can go on with every command."""
    course(f"exercises/{NAME}", "Untitled", "tried out")
    course(f"exercises/{NAME}", f"{NAME}-Copy1", "tried out")
    course("exercises/.ipynb_checkpoints", "note-checkpoint", "kept by JupyterLab")
    assert start.slugs() == [NAME, "02-other"]
    assert start.main([NAME]) == 0
    assert start.started() == [NAME]


def test_chapters_are_renewed_unless_the_learner_changed_them(course):
    copy = start.WORK / "chapters" / f"{NAME}.ipynb"
    assert start.chapters() == []
    assert texts(copy) == ["first edition"]
    type_into(copy, "first edition")  # run, not changed
    assert start.chapters() == []
    assert start.read(copy)["cells"][0]["outputs"], "outputs stay while there is nothing newer"
    course("book", NAME, "second edition")
    assert start.chapters() == []
    assert texts(copy) == ["second edition"]
    type_into(copy, "my experiment")
    assert start.chapters() == [], "nothing newer, nothing to tell"
    course("book", NAME, "third edition")
    assert start.chapters() == [f"{NAME}.ipynb"]
    assert texts(copy) == ["my experiment"]


@pytest.mark.usefixtures("course")
def test_a_chapter_that_is_now_shown_otherwise_is_renewed_too():
    """The course's update may change how a chapter is shown, and not the chapter."""

    def louder(text):
        return lambda book: {**book, "cells": notebook(text)["cells"]}

    copy = start.WORK / "chapters" / f"{NAME}.ipynb"
    start.chapters(louder("first"))
    start.chapters(louder("first!"))
    assert texts(copy) == ["first!"]
    type_into(copy, "my experiment")
    assert start.chapters(louder("first!!")) == [], "the book has no newer one"
    assert texts(copy) == ["my experiment"]


def test_git_ignores_the_folder_and_a_bare_python_makes_it(tmp_path):
    """``make start`` comes before any installation."""
    command = ["git", "check-ignore", "work", "work/05-rope/05-rope.ipynb"]
    assert subprocess.run(command, cwd=start.ROOT, capture_output=True).returncode == 0
    done = subprocess.run(
        [sys.executable, "-I", "-S", start.ROOT / "tools/run.py", "tools.start", "nothing"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2, done.stderr
    assert "  05-rope\n" in done.stderr
