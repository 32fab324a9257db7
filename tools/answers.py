"""Score the answers of the answer banks as nbgrader would, without starting a kernel for each.

An answer is a Python file in ``tests/answers/NN-slug/wrong/`` or ``right/``. Its docstring says
in the first line what the mistake is (or in which way it is right), and a wrong one names on its
last line, after ``Loses:``, the graded cells that must give no points. Then follow the cells that
it replaces, each after a line ``# %% cell-id``; imports before the first cell go into each.

The notebook with the answer put in is run cell by cell in a forked process, which has imported
torch before. What a cell prints and raises is given to nbgrader's own `determine_grade`, so the
rule that decides is nbgrader's: an error or any stderr is 0, a number is partial credit,
anything else is full marks. A test runs some answers in a real kernel too and compares.

The tests inside a graded cell (each ``@probe.check``) can be scored one by one as well
(`Outcome.checks`): a cell stops at its first failing test, and that hides what the others see.
"""

import ast
import builtins
import contextlib
import copy
import functools
import gc
import io
import multiprocessing
import os
import pickle
import signal
import traceback
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from unittest import mock

import matplotlib
import nbformat
import torch
from nbformat import NotebookNode
from nbgrader.utils import determine_grade

from grading.mistakes import Answer, checks, read
from grading.notebook import Step, defined_names, plan

ROOT = Path(__file__).resolve().parent.parent
BANKS = ROOT / "tests" / "answers"
PRELOAD = [
    "torch",
    "torch.fx.experimental.symbolic_shapes",  # the first backward pass would import it: 0.3 s
    "matplotlib.pyplot",
    "tools.answers",
]


PATIENCE = 30  # seconds for one answer; a mutant may loop for ever


@dataclass(frozen=True)
class Outcome:
    """The outcome of one answer."""

    scores: dict[str, float]  # grade_id -> points
    checks: dict[tuple[str, str], str]  # (grade_id, what was tried) -> message, empty if passed
    messages: dict[str, str]  # grade_id -> error type and message, empty if there was none


def notebook(slug: str, folder: str = "solutions") -> NotebookNode:
    """The notebook of an assignment, from `solutions/` or from `exercises/`."""
    path = ROOT / folder / slug / f"{slug}.ipynb"
    return copy.deepcopy(_parsed(path, path.stat().st_mtime_ns))


@functools.lru_cache
def _parsed(path: Path, changed: int) -> NotebookNode:
    """The notebook as it was read when it had changed last: a bank asks for it 70 times."""
    return nbformat.read(path, as_version=4)


def graded(book: NotebookNode) -> dict[str, float]:
    """The graded cells and their points, in order."""
    cells = (cell.metadata.get("nbgrader", {}) for cell in book.cells)
    return {cell["grade_id"]: float(cell["points"]) for cell in cells if cell.get("grade")}


def hidden_checks(slug: str) -> set[tuple[str, str]]:
    """The tests that a learner does not see, as (grade_id, what is tried)."""
    return {(check.cell, check.tried) for check in checks(notebook(slug)) if check.hidden}


def bank(slug: str, kind: str) -> list[Answer]:
    """The wrong or the right answers of an assignment, by name."""
    return [read(path) for path in sorted((BANKS / slug / kind).glob("*.py"))]


def blank(slug: str) -> Answer:
    """The unchanged release, as handed in by a learner who has not begun."""
    book = notebook(slug, "exercises")
    cells = {cell.id: cell.source for cell in book.cells if _is_solution(cell)}
    return Answer("blank", "Nothing was filled in.", cells, frozenset(graded(notebook(slug))))


def attacked(slug: str, attack: str) -> Answer:
    """The reference solution, with an attack of ``tests/answers/attack.py`` around all of it."""
    code = (BANKS / "attack.py").read_text()
    cells = {}
    for cell in notebook(slug).cells:
        if _is_solution(cell):
            kinds = (ast.FunctionDef, ast.ClassDef)
            names = [part.name for part in ast.parse(cell.source).body if isinstance(part, kinds)]
            wrapped = [f"{name} = attacked({name}, {attack})" for name in names]
            cells[cell.id] = "\n".join([cell.source, code, *wrapped])
    return Answer(attack.partition("(")[0], "An attack.", cells)


def put_in(answer: Answer, slug: str, folder: str = "solutions") -> NotebookNode:
    """The source notebook, hidden tests included, with the answer in place of the solution.

    From `exercises/` it is the learner's notebook, without hidden tests.

    Raises:
        ValueError: if the answer replaces a cell that is not a solution.
    """
    book = notebook(slug, folder)
    known = {cell.id for cell in book.cells if _is_solution(cell)}
    if not answer.cells.keys() <= known:
        raise ValueError(
            f"{answer.name} replaces {sorted(answer.cells.keys() - known)}, "
            f"but the solution cells are {sorted(known)}"
        )
    for cell in book.cells:
        cell.source = answer.cells.get(cell.id, cell.source)
    return book


