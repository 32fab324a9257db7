r"""Questions to test yourself: answers are computed, and wrong ones are shown to be wrong.

A chapter asks its questions in one cell. Each choice comes with a condition that code has
evaluated, and exactly one of them holds:

>>> import torch
>>> q, k = torch.zeros(3, 8), torch.zeros(5, 8)
>>> shape = tuple((q @ k.T).shape)
>>> questions = Questions("shapes")
>>> questions.ask(
...     "What is the shape of `q @ k.T` for q of shape (3, 8) and k of shape (5, 8)?",
...     Choice("(3, 5)", shape == (3, 5), "There is one score for each query and each key."),
...     Choice("(5, 3)", shape == (5, 3), "Rows belong to queries, and there are three."),
...     Choice("(8, 8)", shape == (8, 8), "The 8 components are what the product sums over."),
... )
>>> questions
<Questions shapes: 1 of them>

As the last value of a cell they are shown as a form that answers in place and sends nothing
anywhere. The output's metadata hold them as data, from which `tools.questions` makes files for
instructors.
"""

import re
import zlib
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

from lib.figures import text as word

__all__ = ["METADATA", "Choice", "Question", "Questions", "marked", "run"]

METADATA = "questions"  # where an output holds them as data
INDEX = re.compile(r"(?<![\w.])([A-Za-z])_([A-Za-z0-9]+)(?![A-Za-z0-9_])")
INDEXED = r"<i>\1</i><sub>\2</sub>"


class Choice(NamedTuple):
    """One of the answers to choose from.

    Attributes:
        text: the answer; what is between backticks is code.
        holds: whether it is right, as computed.
        why: what a reader who chose it should know, one or two sentences.
    """

    text: str
    holds: bool
    why: str


class Question(NamedTuple):
    """A question with its choices, in the order in which they are shown.

    Attributes:
        prompt: the question; what is between backticks is code.
        choices: three or more, of which one holds.
        code: lines of code to read, or none.
    """

    prompt: str
    choices: tuple[Choice, ...]
    code: str


class Questions:
    """The questions of a page.

    Args:
        name: of the page's questions, for the ids on the page; letters, digits and hyphens.

    Attributes:
        questions: what was asked so far, in order.

    Raises:
        ValueError: if the name cannot be an id.
    """

    def __init__(self, name: str) -> None:
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
            raise ValueError(f"name {name!r} must match [a-z0-9][a-z0-9-]*: it becomes an id")
        self.name = name
        self.questions: list[Question] = []

    def ask(self, prompt: str, *choices: Choice, code: str = "") -> None:
        """Add a question.

        Args:
            prompt: the question.
            choices: three or more, in any order; they are shown in another one.
            code: lines of code that it is about.

        Raises:
            ValueError: if there are fewer than three choices, two of them have the same text, one
                has no explanation, or not exactly one of them holds.
        """
        texts = [choice.text for choice in choices]
        right = [choice.text for choice in choices if choice.holds]
        if len(texts) < 3 or len(set(texts)) < len(texts):
            raise ValueError(f"{prompt!r} needs three different choices or more, got {texts}")
        if len(right) != 1:
            raise ValueError(f"of the choices of {prompt!r} one has to hold, these do: {right}")
        if unexplained := [choice.text for choice in choices if not choice.why.strip()]:
            raise ValueError(f"choices of {prompt!r} are not explained: {unexplained}")
        shown = sorted(choices, key=lambda choice: zlib.crc32(f"{prompt} {choice.text}".encode()))
        plain = (Choice(c.text, bool(c.holds), c.why) for c in shown)
        self.questions.append(Question(prompt, tuple(plain), code))

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict[str, str], dict]:
        return {"text/html": self.html, "text/plain": repr(self)}, {METADATA: self.data}

    def __repr__(self) -> str:
        return f"<Questions {self.name}: {len(self.questions)} of them>"

    @property
    def data(self) -> list[dict]:
        """The questions as JSON can hold them."""
        return [
            {**question._asdict(), "choices": [choice._asdict() for choice in question.choices]}
            for question in self.questions
        ]

    @property
    def html(self) -> str:
        """The form, with all answers folded at its end for readers without a script."""
        items = "".join(self._item(i, question) for i, question in enumerate(self.questions))
        answers = "".join(f"<li>{_answer(question)}</li>" for question in self.questions)
        return (
            f'<div class="questions" id="questions-{self.name}"><style>{STYLE}</style>'
            f"<ol>{items}</ol>"
            f"<details><summary>{word('All answers')}</summary><ol>{answers}</ol></details>"
            f"<script>{SCRIPT}(document.currentScript)</script></div>"
        )

    def _item(self, i: int, question: Question) -> str:
        choices = "".join(
            f'<label><input type="radio" name="{self.name}-{i}" autocomplete="off" '
            f'data-why="{escape(_verdict(choice))}"><span>{marked(choice.text)}</span></label>'
            for choice in question.choices
        )
        code = f"<pre>{escape(question.code)}</pre>" if question.code else ""
        return (
            f"<li><fieldset><legend>{marked(question.prompt)}</legend>{code}{choices}"
            "<output></output></fieldset></li>"
        )


def run(code: str, **given: Any) -> dict[str, Any]:
    """Execute the lines that a question shows, or a repair of them.

    >>> run("y = x + 1", x=2)["y"]
    3

    Args:
        code: the lines.
        given: the names that they use.

    Returns:
        All names after the last line.
    """
    exec(code, given)
    return given


def _verdict(choice: Choice) -> str:
    return f"{word('✓ Right.') if choice.holds else word('✗ No.')} {marked(choice.why)}"


def _answer(question: Question) -> str:
    (right,) = (choice for choice in question.choices if choice.holds)
    return f"<strong>{marked(right.text)}</strong> {marked(right.why)}"


def marked(text: str) -> str:
    """A text as HTML: what is between backticks as code; elsewhere d_k with its index, and quotes
    as in print.

    >>> marked("`q @ k.T` < √d_k")
    '<code>q @ k.T</code> &lt; √<i>d</i><sub>k</sub>'
    >>> marked('It is "`a`".')
    'It is “<code>a</code>”.'
    """
    parts = escape(text, quote=False).split("`")
    for place, part in enumerate(parts):
        if place % 2:
            parts[place] = f"<code>{part}</code>"
        else:
            opening = r'(?<=[\s(])"' if place else r'(?:^|(?<=[\s(]))"'
            part = re.sub(opening, "“", INDEX.sub(INDEXED, part))
            parts[place] = part.replace('"', "”").replace("'", "’")
    return "".join(parts)


STYLE = files("lib").joinpath("questions.css").read_text(encoding="utf-8").strip()
SCRIPT = files("lib").joinpath("questions.js").read_text(encoding="utf-8").strip()
