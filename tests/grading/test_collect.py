"""From a system's download to ``submitted/``: layouts, learners, times, and hostile archives."""

import csv
import hashlib
import io
import json
import os
import re
import shutil
import stat
import struct
import zipfile
from datetime import datetime, timedelta

import pytest
from course_folder import NAME, RIGHT, answers, source
from downloads import DAY, GRADEBOOK, POINTS, WORKSHEET, pack, table, unpack, worksheet_row
from nbgrader.api import Gradebook
from test_grading import new_course

from grading import class_report, collect, forget, hand_back, roster
from grading.batch import FOREIGN
from grading.course import Course, Refusal

WORKED = json.dumps(answers(**RIGHT)).encode()
HALF = json.dumps(answers(double=RIGHT["double"])).encode()
BLANK = json.dumps(answers()).encode()
BOOK = f"{NAME}.ipynb"
EVERYBODY = ADA, BOB, CY = "Ada Lovelace", "Bob O'Neil", "Chloé Ångström"


def moodle(name, number, plugin="file"):
    return f"{name}_{number}_assignsubmission_{plugin}"


@pytest.fixture
def course(tmp_path, empty_gradebook):
    root = tmp_path / "course"
    root.mkdir()
    shutil.copy(empty_gradebook, root)
    folder = new_course(root)
    release = root / "exercises" / NAME
    release.mkdir(parents=True)
    (release / BOOK).write_bytes(BLANK)
    return folder


@pytest.fixture
def run(course, capsys):
    """Run the command; its exit status and what it printed."""

    def command(download, *options, assignment=NAME):
        words = [str(download), assignment, "--course", str(course.root), "--zone", "UTC"]
        code = collect.main([*words, *map(str, options)])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return command


def files(root):
    """Every file below a folder, with its content's hash."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file()
    }


def handed_in(course):
    """What is in ``submitted/``: each learner's bytes and time."""
    files = {}
    for path in sorted(course.root.glob(f"submitted/*/{NAME}/{BOOK}")):
        stamp = path.with_name("timestamp.txt")
        files[path.parts[-3]] = (path.read_bytes(), stamp.read_text() if stamp.exists() else "")
    return files


def students(course):
    with Gradebook(f"sqlite:///{course.root}/gradebook.db", "attention-position-cache") as book:
        return {
            one.id: (one.first_name, one.last_name, one.email, one.lms_user_id)
            for one in book.students
        }


def due(course, when, learner=None):
    """Set the due date, after the command that instructors use."""
    url = f"sqlite:///{course.root}/gradebook.db"
    with Gradebook(url, "attention-position-cache") as book:
        book.update_or_create_assignment(NAME, duedate=when)


def worksheet(path, *rows, **options):
    return table(path, [WORKSHEET, *rows], **options)


# --- one case by hand


def test_without_do_nothing_is_written_and_with_it_just_that(course, run, tmp_path):
    download = pack(tmp_path / "d.zip", {f"{moodle(ADA, 7)}/{BOOK}": WORKED})
    sheet = worksheet(
        tmp_path / "w.csv",
        worksheet_row(7, ADA, "ada@uni.example", "Sunday, 1 March 2026, 11:58 AM"),
    )
    before = files(course.root)
    code, output = run(download, "--roster", sheet)
    assert code == 0
    assert f"would be taken (1):\n  ada: {ADA}_7" in output
    assert "Nothing was written" in output
    assert files(course.root) == before
    code, output = run(download, "--roster", sheet, "--do")
    assert code == 0
    assert "\ntaken (1):" in output
    assert handed_in(course) == {"ada": (WORKED, "2026-03-01 11:58:00 UTC\n")}
    assert students(course) == {"ada": ("Ada", "Lovelace", "ada@uni.example", None)}


def test_what_was_collected_is_graded(course, run, tmp_path):
    download = pack(tmp_path / "d.zip", {"ada.ipynb": WORKED, "bob.ipynb": BLANK})
    assert run(download, "--do")[0] == 0
    assert course.grade() == 0
    assert course.scores() == {"ada": ("5.0", "graded"), "bob": ("0.0", "graded")}


# --- layouts


ROSTER = [
    ["learner", "first name", "last name", "email", "section", "id"],
    ["ada", "Ada", "Lovelace", "ada@uni.example", "A", "101"],
    ["bob", "Bob", "O'Neil", "bob@uni.example", "B", "102"],
    ["cy", "Chloé", "Ångström", "cy@uni.example", "A", "103"],
]
METADATA = """---
submission_31:
  :submitters:
  - :name: Ada Lovelace
    :sid: '101'
    :email: ada@uni.example
  :created_at: 2026-03-01 12:00:30.644186000 Z
  :score: 0.0
  :results:
    :output: "x\\n  :created_at: 1999-01-01 00:00:00 Z"
submission_32:
  :submitters:
  - :name: B. O.
    :sid: '102'
    :email: BOB@uni.example
  - :name: Chloé Ångström
    :sid: '103'
    :email: ''
  :created_at: 2026-03-02 09:00:00 +02:00
"""
LAYOUTS = {
    "canvas": {
        f"lovelaceada_101_9001_{BOOK}": WORKED,
        f"oneilbob_LATE_102_9002_{NAME}-1.ipynb": HALF,
        f"ångströmchloé_103_9003_{BOOK}": WORKED,
    },
    "moodle folders": {
        f"{moodle(ADA, 7)}/{BOOK}": WORKED,
        f"{moodle(BOB, 8)}/{BOOK}": HALF,
        f"{moodle(CY, 9)}/{BOOK}": WORKED,
        f"{moodle(CY, 9, 'onlinetext')}/onlinetext.html": b"<p>hello</p>",
    },
    "moodle before 4.1": {
        f"{moodle(ADA, 7)}_/{BOOK}": WORKED,
        f"{moodle(BOB, 8)}_/{BOOK}": HALF,
        f"{moodle(CY, 9)}_/{BOOK}": WORKED,
    },
    "moodle files": {
        f"{moodle(ADA, 7)}_{BOOK}": WORKED,
        f"{moodle(BOB, 8)}_{BOOK}": HALF,
        f"{moodle(CY, 9)}_x_99_assignsubmission_file_{BOOK}": WORKED,
    },
    "gradescope": {
        "assignment_5_export/submission_metadata.yml": METADATA.encode(),
        f"assignment_5_export/submission_31/{BOOK}": WORKED,
        f"assignment_5_export/submission_32/{BOOK}": HALF,
    },
    "plain": {"ada.ipynb": WORKED, "bob@uni.example.ipynb": HALF, "103.ipynb": WORKED},
}


