"""A run as plain data: its cells, its limits, what comes of it, and how it can end early.

Nothing here needs torch, so the process that grades starts without it.
"""

import ast
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Limits:
    """What a submission may use.

    Attributes:
        cell_seconds: for one cell, and for all calls that one test cell makes.
        total_seconds: for the whole notebook.
        memory: bytes for all processes of the submission together.
        processes: how many of them there may be at a time.
        disk: bytes that it may write.
    """

    cell_seconds: float = 30.0
    total_seconds: float = 300.0
    memory: int = 2 * 2**30
    processes: int = 64
    disk: int = 64 * 2**20


@dataclass(frozen=True)
class Cell:
    """A code cell of a notebook that is to be judged.

    Attributes:
        source: the code.
        role: ``answer`` (runs in the sandbox), ``test`` (runs here) or ``given`` (the instructor's
            and not graded: runs on both sides).
    """

    source: str
    role: str


@dataclass
class Judged:
    """What came of a notebook.

    Attributes:
        outputs: for each cell its outputs, in notebook format.
        notes: what happened that is not one cell's matter: sandboxes that ended, and why.
        seconds: where the time went.
    """

    outputs: list[list[dict]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


class Ended(Exception):
    """The sandbox is no more; the message says why, for the learner."""


class Stopped(Exception):
    """What a test sees when the learner's code was stopped while it ran."""


def defined_names(source: str) -> tuple[str, ...]:
    """The names that a cell defines at its top level."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return ()
    names: list[str] = []
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names += [
                part.id
                for target in targets
                for part in ast.walk(target)
                if isinstance(part, ast.Name)
            ]
    return tuple(dict.fromkeys(names))
