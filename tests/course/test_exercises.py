"""The exercises: made from the solutions, without them, complete by themselves, named alike."""

import ast
import re
import subprocess
import symtable
import sys

import pytest
from nbclient import NotebookClient

from tests.course.test_notebooks import WITHOUT_EXERCISE
from tests.halves import some_now
from tools import answers, exercises

ROOT = answers.ROOT
SLUGS = exercises.slugs()
ACROSS = pytest.mark.parametrize("slug", SLUGS)


def folders(name):
    """The numbered folders or notebooks in a folder of the repository."""
    return {
        path.stem for path in (ROOT / name).glob("[0-9][0-9]-*") if path.suffix in ("", ".ipynb")
    }


def sources(slug, folder):
    """The code cells of a notebook, by id."""
    cells = answers.notebook(slug, folder).cells
    return {cell.id: cell.source for cell in cells if cell.cell_type == "code"}


# --- names


def test_solutions_exercises_and_answers_carry_the_same_names():
    assert SLUGS
    assert folders("solutions") == folders("exercises") == folders("tests/answers") == set(SLUGS)


def test_exercises_are_named_after_their_chapters():
    assert set(SLUGS) == folders("book") - WITHOUT_EXERCISE


@ACROSS
def test_a_solution_folder_holds_its_notebook_and_nothing_else(slug):
    """nbgrader would release a file beside the notebook as it is, solutions and all."""
    names = [path.name for path in (ROOT / "solutions" / slug).iterdir()]
    assert [name for name in names if name != ".ipynb_checkpoints"] == [f"{slug}.ipynb"]


# --- minutes and difficulty

TIME = re.compile(r"\*\*Time:\*\* (?:about )?(\d+)(?: to (\d+))? minutes\.")
TASK = re.compile(
    r"## (?P<title>.+)(?:\n\n\*(?P<minutes>\d+) minutes · (?:easy|moderate|hard)\*\n\n)?"
)


@ACROSS
def test_each_task_says_how_long_and_how_hard_it_is(slug):
    """The minutes add up to the time that the first cell gives."""
    texts = [c.source for c in answers.notebook(slug).cells if c.cell_type == "markdown"]
    tasks = [TASK.match(text) for text in texts if text.startswith("## ")]
    assert [task["title"] for task in tasks if not task["minutes"]] == []
    low, high = TIME.search(texts[0]).groups()
    assert int(low) <= sum(int(task["minutes"]) for task in tasks) <= int(high or low)


# --- the release


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    target = tmp_path_factory.mktemp("release")
    exercises.generate(target)
    return target


def test_the_committed_release_is_what_nbgrader_makes_of_the_solutions(fresh):
    made = {path.relative_to(fresh): path.read_bytes() for path in fresh.rglob("*.*")}
    committed = {
        path.relative_to(ROOT / "exercises"): path.read_bytes()
        for path in (ROOT / "exercises").rglob("*.*")
        if ".ipynb_checkpoints" not in path.parts
    }
    assert made.keys() == committed.keys()
    stale = [str(path) for path in made if made[path] != committed[path]]
    assert not stale, f"run `make exercises`: {stale}"


def between(text, kind):
    """The lines of a cell that nbgrader takes out."""
    inside, lines = False, []
    for line in text.splitlines():
        if line.strip() in (f"### BEGIN {kind}", f"### END {kind}"):
            inside = "BEGIN" in line
        elif inside:
            lines.append(line.strip())
    return lines


@ACROSS
def test_the_release_holds_no_solution_and_no_hidden_test(slug):
    released = (ROOT / "exercises" / slug / f"{slug}.ipynb").read_text()
    assert "BEGIN SOLUTION" not in released
    assert "HIDDEN TESTS" not in released
    shown = sources(slug, "exercises")
    taken_out = 0
    for name, source in sources(slug, "solutions").items():
        for kind in ("SOLUTION", "HIDDEN TESTS"):
            telling = {line for line in between(source, kind) if len(line) > 15}
            taken_out += len(telling)
            left = {line.strip() for line in shown[name].splitlines()} & telling
            # a line of the hidden tests may repeat one of the visible test
            repeated = {line.strip() for line in source.split("### BEGIN")[0].splitlines()}
            assert not left - repeated, name
    assert taken_out > 20


