"""From submissions to scores, pages and exit codes, on a small course."""

import json
import os
import re
import shutil
import stat
import threading
from dataclasses import replace

import nbformat
import pytest
from course_folder import DOUBLE, NAME, RIGHT, SECRET, TEST_DOUBLE, Folder, answers, source
from nbformat.v4 import new_code_cell, new_notebook, new_output
from nbgrader.api import Gradebook

from grading import batch, evaluate, storage
from grading.course import Course
from grading.gradebook import Book
from grading.runner import sandbox


def new_course(root):
    folder = Folder(root)
    folder.publish(source())
    return folder


@pytest.fixture
def course(tmp_path, empty_gradebook):
    shutil.copy(empty_gradebook, tmp_path)
    return new_course(tmp_path)


def _careless():
    """Right, in a notebook that lost its format's details: old schema, a test cell twice."""
    notebook = answers(**RIGHT)
    for cell in notebook.cells[1:]:
        cell.metadata["nbgrader"] = {
            key: cell.metadata["nbgrader"][key] for key in ("grade_id", "grade", "solution")
        }
        cell.id = "same"
    notebook.cells.insert(1, nbformat.from_dict(dict(notebook.cells[2])))
    return b"\xef\xbb\xbf" + json.dumps(notebook).encode()


def _cheat():
    """Nothing answered; tests emptied, switched off by a tag, and worth more."""
    notebook = answers()
    for cell in notebook.cells:
        if cell.id.endswith("-test"):
            cell.source = "100"
            cell.metadata["tags"] = ["skip-execution"]
            cell.metadata["nbgrader"]["points"] = 100
    return notebook


def _warns():
    """Right, with a warning and words on stderr on the way."""
    noisy = """import sys, warnings

def double(x):
    warnings.warn("slow")
    print("e", file=sys.stderr)
    return 2 * x"""
    return answers(double=noisy, shout=RIGHT["shout"])


def _close():
    """Passes the public test of double, and fails the hidden one."""
    return answers(double="def double(x):\n    return x + 1", shout=RIGHT["shout"])


def _dies():
    return answers(double="import os\n\ndef double(x):\n    os._exit(0)", shout=RIGHT["shout"])


def _tells():
    """Prints and raises with what the tests pass; in the second task, Python itself complains."""
    double = """def double(x):
    print("was given", x)
    if x != 1:
        raise ValueError(f"cannot take {x}")
    return 2"""
    return answers(double=double, shout="def shout(text):\n    return text.louder()")


def hand_in_all(folder):
    """Submissions of every kind."""
    folder.hand_in("full", answers(**RIGHT))
    folder.hand_in("partial", answers(double=RIGHT["double"]))
    folder.hand_in("blank", answers())
    folder.hand_in("close", _close())
    folder.hand_in("careless", _careless())
    folder.hand_in("cheat", _cheat())
    folder.hand_in("warns", _warns())
    folder.hand_in("dies", _dies())
    folder.hand_in("tells", _tells())
    folder.hand_in("cut", json.dumps(answers(**RIGHT)).encode()[:900])
    folder.hand_in("old", {**answers(), "nbformat": 3})
    folder.path("misnamed").with_name("my answers.ipynb").write_text("{}")
    folder.path("thief").symlink_to(folder.path("full"))
    os.mkfifo(folder.path("pipe"))


SCORES = {
    "full": ("5.0", "graded"),
    "partial": ("2.0", "graded"),
    "blank": ("0.0", "graded"),
    "close": ("3.0", "graded"),
    "careless": ("5.0", "graded"),
    "cheat": ("0.0", "graded"),
    "warns": ("5.0", "graded"),
    "dies": ("3.0", "graded"),
    "tells": ("0.0", "graded"),
    "cut": ("0.0", "zero"),
    "old": ("0.0", "zero"),
    "misnamed": ("0.0", "zero"),
    "thief": ("0.0", "zero"),
    "pipe": ("0.0", "zero"),
}


def test_everyone_gets_the_score_of_their_own_work(graded):
    assert graded.code == 0
    assert graded.scores() == SCORES
    assert graded.gradebook() == {name: float(score) for name, (score, _) in SCORES.items()}
    table = graded.table()
    assert {row["max_score"] for row in table.values()} == {"5.0"}
    assert (table["partial"]["double-test"], table["partial"]["shout-test"]) == ("2.0", "0.0")
    assert (table["close"]["double-test"], table["close"]["shout-test"]) == ("0.0", "3.0")


