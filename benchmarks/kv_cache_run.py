"""What the sections of :mod:`benchmarks.kv_cache` share: their run, a step, agreement."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.kv_cache_device import Cpu
from benchmarks.kv_cache_plan import SEED, Plan, Shape
from benchmarks.machine import write_whole
from lib.transformer import LanguageModel


class Run:
    """A device, a plan and the record, with the clock that a section runs against."""

    def __init__(self, device: Cpu, plan: Plan, record: dict, out: Path | None = None) -> None:
        self.device, self.plan, self.record, self.out = device, plan, record, out
        self.dtype = getattr(torch, plan.dtype)
        self.section: dict = {}
        self.end = float("inf")

    def save(self) -> None:
        if self.out is not None:
            keep(self.record, self.out)

    def late(self, point: str) -> bool:
        """Whether the section's time is over; then the point is noted as left out."""
        if time.monotonic() < self.end:
            return False
        self.section["left_out"].append(point)
        return True

    @contextlib.contextmanager
    def attempt(self, point: str) -> Iterator[None]:
        """Note an error at one point of a section, and go on."""
        try:
            yield
        except Exception as problem:
            self.device.wait()  # a device that no longer answers ends the section
            self.section["errors"].append(f"{point}: {said(problem)}")
            self.device.clear()

    def tokens(self, shape: Shape, batch: int, length: int) -> torch.Tensor:
        draw = torch.Generator().manual_seed(SEED)
        drawn = torch.randint(shape.vocab_size, (batch, length), generator=draw)
        return drawn.to(self.device.device)

    def samples(self, ways: dict, *, calls: int = 1, rounds: int | None = None) -> dict:
        """Seconds of each round for each way, all ways in turn in each round."""
        found: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(self.plan.rounds if rounds is None else rounds):
            for name, way in ways.items():
                found[name].append(short(self.device.seconds(way, calls)))
        return found


def keep(record: dict, out: Path) -> None:
    """Write the record; whoever reads it meanwhile gets a whole one."""
    write_whole(out, json.dumps(record, separators=(",", ":")) + "\n")


def said(problem: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(problem).split())
    return f"{type(problem).__name__}: {text}"[:400]


def short(number: float) -> float:
    """Five digits are more than a clock gives."""
    return float(f"{number:.5g}")


def difference(a: torch.Tensor, b: torch.Tensor) -> float:
    """The relative difference of two results; not a number is never small."""
    a, b = a.double(), b.double()
    found = ((a - b).norm() / b.norm()).item()
    return found if found == found else float("inf")


def agree(what: str, a: torch.Tensor, b: torch.Tensor, dtype: torch.dtype) -> float:
    """Stop before a wrong answer is timed. (The section `correctness` asks for more.)"""
    found, most = difference(a, b), 0.1 if dtype.itemsize == 2 else 1e-3
    if found > most:
        raise RuntimeError(f"{what}: the logits differ by {found:.2g}, allowed are {most}")
    return short(found)


def filled(model: LanguageModel, shape: Shape, batch: int, held: int, room: int):
    """A state with random keys and values: a step takes as long as with real ones."""
    state = model.decode_state(batch, room)
    weight = model.embedding.weight
    size = (batch, shape.kv_heads, held, shape.head_dim)
    for cache in state.caches if held else ():
        k = torch.randn(size, dtype=weight.dtype, device=weight.device)
        cache.update(k, torch.randn_like(k))
    if held:
        state.append(held)
    return state


def step_of(model: LanguageModel, state, tokens: torch.Tensor, t: int) -> Callable:
    """A call that reads token t - 1 with those before it in the cache, again and again."""
    last = tokens[:, t - 1 : t].contiguous()

    def step() -> torch.Tensor:
        state.truncate(t - 1)
        return model(last, state=state, last_only=True)

    return step


def step_bytes(shape: Shape, model: LanguageModel, t: int, batch: int) -> int:
    """What a step must read: every weight once (of the embedding a row), and the cache."""
    weights = sum(p.nbytes for p in model.parameters()) - model.embedding.weight.nbytes
    return weights + shape.cache_bytes(t, batch, model.embedding.weight.dtype)


def operations(model: dict, rows: int, t: int, batch: int) -> int:
    """Of ``rows`` new tokens a text, each of which sees t: as chapter 10 counts."""
    width = model["n_heads"] * model["head_dim"]
    per_row = 2 * model["n_weights"] + 4 * model["n_layers"] * width * t
    return batch * (rows * per_row + 2 * model["vocab_size"] * model["d_model"])


class Operators(TorchDispatchMode):
    """Count what torch starts."""

    number = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.number += 1
        return function(*args, **(kwargs or {}))
