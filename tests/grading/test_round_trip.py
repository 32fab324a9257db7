"""README's own commands: from Moodle's download of thirty files to gradebook and report."""

import csv
import html
import json
import re
import subprocess
import zipfile
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import nbformat
import pytest
from course_folder import ROOT
from downloads import WORKSHEET, pack, table, worksheet_row
from nbgrader.utils import parse_utc
from test_instructors_page import PAGE, clone, follow

from grading.batch import FOREIGN
from tools import answers

ASSIGNMENT = "01-attention"
README = (ROOT / "README.md").read_text(encoding="utf-8")
SECTION = re.search(r"^### From Moodle's download.*?(?=^##)", README, re.MULTILINE | re.DOTALL)[0]
BLOCK, REPORT = re.findall(r"^```bash\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
SOLVED = (ROOT / "solutions" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb").read_bytes()
BLANK = (ROOT / "exercises" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb").read_bytes()
OTHER = (ROOT / "exercises" / "02-multi-head" / "02-multi-head.ipynb").read_bytes()
SCRIPT = "<script>fetch('/')</script>"
BEFORE, AFTER = "Sunday, 1 March 2026, 11:58 AM", "Monday, 2 March 2026, 9:30 AM"
HONEST = [f"Learner {name}" for name in "Ann Ben Cleo Dan Eva Finn Gus Hal Ida".split()]
MISTAKEN = [f"Mistaken {name}" for name in "Jan Kai Lea".split()]
(MISTAKE,) = (
    each for each in answers.bank(ASSIGNMENT, "wrong") if each.name == "mask_after_softmax"
)


def points():
    """What the assignment counts."""
    cells = nbformat.reads(SOLVED.decode(), as_version=4).cells
    return sum(cell.metadata.get("nbgrader", {}).get("points", 0) for cell in cells)


def mistaken():
    """A right answer but for one mistake of the bank, and the points that it leaves."""
    book = nbformat.reads(SOLVED.decode(), as_version=4)
    left = points()
    for cell in book.cells:
        cell.source = MISTAKE.cells.get(cell.id, cell.source)
        mark = cell.metadata.get("nbgrader", {})
        left -= mark.get("points", 0) * (mark.get("grade_id") in MISTAKE.loses)
    return nbformat.writes(book).encode(), f"{left:.2f}"


def hostile():
    """A right answer with scripts in its text and outputs, and with a cell that ends Python."""
    book = nbformat.reads(SOLVED.decode(), as_version=4)
    book.cells.insert(1, nbformat.v4.new_markdown_cell(SCRIPT, id="m"))
    output = nbformat.v4.new_output("display_data", data={"text/html": SCRIPT})
    book.cells.append(nbformat.v4.new_code_cell("import os; os._exit(0)", id="c", outputs=[output]))
    return nbformat.writes(book).encode()


def download(folder):
    """The zip and the worksheet; what each learner's grade has to be, and who is late."""
    entries, rows, grades, late = {}, [], {}, set()
    best, right = f"{points():.2f}", f"{ASSIGNMENT}.ipynb"

    def add(name, files, grade, when=BEFORE, listed=True):
        number = 400 + len(rows) + 100 * (not listed)
        for file, data in files.items():
            entries[f"{name}_{number}_assignsubmission_file/{file}"] = data
        if listed:
            address = f"{name.split()[-1].lower()}@uni.example"
            most = f"{points():.2f}"
            rows.append(worksheet_row(number, name, address, when, most=most))
            grades[name] = grade
            late.update({address.split("@")[0]} if when == AFTER else ())

    for number, name in enumerate(HONEST):
        add(name, {right: SOLVED}, best, AFTER if number < 3 else BEFORE)
    wrong, remaining = mistaken()
    for name in MISTAKEN:
        add(name, {right: wrong}, remaining)
    for name in ("Blank Moe", "Blank Nils", "Blank Odo"):
        add(name, {right: BLANK}, "0.00")
    for name in ("Twice Ola", "Twice Pia", "Twice Quin"):
        add(name, {right: BLANK, f"{ASSIGNMENT} (1).ipynb": SOLVED}, best)
    add("Misnamed Rae", {"final FINAL.ipynb": SOLVED}, best)
    add("Misnamed Sam", {"01-ATTENTION-2.IPYNB": SOLVED}, best)
    add("Wrong Tom", {"02-multi-head.ipynb": OTHER}, "0.00")
    add("Paper Uma", {"answers.pdf": b"%PDF-1.4"}, "0.00")
    add("Broken Vic", {right: BLANK[:3000]}, "0.00")
    add("Hostile Wes", {right: hostile()}, best)
    add("Hostile Xi", {"\x1b[2J\u202egnp.ipynb": SOLVED}, best)
    add("=Yves()", {"=1+1.ipynb": SOLVED}, best)
    add("Stranger Zoe", {right: SOLVED}, None, listed=False)
    add("Absent Zed", {}, "", "-")
    folder.mkdir()
    pack(folder / "submissions.zip", entries)
    table(folder / "worksheet.csv", [WORKSHEET, *rows], bom=True, end="\r\n")
    return entries, grades, late


def test_at_most_five_commands_and_one_for_the_report():
    commands = BLOCK.strip().splitlines()
    assert len(commands) <= 5
    assert len(REPORT.strip().splitlines()) == 1
    commands += REPORT.strip().splitlines()
    assert not any(command.startswith("#") or command.endswith("\\") for command in commands)


def test_due_dates_in_the_text_mean_the_zone_that_they_name():
    times = re.findall(r"(2026-03-01 12:00:00) (\S+?)[`\"]", README + PAGE)
    assert {zone for _, zone in times} == {"UTC", "Europe/Berlin"}
    for when, zone in times:
        there = datetime.fromisoformat(when).replace(tzinfo=ZoneInfo(zone))
        assert parse_utc(f"{when} {zone}") == there.astimezone(UTC).replace(tzinfo=None)


@pytest.mark.long
def test_thirty_files_reach_moodles_gradebook(tmp_path_factory):
    course, home = clone(tmp_path_factory.mktemp("course")), tmp_path_factory.mktemp("home")
    entries, grades, late = download(course / "downloads")
    assert len(entries) == 30
    parts = [
        f"echo '=== {number}'\n{line}" for number, line in enumerate([*BLOCK.splitlines(), REPORT])
    ]
    printed = follow(parts, course, home)
    answers = dict(re.findall(r"=== (\d)\n(.*?)(?==== \d\n|\Z)", printed, re.DOTALL))

    # 1. What it would do.
    assert "Moodle, 30 files" in answers["0"]
    assert "would be taken (24)" in answers["0"]
    assert "so that its author is told (2):" in answers["0"]
    assert answers["0"].count("untouched; ") == 3
    assert "final FINAL.ipynb: taken as 01-attention.ipynb" in answers["0"]
    assert "tom: Wrong Tom_" in answers["0"]
    assert "another assignment's; left out" in answers["0"]
    assert "answers.pdf: no notebook; left out" in answers["0"]
    assert "nobody in the roster is 'Stranger Zoe'" in answers["0"]
    assert "Nothing was written" in answers["0"]
    # 3. With the due date known, and done.
    for learner in late:
        assert f"  {learner}: by 21 h 30 min" in answers["2"]
    assert "\ntaken (24)" in answers["2"]
    assert "\x1b[2J" not in printed
    assert "\u202e" not in printed

    # 4. Graded, with lateness.
    with (course / "reports" / f"grades-{ASSIGNMENT}.csv").open(newline="") as file:
        rows = {row["learner"]: row for row in csv.DictReader(file)}
    assert {name for name, row in rows.items() if row["late"] == "yes"} == late
    assert {row["status"] for row in rows.values()} == {"graded", "zero"}
    assert rows["tom"]["reason"] == FOREIGN
    assert "is not a notebook" in rows["uma"]["reason"]

    # 5. The worksheet with grades, and nothing else changed.
    before = (course / "downloads" / "worksheet.csv").read_bytes()
    after = (course / "reports" / f"moodle-{ASSIGNMENT}.csv").read_bytes()
    assert after[:3] == before[:3] == b"\xef\xbb\xbf"
    old, new = ([*csv.reader(text.decode("utf-8-sig").splitlines())] for text in (before, after))
    assert {row[1]: row[4] for row in new[1:]} == grades
    assert [[*row[:4], *row[5:]] for row in old] == [[*row[:4], *row[5:]] for row in new]
    with zipfile.ZipFile(course / "reports" / f"moodle-feedback-{ASSIGNMENT}.zip") as archive:
        pages = {name: archive.read(name).decode() for name in archive.namelist()}
    graded = {name for name, grade in grades.items() if grade}
    assert {name.split("_")[0] for name in pages} == graded
    for name, page in pages.items():
        assert re.fullmatch(rf"[^_/]+_\d+_assignsubmission_file_/{ASSIGNMENT}\.html", name)
        assert SCRIPT not in page
    assert "Absent Zed: nothing of theirs was collected" in answers["4"]
    # 6. What to discuss in class.
    page = (course / "reports" / f"class-{ASSIGNMENT}.html").read_text(encoding="utf-8")
    assert MISTAKE.about in html.unescape(page)
    assert "jan, kai, lea" in page
    assert SCRIPT not in page
    status = ["git", "status", "--porcelain"]
    left = subprocess.run(status, cwd=course, capture_output=True, text=True, check=True).stdout
    assert [line for line in left.splitlines() if line != "?? .venv"] == []
    assert json.loads((course / "progress" / ASSIGNMENT / "collected" / "ann.json").read_text())