@pytest.mark.parametrize("unpacked", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_layout_is_recognized_as_zip_and_as_folder(course, run, tmp_path, layout, unpacked):
    download = pack(tmp_path / "d.zip", LAYOUTS[layout])
    sheet = table(tmp_path / "r.csv", ROSTER)
    if unpacked:
        download = unpack(download, tmp_path / "unpacked" / "around it")
        sheet = sheet.rename(download / "r.csv")  # beside the files, as people keep it
    code, output = run(download, "--roster", sheet, "--do")
    assert code == 0
    kind = {"plain": "a folder of NAME.ipynb"}.get(layout, layout.split()[0].capitalize())
    assert f": {kind}, {len(LAYOUTS[layout])} files" in output
    data = {name: data for name, (data, _) in handed_in(course).items()}
    third = HALF if layout == "gradescope" else WORKED  # there, bob and cy handed in as a group
    assert data == {"ada": WORKED, "bob": HALF, "cy": third}
    assert "not matched" not in output
    assert "extra files" not in output  # Moodle's page of typed text is none
    assert ("misnamed" in output) == (layout == "moodle files")  # cy's has a name of its own
    assert students(course)["cy"] == ("Chloé", "Ångström", "cy@uni.example", "103")


def test_gradescope_says_when(course, run, tmp_path):
    run(pack(tmp_path / "d.zip", LAYOUTS["gradescope"]), "--do")
    times = {name: when for name, (_, when) in handed_in(course).items()}
    # Without a roster, its own names and addresses are one.
    assert times == {
        "ada": "2026-03-01 12:00:30 UTC\n",
        "bob": "2026-03-02 07:00:00 UTC\n",
        "angstrom-chloe": "2026-03-02 07:00:00 UTC\n",
    }
    assert students(course)["ada"] == ("Ada", "Lovelace", "ada@uni.example", "101")


@pytest.mark.parametrize("form", ["list", "- 1", "{", "&a [*a]", "[" * 5000, "\x00"])
def test_metadata_that_are_none_do_no_harm(course, run, tmp_path, form):
    entries = {"submission_metadata.yml": form.encode(), f"submission_1/{BOOK}": WORKED}
    code, output = run(pack(tmp_path / "d.zip", entries), "--do")
    assert code == 2 if "refused" in output else "not matched to a learner" in output
    assert handed_in(course) == {}


def test_a_download_of_nothing_known_is_refused_with_what_it_holds(course, run, tmp_path):
    code, output = run(pack(tmp_path / "d.zip", {"a/b.txt": b"", "c.pdf": b""}))
    assert code == 2
    assert "no download of Canvas, Moodle or Gradescope" in output
    assert "a/b.txt, c.pdf" in output


# --- rosters


def test_the_systems_exports_are_rosters_as_they_are(tmp_path):
    canvas = [
        [*GRADEBOOK, "Warmup (55)", "Current Score"],
        ["", "", "", "", "", "Manual Posting", ""],
        [POINTS, "", "", "", "", "5.00", "(read only)"],
        ["Lovelace, Ada", "101", "S1", "alovelace", "A", "", "0"],
        ["Student, Test", "199", "", "d41d8cd98f00b204e9800998ecf8427e", "A", "", "0"],
    ]
    gradescope = [
        ["First Name", "Last Name", "SID", "Email", "Role", "Section"],
        ["Ada", "Lovelace", "S1", "ada@uni.example", "Student", "A"],
        ["Tea", "Cher", "", "t@uni.example", "Instructor", "A"],
    ]
    extended = (
        "Submitted for grading - Extension granted until: Sunday, 8 March 2026, 12:00\u202fPM"
    )
    sheet = [
        WORKSHEET,
        # as some versions write it: a narrow no-break space before PM
        worksheet_row(
            7, ADA, "ada@uni.example", "Sunday, March 1, 2026, 1:05\u202fPM", status=extended
        ),
    ]
    files = {}
    for kind, rows in (("canvas", canvas), ("gradescope", gradescope), ("moodle", sheet)):
        read = roster.read(table(tmp_path / kind, rows, bom=True, end="\r\n"))
        assert read.kind == kind
        (files[kind],) = roster.people(read, collect.zone_of("UTC"))
        assert (files[kind].first, files[kind].last) == ("Ada", "Lovelace")
    assert (files["canvas"].lms_id, files["canvas"].login) == ("101", "alovelace")
    assert (files["gradescope"].lms_id, files["gradescope"].section) == ("S1", "A")
    assert files["moodle"].participant == "7"
    assert files["moodle"].submitted == datetime(2026, 3, 1, 13, 5)
    assert files["moodle"].extension == datetime(2026, 3, 8, 12, 0)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"a,b\n1,2\n", "does not say who the learners are. Its columns: a, b"),
        (b"name,email\nx,y,z\n", "record 2 has 3 cells and the header 2"),
        (b'name,email\n"x,y\n', "is no CSV"),
        (b"name,email\n\xff,y\n", r"is not UTF-8 text \(byte 11\)"),
        (b"name,extension\nAda,soon\n", r"record 2: the extension 'soon' is no date"),
        (b"learner,name\nada,Ada\nADA,Bea\n", "two learners would be 'ADA'"),
        (
            b"learner,name\nada,A\n-rf,B\n",
            "record 3: no folder can have the name '-rf', .*`learner`",
        ),
        (b"learner,name\nada/../b,A\n", "record 2: no folder can have the name 'ada/../b'"),
        (b"learner,name\n=x,A\n", "record 2: no folder can have the name '=x'"),
        (b"learner,name\n%b,A\n" % (b"x" * 250), "record 2: no folder can have the name 'xxx"),
        (b"name\n!!!\n!!!\n", "two learners would be 'learner-"),
        (b"", "does not say who"),
    ],
)
def test_a_roster_that_cannot_be_used_is_refused_with_the_place(tmp_path, data, reason):
    (tmp_path / "r.csv").write_bytes(data)
    with pytest.raises(Refusal, match=reason):
        roster.named(roster.people(roster.read(tmp_path / "r.csv")), [])


def test_a_name_stays_whichever_roster_comes_next(course, run, tmp_path):
    first = table(tmp_path / "1.csv", [["name", "email", "id"], [ADA, "ada@uni.example", "101"]])
    download = pack(tmp_path / "d.zip", {f"lovelaceada_101_1_{BOOK}": WORKED})
    run(download, "--roster", first, "--do")
    assert list(handed_in(course)) == ["ada"]
    gradebook = [GRADEBOOK, ["Lovelace, Ada", "101", "S1", "xy1815", "A"]]
    run(download, "--roster", table(tmp_path / "2.csv", gradebook), "--do")
    # and a second Ada, of another university, does not become the first
    third = [
        ["name", "email", "id"],
        [ADA, "ada@uni.example", ""],
        ["Ada Yonath", "ada@other.example", "101"],  # in another system's numbers
    ]
    assert run(download, "--roster", table(tmp_path / "3.csv", third), "--do")[0] == 0
    assert list(handed_in(course)) == ["ada"]
    assert sorted(students(course)) == ["ada", "ada@other.example"]


