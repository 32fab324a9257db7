"""What learners get, and that hidden tests and solutions would be found wherever they were put."""

import ast
import html
import json
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import nbformat
import pytest
from matplotlib.figure import Figure

from tools import leaks, learner_tree

ROOT = learner_tree.ROOT
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
# The Makefile's targets that are not for learners.
OURS = {
    *("test", "test-long", "lint", "library", "course", "nbval", "answers", "grading", "browser"),
    *("exercises", "learner-tree", "collect", "grade", "report", "return", "forget", "gradescope"),
    *("questions", "discussion", "hub", "bench", "mutants", "naming", "results", "lock", "links"),
}
SLUG = "02-multi-head"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The folder as ``make learner-tree`` writes it, and what was found in it."""
    target = tmp_path_factory.mktemp("learner") / "tree"
    return target, learner_tree.build(target)


def test_nothing_was_found_in_it(tree):
    assert tree[1] == []


def test_it_holds_what_learners_need_and_nothing_of_the_instructors(tree):
    target, _ = tree
    names = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    assert names == {*learner_tree.learner_files(), "README.md", "Makefile", learner_tree.WORKFLOW}
    tops = {name.split("/")[0] for name in names}
    assert not tops & {"solutions", "tests", "nbgrader_config.py", ".git", "progress"}
    assert {name for name in names if name.startswith("grading/")} == {"grading/notebook.py"}
    for slug in (path.parent.name for path in ROOT.glob("solutions/*/*.ipynb")):
        assert f"exercises/{slug}/{slug}.ipynb" in names
    for name in ("lib/attention.py", "book/01-attention.ipynb", "_toc.yml", "requirements.lock"):
        assert name in names
    assert "hidden" not in (target / "Makefile").read_text()


def test_its_tools_need_nothing_that_is_not_there(tree):
    target, _ = tree
    missing = []
    for path in [*target.rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                top, *rest = name.split(".")
                inside = "grading.notebook" if top == "grading" else None
                if top in ("grading", "tests", "benchmarks") and name != inside:
                    missing.append((path.name, name))
                if top == "tools" and not (target / "tools" / f"{rest[0]}.py").is_file():
                    missing.append((path.name, name))
    assert not missing


def test_every_target_is_the_learners_or_ours():
    targets = set(re.findall(r"^([a-z-]+):.*## ", MAKEFILE, re.MULTILINE))
    both = learner_tree.TARGETS & OURS
    assert not both
    undecided = targets - learner_tree.TARGETS - OURS
    assert not undecided, f"name them in tools/learner_tree.py or here: {undecided}"


def test_its_makefile_lists_and_runs_the_learners_targets_alone(tree):
    target, _ = tree
    shown = subprocess.run(["make", "help"], cwd=target, capture_output=True, text=True, check=True)
    listed = set(re.findall(r"^  make (\S+)", shown.stdout, re.MULTILINE))
    wanted = set(re.findall(r"^([a-z-]+):.*## ", MAKEFILE, re.MULTILINE)) & learner_tree.TARGETS
    assert listed == wanted
    for name in sorted(listed):
        done = subprocess.run(["make", "-n", name], cwd=target, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        for module in re.findall(r"tools\.(\w+)", done.stdout):
            assert (target / "tools" / f"{module}.py").is_file(), (name, module)
    refused = subprocess.run(["make", "-n", "grade"], cwd=target, capture_output=True, text=True)
    assert refused.returncode == 2


def test_continued_lines_and_several_targets_are_understood():
    text = (
        "X := 1\n.PHONY: lab grade \\\n        zip\nlab zip: .env\n\t@do $@\n"
        "lab:  ## work\ngrade: .env  ## mark\n\t@if a; then \\\n\t  b; fi\n"
        "answers zip: .env\n\t@c\n.env:\n\t@d\n"
    )
    assert learner_tree.makefile(text) == (
        "X := 1\n.PHONY: lab zip\nlab zip: .env\n\t@do $@\nlab:  ## work\n"
        "zip: .env\n\t@c\n.env:\n\t@d\n"
    )


def test_work_in_exercises_is_not_given_out(tmp_path, monkeypatch):
    for name in (
        "exercises/a.ipynb",
        "Makefile",
        "tools/learner/README.md",
        "tools/learner/check.yml",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "a")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    (tmp_path / "exercises" / "a.ipynb").write_text('{"mine": 1}')
    monkeypatch.setattr(learner_tree, "ROOT", tmp_path)
    assert learner_tree.build(tmp_path / "tree") == []
    assert (tmp_path / "tree" / "exercises" / "a.ipynb").read_text() == "{}"


def test_binder_is_left_with_no_hidden_test_and_no_solution(tmp_path):
    """Binder takes the whole repository; its script removes what learners must not see."""
    removed = re.search(r"rm -rf (.+)", (ROOT / "binder" / "postBuild").read_text())[1].split()
    command = ["git", "ls-files", "-z"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file() and not any(name.startswith(f"{each}/") for each in removed):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    assert (tmp_path / "book" / "01-attention.ipynb").is_file()
    assert leaks.search(tmp_path) == []


# --- the search


def _region(what: str) -> str:
    """The longest region of an assignment, as it stands in the notebook."""
    notebook = nbformat.read(ROOT / "solutions" / SLUG / f"{SLUG}.ipynb", as_version=4)
    regions = [
        region
        for cell in notebook.cells
        for region in re.findall(rf"### BEGIN {what}\n(.*?)### END {what}", cell.source, re.DOTALL)
    ]
    return max(regions, key=len)


def _line() -> str:
    """One line of a hidden test."""
    return next(line for line in leaks.secrets()[0])


def _short() -> str:
    """A solution of one line."""
    return next(run[0] for run in leaks.secrets()[1] if len(run) == 1)


def _plain(folder: Path, text: str) -> None:
    (folder / "notes.md").write_text(f"About:\n\n{text}")


def _notebook(folder: Path, text: str) -> None:
    cells = [nbformat.v4.new_code_cell(text, id="a")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "a.ipynb")


def _page(folder: Path, text: str) -> None:
    words = re.sub(r"(\w+)", r'<span class="n">\1</span>', html.escape(text))
    (folder / "a.html").write_text(f"<pre><span></span>{words}</pre>")


def _script(folder: Path, text: str) -> None:
    (folder / "a.js").write_text(f"show({json.dumps(text)})")


def _zip(folder: Path, text: str) -> None:
    inner = folder / "inner.whl"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("lib/a.py", text)
    with zipfile.ZipFile(folder / "outer.zip", "w") as archive:
        archive.write(inner, "inner.whl")
    inner.unlink()


def _epub(folder: Path, text: str) -> None:
    with zipfile.ZipFile(folder / "a.epub", "w") as archive:
        archive.writestr("EPUB/a.xhtml", f"<pre>{html.escape(text)}</pre>")


def _pdf(folder: Path, text: str) -> None:
    if not shutil.which("pdftotext"):
        reason = "pdftotext is missing (Debian, Ubuntu: apt-get install poppler-utils)"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    page = Figure((20, 20))
    page.text(0, 1, text, family="monospace", size=6, va="top", parse_math=False)
    page.savefig(folder / "a.pdf")


@pytest.mark.parametrize("put", [_plain, _notebook, _page, _script, _zip, _epub, _pdf])
@pytest.mark.parametrize("what", ["HIDDEN TESTS", "SOLUTION", "one line", "one-line solution"])
def test_the_search_finds(tmp_path, put, what):
    given = {"one line": _line, "one-line solution": _short}.get(what, lambda: _region(what))()
    put(tmp_path, given)
    hits = leaks.search(tmp_path)
    assert hits
    assert "one" in what or SLUG in {leak.assignment for leak in hits}


def test_a_pdf_that_cannot_be_opened_is_not_passed_over(tmp_path, monkeypatch, capsys):
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7")
    monkeypatch.setattr(leaks.shutil, "which", lambda name: None)
    assert leaks.main([str(tmp_path)]) == 2
    assert "there is no pdftotext, which opens a.pdf" in capsys.readouterr().err


def test_a_release_and_the_library_are_no_leak(tmp_path):
    notebook = nbformat.read(ROOT / "exercises" / SLUG / f"{SLUG}.ipynb", as_version=4)
    nbformat.write(notebook, tmp_path / "a.ipynb")
    for path in (ROOT / "lib").glob("*.py"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert leaks.search(tmp_path) == []


def test_every_assignment_has_something_that_is_looked_for():
    hidden, runs = leaks.secrets()
    slugs = {path.parent.name for path in ROOT.glob("solutions/*/*.ipynb")}
    assert set(hidden.values()) == slugs
    assert set(runs.values()) == slugs
    assert min(map(len, hidden)) >= leaks.SHORTEST


def test_every_solution_is_looked_for_unless_learners_have_its_lines():
    """Exercise 02 gives the answer of 01; a line may be in `lib`; a short one is nobody's own."""
    runs, known = leaks.secrets()[1], leaks.released() | leaks.public()
    forgotten, checked = [], 0
    for path in sorted(ROOT.glob("solutions/*/*.ipynb")):
        for region in leaks._regions(path.stem, "SOLUTION"):
            checked += 1
            in_runs = any(
                tuple(region[start : start + length]) in runs
                for start in range(len(region))
                for length in range(1, leaks.RUN + 1)
            )
            own = [line for line in region if len(line) >= leaks.SHORTEST and line not in known]
            if own and not in_runs:
                forgotten.append((path.stem, region))
    assert checked > 40
    assert forgotten == []


def test_the_command_says_what_it_found_and_fails(tmp_path, capsys):
    assert leaks.main([str(tmp_path)]) == 2
    assert "nothing to search" in capsys.readouterr().err
    (tmp_path / "fine.md").write_text("Attention.")
    assert leaks.main([str(tmp_path)]) == 0
    assert "no hidden test and no solution" in capsys.readouterr().out
    _plain(tmp_path, _region("SOLUTION"))
    assert leaks.main([str(tmp_path)]) == 1
    assert f"notes.md: of {SLUG}: " in capsys.readouterr().out


def test_a_folder_that_holds_too_much_is_removed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(learner_tree, "TARGET", tmp_path / "tree")
    monkeypatch.setattr(learner_tree, "ROOT", tmp_path)
    leak = leaks.Leak("a.md", SLUG, "x = 1")

    def build(target):
        target.mkdir()
        return [leak]

    monkeypatch.setattr(learner_tree, "build", build)
    assert learner_tree.main() == 1
    assert str(leak) in capsys.readouterr().err
    assert not (tmp_path / "tree").exists()
