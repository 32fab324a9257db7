"""nbgrader's step of execution: the verdict on a submission's cells, and what of it counts.

It stands in nbgrader's own list of preprocessors, so that `nbgrader autograde` and the formgrader
grade as the batch does: learner's code in a sandbox, tests in another process.
"""

from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades
from nbgrader.utils import is_grade
from traitlets import Bool, Float, Int

from grading import engine
from grading.course import Course
from grading.work import Limits


class RunCells(NbGraderPreprocessor):
    """Run the cells of one submission, and put the outputs in their places."""

    timeout = Float(30.0, help="seconds for one cell").tag(config=True)
    total_timeout = Float(300.0, help="seconds that all cells together may take").tag(config=True)
    memory = Float(2.0, help="GB of memory for a submission's processes together").tag(config=True)
    processes = Int(64, help="processes that a submission may have at a time").tag(config=True)
    disk = Float(64.0, help="MB that a submission may write").tag(config=True)
    sandbox = Bool(True, help="False: learners' code runs with your rights").tag(config=True)
    gpu = Bool(False, help="let submissions use the machine's GPU").tag(config=True)

    def limits(self) -> Limits:
        return Limits(
            cell_seconds=self.timeout,
            total_seconds=self.total_timeout,
            memory=int(self.memory * 2**30),
            processes=self.processes,
            disk=int(self.disk * 2**20),
        )

    def job(
        self, nb: NotebookNode, source: NotebookNode, rules: str, secret: bytes
    ) -> tuple[list[int], dict]:
        """What is to be run of a clean notebook: the cells' places, and the job."""
        places, planned = engine.plan(nb, source)
        mode = {"sandboxed": self.sandbox, "gpu": self.gpu}
        work = engine.job(
            planned,
            rules=rules,
            secret=secret,
            limits=self.limits(),
            pictures=engine.looked_at(source),
            mode=mode,
        )
        return places, work

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        assignment = resources["nbgrader"]["assignment"]
        course = Course(Path(self.parent.parent.coursedir.root), self.config)
        source = course.notebook(assignment)
        rules = course.fingerprint(assignment) + ("" if self.sandbox else " no sandbox")
        places, work = self.job(nb, source, rules, engine.course_secret(course.root))
        stored = engine.Verdicts(course.progress(assignment) / "verdicts")
        verdict = stored.get(work["key"])
        if verdict is None:
            verdict = engine.run(work)
        fill(nb, places, verdict["outputs"])
        resources["nbgrader"]["notes"] = verdict["notes"]
        return nb, resources


def fill(nb: NotebookNode, places: list[int], outputs: list[list[dict]]) -> None:
    """Put each cell's outputs in its place, and say of the others that they were not run."""
    by_place = dict(zip(places, outputs, strict=True))
    for place, cell in enumerate(nb.cells):
        if cell.cell_type != "code":
            continue
        found = by_place.get(place)
        cell.execution_count = None if found is None else place + 1
        if found is None and cell.source.strip():
            found = [{"output_type": "stream", "name": "stdout", "text": engine.NOT_RUN}]
        cell.outputs = [nbformat.from_dict(output) for output in found or []]


class KeepVerdict(NbGraderPreprocessor):
    """Let a graded cell's errors alone decide its score.

    nbgrader reads a score from whatever comes first: any text on stderr is zero (a warning in
    correct code), a displayed number is a score. Here a test fails if and only if it raises:
    stderr becomes ordinary text, and a displayed value goes.
    """

    def preprocess_cell(self, cell: NotebookNode, resources: dict, cell_index: int):
        if is_grade(cell) and cell.cell_type == "code":
            cell.outputs = [out for out in cell.outputs if out.output_type != "execute_result"]
            for output in cell.outputs:
                if output.output_type == "stream":
                    output.name = "stdout"
        return cell, resources


class SaveScores(SaveAutoGrades):
    """nbgrader's step that saves scores, with one commit for a notebook instead of one per cell.

    A commit waits for the disk, several times. So all scores of a notebook are there, or none.
    """

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        told = resources["nbgrader"]
        self.notebook_id, self.assignment_id = told["notebook"], told["assignment"]
        self.student_id, self.db_url = told["student"], told["db_url"]
        with Gradebook(self.db_url) as self.gradebook:
            session = self.gradebook.db
            commit, session.commit = session.commit, session.flush
            nb, resources = NbGraderPreprocessor.preprocess(self, nb, resources)
            commit()
        return nb, resources
