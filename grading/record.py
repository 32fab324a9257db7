"""What is written down: scores in nbgrader's gradebook, and a record of each submission's fate.

A record (``progress/<assignment>/<learner>.json``) says what was graded, when and how it ended. It
is written twice: before grading, as ``retry``, so that whatever interrupts the run leaves no old
verdict standing, and after.
"""

import json
import secrets
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook, MissingEntry, SubmittedAssignment
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from grading import faults
from grading.course import SILENT, Course
from grading.feedback import refusal
from grading.intake import SECRET, Submission

GRADED, ZERO, RETRY = "graded", "zero", "retry"


@dataclass(frozen=True)
class Record:
    """How one submission ended.

    Attributes:
        learner: whose it is.
        status: ``graded``, ``zero`` (for a reason that is the submission's own) or ``retry``
            (for a reason that is not: the score is not known yet).
        reason: why it is zero or has to be tried again; a note otherwise.
        submission: the hash of what was handed in.
        fingerprint: the hash of all that the score depends on.
        seconds: how long it took.
    """

    learner: str
    status: str
    reason: str
    submission: str
    fingerprint: str
    seconds: float


def load(folder: Path, learner: str) -> Record | None:
    """The record of a learner, or None if there is none that can be read."""
    try:
        return Record(**json.loads((folder / f"{learner}.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def save(folder: Path, record: Record) -> None:
    """Write a record in one step: a reader sees the old one or the new one, never half of it."""
    faults.write(folder / f"{record.learner}.json", json.dumps(asdict(record), indent=1))


def forget(folder: Path, learner: str) -> None:
    """Remove a record: the submission counts as never graded."""
    (folder / f"{learner}.json").unlink(missing_ok=True)


def feedback_page(course: Course, learner: str, assignment: str) -> Path:
    return course.folder("feedback", learner, assignment) / f"{assignment}.html"


def graded_copy(course: Course, learner: str, assignment: str) -> Path:
    return course.folder("autograded", learner, assignment) / f"{assignment}.ipynb"


def stands(course: Course, learner: str, assignment: str) -> bool:
    """Whether what a record speaks of is still there: the scores, the graded copy and the page."""
    with Gradebook(course.db_url, course.course_id) as gradebook:
        try:
            gradebook.find_submission(assignment, learner)
        except MissingEntry:
            return False
    made = (graded_copy, feedback_page)
    return all(path(course, learner, assignment).is_file() for path in made)


def void(course: Course, learner: str, assignment: str, *, replaced: bool) -> None:
    """Take back every automatic score and page of an earlier grading.

    Args:
        course: the course.
        learner: whose.
        assignment: of which assignment.
        replaced: whether another file was handed in since. Then scores and comments given by hand
            go too: they were about the earlier one.
    """
    for step in ("autograded", "feedback"):
        folder = course.folder(step, learner, assignment)
        if folder.is_symlink():
            folder.unlink()
        elif folder.exists():
            shutil.rmtree(folder)
    with Gradebook(course.db_url, course.course_id) as gradebook:
        try:
            if replaced:
                gradebook.remove_submission(assignment, learner)
            else:
                _set_scores(gradebook, gradebook.find_submission(assignment, learner), None)
        except MissingEntry:
            pass


def zero(course: Course, assignment: str, got: Submission, reason: str) -> None:
    """Give no points, and say why where a graded copy and a page would be."""
    learner = got.learner
    with Gradebook(course.db_url, course.course_id) as gradebook:
        gradebook.update_or_create_student(learner)
        submission = gradebook.update_or_create_submission(
            assignment, learner, timestamp=got.timestamp
        )
        _set_scores(gradebook, submission, 0.0)
    # Without a copy, the formgrader goes on asking for this submission to be graded.
    copy = graded_copy(course, learner, assignment)
    copy.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(refusal(reason), copy)
    _accompany(copy.parent, got)
    directory = course.directory(student_id=learner, assignment_id=assignment)
    _convert(_Feedback, directory, course.config)


def _accompany(folder: Path, got: Submission) -> None:
    """Put beside a notebook what nbgrader carries on to the feedback's folder.

    Its exchange returns feedback under a secret, and stops at a submission without, before it has
    returned the others'. What did not come through the exchange gets one that nobody knows.
    """
    stamp = f"{got.timestamp.isoformat(' ')} UTC" if got.timestamp else ""
    (folder / "timestamp.txt").write_text(stamp)
    (folder / SECRET).write_text(got.secret or secrets.token_hex(64))


def _convert(kind: type, directory: CourseDirectory, config: Config) -> None:
    converter = kind(coursedir=directory, config=config, log=SILENT)
    converter.force = True
    converter.start()


def _set_scores(gradebook: Gradebook, submission: SubmittedAssignment, score: float | None) -> None:
    for notebook in submission.notebooks:
        notebook.late_submission_penalty = None
        for grade in notebook.grades:
            grade.auto_score = score
            # A score given by hand stays, and someone should look at it again.
            grade.needs_manual_grade = grade.manual_score is not None
    gradebook.db.commit()


def grade(
    course: Course, assignment: str, got: Submission, notebook: nbformat.NotebookNode, how
) -> None:
    """Take a clean notebook through nbgrader: verdict, scores, feedback.

    nbgrader sees a private folder that holds this notebook and nothing else.

    Args:
        course: the course.
        assignment: of which assignment.
        got: what was handed in.
        notebook: what :func:`grading.sanitize.rebuild` made of it.
        how: with ``sandbox`` and ``gpu``, as the verdict was reached.

    Raises:
        Exception: whatever goes wrong, as it is.
    """
    with tempfile.TemporaryDirectory(prefix="submission-") as staging:
        folder = Path(staging) / got.learner / assignment
        folder.mkdir(parents=True)
        nbformat.write(notebook, folder / f"{assignment}.ipynb")
        _accompany(folder, got)
        directory = course.directory(
            submitted_directory=staging, student_id=got.learner, assignment_id=assignment
        )
        config = course.config.copy()
        config.RunCells.sandbox, config.RunCells.gpu = how.sandbox, how.gpu
        for kind in (_Autograde, _Feedback):
            _convert(kind, directory, config)


class _One:
    """Convert the one submission there is, and let what goes wrong be seen.

    nbgrader's own loop logs an error together with learners' code, and raises another.
    """

    def convert_notebooks(self) -> None:
        directory = self.coursedir
        ((_, self.notebooks),) = self.assignments.items()
        self.init_destination(directory.assignment_id, directory.student_id)
        self.init_assignment(directory.assignment_id, directory.student_id)
        for notebook in self.notebooks:
            self.convert_single_notebook(notebook)
        self.set_permissions(directory.assignment_id, directory.student_id)


class _Autograde(_One, Autograde):
    pass


class _Feedback(_One, GenerateFeedback):
    pass
