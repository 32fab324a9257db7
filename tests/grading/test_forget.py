"""A learner is forgotten: everywhere, nobody else with them, and as often as the command is run."""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import zipfile

import pytest
from course_folder import NAME, RIGHT, ROOT, Folder, answers, source
from nbgrader.api import Gradebook
from sqlalchemy import event
from sqlalchemy.engine import Engine
from test_commands import nbgrader

from grading import forget

FULL = {"ann": "Ann Lee", "ann2": "Ann Lee", "bob": "Bob Ross"}
NUMBER = {"ann": "11", "ann2": "12", "bob": "13"}
TRACE = "trace-of-ann"  # in what she wrote, printed and was told


def _table(rows: list[list[str]], encoding: str = "utf-8", end: str = "\n") -> bytes:
    return "".join(f"{','.join(row)}{end}" for row in rows).encode(encoding)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory, empty_gradebook):
    """A course that knows ann, ann2 and bob in every place that there is."""
    folder = Folder(tmp_path_factory.mktemp("forget"))
    shutil.copy(empty_gradebook, folder.root)
    folder.publish(source())
    for learner in FULL:
        text = f"print('{TRACE}')\n" * (learner == "ann") + RIGHT["double"]
        folder.hand_in(learner, answers(double=text))
    assert folder.grade() == 0
    with _book(folder) as gradebook:
        for learner, full in FULL.items():
            first, last = full.split()
            gradebook.update_or_create_student(
                learner,
                first_name=first,
                last_name=last,
                email=f"{learner}@example.org",
                lms_user_id=NUMBER[learner],
            )
        comment = gradebook.find_comment("shout", NAME, NAME, "ann")
        comment.manual_comment = TRACE
        gradebook.db.commit()
    assert folder.grade() == 0
    # An earlier submission's verdict, of which no record speaks any more.
    progress = folder.root / "progress" / NAME
    (progress / "verdicts" / "0123.json").write_text(json.dumps({"outputs": [[TRACE]]}))
    reports = folder.root / "reports"
    with zipfile.ZipFile(reports / f"moodle-feedback-{NAME}.zip", "w") as archive:
        for learner, full in FULL.items():
            place = f"{full}_9{NUMBER[learner]}_assignsubmission_file_"
            archive.writestr(f"{place}/{NAME}.html", f"page of {learner}")
    with zipfile.ZipFile(reports / f"canvas-feedback-{NAME}.zip", "w") as archive:
        for learner in FULL:
            archive.writestr(f"{learner}lee_7_8_{NAME}.html", f"page of {learner}")
    for learner, full in FULL.items():
        replaced = progress / "replaced" / learner / "1"
        replaced.mkdir(parents=True)
        (replaced / f"{NAME}.ipynb").write_text("{}")
        noted = {"layout": "canvas", "folder": f"{learner}lee_7_8_{NAME}.ipynb", "name": full}
        (progress / "collected").mkdir(exist_ok=True)
        (progress / "collected" / f"{learner}.json").write_text(json.dumps(noted))
        (reports / f"{NAME}-{learner}.html").write_text(learner)
    students = FULL.items()
    tables = {
        "canvas": [["Student", "ID", "SIS Login ID", "Points"]]
        + [[f'"{n.split()[1]}, {n.split()[0]}"', NUMBER[k], f"x{k}", "11"] for k, n in students],
        "moodle": [["Identifier", "Full name", "Email address", "Grade"]]
        + [[f"Participant 9{NUMBER[k]}", n, f"{k.upper()}@example.org", "11"] for k, n in students],
        "csv": [["learner", "note"]] + [[k, '"two\nlines, ann"'] for k in FULL],
    }
    encodings = {"moodle": "utf-8-sig", "canvas": "utf-16", "csv": "utf-8"}
    for system, rows in tables.items():
        data = _table(rows, encodings[system], "\r\n" if system == "moodle" else "\n")
        (reports / f"{system}-{NAME}.csv").write_bytes(data)
    rows = [["learner", "first name", "last name"], *([k, *n.split()] for k, n in students)]
    (folder.root / "roster.csv").write_bytes(_table(rows))
    (reports / f"class-{NAME}.html").write_text("<li>ann</li>")
    (reports / "other.html").write_text("<li>ann2, joann, ann@home</li>")
    (folder.root / "downloads").mkdir()
    (folder.root / "downloads" / "ann.ipynb").write_text(TRACE)
    (folder.root / "submissions.zip").write_text(TRACE)
    (reports / "class-second.html").write_text("<li>ann2, bob</li>")
    shutil.copy(folder.root / "gradebook.db", folder.root / "gradebook.db.2026-03-01")
    return folder


