"""tools/book.py on a tiny book with its own tiny ``lib``: what runs again, and what must fail."""

import shutil
import time
import urllib.request
from pathlib import Path
from threading import Thread

import nbformat
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools import book, imports

TOC = """format: jb-book
root: book/index
parts:
  - caption: Part
    numbered: 1
    chapters:
      - file: book/one
      - file: book/two
"""


class TinyBook:
    """Two chapters: ``one`` uses ``lib.middle``, which uses ``lib.base``; ``two`` uses neither."""

    def __init__(self, root: Path):
        self.root = root
        self.runs = root / "runs"
        self.write("_toc.yml", TOC)
        shutil.copy(book.ROOT / "_config.yml", root)
        for folder in ("_ext", "_templates"):
            shutil.copytree(book.ROOT / "book" / folder, root / "book" / folder)
        self.write("book/_static/course.css", "")
        self.write("book/_static/course.js", "")
        self.write("book/_static/logo.svg", '<svg xmlns="http://www.w3.org/2000/svg"/>')
        self.write("book/references.bib", "")
        self.write("book/index.md", "# Tiny\n")
        self.write("requirements.lock", "torch==1\n")
        self.write("lib/__init__.py", "")
        self.write("lib/base.py", "VALUE = 'first'\n")
        self.write("lib/middle.py", "from .base import VALUE\n")
        self.write("lib/other.py", "")
        self.chapter("one", "from lib.middle import VALUE", "print('value', VALUE)")
        self.chapter("two", "from lib import other", "print('nothing')")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def chapter(self, name: str, *sources: str, text: str = "") -> None:
        """Write a notebook that notes each of its runs; its cells are called cell-0, cell-1, …"""
        note = f"open({str(self.runs / name)!r}, 'a').write('x')"
        self.runs.mkdir(exist_ok=True)
        cells = [new_markdown_cell(f"# Chapter {name}\n\n{text}", id="title")]
        cells += [
            new_code_cell(f"{source}; _ = {note}" if number == 0 else source, id=f"cell-{number}")
            for number, source in enumerate(sources)
        ]
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook = new_notebook(cells=cells, metadata={"kernelspec": kernel})
        (self.root / "book").mkdir(exist_ok=True)
        nbformat.write(notebook, self.root / "book" / f"{name}.ipynb")

    def ran(self) -> dict[str, int]:
        """How often each chapter has run since the last call."""
        counts = {path.name: len(path.read_text()) for path in self.runs.iterdir()}
        for path in self.runs.iterdir():
            path.unlink()
        return counts

    def page(self, name: str) -> str:
        return (self.root / "_build" / "html" / "book" / f"{name}.html").read_text()


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # book.main sets both, and here is undone
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    (tmp_path / "_build").mkdir()
    return TinyBook(tmp_path)


# --- what a chapter depends on


@pytest.fixture
def package(tmp_path):
    """``lib`` with a chain a -> b -> c, a loop c -> b, a subpackage and a module by itself."""
    files = {
        "__init__.py": "",
        "a.py": "from .b import x\n",
        "b.py": "def late():\n    from lib import c\n",
        "c.py": "import lib.b\n",
        "alone.py": "",
        "sub/__init__.py": "from ..alone import y\n",
        "sub/deep.py": "from . import near\n",
        "sub/near.py": "",
    }
    for name, text in files.items():
        path = tmp_path / "lib" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "lib"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch", ""),
        ("import library", ""),
        ("import lib", "__init__"),
        ("import lib.alone as z", "__init__ alone"),
        ("from lib import alone", "__init__ alone"),
        ("from lib import not_a_module", "__init__"),
        ("from lib.alone import y", "__init__ alone"),
        ("def f():\n    import lib.alone", "__init__ alone"),
        ("import lib.c", "__init__ c b"),
        ("from lib.a import x", "__init__ a b c"),
        ("import lib.sub", "__init__ sub/__init__ alone"),
        ("from lib.sub import deep", "__init__ sub/__init__ alone sub/deep sub/near"),
    ],
)
def test_closure_follows_imports(package, source, expected):
    files = imports.closure(source, package)
    assert {str(path.relative_to(package))[: -len(".py")] for path in files} == set(
        expected.split()
    )


def key(tiny, name="one") -> str:
    notebook = nbformat.read(tiny.root / "book" / f"{name}.ipynb", as_version=4)
    return book.chapter_key(notebook, tiny.root)


