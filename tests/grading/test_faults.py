"""Submissions that are broken, or break things: each gets its verdict, and harms nobody else."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nbformat
import psutil
import pytest
from course_folder import NAME, RIGHT, Folder, answers, source
from nbformat.v4 import new_code_cell, new_markdown_cell

from tests.halves import HALVES, asked_for, some_now

LIMITS = """
c.RunCells.timeout = 2
c.RunCells.total_timeout = 60
c.RunCells.memory = 0.5
c.RunCells.disk = 8
"""
DOUBLE, SHOUT = RIGHT["double"], RIGHT["shout"]


@dataclass(frozen=True)
class Fault:
    """What is handed in, and what has to come of it."""

    hand_in: Callable[[Folder, str], None]
    score: float
    status: str = "graded"
    expected: str = ""  # part of the reason in the table, or of the page


FAULTS: dict[str, Fault] = {}


def fault(score: float, status: str = "graded", expected: str = ""):
    """Enter a function that hands a submission in; the function's name is the learner's."""

    def enter(hand_in):
        FAULTS[hand_in.__name__] = Fault(hand_in, score, status, expected)
        return hand_in

    return enter


def code(name: str, score: float, double: str, expected: str = "") -> None:
    """Enter a submission whose first answer is this code; the second answer is right (3 points)."""

    def hand_in(folder, learner):
        folder.hand_in(learner, answers(double=double, shout=SHOUT))

    FAULTS[name] = Fault(hand_in, score, "graded", expected)


def changed(name: str, score: float, change: Callable, expected: str = "") -> None:
    """Enter a right submission whose notebook was changed."""

    def hand_in(folder, learner):
        notebook = answers(**RIGHT)
        folder.hand_in(learner, change(notebook) or notebook)

    FAULTS[name] = Fault(hand_in, score, "graded", expected)


# --- code that does not come back, or takes everything

code("loop_in_a_call", 3, "def double(x):\n    while True: pass", "ran for more than 2 s")
code("loop_in_a_cell", 3, "while True: pass", "ran for more than 2 s")
DEAF = """while True:
        try:
            while True: pass
        except BaseException: pass"""
code("deaf_loop_in_a_call", 3, f"def double(x):\n    {DEAF}", "more than 2 s")
code("deaf_loop_in_a_cell", 3, f"if True:\n    {DEAF}", "more than 2 s")
code("sleeps_for_ever", 3, "import time\ndef double(x):\n    time.sleep(1e6)", "more than 2 s")
MEMORY = """hoard = []
while True:
    hoard.append(bytearray(b"1" * (16 << 20)))"""
code("memory_in_a_cell", 3, MEMORY)
code("memory_in_a_call", 3, "def double(x):\n    " + MEMORY.replace("\n", "\n    "))
code("fork_bomb", 3, "import os\nwhile True:\n    os.fork()")
# Where there is no room for another process, the cell ends, and on a busy machine those that it
# made may be found in a later cell, which is then blamed: the author alone loses.
LATE = {"fork_bomb"}
code(
    "thread_bomb",
    5,
    f"""{DOUBLE}
import threading, time
try:
    while True:
        threading.Thread(target=time.sleep, args=[1e6], daemon=True).start()
except RuntimeError:
    pass""",
)
code(
    "fills_the_disk",
    5,
    f"""{DOUBLE}
