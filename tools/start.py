"""The learner's own folder ``work/``: ``make start EXERCISE=05-rope`` copies an exercise into it.

git ignores that folder, and no command of the course overwrites what a learner wrote there. A copy
notes in its metadata which release it was made from, so that learners hear of newer releases; a
newer one is put beside the learner's copy, under another name, on request
(``make start EXERCISE=05-rope NEW=1``). ``make lab`` puts copies of the chapters there too; of
those it renews what the learner did not change.

Runs on a bare Python 3.11 with the standard library alone:
``python3.11 tools/run.py tools.start 05-rope``.
"""

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from tools.files import write_whole

ROOT = Path(__file__).resolve().parent.parent
EXERCISES = ROOT / "exercises"
BOOK = ROOT / "book"
WORK = ROOT / "work"
NOTE = "attention-position-cache"  # the key of our note in a copy's metadata


class Problem(Exception):
    """The request cannot be fulfilled; the message says why, and what to do."""


def slugs() -> list[str]:
    """The released exercises, by the names of their folders."""
    # Any other notebook in a folder (a copy, a checkpoint) is not part of the release.
    notebooks = EXERCISES.glob("*/*.ipynb")
    return sorted(path.stem for path in notebooks if path.stem == path.parent.name)


def find(name: str) -> str:
    """Resolve the name of an exercise: ``05-rope``, or ``05`` for short.

    Raises:
        Problem: if there is none, or more than one.
    """
    known = slugs()
    matches = [slug for slug in known if slug == name] or [
        slug for slug in known if name and slug.startswith(name)
    ]
    if len(matches) != 1:
        listed = "\n".join(f"  {slug}" for slug in known) or "  none: exercises/ is empty"
        complaint = f"there is no exercise {name!r}" if name else "no exercise was named"
        raise Problem(
            f"{complaint}. There are:\n{listed}\nFor example: make start EXERCISE=01-attention"
        )
    return matches[0]


def mine(slug: str) -> Path:
    """The path of the learner's copy of an exercise."""
    return WORK / slug / f"{slug}.ipynb"


def started() -> list[str]:
    """The exercises of which the learner has a copy."""
    return [slug for slug in slugs() if os.path.lexists(mine(slug))]


def to_check(name: str | None = None) -> list[str]:
    """The exercises that ``make check`` runs: the one that is named, or all that were started.

    Raises:
        Problem: if there is no such exercise, or no copy of it.
    """
    if not name:
        if names := started():
            return names
        raise Problem("work/ holds no exercise yet: make start EXERCISE=01-attention")
    slug = find(name)
    if not mine(slug).is_file():
        where = mine(slug).relative_to(WORK.parent)
        raise Problem(f"{where} is not there yet: make start EXERCISE={slug}")
    return [slug]


def fingerprint(notebook: dict) -> str:
    """A hash of the kinds and texts of the cells: outputs and metadata do not count."""
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def origin(path: Path) -> str | None:
    """The fingerprint of the release that a copy was made from; None if the copy does not say."""
    try:
        return read(path)["metadata"][NOTE]["release"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def changed(path: Path) -> bool:
    """Whether somebody edited a copy: its cells are not those that were written."""
    try:
        notebook = read(path)
        return fingerprint(notebook) != notebook["metadata"][NOTE]["copy"]
    except (OSError, ValueError, KeyError, TypeError):
        return True


def copy(
    release: Path,
    target: Path,
    *,
    replace: bool = False,
    render: Callable[[dict], dict] | None = None,
) -> None:
    """Write a copy of a notebook in one step, with a note of its origin.

    Args:
        release: the notebook.
        target: where the copy goes.
        replace: whether it may replace what is there.
        render: what makes the copy's cells from those of the notebook; they are the same if None.

    Raises:
        FileExistsError: if ``target`` is there, unless ``replace``.
    """
    original = read(release)
    notebook = render(original) if render else original
    notebook["metadata"][NOTE] = {
        "release": fingerprint(original),
        "copy": fingerprint(notebook),
    }
    text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    write_whole(target, text, replace=replace)


def start(slug: str, new: bool = False) -> str:
    """Give the learner a copy of an exercise, and say where it is.

    Args:
        slug: the exercise.
        new: put a release that is newer than the learner's copy beside it.
    """
    release, target = EXERCISES / slug / f"{slug}.ipynb", mine(slug)
    where = target.relative_to(WORK.parent)
    try:
        copy(release, target)
    except FileExistsError:
        pass
    else:
        return (
            f"{where} is yours now: nothing overwrites it, and git leaves it alone.\n"
            f"  make lab EXERCISE={slug}    opens it\n"
            f"  make check EXERCISE={slug}  says how far you are"
        )
    lines = [f"{where} was there already and was not overwritten: carry on where you left off."]
    current = fingerprint(read(release))
    if origin(target) in (None, current):
        return "\n".join([*lines, "There is no newer release of this exercise."] if new else lines)
    beside = [path for path in target.parent.glob(f"{slug}-new*.ipynb") if origin(path) == current]
    if not beside and not new:
        lines.append(
            "The course now has a newer release of this exercise. To get it beside your copy:\n"
            f"  make start EXERCISE={slug} NEW=1"
        )
        return "\n".join(lines)
    if not beside:
        names = [f"{slug}-new{number}.ipynb" for number in ("", *map("-{}".format, range(2, 100)))]
        free = next(name for name in names if not os.path.lexists(target.parent / name))
        copy(release, target.parent / free)
        beside = [target.parent / free]
    lines.append(
        f"The newer release is beside it: {beside[0].relative_to(WORK.parent)}\n"
        "Your copy is what is checked and handed in. To move to the newer release, copy your\n"
        f"answers into it, then rename the files so that it is called {target.name}."
    )
    return "\n".join(lines)


def chapters(render: Callable[[dict], dict] | None = None) -> list[str]:
    """Copy the book's notebooks to ``work/chapters``, and renew those nobody changed.

    Args:
        render: see :func:`copy`.

    Returns:
        The names of chapters that have become newer and were kept, because the learner changed
        their text or code.
    """
    changed_by_learner = []
    for source in sorted(BOOK.glob("*.ipynb")):
        target = WORK / "chapters" / source.name
        if not target.exists():
            copy(source, target, render=render)
        elif not changed(target):
            rendered = render(read(source)) if render else read(source)
            if fingerprint(rendered) != fingerprint(read(target)):
                copy(source, target, replace=True, render=render)
        elif origin(target) != fingerprint(read(source)):
            changed_by_learner.append(source.name)
    return changed_by_learner


def main(arguments: list[str] | None = None) -> int:
    """Start an exercise; return 0, or 2 if there is no such exercise or it cannot be copied."""
    parser = argparse.ArgumentParser(
        prog="start", description="Copy an exercise into your own folder work/."
    )
    parser.add_argument("exercise", nargs="?", default="", help="such as 05-rope, or 05 in short")
    parser.add_argument("--new", action="store_true", help="put a newer release beside your copy")
    options = parser.parse_args(arguments)
    try:
        print(start(find(options.exercise), options.new))
    except Problem as problem:
        print(problem, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"the exercise cannot be copied: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
