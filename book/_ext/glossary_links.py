"""Links from a chapter to the glossary: each term once, where the running text first uses it.

A link carries the first sentence of its entry as its title. Without scripts a browser shows that
when the mouse rests on the link; ``_static/course.js`` shows it on the keyboard's focus too, with
its formulas typeset.

Not every term is linked. Everyday words, which chapters also use in other senses, would link to
the wrong entry as often as not: see `EVERYDAY`.
"""

import hashlib
import re
from functools import cache

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

GLOSSARY = "book/glossary"
CHAPTERS = re.compile(r"book/(\d\d-|capstone)")
# A weight may be a parameter, a pair two of anything, a head the beginning of a list.
EVERYDAY = frozenset(
    "bucket check claim context decode frequency head key layout mask pair perturbation position "
    "query score slope value weight".split()
)
# Names that contain a term but mean something else.
OTHERWISE = re.compile(r"position(?:al)? (?:embedding|encoder)s?", re.IGNORECASE)
# Nodes that are not running text, or are links or code already.
CLOSED = (
    nodes.title,
    nodes.reference,
    nodes.literal,
    nodes.literal_block,
    nodes.math,
    nodes.math_block,
    nodes.raw,
    nodes.caption,
    nodes.strong,
    nodes.table,
    nodes.citation,
    addnodes.pending_xref,
)


def terms(glossary: nodes.document) -> dict[str, tuple[str, str]]:
    """Every term that is linked, with its anchor and the first sentence of its entry."""
    linked = {}
    for item in glossary.findall(nodes.definition_list_item):
        term = item.next_node(nodes.term)
        name = term.next_node(nodes.Text).astext()
        if name not in EVERYDAY:
            linked[name] = (term["ids"][0], sentence(item.next_node(nodes.definition)))
    return linked


def sentence(definition: nodes.definition) -> str:
    """The first sentence of a definition, with formulas in MathJax's delimiters."""
    parts = []
    for node in definition.next_node(nodes.paragraph).children:
        if isinstance(node, nodes.math):
            parts.append(rf"\({node.astext()}\)")
        elif not isinstance(node, nodes.reference | addnodes.pending_xref):
            parts.append(node.astext())
    return re.split(r"(?<=[.])\s", " ".join("".join(parts).split()), maxsplit=1)[0]


@cache
def pattern(name: str) -> re.Pattern:
    """A term in running text: one or many, with a hyphen or without, also at a sentence's start."""
    *first, last = (re.escape(word) for word in re.split(r"[\s-]", name))
    last = rf"(?:{last[:-1]}ies|{last})" if last.endswith("y") else rf"{last}s?"
    flags = re.IGNORECASE if name == name.lower() else 0
    words = r"[\s-]+".join([*first, last])
    return re.compile(rf"(?<![\w-]){words}(?![\w-])", flags)


class LinkTerms(SphinxPostTransform):
    """Link the first use of each term in a chapter."""

    default_priority = 20  # after references are resolved: no link inside a link
    builders = ("html",)

    def run(self, **options) -> None:
        if not CHAPTERS.match(self.env.docname) or GLOSSARY not in self.env.all_docs:
            return
        left = terms(self.env.get_doctree(GLOSSARY))
        for text in list(self.document.findall(nodes.Text)):
            if not closed(text):
                text.parent.replace(text, self.linked(text.astext(), left))

    def linked(self, text: str, left: dict[str, tuple[str, str]]) -> list[nodes.Node]:
        """The text with links; linked terms are removed from those that are left."""
        open_to_links = OTHERWISE.sub(lambda other: "_" * len(other[0]), text)
        matches = {name: match for name in left if (match := pattern(name).search(open_to_links))}
        if not matches:
            return [nodes.Text(text)]
        # The first; of two that begin together, the longer: "causal mask" and not "mask".
        name = min(matches, key=lambda each: (matches[each].start(), -len(each)))
        start, end = matches[name].span()
        anchor, title = left.pop(name)
        words, docname = nodes.Text(text[start:end]), self.env.docname
        link = make_refnode(self.app.builder, docname, GLOSSARY, anchor, words, title)
        link["classes"].append("term")
        return [nodes.Text(text[:start]), link, *self.linked(text[end:], left)]


def closed(text: nodes.Text) -> bool:
    node = text.parent
    while node is not None:
        if isinstance(node, CLOSED) or node.get("nb_element") == "cell_code":
            return True
        node = node.parent
    return False


def rewritten(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """The chapters, when the glossary changed: their links and titles come from it."""
    if GLOSSARY not in env.all_docs:
        return []
    now = hashlib.sha256(repr(terms(env.get_doctree(GLOSSARY))).encode()).hexdigest()
    before, env.glossary_digest = getattr(env, "glossary_digest", None), now
    return [] if before == now else [name for name in env.all_docs if CHAPTERS.match(name)]


def setup(app: Sphinx) -> dict:
    app.add_post_transform(LinkTerms)
    app.connect("env-updated", rewritten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
