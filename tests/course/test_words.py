"""Words that were this book's alone stay out of its prose: the field has a word for each."""

import ast
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
    "nonlinearity": r"\b(?:a|the) bend\b|\bbent\b",
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
    "is at, is in": (
        r"\b(?:quer(?:y|ies)|keys?|tokens?|padding|positions?)"
        r" (?:that |which |may )?st(?:ands?|ood)\b"
        r"(?! (?:for|out)\b)"
    ),
    "KV head": r"\bkey[- ]heads?\b",
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
    *sorted(ROOT.glob("lib/*.py")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
]
SOLUTIONS = "exercise "


def name(path: Path) -> str:
    return (SOLUTIONS if "solutions" in path.parts else "") + path.stem


def prose(path: Path) -> Iterator[tuple[str, str]]:
    """What a file says: each cell with its id, or the whole page. Lines are joined.

    Of code this is the docstrings.
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield "", docstrings(text)
    elif path.suffix == ".md":
        yield "", " ".join(text.split())
    else:
        for cell in json.loads(text)["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                yield cell["id"], " ".join(source.split())
            elif cell["id"] != "probe":  # the grader's own code
                yield cell["id"], docstrings(source)


def docstrings(source: str) -> str:
    """The docstrings of some code, one after the other, with their lines joined."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
    return " ".join(" ".join((ast.get_docstring(node) or "").split()) for node in nodes)


def retired(text: str) -> dict[str, str]:
    """The retired words in a text, under the field's word for them."""
    matches = {word: re.search(old, text, re.IGNORECASE) for word, old in RETIRED.items()}
    return {word: match[0] for word, match in matches.items() if match}


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
        ("The key that stands at 3, and a token that stands for a word.", "is at, is in"),
        ("**Look.** The curve is flat. Look at it.", "What to notice"),
        ("Four key heads.", "KV head"),
    ],
)
def test_what_counts_as_a_retired_word(text, word):
    assert list(retired(text)) == ([word] if word else [])