@pytest.fixture
def course(prepared, tmp_path):
    shutil.copytree(prepared.root, tmp_path / "course", symlinks=True)
    folder = Folder.__new__(Folder)
    folder.root, folder.assignment = tmp_path / "course", NAME
    return folder


def _book(folder: Folder) -> Gradebook:
    return Gradebook(f"sqlite:///{folder.root}/gradebook.db", "attention-position-cache")


def _forget(folder: Folder, learner: str, *options: str) -> int:
    return forget.main(["--course", str(folder.root), *options, "--", learner])


def _contents(folder: Folder) -> dict[str, bytes]:
    files = [path for path in sorted(folder.root.rglob("*")) if path.is_file()]
    return {path.relative_to(folder.root).as_posix(): path.read_bytes() for path in files}


LEFT = ("downloads/", "submissions.zip", "gradebook.db.2026")
GONE = [
    "reports/canvas-feedback-warmup.zip: 1 page",
    "reports/moodle-feedback-warmup.zip: 1 page",
    "reports/grades-warmup.csv: 1 row",
    "reports/canvas-warmup.csv: 1 row",
    "reports/moodle-warmup.csv: 1 row",
    "reports/csv-warmup.csv: 1 row",
    "roster.csv: 1 row",
    "reports/warmup-ann.html: page",
    "reports/class-warmup.html: page, which the next `make report` writes anew",
    "submitted/ann: folder, 1 file",
    "autograded/ann: folder, 3 files",
    "feedback/ann: folder, 3 files",
    "progress/warmup/verdicts: 2 files",
    "progress/warmup/ann.json: record",
    "progress/warmup/collected/ann.json: record",
    "progress/warmup/replaced/ann: folder, 1 file",
    "the gradebook: the student and 1 submission",
]


def test_a_look_lists_all_and_changes_nothing(course, capsys):
    before = _contents(course)
    assert _forget(course, "ann", "--dry-run") == 0
    out = capsys.readouterr().out
    listed = out.split("Left as it is")[0].splitlines()
    assert listed == ["Would delete what there is of ann:", *(f"  {line}" for line in GONE)]
    for text in ("gradebook.db.2026-03-01", "downloads/, submissions.zip"):
        assert f"  {text}" in out.split("Left as it is")[1]
    assert "other.html" not in out
    for line in GONE:  # said once: what would be deleted is not left as it is
        assert f"  {line.split(':')[0]}\n" not in out.split("Left as it is")[1], line
    assert "Not reached from here: the learning management system" in out
    assert _contents(course) == before


def test_a_table_that_still_names_them_afterwards_is_listed(course, capsys):
    table = course.root / "reports" / "csv-warmup.csv"
    table.write_bytes(table.read_bytes() + b"bob,copied from ann\n")
    assert _forget(course, "ann") == 0
    assert "  reports/csv-warmup.csv\n" in capsys.readouterr().out.split("Left as it is")[1]


def test_nothing_of_them_is_left_and_others_keep_every_byte(course, capsys):
    before = _contents(course)
    assert _forget(course, "ann") == 0
    assert capsys.readouterr().out.startswith("Deleted what there is of ann:\n")
    after = _contents(course)
    for name, data in after.items():
        if not name.startswith(LEFT):
            assert TRACE.encode() not in data, name
            assert b"ann@example" not in data.lower(), name
    # What names nobody but others is as it was, to the byte.
    changed = {name for name in before if before[name] != after.get(name)}
    assert not {name for name in changed if "ann2" in name or "bob" in name}
    rows = {name: after[name] for name in after if name.endswith(".csv")}
    assert rows["reports/csv-warmup.csv"] == before["reports/csv-warmup.csv"].replace(
        b'ann,"two\nlines, ann"\n', b""
    )
    moodle = before["reports/moodle-warmup.csv"]
    row = b"Participant 911,Ann Lee,ANN@example.org,11\r\n"
    assert rows["reports/moodle-warmup.csv"] == moodle.replace(row, b"")
    canvas = before["reports/canvas-warmup.csv"].decode("utf-16")
    assert rows["reports/canvas-warmup.csv"].decode("utf-16") == canvas.replace(
        '"Lee, Ann",11,xann,11\n', ""
    )
    assert set(course.table()) == {"ann2", "bob"}
    for system, names in {
        "moodle": {f"Ann Lee_912_assignsubmission_file_/{NAME}.html": b"page of ann2"},
        "canvas": {f"ann2lee_7_8_{NAME}.html": b"page of ann2"},
    }.items():
        with zipfile.ZipFile(course.root / "reports" / f"{system}-feedback-{NAME}.zip") as archive:
            pages = {name: archive.read(name) for name in archive.namelist()}
        assert names.items() <= pages.items()
        assert len(pages) == 2
    with _book(course) as gradebook:
        assert [student.id for student in gradebook.students] == ["ann2", "bob"]
        assert gradebook.find_submission(NAME, "ann2").score == 2.0
    assert course.grade() == 0
    assert "unchanged" in capsys.readouterr().out


