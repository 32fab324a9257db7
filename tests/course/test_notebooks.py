"""Each chapter follows the template, and each notebook is stored as a notebook should be."""

import ast
import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tests.course.claims import BOOK, Chapter, chapters
from tools import myst

SECTIONS = (
    "What you will be able to do",
    "Prerequisites and time",
    "Before the first cell",
    "Summary",
    "Exercise",
    "References",
)
EXERCISES = BOOK.parent / "exercises"
WITHOUT_EXERCISE = {"07-extrapolation", "12-pretrained", "13-language-model"}
DRAWS = re.compile(
    r"\bplt\.(subplots|subplot_mosaic|figure|show)\b|\b(attention_flow|attention_map|heatmap)\("
)
COLOURS_MEAN = re.compile(r"\b(attention_map|heatmap|imshow|pcolormesh)\(")
MINUTE = "```{admonition} The chapter in a minute"
TIMED = re.compile(r"^\*\d+ minutes? · (?:easy|moderate|hard)\*$", re.MULTILINE)
PLAYS = re.compile(r"\b(SliderFigure|HeadBrowser)\(")
SLUG = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

ALL = chapters()
NUMBERED = [chapter for chapter in ALL if re.match(r"\d\d-", chapter.slug)]


def storage_problems(chapter: Chapter) -> list[str]:
    """What is wrong with how the notebook is stored."""
    slug, notebook, messages = chapter.slug, chapter.notebook, []
    if (notebook.nbformat, notebook.nbformat_minor) != (4, 5):
        messages.append(f"{slug}: nbformat {notebook.nbformat}.{notebook.nbformat_minor}, not 4.5")
    kernel = notebook.metadata.get("kernelspec", {}).get("name")
    if kernel != "python3":
        messages.append(f"{slug}: kernelspec {kernel}, not python3")
    ids = [cell.id for cell in notebook.cells]
    for name in sorted(set(ids)):
        if ids.count(name) > 1:
            messages.append(f"{slug}: cell id {name} is given twice")
        if not SLUG.fullmatch(name) or len(name) > 40 or re.fullmatch(r"[0-9a-f]{8}", name):
            messages.append(f"{slug}: cell id {name} is no short slug")
    for cell in notebook.cells:
        if cell.cell_type == "code" and (cell.outputs or cell.execution_count is not None):
            messages.append(f"{slug}: cell {cell.id} is stored with outputs or an execution count")
    return messages


def template_problems(chapter: Chapter, exercises: Path = EXERCISES) -> list[str]:
    """What is missing from a chapter, or drawn without a description.

    The exercise has to be named as soon as it stands in the folder ``exercises``, and the command
    that opens a copy of it: whoever opens the file itself writes where updates of the course do.
    """
    slug, messages = chapter.slug, []
    code = [cell for cell in chapter.notebook.cells if cell.cell_type == "code"]
    text, headings = chapter.text, myst.headings(chapter.text)
    if [level for level, _ in headings].count(1) != 1 or not text.startswith("# "):
        messages.append(f"{slug}: one heading of the first level is needed, at the top")
    for section in SECTIONS:
        if section == "Exercise" and slug in WITHOUT_EXERCISE:
            continue
        if section not in [title for _, title in headings]:
            messages.append(f"{slug}: the section {section!r} is missing")
    notebook = f"{slug}/{slug}.ipynb"
    if (exercises / notebook).is_file() and f"exercises/{notebook}" not in text:
        messages.append(f"{slug}: the exercise exercises/{notebook} is not named")
    if (exercises / notebook).is_file() and f"`make lab EXERCISE={slug}`" not in text:
        messages.append(f"{slug}: `make lab EXERCISE={slug}` is not named: it copies and opens it")
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title = section.split("\n")[0]
        if title not in SECTIONS and not TIMED.search(section):
            messages.append(f"{slug}: the section {title!r} has no line '*8 minutes · easy*'")
    if "{cite" not in text:
        messages.append(f"{slug}: no work is cited")
    first = text.split("\n## ")[0]
    if MINUTE not in first:
        messages.append(
            f"{slug}: there is no box 'The chapter in a minute' above the first section"
        )
    if "$$" in first.split(MINUTE)[0] or "{math}" in first.split(MINUTE)[0]:
        messages.append(f"{slug}: there is a displayed formula before the chapter in a minute")
    if not code or "setup" not in code[0].metadata.get("tags", []):
        messages.append(f"{slug}: the first code cell is not tagged 'setup'")
    if not any(PLAYS.search(cell.source) for cell in code):
        messages.append(f"{slug}: there is no figure to play with")
    for cell in code:
        messages += figure_problems(slug, cell)
        if cell.metadata.get("checks") and not prints_its_check(cell.source):
            messages.append(
                f"{slug}: cell {cell.id} does not end with print(f'Checked: ...') and a number"
            )
    return messages


