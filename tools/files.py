"""Writing a file in one step. Only the standard library is needed.

`grading.storage` has its own, because a course folder may hold `grading/` and nothing beside it.
"""

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, text: str, *, replace: bool = True) -> None:
    """Write a file in one step: a reader sees the old text or the new one, never half of it.

    Raises:
        FileExistsError: if there is such a file, unless ``replace``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, 0o644)
        if replace:
            os.replace(name, path)
        else:
            _link(Path(name), path)
    finally:
        Path(name).unlink(missing_ok=True)


def _link(finished: Path, path: Path) -> None:
    """Give a finished file its name; unlike a rename, this refuses if there is one already."""
    try:
        os.link(finished, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        with open(path, "xb") as file:
            file.write(finished.read_bytes())
