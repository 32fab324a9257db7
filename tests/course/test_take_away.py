"""What a reader takes away, without the site: the wheel of `lib`, the exercises and their zip."""

import json
import subprocess
import zipfile
from email import message_from_bytes

import nbformat
import pytest

from tests.course.downloaded import run_downloaded, step
from tests.halves import some_now
from tools import book, downloads

ROOT = book.ROOT
NOTEBOOKS = [path for path in book.chapters(ROOT)]
MARKS = ("BEGIN SOLUTION", "BEGIN HIDDEN TESTS", "HIDDEN")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return downloads.write_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


# --- the wheel


def test_the_wheel_has_the_modules_and_the_records_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        (metadata,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        needs = message_from_bytes(archive.read(metadata)).get_all("Requires-Dist")
    modules = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "lib").rglob("*.*")
        if path.suffix != ".pyc"
    }
    assert {"lib/interactive.css", "lib/interactive.js"} < modules
    records = {f"lib/records/{path.name}" for path in ROOT.glob("benchmarks/results/*.json")}
    assert names == modules | records
    assert len(records) >= 3
    needed = {line.split(">")[0] for line in needs if "extra" not in line}
    assert needed == {"numpy", "torch", "matplotlib"}


def test_the_wheel_is_the_same_whenever_it_is_built(wheel, tmp_path):
    again = downloads.write_wheel(ROOT, tmp_path)
    assert again.read_bytes() == wheel.read_bytes()


def test_chapters_ask_for_the_wheel_that_there_is():
    for path in NOTEBOOKS:
        notebook = nbformat.read(path, as_version=4)
        code = "\n".join(cell.source for cell in book.code_cells(notebook))
        uses = "from lib" in code or "import lib" in code
        assert step(notebook) == (downloads.wheel_name(ROOT) if uses else None), path.name


@pytest.mark.parametrize(
    "name", some_now(["13-language-model", "12-pretrained"], ["13-language-model"])
)
def test_a_downloaded_chapter_runs_in_an_empty_folder(wheel, tmp_path, name):
    """Without the trained weights these need a record, which the wheel must bring."""
    modules = run_downloaded(ROOT / "book" / f"{name}.ipynb", wheel, tmp_path)
    assert modules["lib"] == tmp_path / "installed" / "lib" / "__init__.py"
    assert all(path.is_relative_to(tmp_path) for path in modules.values()), modules


# --- the exercises


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    path = tmp_path_factory.mktemp("zip") / downloads.ZIP
    downloads.write_zip(ROOT, path)
    return path


def test_the_zip_has_every_exercise_as_released(archive):
    with zipfile.ZipFile(archive) as opened:
        assert opened.testzip() is None
        contents = {name: opened.read(name) for name in opened.namelist()}
    notebooks = {name: text for name, text in contents.items() if name.endswith(".ipynb")}
    slugs = [path.parent.name for path in sorted((ROOT / "solutions").glob("*/*.ipynb"))]
    assert list(notebooks) == [f"{archive.stem}/{slug}/{slug}.ipynb" for slug in slugs]
    for text in notebooks.values():
        notebook = nbformat.reads(text.decode(), as_version=4)
        nbformat.validate(notebook)
        assert "raise NotImplementedError" in text.decode()
        assert not any(mark in text.decode() for mark in MARKS)
        assert not any(cell.outputs for cell in book.code_cells(notebook))
    others = {name.split("/", 1)[1] for name in contents if name not in notebooks}
    assert others == {"README.txt", "LICENSE", "LICENSE-TEXT"}


def test_the_zip_is_the_same_whenever_it_is_made(archive, tmp_path):
    downloads.write_zip(ROOT, tmp_path / downloads.ZIP)
    assert (tmp_path / downloads.ZIP).read_bytes() == archive.read_bytes()


def test_nobodys_work_is_given_away(tmp_path):
    """What is in `exercises/` may be somebody's work by now: then the committed one is taken."""
    path = tmp_path / "exercises" / "01-one" / "01-one.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text("released")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    path.write_text("solved")
    assert downloads.released(tmp_path) == {"01-one": b"released"}
    digest = downloads.hashlib.sha256(b"solved").hexdigest()  # unless `make exercises` wrote it
    (tmp_path / "_build").mkdir()
    (tmp_path / "_build" / "exercises.json").write_text(json.dumps({"01-one/01-one.ipynb": digest}))
    assert downloads.released(tmp_path) == {"01-one": b"solved"}


# --- the first page


def site(root, *names):
    """A site of one page, and the files of ``_build/take-away``."""
    page = root / "_build" / "html" / "book" / "index.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(f"<p>before</p>{downloads.OPENING}{downloads.CLOSING}<p>after</p>")
    for name in names:
        path = root / downloads.FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 2000)
    return page


def test_the_first_page_names_what_there_is(tmp_path):
    page = site(tmp_path, downloads.ZIP, "exercises/01-one.ipynb", downloads.PDF)
    downloads.place(tmp_path)
    text = page.read_text()
    assert f'href="../_downloads/{downloads.ZIP}"' in text
    assert "(2 kB)" in text
    assert (tmp_path / "_build/html/_downloads" / downloads.ZIP).is_file()
    assert downloads.PDF not in text  # nothing says what it was made from
    assert not (tmp_path / "_build/html/_downloads" / downloads.PDF).exists()


def test_the_pdf_is_offered_while_the_pages_are_those_it_was_made_from(tmp_path):
    page = site(tmp_path, downloads.PDF)
    downloads.remember(tmp_path, downloads.PDF, downloads.pages_key(tmp_path))
    downloads.place(tmp_path)
    downloads.place(tmp_path)  # the list itself is no change of the page
    assert page.read_text().count(f'href="../_downloads/{downloads.PDF}"') == 1
    page.write_text(page.read_text().replace("after", "afterwards"))
    downloads.place(tmp_path)
    assert downloads.PDF not in page.read_text()
    assert not (tmp_path / "_build/html/_downloads" / downloads.PDF).exists()


def test_make_builds_each_of_them():
    for name in ("zip", "pdf", "epub"):
        command = ["make", "--no-print-directory", "-n", name]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout
        assert done.splitlines()[-1].endswith(f" tools.take_away {name}")
    command = ["make", "--no-print-directory", "-n", "take-away"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1].endswith(" tools.take_away")
