"""Pages that an instructor or a classmate opens: nothing of a submission acts there."""

import os
import re
import resource
import socket
from pathlib import Path

import injections
import psutil
import pytest
from bs4 import BeautifulSoup
from course_folder import NAME, ROOT
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from traitlets.config import Config

from grading import evaluate, feedback, formgrader, rendering
from grading.runner import forkserver

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6o"
    "AAAAAElFTkSuQmCC"
)


def graders_page(notebook):
    """What the formgrader shows of a graded copy."""
    settings = Config()
    settings.HTMLExporter.template_name = "formgrade"
    settings.HTMLExporter.extra_template_basedirs = [formgrader.handlers.template_path]
    hostile = injections.HTML[5]
    shown = {"student": hostile, "last_name": hostile, "first_name": hostile, "index": 0}
    shown |= {"assignment_id": NAME, "notebook_id": NAME, "submission_id": "1", "total": 1}
    shown |= {"base_url": "", "notebook_path": hostile}
    page, _ = formgrader.GradersPage(config=settings).from_notebook_node(notebook, shown)
    return page


def feedback_page(notebook):
    """What a learner gets back, and a classmate may be shown."""
    shown = {"points": {}, "max_score": 5, "penalty": 0, "comments": {}, "config": Config()}
    return evaluate._render(notebook, NAME, **shown)["page"]


EXPORTERS = pytest.mark.parametrize("page_of", [feedback_page, graders_page])


GRADERS = ".text_cell_render, .input_area, .output_subarea, .panel-footer b ~ *"
LEARNERS = ".notebook .text, .notebook .code, .notebook .out"


def content(page):
    """The parts of a page in which a submission is shown."""
    tree = BeautifulSoup(page, "html.parser")
    return tree, tree.select(LEARNERS if tree.select_one(".notebook") else GRADERS)


@pytest.fixture(
    scope="module", params=[feedback_page, graders_page], ids=["feedback", "formgrader"]
)
def hostile_page(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feedback, "MAX_BYTES", 10**8)  # nothing is left out
        patch.setattr(feedback, "FIRST_OUTPUTS", 10**4)
        draw = feedback_here if request.param is feedback_page else graders_page
        return draw(injections.notebook())


def feedback_here(notebook):
    """A feedback page, made in this process."""
    shown = {"points": {}, "max_score": 5, "penalty": 0, "comments": {}, "config": Config()}
    return feedback.page(notebook, NAME, about=feedback.About(), **shown)


def test_nothing_of_a_submission_acts_on_a_page(hostile_page):
    tree, parts = content(hostile_page)
    assert len(parts) > 20 * len(injections.EVERY)
    marks = tree.select(".notebook mark.l, .notebook span.l")  # the page's own boxes for lines
    own = {id(element) for element in marks}
    elements = [each for part in parts for each in part.find_all(True) if id(each) not in own]
    tags = {element.name for element in elements}
    assert not tags - rendering.TAGS - rendering.ELEMENTS, tags - rendering.TAGS
    for element in tree.find_all(True):
        names = {name.lower() for name in element.attrs}
        calls = {element[name] for name in names if name.startswith("on")}
        assert calls <= {"toggle_name(true);", "toggle_name(false);"}, element
    for element in elements:
        assert not set(element.attrs) & {"name", "srcdoc", "srcset", "ping", "action", "target"}
        assert re.fullmatch(r"(https?://|mailto:|#of-the-notebook-|$).*", element.get("href", ""))
        assert re.fullmatch(r"(data:image/[a-z+]+;base64,[A-Za-z0-9+/=]*)?", element.get("src", ""))
        assert element.get("id", "of-the-notebook-").startswith("of-the-notebook-")
        if element.name in rendering.ELEMENTS:
            assert not set(element.attrs) - rendering.VALUES.keys() - {"mathvariant"}, element
            assert {each.name for each in element.find_all(True)} <= rendering.ELEMENTS
        style = r"((color|background-color|text-align):[a-z0-9#(), ]*;?)*"
        assert re.fullmatch(style, element.get("style", "")), element
        classes = set(element.get("class", []))
        assert classes <= rendering.TOKENS | rendering.ANSI | {
            "highlight",
            "hl-ipython3",
            "anchor-link",
        }
        if element.name == "a" and element.get("href", "").startswith("http"):
            assert element["rel"] == ["noopener", "noreferrer"]


