"""What has to be run of a notebook, and by whom: here, or on other machines.

:func:`plan` turns a clean notebook into plain data that says everything a run needs; :func:`run`
runs it, in this process's nursery (:mod:`grading.nursery`), and returns plain data. So it does not
matter where `run` is called: :func:`executor` gives threads of this process, or the workers of a
`dask.distributed` cluster.

A verdict is stored under the hash of all that it depends on (:class:`Verdicts`): the one process
that writes the gradebook finds it there.
"""

import atexit
import contextlib
import hashlib
import hmac
import json
import os
import secrets
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from nbformat import NotebookNode
from nbgrader.utils import is_grade, is_locked, is_solution, is_task

from grading import faults
from grading.nursery import Nursery
from grading.work import Limits, defined_names

NOT_RUN = "[Not run when graded: nothing depends on this cell.]\n"


def plan(notebook: NotebookNode, source: NotebookNode) -> tuple[list[int], dict]:
    """What is to be run of a clean notebook.

    Args:
        notebook: a submission whose metadata and locked cells are the instructor's.
        source: the instructor's notebook.

    Returns:
        The places of the cells that are run, and the ``cells`` (each one's source and role) with
        the ``names`` that the tests may use. Cells of the instructor's that nbgrader does not know
        and that the learner left as they were, pictures for instance, are not run: unless somebody
        has to look at the notebook (a manually graded cell).
    """
    names = [
        name
        for cell in source.cells
        if cell.cell_type == "code" and is_solution(cell)
        for name in defined_names(cell.source)
    ]
    by_hand = looked_at(source)
    spare = {
        cell.source
        for cell in source.cells
        if cell.cell_type == "code" and not cell.metadata.get("nbgrader") and not by_hand
    }
    places, cells = [], []
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type != "code" or (cell.source in spare and not cell.metadata.get("nbgrader")):
            continue
        if is_grade(cell) and not is_solution(cell):
            role = "test"
        elif is_locked(cell):
            role = "given"
        else:
            role = "answer"
        places.append(place)
        cells.append({"source": cell.source, "role": role})
    return places, {"cells": cells, "names": list(dict.fromkeys(names))}


def looked_at(source: NotebookNode) -> bool:
    """Whether somebody grades a part of this assignment by hand."""
    return any(is_task(cell) or (is_grade(cell) and is_solution(cell)) for cell in source.cells)


def job(
    planned: dict, *, rules: str, secret: bytes, limits: Limits, pictures: bool, mode: dict
) -> dict:
    """All that a run depends on, with its name: ``key``.

    Args:
        planned: what :func:`plan` returned.
        rules: the hash of what a score depends on besides the submission.
        secret: the course's; the tests' random draws follow from it and from the submission.
        limits: what the submission may use.
        pictures: whether pictures are kept.
        mode: ``sandboxed`` and ``gpu``.
    """
    told = planned | {"limits": asdict(limits), "pictures": pictures} | mode
    text = json.dumps([rules, told], sort_keys=True).encode()
    salt = hmac.new(secret, json.dumps(planned["cells"]).encode(), "sha256").hexdigest()
    return told | {"key": hashlib.sha256(text + salt.encode()).hexdigest(), "salt": salt}


_nurseries: dict[tuple[bool, bool], Nursery] = {}
_making = threading.Lock()


def nursery(*, sandboxed: bool, gpu: bool) -> Nursery:
    """This process's nursery; it is started when it is first needed, and ends with the process."""
    with _making:
        if (sandboxed, gpu) not in _nurseries:
            _nurseries[sandboxed, gpu] = made = Nursery(sandboxed=sandboxed, gpu=gpu)
            atexit.register(made.close)
        return _nurseries[sandboxed, gpu]


def run(work: dict) -> dict:
    """Run a job, and return the verdict as plain data (:class:`grading.work.Judged`).

    Raises:
        NurseryError: if there is no verdict, for a reason that is not the submission's.
    """
    place = nursery(sandboxed=work["sandboxed"], gpu=work["gpu"])
    seconds = work["limits"]["total_seconds"] + 60
    return place.judge({key: value for key, value in work.items() if key != "key"}, seconds)


class Verdicts:
    """Verdicts in a folder, one file each, by their job's key. Nothing in them was pickled."""

    def __init__(self, folder: Path):
        self.folder = folder

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def get(self, key: str) -> dict | None:
        try:
            return json.loads(self._path(key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def put(self, key: str, verdict: dict) -> None:
        faults.write(self._path(key), json.dumps(verdict))

    def drop(self, key: str) -> None:
        self._path(key).unlink(missing_ok=True)


def course_secret(root: Path) -> bytes:
    """The course's secret, made when it is first asked for; only its owner can read it."""
    path = root / "progress" / ".secret"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        # Whole or not at all; and of two who make one, both use the first.
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".secret-") as made:
            made.write(secrets.token_bytes(32))
            made.flush()
            with contextlib.suppress(FileExistsError):
                os.link(made.name, path)
    return path.read_bytes()


@contextlib.contextmanager
def executor(kind: str, jobs: int, scheduler: str | None = None) -> Iterator[Executor]:
    """Where jobs run.

    Args:
        kind: ``local`` or ``dask``.
        jobs: how many at a time, locally.
        scheduler: the address of a dask scheduler.

    Raises:
        ValueError: if the kind is unknown, or dask is asked for without a scheduler or the package.
    """
    if kind == "local":
        # A thread waits for a judge, which is a process of its own.
        pool = ThreadPoolExecutor(jobs)
        try:
            yield pool
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    elif kind == "dask":
        if not scheduler:
            raise ValueError(
                "--engine dask needs --scheduler ADDRESS, for instance tcp://host:8786"
            )
        try:
            from distributed import Client
        except ImportError:
            raise ValueError(
                "--engine dask needs the package distributed: pip install '.[cluster]'"
            ) from None
        with Client(scheduler, timeout=20, set_as_default=False) as client:
            yield client.get_executor(pure=False)
    else:
        raise ValueError(f"engine {kind!r}: there are local and dask")
