"""The verdict from outside the learner's process is the verdict of a single kernel.

Every answer of the banks is scored twice: in one process, where tests and answer share everything,
and with the answer in a sandbox and the tests outside.
"""

import runpy
from concurrent.futures import ThreadPoolExecutor

import pytest
from nbformat import NotebookNode, from_dict
from nbgrader.utils import determine_grade

from grading import batch
from grading.notebook import Step, answer_names, plan
from grading.runner import pool
from grading.runner.job import Job, Verdict
from tests.halves import some_now
from tools import answers

SLUGS = sorted(path.name for path in answers.BANKS.iterdir() if (path / "wrong").is_dir())
ATTACKED = some_now(SLUGS, ("01-attention", "08-norms", "10-kv-cache"))


def split_scores(slug: str, notebooks: list[NotebookNode]) -> list[dict[str, float]]:
    """The points of each graded cell, for each notebook."""
    source = answers.notebook(slug)
    plans = [plan(notebook, source) for notebook in notebooks]
    names = tuple(answer_names(source))
    # Not in the threads: `ast.parse` of Python 3.11 fails in two at once (cpython, issue 106905).
    jobs = [Job(batch.job_cells(steps), names) for steps in plans]
    with ThreadPoolExecutor(2) as threads:
        verdicts = threads.map(pool.run, jobs)
        return list(map(points_of_cells, notebooks, plans, verdicts))


def points_of_cells(
    notebook: NotebookNode, steps: list[Step], verdict: Verdict
) -> dict[str, float]:
    scores = {}
    for step, outputs in zip(steps, verdict.outputs, strict=True):
        if step.role == "test":
            cell = notebook.cells[step.place]
            cell.outputs = [from_dict(output) for output in outputs]
            scores[cell.id] = float(determine_grade(cell)[0])
    return scores


def attacked(slug: str, attack: str) -> NotebookNode:
    return answers.put_in(answers.attacked(slug, attack), slug)


def compare(slug: str, chosen: list) -> None:
    together = list(answers.score(slug, chosen))
    split = split_scores(slug, [answers.put_in(answer, slug) for answer in chosen])
    differing = {}
    for answer, outcome, scores in zip(chosen, together, split, strict=True):
        if scores != outcome.scores:
            differing[answer.name] = {
                cell: (points, scores.get(cell))
                for cell, points in outcome.scores.items()
                if scores.get(cell) != points
            }
    assert not differing, "answer: {cell: (points in one process, points split)}"


@pytest.mark.parametrize("slug", ["05-rope", "10-kv-cache"])  # functions; objects and callbacks
def test_split_and_single_agree(slug):
    right, wrong = answers.bank(slug, "right"), answers.bank(slug, "wrong")
    compare(slug, [right[0], wrong[0], wrong[len(wrong) // 2]])


@pytest.mark.long
@pytest.mark.parametrize("slug", SLUGS)
def test_split_and_single_agree_on_every_tenth_answer(slug):
    compare(slug, [*answers.bank(slug, "right"), *answers.bank(slug, "wrong")][::10])


@pytest.mark.parametrize("slug", ATTACKED)
def test_writing_into_the_arguments_gains_nothing(slug, tmp_path):
    """The answer is right for the inputs of the tests that learners see. Into all other inputs it
    writes a number, and returns what is right for that number."""
    table = str(tmp_path / "table")
    visible = answers.put_in(answers.attacked(slug, f"noting({table!r})"), slug, "exercises")
    (outcome,) = answers.score_notebooks([visible])
    assert outcome.scores == answers.graded(visible)
    notes = runpy.run_path(str(answers.BANKS / "attack.py"))["notes"](table)
    known = {arguments for _, arguments, *_ in notes}
    for number in ("0.0", "1.0", "nan"):
        attack, copies = split_scores(
            slug,
            [
                attacked(slug, f"overwriting({known}, float('{number}'), {copied})")
                for copied in (False, True)
            ],
        )
        gained = {cell: points for cell, points in attack.items() if points > copies[cell]}
        assert not gained, number


@pytest.mark.parametrize("slug", ATTACKED)
def test_spoiled_arguments_are_told_where_a_test_asks_and_reach_no_other(slug):
    (scores,) = split_scores(slug, [attacked(slug, "spoiling")])
    asking = {c.id for c in answers.notebook(slug).cells if "probe.unchanged(" in c.source}
    points = answers.graded(answers.notebook(slug))
    assert {cell for cell in points if scores[cell] < points[cell]} <= asking
    assert slug != "08-norms" or scores["layer-norm-edges"] == 0
