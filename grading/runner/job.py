"""What goes into a run and what comes out of it, as plain data; and how a run can end early.

Nothing here needs torch, so the process that grades starts without it.
"""

import dataclasses
import json
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Limits:
    """What a submission may use.

    Attributes:
        cell_seconds: for one cell, and for all calls that one test cell makes. The clock stands
            still while there is no processor for the code to run on.
        total_seconds: for the whole notebook, by the same clock; and seconds of processor time, of
            all processes together.
        memory: bytes for all processes of the submission together, with the files they write.
        processes: how many of them there may be at a time.
        disk: bytes that it may write to each of its folders.
        files: how many it may make.
    """

    cell_seconds: float = 30.0
    total_seconds: float = 300.0
    memory: int = 2 * 2**30
    processes: int = 64
    disk: int = 64 * 2**20
    files: int = 10_000

    @property
    def wall_seconds(self) -> float:
        """For the whole notebook, however busy the machine is."""
        return 4 * self.total_seconds


@dataclass(frozen=True)
class Cell:
    """A code cell that is to be run.

    Attributes:
        source: the code.
        role: ``answer`` (the learner's: runs in the sandbox), ``test`` (runs outside) or ``given``
            (the instructor's and not graded: runs on both sides).
        defines: the names that a given cell defines. Tests use ours, not the learner's.
    """

    source: str
    role: str
    defines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Job:
    """A run.

    Attributes:
        cells: in their order.
        names: what the tests may use of the learner's.
        salt: seeds the tests' random draws.
        limits: what the submission may use.
        pictures: whether pictures are kept.
        gpu: whether it may use the GPU.
    """

    cells: tuple[Cell, ...]
    names: tuple[str, ...]
    salt: str = ""
    limits: Limits = field(default_factory=Limits)
    pictures: bool = False
    gpu: bool = False

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str | bytes) -> "Job":
        fields = json.loads(text)
        cells = (cell | {"defines": tuple(cell["defines"])} for cell in fields["cells"])
        fields["cells"] = tuple(Cell(**cell) for cell in cells)
        fields["names"] = tuple(fields["names"])
        fields["limits"] = Limits(**fields["limits"])
        return cls(**fields)


@dataclass
class Verdict:
    """The outcome of a run.

    Attributes:
        outputs: for each cell its outputs, in notebook format.
        notes: what happened that is not one cell's matter: sandboxes that ended, and why.
        seconds: where the time went.
        peak: bytes of memory that the submission took at most, as far as it was seen.
    """

    outputs: list[list[dict]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    peak: int = 0

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))


class Ended(Exception):
    """The sandbox has ended; the message tells the learner why."""


class Stopped(Exception):
    """What a test sees when the learner's code was stopped while it ran."""
