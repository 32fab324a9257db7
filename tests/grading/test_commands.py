"""`nbgrader autograde` and the formgrader: the verdicts of ``python -m grading``, no others."""

import fcntl
import logging
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest
from course_folder import NAME, RIGHT, ROOT, answers
from nbgrader.api import Gradebook
from nbgrader.apps import api, autogradeapp
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import notebook_hash
from test_faults import FAULTS, LIMITS
from test_grading import SCORES, hand_in_all, new_course

from grading import plugins, storage
from grading.course import Course
from grading.gradebook import Book
from grading.runner import sandbox

LATE = """
class Halved(LateSubmissionPlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return score / 2


c.AssignLatePenalties.plugin_class = Halved
"""


def nbgrader(folder, *words):
    """Run nbgrader's own command in the course folder."""
    return subprocess.run(
        [sys.executable, "-m", "nbgrader", *words],
        cwd=folder.root,
        env=os.environ | {"PYTHONPATH": str(ROOT), "HOME": str(folder.root)},
        capture_output=True,
        text=True,
    )


def formgrader(folder):
    """What the formgrader's pages ask, with the course's settings."""
    course = Course.open(folder.root)
    # As in the formgrader: its own pages' template must not become the feedback's.
    course.config.HTMLExporter.template_name = "formgrade"
    asked = api.NbGraderAPI(CourseDirectory(config=course.config), config=course.config)
    asked.log_level = logging.INFO
    return asked


def fates(folder):
    """How each submission ended: status and reason."""
    records = {}
    for learner in os.listdir(folder.root / "submitted"):
        record = storage.load(folder.root / "progress" / folder.assignment, learner)
        records[learner] = (record.status, record.reason)
    return records


@pytest.fixture(scope="module")
def both(tmp_path_factory, graded):
    """The same submissions, graded by nbgrader's command and by ours."""
    theirs = new_course(tmp_path_factory.mktemp("theirs"))
    hand_in_all(theirs)
    theirs.done = nbgrader(theirs, "autograde", NAME)
    return theirs, graded


@pytest.fixture
def course(tmp_path, empty_gradebook):
    shutil.copy(empty_gradebook, tmp_path)
    return new_course(tmp_path)


def test_the_command_ends_well_and_every_verdict_is_the_same(both):
    theirs, ours = both
    assert theirs.done.returncode == 0, theirs.done.stderr
    assert theirs.gradebook() == {name: float(score) for name, (score, _) in SCORES.items()}
    assert theirs.gradebook() == ours.gradebook()
    assert theirs.table() == ours.table()
    assert fates(theirs) == fates(ours)


def test_the_command_says_how_each_ended_and_shows_no_code(both):
    output = both[0].done.stderr
    assert "full 5 / 5 graded" in output
    assert "cut 0 / 5 zero The file is not a complete notebook: its JSON is broken" in output
    assert "x + x" not in output


def test_pages_are_the_same(both):
    theirs, ours = both
    for learner in SCORES:
        assert theirs.page(learner) == ours.page(learner)


def test_what_one_graded_the_other_leaves_alone(both, monkeypatch, capsys):
    theirs, _ = both
    monkeypatch.setattr(Book, "write", lambda *_, **__: pytest.fail("graded again"))
    assert theirs.grade() == 0
    assert capsys.readouterr().out.count("unchanged") == len(SCORES)


def test_feedback_made_by_nbgrader_gives_the_reason_too(both):
    theirs, _ = both
    page = theirs.root / "feedback" / "cut" / NAME / f"{NAME}.html"
    page.unlink()
    done = formgrader(theirs).generate_feedback(NAME, "cut")
    assert done["success"], done
    assert "its JSON is broken" in page.read_text()


def test_the_formgrader_lists_all_as_graded_and_a_time_that_is_none_stops_nothing(both):
    _, ours = both
    stamp = ours.path("blank").with_name("timestamp.txt")
    stamp.write_text("soon")
    try:
        listed = formgrader(ours).get_submissions(NAME)
    finally:
        stamp.unlink()
    assert {entry["student"]: str(entry["score"]) for entry in listed} == {
        name: score for name, (score, _) in SCORES.items()
    }
    assert all(entry["autograded"] for entry in listed)


