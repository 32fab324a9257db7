"""The blocks of a MyST text: directives, labels and headings, as markdown-it's tokens.

The parser is the one under the site's own (myst-parser), with the extensions that ``_config.yml``
turns on for blocks and formulas. Directives may contain directives: :func:`tokens` visits those
too.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.myst_blocks import myst_block_plugin
from mdit_py_plugins.myst_role import myst_role_plugin

PARSER = MarkdownIt("commonmark").enable("table").use(amsmath_plugin).use(colon_fence_plugin)
PARSER.use(dollarmath_plugin).use(myst_block_plugin).use(myst_role_plugin)
VERBATIM = ("math", "code")  # prefixes of directives whose content is not Markdown
DIRECTIVE = re.compile(r"\{([\w:-]+)\}\s*(.*)")
OPTION = re.compile(r":([\w-]+):\s*(.*)")


@dataclass(frozen=True)
class Directive:
    """A fenced directive: its name, what follows the name, its options and its content."""

    name: str
    title: str
    options: dict[str, str]
    body: str


def directive(token: Token) -> Directive | None:
    """The directive that a fence is; ``None`` for plain code, or another block."""
    match = DIRECTIVE.fullmatch(token.info.strip()) if token.type.endswith("fence") else None
    if match is None:
        return None
    options, lines = {}, token.content.splitlines()
    while lines and (option := OPTION.fullmatch(lines[0].strip())):
        options[option[1]] = option[2]
        del lines[0]
    return Directive(match[1], match[2], options, "\n".join(lines))


def blocks(text: str) -> list[Token]:
    """The tokens of a text, in order; ``map`` gives the lines of each."""
    return PARSER.parse(text)


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a text and of all directives in it, in order; ``map`` is of no use here."""
    for token in blocks(text):
        yield token
        inner = directive(token)
        if inner and not inner.name.startswith(VERBATIM):
            yield from tokens(inner.body)


def directives(text: str) -> list[Directive]:
    """Every directive of a text, in order."""
    return [each for token in tokens(text) if (each := directive(token))]


def labels(text: str) -> list[tuple[str, str]]:
    """The labels that a text defines, each with what carries it.

    That is a directive's name, ``math`` for an equation between dollars, or ``target``.
    """
    result = []
    for token in tokens(text):
        if token.type == "math_block_label":
            result.append((token.info, "math"))
        elif token.type == "myst_target":
            result.append((token.content, "target"))
        elif inner := directive(token):
            names = (inner.options.get(key) for key in ("label", "name"))
            result += [(name, inner.name) for name in names if name]
    return result


def headings(text: str) -> list[tuple[int, str]]:
    """The level and the text of each heading, in order."""
    every = blocks(text)
    return [
        (int(token.tag[1:]), every[place + 1].content)
        for place, token in enumerate(every)
        if token.type == "heading_open"
    ]


def formulas(text: str) -> list[str]:
    """The TeX of every formula, those of directives' titles too."""
    result = []
    for token in tokens(text):
        if inner := directive(token):
            result += [inner.body] if inner.name == "math" else formulas(inner.title)
        result += [
            each.content
            for each in (token, *(token.children or ()))
            if each.type.startswith("math_") or each.type == "amsmath"
        ]
    return result
