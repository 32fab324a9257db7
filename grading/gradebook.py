"""Scores in nbgrader's gradebook, and the files that nbgrader keeps beside it.

One process writes, through nbgrader's `Gradebook`, which is opened once for a run; of nbgrader's
converters and preprocessors nothing is used. What is written for one submission is committed at
once: all of it is there, or none.
"""

import contextlib
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry, SubmittedAssignment

from grading import feedback, storage
from grading.course import Course
from grading.evaluate import Outcome, Standing
from grading.submission import SECRET, Submission


class Book:
    """The gradebook of a course, for one assignment.

    Args:
        course: the course.
        assignment: which assignment; the gradebook knows it (:func:`grading.course.register`).
        gradebook: nbgrader's, open.
    """

    def __init__(self, course: Course, assignment: str, gradebook: Gradebook):
        self.course, self.assignment, self.gradebook = course, assignment, gradebook
        notebooks = gradebook.find_assignment(assignment).notebooks
        cells = [cell for notebook in notebooks for cell in notebook.source_cells]
        self.checksums = {cell.name: cell.checksum for cell in cells}
        self.max_score = gradebook.find_assignment(assignment).max_score

    @classmethod
    @contextlib.contextmanager
    def open(cls, course: Course, assignment: str) -> Iterator["Book"]:
        with Gradebook(course.db_url, course.course_id) as gradebook:
            yield cls(course, assignment, gradebook)

    def path(self, step: str, learner: str) -> Path:
        """The graded copy (``autograded``) or the page (``feedback``) of a learner."""
        suffix = {"autograded": "ipynb", "feedback": "html"}[step]
        folder = self.course.folder(step, learner, self.assignment)
        return folder / f"{self.assignment}.{suffix}"

    def has_results(self, learner: str) -> bool:
        """Whether what a record speaks of is there: the scores, the graded copy and the page."""
        with self._transaction():
            known = self._find(learner) is not None
        return known and all(
            self.path(step, learner).is_file() for step in ("autograded", "feedback")
        )

    def withdraw(self, learner: str, *, replaced: bool) -> None:
        """Take back every automatic score and page of an earlier grading.

        Args:
            learner: whose.
            replaced: whether another file was handed in since. Then scores and comments given by
                hand go too: they were about the earlier one.
        """
        for step in ("autograded", "feedback"):
            folder = self.course.folder(step, learner, self.assignment)
            if folder.is_symlink():
                folder.unlink()
            elif folder.exists():
                shutil.rmtree(folder)
        with self._transaction():
            entry = self._find(learner)
            if entry is not None and replaced:
                self.gradebook.remove_submission(self.assignment, learner)
            elif entry is not None:
                _set_scores(entry, None)

    def standing(self, submission: Submission) -> Standing:
        """What the gradebook says of a submission besides automatic scores."""
        with self._transaction():
            entry = self._find(submission.learner)
            about = feedback.about(
                self.gradebook, self.assignment, submission.learner, submission.timestamp
            )
            notebooks = entry.notebooks if entry else []
            grades = [grade for notebook in notebooks for grade in notebook.grades]
            comments = [comment for notebook in notebooks for comment in notebook.comments]
            return Standing(
                late=about.late,
                manual={g.name: g.manual_score for g in grades if g.manual_score is not None},
                extra={g.name: g.extra_credit for g in grades if g.extra_credit is not None},
                comments={c.name: c.manual_comment for c in comments if c.manual_comment},
                about=about,
            )

    def write(self, submission: Submission, outcome: Outcome, *, zero: bool = False) -> None:
        """Write the scores, the graded copy and the page.

        Args:
            submission: what was handed in.
            outcome: what came of it.
            zero: whether it gets no points because it could not be graded.
        """
        self._write_files(submission, outcome)
        with self._transaction():
            self.gradebook.update_or_create_student(submission.learner)
            entry = self.gradebook.update_or_create_submission(
                self.assignment, submission.learner, timestamp=submission.timestamp
            )
            if zero:
                _set_scores(entry, 0.0)
                return
            for notebook in entry.notebooks:
                notebook.late_submission_penalty = outcome.penalty
                for grade in notebook.grades:
                    grade.auto_score = outcome.scores.get(grade.name)
                    undecided = grade.auto_score is None
                    grade.needs_manual_grade = undecided or grade.manual_score is not None
                for comment in notebook.comments:
                    blank = comment.name in outcome.blank
                    comment.auto_comment = "No response." if blank else None

    def _write_files(self, submission: Submission, outcome: Outcome) -> None:
        learner = submission.learner
        # Without a copy, the formgrader goes on asking for this submission to be graded.
        storage.write(self.path("autograded", learner), outcome.notebook)
        storage.write(self.path("feedback", learner), outcome.page)
        # nbgrader's exchange returns feedback under a secret, and stops at a submission without,
        # before it has returned the others'. One that did not come that way gets a new one.
        stamp = f"{submission.timestamp.isoformat(' ')} UTC" if submission.timestamp else ""
        secret = submission.secret or secrets.token_hex(64)
        for step in ("autograded", "feedback"):
            folder = self.path(step, learner).parent
            storage.write(folder / "timestamp.txt", stamp)
            storage.write(folder / SECRET, secret)
        # nbgrader's exchange hands pages on with the rights they have; their folders are closed.
        for path in self.path("feedback", learner).parent.iterdir():
            path.chmod(0o644)

    def _find(self, learner: str) -> SubmittedAssignment | None:
        try:
            return self.gradebook.find_submission(self.assignment, learner)
        except MissingEntry:
            return None

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """One commit for all that is done inside, which nbgrader would commit step by step.

        A commit waits for the disk, several times.
        """
        session = self.gradebook.db
        commit, session.commit = session.commit, session.flush
        try:
            yield
            commit()
        except BaseException:
            session.rollback()
            raise
        finally:
            session.commit = commit


def _set_scores(entry: SubmittedAssignment, score: float | None) -> None:
    for notebook in entry.notebooks:
        notebook.late_submission_penalty = None
        for grade in notebook.grades:
            grade.auto_score = score
            # A score given by hand stays, and someone should look at it again.
            grade.needs_manual_grade = grade.manual_score is not None