for place in ("/tmp/full", "/dev/shm/full", "full"):
    try:
        with open(place, "wb") as file:
            for _ in range(200):
                file.write(b"0" * 2**20)
    except OSError:
        pass""",
)
code("hundred_megabytes_on_a_line", 5, f"{DOUBLE}\nprint('x' * 10**8)", "the rest is left out")
code("a_million_lines", 5, f"{DOUBLE}\nprint('line\\n' * 10**6)")
code("prints_in_a_call", 5, "def double(x):\n    print('y' * 10**7)\n    return 2 * x")
code("recursion", 3, "def double(x):\n    return double(x)", "RecursionError")
code("crash", 3, "import ctypes\ndef double(x):\n    ctypes.string_at(1)", "Python stopped")

# --- code that ends its process, or leaves something behind

code("sys_exit", 5, f"{DOUBLE}\nimport sys\nsys.exit()")
code("sys_exit_in_a_call", 3, "import sys\ndef double(x):\n    sys.exit()", "SystemExit")
code("quits", 5, f"{DOUBLE}\nget_ipython().ask_exit()\nexit()")
code("os_exit_in_a_call", 3, "import os\ndef double(x):\n    os._exit(0)", "Python stopped")
code("os_exit_in_a_cell", 3, "import os\nos._exit(0)", "Python stopped")
code("kills_itself", 3, "import os\ndef double(x):\n    os.kill(os.getpid(), 9)", "Python stopped")
code("shuts_its_kernel_down", 3, "get_ipython().kernel.do_shutdown(False)", "AttributeError")
code("asks_for_input", 3, "def double(x):\n    return int(input())", "EOFError")
code(
    "leaves_a_thread",
    5,
    f"""{DOUBLE}
import threading, time
threading.Thread(target=time.sleep, args=[1e6]).start()""",
)
code(
    "leaves_a_process",
    5,
    f"""{DOUBLE}
import subprocess
subprocess.Popen(["sleep", "98765"], start_new_session=True)""",
)
code("closes_every_file", 3, f"{DOUBLE}\nimport os\nos.closerange(0, 4096)", "Python stopped")

# --- code that is right, or wrong, in an odd way

code("warns", 5, "import warnings\ndef double(x):\n    warnings.warn('slow')\n    return 2 * x")
code("writes_to_stderr", 5, f"import sys\nsys.stderr.write('e')\n{DOUBLE}")
code("shows_a_number", 3, "100")
code("syntax_error", 3, "def double(x) return x", "SyntaxError")
code(
    "raises_what_cannot_be_told",
    3,
    """class Odd(Exception):
    def __str__(self): raise ValueError
