"""What a class got wrong: a class of a dozen, made from the answer bank of exercise 01."""

import json
import re
import shutil
from dataclasses import replace

import nbformat
import pytest
from course_folder import ROOT, Folder
from playwright.sync_api import sync_playwright

from grading import class_report, mistakes
from grading.course import Course
from grading.mistakes import Answer, Bank, Check, Task
from grading.runner import pool
from tools import answers, exercises

pytestmark = pytest.mark.long
NAME = "01-attention"
SOURCE = answers.notebook(NAME)
SOLUTIONS = {cell.id: cell.source for cell in SOURCE.cells if answers._is_solution(cell)}
WRONG = {answer.name: answer for answer in answers.bank(NAME, "wrong")}
# Wrong in a way that is in no bank, and hostile: a script, a mark of direction, an escape.
EVIL = """def softmax(scores, dim):
    # <script>alert(1)</script> </code><img src=http://evil.invalid/x> \u202e \x1b[31m
    return (scores.exp() / scores.exp().sum(dim, keepdim=True)) ** 1.01
"""
RAISES = """def softmax(scores, dim):
    raise ValueError("<b onclick=alert(1)>\u202e</b>")
"""
# Passes a mistake on: it asks masked_attention of task 3 (with the mistake of the bank's).
PASSES_ON = """def answer_at(m, query, key, value, k_positions):
    return masked_attention(query[None], key, value, (k_positions <= m)[None])[0][0]
"""


def _handed_in(*wrong: str, **own: str) -> nbformat.NotebookNode:
    """A learner's notebook: right but for these answers of the bank, and these cells."""
    filled = dict(SOLUTIONS)
    for name in wrong:
        filled |= WRONG[name].cells
    filled |= own
    notebook = answers.notebook(NAME, "exercises")
    for cell in notebook.cells:
        cell.source = filled.get(cell.id, cell.source)
    return notebook


CLASS = {
    "ada": _handed_in(),
    "cy": _handed_in("mask_after_softmax"),
    "dee": _handed_in("mask_after_softmax"),
    "eve": _handed_in("mask_after_softmax", "answer_unscaled"),
    "fay": _handed_in("answer_unscaled"),
    "gus": _handed_in("offset_ignored"),
    "hal": _handed_in("mask_after_softmax", **{"answer-at-answer": PASSES_ON}),
    "jon": _handed_in(softmax=EVIL),
    "kim": _handed_in(softmax=EVIL.replace("# <", "# again <")),
    "lou": _handed_in(softmax=RAISES),
    "bob": answers.notebook(NAME, "exercises"),
    "moe": answers.notebook("02-multi-head", "exercises"),  # another exercise's
}
BLANK = 2  # of them have filled in nothing


def _folder(root) -> Folder:
    folder = Folder(root, NAME)
    shutil.copytree(ROOT / "solutions" / NAME, folder.root / "solutions" / NAME)
    # Of the bank the mistakes that the class makes, and some others: each costs a run.
    banks = folder.root / "tests" / "answers"
    theirs = {"mask_after_softmax", "answer_unscaled", "offset_ignored"}
    chosen = {f"{name}.py" for name in theirs | set(list(WRONG)[::4])}
    for path in [*(ROOT / "tests" / "answers").iterdir(), *answers.BANKS.glob(f"{NAME}/*/*.py")]:
        if path.name != NAME and (path.parent.name != "wrong" or path.name in chosen):
            link = banks / path.relative_to(answers.BANKS)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
    # What was diagnosed for another test, or by `make report`, is what it would be here.
    if (known := ROOT / "_build" / "mistakes").is_dir():
        shutil.copytree(known, folder.root / "_build" / "mistakes")
    return folder


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    folder = _folder(tmp_path_factory.mktemp("course"))
    for learner, notebook in CLASS.items():
        folder.hand_in(learner, notebook)
    folder.hand_in("cut", b'{"nbformat": 4, "cells": [')
    assert folder.grade() == 0
    folder.path_of_page, folder.parts = class_report.write(Course.open(folder.root), NAME)
    folder.html = folder.path_of_page.read_text(encoding="utf-8")
    return folder


def _groups(course) -> dict[tuple[int, str], str | None]:
    """The name of each group's mistake, by task and learners."""
    return {
        (part.number, " ".join(group.learners)): group.name and group.name.about
        for part in course.parts
        for group in part.groups
        if not group.blank
    }


def test_known_mistakes_are_named_and_all_else_is_grouped_in_silence(course):
    """Also: who asks a function that fails passes its mistake on, and gets no name for that."""
    groups = _groups(course)
    assert groups[3, "cy dee eve hal"] == WRONG["mask_after_softmax"].about
    assert groups[6, "eve fay"] == WRONG["answer_unscaled"].about
    assert groups[4, "gus"] == WRONG["offset_ignored"].about
    assert groups[6, "hal"] is None
    assert groups[1, "jon kim"] is None
    assert groups[1, "lou"] is None
    assert len(groups) == 6
    for about in (WRONG["mask_after_softmax"].about, "Four pitfalls with masks"):
        assert about in course.html


