"""What the built site offers to take away, and the book on paper and in an e-reader."""

import json
import re
import shutil
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pikepdf
import pypdf
import pytest
from bs4 import BeautifulSoup

from tests.browser.conftest import AXE, ROOT, host, listed_pages, missing, quick_view
from tests.course.test_site import BINDER, COLAB, give_addresses, small_site
from tools import book, downloads, leaks, paper

CHAPTERS = [name for name in listed_pages() if name.split("/")[-1][:2].isdigit()]
NOTEBOOKS = [*CHAPTERS, "book/misconceptions", "book/capstone", "book/capstone-2"]
HIDDEN = ("BEGIN SOLUTION", "BEGIN HIDDEN TESTS")
OPF = "{http://www.idpf.org/2007/opf}"
XHTML = "{http://www.w3.org/1999/xhtml}"
LONG_CODE = "book/13-language-model"  # a chapter with figures to move, too
MARGIN = 24 / 25.4 * 72  # of a printed page, left and right (paper.css)
MATH = "{http://www.w3.org/1998/Math/MathML}math"


def soup(html: Path, name: str) -> BeautifulSoup:
    return BeautifulSoup((html / f"{name}.html").read_text(encoding="utf-8"), "lxml")


def target(html: Path, name: str, link) -> Path:
    return (html / name).parent.joinpath(unquote(link["href"])).resolve()


# --- from each page


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_offers_its_notebook_its_exercise_and_the_wheel(name, html):
    page, slug = soup(html, name), name.split("/")[-1]
    links = {
        kind: target(html, name, link)
        for kind in ("source", "exercise", "wheel")
        for link in page.select(f".dropdown-download-buttons a.btn-download-{kind}-button")
    }
    assert links["source"].read_bytes() == (ROOT / f"{name}.ipynb").read_bytes()
    assert links["wheel"].name == downloads.wheel_name(ROOT)
    assert zipfile.ZipFile(links["wheel"]).testzip() is None
    released = downloads.released(ROOT)
    assert ("exercise" in links) == (slug in released)
    if slug in released:
        assert links["exercise"].read_bytes() == released[slug]
        in_text = page.find("a", string=f"exercises/{slug}/{slug}.ipynb")
        assert target(html, name, in_text) == links["exercise"]


# --- from the first page


def test_the_first_page_offers_all_exercises(html):
    page = soup(html, "book/index")
    (link,) = page.select(f'.take-away a[href$="{downloads.ZIP}"]')
    with zipfile.ZipFile(target(html, "book/index", link)) as archive:
        names = [name for name in archive.namelist() if name.endswith(".ipynb")]
    slugs = downloads.released(ROOT)
    assert names == [f"{Path(downloads.ZIP).stem}/{slug}/{slug}.ipynb" for slug in slugs]
    assert f"All {len(slugs)} exercises" in link.text


# --- Binder and Colab


@pytest.mark.long
def test_the_buttons_of_a_published_site(tmp_path, browser):
    """With a repository set: the addresses, what axe says of the open menus, and no request."""
    command = small_site(tmp_path)
    give_addresses(tmp_path)
    subprocess.run(command, cwd=ROOT, check=True)
    with book.server(tmp_path / "_build" / "html", 8750) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, daemon=True)
        thread.start()
        base = f"http://127.0.0.1:{httpd.server_address[1]}"
        page, asked = browser.new_page(), []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{base}/book/01-one.html", wait_until="networkidle")
        for menu in ("launch", "download"):
            page.locator(f".dropdown-{menu}-buttons > button").click()
            page.locator(f".dropdown-{menu}-buttons .dropdown-menu.show").wait_for()
            page.evaluate(AXE.read_text(encoding="utf-8"))
            violations = page.evaluate(
                "axe.run().then(result => JSON.stringify(result.violations))"
            )
            assert json.loads(violations) == [], menu
        buttons = page.locator(".dropdown-launch-buttons a")
        links = {link.inner_text().strip(): link.get_attribute("href") for link in buttons.all()}
        page.close()
        httpd.shutdown()
        thread.join()
    assert links == {"Binder": BINDER.format(name="01-one"), "Colab": COLAB.format(name="01-one")}
    assert {host(url) for url in asked if urlsplit(url).scheme == "http"} == {host(base)}
    assert not [url for url in asked if urlsplit(url).scheme == "https"]


# --- on paper