def score(slug: str, answers: Iterable[Answer], *, salt: str = "") -> Iterator[Outcome]:
    """Put each answer into the notebook, run it, and yield the outcomes in order."""
    return score_notebooks((put_in(answer, slug) for answer in answers), salt=salt)


def score_notebooks(books: Iterable[NotebookNode], *, salt: str = "") -> Iterator[Outcome]:
    """Run each notebook in a process of its own, two at a time."""
    with _processes() as pool:
        yield from pool.imap(functools.partial(_run_apart, salt=salt), books)


def fates(slug: str, mutants: Iterable[Answer]) -> dict[str, str]:
    """What became of each mutant, of one cell each: ``caught``, ``kept`` (all its points) or
    ``idle``, if it kept them and its own `idle()` says that it did nothing.

    A process runs the cells up to the solutions once, and forks for some mutants at a time. One
    stops at its first lost point, and the test that caught it is tried first on the next. Tests
    that do not reach the changed cell's names are left out: a mutant that only they could catch
    counts as kept. What ends the process, or takes longer than `PATIENCE`, is caught.
    """
    chunks: list[tuple[str, list[Answer]]] = []
    for mutant in mutants:
        (cell,) = mutant.cells
        if not chunks or chunks[-1][0] != cell or len(chunks[-1][1]) == 32:
            chunks.append((cell, []))
        chunks[-1][1].append(mutant)
    with _processes() as pool:
        return {
            name: fate
            for outcomes in pool.imap(functools.partial(_fates, slug), chunks)
            for name, fate in outcomes.items()
        }


def _fates(slug: str, chunk: tuple[str, list[Answer]]) -> dict[str, str]:
    """Those of the mutants of one cell."""
    changed, mutants = chunk
    space: dict = {"__name__": "__main__", "__builtins__": builtins, "idle": bool}
    book = notebook(slug)
    tests = []
    (reference,) = (cell.source for cell in book.cells if cell.id == changed)
    steps = plan(book, book)
    reached = _reached(reference, steps)
    for step in steps:
        if step.role != "test":
            _execute(step.source, space)
        elif reached & _used_names(step.source):
            tests.append(book.cells[step.place])
    for cell in tests:
        _compiled(cell.source)  # once, and not in each fork
    if _tried([reference], tests, space) != ["kept"]:
        raise ValueError(f"the solution of {slug} itself loses points, at cell {changed}")
    sources = [each.cells[changed] for each in mutants]
    outcomes: list[str] = []
    while len(outcomes) < len(sources):
        left = sources[len(outcomes) :]
        *more, last = _tried([*left, reference], tests, space)
        if last != "kept":  # one ended the process, or has spoiled something that tests use
            more = [_tried([each], tests, space)[0] for each in left[: len(more) + 1]]
        outcomes += more
    return dict(zip((each.name for each in mutants), outcomes, strict=True))


def _reached(source: str, steps: list[Step]) -> set[str]:
    """The names that a cell defines, and those of the cells that use them, and so on."""
    reached, before = set(defined_names(source)), 0
    while len(reached) > before:
        before = len(reached)
        for step in steps:
            if step.role != "test" and reached & _used_names(step.source):
                reached.update(defined_names(step.source))
    return reached


@functools.lru_cache
def _used_names(source: str) -> frozenset[str]:
    """The names in a cell's code, and its strings: tests pass names to `probe` as strings."""
    names_used = (
        getattr(node, "id", getattr(node, "value", None)) for node in ast.walk(ast.parse(source))
    )
    return frozenset(name for name in names_used if isinstance(name, str))


def _tried(sources: list[str], tests: list[NotebookNode], space: dict) -> list[str]:
    """Try these sources in place of the solution, in one process of their own; the outcomes.

    If one ends the process, it is caught, and nothing is known of those that follow.
    """
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            with os.fdopen(theirs, "w") as pipe:
                for source in sources:
                    signal.alarm(PATIENCE)
                    with _as_it_was(space):
                        print(_fate(source, tests, space), file=pipe, flush=True)
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as pipe:
        outcomes = pipe.read().split()
    os.waitpid(child, 0)
    return outcomes if len(outcomes) == len(sources) else [*outcomes, "caught"]


def _fate(source: str, tests: list[NotebookNode], space: dict) -> str:
    """The outcome of one source; the test that catches it moves to the front of the list."""
    _execute(source, space)
    for place, cell in enumerate(tests):
        if not _keeps(cell, space):
            tests.insert(0, tests.pop(place))
            return "caught"
    return "idle" if space["idle"]() else "kept"


@contextlib.contextmanager
def _as_it_was(space: dict) -> Iterator[None]:
    """Undo what a mutant and the tests change: names and their data, torch's random numbers."""
    data = (torch.Tensor, list, tuple, dict, set)
    before = {
        name: copy.deepcopy(value) if isinstance(value, data) else value
        for name, value in space.items()
    }
    random, dtype = torch.get_rng_state(), torch.get_default_dtype()
    yield
    space.clear()
    space.update(before)
    torch.set_rng_state(random)
    torch.set_default_dtype(dtype)
    torch.set_grad_enabled(True)