def prints_its_check(source: str) -> bool:
    """Whether a check cell's last statement prints its line, with something computed in it."""
    match ast.parse(source).body[-1]:
        case ast.Expr(ast.Call(ast.Name("print"), [ast.JoinedStr(parts)], [])):
            begins = isinstance(parts[0], ast.Constant) and parts[0].value.startswith("Checked: ")
            return begins and any(isinstance(part, ast.FormattedValue) for part in parts)
    return False


def figure_problems(slug: str, cell) -> list[str]:
    """What a code cell lacks to be a figure that everybody can read, if it draws."""
    try:
        ast.parse(cell.source)
    except SyntaxError as error:
        return [f"{slug}: cell {cell.id} is no plain Python ({error.msg})"]
    shown = cell.metadata.get("mystnb", {})
    if not DRAWS.search(cell.source):
        return [f"{slug}: cell {cell.id} describes a figure but draws none"] if shown else []
    messages = []
    image, figure = shown.get("image", {}), shown.get("figure", {})
    if len(image.get("alt", "").split()) < 5:
        messages.append(
            f"{slug}: the figure of cell {cell.id} has no alt text that says what it shows"
        )
    if not figure.get("caption"):
        messages.append(f"{slug}: the figure of cell {cell.id} has no caption")
    if not figure.get("name", "").startswith("fig-"):
        messages.append(f"{slug}: the figure of cell {cell.id} has no name fig-...")
    classes = image.get("classes", "")
    if not isinstance(classes, str):
        messages.append(f"{slug}: the classes of cell {cell.id} have to be one string")
    elif COLOURS_MEAN.search(cell.source) and "no-invert" not in classes.split():
        messages.append(f"{slug}: the heat map of cell {cell.id} is not of class no-invert")
    return messages


@pytest.mark.parametrize("chapter", ALL, ids=lambda chapter: chapter.slug)
def test_storage(chapter):
    assert storage_problems(chapter) == []


@pytest.mark.parametrize("chapter", ALL, ids=lambda chapter: chapter.slug)
def test_format(chapter):
    nbformat.validate(chapter.notebook)


@pytest.mark.parametrize("chapter", NUMBERED, ids=lambda chapter: chapter.slug)
def test_template(chapter):
    assert template_problems(chapter) == []


@pytest.mark.parametrize("chapter", ALL, ids=lambda chapter: chapter.slug)
def test_citations_are_in_the_bibliography(chapter):
    known = set(
        re.findall(r"^@\w+\{([\w-]+),", (BOOK / "references.bib").read_text(), re.MULTILINE)
    )
    cited = ",".join(re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", chapter.text)).split(",")
    assert {key.strip() for key in cited if key} <= known


def test_every_work_has_an_identifier():
    entries = re.split(r"^@", (BOOK / "references.bib").read_text(), flags=re.MULTILINE)[1:]
    assert entries
    without = [e.split(",")[0] for e in entries if not re.search(r"\b(doi|eprint|url|isbn)\s*=", e)]
    assert without == []


# --- the same on notebooks that are broken


CHECK = 'x = 1.5\nassert x < 2\nprint(f"Checked: x is below 2, at {x:.1f}.")'


def broken(**changes):
    """A chapter that follows the template, but for the changes."""
    slug = changes.pop("slug", "01-good")
    text = f"# Title\n\n{MINUTE}\ntext\n```\n\n"
    text += "\n\n".join(f"## {section}\n\ntext" for section in SECTIONS)
    text += f"\n\n{{cite:p}}`x` exercises/{slug}/{slug}.ipynb"
    text += f" `make lab EXERCISE={slug}`"
    metadata = {"mystnb": {
        "image": {"alt": "A heat map with rows and columns.", "classes": "no-invert"},
        "figure": {"caption": "A caption.", "name": "fig-map"},
    }}  # fmt: skip
    cells = [
        new_markdown_cell(changes.get("text", text), id=changes.get("id", "title")),
        new_code_cell(
            "import torch", id="setup", metadata={"tags": changes.get("tags", ["setup"])}
        ),
        new_code_cell("attention_map(w)", id="draw", metadata=changes.get("drawn", metadata)),
        new_code_cell(changes.get("check", CHECK), id="check", metadata={"checks": ["thm-one"]}),
        new_code_cell(changes.get("play", "SliderFigure(name='x')"), id="play"),
    ]
    notebook = new_notebook(
        cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "x"}}
    )
    notebook.nbformat_minor = 5
    return Chapter(slug, notebook)