def test_a_displayed_number_is_no_score():
    cell = source().cells[2]
    shown = new_output("execute_result", {"text/plain": "100"}, execution_count=1)
    failed = new_output("error", ename="AssertionError", evalue="", traceback=[])
    notebook = new_notebook(cells=[cell])
    evaluate.fill(notebook, (0,), [[shown, failed]])
    assert notebook.cells[0].outputs == [failed]
    assert evaluate.score(notebook.cells[0], None) == 0


@pytest.mark.parametrize(
    ("learner", "reason"),
    [
        ("cut", "its JSON is broken"),
        ("old", "format 3, and format 4 is needed"),
        ("misnamed", f"The file {NAME}.ipynb is missing. The folder holds: my answers.ipynb."),
        ("thief", "is a link"),
        ("pipe", "is not a file"),
    ],
)
def test_a_zero_says_why_in_the_table_and_on_the_page(graded, learner, reason):
    assert reason in graded.table()[learner]["reason"]
    assert reason in graded.words(learner)
    assert "Score: 0 / 5" in graded.words(learner)
    assert "could not be graded" in graded.words(learner)


def test_what_ends_python_costs_its_own_points_and_says_so(graded):
    assert "Python stopped in the tests of cell 2" in graded.table()["dies"]["reason"]
    assert "Python stopped while this was tried: Python stopped" in graded.page("dies")


def test_a_page_says_what_failed_and_hides_the_test(graded):
    page = graded.page("close")
    assert "double(7) should be 14, got 8" in page
    assert "hidden tests ran here" in page
    for learner in SCORES:
        assert SECRET not in graded.page(learner)
    # What is kept is the learner's own line.
    blank = graded.words("blank")
    assert "Nothing is filled in here yet. Your line 2: raise NotImplementedError()" in blank
    # The instructor's copy holds it all.
    copy = graded.root / "autograded" / "close" / NAME / f"{NAME}.ipynb"
    assert SECRET in copy.read_text()


def test_a_page_does_not_repeat_what_the_tests_passed(graded):
    page = graded.words("tells")
    assert "was given 1" not in page
    assert "was given 7" not in page
    assert "cannot take 7" not in page
    assert "What your code printed here is not shown" in page
    assert "ValueError" in page
    assert "its message is your code's own and is not shown" in page
    # What a library says explains, and is kept.
    assert "has no attribute 'louder'" in page


def test_a_page_runs_nothing_and_asks_nobody(graded):
    for learner in SCORES:
        page = graded.page(learner)
        assert "<script" not in page.lower()
        assert "default-src &#39;none&#39;" in page


def test_files_are_for_their_owner_alone(graded):
    made = [graded.root / "gradebook.db"]
    for step in ("autograded", "feedback", "progress", "reports"):
        made += [graded.root / step, *(graded.root / step).rglob("*")]
    assert len(made) > 50
    open_to_others = [path for path in made if stat.S_IMODE(path.stat().st_mode) & 0o077]
    # nbgrader's exchange hands pages on with the rights they have; their folders are closed.
    pages = {path for path in (graded.root / "feedback").rglob("*") if path.is_file()}
    assert set(open_to_others) == pages


def test_the_release_is_not_touched(graded):
    assert not (graded.root / "exercises").exists()


def test_a_rerun_grades_nothing_twice(graded, monkeypatch, capsys):
    monkeypatch.setattr(Book, "write", lambda *_, **__: pytest.fail("graded again"))
    assert graded.grade() == 0
    assert capsys.readouterr().out.count("unchanged") == len(SCORES)
    assert graded.scores() == SCORES


def test_nothing_of_a_submission_is_printed(graded, capfd):
    assert graded.grade("--force", "--learner", "partial", "cut") == 0
    printed = "".join(capfd.readouterr())
    assert "[2/2] partial  graded" in printed
    assert "x + x" not in printed
    assert "NotImplementedError" not in printed