LI, OTHER_LI = "\u738b Li", "\u674e Li"  # two people with the same ASCII letters


def test_sorting_a_roster_moves_nobody(course, run, tmp_path):
    names = [["full name"], [LI], [OTHER_LI], ["Jos\u00e9 Paz"], ["Jose Paz"]]
    download = pack(
        tmp_path / "d.zip",
        {f"{name}.ipynb": WORKED if name == LI else HALF for (name,) in names[1:3]},
    )
    run(download, "--roster", table(tmp_path / "r.csv", names), "--do")
    before, people = handed_in(course), students(course)
    assert sorted(data for data, _ in before.values()) == sorted([WORKED, HALF])
    _, output = run(
        download, "--roster", table(tmp_path / "r.csv", [names[0], *names[:0:-1]]), "--do"
    )
    assert "there already, unchanged (2)" in output
    assert (handed_in(course), students(course)) == (before, people)


def test_a_learner_who_gets_the_same_letters_is_another(course, run, tmp_path):
    run(pack(tmp_path / "d.zip", {f"{moodle(LI, 7)}/{BOOK}": WORKED}), "--do")
    first = handed_in(course)
    _, output = run(pack(tmp_path / "d.zip", {f"{moodle(OTHER_LI, 9)}/{BOOK}": HALF}), "--do")
    assert "replaced" not in output
    assert handed_in(course).items() > first.items()


EVES = {
    "an address that loses letters": ("Eve Evil", "ada+@evil.example"),
    "the same part before the @": ("Eve Evil", "ada@evil.example"),
    "the same name": (ADA, "eve@evil.example"),
    "a name like the folder's": ("ada", "eve@evil.example"),
}


@pytest.mark.parametrize("kind", ["gradescope", "moodle"])
@pytest.mark.parametrize("eve", EVES)
def test_nobody_gets_the_name_of_somebody_else(course, run, tmp_path, kind, eve):
    name, address = EVES[eve]
    sheet = worksheet(tmp_path / "w.csv", worksheet_row(7, ADA, "ada@uni.example"))
    run(
        pack(tmp_path / "d.zip", {f"{moodle(ADA, 7)}/{BOOK}": WORKED}),
        *("--roster", sheet, "--do"),
    )
    # Ada has left; or she is in neither download.
    if kind == "moodle":
        download = pack(tmp_path / "e.zip", {f"{moodle(name, 8)}/{BOOK}": HALF})
        sheet = worksheet(tmp_path / "w.csv", worksheet_row(8, name, address))
        words = ["--roster", sheet]
        if eve == "the same name":  # and so may be the download of another assignment
            assert run(download, *words, "--do")[0] == 2
            assert handed_in(course) == {"ada": (WORKED, "")}
            return
    else:
        metadata = f"submission_1:\n  :submitters:\n  - :name: {name}\n    :email: {address}\n"
        words = []
        download = pack(
            tmp_path / "e.zip",
            {"submission_metadata.yml": metadata.encode(), f"submission_1/{BOOK}": HALF},
        )
    code, output = run(download, *words, "--do")
    assert code == 0
    assert "replaced" not in output
    data = handed_in(course)
    assert data.pop("ada") == (WORKED, "")
    assert [each for each, _ in data.values()] == [HALF]
    assert students(course)["ada"][:3] == ("Ada", "Lovelace", "ada@uni.example")


def test_two_addresses_of_the_same_letters_do_not_stop_the_class(course, run, tmp_path):
    rows = [["name", "email"], [ADA, "a+b@u.example"], [BOB, "a-b@u.example"]]
    rows += [[CY, "a!b@u.example"], ["Dora D", "d@u.example"]]
    code, _ = run(
        pack(tmp_path / "d.zip", {f"{ADA}.ipynb": WORKED, f"{BOB}.ipynb": HALF}),
        *("--roster", table(tmp_path / "r.csv", rows), "--do"),
    )
    assert code == 0
    assert students(course).keys() > {"a-b", "d"}
    assert len(students(course)) == 4
    assert {name: data for name, (data, _) in handed_in(course).items()}["a-b"] == HALF


def test_a_later_roster_joins_whom_it_can_prove_and_names_the_others(course, run, tmp_path):
    both = {f"{moodle(ADA, 7)}/{BOOK}": WORKED, f"{moodle(BOB, 8)}/{BOOK}": HALF}
    run(pack(tmp_path / "d.zip", both), "--do")
    sheet = worksheet(
        tmp_path / "w.csv",
        worksheet_row(7, ADA, "ada@uni.example"),
        worksheet_row(8, BOB, "bob@uni.example"),
    )
    run(pack(tmp_path / "d.zip", both), "--roster", sheet, "--do")
    assert sorted(handed_in(course)) == ["lovelace-ada", "o-neil-bob"]
    assert students(course)["lovelace-ada"][2] == "ada@uni.example"
    export = [[*GRADEBOOK, "Current Score"], ["Lovelace, Ada", "101", "S1", "al123", "A", ""]]
    _, output = run(
        pack(tmp_path / "d.zip", {f"lovelaceada_101_9001_{BOOK}": HALF}),
        *("--roster", table(tmp_path / "c.csv", export)),
    )
    assert "Ada Lovelace: al123 here; lovelace-ada in the gradebook may be the same" in output


def test_another_assignments_download_is_refused(course, run, tmp_path):
    both = {f"{moodle(ADA, 7)}/{BOOK}": WORKED, f"{moodle(BOB, 8)}/{BOOK}": HALF}
    run(pack(tmp_path / "d.zip", both), "--do")
    other = {f"{moodle(ADA, 90)}/{BOOK}": HALF, f"{moodle(BOB, 91)}/{BOOK}": HALF}
    code, output = run(pack(tmp_path / "d.zip", other), "--do")
    assert code == 2
    assert output.startswith(f"Assignment {NAME}\n")
    assert "participant 90 there, and was 7 when warmup was collected" in output
    assert handed_in(course)["lovelace-ada"][0] == WORKED
    # One among those who agree is somebody else of the same name.
    mixed = {f"{moodle(ADA, 90)}/{BOOK}": HALF, f"{moodle(BOB, 8)}/{BOOK}": HALF}
    code, output = run(pack(tmp_path / "d.zip", mixed), "--do")
    assert code == 0
    assert handed_in(course)["lovelace-ada"][0] == WORKED


def test_numbers_of_another_assignment_match_nobody(course, run, tmp_path):
    # Moodle numbers the participants of each assignment anew.
    sheet = worksheet(tmp_path / "w.csv", worksheet_row(7, BOB, "bob@uni.example"))
    download = pack(tmp_path / "d.zip", {f"{moodle(ADA, 7)}/{BOOK}": WORKED})
    _, output = run(download, "--roster", sheet, "--do")
    assert "participant 7 is \"Bob O'Neil\" in the roster and 'Ada Lovelace' here" in output
    assert handed_in(course) == {}