@pytest.mark.parametrize("name", ["lib/base.py", "lib/middle.py", "lib/__init__.py"])
def test_key_changes_with_the_modules_in_use(tiny, name):
    before = key(tiny)
    tiny.write(name, (tiny.root / name).read_text() + "\n# changed\n")
    assert key(tiny) != before


def test_key_changes_with_versions_and_code(tiny, monkeypatch):
    keys = [key(tiny)]
    tiny.write("requirements.lock", "torch==2\n")
    keys.append(key(tiny))
    monkeypatch.setattr(book.sys, "version", "3.99")
    keys.append(key(tiny))
    tiny.chapter("one", "from lib.middle import VALUE", "print('other', VALUE)")
    keys.append(key(tiny))
    assert len(set(keys)) == 4


def test_key_ignores_what_does_not_run(tiny):
    before = key(tiny)
    tiny.write("lib/other.py", "# changed\n")
    tiny.chapter("one", "from lib.middle import VALUE", "print('value', VALUE)", text="More.")
    assert key(tiny) == before


def test_key_sees_through_magics(tiny):
    tiny.chapter("one", "%matplotlib inline\nfrom lib.other import *")
    before = key(tiny)
    tiny.write("lib/other.py", "# changed\n")
    assert key(tiny) != before
    tiny.write("lib/base.py", "# not in use\n")
    after = key(tiny)
    tiny.write("lib/base.py", "# not in use, again\n")
    assert key(tiny) == after


def test_key_covers_recorded_results_where_they_are_named(tiny):
    tiny.chapter("one", "print('benchmarks/results/run.json')")
    keys = {name: [key(tiny, name)] for name in ("one", "two")}
    tiny.write("benchmarks/results/run.json", "{}")
    for name, seen in keys.items():
        seen.append(key(tiny, name))
    assert keys["one"][0] != keys["one"][1]
    assert keys["two"][0] == keys["two"][1]


def test_key_covers_the_data_files_that_a_module_reads(tiny):
    tiny.write("lib/base.py", "VALUE = 'base.css'  # chapter one reaches it\n")
    tiny.write("lib/base.css", "p { margin: 0 }")
    tiny.write("lib/other.css", "p { margin: 0 }")
    before = key(tiny)
    tiny.write("lib/other.css", "p { margin: 1px }")
    assert key(tiny) == before
    tiny.write("lib/base.css", "p { margin: 1px }")
    assert key(tiny) != before


@pytest.mark.parametrize("name", book.OPTIONAL)
def test_key_tells_whether_an_optional_package_is_installed(tiny, monkeypatch, name):
    """A page with the trained weights and a page without them are two pages."""
    tiny.write("lib/base.py", f"VALUE = 'first'  # {name}\n")  # chapter one reaches it
    keys = {"one": [], "two": []}
    for version in (None, "0.1.0", "0.2.0"):
        monkeypatch.setattr(book, "version", lambda _, version=version: installed(version))
        for chapter, seen in keys.items():
            seen.append(key(tiny, chapter))
    assert len(set(keys["one"])) == 3
    assert len(set(keys["two"])) == 1


def installed(version):
    if version is None:
        raise book.PackageNotFoundError
    return version


@pytest.mark.parametrize("name", book.OPTIONAL)
def test_installing_an_optional_package_runs_what_names_it_again(tiny, monkeypatch, name):
    tiny.chapter("two", f"print('{name}')")
    for version, ran in ((None, {"one": 1, "two": 1}), (None, {}), ("0.1.0", {"two": 1})):
        monkeypatch.setattr(book, "version", lambda _, version=version: installed(version))
        assert book.execute_chapters(tiny.root, 60)
        assert tiny.ran() == ran


def test_optional_packages_are_those_that_lib_looks_for():
    from lib import pretrained, smollm

    assert set(book.OPTIONAL) == {pretrained.PACKAGE, smollm.PACKAGE}


# --- executing


def test_long_chapters_start_first(tiny, monkeypatch):
    """At the end, one of them alone would leave the other core idle."""
    assert set(book.LONGEST) <= {path.stem for path in book.chapters(book.ROOT)}
    cache = book.get_cache(tiny.root / "_build" / ".jupyter_cache")
    assert [each.name for each in book.stale(tiny.root, cache)] == ["one", "two"]
    monkeypatch.setattr(book, "LONGEST", ("two",))
    assert [each.name for each in book.stale(tiny.root, cache)] == ["two", "one"]


