"""The discussion guide, for instructors only: ``python -m tools.discussion``.

For each exercise it has a few questions to the class. Each of them makes mistakes visible that
learners make, in a case small enough to work out by hand. The mistakes are those of the answer bank
(``tests/answers/*/wrong``), which also knows which cells they cost; the questions are in
``tests/answers/*/discussion.py``, where code computes the numbers of the answers.

The page, ``_build/discussion/discussion.html``, shows the questions and folds the answers, so that
it can be projected. It gives answers away: learners do not get it. Names of exercises (``05-rope``)
limit it to these.
"""

import argparse
import math
import re
import runpy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from tools import answers
from tools.answers import BANKS, Answer
from tools.files import write_whole

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "_build" / "discussion" / "discussion.html"
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{course}: discussion guide</title><style>
body{{max-width:46em;margin:2em auto;padding:0 1em;font:12pt/1.5 Georgia,serif}}
section{{break-inside:avoid;border-top:1px solid #999;padding:.2em 0 .6em}}
summary{{cursor:pointer;font-weight:bold}} details{{margin:.4em 0}}
</style></head><body><h1>{course}: discussion guide</h1>
<p>For instructors: the folded parts give answers away.</p>{body}</body></html>
"""
COURSE = "Attention, Position, Cache"


@dataclass(frozen=True)
class Question:
    """A question to the class.

    Attributes:
        mistakes: names of wrong answers of the bank that it makes visible, separated by blanks.
        ask: the question, with its small case.
        answer: what comes out, and what it shows; its numbers are computed.
    """

    mistakes: str
    ask: str
    answer: str


def softmax(scores: Sequence[float]) -> list[float]:
    """The softmax of a few numbers; minus infinity is allowed where one of them is finite."""
    largest = max(scores)
    powers = [math.exp(score - largest) for score in scores]
    return [power / sum(powers) for power in powers]


def row(numbers: Sequence[float], digits: int = 2) -> str:
    """Numbers as a row in parentheses, rounded, without zeros at the end."""
    texts = [f"{round(float(number), digits) + 0.0:g}" for number in numbers]
    return f"({', '.join(texts)})"


def printed(text: str) -> str:
    """A text as HTML, with minus signs in place of the hyphens of negative numbers."""
    return escape(re.sub(r"(?<![\w-])-(?=\d)", "−", text))


def slugs() -> list[str]:
    """The exercises that have questions."""
    return sorted(path.parent.name for path in BANKS.glob("*/discussion.py"))


def questions(slug: str) -> list[Question]:
    """The questions of an exercise."""
    return runpy.run_path(str(BANKS / slug / "discussion.py"))["QUESTIONS"]


def mistake(slug: str, name: str) -> Answer:
    """A wrong answer of an exercise's bank.

    Raises:
        ValueError: if there is none of this name.
    """
    path = BANKS / slug / "wrong" / f"{name}.py"
    if not path.is_file():
        raise ValueError(f"the bank of {slug} has no wrong answer {name!r}")
    return answers.read(path)


def page(wanted: list[str]) -> str:
    """The guide to these exercises."""
    parts = []
    for slug in wanted:
        worth = answers.graded(answers.notebook(slug))
        parts.append(f"<h2>Exercise {slug}</h2>")
        for number, question in enumerate(questions(slug), 1):
            items = []
            for name in question.mistakes.split():
                wrong = mistake(slug, name)
                lost = ", ".join(
                    f"{cell} ({worth[cell]:g})" for cell in worth if cell in wrong.loses
                )
                items.append(f"<li>{escape(wrong.about)} Costs: {escape(lost)}.</li>")
            parts.append(
                f"<section><p><strong>{number}.</strong> {printed(question.ask)}</p>"
                f"<details><summary>What comes out</summary><p>{printed(question.answer)}</p>"
                f"<p>The mistakes that it shows, with the cells (and points) that they cost:</p>"
                f"<ul>{''.join(items)}</ul></details></section>"
            )
    return PAGE.format(course=COURSE, body="\n".join(parts))


def main(wanted: list[str], target: Path = TARGET) -> int:
    """Write the page; return 0, or 2 where an exercise has no questions."""
    if unknown := sorted(set(wanted) - set(slugs())):
        print(
            f"[discussion] no questions for {', '.join(unknown)}; there are: {', '.join(slugs())}",
            file=sys.stderr,
        )
        return 2
    chosen = [slug for slug in slugs() if slug in (wanted or slugs())]
    write_whole(target, page(chosen))
    n = sum(len(questions(slug)) for slug in chosen)
    print(f"[discussion] {n} questions on {len(chosen)} exercises, in {target}")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("exercises", nargs="*", help="slugs, as 05-rope; all by default")
    sys.exit(main(parser.parse_args().exercises))
