"""Tell a learner how far they are: ``make check EXERCISE=05-rope``, or all that were started.

The learner's copy in ``work/`` is run as in grading, but without the hidden tests: deleted or
changed tests are restored, and pictures, on which no test depends, are left out. Each
task is *done*, *not yet* (nothing filled in), or *fails*, with the test's own message.

The code runs in a kernel with the learner's rights, since this is the learner's machine. A cell
that runs too long is stopped, one that ends Python costs a restart, and the check goes on.
"""

import argparse
import ast
import re
import shutil
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty

import nbformat
from jupyter_client.manager import KernelManager
from nbformat import NotebookNode
from nbgrader.utils import is_grade, is_locked, is_solution

from grading import notebook
from tools import myst, start

SECONDS = 60  # for one cell; the first one imports torch
PATIENCE = 5  # seconds between asking a cell to stop and ending its kernel
RESTARTS = 4
ADVICE = (
    "JupyterLab may still have it as it was when you last pressed Save: File, Revert Notebook to "
    "Checkpoint. Otherwise rename the file and say: make start EXERCISE={slug}"
)
ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Outcome:
    """The result of one cell: ``ok``, ``error``, ``time``, ``died``, ``unknown`` (it did not run).

    Attributes:
        name: the type of the exception.
        text: its message, or the text that a test shows in place of a traceback.
        line: the number of the cell's line that it comes from, if known.
        code: that line.
    """

    status: str
    name: str = ""
    text: str = ""
    line: int | None = None
    code: str = ""


UNKNOWN = Outcome("unknown")


@dataclass
class Task:
    """A section of the exercise: its heading, its answer cells and its tests, by their names.

    Attributes:
        hidden: what its hidden tests look at, as the visible ones announce it.
    """

    title: str
    answers: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Verdict:
    """``done``, ``not yet`` or ``fails``, and the reason in lines."""

    word: str
    lines: tuple[str, ...] = ()


# --- what there is to do


def tasks(release: NotebookNode) -> list[Task]:
    """The sections of a released exercise that have tests, in order."""
    sections = [Task("The exercise")]
    for cell in release.cells:
        if cell.cell_type == "markdown":
            headings = myst.headings(cell.source)
            sections += [Task(title) for level, title in headings if level == 2]
        elif is_grade(cell):
            sections[-1].tests.append(cell.metadata.nbgrader.grade_id)
            sections[-1].hidden += _announced(cell.source)
        elif is_solution(cell):
            sections[-1].answers.append(cell.metadata.nbgrader.grade_id)
    return [task for task in sections if task.tests]


