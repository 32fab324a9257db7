"""From an empty course to returned feedback through nbgrader's formgrader, in a real browser."""

import importlib.util
import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser import jupyter
from tests.browser.conftest import ROOT
from tools import lab

pytestmark = pytest.mark.long

# tests/grading is no package: it would hide the folder grading/.
_found = importlib.util.spec_from_file_location(
    "course_folder", ROOT / "tests" / "grading" / "course_folder.py"
)
course_folder = importlib.util.module_from_spec(_found)
_found.loader.exec_module(course_folder)
NAME, RIGHT, SECRET = course_folder.NAME, course_folder.RIGHT, course_folder.SECRET
answers = course_folder.answers

LIMITS = "\nc.RunCells.timeout = 2\n"
HANDED_IN = {
    "ada": answers(**RIGHT),
    "bob": answers(double="def double(x):\n    return x + 1", shout=RIGHT["shout"]),
    "eve": b'{"nbformat": 4, "cells": [',
    "mal": answers(double="def double(x):\n    while True: pass", shout=RIGHT["shout"]),
}
SCORES = {"ada": "5 / 5", "bob": "3 / 5", "eve": "0 / 5", "mal": "3 / 5"}
WAIT = 60_000


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course with its settings and one assignment in `solutions/`, and nothing else."""
    folder = course_folder.Folder(tmp_path_factory.mktemp("course"))
    config = folder.root / "nbgrader_config.py"
    config.write_text(config.read_text() + LIMITS)
    folder.publish(course_folder.source())
    return folder


@pytest.fixture(scope="module")
def page(browser, course, tmp_path_factory):
    """JupyterLab on the course folder, as ``make lab INSTRUCTOR=1`` starts it."""
    home = tmp_path_factory.mktemp("home")
    # The course's tools are in its own folder; this one has a copy of the settings alone.
    variables = {"PYTHONPATH": str(ROOT), "HOME": str(home)}

    def command(options: list[str]) -> list[str]:
        return lab.command(course.root, options)

    with jupyter.running(command, "instructor", home, course.root, **variables) as found:
        address, token = found
        page = browser.new_page(viewport={"width": 1300, "height": 900})
        page.set_default_timeout(WAIT)
        page.goto(f"{address}/lab?token={token}&reset")
        yield page
        page.close()


@pytest.fixture(scope="module")
def formgrader(page):
    """The formgrader as the menu opens it: a page in a panel of JupyterLab."""
    page.locator(".lm-MenuBar-itemLabel", has_text="Nbgrader").click(timeout=WAIT)
    page.locator(".lm-Menu-itemLabel", has_text=re.compile("^Formgrader$")).click()
    frame = page.frame_locator("iframe[src*=formgrader]")
    expect(frame.locator("#main-table")).to_be_visible(timeout=WAIT)
    return frame


def _picture(page, name: str) -> None:
    if folder := os.environ.get("PICTURES"):
        page.screenshot(path=Path(folder) / f"formgrader-{name}.png")


def _menu(frame, name: str):
    frame.get_by_role("link", name=name, exact=True).first.click()


def _row(frame, text: str):
    return frame.locator("#main-table tr", has_text=text)


def _done(page, frame) -> str:
    """What the window that reports success says; it is closed."""
    modal = frame.locator(".modal.in, .modal.show").first
    expect(modal).to_contain_text("Success", timeout=WAIT)
    text = modal.inner_text()
    log = modal.locator("pre").all_text_contents()
    modal.get_by_role("button", name=re.compile("OK|Close", re.IGNORECASE)).last.click()
    expect(frame.locator(".modal-backdrop")).to_have_count(0)
    return "\n".join([text, *log])


def test_an_assignment_is_generated(page, formgrader, course):
    assert not (course.root / "exercises").exists()
    row = _row(formgrader, NAME)
    row.locator(".assign a").click()
    assert "created the student version" in _done(page, formgrader)
    release = (course.root / "exercises" / NAME / f"{NAME}.ipynb").read_text()
    assert "YOUR CODE HERE" in release
    assert SECRET not in release
    assert "return 2 * x" not in release
    _picture(page, "assignments")


def test_every_kind_of_submission_is_graded(page, formgrader, course):
    for learner, what in HANDED_IN.items():
        course.hand_in(learner, what)
    _menu(formgrader, "Manage Assignments")
    row = _row(formgrader, NAME)
    expect(row.locator(".num-submissions")).to_have_text(str(len(HANDED_IN)))
    row.locator(".num-submissions a").click()
    said = {}
    for learner in HANDED_IN:
        row = _row(formgrader, learner)
        expect(row.locator(".status")).to_have_text("needs autograding")
        row.locator(".autograde a").click()
        said[learner] = _done(page, formgrader)
        expect(row.locator(".status")).to_have_text("graded")
        expect(row.locator(".score")).to_have_text(SCORES[learner])
    assert "its JSON is broken" in said["eve"]
    assert not [text for text in said.values() if "return" in text]
    _picture(page, "submissions")


def test_the_verdicts_are_those_of_the_command(course):
    assert course.grade() == 0
    table = course.table()
    assert {name: f"{float(row['score']):g} / 5" for name, row in table.items()} == SCORES
    assert {name: row["status"] for name, row in table.items()} == {
        "ada": "graded",
        "bob": "graded",
        "eve": "zero",
        "mal": "graded",
    }
    assert "ran for more than 2 s" in table["mal"]["reason"] + course.page("mal")


def test_the_graders_view_takes_a_comment_and_a_score(page, formgrader, course):
    _menu(formgrader, "Manual Grading")
    formgrader.locator("#main-table a", has_text=NAME).first.click()
    formgrader.locator("#main-table a", has_text=NAME).first.click()
    expect(formgrader.locator("#main-table tr .score").first).to_be_visible()
    formgrader.get_by_role("button", name="Show All Names").click()
    _picture(page, "gradebook")
    formgrader.get_by_role("link", name="bob", exact=True).click()
    expect(formgrader.locator("#notebook-container").first).to_contain_text("x + 1", timeout=WAIT)
    _picture(page, "grading")
    assert SECRET in formgrader.locator("body").inner_text()
    for place, text in {"textarea.comment": "Think of 2 * 7.", "input.score": "1"}.items():
        field = formgrader.locator(place).first
        field.fill(text)
        with page.expect_response(lambda response: response.request.method == "PUT") as saved:
            field.blur()
        assert saved.value.ok
    assert course.grade() == 0
    assert course.table()["bob"]["score"] == "4.0"
    _menu(formgrader, "Manual Grading")  # this view has no menu but its way back


def test_feedback_is_made_and_shows_messages_and_no_hidden_test(page, formgrader, course, browser):
    _menu(formgrader, "Manage Assignments")
    _row(formgrader, NAME).locator(".num-submissions a").click()
    for learner in HANDED_IN:
        _row(formgrader, learner).locator(".generate-feedback a").click()
        assert "generated feedback" in _done(page, formgrader)
    said = {}
    for learner in HANDED_IN:
        returned = browser.new_page()
        asked = []
        returned.on("request", lambda request, asked=asked: asked.append(request.url))
        path = course.root / "feedback" / learner / NAME / f"{NAME}.html"
        returned.goto(path.as_uri())
        said[learner] = returned.locator("body").inner_text()
        _picture(returned, f"feedback-{learner}")
        returned.close()
        assert path.as_uri() in asked
        assert not [url for url in asked if not url.startswith("file:")]
        assert SECRET not in path.read_text()
    assert "Score: 5.0 / 5.0" in said["ada"]
    assert "Score: 4.0 / 5.0" in said["bob"]
    assert "double(7) should be 14, got 8" in said["bob"]
    assert "Think of 2 * 7." in said["bob"]
    assert "Score: 0.0 / 5.0" in said["eve"]
    assert "its JSON is broken" in said["eve"]
    assert "ran for more than 2 s" in said["mal"]


def test_a_second_file_takes_the_place_of_the_first(page, formgrader, course):
    course.hand_in("eve", answers(**RIGHT))
    course.hand_in("ada", b"")
    _menu(formgrader, "Manage Assignments")
    _row(formgrader, NAME).locator(".num-submissions a").click()
    for learner, score in {"eve": "5 / 5", "ada": "0 / 5"}.items():
        row = _row(formgrader, learner)
        row.locator(".autograde a").click()
        _done(page, formgrader)
        expect(row.locator(".score")).to_have_text(score)
