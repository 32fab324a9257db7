"""Grades and feedback in a system's own form: what changes in its export, and what does not."""

import csv
import io
import json
import re
import shutil
import stat
import zipfile

import pytest
from course_folder import NAME, RIGHT, answers
from downloads import GRADEBOOK, POINTS, WORKSHEET, pack, table, worksheet_row
from test_collect import ADA, BOB, BOOK, CY, moodle
from test_grading import new_course

from grading import collect, hand_back, storage
from grading.course import Course
from tools import ask

WORKED = json.dumps(answers(**RIGHT)).encode()
HALF = json.dumps(answers(double=RIGHT["double"])).encode()
SHEET = [
    WORKSHEET,
    worksheet_row(7, ADA, "ada@uni.example", "Sunday, 1 March 2026, 11:58 AM"),
    worksheet_row(8, BOB, "bob@uni.example", "Sunday, 1 March 2026, 11:59 AM"),
    worksheet_row(9, CY, "cy@uni.example"),
]
EXPORT = [
    [*GRADEBOOK, "Essay (54)", "Warmup (55)", "Warmup, again (56)", "Current Score"],
    ["", "", "", "", "", "", "Manual Posting", "", ""],
    [POINTS, "", "", "", "", "10.00", "5.00", "5.00", "(read only)"],
    ["Lovelace, Ada", "101", "S1", "alovelace", 'A, "first"', "9.50", "", "", "95.00"],
    ["O'Neil, Bob", "102", "S2", "boneil", "B", "", "1.00", "", ""],
    ["Ångström, Chloé", "103", "S3", "cang", "A", "7.00", "", "", "70.00"],
    ["Student, Test", "104", "", "test", "A", "", "", "", ""],
]


@pytest.fixture(scope="module")
def graded(tmp_path_factory, empty_gradebook):
    """Two courses, collected from Moodle and from Canvas with their exports, and graded."""
    courses = {}
    for system, rows, entries in (
        ("moodle", SHEET, {f"{moodle(ADA, 7)}/{BOOK}": WORKED, f"{moodle(BOB, 8)}/{BOOK}": HALF}),
        (
            "canvas",
            EXPORT,
            {
                f"lovelaceada_101_9001_{NAME}-2.ipynb": WORKED,
                f"oneilbob_LATE_102_9002_{BOOK}": HALF,
            },
        ),
    ):
        root = tmp_path_factory.mktemp(system)
        shutil.copy(empty_gradebook, root)
        course = new_course(root)
        download = pack(root / "d.zip", entries)
        roster = table(root / "export.csv", rows, bom=True, end="\r\n")
        words = [str(download), NAME, "--course", str(root), "--roster", str(roster), "--do"]
        assert collect.main(words) == 0
        assert course.grade() == 0
        courses[system] = course
    return courses


@pytest.fixture
def back(capsys):
    """Run the command; its exit status and what it printed."""

    def command(course, system, template=None, *options):
        words = [system, NAME, "--course", str(course.root), *options]
        if template:
            words += ["--template", str(template)]
        code = hand_back.main(words)
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return command


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["collect", "", ""], "which download"),
        (["collect", "nowhere.zip", ""], "there is no 'nowhere.zip' here"),
        (["collect", __file__, "nobody.csv"], "there is no 'nobody.csv' here"),
        (["hand_back", "blackboard", ""], "TO is canvas, moodle or csv, got 'blackboard'"),
        (["hand_back", "moodle", "none.csv"], "there is no 'none.csv' here"),
    ],
)
def test_arguments_are_checked_before_anything_is_installed(capsys, words, reason):
    assert ask.main(words) == 2
    assert reason in capsys.readouterr().err
    assert ask.main(["collect", __file__, __file__]) == ask.main(["hand_back", "csv", ""]) == 0


def cells(data):
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"))))


def written(course, system):
    return (course.root / "reports" / f"{system}-{NAME}.csv").read_bytes()


