"""What `nbgrader autograde` and the formgrader's button run: the same as ``python -m grading``.

nbgrader's preprocessors see a notebook after nbgrader has found, copied and read it. A file that it
cannot find or read (a wrong name, a link, half a notebook) never gets there: it ends without a
verdict, or stops the batch. So the converter itself is replaced. nbgrader names it in its code and
not in its configuration, hence :func:`install`, which `nbgrader_config.py` calls. Submissions then
take the same way, through :func:`grading.batch.grade_all`, whoever asks.
"""

import copy
import fnmatch
import os
import warnings
from datetime import datetime
from pathlib import Path

from nbgrader import converters
from nbgrader.apps import api, autogradeapp
from nbgrader.converters.base import NbGraderException
from sqlalchemy.exc import SAWarning

from grading import intake, report, sandbox
from grading.batch import How, grade_all
from grading.course import Course, Refusal
from grading.execute import RunCells


def install() -> None:
    """Have nbgrader's command and the formgrader use this module's classes; twice does no harm."""
    for module in (autogradeapp, api):
        if not issubclass(module.Autograde, converters.Autograde):
            raise TypeError(f"{module.__name__} has another Autograde than nbgrader 0.9.6")
        module.Autograde = Autograde
    api.NbGraderAPI.get_submitted_timestamp = submitted_timestamp


class Autograde(converters.Autograde):
    """nbgrader's converter of submissions, with this course's way from file to verdict."""

    def start(self) -> None:
        """Grade what is asked for (``assignment_id``, ``student_id``, ``force``).

        Raises:
            NbGraderException: if it cannot start, or some submissions have to be tried again.
        """
        directory = self.coursedir
        course = Course.configured(Path(directory.root), self._settings())
        assignment = directory.assignment_id
        runner = RunCells(config=course.config)
        how = How(
            jobs=os.cpu_count() or 1, force=self.force, sandbox=runner.sandbox, gpu=runner.gpu
        )
        mask = os.umask(0o077)
        try:
            if directory.notebook_id not in ("*", assignment):
                raise Refusal(
                    f"--notebook {directory.notebook_id!r}: an assignment is one notebook here, "
                    f"{assignment!r}"
                )
            if how.sandbox:
                sandbox.check()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SAWarning)
                done = grade_all(
                    course, assignment, self._wanted(course), how, report.Logged(self.log)
                )
        except (Refusal, sandbox.NoSandbox) as refusal:
            self.log.error("refused: %s", refusal)
            raise NbGraderException(f"refused: {refusal}") from None
        finally:
            os.umask(mask)
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
        found = intake.learners(course.submitted, self.coursedir.assignment_id)
        matching = [asked] if asked in found else fnmatch.filter(found, asked)
        return sorted(set(matching) - left_out) or [asked]


def submitted_timestamp(self: api.NbGraderAPI, assignment_id: str, student_id: str):
    """When a submission was handed in (UTC), or None. The formgrader's list asks for each.

    nbgrader's own raises an error at a file that is no date, and then nothing is listed.
    """
    folder = self.coursedir.format_path(
        self.coursedir.submitted_directory, student_id, assignment_id
    )
    when: datetime | None = intake.timestamp(Path(folder) / "timestamp.txt")[0]
    return when