def double(x):
    raise Odd""",
)
code("returns_itself", 3, "def double(x):\n    return double")
code("returns_a_generator", 3, "def double(x):\n    yield 2 * x")
code("returns_a_loop", 3, "def double(x):\n    a = []\n    a.append(a)\n    return a")
code("forgets_to_return", 3, "def double(x):\n    2 * x")

# --- notebooks that were changed


@fault(0)
def blank(folder, learner):
    folder.hand_in(learner, answers())


def _without(*places):
    def change(notebook):
        notebook.cells = [cell for at, cell in enumerate(notebook.cells) if at not in places]

    return change


changed("tests_deleted", 5, _without(2, 4))
changed("answer_deleted", 3, _without(1), "NameError")
changed("answer_twice", 5, lambda nb: nb.cells.insert(2, nbformat.from_dict(dict(nb.cells[1]))))
changed("test_twice", 5, lambda nb: nb.cells.insert(2, nbformat.from_dict(dict(nb.cells[2]))))
changed("tasks_swapped", 5, lambda nb: nb.cells.extend([nb.cells.pop(1), nb.cells.pop(1)]))
changed("upside_down", 0, lambda nb: nb.cells.reverse())
changed("test_edited", 5, lambda nb: nb.cells[2].update(source="assert False"))
changed("test_emptied", 5, lambda nb: nb.cells[2].update(source=""))
changed("answer_emptied", 3, lambda nb: nb.cells[1].update(source=""), "NameError")


def _retype(*places, kind):
    def change(notebook):
        for place in places:
            cell = notebook.cells[place]
            cell.cell_type = kind
            for key in ("outputs", "execution_count"):
                cell.pop(key, None)

    return change


changed("answer_as_markdown", 5, _retype(1, kind="markdown"))
changed("test_as_raw", 5, _retype(2, 4, kind="raw"))


def _no_metadata(notebook):
    for cell in notebook.cells:
        cell.metadata.clear()


def _nothing_known(notebook):
    for number, cell in enumerate(notebook.cells):
        cell.metadata.clear()
        cell.id = f"new-{number}"


def _forged(notebook):
    notebook.cells[1].source = ""
    for cell in notebook.cells[1:]:
        cell.metadata["nbgrader"].update(points=1000, grade=True, locked=False)


def _old_schema(notebook):
    for cell in notebook.cells[1:]:
        cell.metadata["nbgrader"].update(schema_version=1)
        del cell.metadata["nbgrader"]["task"]


def _same_ids(notebook):
    for cell in notebook.cells:
        cell.id = "same"


changed("metadata_gone", 5, _no_metadata)
changed("all_marks_gone", 5, _nothing_known)
changed("metadata_forged", 3, _forged)
changed("old_schema", 5, _old_schema)
changed("same_ids", 5, _same_ids)
changed("other_kernel", 5, lambda nb: nb.metadata.update(kernelspec={"name": "fortran"}))
changed("no_kernel", 5, lambda nb: nb.metadata.clear())
changed("many_cells", 5, lambda nb: nb.cells.extend([new_code_cell("1")] * 300))

# --- what cannot be shown as it was meant, or not at all

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6o"
    "AAAAAElFTkSuQmCC"
)
PLAIN = "Shown as it was typed"


def text_cell(name: str, text: str, expected: str = "", pictures: dict | None = None) -> None:
    """Enter a right submission with a cell of Markdown."""

    def add(notebook):
        cell = new_markdown_cell(text)
        if pictures is not None:
            cell["attachments"] = pictures
        notebook.cells.insert(1, cell)

    changed(name, 5, add, expected)


def shows_pictures(notebook):
    big = "display({'image/png': 'A' * 3_900_000}, raw=True)"
    notebook.cells.extend([new_code_cell(big)] * 20)


BLANK = " \n" * 200_000
changed("blank_lines", 5, lambda nb: nb.cells.append(new_code_cell(BLANK)), PLAIN)
code("one_long_line", 5, f"{DOUBLE}\nx = '{'x' * 400_000}'", PLAIN)
code("colours_without_end", 5, f"{DOUBLE}\nprint('\\x1b[31m' * 20_000)")


def shows_crumbs(notebook):
    crumbs = "for n in range(290): display({'text/plain': 'x'}, raw=True)"
    notebook.cells.extend([new_code_cell(crumbs)] * 40)


text_cell("long_text", "*a **b _c " * 54_000, PLAIN)
text_cell("links_without_end", "[" * 90_000 + "](" * 90_000, PLAIN)
text_cell("quotes_in_quotes", "> " * 90_000 + "x")
text_cell("tags_in_tags", "".join(f"<b x={n}><p>" for n in range(15_000)), PLAIN)
text_cell("pasted_picture", "![](attachment:a.png)", PIXEL, {"a.png": {"image/png": PIXEL}})
text_cell("lost_picture", "![lost](attachment:a.png)", 'alt="lost"')
text_cell("odd_attachments", "![](attachment:a)", "", {"a": 1, "b": {"image/png": [1]}, "c": None})
changed("pictures_without_end", 5, shows_pictures, "The outputs of this notebook are too large")
changed("crumbs_without_end", 5, shows_crumbs, "The outputs of this notebook are too large")


@fault(5, expected="timestamp.txt is no date")
def time_of_no_zone(folder, learner):
    folder.hand_in(learner, answers(**RIGHT))
    text = "2026-03-01 12:00:00 UTC,7200,3"
    folder.path(learner).with_name("timestamp.txt").write_text(f"{text:>41}")


# --- files that are no notebooks


def raw(name: str, score: float, status: str, expected: str, data: Callable[[], bytes]) -> None:
    """Enter a file's bytes."""

    def hand_in(folder, learner):
        folder.hand_in(learner, data())

    FAULTS[name] = Fault(hand_in, score, status, expected)


def _right(**more) -> bytes:
    return json.dumps({**answers(**RIGHT), **more}).encode()