def test_it_is_safely_repeated(course, capsys):
    assert _forget(course, "ann") == 0
    before = _contents(course)
    capsys.readouterr()
    assert _forget(course, "ann") == 0
    out = capsys.readouterr().out
    assert "Nothing is kept under the name ann; there are: ann2, bob" in out
    assert _contents(course) == before


def test_one_that_was_interrupted_is_finished_by_the_next(prepared, tmp_path, monkeypatch):
    """Stopped after each step in turn."""
    ends = []
    for stop in range(len(GONE)):
        shutil.copytree(prepared.root, tmp_path / str(stop), symlinks=True)
        folder = Folder.__new__(Folder)
        folder.root, folder.assignment = tmp_path / str(stop), NAME
        steps = forget._steps

        def until(*arguments, stop=stop, steps=steps):
            def fail():
                raise KeyboardInterrupt

            return [*steps(*arguments)[:stop], forget.Step("", fail)]

        with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
            patch.setattr(forget, "_steps", until)
            _forget(folder, "ann")
        assert _forget(folder, "ann") == 0
        contents = _contents(folder)
        ends.append(
            {name: contents[name] for name in contents if not name.endswith((".db", ".zip"))}
        )
        assert not [name for name in contents if name.endswith(".part")]
        with _book(folder) as gradebook:
            assert len(gradebook.students) == 2
        for path in (folder.root / "reports").glob("*.zip"):
            with zipfile.ZipFile(path) as archive:
                assert len(archive.namelist()) == 2
        shutil.rmtree(folder.root)
    assert all(end == ends[0] for end in ends)


def test_a_run_that_grades_is_not_disturbed(course, capsys):
    before = _contents(course)
    with (course.root / "progress" / ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        assert _forget(course, "ann") == 2
    assert "another run is grading in this course" in capsys.readouterr().err
    assert _contents(course) == before


@pytest.mark.parametrize("name", ["", " ", "..", ".", "../bob", "a/b", "/etc", ".secret"])
def test_what_cannot_be_a_name_is_refused(course, capsys, name):
    before = _contents(course)
    assert _forget(course, name) == 2
    assert "is no learner's name" in capsys.readouterr().err
    assert _contents(course) == before


@pytest.mark.parametrize("name", ["a*", "an?", "[ab]*", "ANN", "ann ", "verdicts", "warmup", "%"])
def test_a_name_is_taken_literally(course, capsys, name):
    before = _contents(course)
    assert _forget(course, name) == 0
    assert "Nothing is kept under the name" in capsys.readouterr().out
    assert _contents(course) == before


def test_links_are_removed_and_not_followed(course, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "thing").touch()
    shutil.rmtree(course.root / "submitted" / "ann")
    (course.root / "submitted" / "ann").symlink_to(outside)
    (course.root / "autograded" / "ann" / "link").symlink_to(outside)
    assert _forget(course, "ann") == 0
    assert not os.path.lexists(course.root / "submitted" / "ann")
    assert (outside / "thing").exists()


def test_a_folder_with_an_impossible_name_goes_too_and_steers_no_terminal(course, capsys):
    name = "an\x1b[2Jn"
    course.hand_in(name, b"{")
    assert _forget(course, name) == 0
    out = capsys.readouterr().out
    assert "submitted/an?[2Jn: folder" in out
    assert "\x1b" not in out
    assert not (course.root / "submitted" / name).exists()


def test_a_row_that_only_shares_a_name_stays_and_is_said(course, capsys):
    roster = course.root / "roster.csv"
    roster.write_text("learner,full name\nann9,Ann Lee\nzoe,Zoe Zed\n")
    assert _forget(course, "ann") == 0
    assert "ann9,Ann Lee" in roster.read_text()
    line = "roster.csv (a row has their name, and another login, address or number)"
    assert line in capsys.readouterr().out


def test_a_row_that_has_nothing_but_the_name_goes(course):
    roster = course.root / "roster.csv"
    roster.write_text("name,section\nLEE,1\nann  lee,2\n")
    assert _forget(course, "ann") == 0
    assert roster.read_text() == "name,section\nLEE,1\n"


def test_a_number_in_another_column_is_nobodys(course):
    table = course.root / "reports" / f"canvas-{NAME}.csv"
    table.write_text("Student,ID,Points\nZoe Zed,99,11\n")
    before = table.read_bytes()
    assert _forget(course, "ann") == 0
    assert table.read_bytes() == before


def test_what_cannot_be_read_is_said_before_anything_goes(course, capsys):
    (course.root / "reports" / "csv-x.csv").write_bytes(b"\xff\xfe\xff")
    before = _contents(course)
    assert _forget(course, "ann") == 2
    assert "csv-x.csv is no CSV that can be read" in capsys.readouterr().err
    assert _contents(course) == before


def test_the_gradebooks_file_does_not_hold_what_was_deleted(course):
    """Debian's SQLite overwrites what is deleted; as it comes, SQLite does not."""

    def plain(connection, _):
        connection.execute("PRAGMA secure_delete = OFF")

    assert TRACE.encode() in (course.root / "gradebook.db").read_bytes()
    event.listen(Engine, "connect", plain)
    try:
        assert _forget(course, "ann") == 0
    finally:
        event.remove(Engine, "connect", plain)
    assert TRACE.encode() not in (course.root / "gradebook.db").read_bytes()


def test_without_a_gradebook_none_is_made(tmp_path):
    folder = Folder(tmp_path)
    folder.publish(source())
    folder.hand_in("ann", b"{")
    assert _forget(folder, "ann", "--dry-run") == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "nbgrader_config.py",
        "solutions",
        "submitted",
    ]
    assert _forget(folder, "ann") == 0
    assert not (tmp_path / "gradebook.db").exists()
    assert not (tmp_path / "submitted" / "ann").exists()


