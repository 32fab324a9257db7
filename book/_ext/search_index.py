"""The search index: every section, term of the glossary and documented name, with its text.

Sphinx's own index records on which page a word occurs, but not where on the page. This extension
replaces it by ``search-index.js``: a list of entries, which ``_static/search.js`` ranks in the
reader's browser. It is a script, not data to fetch, so that the search works from a folder too.

An entry has a title, an anchor, a kind (chapter, glossary, page or reference) and its text, without
code and outputs. Formulas keep the names of TeX, because people search for ``sqrt d_k``.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urljoin

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.search.en import SearchEnglish

INDEX = "search-index.js"
OPENING = "const PAGES = "
BRACED = re.compile(r"\\(?:text|mathrm|mathbf|mathbb|mathcal|operatorname)\*?\s*\{([^{}]*)\}")
INDEXED = re.compile(r"([_^])\{([^{}]*)\}")
THOUSANDS = re.compile(r"(?<=\d)(?:\{,\}|\\,)(?=\d{3})")
FRACTION = re.compile(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}")
DRESSING = re.compile(  # commands that only arrange a formula or decorate a letter
    r"\\(?:left|right|q?quad|tilde|(?:wide)?hat|bar|vec|[bB]ig[glr]?)(?![a-zA-Z])"
    r"|\\(?:begin|end)\{\w+\*?\}|\\[,;:! \\]|[{}&$]"
)
SKIPPED = (
    nodes.Invisible,
    nodes.literal_block,
    nodes.raw,
    nodes.doctest_block,
    addnodes.index,
    addnodes.toctree,
    addnodes.desc_signature,
)


def kind(docname: str) -> str:
    """The kind of a page; the capstone counts as a chapter."""
    if re.match(r"book/(\d\d-|capstone)", docname):
        return "chapter"
    return "reference" if docname.startswith("book/api") else "page"


def plain(tex: str) -> str:
    """A formula in one line, without what only arranges it."""
    tex = FRACTION.sub(r"\1/\2", INDEXED.sub(r"\1\2", BRACED.sub(r"\1", THOUSANDS.sub("", tex))))
    return DRESSING.sub(" ", tex)


def words(node: nodes.Node) -> str:
    """The text of a node, without code, outputs, and parts with entries of their own."""
    if isinstance(node, nodes.Text):
        return str(node)
    if isinstance(node, nodes.math | nodes.math_block):
        return plain(node.astext())
    if isinstance(node, SKIPPED):
        return ""
    if isinstance(node, nodes.container) and node.get("nb_element") == "cell_code":
        return " ".join(map(words, node.findall(nodes.caption)))
    between = "" if isinstance(node, nodes.TextElement) else " "
    return between.join(words(each) for each in node.children if not has_entry(each))


def line(parts: Iterable[nodes.Node]) -> str:
    return " ".join(" ".join(map(words, parts)).split())


def has_entry(node: nodes.Node) -> bool:
    """Whether a node has an entry of its own. A theorem's text is a section too, but untitled."""
    if isinstance(node, nodes.section):
        return node.first_child_matching_class(nodes.title) is not None
    return isinstance(node, addnodes.desc | addnodes.glossary)


def entries(docname: str, doctree: nodes.document) -> list[list]:
    """Title, anchor, kind and text of everything on a page that can be found.

    A term of the glossary also has the names of the pages that its entry links to.
    """
    listed = []
    for node in doctree.findall(has_entry):
        if isinstance(node, nodes.section):
            title = node.next_node(nodes.title)
            rest = [each for each in node.children if each is not title and not has_entry(each)]
            anchor = "" if node.parent is doctree else node["ids"][0]
            listed.append([line([title]), anchor, kind(docname), line(rest)])
        elif isinstance(node, addnodes.desc):
            signature = node.next_node(addnodes.desc_signature)
            if signature["ids"]:
                text = line(node.children)
                listed.append([signature["fullname"], signature["ids"][0], "reference", text])
        else:
            for item in node.findall(nodes.definition_list_item):
                term = item.next_node(nodes.term)
                text, pages = definition(item.next_node(nodes.definition))
                pages = [urljoin(docname, page).removesuffix(".html") for page in pages]
                listed.append([line([term]), term["ids"][0], "glossary", text, pages])
    return listed


def definition(node: nodes.definition) -> tuple[str, list[str]]:
    """The definition of a term, and the addresses of the pages that it links to."""
    node = node.deepcopy()
    links = [each for each in node.findall(nodes.reference) if "#" not in each.get("refuri", "#")]
    for link in links:
        link.parent.remove(link)
    return line([node]).rstrip(" ,"), [link["refuri"] for link in links]


def collect(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Store the entries of a page that is being rewritten."""
    if isinstance(app.builder, StandaloneHTMLBuilder):
        app.search_entries[docname] = entries(docname, doctree)


def without_sphinx_search(app: Sphinx) -> None:
    """Turn off Sphinx's own index, which would be loaded with every page."""
    app.search_entries = {}
    app.builder.search = False


def search_page(app: Sphinx) -> Iterator[tuple[str, dict, str]]:
    """The page that shows results."""
    if app.builder.name == "html":
        yield "search", {"search_index": INDEX}, "search.html"


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the index. Pages that were not rewritten keep their entries."""
    if error is not None or app.builder.name != "html":
        return
    path = Path(app.outdir) / INDEX
    before = path.read_text("utf-8").partition("\n")[0] if path.is_file() else f"{OPENING}{{}};"
    known = json.loads(before.removeprefix(OPENING).removesuffix(";"))
    pages = {}
    for docname in sorted(app.env.all_docs):
        if docname in app.search_entries:
            number = app.env.toc_secnumbers.get(docname, {}).get("", ())
            title = line([app.env.titles[docname]])
            pages[docname] = [".".join(map(str, number)), title, app.search_entries[docname]]
        else:
            pages[docname] = known[docname]
    text = json.dumps(pages, ensure_ascii=False, separators=(",", ":"))
    path.write_text(f"{OPENING}{text};\n{SearchEnglish.js_stemmer_code}", encoding="utf-8")
    for name in ("searchtools.js", "language_data.js"):  # of the search that is turned off
        (Path(app.outdir) / "_static" / name).unlink(missing_ok=True)


def setup(app: Sphinx) -> dict:
    app.connect("builder-inited", without_sphinx_search)
    app.connect("doctree-resolved", collect, priority=900)
    app.connect("html-collect-pages", search_page)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
