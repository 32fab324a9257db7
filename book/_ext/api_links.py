"""Links between the library's reference pages and the chapters, both ways.

- In a docstring, a label such as ``eq-attention`` becomes a link to that equation or theorem, and
  "chapter 05" a link to the chapter.
- On a page of the book, the name of a public function or class of `lib` becomes a link to its
  reference, wherever it is set as code: ``apply_rope``, ``lib.rope.apply_rope``. A plain word such
  as ``targets`` may be a variable too; it is linked on pages that import it, or as ``targets()``.
"""

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

# the number of an equation has parentheses of its own
LABEL = re.compile(r"\(``(eq-[a-z0-9-]+)``\)|``((?:eq|thm|prp|lem|cor)-[a-z0-9-]+)``")
CHAPTER = re.compile(r"\b(chapters?) (\d\d)((?:(?:,| and| to) \d\d)*)")
IMPORT = re.compile(r"^from lib\S* import (\([^)]*\)|.*)", re.MULTILINE)
PLAIN_WORD = re.compile(r"[a-z]+")


def with_links(app: Sphinx, what, name, obj, options, lines: list[str]) -> None:
    """Turn labels and chapter numbers of a docstring into references."""
    pages = {doc[5:7]: f"/{doc}" for doc in app.env.found_docs if re.match(r"book/\d\d-", doc)}

    def label(match: re.Match) -> str:
        name = match[1] or match[2]
        return f":{'eq' if name.startswith('eq-') else 'prf:ref'}:`{name}`"

    def number(match: re.Match) -> str:
        page = pages.get(match[0])
        return f":doc:`{match[0]} <{page}>`" if page else match[0]

    def chapter(match: re.Match) -> str:
        return f"{match[1]} " + re.sub(r"\d\d", number, match[2] + match[3])

    for place, line in enumerate(lines):
        lines[place] = CHAPTER.sub(chapter, LABEL.sub(label, line))


class LinkNames(SphinxPostTransform):
    """Link names of the library, written as code, to its reference."""

    default_priority = 5

    def run(self, **options) -> None:
        if self.env.docname.startswith("book/api"):
            return
        known = names(self.env.get_domain("py").objects)
        imports = imported(self.document)
        for literal in list(self.document.findall(nodes.literal)):
            written = literal.astext()
            target = known.get(written.removesuffix("()"))
            if target is None or isinstance(
                literal.parent, nodes.reference | addnodes.pending_xref
            ):
                continue
            if PLAIN_WORD.fullmatch(written) and written not in imports:
                continue
            name, entry = target
            link = make_refnode(
                self.app.builder, self.env.docname, entry.docname, entry.node_id, [], name
            )
            literal.replace_self(link)
            link += literal


def imported(document: nodes.document) -> set[str]:
    """The names that the page's code imports from `lib`."""
    code = "\n".join(block.astext() for block in document.findall(nodes.literal_block))
    return set(re.findall(r"\w+", " ".join(IMPORT.findall(code))))


def names(objects: dict) -> dict:
    """The names to link, with their objects; short names that are ambiguous are left out."""
    full = {name: (name, entry) for name, entry in objects.items() if name.startswith("lib.")}
    short = {}
    for name, entry in objects.items():
        if entry.objtype in ("function", "class", "exception") and name.count(".") == 2:
            short.setdefault(name.rsplit(".", 1)[1], []).append((name, entry))
    return full | {name: targets[0] for name, targets in short.items() if len(targets) == 1}


def without_fields(app: Sphinx, what, name, obj, skip: bool, options) -> bool | None:
    """Leave out a named tuple's "Alias for field number 0": its docstring lists the fields."""
    return True if type(obj).__name__ == "_tuplegetter" else None


def setup(app: Sphinx) -> dict:
    app.connect("autodoc-process-docstring", with_links, priority=100)  # before napoleon
    app.connect("autodoc-skip-member", without_fields)
    app.add_post_transform(LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
