"""The page a learner gets: its first screen, its size, formulas, hints, and two ways to make it."""

import json
import re

import nbformat
import pytest
from bs4 import BeautifulSoup
from course_folder import NAME, RIGHT, ROOT, answers, source
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbgrader.api import Gradebook
from nbgrader.utils import is_grade, is_solution
from test_commands import formgrader
from test_grading import course  # noqa: F401 - a fixture
from test_pages import PIXEL, feedback_here
from traitlets.config import Config

from grading import evaluate, feedback, rendering
from grading import notebook as notebooks
from grading.batch import FOREIGN
from tools import answers as banks

EXERCISES = sorted(path.name for path in (ROOT / "exercises").iterdir() if path.is_dir())
NASTY = "<&\U0001f600\u202e" * 100_000


def tree(page: str) -> BeautifulSoup:
    return BeautifulSoup(page, "html.parser")


def words(element) -> str:
    return " ".join(element.text.split())


def page_of(notebook, about=None, **points):
    """The page of a graded notebook; points by cell, `-` written as `_`."""
    points = {name.replace("_", "-"): value for name, value in points.items()}
    shown = {"points": points, "max_score": 5.0, "penalty": 0.0, "comments": {}}
    about = about or feedback.About("Ada")
    return feedback.page(notebook, NAME, about=about, config=Config(), **shown)


def failed(message: str, double: str = RIGHT["double"]):
    """A graded notebook in which the test of `double` says this."""
    cells = notebooks.parse(json.dumps(answers(double, RIGHT["shout"])).encode())
    made = notebooks.rebuild(cells, source())
    (test,) = [cell for cell in made.cells if notebooks.name_of(cell) == "double-test"]
    test.outputs = [new_output("error", ename="AssertionError", evalue=message, traceback=[])]
    return made


# --- the first screen


@pytest.fixture
def returned(course):  # noqa: F811
    """A late submission that is half right, with a comment; the learner's name is known."""
    wrong = "def double(x):\n    if x > 5:\n        return x.nothing\n    return 2 * x"
    course.hand_in("bob", answers(wrong, RIGHT["shout"]))
    course.path("bob").with_name("timestamp.txt").write_text("2026-03-03 15:00:00 UTC")
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        gradebook.add_student("bob", first_name="Robert", last_name="<b>Brown\u202e")
        gradebook.add_assignment(NAME, duedate="2026-03-02 12:00:00 UTC")
    config = course.root / "nbgrader_config.py"
    config.write_text(config.read_text() + HALF)
    assert course.grade() == 0
    return course


HALF = """
from nbgrader.plugins import LateSubmissionPlugin
class Half(LateSubmissionPlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return score / 2
c.AssignLatePenalties.plugin_class = Half
"""


def test_the_first_screen_says_how_it_went(returned):
    page = tree(returned.page("bob"))
    head = words(page.header) + words(page.select_one(".result"))
    assert "Robert <b>Brown?" in head
    assert "Score: 1.5 / 5" in head
    assert "1 of 2 tests passed" in head
    assert "Late by 1 day 3 hours: handed in 2026-03-03 15:00 UTC, due 2026-03-02 12:00 UTC" in head
    assert "Penalty: −1.5; 3 points without it" in head
    listed = [words(item) for item in page.select("nav li")]
    assert listed == ["✗double-test0 of 2, failed", "✓shout-test3 of 3, passed"]
    (failure,) = page.select(".failure")
    assert "AttributeError: 'int' object has no attribute 'nothing'" in words(failure)
    assert "Your line 3: return x.nothing" in words(failure)
    assert "in line 3" not in words(failure)


def test_links_of_the_first_screen_lead_to_the_failure_and_to_the_line(returned):
    page = tree(returned.page("bob"))
    links = [link["href"] for link in page.select("nav a, .failure a, .result a")]
    assert len(links) == 5
    targets = [page.find(id=link.removeprefix("#")) for link in links]
    assert None not in targets
    (line,) = page.select("mark")
    assert line in targets
    assert line.text.strip() == "return x.nothing"
    assert line.find_parent(class_="answer") is not None


