"""The tests of the exercises, tested: wrong answers lose their points, right ones keep all."""

import ast
import functools
import json
import re
from collections.abc import Iterator

import mutants
import naming
import nbformat
import pytest
from nbclient import NotebookClient
from nbgrader.utils import determine_grade

from tests.halves import some_now
from tools import answers, exercises, kill_matrix
from tools.answers import Answer

SLUGS = exercises.slugs()
BANKS = {slug: kill_matrix.entries(slug) for slug in SLUGS}
# `make test` scores every eighth answer, `make test-long` all of them.
QUICK = {slug: {"blank", "right/warns", *list(bank)[::6]} for slug, bank in BANKS.items()}
ENTRIES = [(slug, entry) for slug, bank in BANKS.items() for entry in bank]
ACROSS = pytest.mark.parametrize("slug", SLUGS)


class Outcomes(dict):
    """Every answer of a bank, scored once, when a test first asks for the bank."""

    def __init__(self):
        self._quick = {}

    def __missing__(self, slug):
        bank = BANKS[slug]
        self[slug] = dict(zip(bank, answers.score(slug, bank.values()), strict=True))
        return self[slug]

    def of(self, slug, entry):
        """The outcome of one answer; a quick one does not ask for the whole bank."""
        if slug in self or entry not in QUICK[slug]:
            return self[slug][entry]
        if slug not in self._quick:
            scored = answers.score(slug, [BANKS[slug][each] for each in QUICK[slug]])
            self._quick[slug] = dict(zip(QUICK[slug], scored, strict=True))
        return self._quick[slug][entry]


@pytest.fixture(scope="module")
def outcomes():
    """The outcomes by assignment."""
    return Outcomes()


@pytest.mark.parametrize(
    ("slug", "entry"), some_now(ENTRIES, lambda each: each[1] in QUICK[each[0]])
)
def test_each_answer_loses_what_its_header_says_and_nothing_else(outcomes, slug, entry):
    points = answers.graded(answers.notebook(slug))
    answer = BANKS[slug][entry]
    assert answer.loses <= points.keys()
    assert not kill_matrix.surprises(answer, outcomes.of(slug, entry), points)


@ACROSS
def test_wrong_answers_lose_and_right_ones_do_not(slug):
    assert all(answer.loses for answer in answers.bank(slug, "wrong"))
    assert not any(answer.loses for answer in answers.bank(slug, "right"))


@ACROSS
def test_the_bank_is_large_enough(slug):
    assert len(answers.bank(slug, "wrong")) >= 14
    assert len(answers.bank(slug, "right")) >= 4


@ACROSS
def test_every_graded_cell_is_lost_alone_by_some_answer(slug):
    lost_alone = [answer.loses for answer in answers.bank(slug, "wrong") if len(answer.loses) == 1]
    missing = answers.graded(answers.notebook(slug)).keys() - set().union(*lost_alone)
    assert not missing, f"no wrong answer loses only {sorted(missing)}"


@ACROSS
def test_a_blank_answer_fails_in_the_released_way_and_no_other(outcomes, slug):
    assert set(outcomes.of(slug, "blank").messages.values()) == {"NotImplementedError: "}


@pytest.mark.long
@ACROSS
def test_messages_say_what_was_tried(outcomes, slug):
    """The reader of the feedback may see nothing but the message."""
    for entry, outcome in outcomes[slug].items():
        for name, message in outcome.messages.items():
            if message and entry != "blank":
                assert message.startswith("AssertionError: Tried: "), (entry, name, message)
                assert len(message) > 60, (entry, name, message)


@pytest.mark.long
@ACROSS
def test_each_hidden_test_is_the_only_one_to_catch_some_answer(outcomes, slug):
    """A hidden test that catches nothing by itself would be weight without use."""
    needed = set()
    for entry, outcome in outcomes[slug].items():
        if entry == "blank":
            continue
        for name in outcome.scores:
            failed = [key for key, message in outcome.checks.items() if message and key[0] == name]
            if len(failed) == 1:
                needed.update(failed)
    hidden = answers.hidden_checks(slug)
    assert hidden
    assert hidden <= outcomes[slug]["reference"].checks.keys()
    assert not hidden - needed, f"catch nothing by themselves: {sorted(hidden - needed)}"


@ACROSS
def test_what_an_earlier_submission_has_seen_is_worth_nothing(slug, tmp_path):
    """Every graded cell draws. The first submission notes inputs and results; the second is right
    for these inputs, and gives these results for all others."""
    noting, repeating = (f"{verb}({str(tmp_path / slug)!r})" for verb in ("noting", "repeating"))
    (first,) = answers.score(slug, [answers.attacked(slug, noting)], salt="first")
    assert first.scores == answers.graded(answers.notebook(slug))
    (second,) = answers.score(slug, [answers.attacked(slug, repeating)], salt="second")
    remaining = {cell: points for cell, points in second.scores.items() if points}
    assert not remaining