@ACROSS
def test_the_release_is_complete(slug):
    solution, release = answers.notebook(slug), answers.notebook(slug, "exercises")
    assert [cell.id for cell in solution.cells] == [cell.id for cell in release.cells]
    assert answers.graded(solution) == answers.graded(release)
    stubs = [cell for cell in release.cells if cell.metadata.get("nbgrader", {}).get("solution")]
    assert stubs
    for cell in stubs:
        (made,) = ast.parse(cell.source).body
        assert cell.source.rstrip().endswith("raise NotImplementedError()"), cell.id
        assert ast.get_docstring(made), cell.id
        functions = made.body[1:] if isinstance(made, ast.ClassDef) else [made]
        for function in functions:  # of a class: its methods, and nothing else
            assert ast.get_docstring(function), (cell.id, function.name)
            assert ast.unparse(function.body[-1]) == "raise NotImplementedError()", cell.id
            assert function.returns, (cell.id, function.name)
            arguments = [each for each in function.args.args if each.arg != "self"]
            assert all(each.annotation for each in arguments), (cell.id, function.name)


# --- the notebook


@ACROSS
def test_a_notebook_needs_numpy_torch_and_matplotlib_only(slug):
    allowed = {"numpy", "torch", "matplotlib", *sys.stdlib_module_names}
    for name, source in sources(slug, "solutions").items():
        for node in ast.walk(ast.parse(source)):
            wanted = []
            if isinstance(node, ast.Import):
                wanted = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                wanted = [node.module]
            assert {module.split(".")[0] for module in wanted} <= allowed, name


@ACROSS
def test_the_tools_of_the_tests_are_the_same_in_every_notebook(slug):
    cell = next(cell for cell in answers.notebook(slug).cells if cell.id == "probe")
    assert cell.source == (ROOT / "grading" / "runner" / "probe.py").read_text().rstrip("\n")
    assert cell.metadata.nbgrader.locked
    assert not cell.metadata.nbgrader.solution


@ACROSS
def test_cells_are_marked_and_clean(slug):
    for cell in answers.notebook(slug).cells:
        marks = cell.metadata.get("nbgrader")
        if marks:
            assert marks["grade_id"] == cell.id
            assert marks["grade"] or marks["solution"] or marks["locked"], cell.id
        if cell.cell_type == "code":
            assert not cell.outputs, cell.id
            assert cell.execution_count is None, cell.id


@ACROSS
def test_every_graded_cell_has_a_visible_and_a_hidden_test(slug):
    shown = sources(slug, "exercises")
    hidden = {name for name, _ in answers.hidden_checks(slug)}
    for name in answers.graded(answers.notebook(slug)):
        assert "@probe.check(" in shown[name]
        assert name in hidden


def globals_of(table):
    """The names that code reads and does not define, outside its functions, theirs included."""
    symbols = table.get_symbols()
    names = set().union(*map(globals_of, table.get_children()))
    if table.get_type() != "module":
        return names | {symbol.get_name() for symbol in symbols if symbol.is_global()}
    names |= {symbol.get_name() for symbol in symbols}
    return names - {symbol.get_name() for symbol in symbols if symbol.is_assigned()}


@ACROSS
def test_no_graded_cell_needs_what_follows_another_cells_first_check(slug):
    """A cell ends at its first failing check; what follows it is then not defined."""
    cells = sources(slug, "solutions")
    late, needed = {}, {}
    for name in answers.graded(answers.notebook(slug)):
        used = globals_of(symtable.symtable(cells[name], name, "exec"))
        needed |= {(name, each): late[each] for each in used & set(late)}
        checks = "@probe.check(" + cells[name].partition("@probe.check(")[2]
        kinds = (ast.FunctionDef, ast.ClassDef)
        late |= {node.name: name for node in ast.parse(checks).body if isinstance(node, kinds)}
    assert not needed, "(cell, name): the cell that defines it"