def _keeps(cell: NotebookNode, space: dict) -> bool:
    cell.outputs, _ = _execute(cell.source, space)
    return float(determine_grade(cell)[0]) == float(cell.metadata["nbgrader"]["points"])


def _is_solution(cell: NotebookNode) -> bool:
    return cell.metadata.get("nbgrader", {}).get("solution", False)


def _processes():
    """Two processes, forked from one that imported torch; answers run in forks of theirs."""
    fork = multiprocessing.get_context("forkserver")
    fork.set_forkserver_preload(PRELOAD)
    return fork.Pool(2, _prepare)


def _prepare() -> None:
    """Make a new process ready for notebooks."""
    torch.set_num_threads(1)  # two processes share the machine, and the tensors are small
    gc.disable()  # the process is short, and a collection walks through all of torch: 0.3 s
    warnings.resetwarnings()  # as in a kernel, whatever the caller turned into errors
    warnings.simplefilter("default")
    matplotlib.use("agg")  # pictures are drawn but not shown


def _run_apart(book: NotebookNode, salt: str) -> Outcome:
    """Run a notebook in a fork of this process, which stays as it is.

    Raises:
        RuntimeError: if the fork ended without an outcome.
    """
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with os.fdopen(theirs, "wb") as pipe:
                pickle.dump(_run(book, salt), pipe)
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        pickled = pipe.read()
    status = os.waitpid(child, 0)[1]
    if not pickled:
        raise RuntimeError(f"a process that ran an answer ended with status {status}")
    return pickle.loads(pickled)


def _run(book: NotebookNode, salt: str) -> Outcome:
    """Run a notebook as it is graded: test by test where a graded cell stops at a test."""
    space: dict = {"__name__": "__main__", "__builtins__": builtins}
    scores, checks, messages = {}, {}, {}
    signal.signal(signal.SIGALRM, _out_of_time)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE, 1.0)  # each time: the cell goes on after a test
    for step in plan(book, book):
        cell = book.cells[step.place]
        if step.role == "test":
            cell.outputs, message, results = _execute_graded(step.source, space)
            scores[cell.id] = float(determine_grade(cell)[0])
            messages[cell.id] = message
            checks |= {(cell.id, tried): result for tried, result in results}
        else:
            _execute(step.source, space)
        if "probe" in space:
            space["probe"].salt = salt
    signal.setitimer(signal.ITIMER_REAL, 0)
    return Outcome(scores, checks, messages)


def _out_of_time(*_) -> None:
    raise TimeoutError(f"the answer took longer than {PATIENCE} s")


def _execute(source: str, space: dict) -> tuple[list[NotebookNode], str]:
    """Run one cell as a notebook does; return its outputs and the error's type and message."""
    out, err = io.StringIO(), io.StringIO()
    outputs, message, value = [], "", None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            statements, last = _compiled(source)
            exec(statements, space)
            value = eval(last, space)
        except BaseException as problem:
            message = f"{type(problem).__name__}: {problem}"
            frames = traceback.format_exception(problem)
            outputs.append(
                nbformat.v4.new_output(
                    "error", ename=type(problem).__name__, evalue=str(problem), traceback=frames
                )
            )
    if value is not None:
        data = {"text/plain": repr(value)}
        outputs.append(nbformat.v4.new_output("execute_result", data, execution_count=1))
    for name, stream in (("stdout", out), ("stderr", err)):
        if stream.getvalue():
            text = stream.getvalue()
            outputs.insert(0, nbformat.v4.new_output("stream", name=name, text=text))
    return outputs, message


@functools.lru_cache(maxsize=64)
def _compiled(source: str) -> tuple[CodeType, CodeType]:
    """A cell's code, and the expression at its end (None if there is none)."""
    tree = ast.parse(source)
    ends = tree.body and isinstance(tree.body[-1], ast.Expr)
    last = tree.body.pop().value if ends else ast.Constant(None)
    whole = ast.fix_missing_locations(ast.Expression(last))
    return compile(tree, "<cell>", "exec"), compile(whole, "<cell>", "eval")


def _execute_graded(
    source: str, space: dict
) -> tuple[list[NotebookNode], str, list[tuple[str, str]]]:
    """Run a graded cell; return its outputs, its message, and what became of each of its tests.

    A cell that stops runs once more, now to its end. One that does not has passed all its tests.
    """
    passed = []
    check = space["probe"].check

    def note(tried):
        run = check(tried)

        def run_and_note(test):
            run(test)
            passed.append((tried, ""))

        return run_and_note

    with mock.patch.object(space["probe"], "check", note):
        outputs, message = _execute(source, space)
    return outputs, message, _each_check(source, space) if message else passed


def _each_check(source: str, space: dict) -> list[tuple[str, str]]:
    """Run a graded cell again, going on after a failing test."""
    results = []
    check = space["probe"].check

    def note(tried):
        def run(test):
            try:
                check(tried)(test)
            except BaseException as problem:
                results.append((tried, f"{type(problem).__name__}: {problem}"))
            else:
                results.append((tried, ""))

        return run

    with mock.patch.object(space["probe"], "check", note):
        _execute(source, space)
    return results