def test_nothing_of_a_submission_gets_around_its_cell(hostile_page):
    tree, _ = content(hostile_page)
    cells, raw = tree.select("main > .notebook > .answer"), 0
    if not cells:
        (container,) = tree.select("#notebook-container #notebook-container")
        cells = container.find_all("div", class_="cell", recursive=False)
        raw = len(injections.EVERY)  # have no element of their own
    assert len(cells) == 3 * len(injections.EVERY) - raw
    for scripts in tree.select("script"):
        assert "RAN" not in scripts.text
    for element in tree.select("head, nav, .panel-heading, header, .result, .failure, summary"):
        assert not element.select("img, svg, style:not([type]) *")


def test_a_feedback_page_says_what_the_browser_may_do_before_anything_else():
    page = feedback_page(new_notebook())
    head = page[page.index("<head>") :].split("\n")
    assert head[1].startswith('<meta http-equiv="Content-Security-Policy" content="default-src')
    assert "script-src" not in head[1]
    assert "<script" not in page


def test_the_list_of_scores_calls_each_cell_by_its_name():
    marks = {"grade": True, "locked": True, "solution": False, "points": 1, "schema_version": 3}
    cells = [
        new_code_cell("", metadata={"nbgrader": {"grade_id": name, **marks}})
        for name in ("masked-values", "masked-edges")
    ]
    page = feedback_page(new_notebook(cells=cells))
    listed = BeautifulSoup(page, "html.parser").select("nav li a")
    assert [link.text for link in listed] == ["masked-values", "masked-edges"]


@EXPORTERS
def test_an_honest_notebook_is_shown_as_it_was_meant(page_of):
    text = """# Notes on $a<b$

*yes*, `x < y`, [a page](https://example.org/a?b=c&d), [up](#Notes-on)

- [x] done
- [ ] open

| a | b |
|:--|--:|
| 1 | 2 |

```python
def f(x): return x
```

![drawn](attachment:my%20drawing.png) <img src="attachment:my%20drawing.png" width="40">
![lost](attachment:lost.png)
"""
    cell = new_markdown_cell(text)
    cell["attachments"] = {"my drawing.png": {"image/png": PIXEL}}
    code = new_code_cell("print(1 < 2)  # so", execution_count=3)
    code.outputs = [
        new_output("stream", text="\x1b[31mred\x1b[0m & <b>"),
        new_output("error", ename="E", evalue="", traceback=["one", "two"]),
        new_output("display_data", {"image/png": PIXEL}),
        new_output("display_data", {"image/svg+xml": "<svg/>"}),
        new_output("display_data", {"text/html": "<table><tr><td>7</td></tr></table>"}),
        new_output("display_data", {"text/plain": "array([1])"}),
    ]
    tree, (words, source, *shown) = content(page_of(new_notebook(cells=[cell, code])))
    brief = page_of is feedback_page
    if brief:
        assert words.h3.text == "Notes on a<b¶"
        assert [each.name for each in words.h3.math.find_all(True)] == ["mrow", "mi", "mo", "mi"]
    else:
        assert words.h1.text == "Notes on $a<b$¶"
        assert "In\xa0[3]:" in tree.text
    assert (words.em.text, words.code.text) == ("yes", "x < y")
    assert [link["href"] for link in words.find_all("a")[1:]] == [
        "https://example.org/a?b=c&d",
        "#of-the-notebook-Notes-on",
    ]
    assert [item.text for item in words.find_all("li")] == ["☑ done", "☐ open"]
    assert [cell["style"] for cell in words.find_all("td")] == [
        "text-align:left",
        "text-align:right",
    ]
    assert words.select_one("div.highlight .k").text == "def"
    assert [image.get("src") for image in words.find_all("img")] == [
        f"data:image/png;base64,{PIXEL}",
        f"data:image/png;base64,{PIXEL}",
        "data:image/png;base64,",
    ]
    assert source.text.strip() == "print(1 < 2)  # so"
    assert source.select_one(".c" if brief else ".c1").text == "# so"
    stream, error, png, svg, table, plain = shown
    inside = (stream if brief else stream.pre).decode_contents()
    assert inside == '<span class="ansi-red-fg">red</span> &amp; &lt;b&gt;'
    assert error.text.split() == ["one", "two"]
    assert png.img["src"] == f"data:image/png;base64,{PIXEL}"
    assert png.img["alt"]
    assert svg.img["src"].startswith("data:image/svg+xml;base64,")
    assert table.td.text == "7"
    assert plain.text.strip() == "array([1])"


@EXPORTERS
def test_every_picture_has_a_text_in_its_place(page_of):
    lost = '<img title="a>b" src="https://evil.example/p.png"> <img src="x.png" alt="mine">'
    text = f'<img src="attachment:p.png"> {lost}'
    cell = new_markdown_cell(text, attachments={"p.png": {"image/png": PIXEL}})
    code = new_code_cell("1", outputs=[new_output("display_data", {"text/html": lost})])
    _, (words, _, shown) = content(page_of(new_notebook(cells=[cell, code])))
    here, elsewhere = rendering.NAMELESS, rendering.NOT_HERE
    assert [image["alt"] for image in words.find_all("img")] == [here, elsewhere, "mine"]
    assert [image["alt"] for image in shown.find_all("img")] == [elsewhere, "mine"]


