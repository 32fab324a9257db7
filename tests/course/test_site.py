"""The site's configuration, contents and start pages, without building them."""

import ast
import importlib.util
import math
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup
from docutils import nodes
from docutils.utils import new_document
from jupyter_book.config import get_final_config
from pybtex import plugin
from sphinx_book_theme.header_buttons.launch import add_launch_buttons

from tests.course.claims import read
from tools import book

ROOT = book.ROOT
BOOK = ROOT / "book"
REPOSITORY = "https://github.com/example/course"
BINDER = "https://mybinder.org/v2/gh/example/course/main?urlpath=lab/tree/book/{name}.ipynb"
INSTALL = "python -m pip install demo-1.0-py3-none-any.whl"
COLAB = "https://colab.research.google.com/github/example/course/blob/main/book/{name}.ipynb"


def config() -> dict:
    return yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))


def listed() -> list[str]:
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    entries = [entry for part in toc["parts"] for entry in part["chapters"]]
    below = [page for entry in entries for page in entry.get("sections", [])]
    return [toc["root"], *(entry["file"] for entry in [*entries, *below])]


def source(name: str):
    return [path for path in (ROOT / f"{name}.md", ROOT / f"{name}.ipynb") if path.is_file()]


def course_map() -> dict[str, dict]:
    """The chapters in the first page's map."""
    index = (BOOK / "index.md").read_text(encoding="utf-8")
    return yaml.safe_load(re.search(r"```\{course-map\}\n(.*?)```", index, re.DOTALL)[1])


# --- contents


def test_the_contents_list_every_page_and_nothing_else():
    names = listed()
    assert len(set(names)) == len(names)
    assert {name: len(source(name)) for name in names} == dict.fromkeys(names, 1)
    folders = (BOOK, BOOK / "api", BOOK / "instructors")
    pages = {path for folder in folders for path in folder.iterdir()}
    pages = {path for path in pages if path.suffix in book.PAGES}
    assert pages == {source(name)[0] for name in names}


def test_the_map_shows_every_chapter_and_what_it_says_it_needs():
    chapters = course_map()
    names = [name.removeprefix("book/") for name in listed()]
    assert list(chapters) == [name for name in names if re.match(r"\d\d-", name)]
    for slug, chapter in chapters.items():
        text = read(BOOK / f"{slug}.ipynb").text
        needed = re.search(r"## Prerequisites and time(.*?)\n## ", text, re.DOTALL)[1]
        needed = re.sub(r"\d+(?: to \d+)? minutes", "", needed)
        named = {name for name in chapters if re.search(rf"\b{name[:2]}\b", needed)}
        shown = {*chapter.get("needs", []), *chapter.get("uses", [])}
        assert shown == named, (
            f"{slug} says it needs {sorted(named)}, the map shows {sorted(shown)}"
        )


def test_the_reference_lists_every_module_in_its_own_words():
    index = (BOOK / "api.md").read_text(encoding="utf-8")
    for path in sorted((ROOT / "lib").glob("[!_]*.py")):
        about = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        about = about.split("\n\n")[0].replace("\n", " ")
        assert f"| [`lib.{path.stem}`](api/{path.stem}.md) | {about} |" in index
        page = (BOOK / "api" / f"{path.stem}.md").read_text(encoding="utf-8")
        assert f".. automodule:: lib.{path.stem}\n" in page


def test_chapters_are_numbered_in_order_of_their_files():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    chapters = []
    for part in toc["parts"]:
        names = [entry["file"].removeprefix("book/") for entry in part["chapters"]]
        numbered = [name for name in names if re.match(r"\d\d-", name)]
        assert bool(part.get("numbered")) == bool(numbered), part["caption"]
        assert numbered in ([], names), f"{part['caption']} mixes chapters and other pages"
        chapters += numbered
    assert chapters == sorted(chapters)
    assert [int(name[:2]) for name in chapters] == list(range(1, len(chapters) + 1))


def test_code_that_runs_is_in_notebooks():
    """tools/book.py executes notebooks; a code cell in Markdown would run behind its back."""
    for path in BOOK.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        assert "{code-cell}" not in text, path.name
        assert "jupytext" not in text, path.name