def test_rates_count_those_who_filled_in_the_task(course):
    for part in course.parts:
        assert part.blank == BLANK
        assert [group.learners for group in part.groups if group.blank] == [["bob", "moe"]]
        assert {rate.tried for rate in part.rates} == {len(CLASS) - BLANK}
        lowest = min(rate.passed for rate in part.rates)
        failing = {name for group in part.groups if not group.blank for name in group.learners}
        assert lowest >= len(CLASS) - BLANK - len(failing)
        # a task's points and its checks agree, under another draw
        assert part.full == len(CLASS) - BLANK - len(failing)
        assert part.full + part.some + part.none == len(CLASS)
    bars = dict(class_report.histogram([{"status": "graded", "score": 18.0, "max_score": 18.0}]))
    assert bars["18"] == 1
    assert sum(bars.values()) == 1


def test_a_hidden_check_that_nobody_passes_stands_out(course):
    opened = Course.open(course.root)
    with pool.executor("local", 2) as workers:
        limits = class_report.RunCells(config=opened.config).limits()
        bank = mistakes.bank(opened, NAME, SOURCE, workers, limits)
        those, _ = class_report.diagnose(opened, NAME, SOURCE, workers, limits)
    check = next(check for check in bank.checks if check.hidden and check.task == 1)
    visible = next(check for check in bank.checks if not check.hidden)
    spoilt = [
        replace(each, results=each.results | dict.fromkeys((check, visible), "AssertionError: no"))
        for each in those
    ]
    made = class_report.parts(SOURCE, bank, spoilt, [], "")
    flags = {rate.check: rate.flag for part in made for rate in part.rates}
    assert flags[check] == "nobody passes"
    assert flags[visible] == ""  # learners see that one themselves
    page = class_report.page(NAME, made, [], {}, 0)
    top = page.partition('id="scores"')[0]
    assert "Hidden checks that nobody passes" in top
    assert check.tried in top
    assert "Hidden checks that nobody passes" not in course.html


