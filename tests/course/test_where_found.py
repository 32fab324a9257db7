"""Chapter 10's table of techniques: each claim is in the section that its row points to."""

import re
from functools import cache

import pytest

from tests.course.claims import chapters

HEADING = "What current models and servers do"
TEXTS = {chapter.slug: chapter.text for chapter in chapters()}
LABEL = re.compile(r"^\((sec-[\w-]+)\)=$", flags=re.MULTILINE)
CLAIM = re.compile(r"{(?:prf:ref|eq)}`([\w-]+)`")
REF = re.compile(r"{ref}`[^<`]+<(sec-[\w-]+)>`")


@cache
def sections() -> dict[str, str]:
    """Every labelled section of the book, up to the next labelled one or the end of the page."""
    labelled = {}
    for text in TEXTS.values():
        _, *pieces = LABEL.split(text)
        labelled |= dict(zip(pieces[::2], pieces[1::2], strict=True))
    return labelled


def rows() -> list[str]:
    _, _, rest = TEXTS["10-kv-cache"].partition(f"\n## {HEADING}\n")
    lines = re.findall(r"^\| (.+) \|$", rest.split("\n## ")[0], flags=re.MULTILINE)
    return lines[2:]


def misplaced(row: str) -> list[str]:
    """The claims of a row that are in none of the sections it points to."""
    pointed = [sections()[label] for label in REF.findall(row)]
    return [
        claim
        for claim in CLAIM.findall(row)
        if not any(f":label: {claim}\n" in text for text in pointed)
    ]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.split(" | ")[0])
def test_each_claim_is_in_the_section_named(row):
    assert REF.findall(row)
    assert CLAIM.findall(row)
    assert misplaced(row) == []


def test_the_rest_of_chapter_14_is_pointed_to():
    """What changes no cache has no row, but the page says where it is."""
    _, _, rest = TEXTS["10-kv-cache"].partition(f"\n## {HEADING}\n")
    labels = set(REF.findall(rest.split("\n## ")[0]))
    assert {"sec-modern-bounds", "sec-modern-sinks", "sec-serving-simulation"} <= labels


def test_a_claim_in_another_section_is_found():
    row = "x | y | {ref}`pieces <sec-serving-pieces>`, {prf:ref}`cor-chunks`, {prf:ref}`thm-tiled`"
    assert misplaced(row) == ["thm-tiled"]
