"""What is read of a submission, and the reason that each broken kind gets."""

import json
import os
import socket
from datetime import datetime

import pytest
from course_folder import NAME, answers

from grading import notebook, submission


def test_a_notebook_is_read_cell_by_cell():
    book = answers(double="def double(x):\n    return 'ü'")
    cells = notebook.parse(json.dumps(book).encode())
    assert [cell.grade_id for cell in cells] == [
        None,
        "double",
        "double-test",
        "shout",
        "shout-test",
    ]
    assert [cell.kind for cell in cells] == ["markdown", "code", "code", "code", "code"]
    assert cells[1].source == "def double(x):\n    return 'ü'"


def test_a_byte_order_mark_and_lines_in_a_list_are_fine():
    book = answers()
    book.cells[1].source = ["def double(x):\n", "    return 0"]
    cells = notebook.parse(b"\xef\xbb\xbf" + json.dumps(book).encode())
    assert cells[1].source == "def double(x):\n    return 0"


def _with(**changes):
    return json.dumps({**answers(), **changes}).encode()


def _cell(**changes):
    return _with(cells=[{"cell_type": "code", "source": "", "metadata": {}, **changes}])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (json.dumps(answers()).encode()[:500], r"JSON is broken \(line 1\).*cut off"),
        (b"PK\x03\x04\xff\xfe", "not UTF-8 text"),
        ('{"cells": "é"}'.encode("latin-1"), "not UTF-8 text"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"nbformat": ' + b"9" * 5000 + b"}", "JSON is broken"),
        (b"[]", "not a notebook"),
        (b'{"cells": []}', "not a notebook"),
        (_with(nbformat=3, worksheets=[]), "format 3, and format 4 is needed"),
        (_with(nbformat=5), "format 5"),
        (_with(nbformat="4"), "format unknown"),
        (_with(cells={}), "no list of cells"),
        (_with(cells=[{}] * (notebook.MAX_CELLS + 1)), r"2001 cells.*at most 2000"),
        (_with(cells=[1]), "Cell 1 of the notebook is of no known kind"),
        (_cell(cell_type="shell"), "Cell 1 of the notebook is of no known kind"),
        (_cell(source=None), "Cell 1 of the notebook has no text"),
        (_cell(source=[1]), "Cell 1 of the notebook has no text"),
        (_cell(source="\ud800"), "Cell 1 holds a character that is no text"),
    ],
)
def test_a_broken_file_gets_its_reason(data, reason):
    with pytest.raises(notebook.Reject, match=reason):
        notebook.parse(data)


@pytest.mark.parametrize("metadata", [None, [], {"nbgrader": 1}, {"nbgrader": {"grade_id": []}}])
def test_metadata_of_any_shape_does_no_harm(metadata):
    (cell,) = notebook.parse(_cell(metadata=metadata, id=7))
    assert (cell.grade_id, cell.cell_id) == (None, None)


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "ada" / NAME
    path.mkdir(parents=True)
    return path


def _collect(folder):
    return submission.collect(folder, "ada", NAME)


def test_a_submission_is_bytes_and_a_time(folder):
    (folder / f"{NAME}.ipynb").write_bytes(b"{}")
    (folder / "timestamp.txt").write_text("2026-03-01 12:00:00 UTC\n")
    got = _collect(folder)
    assert (got.data, got.problem, got.timestamp) == (b"{}", "", datetime(2026, 3, 1, 12))


@pytest.mark.parametrize(
    "stamp",
    [
        "yesterday-ish",
        "",
        "9" * 99,
        "x" * 500,
        "2026-03-01 12:00:00 UTC,7200,3",  # a zone that dateutil takes, and then fails at
        "2026-03-01 12:00:00 ../../../../etc/hosts",  # and one that it opens
        "2026-03-01 12:00:00 UTC<script>",  # dateutil passes over what it does not know
        "0001-01-01 00:00:00",
        "9999-12-31 23:59:59",
    ],
)
def test_a_time_that_is_none_is_noted_and_the_rest_stands(folder, stamp):
    (folder / f"{NAME}.ipynb").write_bytes(b"{}")
    (folder / "timestamp.txt").write_text(stamp)
    got = _collect(folder)
    assert (got.data, got.timestamp) == (b"{}", None)
    assert "timestamp.txt is no date of the years 1970 to 2199" in got.note


def _link(path):
    secret = path.parent.parent / "secret"
    secret.write_text("{}")
    path.symlink_to(secret)


def _socket(path):
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(path.parent)  # a socket's whole path may have 107 bytes
        try:
            server.bind(path.name)
        finally:
            os.chdir(here)


def _large(path):
    with path.open("wb") as file:
        file.truncate(submission.MAX_BYTES + 1)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (_link, "is a link"),
        (lambda path: path.symlink_to("nowhere"), "is a link"),
        (os.mkfifo, "is not a file"),
        (_socket, "is not a file"),
        (os.mkdir, "is not a file"),
        (_large, "larger than 10 MB"),
        (lambda path: None, "is missing. The folder holds: nothing"),
        (lambda path: (path.parent / "my\x1b[2Jwork.ipynb").touch(), r"holds: my\?\[2Jwork\.ipynb"),
    ],
)
def test_what_is_not_a_readable_file_gets_its_reason(folder, make, reason):
    make(folder / f"{NAME}.ipynb")
    got = _collect(folder)
    assert got.data is None
    with pytest.raises(notebook.Reject, match=reason):
        raise notebook.Reject(got.problem)


def test_a_link_in_place_of_a_folder_is_not_followed(folder):
    (folder / f"{NAME}.ipynb").write_bytes(b"{}")
    thief = folder.parent.parent / "eve"
    thief.symlink_to("ada")
    assert "folder is a link" in submission.collect(thief / NAME, "eve", NAME).problem
    thief.unlink()
    thief.mkdir()
    (thief / NAME).symlink_to(folder)
    assert "folder is a link" in submission.collect(thief / NAME, "eve", NAME).problem


def test_the_digest_changes_with_all_that_was_handed_in(folder):
    digests = [_collect(folder).digest]
    for name, text in (
        (f"{NAME}.ipynb", ""),
        (f"{NAME}.ipynb", "{}"),
        ("timestamp.txt", "2026-1-1"),
    ):
        (folder / name).write_text(text)
        digests.append(_collect(folder).digest)
    assert len(set(digests)) == 4
    assert _collect(folder).digest == digests[-1]


def test_learners_are_those_with_a_folder_for_the_assignment(folder):
    root = folder.parent.parent
    (root / "bob" / "other").mkdir(parents=True)
    (root / "cy").mkdir()
    (root / "cy" / NAME).symlink_to("nowhere")
    (root / "notes.txt").touch()
    assert submission.learners(root, NAME) == ["ada", "cy"]
    assert submission.learners(root / "none", NAME) == []
