"""From a clean notebook to its verdict, its scores and its feedback page: all but the writing.

:func:`evaluate` is what a batch does for each submission, several at a time, here or on the workers
of a cluster. It has the job run (:mod:`grading.runner`), scores what came out, and has the graded
copy and the page made in a process of their own (:func:`render`), because that takes longer than
everything that the one process that writes has to do.
"""

import json
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_notebook
from nbgrader.preprocessors import AssignLatePenalties, LimitOutput
from nbgrader.utils import compute_checksum, determine_grade, is_grade, is_solution, is_task
from traitlets.config import Config

from grading import feedback, mistakes
from grading.feedback import BLANK, About
from grading.runner import pool
from grading.runner.job import Job, Verdict

RENDER_SECONDS = 240  # all that is slow has limits of its own (grading.rendering)
ABOUT = About()
NOT_RUN = "[Not run when graded: nothing depends on this cell.]\n"


@dataclass(frozen=True)
class Standing:
    """What a gradebook says of a submission besides the tests.

    Attributes:
        late: by how many seconds it came after its due date; 0 if it did not, or there is none.
        manual: scores given by hand, by graded cell.
        extra: extra credit, by graded cell.
        comments: comments written by hand, by the cell that they are about.
        due: until when it may be handed in (UTC), with its author's extension.
        handed_in: when it was handed in (UTC), if that is known.
        name: first and last name of its author, as far as they are known.
    """

    late: float = 0.0
    manual: dict[str, float] = field(default_factory=dict)
    extra: dict[str, float] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    due: datetime | None = None
    handed_in: datetime | None = None
    name: str = ""

    def about(self, learner: str) -> About:
        """What the learner's page says at its top."""
        return About.of(self.name or learner, self.handed_in, self.due)


@dataclass(frozen=True)
class Task:
    """One submission to evaluate.

    Attributes:
        learner: whose it is.
        assignment: of which assignment.
        notebook: the clean notebook, as JSON.
        places: the indices of the cells that the job runs.
        job: what to run.
        verdict: the verdict, if the job was run before.
        checksums: of the cells as they were released; an answer that still has its checksum is
            none.
        max_score: of the assignment.
        standing: what the gradebook says.
        config: the course's configuration.
        hints: what is needed to name mistakes on the page; None to name none.
    """

    learner: str
    assignment: str
    notebook: str
    places: tuple[int, ...]
    job: Job
    verdict: Verdict | None
    checksums: dict[str, str]
    max_score: float
    standing: Standing
    config: Config
    hints: mistakes.Wanted | None = None


@dataclass(frozen=True)
class Outcome:
    """What is stored for a submission.

    Attributes:
        verdict: how the job ended.
        scores: the tests' points, by graded cell; None where a person has to decide.
        blank: the names of the cells that were handed in as they were released.
        penalty: points that being late costs; None if it was not late.
        notebook: the graded copy, as JSON.
        page: the feedback page, as HTML.
    """

    verdict: Verdict
    scores: dict[str, float | None]
    blank: list[str]
    penalty: float | None
    notebook: str
    page: str


def evaluate(task: Task) -> Outcome:
    """Run, score and render a submission.

    Raises:
        ForkServerError: if there is no verdict or no page, for a reason that is not the
            submission's.
    """
    verdict = task.verdict if task.verdict is not None else pool.run(task.job)
    notebook = nbformat.from_dict(json.loads(task.notebook))
    fill(notebook, task.places, verdict.outputs)
    cells = {cell.metadata.nbgrader.grade_id: cell for cell in graded(notebook)}
    scores = {name: score(cell, task.checksums.get(name)) for name, cell in cells.items()}
    points = {name: counted(task.standing, name, value) for name, value in scores.items()}
    penalty = late_penalty(task, sum(points.values()))
    blank = [
        name
        for name, cell in named(notebook).items()
        if is_solution(cell) and compute_checksum(cell) == task.checksums.get(name)
    ]
    by_hand = task.standing.manual
    waiting = tuple(name for name, value in scores.items() if value is None and name not in by_hand)
    if task.hints is not None:  # in the graded copy, so that every later page has them too
        notebook.metadata["hints"] = mistakes.hints(task.hints, verdict)
    rendered = _render(
        notebook,
        task.assignment,
        points=points,
        max_score=task.max_score,
        penalty=penalty or 0.0,
        comments={name: BLANK for name in blank} | task.standing.comments,
        about=replace(task.standing.about(task.learner), waiting=waiting),
        config=task.config,
    )
    return Outcome(verdict, scores, blank, penalty, **rendered)


