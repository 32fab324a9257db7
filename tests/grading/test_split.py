"""The verdict from outside the learner's process is the verdict of a single kernel.

Every answer of the banks is scored twice: in one process, where tests and answer share everything,
and with the answer in a sandbox and the tests outside.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest
from nbformat import NotebookNode, from_dict
from nbgrader.utils import determine_grade

from grading import batch
from grading.notebook import Step, answer_names, plan
from grading.runner import pool
from grading.runner.job import Job, Verdict
from tools import answers

SLUGS = sorted(path.name for path in answers.BANKS.iterdir() if (path / "wrong").is_dir())


def split_scores(notebook: NotebookNode, steps: list[Step], verdict: Verdict) -> dict[str, float]:
    """The points of each graded cell."""
    scores = {}
    for step, outputs in zip(steps, verdict.outputs, strict=True):
        if step.role == "test":
            cell = notebook.cells[step.place]
            cell.outputs = [from_dict(output) for output in outputs]
            scores[cell.id] = float(determine_grade(cell)[0])
    return scores


def compare(slug: str, chosen: list) -> None:
    source = answers.notebook(slug)
    together = list(answers.score(slug, chosen))
    notebooks = [answers.put_in(answer, slug) for answer in chosen]
    plans = [plan(notebook, source) for notebook in notebooks]
    names = tuple(answer_names(source))
    # Not in the threads: `ast.parse` of Python 3.11 fails in two at once (cpython, issue 106905).
    jobs = [Job(batch.job_cells(steps), names) for steps in plans]
    with ThreadPoolExecutor(2) as threads:
        verdicts = list(threads.map(pool.run, jobs))
    differing = {}
    for answer, outcome, *split in zip(chosen, together, notebooks, plans, verdicts, strict=True):
        scores = split_scores(*split)
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
def test_split_and_single_agree_on_every_answer(slug):
    compare(slug, [*answers.bank(slug, "right"), *answers.bank(slug, "wrong")])
