"""Faults of the machine: full disks, locked gradebooks, folders that cannot be written.

Each is told by name with its remedy, nothing that was graded is lost, and once it is mended the
same command finishes. Real faults are made where the system lets us (root may mount a small or a
read-only disk; anybody else takes the right to write away).
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from course_folder import NAME, RIGHT, Folder, answers, source

from grading import report, storage
from grading.course import Course, Refusal
from tests.halves import some_now

ROOT = os.geteuid() == 0
NAMES = ["ada", "bob", "cy", "dan", "eve", "flo"]


def _mount(*words: str) -> None:
    done = subprocess.run(["mount", *words], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"this machine lets nobody mount: {done.stderr.strip()}")


@contextlib.contextmanager
def read_only(folder: Path):
    """Nothing can be written below this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    if not ROOT:
        folder.chmod(0o500)
        try:
            yield
        finally:
            folder.chmod(0o700)
        return
    _mount("--bind", str(folder), str(folder))
    try:
        _mount("-o", "remount,ro,bind", str(folder))
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of 2 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if not ROOT:
        pytest.skip("only root can mount a small disk")
    _mount("-t", "tmpfs", "-o", "size=2m", "none", str(folder))
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@contextlib.contextmanager
def full(folder: Path):
    """The disk of this folder has no room left, to the last byte."""
    path = folder / "everything-else"
    with path.open("wb", buffering=0) as file:
        for size in (2**16, 2**10, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)
    try:
        yield
    finally:
        path.unlink()