def test_what_was_given_is_folded_and_what_is_the_learners_is_open(returned):
    page = tree(returned.page("bob"))
    given = page.select(".notebook > details.given")
    assert [words(each.summary) for each in given] == ["Given Warm-up"]
    assert not page.select("details[open]")
    for answer in page.select(".answer"):
        assert answer.find_parent("details") is None
    assert [words(each.summary) for each in page.select("details.test")] == [
        "✓ passed shout-test 3 of 3"
    ]
    (test,) = page.select("div.test.failed")
    assert words(test.h3).startswith("✗ failed double-test")


def test_a_given_cell_that_was_changed_is_the_learners(course):  # noqa: F811
    notebook = answers(**RIGHT)
    notebook.cells[0].source += "\n\nMy name is Ada."
    course.hand_in("ada", notebook)
    assert course.grade() == 0
    page = tree(course.page("ada"))
    assert not page.select("details.given")
    assert "My name is Ada." in words(page.select_one(".answer"))
    assert page.h1.text == NAME  # a heading of the learner's is not the page's


def test_another_exercises_notebook_says_so_first(course):  # noqa: F811
    foreign = json.dumps(answers(RIGHT["double"].replace("double", "triple"), RIGHT["shout"]))
    for name in ("double", "shout"):
        foreign = foreign.replace(f'"{name}', f'"other-{name}')
    course.hand_in("ada", foreign.encode())
    course.hand_in("bob", answers(**RIGHT))
    assert course.grade() == 0
    assert FOREIGN[1:] in course.words("ada")
    assert course.words("ada").index(FOREIGN[1:]) < course.words("ada").index("What to look at")
    assert FOREIGN[1:] not in course.words("bob")
    before = course.page("ada")
    assert formgrader(course).generate_feedback(NAME, "ada", force=True)["success"]
    assert course.page("ada") == before


def test_nbgraders_generate_feedback_makes_the_same_page(returned):
    before = returned.page("bob")
    done = formgrader(returned).generate_feedback(NAME, "bob", force=True)
    assert done["success"], done
    assert returned.page("bob") == before

    with Gradebook(f"sqlite:///{returned.root}/gradebook.db") as gradebook:
        gradebook.find_comment("double", NAME, NAME, "bob").manual_comment = "See $x^2$ <script>"
        gradebook.find_grade("double-test", NAME, NAME, "bob").manual_score = 1
        gradebook.db.commit()
    assert formgrader(returned).generate_feedback(NAME, "bob", force=True)["success"]
    assert "From your instructor See x2" in returned.words("bob")
    assert "partly right double-test 1 of 2" in returned.words("bob")
    assert "<script" not in returned.page("bob")


def test_a_cell_that_a_person_grades_is_waiting_and_not_failed():
    made = failed("")
    (test,) = [cell for cell in made.cells if notebooks.name_of(cell) == "double-test"]
    test.outputs = []
    page = tree(page_of(made, feedback.About("Ada", waiting=("double-test",)), shout_test=3.0))
    assert "1 still to be graded by hand" in words(page.select_one(".result"))
    assert words(page.select_one("nav li")) == "…double-testof 2, graded by hand later"
    assert not page.select(".failed, .failure")


def test_of_equal_lines_the_one_in_the_named_function_is_shown():
    message = "Tried: x.\nIt raised E: no\nin line 2 of the cell, in `double`: return y"
    made = failed(message, "def double(x):\n    return y")
    for cell in made.cells:
        if notebooks.name_of(cell) == "shout":
            cell.source = "def shout(x):\n    return y"
    page = tree(page_of(made))
    (mark,) = page.select("mark")
    assert "def double" in mark.find_parent(class_="answer").text
    # A line that is nowhere stays in the message.
    page = tree(page_of(failed(message)))
    assert not page.select("mark")
    assert "in line 2 of the cell, in double: return y" in words(page.select_one(".failure"))


def test_a_cell_of_the_learners_that_stops_is_named_with_its_line():
    made = failed("name 'double' is not defined", "def double(x)\n    return x")
    (cell,) = [cell for cell in made.cells if notebooks.name_of(cell) == "double"]
    lines = ["  Cell In[4], line 1\n    def double(x)\n               ^\nSyntaxError: expected ':'"]
    message = "expected ':' (<ipython-input-4-d5>, line 1)"
    cell.outputs = [new_output("error", ename="SyntaxError", evalue=message, traceback=lines)]
    first, second = tree(page_of(made)).select(".failure")
    assert words(first) == "✗ stopped double SyntaxError: expected ':' Your line 1: def double(x)"
    assert "double-test" in words(second)


# --- hints