def test_only_what_changed_runs_again(tiny):
    assert book.execute_chapters(tiny.root, 60)
    assert tiny.ran() == {"one": 1, "two": 1}
    assert book.execute_chapters(tiny.root, 60)
    assert tiny.ran() == {}
    tiny.write("lib/base.py", "VALUE = 'second'\n")
    assert book.execute_chapters(tiny.root, 60)
    assert tiny.ran() == {"one": 1}
    tiny.write("lib/base.py", "VALUE = 'first'\n")  # back again: outputs of 'second' must go
    assert book.execute_chapters(tiny.root, 60)
    assert tiny.ran() == {"one": 1}


def test_two_chapters_run_at_the_same_time(tiny):
    """Each waits for the other to have started, which one after the other would never see."""
    wait = (
        "import pathlib, time\n"
        "pathlib.Path('{me}.started').touch()\n"
        "until = time.monotonic() + 15\n"
        "while not pathlib.Path('{other}.started').exists():\n"
        "    assert time.monotonic() < until, 'alone'\n"
        "    time.sleep(0.05)"
    )
    tiny.chapter("one", "x = 1", wait.format(me="one", other="two"))
    tiny.chapter("two", "x = 2", wait.format(me="two", other="one"))
    assert book.execute_chapters(tiny.root, 60)


def test_what_is_printed_in_two_goes_is_one_output():
    """A kernel may cut between a line and its end; joined later, that would be an empty line."""

    def stream(name, text):
        return new_output("stream", name=name, text=text)

    cell = new_code_cell("", id="cell")
    cell.outputs = [
        stream("stdout", "one"),
        stream("stdout", "\ntwo\n"),
        stream("stderr", "warning\n"),
        stream("stdout", "three\n"),
    ]
    book.join_streams(new_notebook(cells=[cell]))
    assert [(out.name, out.text) for out in cell.outputs] == [
        ("stdout", "one\ntwo\n"),
        ("stderr", "warning\n"),
        ("stdout", "three\n"),
    ]


def test_a_failure_is_named_and_fails_every_time(tiny, capfd):
    tiny.chapter("two", "x = 1", "def f():\n    return 1 / 0", "f()", "print('never')")
    for _ in range(2):
        assert not book.execute_chapters(tiny.root, 60)
        output = capfd.readouterr()
        assert 'two.ipynb, cell "cell-2" (code cell 3 of 4)' in output.err
        assert "ZeroDivisionError" in output.err
        assert "return 1 / 0" in output.err
        assert "\x1b" not in output.err
        assert "FAILED: two.ipynb" in output.out
        assert tiny.ran()["two"] == 1
    tiny.chapter("two", "x = 1", "def f():\n    return 1 / 2", "f()")
    assert book.execute_chapters(tiny.root, 60)


def test_a_failure_after_a_change_of_lib_is_not_hidden_by_old_outputs(tiny):
    assert book.execute_chapters(tiny.root, 60)
    tiny.write("lib/base.py", "VALUE = 1 / 0\n")
    assert not book.execute_chapters(tiny.root, 60)
    assert not book.execute_chapters(tiny.root, 60)


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_chapter_that_takes_too_long_is_stopped(tiny, capfd):
    note = f"import os; open({str(tiny.root / 'pid')!r}, 'w').write(str(os.getpid()))"
    tiny.chapter("two", note, "import time; time.sleep(120)")
    start = time.monotonic()
    assert not book.execute_chapters(tiny.root, 4)
    assert time.monotonic() - start < 30
    output = capfd.readouterr().err
    assert 'two.ipynb, cell "cell-1" (code cell 2 of 2)' in output
    assert "longer than the 4 s" in output
    assert not alive(int((tiny.root / "pid").read_text()))


def test_a_kernel_that_dies_is_a_failure(tiny, capfd):
    tiny.chapter("two", "x = 1", "import os; os._exit(3)")
    assert not book.execute_chapters(tiny.root, 60)
    output = capfd.readouterr().err
    assert 'two.ipynb, cell "cell-1"' in output
    assert "the kernel died" in output


# --- building