def test_two_of_one_name_are_told_apart_by_number_or_not_at_all(course, run, tmp_path):
    rows = [
        worksheet_row(7, ADA, "ada@uni.example"),
        worksheet_row(8, ADA, "lovelace@uni.example"),
    ]
    sheet = worksheet(tmp_path / "w.csv", *rows)
    download = pack(
        tmp_path / "d.zip", {f"{moodle(ADA, 8)}/{BOOK}": WORKED, f"{moodle(ADA, 9)}/{BOOK}": HALF}
    )
    _, output = run(download, "--roster", sheet, "--do")
    assert "2 learners of the roster are called 'Ada Lovelace'" in output
    assert handed_in(course) == {"lovelace": (WORKED, "")}


def test_without_a_roster_the_gradebook_knows_people_and_namesakes_are_not_merged(
    course, run, tmp_path
):
    sheet = worksheet(tmp_path / "w.csv", worksheet_row(7, ADA, "ada@uni.example"))
    first = pack(tmp_path / "d.zip", {f"{moodle(ADA, 7)}/{BOOK}": HALF})
    run(first, "--roster", sheet, "--do")
    # Another download without a roster; Moodle's numbers are not known, as after a file by mail.
    shutil.rmtree(course.root / "progress" / NAME / "collected")
    run(pack(tmp_path / "d.zip", {f"{moodle(ADA, 31)}/{BOOK}": WORKED}), "--do")
    assert handed_in(course)["ada"][0] == WORKED
    shutil.rmtree(course.root / "progress" / NAME / "collected")
    two = {f"{moodle(ADA, 31)}/{BOOK}": HALF, f"{moodle(ADA, 32)}/{BOOK}": HALF}
    _, output = run(pack(tmp_path / "d.zip", two), "--do")
    assert output.count("the system has several of this name, and ada is one") == 2
    # One who left the course, with the name of one who is in the worksheet.
    two = {f"{moodle(ADA, 7)}/{BOOK}": HALF, f"{moodle(ADA, 9)}/{BOOK}": BLANK}
    _, output = run(pack(tmp_path / "d.zip", two), "--roster", sheet, "--do")
    assert "warmup.ipynb: 'Ada Lovelace' is participant 7 in the roster and 9 here" in output
    assert {name: data for name, (data, _) in handed_in(course).items()} == {"ada": HALF}


# --- which file counts


def _zip_of(tmp_path, entries, times=None):
    inside = {f"{moodle(ADA, 7)}/{name}": data for name, data in entries.items()}
    times = {f"{moodle(ADA, 7)}/{name}": when for name, when in (times or {}).items()}
    # Somebody else, a day earlier: so the times are not those of the download.
    inside[f"{moodle(BOB, 8)}/{BOOK}"] = HALF
    times[f"{moodle(BOB, 8)}/{BOOK}"] = (2026, 2, 28, 12, 0, 0)
    return pack(tmp_path / "d.zip", inside, times)


@pytest.mark.parametrize(
    ("entries", "times", "wanted", "words"),
    [
        # A browser's second copy beside the untouched release.
        ({BOOK: BLANK, f"{NAME} (1).ipynb": WORKED}, {}, WORKED, "untouched"),
        # The newest counts, though an earlier one has the right name,
        (
            {BOOK: HALF, "final.ipynb": WORKED},
            {"final.ipynb": (2026, 3, 1, 12, 5, 0)},
            WORKED,
            rf"final.ipynb: taken as {NAME}.ipynb",
        ),
        # but not where it is untouched,
        ({BOOK: WORKED, "b.ipynb": BLANK}, {"b.ipynb": (2026, 3, 2, 0, 0, 0)}, WORKED, "untouched"),
        # or no notebook at all.
        ({BOOK: WORKED, "b.ipynb": b"{"}, {"b.ipynb": (2026, 3, 2, 0, 0, 0)}, WORKED, "be read"),
        # Names that differ by case or by Unicode's form alone.
        ({"WARMUP.ipynb": WORKED, "notes.pdf": b"%"}, {}, WORKED, "notes.pdf: no notebook"),
        ({"\uff57armup.IPYNB": WORKED}, {}, WORKED, "taken"),
        # Of two that cannot be ordered, the one with the right name; and that is said.
        ({BOOK: WORKED, "other.ipynb": HALF}, {}, WORKED, "which is newer is unknown; look"),
        ({BOOK: WORKED, "Warmup.ipynb": HALF}, {}, WORKED, "which is newer is unknown; look"),
        # Broken is taken too, and gets its reason when it is graded.
        ({BOOK: b"{"}, {}, b"{", "taken"),
    ],
)
def test_of_several_files_one_counts_and_the_others_are_named(
    course, run, tmp_path, entries, times, wanted, words
):
    _, output = run(_zip_of(tmp_path, entries, times), "--do")
    assert handed_in(course)["lovelace-ada"][0] == wanted
    assert re.search(words, output)


def test_an_untouched_release_alone_is_taken(course, run, tmp_path):
    run(_zip_of(tmp_path, {BOOK: BLANK}), "--do")
    assert handed_in(course)["lovelace-ada"][0] == BLANK


def test_another_assignments_file_is_taken_only_to_tell_its_author(course, run, tmp_path):
    other = course.root / "solutions" / "second"
    other.mkdir()
    (other / "second.ipynb").write_text(json.dumps(source()))
    foreign = re.sub(rb'"(double|shout)', rb'"other-\1', WORKED)
    _, output = run(_zip_of(tmp_path, {"Second (2).ipynb": foreign}), "--do")
    assert "another assignment's; left out" in output
    assert "so that its author is told (1)" in output
    assert "nothing that can be taken" not in output  # it is taken, for the verdict
    course.grade()
    assert course.table()["lovelace-ada"]["reason"] == FOREIGN
    run(_zip_of(tmp_path, {"Second (2).ipynb": foreign, BOOK: WORKED}), "--do")
    assert handed_in(course)["lovelace-ada"][0] == WORKED
    run(_zip_of(tmp_path, {"Second (2).ipynb": foreign}), "--do")
    assert handed_in(course)["lovelace-ada"][0] == WORKED


@pytest.mark.parametrize("options", [(), ("--do",)])
def test_a_download_of_another_assignments_files_is_refused(course, run, tmp_path, options):
    other = course.root / "solutions" / "Second"
    other.mkdir()
    (other / "Second.ipynb").write_text(json.dumps(source()))
    everybody = [*EVERYBODY, "Dee Early", "Eve Late", "Fay Later"]
    files = {f"{moodle(name, 7 + n)}/second (1).ipynb": WORKED for n, name in enumerate(everybody)}
    own = {f"{moodle(name, 7 + n)}/{BOOK}": WORKED for n, name in enumerate(everybody[:3])}
    code, output = run(pack(tmp_path / "d.zip", files), *options)
    assert code == 2
    assert "6 learners have a file of Second, and 0 one of warmup" in output
    assert "ASSIGNMENT=Second" in output
    assert not (course.root / "submitted").exists()
    # Those who also have the right one are no sign; a few are their authors' mistake.
    code, output = run(pack(tmp_path / "e.zip", files | own), *options)
    assert code == 0
    assert "graded, so that its author is told (3)" in output


