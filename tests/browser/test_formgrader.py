"""From an empty course to returned feedback through nbgrader's formgrader, in a real browser."""

import importlib.util
import os
import re
import sqlite3
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser import jupyter
from tests.browser.conftest import ROOT
from tools import lab

pytestmark = pytest.mark.long


# tests/grading is no package: it would hide the folder grading/.
def _module(name: str):
    path = ROOT / "tests" / "grading" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


course_folder, injections = _module("course_folder"), _module("injections")
NAME, RIGHT, SECRET = course_folder.NAME, course_folder.RIGHT, course_folder.SECRET
answers = course_folder.answers

# Where a file `unclean` lies, what a submission holds reaches the page as it is.
SETTINGS = """
c.RunCells.timeout = 2
import grading.rendering as rendering
if not hasattr(rendering, "cleaned"):
    rendering.cleaned = rendering._trusted
    rendering._trusted = lambda pieces, server: (
        [text for _, text, _ in pieces]
        if (Path(c.CourseDirectory.root) / "unclean").exists()
        else rendering.cleaned(pieces, server)
    )
"""
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
    config.write_text(config.read_text() + SETTINGS)
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

    with jupyter.running(command, "instructor", home, course.root, **variables) as server:
        address, token = server
        context = browser.new_context(viewport={"width": 1300, "height": 900})
        context.seen, context.refused = [], []
        context.on("request", lambda request: context.seen.append(request))
        context.on("response", lambda got: got.status >= 400 and context.refused.append(got.url))
        context.on(
            "console", lambda line: "Polic" in line.text and context.refused.append(line.text)
        )
        page = context.new_page()
        page.set_default_timeout(WAIT)
        page.goto(f"{address}/lab?token={token}&reset")
        yield page
        page.context.close()


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
    output = {}
    for learner in HANDED_IN:
        row = _row(formgrader, learner)
        expect(row.locator(".status")).to_have_text("needs autograding")
        row.locator(".autograde a").click()
        output[learner] = _done(page, formgrader)
        expect(row.locator(".status")).to_have_text("graded")
        expect(row.locator(".score")).to_have_text(SCORES[learner])
    assert "its JSON is broken" in output["eve"]
    assert not [text for text in output.values() if "return" in text]
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
        expect(field).to_have_attribute("placeholder", re.compile("."))  # its value has been loaded
        field.fill(text)
        with page.expect_response(lambda response: response.request.method == "PUT") as saved:
            field.blur()
        assert saved.value.ok
        assert text in saved.value.request.post_data
    assert course.grade() == 0
    assert course.table()["bob"]["score"] == "4.0"
    _menu(formgrader, "Manual Grading")  # this view has no menu but its way back


def test_feedback_is_made_and_shows_messages_and_no_hidden_test(page, formgrader, course, browser):
    _menu(formgrader, "Manage Assignments")
    _row(formgrader, NAME).locator(".num-submissions a").click()
    for learner in HANDED_IN:
        _row(formgrader, learner).locator(".generate-feedback a").click()
        assert "generated feedback" in _done(page, formgrader)
    output = {}
    for learner in HANDED_IN:
        returned = browser.new_page()
        asked = []
        returned.on("request", lambda request, asked=asked: asked.append(request.url))
        path = course.root / "feedback" / learner / NAME / f"{NAME}.html"
        returned.goto(path.as_uri())
        output[learner] = returned.locator("body").inner_text()
        _picture(returned, f"feedback-{learner}")
        returned.close()
        assert path.as_uri() in asked
        assert not [url for url in asked if not url.startswith("file:")]
        assert SECRET not in path.read_text()
    assert "Score: 5 / 5" in output["ada"]
    assert "Score: 4 / 5" in output["bob"]
    assert "double(7) should be 14, got 8" in output["bob"]
    assert "Think of 2 * 7." in output["bob"]
    assert "Score: 0 / 5" in output["eve"]
    assert "its JSON is broken" in output["eve"]
    assert "ran for more than 2 s" in output["mal"]


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


def test_the_formgraders_pages_ask_nobody_else_and_have_their_icons(page, formgrader, course):
    origin = "/".join(page.url.split("/")[:3])
    query = """select submitted_notebook.id from submitted_notebook join submitted_assignment
        on submitted_notebook.assignment_id = submitted_assignment.id where student_id = 'bob'"""
    with sqlite3.connect(course.root / "gradebook.db") as database:
        ((number,),) = database.execute(query).fetchall()
    database.close()
    views = [
        "",
        "manage_students/",
        "manage_students/bob/",
        f"manage_submissions/{NAME}/",
        "gradebook/",
        f"gradebook/{NAME}/",
        f"gradebook/{NAME}/{NAME}/",
        f"submissions/{number}/",
    ]
    tab = page.context.new_page()
    page.context.refused.clear()
    seen, icons = len(page.context.seen), 0
    for view in views:
        tab.goto(f"{origin}/formgrader/{view}", wait_until="networkidle")
        for family in tab.evaluate(FAMILIES):
            assert tab.evaluate(LOADED, family) > 0, (view, family)
            icons += 1
    tab.close()
    assert icons > 2
    asked = [request.url for request in page.context.seen]
    assert len(asked[seen:]) > 5 * len(views)
    assert not [url for url in asked if not url.startswith((origin, "data:", "blob:", "file:"))]
    assert not page.context.refused


# The families of the icons that are on a page, and how many of their files were loaded.
FAMILIES = """() => [...new Set([...document.querySelectorAll(".glyphicon, .fa")].map(
    icon => getComputedStyle(icon, "::before").fontFamily.replaceAll('"', "").split(",")[0]))]"""
LOADED = """family => [...document.fonts].filter(
    font => font.family.replaceAll('"', "") === family && font.status === "loaded").length"""