RULE = {
    "x = 1": 3,
    "print('words')": 3,
    "1.5": 1.5,
    "raise ValueError('no')": 0,
    "import sys\nprint('words', file=sys.stderr)\n2": 0,
    "import warnings\nwarnings.warn('careful', UserWarning, stacklevel=1)": 0,
    "raise SystemExit(0)": 0,
    "not python": 0,
}


def test_cells_are_scored_by_the_rule_of_nbgrader():
    meta = {"nbgrader": {"grade": True, "solution": False, "points": 3, "grade_id": "cell"}}
    given = {"nbgrader": {"locked": True}}  # without a mark it would be a cell that only draws
    source = "class probe:\n    check = None"
    probe = nbformat.v4.new_code_cell(source, metadata=given, id="probe")
    books = [
        nbformat.v4.new_notebook(
            cells=[probe, nbformat.v4.new_code_cell(source, metadata=meta, id="cell")]
        )
        for source in RULE
    ]
    scores = [outcome.scores["cell"] for outcome in answers.score_notebooks(books)]
    assert dict(zip(RULE, scores, strict=True)) == RULE


def test_an_answer_that_ends_its_process_is_told():
    meta = {"nbgrader": {"locked": True}}
    cell = nbformat.v4.new_code_cell("import os\nos._exit(7)", metadata=meta, id="ends")
    with pytest.raises(RuntimeError, match=f"ended with status {7 << 8}"):
        list(answers.score_notebooks([nbformat.v4.new_notebook(cells=[cell])]))


@pytest.mark.parametrize("slug", some_now(SLUGS, ("01-attention",)))
@pytest.mark.parametrize("entry", ["blank", "right/warns"])
def test_a_real_kernel_gives_the_same_points(outcomes, slug, entry):
    same_in_a_kernel(outcomes, slug, entry)


