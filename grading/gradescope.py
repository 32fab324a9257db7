"""Grade the one submission of a Gradescope container: ``python -m grading.gradescope /autograder``.

The folder has what Gradescope's documentation of autograders describes ("Autograder
specifications"): the unpacked zip in ``source/``, what was handed in in ``submission/``, and
``results/results.json`` as what comes out. The zip is made by :mod:`tools.gradescope`: this
package, the assignment with its tests and without solutions, and ``settings.json``. What is graded,
and how, is the same as in a batch; there is no gradebook and no page.

Where bubblewrap can make a sandbox the code runs in it. Where it cannot, and this is root, the code
runs as a user of its own (:mod:`grading.runner.apart`), and the results say so. Otherwise nothing
is graded.

Exit status: 0 there are results, 1 there are none, for a reason that is not the submission's. Only
instructors see what is printed.
"""

import hmac
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path

import nbformat
from nbconvert.filters import strip_ansi
from nbformat import NotebookNode

from grading import evaluate, storage, submission
from grading.batch import job_cells
from grading.notebook import Reject, Step, answer_names, plan, rebuild
from grading.runner import forkserver, pool, sandbox
from grading.runner.forkserver import ForkServer, ForkServerError
from grading.runner.job import Job, Limits, Verdict
from grading.submission import printable

LEARNER = "submission"  # the folder's name stands for the learner, whom nobody names here
ASSIGNMENT, SETTINGS = "assignment.ipynb", "settings.json"
MAX_MESSAGE, MAX_OUTPUT = 4000, 20_000  # characters of a test, and of all that is not a test's
SANDBOX, ACCOUNT = "sandbox", "account"
NOT_ISOLATED = (
    "Not isolated: this machine makes no sandbox. The code ran as a user of its own, without "
    "rights and without a network, and could not read the tests. Other files of this container "
    "it could read."
)


def clean(text: str, limit: int = MAX_MESSAGE) -> str:
    """A message as plain text: no terminal codes, no invisible characters, not too long."""
    text = printable(strip_ansi(text), keep="\n")
    return text if len(text) <= limit else f"{text[:limit]}\n[the rest is left out]"


def verdict_of(job: Job) -> tuple[Verdict, str]:
    """Run a job; return the verdict and how its code was isolated.

    Raises:
        ForkServerError: if there is no verdict, for a reason that is not the submission's.
        NoSandbox: if the code cannot be isolated at all.
    """
    try:
        sandbox.check()
    except sandbox.NoSandbox:
        if not sys.platform.startswith("linux") or os.geteuid() != 0:
            raise
    else:
        return pool.run(job), SANDBOX
    server = ForkServer(program="grading.runner.apart")
    server.start()
    try:
        seconds = job.limits.wall_seconds + pool.SPARE_SECONDS
        return forkserver.ask(server.path, job, seconds), ACCOUNT
    finally:
        server.close()


def job_of(source: NotebookNode, steps: list[Step], settings: dict) -> Job:
    """The run of a notebook; the tests' random draws follow from its code and the zip's secret."""
    cells = job_cells(steps)
    text = repr([asdict(cell) for cell in cells]).encode()
    secret = bytes.fromhex(settings["secret"])
    return Job(
        cells=cells,
        names=tuple(answer_names(source)),
        salt=hmac.new(secret, text, "sha256").hexdigest(),
        limits=Limits(**settings["limits"]),
    )


def message(cell: NotebookNode) -> str:
    """What the errors of a cell say, without tracebacks, which show tests."""
    errors = [out for out in cell.get("outputs", []) if out.output_type == "error"]
    return clean("\n".join(f"{error.ename}: {error.evalue}" for error in errors))


def tests(notebook: NotebookNode, settings: dict) -> list[dict]:
    """Gradescope's entry for each graded cell of a notebook that was run."""
    entries = []
    for number, cell in enumerate(evaluate.graded(notebook), 1):
        name, best = cell.metadata.nbgrader.grade_id, float(cell.metadata.nbgrader.points)
        points = evaluate.score(cell, None) or 0.0
        entries.append(
            {
                "name": name,
                "number": str(number),
                "score": points,
                "max_score": best,
                "status": "passed" if points == best else "failed",
                "output": message(cell),
                "output_format": "text",
                "visibility": settings["visibility"][name],
            }
        )
    return entries


def results(entries: list[dict], lines: list[str], seconds: float, isolation: str) -> dict:
    """Gradescope's results.

    Args:
        entries: of the tests.
        lines: what to say of the submission as a whole.
        seconds: that it took.
        isolation: how the code was isolated; empty if none was run.
    """
    return {
        "score": sum(entry["score"] for entry in entries),
        "execution_time": round(seconds),
        "output": clean("\n".join(lines), MAX_OUTPUT),
        "output_format": "text",
        "stdout_visibility": "hidden",
        "extra_data": {"isolation": isolation},
        "tests": entries,
    }


def grade(root: Path) -> dict:
    """Grade the submission in ``root/submission``.

    Raises:
        ForkServerError, NoSandbox: if it cannot be graded here and now.
    """
    start = time.monotonic()
    settings = json.loads((root / "source" / SETTINGS).read_text(encoding="utf-8"))
    source = nbformat.read(root / "source" / ASSIGNMENT, as_version=4)
    try:
        handed_in = submission.collect(root / LEARNER, LEARNER, settings["assignment"])
        notebook = rebuild(submission.cells(handed_in), source)
        steps = plan(notebook, source)
    except Reject as reject:
        unrun = rebuild([], source)
        nothing = [
            entry | {"score": 0.0, "status": "failed", "output": ""}
            for entry in tests(unrun, settings)
        ]
        lines = [f"This file could not be graded. {reject}"]
        return results(nothing, lines, time.monotonic() - start, "")
    verdict, isolation = verdict_of(job_of(source, steps, settings))
    evaluate.fill(notebook, tuple(step.place for step in steps), verdict.outputs)
    lines = [NOT_ISOLATED] if isolation == ACCOUNT else []
    lines += verdict.notes
    for step in steps:
        error = message(notebook.cells[step.place]) if step.role == "answer" else ""
        if error:
            lines.append(f"Your cell {step.name or step.place + 1} stops with {error}")
    return results(tests(notebook, settings), lines, time.monotonic() - start, isolation)


@storage.private_files()
def main(root: Path) -> int:
    target = root / "results" / "results.json"
    target.unlink(missing_ok=True)
    try:
        graded = grade(root)
    except (ForkServerError, sandbox.NoSandbox, OSError) as problem:
        print(f"not graded, and no score written: {problem}")
        return 1
    storage.write(target, json.dumps(graded, indent=1))
    print(
        f"graded: {graded['score']:g} points, isolation: {graded['extra_data']['isolation'] or '-'}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
