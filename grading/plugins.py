"""What nbgrader calls: this course's plug-ins, as ``nbgrader_config.py`` lists them.

nbgrader's preprocessors see a notebook after nbgrader has found, copied and read it. A file that it
cannot find or read (a wrong name, a link, half a notebook) never gets there: it ends without a
verdict, or stops the batch. So the converter itself is replaced. nbgrader names it in its code and
not in its configuration, hence :func:`install`, which ``nbgrader_config.py`` calls. The command
`nbgrader autograde` and the formgrader's button then grade as ``python -m grading`` does, through
:func:`grading.batch.grade_all`. Where that line is missing, :class:`RunCells` refuses: nbgrader
would run submitted code with the rights of whoever grades.
"""

import copy
import fnmatch
import os
import sys
import warnings
from datetime import datetime
from pathlib import Path

from nbformat import NotebookNode
from nbgrader import converters
from nbgrader.apps import api, autogradeapp
from nbgrader.converters.base import NbGraderException
from nbgrader.exchange.default import ExchangeReleaseFeedback
from nbgrader.preprocessors import NbGraderPreprocessor
from sqlalchemy.exc import SAWarning
from traitlets import Bool, Float, Int

from grading import report, storage, submission
from grading.batch import Options, grade_all
from grading.course import Course, Refusal
from grading.runner import sandbox
from grading.runner.job import Limits


class RunCells(NbGraderPreprocessor):
    """The settings of a run; and where nbgrader itself would run code, a refusal."""

    timeout = Float(30.0, help="seconds for one cell").tag(config=True)
    total_timeout = Float(300.0, help="seconds that all cells together may take").tag(config=True)
    memory = Float(2.0, help="GB of memory for a submission's processes together").tag(config=True)
    processes = Int(64, help="processes that a submission may have at a time").tag(config=True)
    disk = Float(64.0, help="MB that a submission may write").tag(config=True)
    gpu = Bool(False, help="let submissions use the machine's GPU").tag(config=True)

    def limits(self) -> Limits:
        return Limits(
            cell_seconds=self.timeout,
            total_seconds=self.total_timeout,
            memory=int(self.memory * 2**30),
            processes=self.processes,
            disk=int(self.disk * 2**20),
        )

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        raise NbGraderException(
            "refused: nbgrader's own autograde would run submitted code with your rights. "
            "Restore the line `grading.plugins.install()` in nbgrader_config.py, or grade with "
            "`python -m grading`."
        )


def install() -> None:
    """Make nbgrader's command and the formgrader use these classes; repeating it is harmless."""
    for module in (autogradeapp, api):
        if not issubclass(module.Autograde, converters.Autograde):
            raise TypeError(f"{module.__name__} has another Autograde than nbgrader 0.9.6")
        module.Autograde = Autograde
    api.NbGraderAPI.get_submitted_timestamp = submitted_timestamp
    if "nbgrader.server_extensions.formgrader.base" in sys.modules:  # in a Jupyter server
        from grading import formgrader

        formgrader.install()


class Autograde(converters.Autograde):
    """nbgrader's converter of submissions, which grades them as this course does."""

    @storage.private_files()
    def start(self) -> None:
        """Grade what is asked for (``assignment_id``, ``student_id``, ``force``).

        Raises:
            NbGraderException: if it cannot start, or some submissions have to be tried again.
        """
        directory = self.coursedir
        course = Course.configured(Path(directory.root), self._settings())
        assignment = directory.assignment_id
        run = RunCells(config=course.config)
        options = Options(
            jobs=os.cpu_count() or 1,
            force=self.force,
            gpu=run.gpu,
            limits=run.limits(),
        )
        try:
            if directory.notebook_id not in ("*", assignment):
                raise Refusal(
                    f"--notebook {directory.notebook_id!r}: an assignment is one notebook here, "
                    f"{assignment!r}"
                )
            sandbox.check()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SAWarning)
                done = grade_all(
                    course, assignment, self._wanted(course), options, report.Logged(self.log)
                )
        except (Refusal, sandbox.NoSandbox) as refusal:
            self.log.error("refused: %s", refusal)
            raise NbGraderException(f"refused: {refusal}") from None
        if not done:
            raise NbGraderException("some submissions have to be tried again; see the log above")

    def _settings(self):
        """The configuration in force, but for the formgrader's page in place of the feedback's."""
        settings = copy.deepcopy(self.config)
        settings.HTMLExporter.template_name = "feedback"
        settings.HTMLExporter.pop("extra_template_basedirs", None)
        return settings

    def _wanted(self, course: Course) -> list[str] | None:
        """Whose submissions: None for everybody's. As in nbgrader, a name may be a pattern."""
        asked = self.coursedir.student_id
        left_out = set(filter(None, self.coursedir.student_id_exclude.split(",")))
        if asked == "*" and not left_out:
            return None
        learners = submission.learners(course.submitted, self.coursedir.assignment_id)
        matching = [asked] if asked in learners else fnmatch.filter(learners, asked)
        return sorted(set(matching) - left_out) or [asked]


def submitted_timestamp(self: api.NbGraderAPI, assignment_id: str, student_id: str):
    """When a submission was handed in (UTC), or None. The formgrader's list asks for each.

    nbgrader's own raises an error at a file that is no date, and then nothing is listed.
    """
    folder = self.coursedir.format_path(
        self.coursedir.submitted_directory, student_id, assignment_id
    )
    when: datetime | None = submission.timestamp(Path(folder) / "timestamp.txt")[0]
    return when


class ReleaseFeedback(ExchangeReleaseFeedback):
    """Only their owner may read pages (mode 600), and nbgrader copies the mode.

    In the exchange they are the instructor's files and learners' to read. Nobody can list the
    folder, and a page's name follows from a secret that only its learner has.
    """

    def copy_files(self) -> None:
        super().copy_files()
        for page in Path(self.dest_path).glob("*.html"):
            page.chmod(0o644)
