"""Words that were this book's alone stay out of its prose: the field has a word for each."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import start

ROOT = start.BOOK.parent
# What was written, and what a reader will meet in papers and search for.
RETIRED = {
    "query's position, key's position": (
        r"\bwho asks\b|\b(?:is|are) asked(?! (?:for|to|what|whether)\b)"
        r"|\b(?:rows?|tokens?|positions?|quer(?:y|ies)) (?:that )?asks?\b"
    ),
    "cross-attention": r"\bcrossings?\b",
    "nonlinearity": r"\bthe bend\b|\bbent\b",
    "passes on": r"\bhands? over\b",
    "The Transformer, end to end": r"\bwhole machine\b",
    "Common misconception": r"\boften said wrong\b",
    "What to notice": r"\*\*Look\.\*\*",
    "counter-clockwise": r"\bagainst the clock\b",
    "has to, is to": r"\bshall\b",
    "strong or faint blue (a dark page turns dark and pale)": (
        r"\b(?:dark(?:er)?|paler?|black) (?:cells?|regions?|ones?|columns?|blocks?|arc)\b"
        r"|\b(?:is|are|stays?) (?:dark(?:er)?|paler?|black)\b"
    ),
    "if you, anyone who": r"\bwhoever\b|(?:^|[.:] )(?-i:Who) [^.?]*\.",
}
# (file, cell, field's word): why the retired word is right there.
EXCEPTIONS = {
    ("06-alibi", "play-slopes-text", "strong or faint blue (a dark page turns dark and pale)"): (
        "a heat map, which a dark page leaves as it is"
    ),
    ("01-attention", "three-roles", "query's position, key's position"): (
        "introduces m and n by what a position does; from there on they have their names"
    ),
}
FILES = [
    *sorted(path for path in start.BOOK.iterdir() if path.suffix in {".ipynb", ".md"}),
    *sorted((start.BOOK / "instructors").glob("*.md")),
    *sorted(ROOT.glob("solutions/*/*.ipynb")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
]
SOLUTIONS = "exercise "


def name(path: Path) -> str:
    return (SOLUTIONS if "solutions" in path.parts else "") + path.stem


def prose(path: Path) -> Iterator[tuple[str, str]]:
    """The Markdown of a file: each cell with its id, or the whole page. Lines are joined."""
    if path.suffix == ".md":
        yield "", " ".join(path.read_text(encoding="utf-8").split())
        return
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "markdown":
            yield cell["id"], " ".join("".join(cell["source"]).split())


def retired(text: str) -> dict[str, str]:
    """The retired words in a text, under the field's word for them."""
    found = {word: re.search(old, text, re.IGNORECASE) for word, old in RETIRED.items()}
    return {word: match[0] for word, match in found.items() if match}


@pytest.mark.parametrize("path", FILES, ids=name)
def test_the_prose_speaks_the_language_of_the_field(path):
    wrong = [
        f"{cell}: {old!r}, better: {word}"
        for cell, text in prose(path)
        for word, old in retired(text).items()
        if (name(path), cell, word) not in EXCEPTIONS
    ]
    assert wrong == []


def test_every_exception_is_needed():
    texts = {(name(path), cell): text for path in FILES for cell, text in prose(path)}
    for file, cell, word in EXCEPTIONS:
        assert word in retired(texts[file, cell]), (file, cell)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Row m asks, and n is asked.", "query's position, key's position"),
        ("Where it is asked for, and we are asked to stop.", None),
        ("Two streets and their crossings.", "cross-attention"),
        ("A bent function.", "nonlinearity"),
        ("A value is handed over. Bendable.", None),
        ("Who makes w longer halves the rate.", "if you, anyone who"),
        ("Who makes w longer? Nobody.", None),
        ("**Look.** The curve is flat. Look at it.", "What to notice"),
    ],
)
def test_what_counts_as_a_retired_word(text, word):
    assert list(retired(text)) == ([word] if word else [])
