"""Claims and checks are equal, and the machinery that says so sees every way they could differ."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tests.course.claims import Chapter, Label, chapters, page_labels, problems
from tests.course.execution import perturbations, perturbed_chapters
from tools import myst

EQUATION = """
```{math}
:label: eq-one
a = b
```
"""
THEOREM = """
```{prf:theorem} A title
:label: thm-one

Then $a = b$.
```
"""


def chapter(*markdown, checks=("eq-one", "thm-one"), claims=("eq-one",), slug="01-broken"):
    """A small notebook: these texts, one check cell for each label, these listed equations."""
    cells = [new_markdown_cell(text, id=f"text-{i}") for i, text in enumerate(markdown)]
    cells += [
        new_code_cell("assert True", id=f"check-{i}", metadata={"checks": [label]})
        for i, label in enumerate(checks)
    ]
    return Chapter(slug, new_notebook(cells=cells, metadata={"claims": list(claims)}))


def problems_of(*broken, required=None, pages=None):
    """The problems of these chapters, whose required claims are their claims unless given."""
    if required is None:
        required = {each.slug: each.claims for each in broken}
    return problems(broken, required, pages)


def test_book():
    """The claims that a chapter has to make are those with a perturbation."""
    required = {slug: frozenset(perturbations(slug)) for slug in perturbed_chapters()}
    assert problems(chapters(), required, page_labels()) == []


def test_sound_chapter_has_no_problem():
    assert problems_of(chapter(EQUATION, THEOREM)) == []


def test_claims_are_theorems_and_listed_equations():
    text = EQUATION + THEOREM + "```{prf:definition}\n:label: def-one\nA word.\n```\n"
    text += "```{math}\n:label: eq-other\nc = d\n```\n```{prf:lemma}\n:label: lem-one\nSo.\n```\n"
    assert chapter(text).claims == {"eq-one", "thm-one", "lem-one"}


BOTH = (EQUATION, THEOREM)
UNLABELLED = "```{prf:theorem} A title\nThen $a = b$.\n```"


@pytest.mark.parametrize(
    ("texts", "changes", "problem"),
    [
        (BOTH, {"checks": ["eq-one"]}, "the claim thm-one has no check"),
        (BOTH, {"checks": ["thm-one"]}, "the claim eq-one has no check"),
        (
            BOTH,
            {"checks": ["eq-one", "thm-one", "eq-gone"]},
            "cell check-2 checks eq-gone, which is no claim",
        ),
        (BOTH, {"claims": []}, "cell check-0 checks eq-one, which is no claim"),
        (
            BOTH,
            {"checks": ["eq-one", "thm-one", "eq-one"]},
            "the claim eq-one is checked twice, by cells check-0, check-2",
        ),
        ([THEOREM], {}, "the metadata claims eq-one, which labels no equation"),
        (
            [THEOREM],
            {"checks": ["thm-one"], "claims": ["thm-one"]},
            "the metadata claims thm-one, which labels no equation",
        ),
        (BOTH, {"claims": ["eq-one", "eq-one"]}, "the metadata claims eq-one 2 times"),
        (
            [*BOTH, UNLABELLED],
            {},
            "a prf:theorem has no label, so that nothing can check it",
        ),
    ],
)
def test_claims_and_checks_that_differ(texts, changes, problem):
    assert problems_of(chapter(*texts, **changes)) == [f"01-broken: {problem}"]


def test_label_given_twice_in_one_chapter():
    assert problems_of(chapter(EQUATION, THEOREM, EQUATION)) == [
        "01-broken: the label eq-one is given twice: "
        "01-broken (cell text-0), 01-broken (cell text-2)"
    ]


def test_label_given_twice_in_the_book():
    first = chapter(EQUATION, THEOREM)
    second = chapter(EQUATION, checks=["eq-one"], slug="02-other")
    assert problems_of(first, second) == [
        "01-broken: the label eq-one is given twice: "
        "01-broken (cell text-0), 02-other (cell text-0)"
    ]


def test_label_given_twice_by_a_page_and_by_a_figure():
    pages = {"notation": [Label("thm-one", "target", "page")]}
    broken = chapter(EQUATION, THEOREM)
    broken.notebook.cells[2].metadata["mystnb"] = {"figure": {"name": "eq-one"}}
    assert problems_of(broken, pages=pages) == [
        "01-broken: the label eq-one is given twice: "
        "01-broken (cell text-0), 01-broken (cell check-0)",
        "01-broken: the label thm-one is given twice: "
        "01-broken (cell text-1), notation (cell page)",
    ]


@pytest.mark.parametrize(
    ("required", "problem"),
    [
        (
            {"01-broken": {"eq-one", "thm-one", "thm-two"}},
            "01-broken: the claim thm-two has disappeared, its perturbation has not",
        ),
        ({"01-broken": {"eq-one"}}, "01-broken: the claim thm-one has no perturbation"),
        (
            {"01-broken": {"eq-one", "thm-one"}, "02-gone": {"eq-two"}},
            "02-gone: the chapter has disappeared, its perturbations have not",
        ),
    ],
)
def test_claims_and_perturbations_that_differ(required, problem):
    assert problems_of(chapter(*BOTH), required=required) == [problem]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```{math}\n:label: eq-a\n\na\n```", [("math", {"label": "eq-a"})]),
        (
            ":::{prf:lemma} T\n:label: l\n:nonumber:\ntext\n:::",
            [("prf:lemma", {"label": "l", "nonumber": ""})],
        ),
        (
            "````{prf:theorem}\n:label: t\n\n```{math}\n:label: e\na\n```\n````",
            [("prf:theorem", {"label": "t"}), ("math", {"label": "e"})],
        ),
        ("```{math}\na\n:label: no-option-any-more\n```", [("math", {})]),
        ("```python\nx = '''\n:label: not-a-label\n'''\n```", []),
        ("````text\n```{math}\n:label: an-example\n```\n````", []),
        ("```\n```{math}\n:label: an-example\n```", []),
    ],
)  # fmt: skip
def test_directives(text, expected):
    assert [(each.name, each.options) for each in myst.directives(text)] == expected


def test_labels_outside_of_directives():
    text = "$$\na = b\n$$ (eq-dollar)\n\n(a-target)=\n## Heading\n\n`$$a$$ (no-label)`"
    assert myst.labels(text) == [("eq-dollar", "math"), ("a-target", "target")]


def test_formulas_of_texts_and_titles_but_not_of_code():
    text = "As $a$ has it:\n$$\nb\n$$\n:::{prf:lemma} A $c$\n\n```{math}\nd\n```\n:::\n`$e$`"
    assert [tex.strip() for tex in myst.formulas(text)] == ["a", "b", "c", "d"]


def test_chapters_are_read_from_a_folder(tmp_path):
    nbformat.write(chapter(EQUATION, THEOREM).notebook, tmp_path / "02-b.ipynb")
    nbformat.write(chapter(EQUATION, THEOREM).notebook, tmp_path / "01-a.ipynb")
    (tmp_path / "page.md").write_text(EQUATION)
    assert [each.slug for each in chapters(tmp_path)] == ["01-a", "02-b"]
    assert [label.name for label in page_labels(tmp_path)["page"]] == ["eq-one"]
