"""Which known mistake a failing answer makes, judged by everything that its checks report.

A graded cell stops at its first failing check, and its inputs differ from submission to submission.
Neither can be compared. So a *diagnosis* runs a notebook once more, in the sandbox as always: each
check becomes a cell of its own, so that all of them report, and all notebooks get the same draw
(:data:`SALT`). What the checks of a task report, with the first wrong number of each, is a pattern.

The answer bank (``tests/answers/NN-slug/wrong``) is diagnosed in the same way. A task whose pattern
equals that of a banked answer *exactly* gets its name (:meth:`Bank.name`); similar patterns are no
evidence. It stays without a name if

- the pattern belongs to banked answers that mean different things;
- fewer than two failing checks report a value that the answer computed: "an argument was changed"
  or one rounded number fits too many mistakes;
- the answer uses a function of another task that fails as well, and so may only pass that on.

``tests/answers/chapters.json`` says where the chapter treats each task, and which banked answers
are the same mistake (``shared``: a sentence that is true of all of them).
"""

import ast
import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode
from nbgrader.utils import is_grade, is_solution
from traitlets import Bool, Unicode
from traitlets.config import Configurable

from grading import storage
from grading.course import Course
from grading.notebook import Step, answer_names, defined_names, name_of, plan
from grading.runner import pool
from grading.runner.job import Cell, Job, Limits, Verdict

SALT = "the draw of all diagnoses"
EMPTY = "NotImplementedError: "  # what a check reports of a stub
MAX_MESSAGE = 1500
MARK = re.compile(r"^### (BEGIN|END) HIDDEN TESTS$")
PLACE = re.compile(r"\nin line \d+ of the cell, in `.*")  # how it was written, not what it does
# A value that the answer computed, in a check's message: numbers, not shapes, types or None.
VALUE = re.compile(r": got (?:-?\d|-?inf|nan|True|False)")
FOLDER = Path("tests/answers")  # of the course's folder


class Hints(Configurable):
    """Settings, in ``nbgrader_config.py``.

    ``c.Hints.on_feedback = True`` puts the names of mistakes on learners' pages too.
    """

    on_feedback = Bool(False, help="name known mistakes on learners' pages").tag(config=True)
    book = Unicode("", help="address of the published book, for links").tag(config=True)


# --- tasks and checks


@dataclass(frozen=True)
class Answer:
    """One file of a bank, or an answer made by a program.

    Attributes:
        name: of the file.
        about: what the mistake is, or in which way it is right.
        cells: the cells that it replaces: cell id to source.
        loses: the graded cells that must give no points.
    """

    name: str
    about: str
    cells: dict[str, str]
    loses: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Task:
    """A section of an assignment that has tests.

    Attributes:
        title: its heading.
        answers: the names of the cells that the learner writes.
        tests: the names of the graded cells.
        defines: the names that the instructor's answers define.
    """

    title: str
    answers: tuple[str, ...]
    tests: tuple[str, ...]
    defines: tuple[str, ...]


@dataclass(frozen=True)
class Check:
    """One test inside a graded cell.

    Attributes:
        task: the number of its task, from 0.
        cell: the graded cell's name.
        tried: what it tries, in its own words.
        hidden: whether learners do not see it.
        source: its code, with what stands before it in the cell.
    """

    task: int
    cell: str
    tried: str
    hidden: bool
    source: str


def tasks(source: NotebookNode) -> list[Task]:
    """The sections (``##``) of the instructor's notebook that have tests."""
    sections: list[tuple[str, list, list, list]] = [("The assignment", [], [], [])]
    for cell in source.cells:
        if cell.cell_type == "markdown":
            if heading := re.search(r"^## +(.*)$", cell.source, re.MULTILINE):
                sections.append((heading[1].strip(), [], [], []))
        elif is_grade(cell):
            sections[-1][2].append(name_of(cell))
        elif is_solution(cell):
            sections[-1][1].append(name_of(cell))
            sections[-1][3].extend(defined_names(cell.source))
    return [
        Task(title, tuple(answers), tuple(tests), tuple(names))
        for title, answers, tests, names in sections
        if tests
    ]


