"""What is wrong with a command's arguments is said before anything is installed."""

import re
import shutil
import subprocess
import sys
import time

import pytest

from grading.course import Course
from tools import ask, start

ROOT = start.ROOT


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A course with one exercise, which nobody has started or submitted."""
    for folder in ("exercises", "solutions"):
        path = tmp_path / folder / "01-small" / "01-small.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text('{"cells": [], "metadata": {}}')
    monkeypatch.setattr(start, "EXERCISES", tmp_path / "exercises")
    monkeypatch.setattr(start, "WORK", tmp_path / "work")
    monkeypatch.setattr(ask, "ROOT", tmp_path)
    monkeypatch.setattr(ask.shutil, "which", lambda name: None)
    return tmp_path


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (["check", ""], "work/ holds no exercise yet: make start EXERCISE=01-attention"),
        (["check", "01"], "work/01-small/01-small.ipynb is not there yet: make start EXERCISE="),
        (["check", "77"], "there is no exercise '77'"),
        (["lab", "77"], "there is no exercise '77'"),
        (["grade", "77", ""], "there is no assignment '77' in solutions/; there is: 01-small"),
        (["grade", "01-small", ""], "nobody has submitted '01-small': there is no submitted/NAME/"),
        (["grade", "01-small", "many"], "JOBS is a number from 1 to 999, got 'many'"),
        (["grade", "01-small", "0"], "JOBS is a number from 1 to 999, got '0'"),
        (["forget", ""], "say whose: make forget LEARNER=name"),
        (["port", "80000"], "PORT is a number from 1 to 65535, got '80000'"),
        (["port", "eight"], "PORT is a number from 1 to 65535, got 'eight'"),
        (["chromium"], "there is no chromium: install it"),
        (["hub", "8000"], "there is no node: install it (Debian, Ubuntu: apt-get install nodejs)"),
        (["hub", "eight"], "PORT is a number from 1 to 65535, got 'eight'"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("folders")
def test_what_is_wrong_is_said(question, answer, capsys):
    assert ask.main(question) == 2
    assert answer in capsys.readouterr().err


def test_what_can_be_done_is_not_objected_to(folders, monkeypatch, capsys):
    start.main(["01-small"])
    (folders / "submitted" / "ada" / "01-small").mkdir(parents=True)
    monkeypatch.setattr(ask.shutil, "which", lambda name: f"/bin/{name}")
    capsys.readouterr()
    for question in ("check ", "check 01", "lab ", "lab 01", "grade 01-small ", "grade 01-small 2"):
        assert ask.main(question.split(" ")) == 0
    for question in ("port 8000", "hub 8000", "chromium"):
        assert ask.main(question.split(" ")) == 0
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


def test_grading_wants_a_sandbox(folders, capsys):
    (folders / "submitted" / "ada" / "01-small").mkdir(parents=True)
    assert ask.main(["grade", "01-small", ""]) == 2
    assert "there is no bwrap: install it" in capsys.readouterr().err


def test_without_exercises_lab_says_what_to_do(folders, monkeypatch, capsys):
    monkeypatch.setattr(start, "EXERCISES", folders / "nothing")
    assert ask.main(["lab", ""]) == 2
    assert "run `make exercises`" in capsys.readouterr().err


def test_the_folders_are_those_of_grading():
    course = Course.open(ROOT)
    assert course.directory().source_directory == ask.SOURCE
    assert course.submitted == ROOT / ask.SUBMITTED


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "EXERCISE=77-nothing"],
        ["lab", "EXERCISE=77-nothing"],
        ["grade", "ASSIGNMENT=77-nothing"],
        ["serve", "PORT=eight"],
        ["hub", "PORT=eight"],
    ],
    ids=" ".join,
)
def test_make_asks_before_it_installs(arguments, tmp_path):
    """With a copy of the Makefile and of tools/, but no .venv: nothing of it appears."""
    shutil.copytree(ROOT / "tools", tmp_path / "tools", ignore=shutil.ignore_patterns("fonts"))
    locks = ("requirements.lock", "weights.lock")
    for name in ("Makefile", "exercises", "solutions", "pyproject.toml", *locks):
        (tmp_path / name).symlink_to(ROOT / name)
    command = ["make", "--jobs=4", f"PYTHON={sys.executable} -S", *arguments]
    begun = time.monotonic()
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "[env]" not in done.stdout
    assert re.search("there is no (exercise|assignment) '77-nothing'|PORT is a number", done.stderr)
    assert time.monotonic() - begun < 20
    assert not (tmp_path / ".venv").exists()
