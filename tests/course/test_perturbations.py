"""Every check can fail: under the perturbation of its claim exactly that check does."""

import ast

import pytest
import torch
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tests.course.claims import Chapter, chapters
from tests.course.execution import (
    Perturbation,
    check_cells,
    outcomes,
    perturbations,
    set_up_cells,
    undisturbed,
    verdict,
)
from tests.halves import some_now

CLAIMING = [chapter for chapter in chapters() if chapter.claims]
EACH = [(chapter, claim) for chapter in CLAIMING for claim in sorted(chapter.claims)]
NAMES = [f"{chapter.slug}-{claim}" for chapter, claim in EACH]
THIRD = {claim for _, claim in EACH[::3]}  # labels: none occurs twice


@pytest.mark.parametrize("chapter", CLAIMING, ids=lambda chapter: chapter.slug)
def test_checks_pass_with_nothing_but_the_set_up(chapter):
    assert {cell: error for cell, error in undisturbed(chapter).items() if error} == {}


@pytest.mark.parametrize(
    ("chapter", "claim"), some_now(EACH, lambda each: each[1] in THIRD), ids=NAMES
)
def test_exactly_the_check_of_this_claim_fails(chapter, claim):
    assert verdict(chapter, claim, perturbations(chapter.slug)[claim]) == []


@pytest.mark.parametrize(("chapter", "claim"), EACH, ids=NAMES)
def test_lib_is_patched_where_the_check_uses_lib(chapter, claim):
    """A check that uses lib has to be failed by a fault of lib, not by another line in it."""
    ours = {
        alias.asname or alias.name
        for cell in set_up_cells(chapter)
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "lib"
        for alias in node.names
    }
    (cell,) = chapter.checks[claim]
    source = ast.parse(check_cells(chapter)[cell])
    used = {node.id for node in ast.walk(source) if isinstance(node, ast.Name)} & ours
    assert bool(perturbations(chapter.slug)[claim].patch) == bool(used)


# --- the machinery itself, on notebooks made for it

SETUP = "from lib.attention import causal_mask\n\none = 1"


def small(**checks):
    """A chapter with a claim and a check cell for each keyword: its name, the check's source."""
    text = "".join(f"```{{prf:lemma}}\n:label: {name}\ntext\n```\n" for name in checks)
    cells = [
        new_markdown_cell(text, id="text"),
        new_code_cell(SETUP, id="setup", metadata={"tags": ["setup"]}),
        new_code_cell("raise RuntimeError('not a check, never run')", id="training"),
    ]
    cells += [
        new_code_cell(source, id=f"cell-{name}", metadata={"checks": [name]})
        for name, source in checks.items()
    ]
    return Chapter("00-small", new_notebook(cells=cells))


TWO = small(a="assert one + one == 2", b="assert causal_mask(1, 2).all()")
BROKEN_MASK = Perturbation(
    "no key at all", patch={"lib.attention.causal_mask": lambda _: lambda q, k: torch.zeros(q, k)}
)


def test_replacement_and_patch_each_fail_their_own_check():
    assert verdict(TWO, "a", Perturbation("1 + 1 = 3", replace=("== 2", "== 3"))) == []
    assert verdict(TWO, "b", BROKEN_MASK) == []
    assert set(outcomes(TWO).values()) == {None}  # and afterwards all is as it was


def test_a_check_that_fails_by_itself_fails_every_perturbation():
    """Also under a replacement, which does not run the other cells again."""
    broken = small(a="assert one + one == 2", b="assert one == 2")
    (message,) = verdict(broken, "a", Perturbation("1 + 1 = 3", replace=("== 2", "== 3")))
    assert "cell cell-b fails too (AssertionError()), only the check of a may" in message


def test_perturbation_that_changes_nothing():
    (message,) = verdict(TWO, "a", Perturbation("nothing", replace=("== 2", "== 2.0")))
    assert message == "00-small, a, under 'nothing': cell cell-a passes, it has to fail"


def test_perturbation_that_fails_another_check():
    other, own = verdict(TWO, "a", BROKEN_MASK), verdict(TWO, "b", BROKEN_MASK)
    assert own == []
    assert len(other) == 2
    assert "cell cell-a passes, it has to fail" in other[0]
    assert "cell cell-b fails too (AssertionError()), only the check of a may" in other[1]


def test_check_that_stops_without_an_assertion():
    (message,) = verdict(TWO, "a", Perturbation("a slip", replace=("one + one", "one + two")))
    assert "cell cell-a stops with NameError" in message
    assert "it has to fail by an assertion" in message


@pytest.mark.parametrize(("old", "times"), [("three", 0), ("one", 2)])
def test_replacement_has_to_match_exactly_once(old, times):
    with pytest.raises(ValueError, match=f"'{old}' stands {times} times in cell cell-a"):
        verdict(TWO, "a", Perturbation("a slip", replace=(old, "two")))


def test_check_that_needs_more_than_the_set_up():
    leaning = small(a="found = 3\nassert found", b="assert found")
    (error,) = (error for error in outcomes(leaning).values() if error)
    assert isinstance(error, NameError)


@pytest.mark.parametrize("nan", ["float('nan')", "(causal_mask(1, 1) / 0 - float('inf')).max()"])
def test_nan_does_not_pass_as_the_largest_error(nan):
    hiding = small(a=f"worst = 0.0\nfor error in [1.0, {nan}, 0.5]:\n    worst = max(worst, error)")
    (error,) = outcomes(hiding).values()
    assert isinstance(error, AssertionError)


def test_patch_of_something_else_than_lib():
    with pytest.raises(ValueError, match=r"patches torch\.softmax, which is not lib"):
        Perturbation("another softmax", patch={"torch.softmax": lambda original: original})


def test_perturbation_needs_one_of_the_two():
    with pytest.raises(ValueError, match="needs a patch or a replacement, not both"):
        Perturbation("nothing at all")


def test_dtype_is_given_back():
    changing = small(a="import torch\n\ntorch.set_default_dtype(torch.float64)")
    outcomes(changing)
    assert torch.get_default_dtype() == torch.float32