def test_a_learner_with_endless_notebooks_costs_twenty(course, run, tmp_path, monkeypatch):
    entries = {f"{number}.ipynb": HALF for number in range(30)}
    read = []
    state = collect._state
    monkeypatch.setattr(collect, "_state", lambda *words: read.append(1) or state(*words))
    _, output = run(_zip_of(tmp_path, entries))
    assert output.count("not looked at, after 20 others") == 10
    assert len(read) == 21


# --- again


def test_again_is_safe_and_what_is_replaced_is_kept(course, run, tmp_path):
    run(_zip_of(tmp_path, {BOOK: HALF}), "--do")
    _, output = run(_zip_of(tmp_path, {BOOK: HALF}), "--do")
    assert "there already, unchanged (2)" in output
    later = {BOOK: (2026, 3, 2, 9, 0, 0)}
    download = _zip_of(tmp_path, {BOOK: WORKED}, later)
    before = files(course.root)
    _, output = run(download)
    assert "would be replaced; the earlier one is kept (1):\n  lovelace-ada" in output
    assert files(course.root) == before
    run(download, "--do")
    assert handed_in(course)["lovelace-ada"] == (WORKED, "2026-03-02 09:00:00 UTC\n")
    replaced = course.root / "progress" / NAME / "replaced" / "lovelace-ada" / "1"
    assert (replaced / BOOK).read_bytes() == HALF
    assert (replaced / "timestamp.txt").read_text() == "2026-03-01 12:00:00 UTC\n"
    # An older download takes nothing back.
    _, output = run(_zip_of(tmp_path, {BOOK: HALF}), "--do")
    assert "not taken: older than what is there (1)" in output
    assert handed_in(course)["lovelace-ada"][0] == WORKED


def test_canvas_numbers_say_what_is_older_where_no_time_does(course, run, tmp_path):
    newer = pack(tmp_path / "n.zip", {f"lovelaceada_101_9020_{BOOK}": WORKED})
    older = pack(tmp_path / "o.zip", {f"lovelaceada_101_9010_{BOOK}": HALF})
    run(older, "--do")
    run(newer, "--do")
    _, output = run(older, "--do")
    assert "not taken: older than what is there (1)" in output
    assert handed_in(course)["lovelaceada"][0] == WORKED


def test_what_was_put_there_by_hand_stays_until_its_author_hands_in_another(course, run, tmp_path):
    download = _zip_of(tmp_path, {BOOK: HALF})
    run(download, "--do")
    place = course.root / "submitted" / "lovelace-ada" / NAME
    place.joinpath("timestamp.txt").write_text("2026-03-01 11:59:00 UTC\n")
    theirs = course.root / "submitted" / "o-neil-bob" / NAME / BOOK
    theirs.write_bytes(WORKED)
    for _ in range(2):
        _, output = run(download, "--do")
        assert (
            "left as you put it there; what is in the download was collected before (2)" in output
        )
        assert handed_in(course)["lovelace-ada"] == (HALF, "2026-03-01 11:59:00 UTC\n")
        assert handed_in(course)["o-neil-bob"][0] == WORKED
    later = {BOOK: (2026, 3, 2, 9, 0, 0)}
    run(_zip_of(tmp_path, {BOOK: WORKED}, later), "--do")
    assert handed_in(course)["lovelace-ada"] == (WORKED, "2026-03-02 09:00:00 UTC\n")


def test_the_same_file_with_another_time_and_a_time_by_hand_are_said(course, run, tmp_path):
    due(course, "2026-03-01 12:30:00 UTC")
    run(_zip_of(tmp_path, {BOOK: HALF}), "--do")
    later = {BOOK: (2026, 3, 2, 12, 30, 0)}
    _, output = run(_zip_of(tmp_path, {BOOK: HALF}, later), "--do")
    assert (
        "the same file with another time, which counts from now on (1):\n  lovelace-ada" in output
    )
    assert "replaced; the earlier one is kept" not in output
    assert "late (1):\n  lovelace-ada: by 1 d 0 h" in output
    assert handed_in(course)["lovelace-ada"][1] == "2026-03-02 12:30:00 UTC\n"
    # What the instructor corrects is no longer late, in what is said either.
    place = course.root / "submitted" / "lovelace-ada" / NAME
    place.joinpath("timestamp.txt").write_text("2026-03-01 12:00:00 UTC\n")
    _, output = run(_zip_of(tmp_path, {BOOK: HALF}, later))
    assert "left as you put it there; what is in the download was collected before (1)" in output
    assert "\nlate" not in output


def test_what_a_later_download_lacks_is_named(course, run, tmp_path):
    """A learner who withdraws a file in the system would otherwise keep the grade unseen."""
    both = {f"{moodle(ADA, 7)}/{BOOK}": WORKED, f"{moodle(BOB, 8)}/{BOOK}": WORKED}
    _, output = run(pack(tmp_path / "d.zip", both), "--do")
    assert "missing from this download" not in output
    del both[f"{moodle(BOB, 8)}/{BOOK}"]
    _, output = run(pack(tmp_path / "d.zip", both))
    assert f"withdrawn, delete submitted/NAME/{NAME}) (1):\n  o-neil-bob" in output
    shutil.rmtree(course.root / "submitted" / "o-neil-bob" / NAME)
    _, output = run(pack(tmp_path / "d.zip", both))
    assert "missing from this download" not in output


def test_a_download_of_which_nothing_can_be_taken_does_not_end_with_done(course, run, tmp_path):
    sheet = worksheet(tmp_path / "w.csv", worksheet_row(9, CY, "cy@uni.example", "-"))
    download = pack(tmp_path / "d.zip", {f"{moodle(ADA, 7)}/{BOOK}": WORKED})
    for options in ((), ("--do",)):
        code, output = run(download, "--roster", sheet, *options)
        assert code == 0
        assert f"Nothing in it can be taken. Is this {NAME}, and the right ROSTER?" in output
        assert "Done." not in output