raw("no_bytes", 0, "zero", "The file is empty", lambda: b"")
raw("cut_off", 0, "zero", "its JSON is broken", lambda: _right()[:900])
raw("latin_1", 0, "zero", "not UTF-8", lambda: _right() + "# é".encode("latin-1"))
raw("byte_order_mark", 5, "graded", "", lambda: b"\xef\xbb\xbf" + _right())
raw("format_3", 0, "zero", "format 3", lambda: _right(nbformat=3))
raw("format_5", 0, "zero", "format 5", lambda: _right(nbformat=5))
raw("a_list", 0, "zero", "not a notebook", lambda: b"[]")
raw("deep", 0, "zero", "nested too deeply", lambda: b"[" * 100_000)
raw("huge", 0, "zero", "larger than 10 MB", lambda: b" " * (11 * 2**20))


@fault(0, "zero", "is missing")
def misnamed(folder, learner):
    folder.path(learner).with_name("my answers.ipynb").write_bytes(_right())


@fault(0, "zero", "is missing")
def nothing_in_the_folder(folder, learner):
    folder.path(learner)


@fault(5)
def extra_files(folder, learner):
    folder.hand_in(learner, answers(**RIGHT))
    folder.path(learner).with_name("other.ipynb").write_text("{}")
    folder.path(learner).with_name("nbgrader_config.py").write_text("raise SystemExit")


@fault(0, "zero", "is a link")
def link(folder, learner):
    folder.hand_in(learner, answers(**RIGHT))
    place, elsewhere = folder.path(learner), folder.root / "elsewhere.ipynb"
    place.rename(elsewhere)
    place.symlink_to(elsewhere)


@fault(0, "zero", "is not a file")
def pipe(folder, learner):
    os.mkfifo(folder.path(learner))


@fault(0, "zero", "is not a file")
def a_folder(folder, learner):
    folder.path(learner).mkdir()


def _grade(root: Path, learners: list[str], *options: str) -> Folder:
    folder = Folder(root)
    folder.learners = learners
    folder.publish(source())
    config = root / "nbgrader_config.py"
    config.write_text(config.read_text() + LIMITS)
    for learner in learners:
        FAULTS[learner].hand_in(folder, learner)
    folder.code = folder.grade(*options)
    return folder


@pytest.fixture(scope="module")
def graded(request, tmp_path_factory):
    """A folder in which the faults that this run asks for are handed in and graded."""
    learners = asked_for(request, "learner")
    return _grade(tmp_path_factory.mktemp("faults"), learners, "--jobs", "2")


def test_there_are_enough():
    assert len(FAULTS) >= 40


@HALVES
def test_the_batch_ends_and_all_are_settled(graded, half):
    assert graded.code == 0
    assert set(graded.table()) == set(graded.learners)


@pytest.mark.parametrize("learner", some_now(FAULTS, list(FAULTS)[::3]))
def test_verdict(graded, learner):
    entry = FAULTS[learner]
    row = graded.table()[learner]
    score = 0 if learner in LATE and float(row["score"]) == 0 else entry.score
    assert (float(row["score"]), row["status"]) == (score, entry.status), row["reason"]
    assert graded.gradebook()[learner] == score
    assert entry.expected in row["reason"] + graded.page(learner)


@HALVES
def test_nothing_stays_behind(graded, half):
    assert graded.code == 0
    for process in psutil.process_iter(["cmdline"]):
        assert "98765" not in (process.info["cmdline"] or ())


@HALVES
def test_what_is_written_stays_small(graded, half):
    sizes = {path.parts[-3]: path.stat().st_size for path in graded.root.rglob("*.html")}
    if "pictures_without_end" in graded.learners:
        assert sizes.pop("pictures_without_end") < 10 * 2**20
    assert max(sizes.values()) < 2 * 2**20


def _in_time(results: dict) -> dict:
    return {learner: result for learner, result in results.items() if learner not in LATE}


@pytest.mark.long
@pytest.mark.parametrize("jobs", ["1", "4"])
def test_one_at_a_time_and_many_give_the_same_gradebook(graded, tmp_path, jobs):
    begin = time.monotonic()
    again = _grade(tmp_path, graded.learners, "--jobs", jobs)
    assert _in_time(again.scores()) == _in_time(graded.scores())
    assert _in_time(again.gradebook()) == _in_time(graded.gradebook())
    assert time.monotonic() - begin < 600
    assert NAME in again.assignment
