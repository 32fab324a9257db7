"""Scores in nbgrader's gradebook, and the files that nbgrader keeps beside it.

One process writes, through nbgrader's `Gradebook`, which is opened once for a run; of nbgrader's
converters and preprocessors nothing is used. What is written for one submission is committed at
once: all of it is there, or none.
"""

import contextlib
import secrets
import shutil
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from nbgrader.api import (
    Comment,
    Grade,
    Gradebook,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)
from sqlalchemy import select, update

from grading import storage
from grading.course import Course
from grading.evaluate import Outcome, Standing, counted
from grading.submission import SECRET, Submission


@dataclass
class GradebookEntry:
    """What the gradebook has of one submission.

    Attributes:
        timestamp: when it was handed in (UTC), as it was graded.
        extension: how much later than others its author may hand in.
        penalty: points that being late costs.
        auto: the tests' points, by graded cell; None where they decided nothing.
        manual: scores given by hand, by graded cell.
        extra: extra credit, by graded cell.
        open: the graded cells that wait for a person to look at them.
        comments: comments written by hand, by the cell that they are about.
    """

    timestamp: datetime | None = None
    extension: timedelta | None = None
    penalty: float = 0.0
    auto: dict[str, float | None] = field(default_factory=dict)
    manual: dict[str, float] = field(default_factory=dict)
    extra: dict[str, float] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    comments: dict[str, str] = field(default_factory=dict)

    @property
    def points(self) -> dict[str, float]:
        """What each graded cell counts."""
        given = Standing(manual=self.manual, extra=self.extra)
        return {name: counted(given, name, auto) for name, auto in self.auto.items()}