def test_the_formgraders_button_reads_the_file_first(course):
    course.hand_in("ada", answers(**RIGHT))
    course.hand_in("bob", answers(**RIGHT))
    asked = formgrader(course)
    done = asked.autograde(NAME, "ada")
    assert done["success"], done
    assert "ada 5 / 5 graded" in done["log"]
    assert course.gradebook() == {"ada": 5.0}
    assert "2 of 2 tests passed" in course.words("ada")
    assert "formgrade" not in course.page("ada")

    # Plain nbgrader leaves the old score standing.
    course.hand_in("ada", b'{"cells":')
    done = asked.autograde(NAME, "ada")
    assert done["success"], done
    assert "ada 0 / 5 zero The file is not a complete notebook" in done["log"]
    assert course.gradebook() == {"ada": 0.0}
    copy = course.root / "autograded" / "ada" / NAME / f"{NAME}.ipynb"
    assert "its JSON is broken" in nbformat.read(copy, as_version=4).cells[0].source


def test_names_may_be_patterns_as_in_nbgrader(course):
    for learner in ("ada", "adam", "bob"):
        course.hand_in(learner, b"")
    asked = formgrader(course)
    asked.coursedir.student_id_exclude = "adam"
    assert asked.autograde(NAME, "a*")["success"]
    assert course.gradebook() == {"ada": 0.0}
    done = asked.autograde(NAME, "zoe")
    assert not done["success"]
    assert "of: zoe; there are: ada, adam, bob" in done["log"]


def test_without_a_sandbox_nothing_runs(course, monkeypatch):
    course.hand_in("ada", answers(**RIGHT))
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    done = formgrader(course).autograde(NAME, "ada")
    assert not done["success"]
    assert "bwrap was not found: install bubblewrap" in done["log"]
    assert not (course.root / "progress").exists()


def test_a_run_that_is_going_on_is_not_disturbed(course):
    course.hand_in("ada", b"")
    (course.root / "progress").mkdir()
    with (course.root / "progress" / ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        done = formgrader(course).autograde(NAME, "ada")
    assert not done["success"]
    assert "another run is grading" in done["log"]


def test_what_must_be_tried_again_is_no_success(course, monkeypatch):
    course.hand_in("ada", b"")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Book, "write", full)
    done = formgrader(course).autograde(NAME, "ada")
    assert not done["success"]
    assert "No space left on device" in done["log"]
    assert "tried again" in done["error"]


def test_a_late_submission_loses_its_penalty_either_way(tmp_path, empty_gradebook):
    pages, tables = [], []
    for place in ("ours", "theirs"):
        (tmp_path / place).mkdir()
        folder = new_course(tmp_path / place)
        shutil.copy(empty_gradebook, folder.root)
        config = folder.root / "nbgrader_config.py"
        plugin = "from nbgrader.plugins import LateSubmissionPlugin\n"
        config.write_text(plugin + config.read_text() + LATE)
        with Gradebook(
            f"sqlite:///{folder.root}/gradebook.db", "attention-position-cache"
        ) as gradebook:
            gradebook.update_or_create_assignment(NAME, duedate="2026-03-01 12:00:00 UTC")
        for learner, stamp in {"early": "11:00", "late": "13:00", "cut": "14:00"}.items():
            folder.hand_in(learner, b"{" if learner == "cut" else answers(**RIGHT))
            at = folder.path(learner).with_name("timestamp.txt")
            at.write_text(f"2026-03-01 {stamp}:00 UTC\n")
        if place == "ours":
            assert folder.grade() == 0
        else:
            asked = formgrader(folder)
            assert all(asked.autograde(NAME, name)["success"] for name in ("early", "late", "cut"))
        tables.append(folder.table())
        pages.append(folder.page("late"))
        listed = {entry["student"]: entry for entry in formgrader(folder).get_submissions(NAME)}
        assert all(entry["autograded"] for entry in listed.values())
        assert listed["late"]["score"] == 5.0  # nbgrader lists scores without the penalty
    assert tables[0] == tables[1]
    rows = tables[0]
    assert {name: (row["score"], row["late"]) for name, row in rows.items()} == {
        "early": ("5.0", "no"),
        "late": ("2.5", "yes"),
        "cut": ("0.0", "yes"),
    }
    assert pages[0] == pages[1]
    assert "Penalty: −2.5; 5 points without it" in folder.words("late")
    assert "Score: 2.5 / 5" in folder.words("late")
    assert "Late by" in folder.words("late")


