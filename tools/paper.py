"""Make a PDF and an EPUB of the built book, with the installed Chromium.

Both are made from the pages in ``_build/html``, with their numbers, labels and pictures, so nothing
is executed or numbered a second time. ``paper.js`` gathers the pages in one tab of Chromium,
without what only a screen can use. A figure to play with shows its first frame.

- **PDF**: MathJax sets the formulas as on the site, Chromium prints with the style sheet that a
  single printed page has too (``course.css``) and that of a whole book (``paper.css``). It prints
  twice or more: at first to learn on which page each chapter begins.
- **EPUB** 3: formulas are MathML, written by the same MathJax, with their TeX as alternative text.
  The same bytes come out of the same pages.
"""

import base64
import re
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

import pikepdf
import yaml
from playwright.sync_api import Page, sync_playwright

from tools import ask, start
from tools.book import server
from tools.downloads import write_archive

HERE = Path(__file__).resolve().parent
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
MINUTES = 10  # that one step may take on a slow machine
PRINTS = 5  # at most: inserting page numbers into the contents may move the pages
WIDTH = (210 - 2 * 24) / 25.4 * 96  # of the text on paper, in CSS pixels (paper.css)
SCRIPTS = {  # what each font file of tools/fonts has
    "latin": "U+0000-00FF, U+0131, U+0152-0153, U+02C6, U+02DA, U+02DC, U+2000-206F, U+2212",
    "latin-ext": "U+0100-0130, U+0132-0151, U+0154-02C5",
    "greek": "U+0370-03FF",
}
WORDS = {
    "about": "About this book",
    "contents": "Contents",
    "figure": "On the site, this figure can be played with. Here is its first frame.",
}


# --- what is in the book


def book_pages(root: Path) -> list[dict]:
    """The pages in reading order; of the reference to `lib`, only the first page.

    Returns:
        For each page its ``name`` (its address on the site without ``.html``), the ``part`` of the
        contents it belongs to, and whether its ``sections`` are listed.
    """
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    pages = [{"name": toc["root"], "part": "", "sections": False}]
    for part in toc.get("parts", [{"caption": "", "chapters": toc.get("chapters", [])}]):
        for entry in part["chapters"]:
            name = re.sub(r"\.(md|ipynb)$", "", entry["file"])
            chapter = re.match(r"book/\d\d-", name) is not None
            pages.append({"name": name, "part": part["caption"], "sections": chapter})
    return pages


