"""The page Notation, held to the formulas of the chapters."""

import re
from collections import Counter
from functools import cache

import pytest

from tests.course.claims import BOOK, read
from tools import myst

NOTATION = (BOOK / "notation.md").read_text(encoding="utf-8")
TITLE = "## Letters with several meanings"
SEVERAL = NOTATION.split(TITLE)[1].split("\n## ")[0]
ROW = re.compile(r"^\| (?P<symbols>\$.*?) \| (?P<meanings>.*) \|$", re.MULTILINE)
CHAPTERS = re.compile(r"\((\d\d(?:, \d\d)*)\)")
IN_WORDS = re.compile(r"\\(?:text|operatorname|begin|end|label|mathrm)\s*\{[^}]*\}")


@cache
def formulas(number: str) -> str:
    """Everything that stands in a formula of a chapter, without the words in it."""
    (path,) = BOOK.glob(f"{number}-*.ipynb")
    return IN_WORDS.sub(" ", "\n".join(myst.formulas(read(path).text)))


def symbols(cell: str) -> list[str]:
    """The letters in a cell, without index or argument: of ``$L_q$, $L$; $l$``, L and l."""
    return re.findall(r"\$(\\[a-z]+|[A-Za-z])\$", cell)


def letter(symbol: str) -> re.Pattern:
    before = "" if symbol.startswith("\\") else r"(?<![\\A-Za-z])"
    return re.compile(before + re.escape(symbol) + r"(?![A-Za-z])")


@pytest.mark.parametrize("row", ROW.findall(SEVERAL), ids=lambda row: row[0])
def test_a_letter_occurs_in_each_chapter_that_is_named_for_it(row):
    letters, meanings = symbols(row[0]), row[1]
    named = {number for group in CHAPTERS.findall(meanings) for number in group.split(", ")}
    assert letters, row
    assert named or "all chapters" in meanings
    for number in sorted(named):
        assert any(letter(each).search(formulas(number)) for each in letters), number


def test_a_letter_that_two_tables_explain_is_among_those_with_several_meanings():
    before = NOTATION.split(TITLE)[0]
    tables = Counter()
    for table in re.split(r"^## ", before, flags=re.MULTILINE):
        tables.update({each for row in ROW.findall(table) for each in symbols(row[0])})
    twice = {each for each, count in tables.items() if count > 1}
    assert {"L", "N", "b"} <= twice
    assert twice <= {each for row in ROW.findall(SEVERAL) for each in symbols(row[0])}