# --- the process that draws


def _look(argument):
    """What a process can do that has been taken over while it drew."""
    elements = {
        "user": os.getuid(),
        "files": sorted(os.listdir("/")),
        "course": (ROOT / "solutions").exists(),
    }
    elements["processes"] = len([name for name in os.listdir("/proc") if name.isdigit()])
    for name, act in {
        "network": lambda: socket.create_connection(("127.0.0.1", argument["port"]), 1),
        "writes": lambda: Path("/etc/passwd").open("a"),
        "memory": lambda: bytearray(8 * 2**30),
        "open": lambda: os.fstat(3),
    }.items():
        try:
            act()
        except (OSError, MemoryError) as refused:
            elements[name] = type(refused).__name__
    return elements


def test_who_takes_over_the_process_that_draws_has_gained_nothing():
    with socket.create_server(("127.0.0.1", 0)) as server:
        result = forkserver.boxed(_look, {"port": server.getsockname()[1]}, rendering.BOX, 60)
    assert result["network"] in ("ConnectionRefusedError", "OSError")
    assert result["writes"] in ("PermissionError", "FileNotFoundError", "OSError")
    assert result["memory"] == "MemoryError"
    assert result["open"] == "OSError"
    assert result["processes"] <= 4
    assert not result["course"]
    assert os.getuid() or result["user"] >= forkserver.FIRST_USER


def _forever(argument):
    while True:
        pass


def test_a_process_that_draws_for_ever_is_ended():
    assert forkserver.boxed(_forever, {}, rendering.BOX, 1) == {}
    running = [process.info for process in psutil.process_iter(["name", "ppid"])]
    assert {"name": "bwrap", "ppid": os.getpid()} not in running


@pytest.mark.parametrize(
    "answer", [{}, {"html": 5}, {"html": []}, {"html": ["x"] * 3}, {"html": [1, {"a": []}]}]
)
def test_an_answer_of_another_form_shows_the_text(monkeypatch, answer):
    monkeypatch.setattr(forkserver, "boxed", lambda *_: answer)
    pieces = [("code", "x", {}), ("terminal", "y", {}), ("html", "<b>z</b>", {})]
    assert rendering._drawn(pieces) == [None, None, "<b>z</b>"]


def test_a_forged_answer_is_cleaned(monkeypatch):
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)  # this process goes on
    forged = f"<img src=x onerror={injections.RUN}><h4 class='score'>5</h4>"
    monkeypatch.setattr(forkserver, "boxed", lambda *_: {"html": [forged] * 3})
    pieces = [("code", "x", {}), ("terminal", "y", {}), ("markdown", "z", {})]
    assert rendering.clean({"pieces": pieces})["html"] == [
        "5",
        "5",
        f'<img alt="{rendering.NOT_HERE}"><h4>5</h4>',
    ]


@pytest.mark.long
def test_what_would_take_too_long_is_left_and_the_rest_is_drawn():
    slow = "x" * 100 + " \n" * 90_000
    cells = [new_code_cell("a = 1"), new_code_cell(slow), new_code_cell("b = 2")]
    cells.append(new_code_cell("", outputs=[new_output("stream", text="\x1b[1m" * 40_000)]))
    shown = rendering.view(new_notebook(cells=cells)).cells
    assert 'class="n">a</span>' in shown[0].source
    assert shown[1].source.startswith("<pre>[Shown as it was typed")
    assert len(shown[1].source) < 2 * rendering.MAX_PLAIN
    assert 'class="n">b</span>' in shown[2].source


def test_without_a_sandbox_a_page_holds_text(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    server = forkserver.ForkServer("grading.rendering")
    server.start()
    try:
        cells = [new_markdown_cell("*a* <b>"), new_code_cell("b = 1")]
        shown = rendering.view(new_notebook(cells=cells), server.path).cells
    finally:
        server.close()
    assert shown[0].source.endswith("*a* &lt;b&gt;</pre>")
    assert shown[1].source.endswith("b = 1</pre>")


def test_a_notebook_shows_no_more_than_a_page_holds(monkeypatch):
    monkeypatch.setattr(rendering, "MAX_PAGE", 1000)
    cells = [new_code_cell("x" * 300, id=f"c{n}") for n in range(5)]
    shown = [cell.source for cell in rendering.view(new_notebook(cells=cells)).cells]
    assert sum(map(len, shown)) < 1500
    assert shown[-1] == rendering.LEFT_OUT