def described(root: Path) -> dict:
    """What Chromium has to know about the book."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    citation = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    title, site = config["title"], config["html"]["baseurl"]
    start = (root / "book" / "index.md").read_text(encoding="utf-8")
    about = re.search(r"\*\*(.+?)\*\*", start, re.DOTALL)
    subtitle = " ".join(about[1].split()) if about else ""
    where = f'<p>The site: <a href="{escape(site)}">{escape(site)}</a></p>' if site else ""
    front = (
        f"<h1>{escape(title)}</h1><p>{escape(subtitle)}</p>"
        f'<div class="small"><p>Version {escape(str(citation["version"]))}</p>{where}'
        f"<p>© {escape(config['copyright'])}</p></div>"
    )
    return {
        "title": title,
        "subtitle": subtitle,
        "version": str(citation["version"]),
        "rights": config["copyright"],
        "site": site,
        "front": front,
        "words": WORDS,
        "pages": book_pages(root),
    }


@contextmanager
def tab(root: Path, page: str) -> Iterator[Page]:
    """A tab of Chromium on one page of the built site, with the functions of ``paper.js``."""
    try:
        program = ask.chromium()
    except start.Problem as problem:
        sys.exit(f"[take-away] {problem}")
    with server(root / "_build" / "html", 8900) as httpd, sync_playwright() as playwright:
        thread = threading.Thread(target=httpd.serve_forever, daemon=True)
        thread.start()
        try:
            browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
            view = {"width": 1000, "height": 1400}
            opened = browser.new_page(color_scheme="light", viewport=view)
            opened.set_default_timeout(MINUTES * 60_000)
            opened.goto(f"http://127.0.0.1:{httpd.server_address[1]}/{page}.html")
            opened.wait_for_function("window.MathJax?.startup?.promise !== undefined")
            opened.evaluate("MathJax.startup.promise.then(() => 0)")
            opened.add_script_tag(path=HERE / "paper.js")
            yield opened
            browser.close()
        finally:
            httpd.shutdown()
            thread.join()


def with_formulas(pages: list[dict]) -> str:
    """A page that loads MathJax."""
    return next(page["name"] for page in pages if page["sections"])


# --- PDF


def write_pdf(root: Path, path: Path) -> None:
    """Print the whole book.

    Raises:
        RuntimeError: if a formula fails, a link within the book leads nowhere, or the contents
            give a wrong page.
    """
    book = described(root)
    with tab(root, with_formulas(book["pages"])) as page, TemporaryDirectory() as scratch:
        page.emulate_media(media="print")
        page.add_style_tag(content=fonts() + (HERE / "paper.css").read_text(encoding="utf-8"))
        made = page.evaluate("book => assemble(book)", book)
        if made["failed"] or made["bare"] or made["broken"]:
            raise RuntimeError(
                f"formulas {made['failed']}, not typeset {made['bare']}, links {made['broken']}"
            )
        page.evaluate("width => fit(width)", WIDTH)
        draft = Path(scratch) / "draft.pdf"
        targets = [entry["id"] for entry in made["contents"]]
        seen = []  # where the chapters began, print by print
        for _ in range(PRINTS):
            # Chromium may alternate between two ways to break pages: compare with the print before
            numbers = seen[-2:][0] if seen else {}
            page.evaluate("pages => number(pages)", numbers)
            print_to(page, draft)
            seen.append(starts(draft, targets))
            if seen[-1] == numbers:
                break
        else:
            moved = [name for name in numbers if numbers[name] != seen[-1][name]]
            raise RuntimeError(f"each print moves the beginning of {moved}")
        finish(draft, path, book, made["contents"])


def print_to(page: Page, path: Path) -> None:
    page.pdf(path=path, prefer_css_page_size=True, print_background=True, tagged=True)


def fonts() -> str:
    """The faces of the text, as a style sheet that needs no other file."""
    faces = []
    for path in sorted((HERE / "fonts").glob("*.woff2")):
        _, script, weight, style = path.stem.rsplit("-", 3)
        script = "latin-ext" if script == "ext" else script
        data = base64.b64encode(path.read_bytes()).decode()
        faces.append(
            f'@font-face {{ font-family: "Source Serif 4"; font-weight: {weight}; '
            f'font-style: {style}; src: url("data:font/woff2;base64,{data}"); '
            f"unicode-range: {SCRIPTS[script]}; }}\n"
        )
    return "".join(faces)


def places(pdf: pikepdf.Pdf) -> dict[str, int]:
    """The page number of each named destination, counted from 1."""
    numbers = {page.objgen: number for number, page in enumerate(pdf.pages, 1)}
    named = pdf.Root.Names.Dests if "/Names" in pdf.Root else pdf.Root.Dests
    entries = pikepdf.NameTree(named).items() if "/Names" in pdf.Root else named.items()
    pages = {}
    for name, target in entries:
        target = target.D if isinstance(target, pikepdf.Dictionary) else target
        pages[name.removeprefix("/")] = numbers[target[0].objgen]
    return pages


def starts(path: Path, targets: list[str]) -> dict[str, int]:
    """The page number of each target of the contents."""
    with pikepdf.open(path) as pdf:
        pages = places(pdf)
    if missing := set(targets) - pages.keys():
        raise RuntimeError(f"the printed book has no place named {sorted(missing)}")
    return {target: pages[target] for target in targets}


def finish(draft: Path, path: Path, book: dict, contents: list[dict]) -> None:
    """Add title and bookmarks to the file, and compress it.

    Chromium would make a bookmark of every heading, most of them with doubled text.
    """
    with pikepdf.open(draft) as pdf:
        numbers = places(pdf)
        with pdf.open_outline() as outline:
            for entry in contents:
                mark = pikepdf.OutlineItem(entry["title"], numbers[entry["id"]] - 1)
                mark.is_closed = True
                (outline.root[-1].children if entry["level"] else outline.root).append(mark)
        pdf.docinfo["/Title"] = book["title"]
        pdf.docinfo["/Subject"] = book["subtitle"]
        pdf.Root.ViewerPreferences = pikepdf.Dictionary(DisplayDocTitle=True)
        pdf.save(path, object_stream_mode=pikepdf.ObjectStreamMode.generate)


# --- EPUB

CONTAINER = """<?xml version="1.0" encoding="UTF-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles>
<rootfile full-path="EPUB/book.opf" media-type="application/oebps-package+xml"/>
</rootfiles>
</container>
"""
LEAF = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" lang="en" \
xml:lang="en">
<head><title>{title}</title><link rel="stylesheet" type="text/css" href="book.css"/></head>
<body>{body}</body>
</html>
"""
PACKAGE = """<?xml version="1.0" encoding="UTF-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id" xml:lang="en">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:identifier id="id">urn:uuid:{identifier}</dc:identifier>
<dc:title>{title}</dc:title>
<dc:description>{subtitle}</dc:description>
<dc:language>en</dc:language>
<dc:rights>{rights}</dc:rights>
<meta property="dcterms:modified">1980-01-01T00:00:00Z</meta>
</metadata>
<manifest>
{manifest}
</manifest>
<spine>
{spine}
</spine>
</package>
"""
TYPES = {
    ".css": "text/css",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".xhtml": "application/xhtml+xml",
}