def _announced(source: str) -> list[str]:
    """What a test cell says with ``probe.also("...")``."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    also = (call for call in calls if ast.unparse(call.func) == "probe.also")
    return [ast.literal_eval(call.args[0]) for call in also]


def steps(data: bytes, release: NotebookNode) -> tuple[list[notebook.Step], list[str]]:
    """The cells to run, up to the last test, as in grading (:mod:`grading.notebook`).

    Args:
        data: the learner's file.
        release: the released exercise.

    Returns:
        The cells, and the names of the locked cells that the learner's copy has otherwise.

    Raises:
        notebook.Reject: if the file is no notebook.
    """
    cells = notebook.parse(data)
    planned = notebook.plan(notebook.rebuild(cells, release), release)
    end = max((at for at, step in enumerate(planned) if step.role == "test"), default=-1)
    texts = dict(zip(notebook.match(cells, release), [cell.source for cell in cells], strict=True))
    locked = {name: cell for name, cell in notebook.marked(release).items() if is_locked(cell)}
    other = [name for name, cell in locked.items() if texts.get(name) != cell.source]
    return planned[: end + 1], other


# --- running it


class Shell:
    """A kernel that is replaced when a cell ends it or cannot be stopped."""

    def __init__(self, folder: Path, seconds: float):
        self.folder, self.seconds = folder, seconds
        self.before: list[str] = []  # what a new kernel has to run again
        self.restarts = 0
        self.manager = None

    def __enter__(self) -> "Shell":
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _open(self) -> None:
        # Sockets in a private folder: over TCP other users could listen, and the kernel warns.
        self.sockets = Path(tempfile.mkdtemp(prefix="check-"))
        self.manager = KernelManager(
            kernel_name="python3",
            transport="ipc",
            ip=str(self.sockets / "s"),
            connection_file=str(self.sockets / "kernel.json"),
        )
        self.manager.start_kernel(cwd=str(self.folder))
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=120)

    def _close(self) -> None:
        if self.manager:
            self.client.stop_channels()
            self.manager.shutdown_kernel(now=True)
            shutil.rmtree(self.sockets, ignore_errors=True)
            self.manager = None

    def run(self, source: str, *, keep: bool) -> Outcome:
        """Run a cell. ``keep`` has it run again in a new kernel, if one is needed later on."""
        if not self.manager:
            return UNKNOWN
        outcome = self._run(source)
        if outcome.status in ("died", "stuck"):
            self._close()
            self.restarts += 1
            if self.restarts <= RESTARTS:
                self._open()
                for earlier in self.before:
                    if self._run(earlier).status in ("died", "stuck"):  # it did not, before
                        self._close()
                        break
        elif keep and outcome.status != "time":
            self.before.append(source)
        return Outcome("time") if outcome.status == "stuck" else outcome

    def _run(self, source: str) -> Outcome:
        """The outcome; ``stuck`` if the cell did not stop when interrupted."""
        message = self.client.execute(source, allow_stdin=False, store_history=False)
        deadline, interrupted, error = time.monotonic() + self.seconds, False, None
        while True:
            if time.monotonic() > deadline:
                if interrupted:
                    return Outcome("stuck")
                self.manager.interrupt_kernel()
                interrupted, deadline = True, time.monotonic() + PATIENCE
            try:
                reply = self.client.get_iopub_msg(timeout=0.5)
            except Empty:
                if not self.manager.is_alive():
                    return Outcome("died")
                continue
            if reply["parent_header"].get("msg_id") != message:
                continue
            if reply["msg_type"] == "error":
                error = reply["content"]
            elif reply["msg_type"] == "status" and reply["content"]["execution_state"] == "idle":
                break
        if interrupted:
            return Outcome("time")
        return _error(error, source) if error else Outcome("ok")


def _error(content: dict, source: str) -> Outcome:
    traceback = ANSI.sub("", "\n".join(content["traceback"]))
    name, text = content["ename"], content["evalue"]
    if (syntax := re.fullmatch(r"(.*) \([^()]*, line (\d+)\)", text, re.DOTALL)) and name in (
        "SyntaxError",
        "IndentationError",
        "TabError",
    ):
        text, line = syntax[1], int(syntax[2])
        try:  # Python's own message is often better than IPython's "incomplete input"
            compile(source, "the cell", "exec")
        except SyntaxError as better:
            text, line = better.msg, better.lineno
    else:
        # IPython marks the line of each frame with an arrow; the cell's own frame comes first.
        arrow = re.search(r"^-+> *(\d+) ", traceback, re.MULTILINE)
        line = int(arrow[1]) if arrow else None
        if len(content["traceback"]) == 1:  # a test shows its message in place of a traceback
            text = traceback.removeprefix(f"{name}: ")
    lines = source.splitlines()
    code = lines[line - 1].strip() if line and line <= len(lines) else ""
    return Outcome("error", name, text, line, code)


# --- saying it


def verdict(task: Task, outcomes: dict[str, Outcome], seconds: float) -> Verdict:
    """What to tell the learner about a task."""
    broken = [outcomes.get(name, UNKNOWN) for name in task.answers]
    broken = [outcome for outcome in broken if outcome.status in ("error", "time", "died")]
    tests = [outcomes.get(name, UNKNOWN) for name in task.tests]
    bad = [outcome for outcome in tests if outcome.status != "ok"]
    if not bad:
        return Verdict("done")
    if broken and not _empty(broken[0]):
        return Verdict("fails", _explain("Your cell", broken[0], seconds))
    if all(map(_empty, tests)):
        return Verdict("not yet", (bad[0].text or "Nothing filled in yet.",))
    passed = len(tests) - len(bad)
    head = (f"{passed} of {len(tests)} tests passed.",) if len(tests) > 1 else ()
    first = next((outcome for outcome in bad if not _empty(outcome)), bad[0])
    return Verdict("fails", head + _explain("Your code, called by the test,", first, seconds))


def _empty(outcome: Outcome) -> bool:
    """Whether the stub's own NotImplementedError is all that came out of it."""
    released_message = outcome.text.startswith("Nothing filled in") or not outcome.text
    return outcome.name == "NotImplementedError" and released_message