def test_the_author_of_a_file_that_is_no_notebook_gets_a_verdict(course, run, tmp_path):
    entries = {f"{moodle(ADA, 7)}/a.docx": b"PK\x03\x04\xff", f"{moodle(BOB, 8)}/{BOOK}": WORKED}
    _, output = run(pack(tmp_path / "d.zip", entries), "--do")
    assert "\ntaken (1):\n  o-neil-bob" in output
    assert "so that its author is told (1):\n  lovelace-ada" in output
    course.grade()
    assert course.scores() == {"lovelace-ada": ("0.0", "zero"), "o-neil-bob": ("5.0", "graded")}
    assert "is not UTF-8 text" in course.words("lovelace-ada")
    # In place of a notebook that is there, it is not taken.
    entries = {f"{moodle(ADA, 7)}/{BOOK}": WORKED, f"{moodle(BOB, 8)}/b.docx": b"x"}
    run(pack(tmp_path / "d.zip", entries), "--do")
    assert {name: data for name, (data, _) in handed_in(course).items()} == {
        "lovelace-ada": WORKED,
        "o-neil-bob": WORKED,
    }


def test_the_right_name_is_looked_at_before_the_others(course, run, tmp_path):
    entries = {f"{number}.ipynb": b"" for number in range(30)} | {BOOK: WORKED}
    run(_zip_of(tmp_path, entries), "--do")
    assert handed_in(course)["lovelace-ada"][0] == WORKED


def test_a_failure_in_the_middle_loses_nothing(course, run, tmp_path, monkeypatch):
    run(_zip_of(tmp_path, {BOOK: HALF}), "--do")
    rename = os.rename

    def fails(source, target):
        if str(target).endswith(f"lovelace-ada/{NAME}"):
            raise OSError(28, "No space left on device", str(target))
        return rename(source, target)

    download = _zip_of(tmp_path, {BOOK: WORKED}, {BOOK: (2026, 3, 2, 9, 0, 0)})
    monkeypatch.setattr(os, "rename", fails)
    code, output = run(download, "--do")
    assert code == 2
    assert "free some space" in output
    replaced = course.root / "progress" / NAME / "replaced" / "lovelace-ada" / "1" / BOOK
    assert replaced.read_bytes() == HALF
    monkeypatch.setattr(os, "rename", rename)
    run(download, "--do")
    assert handed_in(course)["lovelace-ada"][0] == WORKED
    left = [path.name for path in (course.root / "submitted").rglob(".*")]
    assert left == []


def test_the_gradebook_is_its_owners_alone_after_any_command(course, run, tmp_path):
    path = course.root / "gradebook.db"
    commands = {
        "collect": lambda: run(_zip_of(tmp_path, {BOOK: HALF}), "--do"),
        "grade": course.grade,
        "return": lambda: hand_back.main(["csv", NAME, "--course", str(course.root)]),
        "report": lambda: class_report.main([NAME, "--course", str(course.root)]),
        "forget": lambda: forget.main(["nobody", "--dry-run", "--course", str(course.root)]),
    }
    for name, command in commands.items():
        path.chmod(0o644)  # as nbgrader's own commands leave it
        command()
        assert (name, oct(path.stat().st_mode & 0o777)) == (name, oct(0o600))


def test_while_grading_nothing_is_collected(course, run, tmp_path):
    import fcntl

    lock = course.root / "progress" / ".lock"
    lock.parent.mkdir()
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        code, output = run(_zip_of(tmp_path, {BOOK: HALF}), "--do")
    assert code == 2
    assert "another run is grading" in output
    assert handed_in(course) == {}


def test_a_link_in_place_of_a_learners_folder_is_not_followed(course, run, tmp_path):
    (course.root / "submitted").mkdir()
    (course.root / "submitted" / "lovelace-ada").symlink_to(tmp_path)
    code, output = run(_zip_of(tmp_path, {BOOK: HALF}), "--do")
    assert code == 2
    assert "submitted/lovelace-ada is a link" in output
    assert not (tmp_path / NAME).exists()


# --- late


def test_moodles_worksheet_says_when_and_the_zip_of_moodle_does_not(course, run, tmp_path):
    due(course, "2026-03-01 12:00:00 UTC")
    written = (2026, 3, 9, 8, 0, 0)  # when it was downloaded
    entries = {f"{moodle(ADA, 7)}/{BOOK}": WORKED, f"{moodle(BOB, 8)}/{BOOK}": HALF}
    download = pack(tmp_path / "d.zip", entries, dict.fromkeys(entries, written))
    _, output = run(download)
    assert "\nlate" not in output
    assert "give the grading worksheet as ROSTER" in output
    other = table(tmp_path / "p.csv", [["name"], [ADA], [BOB]])
    _, output = run(download, "--roster", other)
    assert "p.csv is not the grading worksheet" in output
    german = [worksheet_row(7, ADA, "a@u.example", "Sonntag, 1. M\u00e4rz 2026, 13:58")]
    _, output = run(download, "--roster", worksheet(tmp_path / "g.csv", *german))
    assert "g.csv does not say so in English" in output
    sheet = worksheet(
        tmp_path / "w.csv",
        worksheet_row(7, ADA, "ada@uni.example", "Sunday, 1 March 2026, 1:58 PM"),
        worksheet_row(8, BOB, "bob@uni.example", "Sunday, 1 March 2026, 11:58 AM"),
    )
    _, output = run(download, "--roster", sheet)
    assert "late (1):\n  ada: by 1 h 58 min" in output
    # The same hours, an hour east: 12:58 UTC.
    _, output = run(download, "--roster", sheet, "--zone", "Europe/Paris")
    assert "ada: by 0 h 58 min" in output
    code, output = run(download, "--zone", "Atlantis/Poseidonis")
    assert code == 2
    assert "no time zone 'Atlantis/Poseidonis'" in output


def test_files_times_count_where_they_are_their_own(course, run, tmp_path):
    names = ("ada.ipynb", "bob.ipynb")
    entries = dict.fromkeys(names, WORKED)
    _, output = run(pack(tmp_path / "d.zip", entries))
    assert "the assignment has no due date here, so nobody is late" in output
    due(course, "2026-03-01 12:00:00 UTC")
    _, output = run(pack(tmp_path / "d.zip", entries))
    assert "times are those of the download" in output
    assert "\nlate" not in output
    times = {"ada.ipynb": (2026, 3, 1, 11, 0, 0), "bob.ipynb": (2026, 3, 3, 12, 0, 0)}
    _, output = run(pack(tmp_path / "d.zip", entries, times), "--zone", "")
    assert "late (1):\n  bob: by 2 d 0 h" in output
    assert "this machine's; ZONE=" in output


def test_canvas_says_late_and_not_by_how_much(course, run, tmp_path):
    download = pack(tmp_path / "d.zip", LAYOUTS["canvas"])
    _, output = run(download)
    assert "here nobody is, because the assignment has no due date" in output
    due(course, "2026-03-01 12:00:00 UTC")
    _, output = run(download, "--do")
    assert "late (1):\n  oneilbob: by how much is unknown\n" in output
    assert handed_in(course)["oneilbob"][1] == "2026-03-01 12:00:01 UTC\n"
    assert handed_in(course)["lovelaceada"][1] == ""
    course.grade()
    assert course.table()["oneilbob"]["late"] == "yes"