GOOD = broken()
TEXT = GOOD.notebook.cells[0].source


def test_good_chapter():
    assert storage_problems(GOOD) == []
    assert template_problems(GOOD) == []


@pytest.mark.parametrize("section", SECTIONS)
def test_missing_section(section):
    other = "## Else\n\n*1 minute · hard*\n"
    messages = template_problems(broken(text=TEXT.replace(f"## {section}\n", other)))
    assert messages == [f"01-good: the section {section!r} is missing"]


def test_chapter_without_an_exercise():
    text = TEXT.replace("## Exercise\n", "").replace("exercises/", "")
    assert template_problems(broken(slug="07-extrapolation", text=text)) == []
    assert template_problems(broken(text=text)) == ["01-good: the section 'Exercise' is missing"]


def test_exercise_that_is_not_named(tmp_path):
    chapter = broken(text=TEXT.replace("/01-good.ipynb", ""))
    assert template_problems(chapter, tmp_path) == []
    (tmp_path / "01-good").mkdir()
    (tmp_path / "01-good" / "01-good.ipynb").touch()
    assert template_problems(GOOD, tmp_path) == []
    assert template_problems(chapter, tmp_path) == [
        "01-good: the exercise exercises/01-good/01-good.ipynb is not named"
    ]
    chapter = broken(text=TEXT.replace("lab EXERCISE=01-good", "lab"))
    assert template_problems(chapter, tmp_path) == [
        "01-good: `make lab EXERCISE=01-good` is not named: it copies and opens it"
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"text": "text\n\n" + TEXT}, "one heading of the first level is needed, at the top"),
        ({"text": TEXT + "\n\n# Another"}, "one heading of the first level is needed, at the top"),
        ({"text": TEXT.replace("{cite", "{site")}, "no work is cited"),
        ({"text": TEXT.replace("in a minute", "in brief")}, "there is no box"),
        ({"text": TEXT.replace(MINUTE, f"$$x$$\n\n{MINUTE}")}, "a displayed formula before"),
        ({"text": TEXT + "\n\n## Else\n\n*long*"}, "the section 'Else' has no line '*8 minutes"),
        ({"check": CHECK + "\nx"}, "cell check does not end with print"),
        ({"check": "print('Checked: 2.')"}, "cell check does not end with print"),
        ({"check": "print(f'It is {2}.')"}, "cell check does not end with print"),
        ({"tags": []}, "the first code cell is not tagged 'setup'"),
        ({"play": "print()"}, "there is no figure to play with"),
        ({"play": "SliderFigure( %matplotlib"}, "cell play is no plain Python"),
        ({"play": "SliderFigure(); plt.show()"}, "the figure of cell play has no alt text"),
        ({"play": "SliderFigure(); plt.show()"}, "the figure of cell play has no caption"),
        ({"play": "SliderFigure(); plt.show()"}, "the figure of cell play has no name fig-..."),
        ({"drawn": {"mystnb": {"image": {"alt": "a b c d e", "classes": ["no-invert"]}}}},
         "the classes of cell draw have to be one string"),
        ({"drawn": {"mystnb": {"image": {"alt": "a b c d e"}}}},
         "the heat map of cell draw is not of class no-invert"),
    ],
)  # fmt: skip
def test_broken_template(changes, message):
    assert any(message in problem for problem in template_problems(broken(**changes)))


def test_description_of_no_figure():
    chapter = broken(play="SliderFigure()")
    chapter.notebook.cells[-1].metadata["mystnb"] = {"figure": {"caption": "A caption."}}
    assert template_problems(chapter) == ["01-good: cell play describes a figure but draws none"]


@pytest.mark.parametrize("name", ["A-Cell", "4f3a2b1c", "under_score", "x" * 41])
def test_id_that_is_no_slug(name):
    assert storage_problems(broken(id=name)) == [f"01-good: cell id {name} is no short slug"]


def test_broken_storage():
    chapter = broken()
    chapter.notebook.cells[0].id = "setup"
    chapter.notebook.metadata.kernelspec.name = "conda-env"
    chapter.notebook.nbformat_minor = 4
    chapter.notebook.cells[1].execution_count = 3
    chapter.notebook.cells[2].outputs = [nbformat.v4.new_output("stream", text="x")]
    assert storage_problems(chapter) == [
        "01-good: nbformat 4.4, not 4.5",
        "01-good: kernelspec conda-env, not python3",
        "01-good: cell id setup is given twice",
        "01-good: cell setup is stored with outputs or an execution count",
        "01-good: cell draw is stored with outputs or an execution count",
    ]