def test_links_of_the_start_page_are_relative_and_lead_to_pages():
    text = (BOOK / "index.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert links
    for link in links:
        assert (BOOK / link).is_file(), link


@pytest.mark.parametrize(
    "page",
    [
        *("book/index.md", "book/for-readers.md", "book/for-learners.md"),
        *("book/for-instructors.md", "docs/hub.md", "README.md"),
        *("book/instructors/grading.md", "book/instructors/tests.md"),
        *("book/instructors/discussion.md", "book/how-it-is-graded.md"),
        "book/instructors/gradescope-and-github.md",
    ],
)
def test_a_page_for_people_names_real_commands_exercises_and_files(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = re.findall(r"(?:^|`)make (?:PYTHON=\S+ )?([a-z][\w-]*)", text, re.MULTILINE)
    assert targets
    known = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(targets) <= set(known)
    exercises = {path.name for path in (ROOT / "exercises").iterdir()}
    assert set(re.findall(r"EXERCISE=(\d\S*?)[`\s]", text)) <= exercises
    files = re.findall(r"`((?:deploy|docs|tests|grading|tools|book)/[\w./-]+)`", text)
    files = [name.replace("NN-slug", "05-rope") for name in files]
    assert [name for name in files if not (ROOT / name).exists()] == []


# --- notation


def test_each_row_of_the_notation_has_a_cell_per_column():
    """A bar in a formula ends its cell: the rest of the row would be lost."""
    columns = None
    for line in (BOOK / "notation.md").read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            columns = None
            continue
        cells = line.strip().removeprefix("|").removesuffix("|").split("|")
        columns = columns or len(cells)
        assert len(cells) == columns, line


def test_names_in_the_notation_are_names_in_the_library():
    library = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "lib").rglob("*.py"))
    words = set(re.findall(r"\b[A-Za-z_]\w*\b", library))
    rows, column = [], None
    for line in (BOOK / "notation.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            column = None
        elif "In code" in cells:
            column = cells.index("In code")
        elif column is not None:
            rows += re.findall(r"`(\w+)`", cells[column])
    assert len(rows) >= 10
    assert [name for name in rows if name not in words] == []


# --- third parties


def test_mathjax_comes_with_the_site():
    settings = config()["sphinx"]["config"]
    folder = BOOK / "_static" / "mathjax"
    assert (BOOK / "_static" / settings["mathjax_path"]).is_file()
    assert (folder / "LICENSE").is_file()
    script = (BOOK / "_static" / settings["mathjax_path"]).read_text(encoding="utf-8")
    assert 'VERSION="3.2.2"' in script
    fonts = {path.name for path in (folder / "output/chtml/fonts/woff-v2").glob("*.woff")}
    assert set(re.findall(r"MathJax_[A-Za-z0-9-]+\.woff", script)) <= fonts
    assert len(fonts) > 20


def test_the_site_names_no_repository_yet_and_links_to_nobody():
    assert config()["repository"]["url"] == ""
    assert config()["repository"]["branch"] == "main"
    assert config()["html"]["baseurl"] == ""


# --- launch buttons


def launch_addresses(name: str, url: str) -> dict[str, str]:
    """What the theme makes of our configuration for one chapter, once the repository is public."""
    settings = config()
    settings["repository"]["url"] = url
    final, _ = get_final_config(
        user_yaml=settings, cli_config={"latex_individualpages": False}, sourcedir=ROOT
    )
    app = SimpleNamespace(
        env=SimpleNamespace(
            doc2path=lambda page: str(ROOT / f"{page}.ipynb"),
            metadata={name: {"kernelspec": {"name": "python3"}}},
        ),
        config=final,
    )
    user, repository = url.removeprefix("https://github.com/").split("/")
    context = {"github_url": "https://github.com", "github_user": user, "github_repo": repository}
    context |= {"header_buttons": [], "pagename": name, "sourcename": f"{name}.ipynb"}
    add_launch_buttons(app, name, "page.html", context, None)
    groups = [button for button in context["header_buttons"] if button["label"] == "launch-buttons"]
    return {button["text"]: button["url"] for button in groups[0]["buttons"]}


@pytest.mark.parametrize("name", ["01-attention", "10-kv-cache"])
def test_launch_addresses(name):
    assert launch_addresses(f"book/{name}", REPOSITORY) == {
        "Binder": BINDER.format(name=name),
        "Colab": COLAB.format(name=name),
    }


def small_site(folder) -> list[str]:
    """Write a book of two pages with this site's settings; return the command that builds it."""
    for name in ("_config.yml", "requirements.lock"):
        shutil.copy(ROOT / name, folder)
    for name in ("_ext", "_templates", "_static"):
        shutil.copytree(BOOK / name, folder / "book" / name)
    (folder / "lib").mkdir()
    (folder / "book" / "references.bib").write_text("")
    (folder / "book" / "index.md").write_text("# Start\n\nWords of the start page.\n")
    (folder / "_toc.yml").write_text(
        "format: jb-book\nroot: book/index\nchapters:\n- file: book/01-one\n"
    )
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell(f"# One\n\nFirst: `{INSTALL}`", id="title")],
        metadata={"kernelspec": {"name": "python3", "display_name": "p", "language": "python"}},
    )
    nbformat.write(notebook, folder / "book" / "01-one.ipynb")
    return [sys.executable, "-m", "tools.book", "--root", str(folder)]


def give_addresses(folder) -> dict:
    """Set repository and address, as for a published site; return the settings."""
    settings = config()
    settings["repository"]["url"] = REPOSITORY
    settings["html"]["baseurl"] = "https://example.org/course/"
    (folder / "_config.yml").write_text(yaml.safe_dump(settings))
    return settings


