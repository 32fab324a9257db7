"""``make lab`` in a real browser: the learner's own folder, and Validate on their own copy."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import SaveCells
from playwright.sync_api import TimeoutError, expect
from traitlets.config import Config

from tests.browser import jupyter
from tools import lab, start

NAME = "small"
WORKSPACES = lab.WORKSPACES  # before a fixture puts it elsewhere
FIGURE = ("10-kv-cache", "play-steps")  # a chapter, and a figure near its top
ANSWER = """def double(x):
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION"""
TEST = """got = double(3)
assert got == 6, f"double(3) should be 6, got {got}"
"""


def _cell(name, source, **marks):
    cell = new_code_cell(source, id=name)
    base = {"grade": False, "locked": False, "solution": False, "task": False}
    cell.metadata["nbgrader"] = {"grade_id": name, "schema_version": 3, **base, **marks}
    return cell


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course with one released exercise, one chapter, and a learner's folder, still empty."""
    root = tmp_path_factory.mktemp("course")
    (root / "solutions" / NAME).mkdir(parents=True)
    cells = [
        _cell("double", ANSWER, solution=True),
        _cell("double-test", TEST, grade=True, locked=True, points=1),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(notebook, root / "solutions" / NAME / f"{NAME}.ipynb")
    folders = {"source_directory": "solutions", "release_directory": "exercises"}
    directory = CourseDirectory(root=str(root), assignment_id=NAME, **folders)
    release = GenerateAssignment(coursedir=directory, config=Config())
    release.no_database = True
    release.preprocessors = [step for step in release.preprocessors if step is not SaveCells]
    release.start()
    (root / "book").mkdir()
    chapter = new_notebook(
        cells=[new_code_cell("print(6 * 7)", id="ask")], metadata=notebook.metadata
    )
    nbformat.write(chapter, root / "book" / f"{NAME}.ipynb")
    shutil.copy(start.BOOK / f"{FIGURE[0]}.ipynb", root / "book")
    with pytest.MonkeyPatch.context() as patch:
        for name, folder in (("EXERCISES", "exercises"), ("BOOK", "book"), ("WORK", "work")):
            patch.setattr(start, name, root / folder)
        patch.setattr(lab, "WORKSPACES", root / "workspaces")
        yield root


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The user's own folder for Jupyter."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def server(course, home):
    """JupyterLab as ``make lab EXERCISE=small`` starts it; its address and its token."""

    def command(options: list[str]) -> list[str]:
        return lab.prepare(["--exercise", NAME, *options])

    with jupyter.running(command, "learner", home, start.ROOT) as server:
        yield server


@pytest.fixture(scope="module")
def page(browser, server):
    """The exercise, opened once in JupyterLab, and every request that was made."""
    address, token = server
    page = browser.new_page(viewport={"width": 1300, "height": 800})
    page.requests = []
    page.on("request", lambda request: page.requests.append(request.url))
    page.goto(f"{address}/?token={token}")
    expect(_answer(page)).to_be_visible(timeout=60_000)
    yield page
    page.close()


def _answer(page):
    """The first cell's editor."""
    return page.locator(".jp-Notebook .cm-content").first


def _validate(page) -> str:
    page.get_by_role("button", name="Validate", exact=True).click()
    dialog = page.locator(".jp-Dialog", has_text="Validation Results")
    expect(dialog).to_be_visible(timeout=60_000)
    text = dialog.inner_text()
    dialog.get_by_role("button", name="Ok").click()
    expect(dialog).to_have_count(0)  # or the next call would read this one again
    return text


def _run(page, cell, done) -> None:
    """Run a cell until it is done: before its kernel is ready, JupyterLab drops it, or asks."""
    which_kernel = page.locator(".jp-Dialog .jp-mod-accept")
    for _ in range(12):
        with contextlib.suppress(AssertionError, TimeoutError):
            if which_kernel.count():
                which_kernel.click(timeout=8_000)
            cell.click(position={"x": 5, "y": 5}, timeout=8_000)
            page.keyboard.press("Control+Enter")
            expect(done).to_be_visible(timeout=8_000)
            return
    pytest.fail(cell.inner_text())


def test_a_blank_notebook_fails_and_says_which_part_is_missing(page):
    _answer(page).fill("def double(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()")
    text = _validate(page)
    assert "The following cell failed" in text
    assert "double(3)" in text
    assert "NotImplementedError" in text


def test_a_wrong_answer_gets_the_message_and_a_right_one_passes(page, course):
    _answer(page).fill("def double(x):\n    return x")
    assert "double(3) should be 6, got 3" in _validate(page)
    _answer(page).fill("def double(x):\n    return x + x")
    assert "Success! Your notebook passes all the tests." in _validate(page)
    # The button saves the notebook first: the learner's copy, and not the released exercise.
    assert "return x + x" in start.mine(NAME).read_text()
    assert "return x + x" not in (course / "exercises" / NAME / f"{NAME}.ipynb").read_text()


def test_the_chapters_are_beside_it_and_running_one_leaves_the_book_alone(page, course):
    page.locator(".jp-BreadCrumbs-home").first.click()
    page.locator(".jp-DirListing-item", has_text="chapters").dblclick()
    before = (course / "book" / f"{NAME}.ipynb").read_bytes()
    page.locator(".jp-DirListing-item", has_text=f"{NAME}.ipynb").dblclick()
    chapter = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    expect(chapter.locator(".cm-content", has_text="6 * 7")).to_be_visible(timeout=30_000)
    output = chapter.locator(".jp-OutputArea-output", has_text="42")
    _run(page, chapter.locator(".jp-Cell").first, output)
    page.keyboard.press("Control+s")
    copy = course / "work" / "chapters" / f"{NAME}.ipynb"
    for _ in range(100):
        if "42" in copy.read_text():
            break
        time.sleep(0.1)
    assert "42" in copy.read_text()
    assert (course / "book" / f"{NAME}.ipynb").read_bytes() == before


@pytest.mark.long
def test_a_figure_of_a_chapter_moves_by_keyboard_and_by_pointer(browser, server):
    """A chapter as ``make lab`` copies it: the keys are the figure's, not JupyterLab's."""
    address, token = server
    cells = start.read(start.WORK / "chapters" / f"{FIGURE[0]}.ipynb")["cells"]
    names = [cell["id"] for cell in cells]
    page = browser.new_page(viewport={"width": 1300, "height": 1200})
    page.goto(f"{address}/lab/workspaces/figure/tree/chapters/{FIGURE[0]}.ipynb?token={token}")
    active = page.locator(".jp-NotebookPanel .jp-Cell.jp-mod-active")
    title = "".join(cells[0]["source"]).splitlines()[0].lstrip("# ")
    expect(active).to_contain_text(title, timeout=60_000)
    place = 0
    for name in ("setup", FIGURE[1]):
        active.click(position={"x": 5, "y": 5})
        for _ in range(names.index(name) - place):
            page.keyboard.press("j")
        place = names.index(name)
        ran = active.locator(".jp-InputPrompt", has_text=re.compile(r"\[\d+\]"))
        _run(page, active, ran if name == "setup" else active.locator(".slider-figure"))
    figure = active.locator(".slider-figure")
    slider = figure.locator("input[type=range]").first
    picture, value_text = figure.locator("svg").first, slider.get_attribute("aria-valuetext")
    seen = {value_text: picture.inner_html()}
    slider.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
        seen[slider.get_attribute("aria-valuetext")] = picture.inner_html()
    assert len(seen) == len(set(seen.values())) == 3
    expect(active.locator(".slider-figure")).to_be_visible()  # the arrows left the cell chosen
    box = slider.bounding_box()
    page.mouse.click(box["x"] + 2, box["y"] + box["height"] / 2)
    assert slider.get_attribute("aria-valuetext") not in seen
    page.close()


def test_a_learner_sees_the_button_and_nothing_else_of_nbgrader(page):
    menus = page.locator(".lm-MenuBar-itemLabel").all_inner_texts()
    assert "Kernel" in menus
    assert "Nbgrader" not in menus


def test_the_tabs_of_another_course_are_not_opened(page, course, home):
    """JupyterLab keeps its tabs for all folders together, unless it is told otherwise."""
    workspace = course / "workspaces" / "learner"
    for _ in range(100):
        if workspace.is_dir() and any(workspace.iterdir()):
            break
        page.wait_for_timeout(100)
    assert f"{NAME}/{NAME}.ipynb" in "".join(path.read_text() for path in workspace.iterdir())
    assert not (home / "CONFIG" / "lab" / "workspaces").exists()


@pytest.mark.parametrize(("set_to", "threads"), [(None, "1"), ("3", "3")])
def test_kernels_get_one_thread_unless_the_user_says_otherwise(monkeypatch, set_to, threads):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if set_to:
        monkeypatch.setenv("OMP_NUM_THREADS", set_to)
    assert lab.environment("learner")["OMP_NUM_THREADS"] == threads


def test_jupyterlab_asks_nobody_else(page, server):
    address, _ = server
    local = (address, address.replace("http", "ws", 1), "data:", "blob:")
    assert page.requests
    assert not [url for url in page.requests if not url.startswith(local)]


def test_without_exercises_it_says_what_to_do(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(start, "EXERCISES", tmp_path / "exercises")
    monkeypatch.setattr(os, "execve", lambda *_: pytest.fail("started"))
    assert lab.main([]) == 2
    assert "no exercises/ yet: run `make exercises`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "folder", "settings"),
    [
        (["--no-browser"], "work", "learner"),
        (["--exercise", NAME], "work", "learner"),
        (["--instructor"], "", "instructor"),
        (["--instructor", "--exercise", NAME], "", "instructor"),
    ],
)
@pytest.mark.usefixtures("course")
def test_who_gets_what(monkeypatch, capsys, arguments, folder, settings):
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "theirs")
    monkeypatch.setattr(lab, "WORKSPACES", WORKSPACES)
    monkeypatch.chdir(start.ROOT)
    started = []
    monkeypatch.setattr(os, "execve", lambda *what: started.append(what))
    lab.main(arguments)
    ((program, command, environment),) = started
    assert program == sys.executable
    assert f"--ServerApp.root_dir={start.WORK if folder else start.ROOT}" in command
    assert ("--no-browser" in command) == ("--no-browser" in arguments)
    place = NAME if folder else f"solutions/{NAME}"
    opens = f"--LabApp.default_url=/lab/tree/{place}/{NAME}.ipynb"
    assert (opens in command) == ("--exercise" in arguments)
    assert not {"--instructor", "--exercise", NAME} & set(command)
    ours = str(lab.SETTINGS / settings)
    assert environment["JUPYTER_CONFIG_PATH"] == f"{ours}{os.pathsep}theirs"
    assert environment["JUPYTERLAB_WORKSPACES_DIR"] == str(start.ROOT / "_build/lab" / settings)
    assert ("Your folder is work/" in capsys.readouterr().out) == bool(folder)


def test_ctrl_c_while_jupyterlab_starts_shows_no_traceback(course):
    """It takes seconds to import, in which it does not yet ask whether it shall stop."""
    command = lab.command(course, ["--no-browser", "--port=8970", "--allow-root"])
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        maps = Path(f"/proc/{process.pid}/maps")
        while "_ssl" not in maps.read_text():  # in the midst of its imports
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        assert process.communicate(timeout=60)[0] == "stopped\n"
    assert process.returncode == 130


@pytest.mark.usefixtures("course")
def test_an_exercise_that_there_is_not_is_said(monkeypatch, capsys):
    monkeypatch.setattr(os, "execve", lambda *_: pytest.fail("started"))
    assert lab.main(["--exercise", "77-nothing"]) == 2
    assert "there is no exercise '77-nothing'" in capsys.readouterr().err
