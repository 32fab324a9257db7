"""Chapters as a notebook viewer can show them: without the markup that only the site understands.

A chapter's text is MyST: theorems, boxes and numbered equations are directives, references are
roles. JupyterLab shows these as they were typed. Here they become plain Markdown: a numbered
equation carries its label as its tag, and a reference shows that label.
What is inside code, or is no MyST, stays as it is. A link to a heading becomes one that JupyterLab
follows, and the instruction to install the wheel is replaced: ``make lab`` has installed it.
"""

import copy
import re

from tools import myst

LINK = re.compile(r"\]\(#([\w-]+)\)")
WHEEL = re.compile(
    r"On\s+the\s+site,\s+the\s+download\s+menu\s.*?`python -m pip install \S+\.whl`", re.DOTALL
)
ROLE = re.compile(r"\{(eq|prf:ref|numref|ref|cite(?::[pt])?)\}`([^`]+)`")


def markdown(text: str) -> str:
    """MyST as plain Markdown."""
    lines, plain_lines, place = text.split("\n"), [], 0
    for token in myst.blocks(text):
        if token.level or not (token.type.endswith("fence") or token.type == "myst_target"):
            continue
        first, end = token.map
        plain_lines += _prose(lines[place:first])
        if directive := myst.directive(token):
            plain_lines += _directive(directive)
        elif token.type != "myst_target":
            plain_lines += lines[first:end]
        place = end
    return "\n".join(plain_lines + _prose(lines[place:]))


def _prose(lines: list[str]) -> list[str]:
    """Lines without roles (a role may span two lines)."""
    return ROLE.sub(_role, "\n".join(lines)).split("\n") if lines else []


def _directive(directive: myst.Directive) -> list[str]:
    name, title, body = directive.name, ROLE.sub(_role, directive.title), directive.body
    label = directive.options.get("label", "")
    if name == "math":
        tag = [f"\\tag{{{_short(label)}}}"] if label else []
        return ["$$", *body.split("\n"), *tag, "$$"]
    text = markdown(body).strip("\n")
    if name == "admonition":
        head = f"**{title}.**" if title[-1:].isalnum() else f"**{title}**"
    elif name == "prf:proof":
        return [f"*Proof.* {text} ∎" if not text.endswith("$$") else f"*Proof.* {text}"]
    elif name.startswith("prf:"):
        named = f" `{label}`" if label else ""
        head = f"**{name[4:].capitalize()}{named}" + (f" ({title}).**" if title else ".**")
    else:
        return [text]
    return [head, "", text]


def _role(match: re.Match) -> str:
    kind, text = match[1], match[2]
    target = re.fullmatch(r"(.*?) *<([^>]+)>", text, re.DOTALL)
    if kind == "eq":
        return f"({_short(text)})"
    if kind.startswith("cite"):
        return f"[{text}]" if kind != "cite:t" else text
    if target and "%s" not in target[1]:
        return target[1]
    return f"`{target[2] if target else text}`"


def _short(label: str) -> str:
    """A label as a tag, without the kind in front of it."""
    return label.removeprefix("eq-")


def notebook(book: dict) -> dict:
    """A copy of a notebook whose text is plain Markdown; its code is as it was."""
    plain_book = copy.deepcopy(book)
    texts = [cell for cell in plain_book["cells"] if cell["cell_type"] == "markdown"]
    headings = [text for cell in texts for _, text in myst.headings("".join(cell["source"]))]
    anchors = {_slug(heading): heading.replace(" ", "-") for heading in headings}
    for cell in texts:
        text = WHEEL.sub("Here it is installed.", markdown("".join(cell["source"])))
        text = LINK.sub(lambda link: f"](#{anchors.get(link[1], link[1])})", text)
        cell["source"] = text.splitlines(keepends=True)
    return plain_book


def _slug(heading: str) -> str:
    """The anchor of a heading on the site."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