@pytest.mark.long
def test_a_site_with_addresses_has_launch_buttons_and_a_sitemap(tmp_path):
    """Build for real, with a repository and an address set, and without."""
    command = small_site(tmp_path)
    page = tmp_path / "_build" / "html" / "book" / "01-one.html"

    subprocess.run(command, cwd=ROOT, check=True)
    text = page.read_text()
    assert "mybinder" not in text
    assert "colab" not in text.lower()
    assert BeautifulSoup(text, "html.parser").article.p.text == f"First: {INSTALL}"
    assert not (tmp_path / "_build" / "html" / "sitemap.xml").exists()

    settings = give_addresses(tmp_path)
    subprocess.run(command, cwd=ROOT, check=True)
    text = page.read_text()
    assert f'href="{BINDER.format(name="01-one")}"' in text
    assert f'href="{COLAB.format(name="01-one")}"' in text
    first = BeautifulSoup(text, "html.parser").article.p
    assert first.text.startswith(f"First: {INSTALL}. On Colab")
    wheel = "https://example.org/course/_downloads/demo-1.0-py3-none-any.whl"
    assert first.select("code")[-1].text == f"%pip install {wheel}"
    assert 'property="og:url" content="https://example.org/course/book/01-one.html"' in text
    assert f'property="og:site_name" content="{settings["title"]}"' in text
    sitemap = (tmp_path / "_build" / "html" / "sitemap.xml").read_text()
    assert "<loc>https://example.org/course/book/01-one.html</loc>" in sitemap


def extension(name: str):
    spec = importlib.util.spec_from_file_location(name, BOOK / "_ext" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_citation_does_not_search_the_installed_packages(monkeypatch):
    """Each of 300 citations did: a tenth of the time in which the pages are built."""
    extension("course_site").look_up_once()
    searched = []
    monkeypatch.setattr(plugin, "entry_points", lambda **what: searched.append(what) or [])
    for name in ("docutils", "plaintext"):
        plugin.find_plugin("pybtex.backends", name)
    assert searched == []


def linked(code: str, *written: str) -> list[str]:
    """Which of these words, set as code on a page with this code, link to the reference."""
    document = new_document("page")
    document += nodes.literal_block(code, code)
    document += [nodes.paragraph("", "", nodes.literal(word, word)) for word in written]
    known = {
        name: SimpleNamespace(objtype="function", docname="book/api/page", node_id=name)
        for name in ("lib.heads.targets", "lib.rope.apply_rope")
    }
    document.settings.env = SimpleNamespace(
        docname="book/01-one",
        get_domain=lambda name: SimpleNamespace(objects=known),
        app=SimpleNamespace(builder=SimpleNamespace(get_relative_uri=lambda here, there: there)),
    )
    extension("api_links").LinkNames(document).run()
    return [link.astext() for link in document.findall(nodes.reference)]


def test_a_name_links_to_the_reference_unless_it_may_be_a_variable():
    names = ["apply_rope", "lib.heads.targets", "targets()"]
    assert linked("targets = 1", *names, "targets") == names
    for code in (
        "from lib.heads import targets",
        "from lib.heads import (\n    a,\n    targets,\n)",
    ):
        assert linked(f"import math\n{code}\n", *names, "targets") == [*names, "targets"]


# --- the picture of the start page


@pytest.fixture(scope="module")
def picture():
    return extension("course_picture")


def test_the_picture_shows_what_rope_does(picture):
    """Angles and weights by hand: pair i of a key d tokens back has turned by d * base^(-i/8)."""
    n_tokens, n_pairs = picture.TOKENS, picture.PAIRS
    theta = [picture.BASE ** (-i / n_pairs) for i in range(n_pairs)]
    angles = [[(n - n_tokens + 1) * t for t in theta] for n in range(n_tokens)]
    for hands, turned in zip(picture.hands(), angles, strict=True):
        wanted = [[math.cos(angle), math.sin(angle)] for angle in turned]
        assert hands == [pytest.approx(hand, abs=1e-9) for hand in wanted]
    scores = [
        picture.LENGTH**2 * sum(map(math.cos, row)) / math.sqrt(2 * n_pairs) for row in angles
    ]
    total = sum(map(math.exp, scores))
    assert picture.weights() == pytest.approx([math.exp(s) / total for s in scores])


def test_the_picture_is_drawn_from_them_and_says_so(picture):
    drawn = BeautifulSoup(picture.drawing("What <it> shows"), "html.parser").svg
    assert drawn["aria-label"] == "What <it> shows"
    hands = [hand for column in picture.hands() for hand in column]
    lines = [re.findall(r"-?[\d.]+", path["d"])[2:] for path in drawn.select("path")]
    for (up, across), line in zip(hands, lines, strict=True):
        wanted = [-picture.HAND * across, -picture.HAND * up]
        assert list(map(float, line)) == pytest.approx(wanted, abs=0.051)
    cells = [rect["class"] for rect in drawn.select("rect[rx]")]
    assert cells == [["adds"] if up >= 0 else ["takes"] for up, _ in hands]
    bars = [float(rect["height"]) for rect in drawn.select("rect:not([rx])")]
    weights = picture.weights()
    wanted = [max(picture.BARS * weight / max(weights), 1) for weight in weights]
    assert bars == pytest.approx(wanted, abs=0.051)
