"""Chapters as a notebook viewer can show them: without the markup that only the site understands.

A chapter's text is MyST: theorems, boxes and numbered equations are directives, references are
roles. JupyterLab shows these as they were typed. Here they become plain Markdown: a numbered
equation carries its label as its tag, and a reference shows the label, so that one finds the other.
What is inside code, or is no MyST, stays as it is. A link to a heading becomes one that JupyterLab
follows, and what the site asks to install is said to be there: ``make lab`` has installed it.
"""

import copy
import re

FENCE = re.compile(r"^(`{3,}|:{3,})\{([\w:-]+)\} *(.*)$")
CODE = re.compile(r"^(`{3,}|~{3,})[^`{]*$")
OPTION = re.compile(r"^:([\w-]+): *(.*)$")
TARGET = re.compile(r"^\([\w-]+\)=$")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
LINK = re.compile(r"\]\(#([\w-]+)\)")
WHEEL = re.compile(
    r"On\s+the\s+site,\s+the\s+download\s+menu\s.*?`python -m pip install \S+\.whl`", re.DOTALL
)
ROLE = re.compile(r"\{(eq|prf:ref|numref|ref|cite(?::[pt])?)\}`([^`]+)`")


def markdown(text: str) -> str:
    """MyST as plain Markdown."""
    lines, made, prose = text.split("\n"), [], []

    def flush() -> None:  # a role may go on in the next line
        made.extend(ROLE.sub(_role, "\n".join(prose)).split("\n") if prose else [])
        prose.clear()

    place = 0
    while place < len(lines):
        line = lines[place]
        place += 1
        if found := FENCE.match(line):
            flush()
            body, place = _inside(lines, place, found[1])
            made += _directive(found[2], found[3], body)
        elif found := CODE.match(line):
            flush()
            body, place = _inside(lines, place, found[1])
            made += [line, *body, found[1]]
        elif not TARGET.match(line):
            prose.append(line)
    flush()
    return "\n".join(made)


def _inside(lines: list[str], place: int, fence: str) -> tuple[list[str], int]:
    """The lines up to the end of a block, and where the text goes on."""
    body = []
    while place < len(lines):
        line = lines[place]
        place += 1
        if line.strip() and not line.strip(fence[0]) and len(line) >= len(fence):
            break
        body.append(line)
    return body, place


def _directive(name: str, title: str, body: list[str]) -> list[str]:
    options = {}
    while body and (found := OPTION.match(body[0])):
        options[found[1]] = found[2]
        body = body[1:]
    label = options.get("label", "")
    if name == "math":
        tag = [f"\\tag{{{_short(label)}}}"] if label else []
        return ["$$", *body, *tag, "$$"]
    text = markdown("\n".join(body)).strip("\n")
    title = ROLE.sub(_role, title)
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


def _role(found: re.Match) -> str:
    kind, text = found[1], found[2]
    target = re.fullmatch(r"(.*?) *<([^>]+)>", text, re.DOTALL)
    if kind == "eq":
        return f"({_short(text)})"
    if kind.startswith("cite"):
        return f"[{text}]" if kind != "cite:t" else text
    if target and "%s" not in target[1]:
        return target[1]
    return f"`{target[2] if target else text}`"


def _short(label: str) -> str:
    """A label as a tag: the kind in front of it says nothing there."""
    return label.removeprefix("eq-")


def notebook(book: dict) -> dict:
    """A copy of a notebook whose text is plain Markdown; its code is as it was."""
    made = copy.deepcopy(book)
    texts = [cell for cell in made["cells"] if cell["cell_type"] == "markdown"]
    headings = HEADING.findall("\n".join("".join(cell["source"]) for cell in texts))
    anchors = {_slug(heading): heading.replace(" ", "-") for heading in headings}
    for cell in texts:
        text = WHEEL.sub("Here it is installed.", markdown("".join(cell["source"])))
        text = LINK.sub(lambda link: f"](#{anchors.get(link[1], link[1])})", text)
        cell["source"] = text.splitlines(keepends=True)
    return made


def _slug(heading: str) -> str:
    """What a heading is called in a link on the site."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