def _explain(what: str, outcome: Outcome, seconds: float) -> tuple[str, ...]:
    if outcome.status == "time":
        return (f"{what} ran for {seconds:g} s and was stopped. Is there an endless loop?",)
    if outcome.status == "died":
        return (f"{what} ended Python. Does it call exit(), or take too much memory?",)
    if outcome.status == "unknown":
        return ("Not tried: the cells before it ended Python too often.",)
    if outcome.name == "AssertionError" and outcome.text.startswith("Tried: "):
        return tuple(outcome.text.splitlines())
    lines = [f"{what} stops with {outcome.name}: {outcome.text}".removesuffix(": ")]
    if outcome.code:
        lines.append(f"in line {outcome.line}: {outcome.code}")
    return tuple(lines)


def check(slug: str, seconds: float = SECONDS) -> bool:
    """Run the public tests of one exercise, print what is missing; True if nothing is.

    Raises:
        start.Problem: if the learner's copy is no notebook, or cannot be read.
    """
    path = start.mine(slug)
    where = path.relative_to(start.WORK.parent)
    release = nbformat.read(start.EXERCISES / slug / f"{slug}.ipynb", as_version=4)
    try:
        cells, other = steps(path.read_bytes(), release)
    except notebook.Reject as problem:
        advice = textwrap.fill(ADVICE.format(slug=slug), 98)
        raise start.Problem(f"{where} cannot be checked. {problem}\n{advice}") from None
    except OSError as error:
        raise start.Problem(f"{where} cannot be read: {error.strerror}") from None
    print(f"{where}: running it, {seconds:g} seconds at most for each cell ...", flush=True)
    outcomes = {}
    with Shell(path.parent, seconds) as shell:
        for step in cells:
            outcome = shell.run(step.source, keep=step.role != "test")
            if step.name:
                outcomes[step.name] = outcome
    listed = tasks(release)
    return report(slug, listed, [verdict(task, outcomes, seconds) for task in listed], other)


def report(slug: str, listed: list[Task], verdicts: list[Verdict], other: list[str]) -> bool:
    """Print the result of each task, the count, and anything else the learner should know."""
    for task, each in zip(listed, verdicts, strict=True):
        print(f"  {each.word:<9}{task.title}")
        for line in each.lines:
            print(textwrap.indent(line, " " * 11))
    words = [each.word for each in verdicts]
    done = words.count("done")
    print(f"\n{slug}: {done} of {len(words)} tasks done", end="")
    print("".join(f", {words.count(w)} {w}" for w in ("fails", "not yet") if w in words) + ".")
    finished = [task for task, word in zip(listed, words, strict=True) if word == "done"]
    if finished:
        print("These are the tests that you see. When it is graded, hidden ones look at more:")
        for task in finished:
            about = "; ".join(task.hidden) or "whatever the docstring promises"
            text = f"{task.title}: {about}."
            print(textwrap.fill(text, 98, initial_indent="  ", subsequent_indent="    "))
    if other:
        changed = f"The given cells {', '.join(other)} are not as released in your notebook"
        newer = start.origin(start.mine(slug)) not in (
            None,
            start.fingerprint(start.read(start.EXERCISES / slug / f"{slug}.ipynb")),
        )
        because = ": there is a newer release (make start EXERCISE=... NEW=1)" if newer else ""
        print(textwrap.fill(f"{changed}{because}. The released ones were run, as in grading.", 98))
    return done == len(words)


def main(arguments: list[str] | None = None) -> int:
    """Check; return 0 if all tests pass, 1 if something is missing, 2 if it cannot be checked."""
    parser = argparse.ArgumentParser(
        prog="check", description="Run the public tests of your copies in work/."
    )
    parser.add_argument("exercise", nargs="?", help="such as 05-rope, or 05 in short")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for one cell")
    options = parser.parse_args(arguments)
    try:
        names = start.to_check(options.exercise)
    except start.Problem as problem:
        print(problem, file=sys.stderr)
        return 2
    codes = []
    for name in names:
        if codes:
            print(flush=True)
        try:
            codes.append(0 if check(name, options.seconds) else 1)
        except start.Problem as problem:
            print(problem, file=sys.stderr)
            codes.append(2)
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
