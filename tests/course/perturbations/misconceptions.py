"""For each claim of the page: another world, and the verdict that the claim gets in it.

Most worlds stand on the page, under "What would change it": one expression of the claim's cell,
another one for it, and the verdict. They are read from there, so that what the page tells its
reader to try is what the tests try. A world that is described in words is a patch of ``lib``,
below. Never is the comparison itself changed.
"""

import math
import re
from collections.abc import Callable, Iterator

import torch

from tests.course.claims import BOOK, read
from tests.course.execution import Perturbation

WHAT_WOULD = re.compile(
    r"^\*\*What would change it\.\*\* (?P<says>.+?)"
    r"(?: Try `(?P<old>[^`]+)` → `(?P<new>[^`]+)`)?: \*(?P<word>[a-z ]+)\*\.$",
    re.MULTILINE | re.DOTALL,
)


def constant_losses(load: Callable) -> Callable:
    """A record in which no loss changes along the text."""
    return lambda name: _with_losses(load(name), lambda losses: [losses[1]] * len(losses))


def rising_losses(load: Callable) -> Callable:
    """A record in which every loss rises by a nat in each block."""
    return lambda name: _with_losses(load(name), lambda losses: [*map(float, range(len(losses)))])


def _with_losses(record: dict, change: Callable) -> dict:
    for run in record["arms"]:
        if "loss" in run["result"]:
            run["result"]["loss"] = change(run["result"]["loss"])
    return record


def to_the_end(_: Callable) -> Callable:
    """Wavelengths whose exponents go on to 1."""
    return lambda dim: 2 * math.pi * 1e4 ** (2 * (torch.arange(dim // 2) + 1) / dim)


def geometric(slopes: Callable) -> Callable:
    return lambda n_heads, **options: slopes(n_heads, rule="geometric", **options)


def sees_everything(state: Callable) -> Callable:
    """Forget the causal mask."""
    return lambda position, prepared, cache, causal: state(position, prepared, cache)


def whole_text(_: Callable) -> Callable:
    """Normalize all numbers of a text together."""
    return lambda x, **_: (x - x.mean()) / x.std(correction=0)


def centred(norm: Callable) -> Callable:
    """An RMS norm that subtracts the mean first."""
    return lambda x, *gain: norm(x - x.mean(dim=-1, keepdim=True), *gain)


PATCHES = {
    "17": Perturbation("exponents to 1", patch={"lib.sinusoidal.wavelengths": to_the_end}),
    "18": Perturbation("the model holds", patch={"lib.results.load": constant_losses}),
    "26": Perturbation("the model holds", patch={"lib.results.load": constant_losses}),
    "31a": Perturbation("one formula for all", patch={"lib.alibi.alibi_slopes": geometric}),
    "32": Perturbation("no model holds", patch={"lib.results.load": rising_losses}),
    "44": Perturbation("no causal mask", patch={"lib.stack.LayerState": sees_everything}),
    "45": Perturbation("the text together", patch={"lib.norms.layer_norm": whole_text}),
    "53": Perturbation("the mean is subtracted", patch={"lib.norms.rms_norm": centred}),
}


def worlds() -> Iterator[tuple[str, tuple[Perturbation, str]]]:
    """Each claim's number, and its other world and verdict, in the order of the page."""
    for cell in read(BOOK / "misconceptions.ipynb").notebook.cells:
        if not cell.id.startswith("right-"):
            continue
        number, matches = cell.id.removeprefix("right-"), [*WHAT_WOULD.finditer(cell.source)]
        if len(matches) != 1:
            raise ValueError(f"claim {number}: {len(matches)} lines on what would change it, not 1")
        world = matches[0]
        if (world["old"] is None) != (number in PATCHES):
            raise ValueError(f"claim {number} needs a change to try, or a patch, and not both")
        if world["old"]:
            change = Perturbation(world["says"], replace=(world["old"], world["new"]))
        else:
            change = PATCHES[number]
        yield number, (change, world["word"])


PERTURBATIONS = dict(worlds())