def refuse(
    assignment: str, reason: str, max_score: float, config: Config, about: About = ABOUT
) -> Outcome:
    """The outcome without points; the copy and the page say why."""
    rendered = _render(
        feedback.refusal(reason),
        assignment,
        points={},
        max_score=max_score,
        penalty=0.0,
        comments={},
        about=about,
        config=config,
    )
    return Outcome(Verdict(), {}, [], None, **rendered)


def _render(
    notebook: NotebookNode, assignment: str, *, config: Config, about: About = ABOUT, **shown
) -> dict[str, str]:
    """Call :func:`render` in a process of its own."""
    argument = shown | {"notebook": notebook, "assignment": assignment, "about": asdict(about)}
    argument["config"] = json.loads(json.dumps(config, default=str))
    argument["server"] = pool.fork_server("grading.rendering").path
    return pool.call("grading.evaluate", "render", argument, RENDER_SECONDS)


def render(argument: dict) -> dict:
    """The graded copy and the feedback page; called in a process of its own."""
    config, about = Config(argument.pop("config")), About(**argument.pop("about"))
    notebook = nbformat.from_dict(argument.pop("notebook"))
    notebook, _ = LimitOutput(config=config).preprocess(notebook, {})
    copy = nbformat.writes(notebook)
    page = feedback.page(notebook, **argument, about=about, config=config)
    return {"notebook": copy, "page": page}


def prepare() -> None:
    """Import and compile what a page needs, before any fork."""
    shown = {"points": {}, "max_score": 0.0, "penalty": 0.0, "comments": {}, "about": {}}
    render({"notebook": new_notebook(), "assignment": "", "config": {}} | shown)


def fill(notebook: NotebookNode, places: tuple[int, ...], outputs: list[list[dict]]) -> None:
    """Put each cell's outputs in their place, and mark the other cells as not run.

    Of a graded cell only an error decides: nbgrader would also read a score from a displayed
    number, and zero from any text on stderr (a warning in correct code). So a displayed value
    goes, and stderr becomes ordinary text.
    """
    by_place = dict(zip(places, outputs, strict=True))
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        shown = by_place.get(place)
        cell.execution_count = None if shown is None else place + 1
        if shown is None and cell.source.strip():
            shown = [{"output_type": "stream", "name": "stdout", "text": NOT_RUN}]
        cell.outputs = [nbformat.from_dict(output) for output in shown or []]
        if is_grade(cell):
            cell.outputs = [out for out in cell.outputs if out.output_type != "execute_result"]
            for output in cell.outputs:
                if output.output_type == "stream":
                    output.name = "stdout"


def named(notebook: NotebookNode) -> dict[str, NotebookNode]:
    """The cells that nbgrader knows, by name."""
    marks = [(cell.metadata.get("nbgrader", {}), cell) for cell in notebook.cells]
    return {mark["grade_id"]: cell for mark, cell in marks if mark}


def graded(notebook: NotebookNode) -> list[NotebookNode]:
    """The cells that give points."""
    return [cell for cell in notebook.cells if is_grade(cell) or is_task(cell)]


def score(cell: NotebookNode, released: str | None) -> float | None:
    """The points of a graded cell by nbgrader's rule; None where a person has to decide."""
    if is_task(cell):
        return None
    marks = cell.metadata.nbgrader
    cell.metadata.nbgrader = marks | ({"checksum": released} if released else {})
    try:
        points = determine_grade(cell)[0]
    finally:
        cell.metadata.nbgrader = marks
    return None if points is None else float(points)


def late_penalty(task: Task, points: float) -> float | None:
    """What being late costs, by the course's plug-in: between 0 and the points there are."""
    if task.standing.late <= 0:
        return None
    rule = AssignLatePenalties(config=task.config)
    rule.init_plugin()
    penalty = rule.plugin_inst.late_submission_penalty(task.learner, points, task.standing.late)
    return None if penalty is None else min(max(0.0, penalty), points)


def counted(standing: Standing, name: str, automatic: float | None) -> float:
    """What a cell counts: a score given by hand before the tests', and extra credit."""
    points = standing.manual.get(name, automatic)
    return 0.0 if points is None else points + standing.extra.get(name, 0.0)