def pages(course, system):
    path = course.root / "reports" / f"{system}-feedback-{NAME}.zip"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_moodles_worksheet_comes_back_with_grades_and_nothing_else_changed(graded, back):
    course = graded["moodle"]
    template = course.root / "export.csv"
    code, output = back(course, "moodle", template)
    assert code == 0
    before, after = template.read_bytes(), written(course, "moodle")
    assert after.startswith(b"\xef\xbb\xbf")
    changed = [[*row] for row in SHEET]
    changed[1][4], changed[2][4] = "5.00", "2.00"
    assert cells(after) == changed
    # Rows without a grade, and the header, are the template's bytes.
    unchanged = [line for line in before.split(b"\r\n") if line in after.split(b"\r\n")]
    assert unchanged == [before.split(b"\r\n")[index] for index in (0, 3, 4)]
    assert "2 grades, 2 pages" in output
    assert f"in the template, without a grade (1):\n  {CY}: nothing of theirs" in output
    members = pages(course, "moodle")
    # Moodle reads fullname_PARTICIPANT_plugintype_plugin_ at the underscores.
    assert list(members) == [
        f"{ADA}_7_assignsubmission_file_/{NAME}.html",
        f"{BOB}_8_assignsubmission_file_/{NAME}.html",
    ]
    for name, page in members.items():
        learner = {"7": "ada", "8": "bob"}[name.split("_")[1]]
        assert page == course.page(learner)


def test_canvas_export_comes_back_with_grades_and_nothing_else_changed(graded, back):
    course = graded["canvas"]
    template = course.root / "export.csv"
    code, output = back(course, "canvas", template)
    assert code == 0
    after = written(course, "canvas")
    assert after.startswith(b"\xef\xbb\xbf")
    assert after.endswith(b"\r\n")
    changed = [[*row] for row in EXPORT]
    changed[3][6], changed[4][6] = "5.00", "2.00"
    assert cells(after) == changed
    assert "in the template, without a grade (1):\n  Chloé Ångström" in output
    # Canvas takes the first two numbers between underscores: the user's and the file's.
    members = pages(course, "canvas")
    assert list(members) == [
        f"lovelaceada_101_9001_{NAME}-2.html",
        f"oneilbob_LATE_102_9002_{NAME}.html",
    ]
    assert members[f"lovelaceada_101_9001_{NAME}-2.html"] == course.page("alovelace")


def test_a_table_of_ones_own_gets_a_column(graded, back, tmp_path):
    course = graded["moodle"]
    rows = [
        ["Surname", "Given name", "E-mail", "section"],
        ["Lovelace", "Ada", "ADA@uni.example", "A"],
    ]
    rows += [["Nobody", "Nils", "nils@uni.example", "B"]]
    code, output = back(
        course, "csv", table(tmp_path / "t.csv", rows, delimiter=";"), "--column", "W1"
    )
    assert code == 0
    assert written(course, "csv").decode() == (
        "Surname;Given name;E-mail;section;W1\n"
        "Lovelace;Ada;ADA@uni.example;A;5.00\n"
        "Nobody;Nils;nils@uni.example;B;\n"
    )
    assert "with a grade, but not in the template (1):\n  bob: has a grade, and no row" in output
    assert "Nils Nobody: nothing of theirs was collected" in output
    code, output = back(course, "csv")
    assert code == 0
    table_ = cells(written(course, "csv"))
    assert table_[1][:6] == ["ada", "Lovelace", "Ada", "ada@uni.example", "5.00", "5"]


def test_a_number_of_points_that_differs_is_refused_or_converted(graded, back, tmp_path):
    course = graded["moodle"]
    rows = [WORKSHEET, *[[*row[:5], "100.00", *row[6:]] for row in SHEET[1:]]]
    template = table(tmp_path / "w.csv", rows)
    reports = course.root / "reports" / f"moodle-{NAME}.csv"
    reports.unlink(missing_ok=True)
    code, output = back(course, "moodle", template)
    assert code == 2
    assert f"Moodle counts 100 points in the column 'Grade', and {NAME} has 5" in output
    assert not reports.exists()
    assert back(course, "moodle", template, "--scale")[0] == 0
    assert [row[4] for row in cells(written(course, "moodle"))[1:]] == ["100.00", "40.00", ""]