def test_an_extension_reaches_the_gradebook_and_survives_another_file(course, run, tmp_path):
    due(course, "2026-03-01 12:00:00 UTC")
    rows = [["name", "email", "extension"], [ADA, "ada@uni.example", "2026-03-03"]]
    sheet = table(tmp_path / "r.csv", [*rows, [BOB, "bob@uni.example", ""]])
    late = (2026, 3, 2, 9, 0, 0)
    entries = {f"{moodle(ADA, 7)}/{BOOK}": HALF, f"{moodle(BOB, 8)}/{BOOK}": HALF}
    times = dict.fromkeys(entries, late)
    times[f"{moodle(BOB, 8)}/{BOOK}"] = (2026, 3, 2, 9, 30, 0)
    _, output = run(pack(tmp_path / "d.zip", entries, times), "--roster", sheet, "--do")
    assert "late (1):\n  bob: by 21 h 30 min" in output
    course.grade()
    assert {name: row["late"] for name, row in course.table().items()} == {
        "ada": "no",
        "bob": "yes",
    }
    # Another file, still within the extension.
    entries[f"{moodle(ADA, 7)}/{BOOK}"] = WORKED
    times[f"{moodle(ADA, 7)}/{BOOK}"] = (2026, 3, 3, 9, 0, 0)
    run(pack(tmp_path / "d.zip", entries, times), "--do")
    course.grade()
    assert course.table()["ada"]["late"] == "no"
    assert course.scores()["ada"] == ("5.0", "graded")
    # An extension that comes after grading: graded again, so that no deduction stands.
    rows.append([BOB, "bob@uni.example", "2026-03-03"])
    run(
        pack(tmp_path / "d.zip", entries, times),
        *("--roster", table(tmp_path / "r.csv", rows), "--do"),
    )
    course.grade()
    assert course.table()["bob"]["late"] == "no"
    # A later roster takes it back.
    rows[-1] = [BOB, "bob@uni.example", ""]
    _, output = run(
        pack(tmp_path / "d.zip", entries, times),
        *("--roster", table(tmp_path / "r.csv", rows), "--do"),
    )
    assert "extensions that the roster grants no more (1):\n  bob" in output
    assert "late (1):\n  bob: by 21 h 30 min" in output
    course.grade()
    assert {name: row["late"] for name, row in course.table().items()} == {
        "ada": "no",
        "bob": "yes",
    }
    # One that was granted in the gradebook is not the roster's to take back.
    with collect.open_gradebook(Course.open(course.root)) as gradebook:
        gradebook.update_or_create_submission(NAME, "bob", extension=timedelta(days=3))
    _, output = run(
        pack(tmp_path / "d.zip", entries, times),
        *("--roster", table(tmp_path / "r.csv", rows), "--do"),
    )
    assert "\nlate" not in output
    course.grade()
    assert course.table()["bob"]["late"] == "no"
    # Nor is what one's own roster granted Moodle's worksheet's.
    when = "Tuesday, 3 March 2026, 9:00 AM"
    sheet = worksheet(tmp_path / "w.csv", worksheet_row(7, ADA, "ada@uni.example", when))
    _, output = run(pack(tmp_path / "d.zip", entries, times), "--roster", sheet, "--do")
    assert "grants no more" not in output
    course.grade()
    assert course.table()["ada"]["late"] == "no"


# --- hostile archives