def test_a_resubmission_that_fails_takes_the_old_score_away(course):
    course.hand_in("ada", answers(**RIGHT))
    course.hand_in("bob", answers(double=RIGHT["double"]))
    assert course.grade() == 0
    assert course.gradebook() == {"ada": 5.0, "bob": 2.0}

    course.hand_in("ada", _dies())
    course.hand_in("bob", b'{"cells":')
    assert course.grade() == 0
    assert course.scores() == {"ada": ("3.0", "graded"), "bob": ("0.0", "zero")}
    assert course.gradebook() == {"ada": 3.0, "bob": 0.0}
    assert "Python stopped" in course.page("ada")
    copy = course.root / "autograded" / "bob" / NAME / f"{NAME}.ipynb"
    assert "its JSON is broken" in nbformat.read(copy, as_version=4).cells[0].source

    course.hand_in("ada", answers(**RIGHT))
    assert course.grade("--learner", "ada") == 0
    assert course.scores() == {"ada": ("5.0", "graded"), "bob": ("0.0", "zero")}


def test_a_failure_of_ours_is_tried_again_and_leaves_no_score(course, monkeypatch, capsys):
    course.hand_in("ada", answers(**RIGHT))
    course.hand_in("bob", answers(**RIGHT))
    assert course.grade() == 0
    evaluated = evaluate.evaluate

    def fails(task):
        if task.learner == "ada":
            raise OSError(28, "No space left on device")
        return evaluated(task)

    monkeypatch.setattr(evaluate, "evaluate", fails)
    assert course.grade("--force") == 1
    row = course.table()["ada"]
    assert (row["score"], row["double-test"], row["status"]) == ("", "", "retry")
    assert "No space left on device" in row["reason"]
    assert course.gradebook() == {"ada": 0.0, "bob": 5.0}
    assert not (course.root / "feedback" / "ada" / NAME).exists()

    monkeypatch.undo()
    capsys.readouterr()
    assert course.grade() == 0
    out = capsys.readouterr().out
    assert "ada  graded" in out
    assert "bob  unchanged" in out
    assert course.scores()["ada"] == ("5.0", "graded")


def test_what_cannot_be_written_down_is_graded_again(course, monkeypatch, capsys):
    for learner in ("ada", "bob"):
        course.hand_in(learner, b"")
    save = storage.save

    def full(folder, what):
        if (what.learner, what.status) == ("ada", "zero"):
            raise OSError(28, "No space left on device")
        save(folder, what)

    with monkeypatch.context() as patch:
        patch.setattr(storage, "save", full)
        assert course.grade() == 1
    assert "ada  retry: nothing more can be written (No space left" in capsys.readouterr().out
    assert course.scores() == {"ada": ("", "retry"), "bob": ("0.0", "zero")}
    assert "No space left on device" in course.table()["ada"]["reason"]
    assert course.grade() == 0
    assert course.scores()["ada"] == ("0.0", "zero")


def test_a_run_that_stopped_before_its_last_word_is_done_again(course, capsys):
    course.hand_in("ada", b"")
    assert course.grade() == 0
    folder = course.root / "progress" / NAME
    storage.save(folder, replace(storage.load(folder, "ada"), status="retry"))
    assert course.grade() == 0
    assert "unchanged" not in capsys.readouterr().out
    assert course.scores()["ada"] == ("0.0", "zero")


def test_an_unforeseen_error_is_told_without_its_message(tmp_path):
    course = Course(tmp_path, None)
    # nbclient puts a cell's source into its messages; some of its errors count as OSError.
    for kind in (ValueError, TimeoutError):
        try:
            raise kind("def answer(): ...")
        except kind as error:
            reason = batch._explain(error, course)
        assert kind.__name__ in reason
        assert "answer" not in reason


def test_an_interrupted_run_goes_on_where_it_stopped(course, monkeypatch, capsys):
    for learner in ("ada", "bob"):
        course.hand_in(learner, answers(**RIGHT))
    assert course.grade() == 0

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Book, "write", stop)
        assert course.grade("--force") == 1
    assert course.table()["ada"]["reason"] == "grading was interrupted"
    # Both had been begun, so neither keeps a score that might be an old one.
    assert course.scores() == {"ada": ("", "retry"), "bob": ("", "retry")}
    assert course.grade() == 0
    assert "ada  graded" in capsys.readouterr().out
    assert course.scores() == {"ada": ("5.0", "graded"), "bob": ("5.0", "graded")}