def test_numbers_follow_the_templates_decimal_comma(graded, back, tmp_path):
    rows = [[cell.replace(".", ",") if cell[:1].isdigit() else cell for cell in r] for r in EXPORT]
    template = table(tmp_path / "c.csv", rows, delimiter=";")
    assert back(graded["canvas"], "canvas", template)[0] == 0
    after = written(graded["canvas"], "canvas").decode()
    assert 'alovelace;"A, ""first""";9,50;5,00;;95,00' in after


def test_a_grade_that_moodle_locks_is_left_and_named(graded, back, tmp_path):
    rows = [*SHEET[:2], worksheet_row(8, BOB, "bob@uni.example", "-", change="No"), SHEET[3]]
    _, output = back(graded["moodle"], "moodle", table(tmp_path / "w.csv", rows))
    assert [row[4] for row in cells(written(graded["moodle"], "moodle"))[1:]] == ["5.00", "", ""]
    assert f"{BOB}: Moodle says that this grade cannot be changed" in output


def test_rows_are_found_by_number_address_and_name_but_never_by_half(graded, back, tmp_path):
    course = graded["moodle"]
    rows = [
        WORKSHEET,
        worksheet_row(30, ADA, "lovelace@uni.example"),  # a namesake
        worksheet_row(8, BOB, ""),
    ]
    _, output = back(course, "moodle", table(tmp_path / "w.csv", rows))
    assert [row[4] for row in cells(written(course, "moodle"))[1:]] == ["", "2.00"]
    assert "ada: has a grade, and no row in the template" in output
    rows[1] = worksheet_row(31, "Ada Byron", "ADA@uni.example")  # her address, and another name
    back(course, "moodle", table(tmp_path / "w.csv", rows))
    assert [row[4] for row in cells(written(course, "moodle"))[1:]] == ["5.00", "2.00"]


def test_another_assignments_worksheet_is_refused(graded, back, tmp_path):
    course = graded["moodle"]
    reports = course.root / "reports" / f"moodle-{NAME}.csv"
    reports.unlink(missing_ok=True)
    rows = [
        WORKSHEET,
        worksheet_row(90, ADA, "ada@uni.example"),
        worksheet_row(91, BOB, "bob@uni.example"),
    ]
    code, output = back(course, "moodle", table(tmp_path / "w.csv", rows))
    assert code == 2
    assert output.startswith(f"Assignment {NAME}\n")
    assert "participant 90 there, and was 7 when warmup was collected" in output
    assert not reports.exists()


def test_a_table_of_ones_own_has_no_formulas(graded, back, tmp_path):
    rows = [["name", "email", "points"], ["=cmd|' /C calc'!A0", "ada@uni.example", "-1"]]
    rows += [["\t@SUM", "bob@uni.example", "x"]]
    back(graded["moodle"], "csv", table(tmp_path / "t.csv", rows), "--column", "W1")
    assert cells(written(graded["moodle"], "csv"))[1:] == [
        ["'=cmd|' /C calc'!A0", "ada@uni.example", "-1", "5.00"],
        ["'?@SUM", "bob@uni.example", "x", "2.00"],
    ]


@pytest.mark.parametrize(
    ("system", "rows", "options", "reason"),
    [
        ("moodle", None, (), "TO=moodle needs TEMPLATE="),
        ("canvas", SHEET, (), "is not the gradebook.s export.*looks like an export of moodle"),
        (
            "moodle",
            [["name", "email"], ["x", "y"]],
            (),
            "is not the assignment.s grading worksheet.*looks like another table",
        ),
        ("canvas", EXPORT, ("--column", "Quiz"), "no column is called 'Quiz'.*Essay"),
        ("canvas", EXPORT, ("--column", "Current Score"), "it is read only"),
        ("canvas", EXPORT, ("--column", "ID"), "'ID' says who a learner is"),
        (
            "canvas",
            [[*r, *r[6:7]] for r in EXPORT],
            (),
            "several columns are called 'warmup'",
        ),
    ],
)
def test_a_template_that_cannot_take_grades_is_refused(
    graded, back, tmp_path, system, rows, options, reason
):
    course = graded["moodle"]
    before = {path: path.read_bytes() for path in (course.root / "reports").iterdir()}
    template = table(tmp_path / "t.csv", rows) if rows else None
    code, output = back(course, system, template, *options)
    assert code == 2
    assert re.search(reason, output)
    assert {path: path.read_bytes() for path in (course.root / "reports").iterdir()} == before