@pytest.mark.long
def test_new_outputs_reach_a_page_whose_source_did_not_change(tiny, capfd):
    assert book.main(["--root", str(tiny.root)]) == 0
    assert "value first" in tiny.page("one")
    tiny.write("lib/base.py", "VALUE = 'second'\n")
    capfd.readouterr()
    assert book.main(["--root", str(tiny.root)]) == 0
    assert "value second" in tiny.page("one")
    output = capfd.readouterr().out
    assert "build: the pages that changed" in output
    assert "reading sources... [100%] book/one" in output
    assert "book/two" not in output
    # And once more, when nothing changed: Sphinx is not even started, unless a page is gone.
    page = tiny.root / "_build" / "html" / "book" / "two.html"
    for text, there in (("build: nothing changed", True), ("build: all pages", False)):
        if not there:
            page.unlink()
        assert book.main(["--root", str(tiny.root)]) == 0
        assert text in capfd.readouterr().out
        assert page.is_file()


def test_the_content_of_pages_has_a_key(tiny):
    keys = [book.content_key(tiny.root), book.content_key(tiny.root)]
    assert len(set(keys)) == 1
    for name, text in {
        "book/index.md": "# Tinier\n",
        "lib/other.py": "'''A docstring, which the reference shows.'''\n",
        "benchmarks/results/run.json": "{}",
        "exercises/one/one.ipynb": "{}",
    }.items():
        tiny.write(name, text)
        keys.append(book.content_key(tiny.root))
    assert len(set(keys)) == 5


def test_other_outputs_of_the_same_text_have_another_key(tiny):
    assert book.execute_chapters(tiny.root, 60)
    before = book.content_key(tiny.root)
    tiny.write("requirements.lock", "torch==2\n")  # is no part of it, and makes both run again
    assert book.execute_chapters(tiny.root, 60)
    assert tiny.ran() == {"one": 2, "two": 2}
    assert book.content_key(tiny.root) != before


@pytest.mark.long
def test_a_warning_fails_every_build_until_it_is_mended(tiny, capfd):
    """Sphinx by itself forgets: it warns of a page when it reads it, and reads it once."""
    assert book.main(["--root", str(tiny.root)]) == 0
    tiny.chapter("two", "x = 1", text="See {ref}`nowhere`.")
    for _ in range(2):
        assert book.main(["--root", str(tiny.root)]) == 1
        assert "nowhere" in capfd.readouterr().err
        assert not (tiny.root / "_build" / ".book.json").exists()
    tiny.chapter("two", "x = 1", text="See elsewhere.")
    assert book.main(["--root", str(tiny.root)]) == 0


@pytest.mark.long
def test_writing_to_stderr_is_a_warning(tiny, capfd):
    tiny.chapter("two", "import sys", "print('oh dear', file=sys.stderr)")
    for _ in range(2):
        assert book.main(["--root", str(tiny.root)]) == 1
        assert "stderr was found" in capfd.readouterr().err


@pytest.mark.long
def test_what_shapes_every_page_builds_every_page(tiny, capfd):
    assert book.main(["--root", str(tiny.root)]) == 0
    css = tiny.root / "_build" / "html" / "_static" / "course.css"
    tiny.write("book/_static/course.css", "body {}")
    assert book.main(["--root", str(tiny.root)]) == 0
    assert css.read_text() == "body {}"
    # a page that the table of contents lists no longer is gone
    tiny.write("_toc.yml", TOC.replace("      - file: book/two\n", ""))
    assert book.main(["--root", str(tiny.root)]) == 0
    assert not (tiny.root / "_build/html/book/two.html").exists()
    assert tiny.ran() == {"one": 1, "two": 1}
    tiny.write("book/index.md", "# Tiny\n\nMore.\n")
    capfd.readouterr()
    assert book.main(["--root", str(tiny.root)]) == 0
    assert "build: the pages that changed" in capfd.readouterr().out


# --- serving


def test_a_busy_port_gives_way_to_the_next(tmp_path, capsys):
    (tmp_path / "index.html").write_text("hello")
    with book.server(tmp_path, 8900) as first, book.server(tmp_path, first.server_port) as second:
        assert second.server_port > first.server_port
        assert f"port {first.server_port} is busy" in capsys.readouterr().out
        thread = Thread(target=second.handle_request)
        thread.start()
        address = f"http://127.0.0.1:{second.server_port}/index.html"
        with urllib.request.urlopen(address) as answer:
            assert answer.read() == b"hello"
            assert answer.headers["Cache-Control"] == "no-cache"
        thread.join()