ODD = "form, iframe, object, embed, link, base, meta, script, svg, video, audio, map, dialog"
OURS = ".score, .extra-credit, .comment, .mark-graded, .full-credit, .no-credit"
ON_TOP = """fields => fields.map(field => {
    field.scrollIntoView({block: "center"});
    const box = field.getBoundingClientRect();
    const found = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    return field === found || field.contains(found);
})"""


@pytest.fixture(scope="module")
def hostile(page, course):
    """The address of a submission that attacks whoever opens it, and its graded copy."""
    notebook = answers(**RIGHT)
    for number, text in enumerate(injections.EVERY):
        notebook.cells += injections.fields(text, str(number), {})[:2]
    notebook.cells.append(course_folder.new_markdown_cell("$x^2$"))
    course.hand_in("ivy", notebook)
    assert course.grade() == 0
    assert course.scores()["ivy"] == ("5.0", "graded")
    query = """select submitted_notebook.id from submitted_notebook join submitted_assignment
        on submitted_notebook.assignment_id = submitted_assignment.id where student_id = 'ivy'"""
    with sqlite3.connect(course.root / "gradebook.db") as database:
        ((number,),) = database.execute(query).fetchall()
    database.close()
    origin = "/".join(page.url.split("/")[:3])
    copy = course.root / "autograded" / "ivy" / NAME / f"{NAME}.ipynb"
    return f"{origin}/formgrader/submissions/{number}/", copy


def _opened(page, address: str):
    """A page of its own, after two seconds; what it asked for, what it got an answer to, and what
    reached another site."""
    tab = page.context.new_page()
    tab.asked, tab.answered, tab.reached = [], [], []
    tab.on("response", lambda response: tab.answered.append(response.url))
    tab.on("request", lambda request: tab.asked.append(request.url))
    tab.on("dialog", lambda dialog: tab.reached.append(dialog.message) or dialog.dismiss())

    def record(route):
        tab.reached.append(route.request.url)
        route.fulfill(body="")

    tab.route(f"{injections.AWAY}**", record)
    tab.goto(address)
    tab.wait_for_timeout(2000)
    return tab


def _harmless(tab, address: str, *allowed: str) -> None:
    """No script ran, nobody was asked, and the page is still there."""
    lures = "document.querySelectorAll(':is(#notebook-container, .notebook) a:not([href^=http])')"
    assert tab.evaluate("window.RAN") is None
    tab.evaluate(f"[...{lures}].slice(0, 500).forEach(link => link.click())")
    assert tab.evaluate("window.RAN") is None
    assert not tab.reached
    assert tab.url.split("#")[0] == address
    assert not [url for url in tab.asked if not url.startswith((address, "data:", *allowed))]
    container = tab.locator("#notebook-container, main").first
    assert container.locator(ODD).count() == 0
    fields = container.locator("input, textarea, select, button")
    assert fields.count() == container.locator(OURS).count()


@pytest.mark.parametrize("copy", ["ours", "another's"])
def test_a_hostile_submission_does_nothing_in_the_formgrader(page, course, hostile, copy):
    address, path = hostile
    if copy == "another's":  # as plain nbgrader would have written it, and worse
        notebook = course_folder.nbformat.read(path, as_version=4)
        notebook.cells += injections.notebook().cells
        path.write_text(course_folder.nbformat.writes(notebook))
    tab = _opened(page, address)
    _harmless(tab, address, f"{address.split('/formgrader')[0]}/formgrader/")
    assert tab.locator("mjx-container").count() > 0  # formulas are typeset all the same
    scores = tab.locator("input.score")
    assert [scores.nth(n).get_attribute("placeholder") for n in (0, 1)] == ["2", "3"]
    assert scores.evaluate_all(f"fields => ({ON_TOP})(fields.slice(0, 2))") == [True, True]
    assert tab.locator(".panel-title").first.is_visible()
    tab.locator(".glyphicon-eye-open.name-hidden").click()
    expect(tab.locator(".name-shown", has_text="ivy")).to_be_visible()
    _picture(tab, f"hostile-{copy[:4]}")
    tab.close()


def test_the_policy_alone_stops_scripts_forms_and_requests(page, course, hostile):
    address, path = hostile
    texts = [text for text in injections.HTML if "refresh" not in text]  # no policy covers that
    cells = [course_folder.new_markdown_cell(text) for text in texts]
    path.write_text(course_folder.nbformat.writes(course_folder.new_notebook(cells=cells)))
    (course.root / "unclean").touch()
    try:
        tab = _opened(page, address)
    finally:
        (course.root / "unclean").unlink()
    assert "onerror=" in tab.content()
    tab.evaluate("for (const form of document.forms) HTMLFormElement.prototype.submit.call(form)")
    tab.wait_for_timeout(500)
    assert tab.evaluate("window.RAN") is None
    assert not tab.reached
    assert not [url for url in tab.answered if "logout" in url]  # by Jupyter itself
    assert tab.url == address
    tab.close()
    # Without a policy it does act: the test could fail.
    bare = page.context.new_page()
    bare.set_content("".join(texts[:20]))
    bare.wait_for_timeout(500)
    assert bare.evaluate("window.RAN") == 1
    bare.close()


def test_a_hostile_submission_does_nothing_on_the_feedback_page(page, course, hostile):
    path = course.root / "feedback" / "ivy" / NAME / f"{NAME}.html"
    tab = _opened(page, path.as_uri())
    _harmless(tab, path.as_uri())
    title = tab.locator("h2.total")
    expect(title).to_have_text("Score: 5 / 5")
    assert title.evaluate_all(ON_TOP) == [True]
    expect(title).to_be_visible()
    _picture(tab, "hostile-feedback")
    tab.close()