def test_nothing_of_a_submission_acts_on_the_page(course):
    """It is text, whatever it says; and nothing is asked for, in a browser without the policy."""
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in course.html
    assert "<script" not in course.html
    assert "onclick=alert" not in course.html.replace("&lt;b onclick=alert", "")
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b-\x1f\x7f]", course.html)
    assert f'content="{class_report.POLICY}"'.replace("'", "&#39;") in course.html
    assert len(course.html) < 200_000
    asked, shown = [], []
    with sync_playwright() as playwright:
        arguments = {"executable_path": shutil.which("chromium"), "args": ["--no-sandbox"]}
        browser = playwright.chromium.launch(**arguments)
        page = browser.new_page(viewport={"width": 390, "height": 800}, bypass_csp=True)
        page.on("request", lambda request: asked.append(request.url))
        page.on("dialog", lambda dialog: (shown.append(dialog.message), dialog.dismiss()))
        page.goto(course.path_of_page.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.add_script_tag(path=ROOT / "tests" / "browser" / "vendor" / "axe.min.js")
        assert page.evaluate("axe.run()")["violations"] == []
        browser.close()
    assert asked == [course.path_of_page.as_uri()]
    assert shown == []


def test_what_was_run_is_not_run_again(course, monkeypatch):
    def run(job):
        raise AssertionError("it was run again")

    monkeypatch.setattr(pool, "run", run)
    path, _ = class_report.write(Course.open(course.root), NAME)
    assert path.read_text(encoding="utf-8") == course.html


def test_what_cannot_be_reported_is_said(course, tmp_path, capsys):
    assert "cut: The file is not a complete notebook" in course.html
    folder = _folder(tmp_path)
    folder.hand_in("ada", CLASS["ada"])
    assert class_report.main([NAME, "--course", str(tmp_path)]) == 2
    assert "nobody has been graded" in capsys.readouterr().err
    assert class_report.main(["nothing", "--course", str(tmp_path)]) == 2
    assert "there is no assignment 'nothing'" in capsys.readouterr().err
    assert not (tmp_path / "reports").exists()


@pytest.mark.parametrize("asked", [False, True])
def test_a_learners_page_gets_names_only_if_that_is_asked_for(tmp_path, asked):
    folder = _folder(tmp_path)
    if asked:
        with (tmp_path / "nbgrader_config.py").open("a") as file:
            file.write("c.Hints.on_feedback = True\nc.Hints.book = 'https://book.example/'\n")
    folder.hand_in("cy", CLASS["cy"])
    folder.hand_in("ada", CLASS["ada"])
    assert folder.grade() == 0
    hints = {
        name: nbformat.read(path, 4).metadata.get("hints")
        for name in ("ada", "cy")
        for path in (tmp_path / "autograded" / name / NAME).glob("*.ipynb")
    }
    if not asked:
        assert hints == {"ada": None, "cy": None}
        return
    assert hints["ada"] == {}
    assert hints["cy"].keys() <= set(WRONG["mask_after_softmax"].loses)
    ((text, link),) = hints["cy"]["masked-values"]
    assert text.startswith(WRONG["mask_after_softmax"].about)
    assert link == "https://book.example/01-attention.html#four-pitfalls-with-masks"


# --- the rule, on small patterns

GOT = "AssertionError: Tried: this.\nthe result at [0]: got {}, expected 1"
ONE = Check(0, "cell", "this", True, "")
TWO = Check(0, "cell", "more", True, "")
ASKS = Check(1, "other", "that", True, "")
PARTS = [
    Task("Task 1", ("first-answer",), ("cell",), ("first",)),
    Task("Task 2", ("second-answer",), ("other",), ("second",)),
]


def _bank(*known: tuple[str, str], shared=()) -> Bank:
    """A bank of answers to the first task, each with what both checks report."""
    bank = Bank(PARTS, [ONE, TWO, ASKS], "chapter", {"first-answer": "A section?"}, list(shared))
    for name, message in known:
        bank.add(
            Answer(name, f"About {name}.", {"first-answer": ""}),
            {ONE: message, TWO: message, ASKS: ""},
        )
    return bank


def test_only_the_same_result_gets_a_name():
    bank = _bank(("a", GOT.format(0.25)))
    name = bank.name(0, (GOT.format(0.25),) * 2)
    assert (name.about, name.page) == ("About a.", "chapter.html#a-section")
    assert bank.name(0, (GOT.format(0.25), GOT.format(0.250001))) is None
    assert bank.name(1, (GOT.format(0.25),) * 2) is None
    assert bank.name(0, (GOT.format(0.25),) * 2, without="a") is None


def test_a_result_of_two_mistakes_gets_no_name_unless_they_are_the_same():
    same = (("a", GOT.format(2)), ("b", GOT.format(2)))
    pattern = (GOT.format(2),) * 2
    assert _bank(*same).name(0, pattern) is None
    shared = [("Both.", frozenset("ab"))]
    assert _bank(*same, shared=shared).name(0, pattern).about == "Both."
    assert _bank(*same, ("c", GOT.format(2)), shared=shared).name(0, pattern) is None


def test_one_value_is_no_evidence():
    bank = Bank(PARTS, [ONE, TWO, ASKS])
    bank.add(Answer("a", "About.", {"first-answer": ""}), {ONE: GOT.format(2), TWO: "", ASKS: ""})
    assert bank.name(0, (GOT.format(2), "")) is None


@pytest.mark.parametrize(
    "message",
    [
        "argument 1 of the call was changed in place",
        "the result: got None (is a `return` missing?), expected a tensor",
        "the result: got shape (2,), expected shape (3,)",
        "It raised ValueError: (its message is your code's own)",
    ],
)
def test_a_result_without_a_value_gets_no_name(message):
    text = f"AssertionError: Tried: this.\n{message}"
    assert _bank(("a", text)).name(0, (text,) * 2) is None


def test_a_mistake_that_may_come_from_another_task_gets_no_name():
    bank = _bank(("a", GOT.format(2)))
    wrong = {ONE: GOT.format(2), TWO: GOT.format(2), ASKS: GOT.format(3)}
    calls, does_not = {"first-answer": "x = second(1)"}, {"first-answer": "x = seconds(1)"}
    assert mistakes.names(bank, wrong, calls) == {}
    assert mistakes.names(bank, wrong, does_not).keys() == {0}
    assert mistakes.names(bank, wrong | {ASKS: ""}, calls).keys() == {0}


# --- the bank of each exercise


@pytest.mark.parametrize("slug", exercises.slugs())
def test_every_check_is_found_and_every_task_has_a_section(slug):
    source = answers.notebook(slug)
    checks = mistakes.checks(source)
    released = mistakes.checks(answers.notebook(slug, "exercises"))
    shown = [(check.cell, check.tried) for check in released]
    assert [(check.cell, check.tried) for check in checks if not check.hidden] == shown
    assert sum(cell.source.count("@probe.check(") for cell in source.cells) == len(checks)
    facts = json.loads((answers.BANKS / "chapters.json").read_text(encoding="utf-8"))[slug]
    chapter = nbformat.read(ROOT / "book" / f"{slug}.ipynb", 4)
    text = "\n".join(cell.source for cell in chapter.cells if cell.cell_type == "markdown")
    headings = set(re.findall(r"^##+ +(.*)$", text, re.MULTILINE))
    assert set(facts["sections"].values()) <= headings
    written = {name for task in mistakes.tasks(source) for name in task.answers}
    assert written <= facts["sections"].keys()
    assert facts["sections"].keys() <= written | {check.cell for check in checks}
    banked = {answer.name for answer in answers.bank(slug, "wrong")}
    assert {name for each in facts.get("shared", []) for name in each["answers"]} <= banked