def test_hints_stand_below_their_failure_and_are_plain_text():
    made = failed("wrong")
    hint = feedback.Hint("This looks like `x + 1` <script>.", "https://example.org/a?b=1&c")
    other = feedback.Hint("Another.", "javascript:alert(1)")
    feedback.add_hints(made, {"double-test": [hint, other, other, other], "shout-test": [hint]})
    copy = nbformat.reads(nbformat.writes(made), as_version=4)  # as in the graded copy
    page = tree(page_of(copy, shout_test=3.0))
    (failure,) = page.select(".failure")
    hints = failure.select(".hint")
    assert words(hints[0]) == "Hint. This looks like x + 1 <script>. Read more"
    assert hints[0].code.text == "x + 1"
    assert len(hints) == feedback.MAX_HINTS
    assert [link["href"] for link in failure.select(".hint a")] == ["https://example.org/a?b=1&c"]
    assert len(page.select(".hint")) == 2 * feedback.MAX_HINTS  # here and at the test: no others


# --- size


def handed_in(slug: str, spoil) -> nbformat.NotebookNode:
    """A graded notebook of a real exercise, its cells spoilt."""
    original = banks.notebook(slug)
    cells = notebooks.parse(json.dumps(banks.notebook(slug, "exercises")).encode())
    made = notebooks.rebuild(cells, original)
    for number, cell in enumerate(made.cells):
        if cell.cell_type == "code":
            spoil(number, cell)
    return made


def fails(number: int, cell) -> None:
    if is_grade(cell):
        text = "Tried: a(b).\n" + "got 1, expected 2; " * 40
        cell.outputs = [new_output("error", ename="AssertionError", evalue=text, traceback=[])]


def without_end(number: int, cell) -> None:
    fails(number, cell)
    if is_grade(cell):
        cell.outputs[0].evalue = NASTY
    cell.outputs += [new_output("stream", text=NASTY), new_output("stream", text="<\n" * 9999)]
    picture = PIXEL + "A" * 40_000
    cell.outputs += [new_output("display_data", {"image/png": picture}) for _ in range(3)]
    if is_solution(cell):
        cell.source += "\n" + "    x = '<&>'  # a comment\n" * 300


