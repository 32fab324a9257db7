"""The verdict from outside the learner's process is the verdict of a single kernel.

Every answer of the banks is scored twice: in one process, where tests and answer share everything,
and with the answer in a sandbox and the tests outside.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest
from nbformat import NotebookNode, from_dict
from nbgrader.utils import determine_grade

from grading import engine
from grading.work import Limits
from tools import answers

SLUGS = sorted(path.name for path in answers.BANKS.iterdir() if (path / "wrong").is_dir())


def split_scores(notebook: NotebookNode, source: NotebookNode) -> tuple[dict[str, float], dict]:
    """The points of each graded cell, and the verdict."""
    places, planned = engine.plan(notebook, source)
    mode = {"sandboxed": True, "gpu": False}
    work = engine.job(planned, rules="", secret=b"", limits=Limits(), pictures=False, mode=mode)
    work["salt"] = ""
    verdict = engine.run(work)
    scores = {}
    for place, outputs in zip(places, verdict["outputs"], strict=True):
        cell = notebook.cells[place]
        if cell.metadata.get("nbgrader", {}).get("grade"):
            cell.outputs = [from_dict(output) for output in outputs]
            scores[cell.id] = float(determine_grade(cell)[0])
    return scores, verdict


def compare(slug: str, chosen: list) -> None:
    source = answers.notebook(slug)
    together = list(answers.score(slug, chosen))
    with ThreadPoolExecutor(2) as pool:
        split = list(pool.map(lambda a: split_scores(answers.put_in(a, slug), source), chosen))
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