def test_a_mended_test_grades_again(course):
    course.hand_in("ada", _close())
    assert course.grade() == 0
    assert course.scores()["ada"] == ("3.0", "graded")
    mended = source()
    mended.cells[2].source = TEST_DOUBLE.replace("double(7)", "double(1)").replace("14", "2")
    course.publish(mended)
    assert course.grade() == 0
    assert course.scores()["ada"] == ("5.0", "graded")


def test_changed_points_count_from_the_next_grading_on(course):
    course.hand_in("ada", answers(double=RIGHT["double"]))
    assert course.grade() == 0
    assert (course.table()["ada"]["score"], course.table()["ada"]["max_score"]) == ("2.0", "5.0")
    changed = source()
    changed.cells[2].metadata["nbgrader"]["points"] = 7
    course.publish(changed)
    assert course.grade() == 0
    assert (course.table()["ada"]["score"], course.table()["ada"]["max_score"]) == ("7.0", "10.0")
    assert course.gradebook() == {"ada": 7.0}


def test_a_loop_without_end_costs_its_own_points(course, capfd):
    limits = "\nc.RunCells.timeout = 1\nc.RunCells.total_timeout = 10\n"
    config = course.root / "nbgrader_config.py"
    config.write_text(config.read_text() + limits)
    forever = "def double(x):\n    while True: pass"
    # Cannot be interrupted: Python has to be stopped, and the other cells run in a new one.
    deaf = """import signal

def double(x):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True: pass"""
    course.hand_in("loops", answers(double=forever, shout=RIGHT["shout"]))
    course.hand_in("deaf", answers(double=deaf, shout=RIGHT["shout"]))
    # Each cell within its time, and all together over it.
    notebook = answers(**RIGHT)
    notebook.cells[1:1] = [new_code_cell("import time; time.sleep(0.8)") for _ in range(16)]
    course.hand_in("slow", notebook)
    assert course.grade() == 0
    assert course.scores() == {
        "loops": ("3.0", "graded"),
        "deaf": ("3.0", "graded"),
        "slow": ("0.0", "graded"),
    }
    assert "it ran for more than 1 s" in course.page("loops")
    assert "could not be interrupted" in course.page("deaf")
    assert "ran for more than 10 s and was stopped before this cell" in course.page("slow")
    assert "signal" not in "".join(capfd.readouterr())


def test_a_score_given_by_hand_stays_until_another_file_is_handed_in(course):
    course.hand_in("ada", answers(double=RIGHT["double"]))
    assert course.grade() == 0
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        gradebook.find_grade("shout-test", NAME, NAME, "ada").manual_score = 1.0
        gradebook.db.commit()
    assert course.grade("--force") == 0
    row = course.table()["ada"]
    assert (row["score"], row["reason"]) == ("3.0", "to be looked at by hand: shout-test")
    course.hand_in("ada", b"")
    assert course.grade() == 0
    row = course.table()["ada"]
    assert (row["score"], row["status"]) == ("0.0", "zero")


def test_late_is_said_when_it_is_known(course):
    with Gradebook(
        f"sqlite:///{course.root}/gradebook.db", "attention-position-cache"
    ) as gradebook:
        gradebook.add_assignment(NAME, duedate="2026-03-01 12:00:00 UTC")
    stamps = {"early": "2026-03-01 11:00:00 UTC", "late": "2026-03-01 12:00:01 UTC", "odd": "soon"}
    for learner, stamp in stamps.items():
        course.hand_in(learner, b"")
        course.path(learner).with_name("timestamp.txt").write_text(stamp)
    assert course.grade() == 0
    table = course.table()
    assert {name: row["late"] for name, row in table.items()} == {
        "early": "no",
        "late": "yes",
        "odd": "",
    }
    assert table["late"]["timestamp"] == "2026-03-01 12:00:01"


def test_a_name_that_nbgrader_would_read_as_a_pattern_is_left_out(course, capsys):
    course.hand_in("ada", b"")
    course.hand_in("a*", b"")
    assert course.grade() == 1
    assert "a*  left out: rename the folder" in capsys.readouterr().out
    assert course.scores() == {"ada": ("0.0", "zero"), "a*": ("", "retry")}