class Book:
    """The gradebook of a course, for one assignment.

    Args:
        course: the course.
        assignment: which assignment; the gradebook knows it (:func:`grading.course.register`).
        gradebook: nbgrader's, open.
    """

    def __init__(self, course: Course, assignment: str, gradebook: Gradebook):
        self.course, self.assignment, self.gradebook = course, assignment, gradebook
        row = gradebook.find_assignment(assignment)
        self.id, self.duedate, self.max_score = row.id, row.duedate, row.max_score
        self.checksums, self.max_points, self.names = {}, {}, {}
        for notebook in row.notebooks:
            self.checksums |= {cell.name: cell.checksum for cell in notebook.source_cells}
            scored = sorted(
                [*notebook.grade_cells, *notebook.task_cells], key=lambda cell: cell.name
            )
            self.max_points |= {cell.name: cell.max_score for cell in scored}
            cells = [*scored, *notebook.solution_cells]
            self.names |= {cell.id: cell.name for cell in cells}

    @classmethod
    @contextlib.contextmanager
    def open(cls, course: Course, assignment: str) -> Iterator["Book"]:
        storage.private(course)
        with Gradebook(course.db_url, course.course_id) as gradebook:
            yield cls(course, assignment, gradebook)

    def path(self, step: str, learner: str) -> Path:
        """The graded copy (``autograded``) or the page (``feedback``) of a learner."""
        suffix = {"autograded": "ipynb", "feedback": "html"}[step]
        folder = self.course.folder(step, learner, self.assignment)
        return folder / f"{self.assignment}.{suffix}"

    def entries(self, learner: str | None = None) -> dict[str, GradebookEntry]:
        """The gradebook's entries for this assignment, by learner: all of them, or one."""
        mine = [SubmittedAssignment.assignment_id == self.id]
        if learner is not None:
            mine.append(SubmittedAssignment.student_id == learner)
        student = SubmittedAssignment.student_id
        notebook = SubmittedNotebook.assignment_id == SubmittedAssignment.id
        graded = [*mine, notebook, Grade.notebook_id == SubmittedNotebook.id]
        commented = [*mine, notebook, Comment.notebook_id == SubmittedNotebook.id]
        numbers = (Grade.auto_score, Grade.manual_score, Grade.extra_credit)
        entries: dict[str, GradebookEntry] = {}
        with self._transaction() as run:
            columns = (SubmittedAssignment.timestamp, SubmittedAssignment.extension)
            for name, timestamp, extension in run(select(student, *columns).where(*mine)):
                entries[name] = GradebookEntry(timestamp, extension)
            column = SubmittedNotebook.late_submission_penalty
            for name, penalty in run(select(student, column).where(*mine, notebook)):
                entries.setdefault(name, GradebookEntry()).penalty += penalty or 0.0
            columns = (Grade.cell_id, *numbers, Grade.needs_manual_grade)
            scores = run(select(student, *columns).where(*graded))
            for name, cell, auto, manual, extra, waits in scores:
                entry, cell = entries.setdefault(name, GradebookEntry()), self.names.get(cell)
                entry.auto[cell] = auto
                entry.manual |= {} if manual is None else {cell: manual}
                entry.extra |= {} if extra is None else {cell: extra}
                entry.open |= {cell} if waits else set()
            columns = (Comment.cell_id, Comment.manual_comment)
            for name, cell, text in run(select(student, *columns).where(*commented)):
                entries.setdefault(name, GradebookEntry()).comments |= (
                    {self.names.get(cell): text} if text else {}
                )
        return entries

    def has_files(self, learner: str) -> bool:
        """Whether the graded copy and the page are there."""
        return all(self.path(step, learner).is_file() for step in ("autograded", "feedback"))

    def withdraw(self, learner: str, *, replaced: bool) -> None:
        """Take back every automatic score and page of an earlier grading.

        Args:
            learner: whose.
            replaced: whether other work was handed in since. Then scores and comments given by
                hand go too: they were about the earlier one. An extension stays.
        """
        for step in ("autograded", "feedback"):
            folder = self.course.folder(step, learner, self.assignment)
            if folder.is_symlink():
                folder.unlink()
            elif folder.exists():
                shutil.rmtree(folder)
        notebooks = (
            select(SubmittedNotebook.id)
            .join(SubmittedAssignment, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
            .where(SubmittedAssignment.assignment_id == self.id)
            .where(SubmittedAssignment.student_id == learner)
        )
        # A score given by hand stays, and someone should look at it again.
        grades = {"auto_score": None, "needs_manual_grade": Grade.manual_score.is_not(None)}
        if replaced:
            grades = dict.fromkeys(("auto_score", "manual_score", "extra_credit"))
            grades["needs_manual_grade"] = False
        with self._transaction() as run:
            mine = SubmittedNotebook.id.in_(notebooks)
            run(update(SubmittedNotebook).where(mine).values(late_submission_penalty=None))
            run(update(Grade).where(Grade.notebook_id.in_(notebooks)).values(grades))
            if replaced:
                comments = update(Comment).where(Comment.notebook_id.in_(notebooks))
                run(comments.values(auto_comment=None, manual_comment=None))

    def name(self, learner: str) -> str:
        """First and last name of a learner, as far as they are known."""
        words = select(Student.first_name, Student.last_name).where(Student.id == learner)
        with self._transaction() as run:
            return " ".join(word for row in run(words) for word in row if word)

    def standing(
        self, entry: GradebookEntry | None, handed_in: datetime | None, name: str = ""
    ) -> Standing:
        """What there is to say of a submission besides the tests.

        Args:
            entry: what the gradebook has of it; None for nothing.
            handed_in: when it was handed in (UTC), if that is known.
            name: its author's (:meth:`name`).
        """
        entry, due = entry or GradebookEntry(), self.duedate
        if due is not None and entry.extension is not None:
            due += entry.extension
        late = 0.0
        if due is not None and handed_in is not None:
            late = max(0.0, (handed_in - due).total_seconds())
        return Standing(late, entry.manual, entry.extra, entry.comments, due, handed_in, name)

    def write(
        self,
        submission: Submission,
        outcome: Outcome,
        *,
        zero: bool = False,
        seen: Collection[str] = (),
    ) -> None:
        """Write the scores, the graded copy and the page.

        Args:
            submission: what was handed in.
            outcome: its outcome.
            zero: whether it gets no points because it could not be graded.
            seen: graded cells with a score by hand that was given for this very outcome: nobody has
                to look at them again.
        """
        self._write_files(submission, outcome)
        with self._transaction():
            self.gradebook.update_or_create_student(submission.learner)
            entry = self.gradebook.update_or_create_submission(
                self.assignment, submission.learner, timestamp=submission.timestamp
            )
            for notebook in entry.notebooks:
                notebook.late_submission_penalty = outcome.penalty
                for grade in notebook.grades:
                    name = self.names[grade.cell_id]
                    grade.auto_score = 0.0 if zero else outcome.scores.get(name)
                    undecided = grade.auto_score is None or grade.manual_score is not None
                    grade.needs_manual_grade = undecided and name not in seen
                for comment in notebook.comments:
                    blank = self.names[comment.cell_id] in outcome.blank
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
        # nbgrader's exchange copies pages with their permissions; their folders are closed.
        for path in self.path("feedback", learner).parent.iterdir():
            path.chmod(0o644)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Callable]:
        """One commit for all that is done inside, which nbgrader would commit step by step.

        A commit waits for the disk, several times. Yields what runs a statement.
        """
        session = self.gradebook.db
        commit, session.commit = session.commit, session.flush
        try:
            yield partial(session.execute, execution_options={"synchronize_session": False})
            commit()
        except BaseException:
            session.rollback()
            raise
        finally:
            session.commit = commit