def checks(source: NotebookNode) -> list[Check]:
    """The tests of the instructor's notebook, in order."""
    number = {name: place for place, task in enumerate(tasks(source)) for name in task.tests}
    return [
        Check(number[name_of(cell)], name_of(cell), *parts)
        for cell in source.cells
        if cell.cell_type == "code" and is_grade(cell) and not is_solution(cell)
        for parts in _split(cell.source)
    ]


def _split(source: str) -> list[tuple[str, bool, str]]:
    """A test cell's checks: what each tries, whether it is hidden, and its code.

    A check is a function under ``@probe.check("...")``, or an `assert`. What stands between two of
    them belongs to the later one.
    """
    lines = source.splitlines(keepends=True)
    hidden, inside = [], False
    for line in lines:
        if mark := MARK.match(line.strip()):
            inside = mark[1] == "BEGIN"
        hidden.append(inside)
    checks, start = [], 0
    for node in ast.parse(source).body:
        if tried := _tried(node):
            end = node.end_lineno
            checks.append((tried, hidden[node.lineno - 1], "".join(lines[start:end])))
            start = end
    return checks


def _tried(node: ast.stmt) -> str:
    if isinstance(node, ast.Assert):
        return ast.unparse(node.test)
    for call in getattr(node, "decorator_list", []):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "probe.check":
            return ast.literal_eval(call.args[0])
    return ""


# --- a diagnosis


def job(steps: list[Step], source: NotebookNode, wanted: Iterable[Check], limits: Limits) -> Job:
    """The job in which each wanted check reports.

    Args:
        steps: the plan of the notebook.
        source: the instructor's notebook.
        wanted: the checks, in order; all others are left out.
        limits: what the run may use.
    """
    wanted, cells = list(wanted), []
    for step in steps:
        if step.role == "test":
            cells += [Cell(each.source, "test") for each in wanted if each.cell == step.name]
        else:
            defines = tuple(defined_names(step.source)) if step.role == "given" else ()
            cells.append(Cell(step.source, step.role, defines))
    return Job(tuple(cells), tuple(answer_names(source)), SALT, limits)


def diagnose(what: Job) -> list[str]:
    """Run a diagnosis; what each check reports, empty for one that passes.

    Raises:
        ForkServerError: if there is no verdict, for a reason that is not the submission's.
    """
    verdict = pool.run(what)
    return reported(what, verdict)


def reported(what: Job, verdict: Verdict) -> list[str]:
    """What each check of a job reports, without the line of the answer that an error came from."""
    return [
        _message(outputs)
        for cell, outputs in zip(what.cells, verdict.outputs, strict=True)
        if cell.role == "test"
    ]


def _message(outputs: list[dict]) -> str:
    for output in outputs:
        if output["output_type"] == "error":
            return PLACE.sub("", f"{output['ename']}: {output['evalue']}")[:MAX_MESSAGE]
    return ""


def key(what: Job) -> str:
    """A hash of all that a diagnosis depends on."""
    return hashlib.sha256(f"{_runner()} {what.to_json()}".encode()).hexdigest()


@functools.cache
def _runner() -> str:
    """A hash of what runs a job."""
    digest = hashlib.sha256()
    for path in sorted((Path(__file__).parent / "runner").glob("*.py")):
        digest.update(path.read_bytes())
    for package in ("numpy", "torch"):
        try:
            digest.update(f"{package}=={importlib.metadata.version(package)}".encode())
        except importlib.metadata.PackageNotFoundError:
            digest.update(f"no {package}".encode())
    return digest.hexdigest()


# --- the bank


def read(path: Path) -> Answer:
    """Read one file of a bank.

    Raises:
        ValueError: if the header or the cell markers are missing.
    """
    text = path.read_text(encoding="utf-8")
    about = (ast.get_docstring(ast.parse(text)) or "").strip()
    top, *parts = re.split(r"^# %% (\S+)\n", text, flags=re.MULTILINE)
    if not about or not parts:
        raise ValueError(f"{path} needs a docstring and at least one line `# %% cell-id`")
    imports = "\n".join(re.findall(r"^(?:import|from) .*$", top, re.MULTILINE))
    cells = {
        name: f"{imports}\n\n{body}".strip()
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }
    loses = re.search(r"^Loses: (.*)$", about, re.MULTILINE)
    if (path.parent.name == "wrong") != bool(loses):
        raise ValueError(f"{path}: a wrong answer, and no other, has a line `Loses: cell-id, ...`")
    names = frozenset(loses[1].split(", ")) if loses else frozenset()
    return Answer(path.stem, about.split("\n\n")[0].replace("\n", " "), cells, names)