def test_no_name_ends_a_run_or_reaches_a_reader_as_more_than_text(course, capsys):
    course.hand_in("ada", b"")
    names = ["=1+1", "\uff1d1+1", "-x\x1b[2J", "b\udcff", "\u202eadb", "\U0001d49c" * 63]
    for name in names:
        course.hand_in(name, b"")
    course.path("bob").with_name("x;=1+1.ipynb").touch()
    assert course.grade() == 1
    out = capsys.readouterr().out
    assert out.count("left out: rename the folder") == len(names)
    assert "\x1b" not in out
    assert "\u202e" not in out
    table = course.table()
    assert set(table) == {"ada", "bob", "'=1+1", "'\uff1d1+1", "'-x?[2J", "b?", "?adb", names[-1]}
    assert "holds: x;'=1+1.ipynb" in table["bob"]["reason"]
    text = (course.root / "reports" / f"grades-{NAME}.csv").read_text()
    assert not re.search(r"(^|[,;\"])[=+@-]", text, re.MULTILINE)


def test_a_course_that_submitted_code_would_see_is_refused(course, monkeypatch, capsys):
    """Where Python is, it sees everything: the solutions too, should they lie there."""
    usual, above = sandbox.python_folders(), course.root.parent
    monkeypatch.setattr(sandbox, "python_folders", lambda: [*usual, str(above)])
    course.hand_in("ada", answers(**RIGHT))
    assert course.grade() == 2
    output = f"refused: submitted code would see {course.root}: it sees all of {above}"
    assert output in capsys.readouterr().err
    assert not (course.root / "reports").exists()


def test_without_a_sandbox_nothing_runs(course, monkeypatch, capsys):
    course.hand_in("ada", answers(**RIGHT))
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    assert course.grade() == 2
    assert "bwrap was not found: install bubblewrap" in capsys.readouterr().err
    assert not (course.root / "progress").exists()


@pytest.mark.parametrize("asked", ["warm", "../warmup", "war*", ""])
def test_an_unknown_assignment_is_refused_by_name(course, capsys, asked):
    course.assignment = asked
    assert course.grade() == 2
    output = capsys.readouterr().err
    assert f"no assignment {asked!r}" in output
    assert "there is: warmup" in output


def test_no_submissions_and_unknown_learners_are_refused_by_name(course, capsys):
    (course.root / "submitted" / "ada" / "other").mkdir(parents=True)
    assert course.grade() == 2
    output = capsys.readouterr().err
    assert f"nobody handed in '{NAME}'" in output
    assert "submitted/ holds: other" in output
    course.hand_in("ada", b"")
    assert course.grade("--learner", "ada", "zoe") == 2
    output = capsys.readouterr().err
    assert "of: zoe" in output
    assert "there are: ada" in output


def test_a_folder_that_is_no_course_is_refused(tmp_path, capsys):
    assert Folder.grade(_bare(tmp_path)) == 2
    assert "not a course folder: it has no nbgrader_config.py" in capsys.readouterr().err


def _bare(path):
    folder = Folder.__new__(Folder)
    folder.root, folder.assignment = path, NAME
    return folder


def test_a_source_that_nbgrader_cannot_take_is_refused_with_the_reason(course, capsys):
    broken = source()
    broken.cells[1].source = DOUBLE.replace("### END SOLUTION", "")
    course.publish(broken)
    course.hand_in("ada", b"")
    assert course.grade() == 2
    assert "no end solution" in capsys.readouterr().err.lower()


def test_cells_added_after_the_first_grading_are_refused_with_the_reason(course, capsys):
    course.hand_in("ada", answers(**RIGHT))
    assert course.grade() == 0
    more = source()
    extra = new_code_cell("assert double(0) == 0", id="zero-test")
    extra.metadata["nbgrader"] = {**more.cells[2].metadata["nbgrader"], "grade_id": "zero-test"}
    more.cells.append(extra)
    course.publish(more)
    assert course.grade() == 2
    assert "Cannot add or remove cells" in capsys.readouterr().err


def test_two_runs_at_once_are_one_too_many(course, monkeypatch, capsys):
    course.hand_in("ada", b"")
    codes = []

    def second(*_):
        monkeypatch.undo()
        thread = threading.Thread(target=lambda: codes.append(course.grade()))
        thread.start()
        thread.join()

    monkeypatch.setattr(batch.Batch, "_read", second)
    course.grade()
    assert codes == [2]
    assert "another run is grading" in capsys.readouterr().err