@pytest.mark.parametrize("slug", EXERCISES)
@pytest.mark.parametrize("spoil", [fails, without_end])
def test_a_page_of_every_exercise_stays_small(slug, spoil, record_property):
    made = handed_in(slug, spoil)
    names = [notebooks.name_of(cell) for cell in made.cells if is_grade(cell)]
    solutions = sum(is_solution(cell) for cell in made.cells)
    page = page_of(made)
    assert len(page.encode()) <= feedback.MAX_BYTES
    record_property("bytes", len(page.encode()))
    parsed = tree(page)
    assert [link.text for link in parsed.select("nav li a")] == names
    assert len(parsed.select(".failure")) == len(names)
    assert all("Tried: a(b)." in each.text for each in parsed.select(".failure")) is (
        spoil is fails
    )
    assert len(parsed.select(".answer")) == solutions  # what is the learner's is never left out
    if spoil is fails:
        assert feedback.LEFT_OUT[feedback.ANSWER] not in page
        # Of what was given, code goes (the tests' tools above all), and text hardly ever.
        texts = parsed.select(".given .text")
        gone = [text for text in texts if feedback.LEFT_OUT[feedback.GIVEN] in text.text]
        assert len(texts) > 10
        assert len(gone) <= (len(texts) // 4 if slug == "10-kv-cache" else 1)
    else:
        assert "characters left out" in page
        assert feedback.LEFT_OUT[feedback.OUTPUT] in page


def test_a_notebook_of_very_many_cells_stays_small():
    made = failed("wrong")
    made.cells += [new_code_cell(f"x = {n}  # '{'<' * 60}'") for n in range(1900)]
    page = page_of(made)
    assert len(page.encode()) <= feedback.MAX_BYTES
    assert len(tree(page).select(".answer")) > 50
    assert "more cells of yours are left out" in words(tree(page))


def test_a_long_output_shows_its_beginning_and_its_end():
    text = "\n".join(f"line {n}" for n in range(100)) + "\n" + "z" * 500
    shown = rendering.shortened(text).split("\n")
    assert len(shown) == rendering.FIRST_LINES + 1 + rendering.LAST_LINES
    assert shown[0] == "line 0"
    assert "[… 69 lines left out here" in shown[rendering.FIRST_LINES]
    assert shown[-1].endswith("z [… 300 characters left out]")
    assert rendering.shortened("a\nb") == "a\nb"


def test_of_many_outputs_the_first_and_the_last_are_shown():
    cell = new_code_cell("x", outputs=[new_output("stream", text=f"<{n}>") for n in range(100)])
    page = words(tree(page_of(new_notebook(cells=[cell]))).select_one(".answer"))
    assert "<0>" in page
    assert "<99>" in page
    assert "[… 90 outputs of this cell are left out here.]" in page


# --- formulas


@pytest.mark.parametrize("slug", EXERCISES)
def test_every_formula_of_an_exercise_is_typeset(slug):
    cells = [cell for cell in banks.notebook(slug, "exercises").cells if "$" in cell.source]
    cells = [new_markdown_cell(cell.source) for cell in cells if cell.cell_type == "markdown"]
    assert len(cells) > 5
    shown = "".join(
        cell.source for cell in rendering.view(new_notebook(cells=cells), brief=True).cells
    )
    assert shown.count("<math") > 40
    rest = re.sub(r"<math.*?</math>|<pre>.*?</pre>", "", shown, flags=re.DOTALL)
    assert "$" not in rest
    assert not re.search(r"\\[a-z]+", tree(rest).text)
    assert "mathvariant" not in shown.replace('mathvariant="normal"', "")


@pytest.mark.parametrize(
    "text",
    [
        "<math><mtext><img src='x'/></mtext></math>",
        "<math><mi>x<mi>y</mi></mi></math>",
        "<math><annotation-xml encoding='text/html'><b>x</b></annotation-xml></math>",
        "<math><mglyph src='x'/></math>",
        "<math><maction actiontype='statusline#http://a'><mi>x</mi></maction></math>",
        "<math><semantics><mi>x</mi></semantics></math>",
        "<math><math><mi>x</mi></math></math>",
        "<svg><mi>x</mi></svg>",
        "<mrow><mi>x</mi></mrow>",
        "<!DOCTYPE a [<!ENTITY b 'c'>]><math><mi>&b;</mi></math>",
        "<?xml version='1.0'?><math/>",
        "<math><mi>x</math>",
        f"<math>{'<mrow><mi>x</mi>' * 100}{'</mrow>' * 100}</math>",
        "no formula",
    ],
)
def test_what_is_no_formula_is_shown_as_text(text):
    made = rendering.mathml(text)
    assert made.startswith("<code>")
    assert "<" not in made.removeprefix("<code>").removesuffix("</code>")


def test_of_a_formula_only_what_is_known_is_kept():
    text = (
        '<math xmlns="http://www.w3.org/1998/Math/MathML" display="block" href="javascript:x" '
        'style="position:fixed" class="a" id="b" onclick="c"><mspace width="900em" /><mspace '
        'width="1em" /><mi mathvariant="double-struck">R</mi><mi mathvariant="script">L</mi>'
        "<mo>&lt;b&gt;</mo><mrow><mn>1</mn></mrow><mo>∞</mo></math>"
    )
    assert rendering.mathml(text) == (
        '<math display="block"><mspace></mspace><mspace width="1em"></mspace>'
        "<mi>\u211d</mi><mi>\u2112</mi>"
        "<mo>&lt;b&gt;</mo><mn>1</mn><mi>∞</mi></math>"
    )


def test_a_formula_that_cannot_be_read_stays_as_it_was_typed():
    cells = [new_markdown_cell("a $\\frac$ b <c>"), new_markdown_cell(f"${'x' * 3000}$")]
    shown = rendering.view(new_notebook(cells=cells), brief=True).cells
    assert "<code>\\frac</code>" in shown[0].source
    assert shown[1].source.startswith("<p><code>xxx")


def test_a_page_that_was_never_seen_in_a_browser_is_still_a_page():
    """Refusals, and notebooks without a graded cell."""
    for made in (feedback.refusal("The file `<a>\u202e` is missing."), new_notebook()):
        page = feedback_here(made)
        assert "<script" not in page
        assert len(page) < 10_000
    shown = words(tree(feedback_here(feedback.refusal("The file `<a>\u202e` is missing."))))
    assert "could not be graded The file `<a>?` is missing." in shown
    assert evaluate.ABOUT.name == ""