# --- learners' data and git


def _ignored(*paths: str) -> set[str]:
    words = ["git", "check-ignore", "--no-index", *paths]  # tracked or not
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    return set(done.stdout.split())


def test_git_ignores_learners_data_wherever_commands_put_it(prepared, tmp_path):
    """After commands of ours and of nbgrader nothing that they wrote would be committed."""
    shutil.copytree(prepared.root, tmp_path / "course", symlinks=True)
    folder = Folder.__new__(Folder)
    folder.root, folder.assignment = tmp_path / "course", NAME
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    shutil.copy(ROOT / ".gitignore", folder.root)
    subprocess.run([*git, "init", "-q"], cwd=folder.root, check=True)
    own = [".gitignore", "nbgrader_config.py", "solutions"]
    subprocess.run([*git, "add", *own], cwd=folder.root, check=True)
    subprocess.run([*git, "commit", "-qm", "The course"], cwd=folder.root, check=True)
    archive = folder.root / "downloaded" / NAME / "archive"
    archive.mkdir(parents=True)
    (archive / f"ann_{NAME}.ipynb").write_text("{}")
    for words in (
        ("zip_collect", NAME, "--force"),
        ("export",),
        ("generate_feedback", NAME, "--NbGrader.logfile=.nbgrader.log"),
        ("db", "student", "list"),
    ):
        done = nbgrader(folder, *words)
        assert done.returncode == 0, (words, done.stderr[-2000:])
    written = {path.name for path in folder.root.iterdir()}
    assert {"downloaded", "grades.csv", ".nbgrader.log", "roster.csv"} <= written
    words = [*git, "status", "--porcelain", "--untracked-files=all"]
    done = subprocess.run(words, cwd=folder.root, capture_output=True, text=True, check=True)
    # nbgrader's processes have this folder as their home.
    home = ("?? .cache/", "?? .config/", "?? .ipython/", "?? .jupyter/", "?? .local/")
    lines = [line for line in done.stdout.splitlines() if not line.startswith(home)]
    assert lines == []


def test_git_keeps_what_is_ours():
    names = ["roster.csv", "roster.csv.x.part", "download.zip", "gradebook.db-journal"]
    assert _ignored(*names) == set(names)
    ours = [
        "book/01-attention.ipynb",
        "exercises/01-attention/01-attention.ipynb",
        "grading/roster.py",
    ]
    assert not _ignored(*ours, "tests/grading/data/roster.csv")