@dataclass(frozen=True)
class Name:
    """A known mistake.

    Attributes:
        about: what it is, in a sentence.
        section: the heading of the chapter's section that treats it; empty if unknown.
        page: that section's address within the book.
        answers: the banked answers with this pattern.
    """

    about: str
    section: str = ""
    page: str = ""
    answers: tuple[str, ...] = ()

    def link(self, book: str) -> str:
        """The address of the section; empty if the book's is."""
        return f"{book.rstrip('/')}/{self.page}" if book and self.page else ""


@dataclass
class Bank:
    """The patterns of an assignment's wrong answers.

    Attributes:
        tasks: of the assignment.
        checks: of the assignment, in order.
        chapter: the assignment's chapter, as a file of the book without its ending.
        sections: for cells (answers, or graded ones that need another section) a heading.
        shared: sentences, and the answers that each is true of.
        patterns: the answers with a pattern, by task and pattern.
    """

    tasks: list[Task]
    checks: list[Check]
    chapter: str = ""
    sections: dict[str, str] = field(default_factory=dict)
    shared: list[tuple[str, frozenset[str]]] = field(default_factory=list)
    patterns: dict[tuple[int, tuple[str, ...]], list[Answer]] = field(default_factory=dict)

    def add(self, answer: Answer, results: Mapping[Check, str]) -> None:
        """Add a wrong answer by what its checks report, for each task whose cells it replaces."""
        for number in _replaced(answer, self.tasks):
            pattern = tuple(results[each] for each in self.checks if each.task == number)
            if any(pattern):
                self.patterns.setdefault((number, pattern), []).append(answer)

    def name(self, number: int, pattern: tuple[str, ...], without: str = "") -> Name | None:
        """The mistake behind a task's pattern; None unless there is exactly one that it can be.

        Args:
            number: of the task.
            pattern: what the task's checks report.
            without: an answer of the bank to be left out.
        """
        answers = [a for a in self.patterns.get((number, pattern), []) if a.name != without]
        names = frozenset(answer.name for answer in answers)
        sentence = next((about for about, those in self.shared if names and names <= those), "")
        if not sentence and len(names) == 1 and tells(pattern):
            sentence = answers[0].about
        if not sentence:
            return None
        task = self.tasks[number]
        cells = [each.cell for each in self.checks if each.task == number]
        failed = [cell for cell, message in zip(cells, pattern, strict=True) if message]
        where = (self.sections.get(cell) for cell in (failed[0], *task.answers))
        section = next(filter(None, where), "")
        page = f"{self.chapter}.html#{anchor(section)}" if section else ""
        return Name(sentence, section, page, tuple(sorted(names)))

    def kind(self, answer: Answer) -> str:
        """The mistake that an answer makes: equal for answers that make the same."""
        those = (about for about, names in self.shared if answer.name in names)
        return next(those, answer.about)


def tells(pattern: Iterable[str]) -> bool:
    """Whether a pattern is evidence: two or more failing checks report a computed value."""
    return sum(bool(VALUE.search(message)) for message in pattern) >= 2


def anchor(heading: str) -> str:
    """A heading's address within its page, as Sphinx makes it."""
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def _replaced(answer: Answer, parts: list[Task]) -> list[int]:
    return [number for number, task in enumerate(parts) if answer.cells.keys() & set(task.answers)]


def answer_job(answer: Answer, source: NotebookNode, limits: Limits) -> tuple[Job, list[Check]]:
    """The diagnosis of an answer in place of the solutions, and the checks that report."""
    numbers = _replaced(answer, tasks(source))
    wanted = [each for each in checks(source) if each.task in numbers]
    steps = [
        dataclasses.replace(step, source=answer.cells.get(step.name, step.source))
        for step in plan(source, source)
    ]
    return job(steps, source, wanted, limits), wanted


