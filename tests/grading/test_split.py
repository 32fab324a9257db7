"""The verdict from outside the learner's process is the verdict of a single kernel.

Every answer of the banks is scored twice: in one process, where tests and answer share everything,
and with the answer in a sandbox and the tests outside.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest
from nbformat import NotebookNode, from_dict
from nbgrader.utils import determine_grade

from grading import batch
from grading.notebook import answer_names, plan
from grading.runner import pool
from grading.runner.job import Job, Verdict
from tools import answers

SLUGS = sorted(path.name for path in answers.BANKS.iterdir() if (path / "wrong").is_dir())


def split_scores(notebook: NotebookNode, source: NotebookNode) -> tuple[dict[str, float], Verdict]:
    """The points of each graded cell, and the verdict."""
    steps = plan(notebook, source)
    verdict = pool.run(Job(batch.job_cells(steps), tuple(answer_names(source))))
    scores = {}
    for step, outputs in zip(steps, verdict.outputs, strict=True):
        if step.role == "test":
            cell = notebook.cells[step.place]
            cell.outputs = [from_dict(output) for output in outputs]
            scores[cell.id] = float(determine_grade(cell)[0])
    return scores, verdict


def compare(slug: str, chosen: list) -> None:
    source = answers.notebook(slug)
    together = list(answers.score(slug, chosen))
    with ThreadPoolExecutor(2) as threads:
        split = list(threads.map(lambda a: split_scores(answers.put_in(a, slug), source), chosen))
    differing = {}
    for answer, outcome, (scores, _) in zip(chosen, together, split, strict=True):
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
