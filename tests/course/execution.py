"""Run a chapter's cells in this process: fast enough to run every check under every perturbation.

**The rule for check cells.** A check cell uses only what the chapter's *set-up cells* define (the
code cells tagged ``setup``, in their order) and what it defines itself. So for one perturbation it
is enough to run the set-up cells and then the check cells, each in a namespace of its own. Cells
that train or draw are never run here; the build of the book runs them. ``max`` and ``min`` refuse
NaN here: Python's own pass over one that does not come first, and a check of the worst error would
not see it.

A **perturbation** breaks one thing and names it. It is either a patch of ``lib`` (by the dotted
name of a function; it is in place while the set-up cells import), or, where a check uses nothing of
``lib``, another line in the check cell. Under it, the checks of its own claim fail with an
AssertionError, and all the other checks of the chapter pass.
"""

import functools
import importlib
import pkgutil
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import matplotlib as mpl
import torch

import lib
from tests.course.claims import Chapter

mpl.use("Agg")
for module in pkgutil.iter_modules(lib.__path__, "lib."):
    importlib.import_module(module.name)  # one imported under a patch would keep the fault


@dataclass(frozen=True)
class Perturbation:
    """One thing that is broken on purpose.

    Args:
        name: what is wrong then, in words.
        patch: dotted names in ``lib``, each with a function from the original to its replacement.
        replace: an expression in the check cell, where it stands exactly once, and another for it.
    """

    name: str
    patch: Mapping[str, Callable[[Callable], Callable]] = field(default_factory=dict)
    replace: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if bool(self.patch) == bool(self.replace):
            raise ValueError(f"perturbation {self.name!r} needs a patch or a replacement, not both")
        for target in self.patch:
            if target.split(".")[0] != "lib":
                raise ValueError(f"perturbation {self.name!r} patches {target}, which is not lib")


def set_up_cells(chapter: Chapter) -> list:
    return [cell for cell in chapter.notebook.cells if "setup" in cell.metadata.get("tags", [])]


def check_cells(chapter: Chapter) -> dict[str, str]:
    """The source of each check cell, by id."""
    return {c.id: c.source for c in chapter.notebook.cells if c.metadata.get("checks")}


def perturbed_source(source: str, perturbation: Perturbation, cell: str) -> str:
    """The cell's source with the replacement made.

    Raises:
        ValueError: if what is to be replaced does not stand in the cell exactly once.
    """
    old, new = perturbation.replace
    if source.count(old) != 1:
        raise ValueError(
            f"perturbation {perturbation.name!r}: {old!r} stands {source.count(old)} times in cell "
            f"{cell}, it has to stand there exactly once"
        )
    return source.replace(old, new)


@contextmanager
def undone_later() -> Iterator[None]:
    """Give back what set-up cells change for the process: torch's dtype, the figures' style."""
    dtype = torch.get_default_dtype()
    with mpl.rc_context():
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)


@contextmanager
def patched(perturbation: Perturbation | None) -> Iterator[None]:
    with ExitStack() as stack:
        for target, replacement in (perturbation.patch if perturbation else {}).items():
            module, _, name = target.rpartition(".")
            place = importlib.import_module(module)
            new = replacement(getattr(place, name))
            stack.enter_context(mock.patch.object(place, name, new))
        yield


def run(source: str, namespace: dict[str, Any], where: str) -> None:
    exec(compile(source, where, "exec"), namespace)


def without_nan(pick: Callable) -> Callable:
    """`max` or `min`, but with an AssertionError where one of the values is not a number."""

    @functools.wraps(pick)
    def picked(*values, **options):
        values = values if len(values) > 1 else list(*values)
        if any(isinstance(each, float | torch.Tensor) and each != each for each in values):
            raise AssertionError(f"{pick.__name__} of {values}")
        return pick(values, **options)

    return picked


def outcomes(
    chapter: Chapter,
    perturbation: Perturbation | None = None,
    claim: str | None = None,
    only: Container[str] | None = None,
) -> dict[str, BaseException | None]:
    """Run the set-up cells and the check cells: for each, what it raised, or None if it passed.

    Args:
        chapter: the chapter.
        perturbation: what is broken meanwhile.
        claim: whose check cell the perturbation's replacement is for.
        only: the ids of the check cells to run; all of them when not given.
    """
    errors: dict[str, BaseException | None] = {}
    with undone_later(), patched(perturbation):
        base = {"__name__": "chapter", "display": lambda *objects, **options: None}
        base |= {"max": without_nan(max), "min": without_nan(min)}
        for cell in set_up_cells(chapter):
            run(cell.source, base, f"{chapter.slug}:{cell.id}")
        for cell, source in check_cells(chapter).items():
            if only is not None and cell not in only:
                continue
            if perturbation and perturbation.replace and cell in chapter.checks[claim]:
                source = perturbed_source(source, perturbation, cell)
            try:
                run(source, dict(base), f"{chapter.slug}:{cell}")
                errors[cell] = None
            except Exception as error:
                errors[cell] = error
    return errors


def undisturbed(chapter: Chapter) -> dict[str, BaseException | None]:
    """The outcomes when nothing is broken, computed once for each chapter."""
    attributes = vars(chapter)
    if "undisturbed" not in attributes:
        attributes["undisturbed"] = outcomes(chapter)
    return attributes["undisturbed"]


def verdict(chapter: Chapter, claim: str, perturbation: Perturbation) -> list[str]:
    """What is wrong with this perturbation of this claim; nothing if exactly its check fails.

    A patch of ``lib`` may reach every cell, so all of them run under it. A replacement changes one
    check cell; the set-up and the other cells are the same code as in an undisturbed run.
    """
    own = set(chapter.checks[claim])
    if perturbation.replace:
        errors = undisturbed(chapter) | outcomes(chapter, perturbation, claim, only=own)
    else:
        errors = outcomes(chapter, perturbation, claim)
    wrong = []
    for cell, error in errors.items():
        place = f"{chapter.slug}, {claim}, under {perturbation.name!r}: cell {cell}"
        if cell in own and error is None:
            wrong.append(f"{place} passes, it has to fail")
        elif cell in own and not isinstance(error, AssertionError):
            wrong.append(f"{place} stops with {error!r}, it has to fail by an assertion")
        elif cell not in own and error is not None:
            wrong.append(f"{place} fails too ({error!r}), only the check of {claim} may")
    return wrong


def perturbations(slug: str) -> dict[str, Perturbation]:
    """The perturbations of one chapter, by claim: ``PERTURBATIONS`` in its file."""
    return importlib.import_module(f"tests.course.perturbations.{slug}").PERTURBATIONS


def perturbed_chapters() -> list[str]:
    """The chapters that have perturbations. Those of the page of misconceptions are no claims'."""
    files = (Path(__file__).parent / "perturbations").glob("[0-9]*.py")
    return sorted(path.stem for path in files)
