"""The autograder of an assignment for Gradescope: ``python -m tools.gradescope 01-attention``.

Writes ``_build/gradescope/01-attention.zip``, which Gradescope's page "Configure Autograder" takes.
It holds the grading code, the assignment with its hidden tests and without its solutions, the
course's limits, and a secret of its own for the tests' random draws, which the course's cannot be
found from. :mod:`grading.gradescope` says what happens there.
"""

import hashlib
import hmac
import json
import stat
import sys
import tomllib
import zipfile
from dataclasses import asdict
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from grading import storage
from grading.course import Course, Refusal
from grading.gradescope import ASSIGNMENT, SETTINGS
from grading.notebook import answer_names, graded_by_hand, marked
from grading.plugins import RunCells

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "_build" / "gradescope"
SCRIPTS = ("setup.sh", "run_autograder")
VISIBLE, LATER = "visible", "after_published"


def without_solutions(source: NotebookNode, release: NotebookNode) -> NotebookNode:
    """The instructor's notebook with the release's stubs in place of its solutions.

    Raises:
        Refusal: if the two do not belong together.
    """
    stubs = marked(release)
    if list(stubs) != list(marked(source)):
        raise Refusal("the release has other cells than the assignment: run `make exercises`")
    names = answer_names(source)
    for name, cell in marked(source).items():
        if cell.metadata.nbgrader.solution:
            cell.source = stubs[name].source
    if answer_names(source) != names:
        raise Refusal("the release's stubs define other names than the solutions")
    return source


def visibility(release: NotebookNode) -> dict[str, str]:
    """For each graded cell, when learners see its result: at once if they see a test of it."""
    return {
        name: VISIBLE if "@probe.check" in cell.source else LATER
        for name, cell in marked(release).items()
        if cell.metadata.nbgrader.grade
    }


def requirements() -> str:
    """What the autograder has to install, without the course's own package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["grade"]]
    return "\n".join(dict.fromkeys(wanted)) + "\n"


def files(course: Course, assignment: str) -> dict[str, bytes]:
    """What the zip holds, by name.

    Raises:
        Refusal: if there is no such assignment, or it cannot be graded there.
    """
    if assignment not in course.assignments():
        there = ", ".join(course.assignments()) or "none"
        raise Refusal(f"there is no assignment {assignment!r}; there are: {there}")
    path = ROOT / "exercises" / assignment / f"{assignment}.ipynb"
    if not path.is_file():
        raise Refusal(f"there is no release of {assignment}: run `make exercises`")
    source = nbformat.read(course.source(assignment), as_version=4)
    if graded_by_hand(source):
        raise Refusal(f"{assignment} has parts that are graded by hand: Gradescope could not")
    release = nbformat.read(path, as_version=4)
    secret = hmac.new(storage.course_secret(course.root), assignment.encode(), hashlib.sha256)
    settings = {
        "assignment": assignment,
        "limits": asdict(RunCells(config=course.config).limits()),
        "secret": secret.hexdigest(),
        "visibility": visibility(release),
    }
    texts = {
        ASSIGNMENT: nbformat.writes(without_solutions(source, release)),
        SETTINGS: json.dumps(settings, indent=1),
        "requirements.txt": requirements(),
        "requirements.lock": (ROOT / "requirements.lock").read_text(encoding="utf-8"),
    }
    for name in SCRIPTS:
        texts[name] = (ROOT / "deploy" / "gradescope" / name).read_text(encoding="utf-8")
    for path in sorted((ROOT / "grading").rglob("*")):
        if path.suffix in (".py", ".css", ".j2"):
            texts[path.relative_to(ROOT).as_posix()] = path.read_text(encoding="utf-8")
    return {name: text.encode() for name, text in texts.items()}


def write(held: dict[str, bytes], target: Path) -> None:
    """Write the zip, whole or not at all; the scripts are executable, the rest is root's alone."""
    # It holds hidden tests, so nobody else may read it.
    with storage.private_files(), storage.replacing(target) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in sorted(held.items()):
                entry = zipfile.ZipInfo(name)
                entry.external_attr = (stat.S_IFREG | (0o700 if name in SCRIPTS else 0o600)) << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, data)


def main(assignment: str, root: Path = ROOT, folder: Path = TARGET) -> int:
    try:
        held = files(Course.open(root), assignment)
    except Refusal as refusal:
        print(f"[gradescope] refused: {refusal}", file=sys.stderr)
        return 2
    target = folder / f"{assignment}.zip"
    write(held, target)
    print(f"[gradescope] {target}: {target.stat().st_size / 1024:.0f} kB, with hidden tests in it")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