def test_a_missing_notebook_keeps_its_time_so_that_the_formgrader_asks_no_more(course):
    course.path("ada").with_name("timestamp.txt").write_text("2026-03-01 12:00:00 UTC")
    course.path("ada").with_name("mine.ipynb").write_text("{}")
    asked = formgrader(course)
    assert asked.autograde(NAME, "ada")["success"]
    (listed,) = asked.get_submissions(NAME)
    assert listed["autograded"]
    assert listed["display_timestamp"] == "2026-03-01 12:00:00 UTC"


def test_feedback_goes_back_through_the_exchange(course, tmp_path):
    course.hand_in("amy", b"{")  # by mail
    secrets = {"ada": "ab" * 64, "bob": "cd" * 64, "art": "Robert'); --\xff"}
    for learner, secret in secrets.items():
        course.hand_in(learner, answers(**RIGHT) if learner == "ada" else b"{")
        course.path(learner).with_name("timestamp.txt").write_text("2026-03-01 12:00:00 UTC")
        course.path(learner).with_name("submission_secret.txt").write_text(secret)
    exchange = tmp_path / "exchange"
    exchange.mkdir()
    config = course.root / "nbgrader_config.py"
    config.write_text(config.read_text() + f"\nc.Exchange.root = {str(exchange)!r}\n")
    assert course.grade() == 0
    returned = exchange / "attention-position-cache" / "feedback"
    returned.mkdir(parents=True)
    done = nbgrader(course, "release_feedback", NAME)
    assert done.returncode == 0, done.stderr
    pages = {
        learner: returned / f"{notebook_hash(secret=secret, notebook_id=NAME)}.html"
        for learner, secret in secrets.items()
    }
    assert "</span>5 / 5</h2>" in pages["ada"].read_text()
    assert "its JSON is broken" in pages["bob"].read_text()
    # Whoever forges a secret gets no page, and keeps nobody from theirs.
    assert not pages["art"].exists()
    assert len([*returned.iterdir()]) == 4
    assert {path.stat().st_mode & 0o777 for path in returned.iterdir()} == {0o644}


@pytest.mark.long
def test_every_fault_ends_as_it_does_with_our_command(tmp_path):
    folder = new_course(tmp_path)
    config = folder.root / "nbgrader_config.py"
    config.write_text(config.read_text() + LIMITS)
    for learner, entry in FAULTS.items():
        entry.hand_in(folder, learner)
    done = nbgrader(folder, "autograde", NAME)
    assert done.returncode == 0, done.stderr[-3000:]
    wanted = {name: (entry.score, entry.status) for name, entry in FAULTS.items()}
    table = folder.table()
    assert {name: (float(row["score"]), row["status"]) for name, row in table.items()} == wanted
    assert folder.gradebook() == {name: score for name, (score, _) in wanted.items()}
    for name, entry in FAULTS.items():
        assert entry.expected in table[name]["reason"] + folder.page(name)


def test_another_nbgrader_is_noticed(monkeypatch):
    plugins.install()
    assert autogradeapp.Autograde is api.Autograde is plugins.Autograde
    monkeypatch.setattr(autogradeapp, "Autograde", SimpleNamespace)
    with pytest.raises(TypeError, match=r"nbgrader\.apps\.autogradeapp has another Autograde"):
        plugins.install()