def bank(
    course: Course, assignment: str, source: NotebookNode, workers: Executor, limits: Limits
) -> Bank:
    """An assignment's bank, diagnosed; empty if the course's folder has none.

    What was diagnosed before and has not changed is read from ``_build/mistakes/``.

    Raises:
        ForkServerError: if an answer cannot be run.
        OSError: if the results cannot be written.
    """
    made = Bank(tasks(source), checks(source), assignment)
    folder = course.root / FOLDER
    try:
        facts = json.loads((folder / "chapters.json").read_text(encoding="utf-8"))[assignment]
    except (OSError, KeyError):
        facts = {}
    made.sections = facts.get("sections", {})
    made.shared = [(each["about"], frozenset(each["answers"])) for each in facts.get("shared", [])]
    answers = [read(path) for path in sorted((folder / assignment / "wrong").glob("*.py"))]
    path = course.root / "_build" / "mistakes" / f"{assignment}.json"
    known, current = cached(path), {}
    runs = []
    for answer in answers:
        what, wanted = answer_job(answer, source, limits)
        reports = known.get(key(what))
        runs.append((answer, key(what), wanted, reports or workers.submit(diagnose, what)))
    for answer, name, wanted, run in runs:
        current[name] = run if isinstance(run, list) else run.result()
        made.add(answer, dict(zip(wanted, current[name], strict=True)))
    if current != known:
        storage.write(path, json.dumps(current, indent=1))
    return made


def cached(path: Path) -> dict[str, list[str]]:
    """Diagnoses in a file, by key; none if it cannot be read."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stored if isinstance(stored, dict) else {}


# --- the names of a submission's mistakes


def names(known: Bank, results: Mapping[Check, str], sources: Mapping[str, str]) -> dict[int, Name]:
    """The mistakes of a submission that have a name, by the number of the task.

    Args:
        known: the bank.
        results: what each of its checks reports; a check that is missing has not passed.
        sources: the code of the learner's cells, by name.
    """
    patterns = {
        number: tuple(results.get(each, "?") for each in known.checks if each.task == number)
        for number in range(len(known.tasks))
    }
    names = {}
    for number, task in enumerate(known.tasks):
        if not any(patterns[number]):
            continue
        own = "\n".join(sources.get(name, "") for name in task.answers)
        others = {
            name
            for other, pattern in patterns.items()
            for name in known.tasks[other].defines
            if other != number and any(pattern)
        }
        if others & set(re.findall(r"\w+", own)):
            continue
        if name := known.name(number, patterns[number]):
            names[number] = name
    return names


def sources(notebook: NotebookNode, parts: list[Task]) -> dict[str, str]:
    """The code of the cells that a learner writes, by name."""
    wanted = {name for task in parts for name in task.answers}
    return {name: cell.source for cell in notebook.cells if (name := name_of(cell)) in wanted}


@dataclass(frozen=True)
class Wanted:
    """What a learner's page needs to name mistakes.

    Attributes:
        bank: the patterns.
        job: the diagnosis of the submission.
        sources: the code of the learner's cells, by name.
        book: the address of the published book; may be empty.
    """

    bank: Bank
    job: Job
    sources: dict[str, str]
    book: str = ""


def hints(wanted: Wanted, verdict: Verdict) -> dict[str, list[tuple[str, str]]]:
    """For graded cells, by name, the hints of a learner's page: sentences, with links or "".

    Args:
        wanted: what is needed.
        verdict: of the grading; where no cell ended with an error, nothing is run.

    Raises:
        ForkServerError: if there is no verdict, for a reason that is not the submission's.
    """
    ours = wanted.bank.checks
    if not any(map(_message, verdict.outputs)):
        return {}
    results = dict(zip(ours, diagnose(wanted.job), strict=True))
    made = {}
    for number, name in names(wanted.bank, results, wanted.sources).items():
        text = name.about
        if name.section:
            text += f" Section “{plain(name.section)}” of the chapter is about this."
        for cell in wanted.bank.tasks[number].tests:
            if any(results[each] for each in ours if each.cell == cell):
                made[cell] = [(text, name.link(wanted.book))]
    return made


def plain(heading: str) -> str:
    """A heading without the signs of Markdown and TeX around its formulas."""
    return re.sub(r"\\([a-z]+)\b|[$\\{}*_`]", lambda match: match[1] or "", heading)
