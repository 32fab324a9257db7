"""Where a course keeps its folders, and what nbgrader is told about it."""

import contextlib
import functools
import hashlib
import importlib.metadata
import inspect
import json
import logging
import platform
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties
from traitlets.config import Config, PyFileConfigLoader

CONFIG = "nbgrader_config.py"
GRADING = Path(__file__).parent
SOURCES = (".py", ".css", ".html", ".j2")
EXECUTED = ("numpy", "torch", "matplotlib")  # packages that assignments run
# Names become folders, and nbgrader reads them as file patterns: no *, ?, [ or separators.
NAME = re.compile(r"\w[\w.@-]{0,99}")

# nbgrader logs the source of cells. What this logger is given goes nowhere.
SILENT = logging.getLogger("grading.silent")
SILENT.propagate = False
SILENT.addHandler(logging.NullHandler())


class Refusal(Exception):
    """The command cannot start; the message says what was asked and what there is."""


@dataclass(frozen=True)
class Course:
    """A course folder and its nbgrader configuration.

    Attributes:
        root: the folder that holds ``nbgrader_config.py``, ``solutions/``, ``submitted/``.
        config: what ``nbgrader_config.py`` sets, with the root put to ``root``.
    """

    root: Path
    config: Config

    @classmethod
    def open(cls, root: Path) -> "Course":
        """Read the course in ``root``.

        Raises:
            Refusal: if there is no ``nbgrader_config.py``, or it is an earlier edition's.
        """
        root = root.resolve()
        if not (root / CONFIG).is_file():
            raise Refusal(f"{root} is not a course folder: it has no {CONFIG}")
        try:
            config = PyFileConfigLoader(CONFIG, path=str(root)).load_config()
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("grading."):
                raise
            raise Refusal(
                f"{root / CONFIG} names plug-ins that this edition does not have ({error.name}): "
                "replace it by the one that came with this edition, and put your own lines "
                "(limits, dates, plug-ins) at its end. Nothing was changed"
            ) from None
        return cls.configured(root, config)

    @classmethod
    def configured(cls, root: Path, config: Config) -> "Course":
        """The course in ``root`` under these settings, which are changed to fit."""
        config.CourseDirectory.root = str(root)
        # Scores and people's work are nobody else's business.
        config.Autograde.permissions = 600
        return cls(root, config)

    def directory(self, **overrides: str) -> CourseDirectory:
        """nbgrader's view of the folders, with some of them put elsewhere."""
        return CourseDirectory(config=self.config, log=SILENT, **overrides)

    @property
    def db_url(self) -> str:
        return self.directory().db_url

    @property
    def course_id(self) -> str:
        return self.directory().course_id

    def folder(self, step: str, learner: str, assignment: str) -> Path:
        """The folder of one learner and assignment in a step such as ``submitted``."""
        name = getattr(self.directory(), f"{step}_directory")
        return Path(self.directory().format_path(name, learner, assignment))

    def source(self, assignment: str) -> Path:
        """The instructor's notebook, with solutions and hidden tests."""
        return self.folder("source", ".", assignment) / f"{assignment}.ipynb"

    def notebook(self, assignment: str) -> nbformat.NotebookNode:
        """The same, read. It is read again when the file has changed; leave it as it is."""
        path = self.source(assignment)
        status = path.stat()
        return _read(path, status.st_mtime_ns, status.st_size)

    @property
    def submitted(self) -> Path:
        return self.root / self.directory().submitted_directory

    def progress(self, assignment: str) -> Path:
        """Where the records of what happened to each submission are kept."""
        return self.root / "progress" / assignment

    def assignments(self) -> list[str]:
        """The assignments that have a source notebook."""
        folder = self.root / self.directory().source_directory
        names = sorted(path.name for path in folder.glob("*") if path.is_dir())
        return [name for name in names if self.source(name).is_file()]

    def rules(self, assignment: str) -> dict[str, str]:
        """What a score or a page depends on besides the submission: a hash for each kind.

        ``running`` is all that takes part in running a job and is not in the job. If only the
        others have changed, verdicts stay as they are, and scores and pages are made anew.
        """
        runner = sorted((GRADING / "runner").glob("*.py"))
        others = (path for path in GRADING.rglob("*") if path.suffix in SOURCES)
        others = sorted(set(others) - set(runner))
        settings = [self.root / CONFIG]
        with contextlib.suppress(Exception):  # no file of its own, or broken: its first use tells
            rule = AssignLatePenalties(config=self.config).plugin_class
            settings.append(Path(inspect.getfile(rule)))
        return {
            "assignment": _hash(_essence(self.notebook(assignment)).encode()),
            "settings": _hash(*(path.read_bytes() for path in settings)),
            "grading": _hash(*(path.read_bytes() for path in others), *_versions("nbgrader")),
            "running": _hash(
                *(path.read_bytes() for path in runner),
                f"{platform.python_implementation()} {platform.python_version()}".encode(),
                *_versions(*EXECUTED),
            ),
        }


def _hash(*parts: bytes) -> str:
    """A hash of some texts, in which none can pass for the end of another."""
    each = (hashlib.sha256(part).digest() for part in parts)
    return hashlib.sha256(b"".join(each)).hexdigest()[:32]


def _versions(*packages: str) -> Iterator[bytes]:
    for package in packages:
        try:
            yield f"{package}=={importlib.metadata.version(package)}".encode()
        except importlib.metadata.PackageNotFoundError:
            yield f"no {package}".encode()


def _essence(source: nbformat.NotebookNode) -> str:
    """What grading reads of an assignment, without what an editor saves besides (tags, outputs)."""
    return json.dumps(
        [
            [
                cell.cell_type,
                cell.source,
                marks,
                cell.get("id") if marks else None,
                cell.get("attachments") if marks else None,
            ]
            for cell in source.cells
            for marks in [cell.metadata.get("nbgrader")]
        ],
        sort_keys=True,
    )


@functools.lru_cache(4)
def _read(path: Path, changed: int, size: int) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def known(course: Course, assignment: str) -> None:
    """Insist that there is such an assignment.

    Raises:
        Refusal: if not; it names those there are.
    """
    names = course.assignments()
    if not NAME.fullmatch(assignment) or assignment not in names:
        folder = course.directory().source_directory
        raise Refusal(
            f"there is no assignment {assignment!r} in {folder}/; "
            f"there is: {', '.join(names) or 'none'}"
        )


def register(course: Course, assignment: str) -> nbformat.NotebookNode:
    """Make the gradebook know an assignment, and return its source notebook.

    The release that nbgrader writes on the way goes to a temporary folder: ``exercises/`` is
    left alone.

    Raises:
        Refusal: if nbgrader cannot take it.
    """
    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        directory = course.directory(assignment_id=assignment, release_directory=folder)
        converter = GenerateAssignment(coursedir=directory, config=course.config, log=SILENT)
        converter.force = True
        # What went wrong is in nbgrader's log, which is the instructor's own notebook here.
        handler = _Last()
        SILENT.addHandler(handler)
        try:
            converter.start()
        except Exception as error:
            raise Refusal(
                f"nbgrader cannot take {course.source(assignment)}: {handler.line or error}"
            ) from error
        finally:
            SILENT.removeHandler(handler)
    return course.notebook(assignment)


class _Last(logging.Handler):
    """Keep the last line of the last traceback that was logged."""

    line = ""

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage().strip()
        if text.startswith("Traceback"):
            self.line = text.splitlines()[-1]