def test_a_printed_page_is_the_text_alone(visit):
    """The style of print, on a dark page: nothing of the screen is left, and it is light."""
    page = visit(LONG_CODE, *quick_view(LONG_CODE)).look("laptop", "dark")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    try:
        seen = page.evaluate(
            """() => {
                const shown = (what) => [...document.querySelectorAll(what)]
                    .filter(node => node.checkVisibility())
                    .map(node => node.outerHTML.slice(0, 80));
                const long = [...document.querySelectorAll('article pre.long')]
                    .filter(code => code.checkVisibility());
                const article = document.querySelector('article.bd-article');
                return {
                    screen: shown('.bd-sidebar-primary, .bd-sidebar-secondary, footer, ' +
                        '.bd-header-article, .headerlink, .copybtn, .slider-figure input, ' +
                        '#jb-print-docs-body'),
                    pictures: shown('.slider-figure svg').length,
                    title: shown('article h1').length,
                    whole: [...article.querySelectorAll('.cell_input')].filter(cell =>
                        getComputedStyle(cell.querySelector('pre')).breakInside === 'avoid').length,
                    torn: long.filter(code => {
                        for (let node = code; node !== article; node = node.parentElement) {
                            const style = getComputedStyle(node);
                            if (style.breakInside !== 'auto') return false;
                            if (style.display === 'flex') return false;
                        }
                        return true;
                    }).length,
                    long: long.length,
                    share: article.getBoundingClientRect().width / innerWidth,
                    theme: document.documentElement.dataset.theme,
                };
            }"""
        )
    finally:
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        page.emulate_media(media="screen")
    assert seen["screen"] == []
    assert seen["pictures"] >= 2
    assert seen["title"] == 1
    assert seen["whole"] > 5  # short code stays on one sheet
    assert seen["torn"] == seen["long"] > 0  # and long code need not
    assert seen["share"] > 0.95
    assert seen["theme"] == "light"
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.fixture(scope="session")
def made(html):
    """The folder of what is taken away, after ``make pdf epub``."""
    command = [sys.executable, "-m", "tools.take_away", "pdf", "epub"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return ROOT / downloads.FOLDER


@pytest.fixture(scope="session")
def pdf(made):
    return made / downloads.PDF


@pytest.fixture(scope="session")
def sheets(pdf) -> list[str]:
    """The words of each page, in the order in which they are drawn."""
    if not shutil.which("pdftotext"):
        missing("pdftotext is missing (Debian, Ubuntu: apt-get install poppler-utils)")
    command = ["pdftotext", "-raw", str(pdf), "-"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [" ".join(sheet.split()) for sheet in text.removesuffix("\f").split("\f")]


@pytest.fixture(scope="session")
def epub(made):
    return made / downloads.EPUB


@pytest.mark.long
def test_the_first_page_offers_the_book_once_it_was_made(made, html):
    links = soup(html, "book/index").select(".take-away a")
    targets = {target(html, "book/index", link) for link in links}
    assert {path.name for path in targets} == {downloads.ZIP, downloads.PDF, downloads.EPUB}
    assert all(path.read_bytes() == (made / path.name).read_bytes() for path in targets)


@pytest.mark.long
def test_neither_holds_a_hidden_test_or_a_solution(made, monkeypatch):
    if not shutil.which("pdftotext"):
        missing("pdftotext is missing (Debian, Ubuntu: apt-get install poppler-utils)")
    assert leaks.search(made) == []
    # The search opens both: of the book's own code it finds a line.
    cells = nbformat.read(ROOT / "book" / "01-attention.ipynb", as_version=4).cells
    (shown,) = (cell.source for cell in cells if cell.id == "sentence")
    line = shown.splitlines()[0]
    monkeypatch.setattr(leaks, "secrets", lambda: ({line: "book"}, {}))
    places = {leak.place.split("!")[0] for leak in leaks.search(made)}
    assert {downloads.PDF, downloads.EPUB} <= places


def titles(html) -> list[str]:
    """The first headings of the book's pages, as the site has them."""
    result = []
    for page in paper.book_pages(ROOT)[1:]:
        heading = soup(html, page["name"]).select_one("article.bd-article h1")
        for link in heading.select(".headerlink"):
            link.decompose()
        result.append(" ".join(heading.text.split()))
    return result


@pytest.mark.long
def test_the_pdf_has_every_chapter_where_its_contents_say(pdf, sheets, html):
    reader, texts = pypdf.PdfReader(pdf), sheets
    assert len(texts) == len(reader.pages)
    assert reader.metadata.title == paper.described(ROOT)["title"]
    outline = {
        " ".join(entry.title.split()): reader.get_destination_page_number(entry)
        for entry in reader.outline
        if not isinstance(entry, list)
    }
    contents = " ".join(texts[1 : min(outline.values())])
    for title in titles(html):
        number = outline[title]
        head = f"{title} {number + 1} {title}"  # above the text, at the foot, and the heading
        assert texts[number].startswith(head), texts[number][:100]
        assert f"{title} {number + 1}" in contents, title
    # The page for instructors speaks of the marks; every page begins with its chapter's title.
    others = [text for text in texts if not text.startswith("For instructors")]
    assert len(texts) - 20 < len(others) < len(texts)
    assert not any(mark in text for mark in HIDDEN for text in others)
    assert len(texts) > 100
    sections = [entry for entry in reader.outline if isinstance(entry, list)]
    assert len(sections) == len(CHAPTERS)
    for entry in (entry for part in sections for entry in part):
        number = reader.get_destination_page_number(entry)
        beginning = " ".join(entry.title.split()[:3])  # a formula comes later, if there is one
        assert beginning in texts[number], entry.title
        assert beginning in contents, entry.title
        if entry.title.isascii() and "sqrt" not in entry.title and " d " not in entry.title:
            assert f"{entry.title} {number + 1} " in f"{contents} ", entry.title


@pytest.mark.long
def test_the_pdf_has_the_code_that_the_site_shows_and_leaves_the_rest_to_it(sheets):
    text = " ".join(sheets)
    shown, folded = set(), set()
    for path in sorted((ROOT / "book").glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            hidden = {"hide-cell", "hide-input"} & set(cell.metadata.get("tags", []))
            names = re.findall(r"^ *((?:def|class) \w+\()", cell.source, re.MULTILINE)
            # the lines that a question asks about are shown
            kept_back = (hidden or cell.metadata.get("checks")) and cell.id != "ask-yourself"
            (folded if kept_back else shown).update(names)
    assert len(folded - shown) > 100
    assert {name for name in folded - shown if name in text} == set()
    assert sum(name in text for name in shown) > 50


@pytest.mark.long
def test_the_pdf_is_tagged_and_its_links_stay_in_it_or_leave_openly(pdf):
    with pikepdf.open(pdf) as opened:
        assert bool(opened.Root.MarkInfo.Marked)
        within, out = [], []
        for page in opened.pages:
            for note in page.get("/Annots", []):
                if "/Dest" in note:
                    within.append(str(note.Dest).removeprefix("/"))
                elif "/A" in note and "/URI" in note.A:
                    out.append(str(note.A.URI))
        places = paper.places(opened)
    assert len(within) > 500
    assert set(within) <= set(places)
    assert len(set(places.values())) > 100
    assert [url for url in out if urlsplit(url).scheme not in ("http", "https")] == []
    assert [url for url in out if "127.0.0.1" in url] == []


@pytest.mark.long
def test_no_page_of_the_pdf_is_cut_at_its_edge_or_empty(pdf, tmp_path):
    """No word goes beyond the text's own width, where the printer cuts, and no page is blank."""
    if not shutil.which("pdftoppm"):
        missing("pdftoppm is missing (Debian, Ubuntu: apt-get install poppler-utils)")
    from PIL import Image, ImageChops

    command = ["pdftotext", "-bbox", str(pdf), "-"]
    words = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # with a letter or digit: the line over a formula is a dash, drawn wide and cut to length
    edges = re.findall(r'xMin="([-\d.]+)".* xMax="([-\d.]+)" yMax="[-\d.]+">(.*\w.*)<', words)
    assert len(edges) > 50_000
    left, right = MARGIN, 210 / 25.4 * 72 - MARGIN  # in points
    beyond = [edge for edge in edges if float(edge[0]) < left - 2 or float(edge[1]) > right + 2]
    assert beyond == []

    command = ["pdftoppm", "-r", "36", "-gray", "-png", str(pdf), str(tmp_path / "page")]
    subprocess.run(command, check=True)
    for path in sorted(tmp_path.glob("*.png")):
        with Image.open(path) as image:
            width, height = image.size
            ink = ImageChops.invert(image.convert("L"))
        assert ink.getbbox(), f"{path.name} is blank"
        left, top, right, bottom = ink.getbbox()
        assert 0.1 * width < left < right < 0.9 * width, path.name
        assert 0.03 * height < top < bottom < 0.97 * height, path.name
        # between the name of the chapter and the number of the page
        assert ink.crop((0, int(0.085 * height), width, int(0.92 * height))).getbbox(), path.name


# --- in an e-reader


@pytest.mark.long
def test_the_epub_holds_what_it_lists_and_every_link_in_it_leads_somewhere(epub):
    with zipfile.ZipFile(epub) as archive:
        first = archive.infolist()[0]
        contents = {name: archive.read(name) for name in archive.namelist()}
    assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
    package = ET.fromstring(contents["EPUB/book.opf"])
    items = {f"EPUB/{item.get('href')}": item for item in package.iter(f"{OPF}item")}
    others = {"mimetype", "META-INF/container.xml", "EPUB/book.opf"}
    assert set(items) == set(contents) - others
    order = [entry.get("idref") for entry in package.iter(f"{OPF}itemref")]
    trees = {name: ET.fromstring(text) for name, text in contents.items() if "xhtml" in name}
    assert sorted(order) == sorted(items[name].get("id") for name in trees)
    ids = {name: {node.get("id") for node in tree.iter()} for name, tree in trees.items()}
    for name, tree in trees.items():
        for node in tree.iter(f"{XHTML}a"):
            parts = urlsplit(node.get("href", ""))
            if not parts.scheme:
                leads = f"EPUB/{parts.path}" if parts.path else name
                assert leads in trees, (name, node.get("href"))
                assert not parts.fragment or unquote(parts.fragment) in ids[leads], node.get("href")
        for node in tree.iter(f"{XHTML}img"):
            assert f"EPUB/{node.get('src')}" in items
            assert len(node.get("alt").split()) >= 3
        assert not list(tree.iter(f"{XHTML}script"))
        assert not list(tree.iter(f"{XHTML}input"))
    assert not any(mark.encode() in text for mark in HIDDEN for text in contents.values())


@pytest.mark.long
def test_the_epub_has_every_formula_and_figure_of_the_site(epub, html):
    with zipfile.ZipFile(epub) as archive:
        for name in NOTEBOOKS:
            tree = ET.fromstring(archive.read(f"EPUB/{name.split('/')[-1]}.xhtml"))
            article = soup(html, name).find("article")
            formulas = list(tree.iter(MATH))
            assert len(formulas) == len(article.select(".math")), name
            assert all(formula.get("alttext") for formula in formulas), name
            drawings = [node for node in tree.iter() if node.tag.endswith("}svg")]
            assert len(drawings) == len(article.select("svg")), name
            assert len(list(tree.iter(f"{XHTML}img"))) == len(article.select("img")), name


@pytest.mark.long
def test_the_epubs_contents_and_letters_can_be_read(epub, html):
    """Headings with formulas in words; and each kind of letter as a character of its own."""
    with zipfile.ZipFile(epub) as archive:
        contents = ET.fromstring(archive.read("EPUB/nav.xhtml"))
        texts = [archive.read(name).decode() for name in archive.namelist() if "xhtml" in name]
    entries = [node.text for node in contents.iter(f"{XHTML}a")]
    assert [entry for entry in entries if entry != " ".join(entry.split())] == []
    assert "Why divide by sqrt d_k" in entries
    assert "Summary" not in entries  # of every chapter: says nothing
    assert {title.replace(" ", "") for title in titles(html)} <= {
        entry.replace(" ", "") for entry in entries
    }
    titles_of_links = [
        title for text in texts for title in re.findall(r'<a [^>]*title="([^"]*)', text)
    ]
    assert any(title.endswith(": x + F(x).") for title in titles_of_links)
    assert not [title for title in titles_of_links if "\\" in title]
    kinds = {kind for text in texts for kind in re.findall(r'mathvariant="([^"]*)"', text)}
    assert kinds == {"normal"}
    letters = "\U0001d53c\U0001d4a9\u2133\u2112\u2102\U0001d7cf"  # E, N, M, L, C and 1
    assert all(any(letter in text for text in texts) for letter in letters)


@pytest.mark.long
def test_epubcheck_finds_nothing(epub):
    jar = Path("/usr/share/java/epubcheck.jar")  # Debian's start script wants a program more
    if not (jar.is_file() and shutil.which("java")):
        missing("epubcheck is missing (Debian, Ubuntu: apt-get install epubcheck)")
    done = subprocess.run(["java", "-jar", str(jar), str(epub)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
    assert "0 fatals / 0 errors / 0 warnings" in done.stdout


@pytest.mark.long
def test_the_epub_is_the_same_whenever_it_is_made(epub, tmp_path):
    code = "import sys; from tools.paper import *; write_epub(Path(sys.argv[1]), Path(sys.argv[2]))"
    again = str(tmp_path / downloads.EPUB)
    subprocess.run([sys.executable, "-c", code, str(ROOT), again], cwd=ROOT, check=True)
    assert (tmp_path / downloads.EPUB).read_bytes() == epub.read_bytes()