HOLD = """import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as database:
    database.execute("begin exclusive")
    print("held", flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def locked(path: Path):
    """Another process holds the database for itself."""
    words = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        yield
        process.stdin.close()
        assert process.wait(10) == 0


def _course(root: Path, gradebook: Path) -> Folder:
    """Six files that are no notebooks: each is a verdict, and no code has to run."""
    shutil.copy(gradebook, root)
    folder = Folder(root)
    folder.publish(source())
    config = root / "nbgrader_config.py"
    # SQLite waits five seconds for a lock otherwise.
    url = f"sqlite:///{root}/gradebook.db?timeout=0.1"
    config.write_text(f"{config.read_text()}\nc.CourseDirectory.db_url = {url!r}\n")
    for name in NAMES:
        folder.hand_in(name, b"")
    return folder


@pytest.fixture
def course(tmp_path, empty_gradebook, monkeypatch):
    monkeypatch.setattr(storage, "LOCK_SECONDS", 0.1)
    return _course(tmp_path, empty_gradebook)


@pytest.fixture
def course_on_a_small_disk(small_disk, empty_gradebook, monkeypatch):
    monkeypatch.setattr(storage, "LOCK_SECONDS", 0.1)
    return _course(small_disk, empty_gradebook)


def _settled(folder: Folder) -> None:
    """As it is after an undisturbed run."""
    assert folder.scores() == {name: ("0.0", "zero") for name in NAMES}
    assert folder.gradebook() == dict.fromkeys(NAMES, 0.0)
    assert not list(folder.root.rglob("*.part"))


def _finishes(folder: Folder, capsys, unchanged: int) -> None:
    """The same command finishes, and grades nothing again that was graded."""
    capsys.readouterr()
    assert folder.grade() == 0
    assert capsys.readouterr().out.count("unchanged") == unchanged
    _settled(folder)


FOLDERS = [f"progress/{NAME}", "feedback", "progress", "autograded", "reports"]


@pytest.mark.parametrize("folder", some_now(FOLDERS, FOLDERS[:2]))
def test_a_folder_that_cannot_be_written_is_refused_by_name(course, capsys, folder):
    with read_only(course.root / folder):
        assert course.grade() == 2
    output = capsys.readouterr().err
    assert output.startswith("refused: ")
    assert f"{folder}" in output
    assert "give yourself the right to write it" in output
    assert "Traceback" not in output
    _finishes(course, capsys, 0)


def test_a_course_on_a_disk_that_cannot_be_written_is_refused(course, capsys):
    assert course.grade() == 0
    with read_only(course.root):
        before = (course.root / "gradebook.db").read_bytes()
        assert course.grade("--force") == 2
        assert (course.root / "gradebook.db").read_bytes() == before
    assert "cannot be written" in capsys.readouterr().err
    _finishes(course, capsys, len(NAMES))


def test_a_gradebook_that_cannot_be_written_is_refused(course, capsys):
    assert course.grade() == 0
    path = course.root / "gradebook.db"
    if ROOT:
        _mount("--bind", str(path), str(path))
        _mount("-o", "remount,ro,bind", str(path))
    else:
        path.chmod(0o400)
    try:
        assert course.grade("--force") == 2
    finally:
        if ROOT:
            subprocess.run(["umount", "-l", str(path)], check=True)
        else:
            path.chmod(0o600)
    output = capsys.readouterr().err
    assert "gradebook.db cannot be written (" in output
    _finishes(course, capsys, len(NAMES))


def test_what_is_no_gradebook_is_refused(course, capsys):
    (course.root / "gradebook.db").write_bytes(b"no database at all" * 100)
    assert course.grade() == 2
    assert "gradebook.db cannot be used (file is not a database)" in capsys.readouterr().err


def test_a_locked_gradebook_is_refused_and_nothing_is_withdrawn(course, capsys):
    assert course.grade() == 0
    with locked(course.root / "gradebook.db"):
        assert course.grade("--force") == 2
    output = capsys.readouterr().err
    assert "gradebook.db is locked: another program holds it" in output
    _finishes(course, capsys, len(NAMES))


def test_the_lock_is_seen_before_a_batch_begins(course, monkeypatch):
    """Of the look itself: later steps meet the lock too, and say the same."""
    monkeypatch.setattr(storage, "LOCK_SECONDS", 0.1)
    opened = Course.open(course.root)
    storage.check(opened, NAME)
    with locked(course.root / "gradebook.db"), pytest.raises(Refusal, match="is locked: another"):
        storage.check(opened, NAME)


def test_a_full_disk_is_refused_and_nothing_is_withdrawn(course_on_a_small_disk, capsys):
    course = course_on_a_small_disk
    assert course.grade() == 0
    with full(course.root):
        assert course.grade("--force") == 2
    output = capsys.readouterr().err
    assert "No space left on device" in output
    assert f"free some space on the disk of {course.root}" in output
    _finishes(course, capsys, len(NAMES))


@pytest.fixture
def after_two(monkeypatch):
    """Something happens, once, when the second submission has been told."""

    def arrange(what):
        line = report.Progress.line
        entered, waiting = contextlib.ExitStack(), [what]

        def write_line(self, learner, word):
            line(self, learner, word)
            if self.done == 2 and waiting:
                entered.enter_context(waiting.pop())

        monkeypatch.setattr(report.Progress, "line", write_line)
        return entered

    return arrange


FAULTS = {
    "locked": (lambda course: locked(course.root / "gradebook.db"), "gradebook.db is locked"),
    "full": (lambda course: full(course.root), "No space left on device"),
    "progress": (lambda course: read_only(course.root / "progress"), "progress/"),
    "feedback": (lambda course: read_only(course.root / "feedback"), "feedback/"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_middle_stops_the_batch_and_loses_nothing(
    name, course_on_a_small_disk, capsys, after_two
):
    course = course_on_a_small_disk
    make, part = FAULTS[name]
    with after_two(make(course)):
        assert course.grade("--jobs", "1") == 1
    out, err = capsys.readouterr()
    assert part in err
    assert "What was graded is kept" in err
    assert "Traceback" not in out + err
    assert out.count("\n[") + out.startswith("[") < len(NAMES)  # it did not try them all
    folder = course.root / "progress" / NAME
    records = {learner: storage.load(folder, learner) for learner in NAMES}
    zeros = [learner for learner, record in records.items() if record and record.status == "zero"]
    assert zeros == NAMES[:2]
    _finishes(course, capsys, 2)


def test_a_table_that_cannot_be_written_is_told_and_the_old_one_stands(course, capsys, after_two):
    assert course.grade() == 0
    before = (course.root / "reports" / f"grades-{NAME}.csv").read_bytes()
    with after_two(read_only(course.root / "reports")):
        assert course.grade("--force") == 1
    out, err = capsys.readouterr()
    assert "grades-warmup.csv is not that of this run: reports/" in err
    assert "zero" in out  # the table itself is printed
    assert (course.root / "reports" / f"grades-{NAME}.csv").read_bytes() == before
    _finishes(course, capsys, len(NAMES))


def test_one_page_that_cannot_be_written_is_one_learners_matter(course, capsys):
    folder = course.root / "feedback" / "cy"
    with read_only(folder):
        assert course.grade() == 1
    table = course.table()
    assert {name for name, row in table.items() if row["status"] == "retry"} == {"cy"}
    assert "feedback/cy/warmup cannot be written" in table["cy"]["reason"]
    _finishes(course, capsys, len(NAMES) - 1)


def test_code_that_was_run_is_not_run_again_after_a_fault(course, capsys, after_two):
    for name in NAMES:
        double = f"{RIGHT['double']}\n# {name}"
        course.hand_in(name, answers(double=double, shout=RIGHT["shout"]))
    with after_two(locked(course.root / "gradebook.db")):
        assert course.grade("--jobs", "1") == 1
    ran = len(list((course.root / "progress" / NAME / "verdicts").glob("*.json")))
    assert ran > 2  # some had run and could not be written down
    assert course.grade() == 0
    summary = json.loads((course.root / "reports" / f"grades-{NAME}.json").read_text())
    assert (summary["run"], summary["graded"]) == (len(NAMES) - ran, len(NAMES))


def test_a_secret_is_whole_or_not_there(tmp_path, monkeypatch):
    def fails(size):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(storage.secrets, "token_bytes", fails)
        with pytest.raises(OSError, match="No space"):
            storage.course_secret(tmp_path)
    assert not (tmp_path / "progress" / ".secret").exists()
    made = storage.course_secret(tmp_path)
    assert len(made) == 32
    assert storage.course_secret(tmp_path) == made


def test_a_file_is_written_in_one_step(tmp_path):
    path = tmp_path / "table.csv"
    storage.write(path, "old")
    # Writing to this device always fails for want of room.
    os.symlink("/dev/full", tmp_path / "table.csv.part")
    with pytest.raises(OSError, match="No space left"):
        storage.write(path, "new")
    assert path.read_text() == "old"
    assert not (tmp_path / "table.csv.part").is_symlink()