@ACROSS
@pytest.mark.long
def test_a_real_kernel_gives_the_same_points_to_a_wrong_answer(outcomes, slug):
    wrong = [entry for entry in BANKS[slug] if entry.startswith("wrong/")]
    same_in_a_kernel(outcomes, slug, wrong[len(wrong) // 2])


def same_in_a_kernel(outcomes, slug, entry):
    book = answers.put_in(BANKS[slug][entry], slug)
    NotebookClient(book, timeout=120, allow_errors=True, kernel_name="python3").execute()
    names = answers.graded(book)
    scores = {cell.id: determine_grade(cell)[0] for cell in book.cells if cell.id in names}
    assert scores == outcomes.of(slug, entry).scores


@pytest.mark.long
@ACROSS
def test_every_right_answer_keeps_all_points_whatever_is_drawn(slug):
    """Ten other draws: a test may be too strict for one number in a hundred."""
    points, right = answers.graded(answers.notebook(slug)), answers.bank(slug, "right")
    lost = {
        (answer.name, draw, cell): outcome.messages[cell]
        for draw in range(10)
        for answer, outcome in zip(right, answers.score(slug, right, salt=f"{draw}"), strict=True)
        for cell in points
        if outcome.scores[cell] < points[cell]
    }
    assert not lost


@pytest.mark.long
@ACROSS
def test_no_wrong_answer_depends_on_the_random_numbers(slug):
    """With other numbers, every third."""
    points = answers.graded(answers.notebook(slug))
    wrong = [entry for entry in BANKS[slug] if entry.startswith("wrong/")][::3]
    scored = answers.score(slug, [BANKS[slug][entry] for entry in wrong], salt="secret")
    unexplained = {
        entry: kill_matrix.surprises(BANKS[slug][entry], outcome, points)
        for entry, outcome in zip(wrong, scored, strict=True)
    }
    assert not any(unexplained.values()), unexplained


@pytest.mark.parametrize("step", [100, pytest.param(1, marks=pytest.mark.long)])
@ACROSS
def test_mutants_are_caught_or_explained(slug, step):
    made = {mutant.name: mutant for mutant in mutants.mutants(slug)}
    assert len(made) >= 500
    stale = "the solutions have changed: run `make mutants` and commit what it writes"
    assert mutants.recorded()[slug]["made"] == mutants.hash_of(made), stale
    fates = answers.fates(slug, list(made.values())[::step])
    survivors = {name for name, fate in fates.items() if fate == "kept"}
    assert not survivors - mutants.explained(slug, survivors).keys()


@pytest.mark.parametrize("step", [100, pytest.param(4, marks=pytest.mark.long)])
@ACROSS
def test_a_value_rounded_to_float32_costs_no_points_of_an_idea(slug, step):
    """Only the small cells of precision, unless ``equivalent.py`` has a reason in `MORE`."""
    more = mutants.explanations(slug).get("MORE", {})
    slips = [each for each in mutants.mutants(slug) if mutants.is_a_slip(each)][::step]
    lost = {}
    for mutant, outcome in zip(slips, answers.score(slug, slips), strict=True):
        cells = {name for name, score in outcome.scores.items() if not score}
        ideas = {name for name in cells if not name.endswith("-precision")}
        if ideas and not any(re.fullmatch(pattern, mutant.name) for pattern in more):
            lost[mutant.name] = ideas
    assert not lost


@pytest.mark.long
@ACROSS
def test_mutants_of_right_answers_are_caught_or_explained(slug):
    sample = list(filter(mutants.sampled, mutants.mutants_of_right_answers(slug)))
    assert len(sample) >= 5
    survivors = {name for name, fate in answers.fates(slug, sample).items() if fate == "kept"}
    assert survivors == mutants.explanations(slug)["OF_RIGHT_ANSWERS"].keys()


def test_a_mutant_that_spoils_or_ends_its_process_costs_no_other():
    """Several share a process; what one does to it is not held against those that follow."""
    cell = next(each for each in answers.notebook(SLUGS[0]).cells if answers._is_solution(each))
    right = cell.source
    sources = {
        "right": right,
        "ends": f"{right}\nimport os\nos._exit(3)",
        "right again": right,
        "spoils": f"{right}\ntorch.Tensor.sum = None",
        "right after": right,
    }
    made = [Answer(name, "other", {cell.id: source}) for name, source in sources.items()]
    fates = answers.fates(SLUGS[0], made)
    assert {name for name, fate in fates.items() if fate == "kept"} == {
        name for name in sources if name.startswith("right")
    }


def test_the_instructors_page_has_the_recorded_kill_rates():
    page = mutants.PAGE.read_text(encoding="utf-8")
    assert mutants.MARK in page
    assert mutants.quote(mutants.recorded(), page) == page


DEFINITIONS = (ast.FunctionDef, ast.ClassDef)


@functools.cache
def code_of_the_book() -> list[tuple[str, str, ast.stmt]]:
    """What the book's code defines: the page, all that the page imports and defines, and the part.

    Nothing else of a page's code: it would compute for minutes.
    """
    parts = []
    for path in sorted((answers.ROOT / "book").glob("*.ipynb")):
        cells = [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
        tree = ast.parse("\n".join(cells))
        harmless = (*DEFINITIONS, ast.Import, ast.ImportFrom)
        page = "\n".join(ast.unparse(part) for part in tree.body if isinstance(part, harmless))
        parts += [
            (path.stem, page, each) for each in ast.walk(tree) if isinstance(each, DEFINITIONS)
        ]
    return parts


def parameters(part: ast.stmt) -> list[str]:
    """The names of a function's parameters, or of a class's methods."""
    if isinstance(part, ast.ClassDef):
        return sorted(each.name for each in part.body if isinstance(each, ast.FunctionDef))
    return [each.arg for each in part.args.args]


def shown_answers(slug: str) -> Iterator[tuple[str, Answer]]:
    """What the book's code defines with the name, or the parameters, of something to write."""
    wanted = [
        (cell.id, part)
        for cell in answers.notebook(slug).cells
        if cell.metadata.get("nbgrader", {}).get("solution")
        for part in ast.parse(cell.source).body
        if isinstance(part, DEFINITIONS)
    ]
    for page, around, part in code_of_the_book():
        for cell, to_write in wanted:
            alike = type(part) is type(to_write) and parameters(part) == parameters(to_write)
            if part.name == to_write.name or (alike and len(parameters(part)) > 1):
                source = f"{around}\n{ast.unparse(part)}\n{to_write.name} = {part.name}"
                yield f"{page}: {part.name}", Answer(to_write.name, "shown", {cell: source})


@ACROSS
def test_nothing_that_a_page_shows_earns_a_point(slug):
    """Pasted in place of an answer, it loses every cell that the blank answer loses."""
    shown = list(shown_answers(slug))
    released = {cell.id: cell.source for cell in answers.notebook(slug, "exercises").cells}
    cells = sorted({cell for _, answer in shown for cell in answer.cells})
    blank = (Answer(cell, "blank", {cell: released[cell]}) for cell in cells)
    left = {
        cell: {name for name, score in outcome.scores.items() if not score}
        for cell, outcome in zip(cells, answers.score(slug, blank), strict=True)
    }
    earned = {}
    outcomes = answers.score(slug, [answer for _, answer in shown])
    for (place, answer), outcome in zip(shown, outcomes, strict=True):
        (cell,) = answer.cells
        assert left[cell]
        earned[place] = [name for name in left[cell] if outcome.scores[name]]
    assert not any(earned.values()), earned


def test_the_page_about_the_report_quotes_the_record_of_names():
    record = json.loads(naming.RECORD.read_text(encoding="utf-8"))
    page = naming.PAGE.read_text(encoding="utf-8")
    assert naming.quote(record, page) == page
    changed = [slug for slug, entry in record.items() if entry["hash"] != naming.hash_of(slug)]
    assert not changed, f"tests or wrong answers have changed: run `make naming` for {changed}"