def test_before_grading_there_is_nothing_to_return(tmp_path, empty_gradebook, back):
    course = new_course(tmp_path)
    code, output = back(course, "csv")
    assert code == 2
    assert f"first run: make grade ASSIGNMENT={NAME}" in output
    course.hand_in("ada", answers())
    assert back(course, "csv")[0] == 2
    assert not (tmp_path / "gradebook.db").exists()  # looking makes none
    shutil.copy(empty_gradebook, tmp_path)
    assert "first run: make grade" in back(course, "csv")[1]


def test_who_has_to_be_graded_again_gets_no_grade(graded, back):
    course = graded["moodle"]
    progress = Course.open(course.root).progress(NAME)
    record = storage.load(progress, "bob")
    try:
        storage.forget(progress, "bob")
        _, output = back(course, "moodle", course.root / "export.csv")
        grades = [row[4] for row in cells(written(course, "moodle"))[1:]]
        assert grades == ["5.00", "", ""]
        assert f"{BOB}: has to be graded again: not graded" in output
        assert list(pages(course, "moodle")) == [f"{ADA}_7_assignsubmission_file_/{NAME}.html"]
    finally:
        storage.save(progress, record)


def test_names_that_are_formulas_are_kept_for_the_system_and_said(graded, back, tmp_path):
    course = graded["canvas"]
    rows = [[*row] for row in EXPORT]
    rows[3][0] = "=HYPERLINK(1)"
    _, output = back(course, "canvas", table(tmp_path / "c.csv", rows))
    after = cells(written(course, "canvas"))
    assert after[3][0] == "=HYPERLINK(1)"
    assert "1 cells of the template begin like a formula" in output
    # In a table of our own they are none.
    with collect.open_gradebook(Course.open(course.root)) as gradebook:
        gradebook.update_or_create_student("alovelace", last_name="=1+1", first_name="\x1b[2J")
    try:
        back(course, "csv")
        assert cells(written(course, "csv"))[1][:3] == ["alovelace", "'=1+1", "?[2J"]
    finally:
        with collect.open_gradebook(Course.open(course.root)) as gradebook:
            gradebook.update_or_create_student("alovelace", last_name="Lovelace", first_name="Ada")


@pytest.mark.parametrize("folder", ["../../x_7_8_a.ipynb", "a\\b_7_8_c.ipynb", "x\x1b_7_8_a.ipynb"])
def test_a_name_in_the_zip_is_one_file_in_one_folder(graded, back, folder):
    course = graded["canvas"]
    path = course.root / "progress" / NAME / "collected" / "alovelace.json"
    before = path.read_text()
    try:
        path.write_text(json.dumps(json.loads(before) | {"folder": folder}))
        _, output = back(course, "canvas", course.root / "export.csv")
        assert list(pages(course, "canvas")) == [f"oneilbob_LATE_102_9002_{NAME}.html"]
        assert "alovelace: not in the zip" in output
    finally:
        path.write_text(before)


def test_a_page_that_is_a_link_is_not_followed(graded, back):
    course = graded["moodle"]
    page = course.root / "feedback" / "bob" / NAME / f"{NAME}.html"
    aside = page.with_name("aside")
    page.rename(aside)
    try:
        page.symlink_to(course.root / "solutions" / NAME / BOOK)
        _, output = back(course, "moodle", course.root / "export.csv")
        assert list(pages(course, "moodle")) == [f"{ADA}_7_assignsubmission_file_/{NAME}.html"]
        assert "bob: not in the zip (no page)" in output
    finally:
        aside.replace(page)