@ACROSS
def test_each_task_has_a_folded_hint_a_stub_a_test_and_something_to_look_at(slug):
    tasks = {}
    for cell in answers.notebook(slug, "exercises").cells:
        if cell.source.startswith("## Task"):
            parts = tasks[cell.id] = set()
        if tasks:
            marks = cell.metadata.get("nbgrader", {})
            parts |= {kind for kind in ("solution", "grade") if marks.get(kind)}
            parts |= {"hint"} if "<details><summary>Hint" in cell.source else set()
            parts |= {"look"} if cell.source.startswith("**What to notice.**") else set()
    assert tasks
    wanted = {"hint", "solution", "grade", "look"}
    lacking = {name: wanted - parts for name, parts in tasks.items() if wanted - parts}
    assert not lacking


TWO = ("01-attention", "10-kv-cache")


@pytest.mark.parametrize("slug", some_now(SLUGS, TWO))
def test_a_blank_notebook_runs_to_its_end(slug, tmp_path):
    """In a real kernel and an empty folder, nothing fails but what is not yet written."""
    book = answers.notebook(slug, "exercises")
    client = NotebookClient(
        book,
        timeout=120,
        allow_errors=True,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    )
    client.execute()
    failed = {}
    for cell in book.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                failed[cell.id] = output.ename
    assert failed == dict.fromkeys(answers.graded(book), "NotImplementedError")


# --- nbgrader's own check, as a learner runs it; its exit status is 0 whatever it finds


def validate(folder, slug):
    path = ROOT / folder / slug / f"{slug}.ipynb"
    command = [sys.executable, "-m", "nbgrader", "validate", str(path)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout


# Two stand for all: what Validate runs, nbval and the banks run too.
@pytest.mark.parametrize("slug", some_now(TWO, TWO[:1]))
def test_nbgrader_validates_the_solution(slug):
    assert "Success! Your notebook passes all the tests." in validate("solutions", slug)


@pytest.mark.parametrize("slug", some_now(TWO, TWO[:1]))
def test_nbgrader_does_not_validate_the_release(slug):
    output = validate("exercises", slug)
    graded = answers.graded(answers.notebook(slug))
    assert f"VALIDATION FAILED ON {len(graded)} CELL(S)!" in output
    assert "Success" not in output


# --- regenerating


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course in git with one exercise, and a generator that writes `version 2` of it."""
    notebook = tmp_path / "exercises" / "01-x" / "01-x.ipynb"
    notebook.parent.mkdir(parents=True)
    notebook.write_text("version 1")
    for command in (
        ["git", "init", "-q"],
        ["git", "add", "."],
        ["git", *("-c", "user.name=a", "-c", "user.email=a@b"), "commit", "-q", "-m", "x"],
    ):
        subprocess.run(command, cwd=tmp_path, check=True)

    def generate(target):
        (target / "01-x").mkdir(parents=True)
        (target / "01-x" / "01-x.ipynb").write_text("version 2")

    monkeypatch.setattr(exercises, "ROOT", tmp_path)
    monkeypatch.setattr(exercises, "EXERCISES", tmp_path / "exercises")
    monkeypatch.setattr(exercises, "WRITTEN", tmp_path / "_build" / "exercises.json")
    monkeypatch.setattr(exercises, "generate", generate)
    return notebook


def test_regenerating_replaces_the_committed_release_and_its_own_work(course):
    assert exercises.main([]) == 0
    assert course.read_text() == "version 2"
    assert exercises.main([]) == 0  # not committed yet, but written by this command


@pytest.mark.parametrize("name", ["01-x/01-x.ipynb", "01-x/notes.txt"])
def test_regenerating_never_overwrites_somebodys_work(course, capsys, name):
    work = course.parent.parent / name
    work.write_text("an hour of work")
    assert exercises.main([]) == 1
    assert work.read_text() == "an hour of work"
    assert f"would be lost: {name}" in capsys.readouterr().err
    assert exercises.main(["--force"]) == 0
    assert course.read_text() == "version 2"