def _raw(path, *entries):
    """A zip whose members are written as they are told: a name, bytes, and what is odd."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data, changes in entries:
            info = zipfile.ZipInfo("x", DAY)
            info.filename = info.orig_filename = name
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = changes.pop("mode", stat.S_IFREG | 0o644) << 16
            archive.writestr(info, data)
            for attribute, value in changes.items():
                setattr(info, attribute, value)
    return path


GOOD = ("ada.ipynb", WORKED, {})
ATTACKS = {
    "absolute": ([("/etc/cron.d/x", b"", {})], "is an absolute path"),
    "drive": ([("C:x.ipynb", b"", {})], "is an absolute path"),
    "climbs": ([("a/../../../x.ipynb", b"", {})], r"has an empty part, \. or \.\."),
    "dot": ([("./x.ipynb", b"", {})], "has an empty part"),
    "empty part": ([("a//x.ipynb", b"", {})], "has an empty part"),
    "nul": ([("bob.ipynb\0.txt", b"", {})], "has a NUL"),
    "long": ([("a" * 2000, b"", {})], "more than 1000 characters"),
    "link": ([("bob.ipynb", b"../solutions", {"mode": stat.S_IFLNK | 0o777})], "is a link"),
    "device": ([("bob.ipynb", b"", {"mode": stat.S_IFCHR | 0o666})], "is a device"),
    "pipe": ([("bob.ipynb", b"", {"mode": stat.S_IFIFO | 0o666})], "is a device, a pipe"),
    "twice": ([("ada.ipynb", HALF, {})], "is in it twice"),
    "encrypted": ([("bob.ipynb", b"x", {"flag_bits": 1})], "is encrypted"),
    "packed oddly": ([("bob.ipynb", b"x", {"compress_type": 14})], "in an unusual way"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hostile_archive_is_refused_as_a_whole(course, run, tmp_path, attack):
    entries, reason = ATTACKS[attack]
    entries = [(name, data, dict(changes)) for name, data, changes in [GOOD, *entries]]
    download = _raw(tmp_path / "d.zip", *entries)
    before = files(tmp_path)
    code, output = run(download, "--do")
    assert code == 2
    assert re.search(reason, output)
    assert "nothing of it was taken" in output
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    ("limit", "value", "reason"),
    [
        ("MAX_MEMBERS", 2, "has more than 2 members"),
        ("MAX_DIRECTORY", 100, "has more than 200000 members"),
    ],
)
def test_too_much_is_refused(course, run, tmp_path, monkeypatch, limit, value, reason):
    monkeypatch.setattr(collect, limit, value)
    code, output = run(pack(tmp_path / "d.zip", {f"{name}.ipynb": WORKED for name in "abc"}))
    assert code == 2
    assert reason in output


def test_members_that_share_their_bytes_are_refused(course, run, tmp_path):
    with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
        archive.writestr("a.ipynb", os.urandom(50_000))
        info = archive.infolist()[0]
        for name in "bcd":
            other = zipfile.ZipInfo(f"{name}.ipynb")
            for attribute in ("CRC", "compress_size", "file_size", "header_offset"):
                setattr(other, attribute, getattr(info, attribute))
            archive.filelist.append(other)
        archive._didModify = True
    code, output = run(tmp_path / "d.zip")
    assert code == 2
    assert "shares its bytes with others" in output


def test_a_learners_own_bomb_costs_its_author_alone(course, run, tmp_path):
    entries = {"ada.ipynb": WORKED, "bob.ipynb": b"[" + bytes(30 * 2**20)}
    assert run(pack(tmp_path / "d.zip", entries), "--do")[0] == 0
    assert len(handed_in(course)["bob"][0]) == 10 * 2**20 + 1  # no more is read of it
    course.grade()
    assert course.scores() == {"ada": ("5.0", "graded"), "bob": ("0.0", "zero")}
    assert "is larger than 10 MB" in course.table()["bob"]["reason"]


@pytest.mark.parametrize("data", [b"", b"PK\x05\x06", b"not a zip" * 99, b"PK\x03\x04" + bytes(99)])
def test_what_is_no_zip_is_refused(course, run, tmp_path, data):
    (tmp_path / "d.zip").write_bytes(data)
    code, output = run(tmp_path / "d.zip")
    assert code == 2
    assert "is no zip that can be read" in output
    assert "\nrefused: " in run(tmp_path / "nowhere.zip")[1]


def test_a_link_or_a_pipe_in_a_folder_costs_its_author_alone(course, run, tmp_path):
    folder = unpack(pack(tmp_path / "d.zip", {"ada.ipynb": WORKED}), tmp_path / "folder")
    (folder / "bob.ipynb").symlink_to(course.root / "solutions" / NAME / BOOK)
    os.mkfifo(folder / "cy.ipynb")
    code, output = run(folder, "--do")
    assert code == 0
    assert "bob.ipynb: is a link; left out" in output
    assert "cy.ipynb: is a device, a pipe or a socket; left out" in output
    assert list(handed_in(course)) == ["ada"]


def test_what_one_learner_hands_in_costs_that_learner_alone(course, run, tmp_path):
    large = {"file_size": 2**31}
    entries = [
        (f"{moodle(ADA, 7)}_{BOOK}", WORKED, {}),
        (f"{moodle(BOB, 8)}_a.ipynb", HALF, {}),
        (f"{moodle(BOB, 8)}_A.ipynb", HALF, {}),
        *((f"{moodle(BOB, 8)}_{name}.mp4", b"x", dict(large)) for name in "abc"),
        (f"{moodle(BOB, 8)}_a\\b.txt", b"x", {}),
        *((f"{moodle(CY, 9)}_{number}.txt", b"", {}) for number in range(10_001)),
    ]
    code, output = run(_raw(tmp_path / "d.zip", *entries), "--do")
    assert code == 0
    assert handed_in(course)["lovelace-ada"][0] == WORKED
    assert handed_in(course)["o-neil-bob"][0] == HALF
    assert "b.txt: has a backslash in its name; left out" in output
    assert "angstrom-chloe: 9981 more that are none" in output
    # By mail, a second file of one name is the same learner's.
    download = pack(tmp_path / "e.zip", {"dora.ipynb": BLANK, "dora (1).ipynb": WORKED})
    run(download, "--do")
    assert handed_in(course)["dora"][0] == WORKED
    _, output = run(pack(tmp_path / "e.zip", {"ada.ipynb": WORKED, "ADA.ipynb": HALF}))
    assert "which is newer is unknown; look" in output
    assert "to settle what says `look`" in output


def test_a_damaged_member_costs_its_owner_alone(course, run, tmp_path):
    download = pack(tmp_path / "d.zip", {"ada.ipynb": WORKED, "bob.ipynb": HALF})
    data = bytearray(download.read_bytes())
    with zipfile.ZipFile(download) as archive:
        offset = archive.getinfo("bob.ipynb").header_offset
    (names,) = struct.unpack("<H", data[offset + 26 : offset + 28])
    for index in range(offset + 30 + names, offset + 60 + names):
        data[index] ^= 0xFF
    download.write_bytes(data)
    code, output = run(download, "--do")
    assert code == 0
    assert "bob: bob.ipynb: it is damaged in the download" in output
    assert list(handed_in(course)) == ["ada"]


def test_names_cannot_steer_the_terminal_or_leave_the_folder(course, run, tmp_path):
    names = [
        "x\x1b[2J.ipynb",
        "\u202egnp.ipynb",
        "-rf.ipynb",
        "=1+1.ipynb",
        "\u0430da.ipynb",
    ]
    code, output = run(pack(tmp_path / "d.zip", dict.fromkeys(names, WORKED)), "--do")
    assert code == 0
    assert "x?[2J.ipynb: no folder can have this name" in output
    assert "\u0430da.ipynb: the name mixes alphabets" in output
    assert "\x1b" not in output
    assert "\u202e" not in output
    assert handed_in(course) == {}


def test_litter_of_other_systems_is_passed_over(course, run, tmp_path):
    entries = {"ada.ipynb": WORKED, "__MACOSX/._ada.ipynb": b"x", ".DS_Store": b"x"}
    _, output = run(pack(tmp_path / "d.zip", entries), "--do")
    assert "not matched" not in output
    assert list(handed_in(course)) == ["ada"]


def test_names_written_as_utf8_without_saying_so_are_read(course, run, tmp_path):
    name = f"{moodle(CY, 9)}/{BOOK}"
    path = pack(tmp_path / "d.zip", {name: WORKED})
    data = path.read_bytes()
    # Take the flag that says UTF-8 away, in both headers.
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = data.index(mark) + place
        flags = struct.unpack("<H", data[start : start + 2])[0] & ~0x800
        data = data[:start] + struct.pack("<H", flags) + data[start + 2 :]
    path.write_bytes(data)
    sheet = worksheet(tmp_path / "w.csv", worksheet_row(9, CY, "cy@uni.example"))
    run(path, "--roster", sheet, "--do")
    assert list(handed_in(course)) == ["cy"]


def test_a_table_is_written_as_it_was_read(tmp_path):
    rows = [["name", "email", "x"], ["Lovelace, Ada", 'a "b"', "1"], ["", "", ""], ["B", "c", ""]]
    excel = {"bom": True, "end": "\r\n", "delimiter": ";"}
    for options in ({}, excel, {"delimiter": ";"}, {**excel, "sep": True}):
        path = table(tmp_path / "t.csv", rows, **options)
        read = roster.read(path)
        assert read.render({}) == path.read_bytes()
        assert read.header == rows[0]
        changed = read.render({2: {2: "7,50"}})
        end = options.get("end", "\n").encode()
        assert changed.split(end)[:3] == path.read_bytes().split(end)[:3]
        assert changed.endswith(b"50" + end) or changed.endswith(b'50"' + end)
        first = "sep=;\r\n" if "sep" in options else ""
        wider = read.render({}, "new").decode("utf-8-sig")
        assert wider.startswith(f"{first}name{read.delimiter}email{read.delimiter}x")
        text = changed.decode("utf-8-sig").removeprefix(first)
        new = list(csv.reader(io.StringIO(text), delimiter=options.get("delimiter", ",")))
        assert new == [*rows[:3], ["B", "c", "7,50"]]