def write_epub(root: Path, path: Path) -> None:
    """Write the whole book for e-readers.

    Raises:
        RuntimeError: if a formula could not be written as MathML.
    """
    book = described(root)
    with tab(root, with_formulas(book["pages"])) as page:
        made = page.evaluate("book => leaves(book)", book)
    failed = [
        f"{leaf['name']}: {leaf['failed'] or leaf['wanted']} ({leaf['formulas']} formulas)"
        for leaf in made["leaves"]
        if leaf["failed"] or leaf["formulas"] != leaf["wanted"]
    ]
    if failed:
        raise RuntimeError(f"no MathML for {failed}")
    site = root / "_build" / "html"
    contents = {"mimetype": b"application/epub+zip", "META-INF/container.xml": CONTAINER.encode()}
    inside = {
        "book.css": (HERE / "epub.css").read_bytes(),
        "title.xhtml": LEAF.format(title=escape(book["title"]), body=book["front"]).encode(),
        "nav.xhtml": navigation(made["leaves"]).encode(),
    }
    for leaf in made["leaves"]:
        inside[leaf["file"]] = LEAF.format(title=escape(leaf["title"]), body=leaf["xhtml"]).encode()
    for name in sorted(made["images"]):
        image = (site / name.lstrip("/")).read_bytes()
        if name.endswith(".svg"):
            image = plain(image)
        inside[f"images/{Path(name).name}"] = image
    properties = {"nav.xhtml": "nav"}
    for leaf in made["leaves"]:
        kinds = {"mathml": leaf["formulas"], "svg": leaf["drawings"]}
        properties[leaf["file"]] = " ".join(kind for kind, count in kinds.items() if count)
    package = PACKAGE.format(
        identifier=uuid.uuid5(uuid.NAMESPACE_URL, f"{book['title']} {book['version']}"),
        title=escape(book["title"]),
        subtitle=escape(book["subtitle"]),
        rights=escape(book["rights"]),
        manifest="\n".join(item(name, properties.get(name, "")) for name in inside),
        spine="\n".join(f'<itemref idref="{identifier(name)}"/>' for name in spine(inside)),
    )
    contents["EPUB/book.opf"] = package.encode()
    contents |= {f"EPUB/{name}": content for name, content in inside.items()}
    write_archive(path, contents, stored=("mimetype",))


def plain(drawing: bytes) -> bytes:
    """A drawing by matplotlib as EPUB requires it: without a document type, which refers to other
    files, and with a ``d`` in every path, an empty one included.
    """
    drawing = re.sub(rb"<!DOCTYPE[^>]*>\s*", b"", drawing)
    return re.sub(rb"<path(?![^>]*\sd=)", b'<path d=""', drawing)


def spine(names) -> list[str]:
    """The order of reading."""
    return [name for name in names if name.endswith(".xhtml")]


def identifier(name: str) -> str:
    """A valid XML identifier."""
    return "f-" + re.sub(r"[^\w-]", "-", name)


def item(name: str, properties: str) -> str:
    """A line of the manifest."""
    more = f' properties="{properties}"' if properties else ""
    kind = TYPES[Path(name).suffix]
    return f'<item id="{identifier(name)}" href="{name}" media-type="{kind}"{more}/>'


def navigation(leaves: list[dict]) -> str:
    """The table of contents, which e-readers also show in a menu."""
    lines = []
    for leaf in leaves:
        below = "".join(
            f'<li><a href="{leaf["file"]}#{escape(each["id"])}">{escape(each["text"])}</a></li>'
            for each in leaf["headings"]
        )
        below = f"<ol>{below}</ol>" if below else ""
        lines.append(f'<li><a href="{leaf["file"]}">{escape(leaf["title"])}</a>{below}</li>')
    body = (
        f'<nav epub:type="toc" id="toc"><h1>{escape(WORDS["contents"])}</h1>'
        f"<ol>{''.join(lines)}</ol></nav>"
    )
    return LEAF.format(title=escape(WORDS["contents"]), body=body)
