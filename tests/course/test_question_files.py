"""The chapters' questions, and the files for instructors made of them (`tools.questions`)."""

import ast
import re
import xml.etree.ElementTree as ET
from functools import cache

import nbformat
import pytest
from jupyter_cache import get_cache

from lib.questions import METADATA, Questions
from tests.course.claims import Chapter, chapters
from tests.course.execution import (
    Perturbation,
    patched,
    perturbations,
    run,
    set_up_cells,
    undone_later,
)
from tests.test_questions import CHOICES, asked
from tools import questions as tool


def as_asked():
    return {"01-one": asked(*CHOICES, code="a < b").data}


def test_moodle_gets_every_choice_with_its_reason():
    quiz = ET.fromstring(tool.moodle(as_asked()))
    category, question = quiz
    assert category.find("category/text").text.endswith("/01-one")
    assert question.get("type") == "multichoice"
    assert question.find("questiontext/text").text == (
        "<p>How much is 1 + 1?</p><pre>a &lt; b</pre>"
    )
    answers = {
        answer.find("text").text: (answer.get("fraction"), answer.find("feedback/text").text)
        for answer in question.iter("answer")
    }
    assert answers == {
        "two": ("100", "One and one."),
        "<code>3 &lt; 4</code>": ("0", "That is <code>1 + 2</code>, not 1 &lt; 2."),
        "four": ("0", "That is two times two."),
    }


def test_the_exams_key_has_the_letter_of_the_right_choice():
    questions = as_asked()
    page, key = tool.exam(questions).split('<div class="key">')
    (question,) = questions["01-one"]
    letter = "ABC"[[choice["text"] for choice in question["choices"]].index("two")]
    assert f"<strong>{letter}</strong> One and one." in key
    assert "One and one." not in page
    assert page.index("01-one") < page.index("How much") < page.index("<li>two</li>")


def test_questions_are_read_from_the_executed_chapter(tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("questions", id="ask")])
    (tmp_path / "book").mkdir()
    path = tmp_path / "book" / "01-one.ipynb"
    nbformat.write(notebook, path)
    with pytest.raises(ValueError, match=r"01-one.ipynb has changed .* make book"):
        tool.collect(tmp_path / "book", tmp_path / "cache")
    output = nbformat.v4.new_output(
        "execute_result",
        {"text/plain": ""},
        metadata={METADATA: asked(*CHOICES).data},
        execution_count=1,
    )
    notebook.cells[0].execution_count = 1
    notebook.cells[0].outputs = [output]
    nbformat.write(notebook, path)
    get_cache(tmp_path / "cache").cache_notebook_file(path)
    assert tool.collect(tmp_path / "book", tmp_path / "cache") == {"01-one": asked(*CHOICES).data}


# --- the questions of the chapters

ASKING = [chapter for chapter in chapters() if chapter.slug[0].isdigit()]
INTRODUCTION = re.compile(
    r"## Questions to test yourself\n\n\*\d+ minutes · (easy|moderate|hard)\*\n\nChoose an answer, "
)


def question_cells(chapter: Chapter) -> list[str]:
    """The sources of the cells that ask questions."""
    return [
        cell.source
        for cell in chapter.notebook.cells
        if cell.cell_type == "code" and "Questions(" in cell.source
    ]


def ask(chapter: Chapter, fault: Perturbation | None = None) -> Questions:
    """Run the set-up cells, then the one cell that asks; it may use nothing else of the page."""
    names = {"__name__": "chapter"}
    with undone_later(), patched(fault):
        for cell in set_up_cells(chapter):
            run(cell.source, names, f"{chapter.slug}:{cell.id}")
        (source,) = question_cells(chapter)
        run(source, names, f"{chapter.slug}:questions")
    return names["questions"]


@cache
def questions_of(slug: str) -> Questions:
    """The chapter's questions, asked once."""
    (chapter,) = (each for each in ASKING if each.slug == slug)
    return ask(chapter)


def moves_an_answer(chapter: Chapter, fault: Perturbation) -> bool:
    """Whether another choice holds under this fault of ``lib``, or not just one of them."""
    try:
        return ask(chapter, fault).data != questions_of(chapter.slug).data
    except ValueError:
        return True


def condition_problems(source: str) -> list[str]:
    """Conditions that no code has evaluated.

    They contain literals and names of literals only, or compare a thing with itself.
    """
    problems, tree = [], ast.parse(source)
    literals = {
        name.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and not names_in(node.value)
        for target in node.targets
        for name in names_in(target)
    }
    for call in ast.walk(tree):
        match call:
            case ast.Call(ast.Name("Choice"), [_, condition, *_]):
                if is_fixed(condition, literals):
                    problems.append(ast.unparse(condition))
            case ast.Call(ast.Name("Choice")):
                problems.append(f"{ast.unparse(call)} has no condition by place")
    return problems


def names_in(node: ast.expr) -> list[ast.Name]:
    return [each for each in ast.walk(node) if isinstance(each, ast.Name)]


def is_fixed(condition: ast.expr, literals: set[str]) -> bool:
    """Whether a condition comes out the same whatever was computed."""
    match condition:
        case ast.BoolOp(_, parts):
            return any(is_fixed(part, literals) for part in parts)
        case ast.UnaryOp(ast.Not(), part):
            return is_fixed(part, literals)
        case ast.Compare(left, [_], [right]) if ast.dump(left) == ast.dump(right):
            return True
    return {name.id for name in names_in(condition)} <= literals


@pytest.mark.parametrize("chapter", ASKING, ids=lambda chapter: chapter.slug)
def test_each_chapter_asks_in_a_section_of_its_own(chapter):
    cells = chapter.notebook.cells
    (place,) = (i for i, cell in enumerate(cells) if cell.id == "ask-yourself")
    assert [cells[place].source] == question_cells(chapter)
    assert INTRODUCTION.match(cells[place - 1].source)


@pytest.mark.parametrize("chapter", ASKING, ids=lambda chapter: chapter.slug)
def test_each_chapter_asks_eight_to_twelve_questions(chapter):
    questions = questions_of(chapter.slug)  # exactly one choice holds, or `ask` would refuse
    assert 8 <= len(questions.questions) <= 12
    assert questions.name == chapter.slug


@pytest.mark.parametrize("chapter", ASKING, ids=lambda chapter: chapter.slug)
def test_each_condition_is_computed(chapter):
    (source,) = question_cells(chapter)
    assert condition_problems(source) == []


@pytest.mark.parametrize("chapter", ASKING, ids=lambda chapter: chapter.slug)
def test_the_answers_come_from_lib(chapter):
    faults = [fault for fault in perturbations(chapter.slug).values() if fault.patch]
    assert any(moves_an_answer(chapter, fault) for fault in faults)


def test_no_question_is_asked_twice():
    prompts = [each.prompt for chapter in ASKING for each in questions_of(chapter.slug).questions]
    assert len(set(prompts)) == len(prompts)


@pytest.mark.parametrize(
    "condition",
    ["True", "not 0", "'yes'", "1 + 1 == 2", "n == n", "n == 2 or True", "not (n == n)", "m > 1"],
)
def test_a_condition_that_nothing_has_evaluated(condition):
    given = "m = 2; n = len(text); "
    assert condition_problems(f"{given}Choice('a', {condition}, 'because')") != []
    assert condition_problems(f"{given}Choice('a', n == m, 'because')") == []
    assert condition_problems("Choice('a', holds=True, why='because')") != []
