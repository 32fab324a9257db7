"""Training grids that take too long for a page: run what is missing, keep what is still valid.

``make results``, or ``python -m benchmarks.record [NAME ...] [--force] [--only TEXT] [--weights]``.

An experiment is a module with two functions:

- ``arms()``: the grid, a list of settings that JSON can hold, the seed among them;
- ``run(arm, n_steps=None)``: trains one arm and returns a result that JSON can hold. With
  ``n_steps`` it stops early (the schedule stays that of the whole run) and evaluates as always.

The record, ``benchmarks/results/NAME.json``, holds for each arm its result after all steps and its
*opening*, the result after `OPENING` steps. It carries a hash of what the experiment's code does:
the module and all of `lib` that it imports, without comments and docstrings. When the code has
changed since, each opening is run again. If it gives the same numbers, the arm is kept, and the
record notes the date; if not, the arm is trained again. A quantity that ``run`` did not measure
before is no difference: the arm is kept without it until ``--force`` retrains it, all arms or,
with ``--only``, some. An arm whose settings changed is retrained, one that left the grid is
dropped. Each arm is written as soon as it is done, so an interrupted run continues where it was.

An experiment that trains on a text has a third function, ``corpus_hash()``, and its results hold
that hash as ``corpus``. Under a Python whose help topics are another text nothing can be
replayed: the tests skip with that reason, and the record is left alone unless ``--force`` is given.

An experiment whose code is elsewhere, as in a chapter's cells, has a function ``source()`` that
returns it. That code is hashed in place of the module, with all of `lib` that it imports.

An experiment whose weights are saved has a function ``fit(arm, n_steps=None)``, which returns the
model besides the result, and ``block_losses(model)``. Arms of seed `WEIGHTS_SEED` then save their
weights in float16 beside the record (:func:`lib.results.load_weights` reads them). ``--weights``
trains those arms that have none, and leaves their recorded results as they are.
"""

import argparse
import concurrent.futures
import contextlib
import datetime
import hashlib
import importlib
import json
import math
import multiprocessing
import os
import platform
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from benchmarks.machine import ROOT, commit, processor
from lib import results
from tools import imports
from tools.files import write_whole

EXPERIMENTS = {  # name of the record -> module
    "compression": "benchmarks.compression",
    "extrapolation": "lib.extrapolation",
    "translation": "benchmarks.translation",
    "warmup": "lib.warmup",
}
OPENING = 10  # steps
TOLERANCE = 1e-3  # relative; sums in another order differ by about 1e-6 after the opening
# Losses of numbers stored in few bits, by record. On another processor the sums differ a little, a
# number half-way between two levels goes to the other one, and the loss moves by up to 1.3 %.
ROUNDED = {"compression": ("8 bits", "4 bits")}
ROUNDING = 0.03  # relative
WEIGHTS_SEED = 0


def code_hash(name: str) -> str:
    """A hash of what the experiment's code does now."""
    module = experiment(name)
    source = getattr(module, "source", None)
    if source is None:
        path = Path(module.__file__)
        return imports.behaviour({path} | imports.closure(path.read_text(), ROOT / "lib"))
    code = source()
    parts = imports.behaviour(imports.closure(code, ROOT / "lib"))
    return hashlib.sha256(f"{parts}\0{code}".encode()).hexdigest()


def experiment(name: str):
    """The experiment's module."""
    return importlib.import_module(EXPERIMENTS[name])


def train(name: str, arm: dict) -> dict:
    """Run one arm, whole and its opening, on one thread."""
    torch.set_num_threads(1)
    opening = experiment(name).run(arm, n_steps=OPENING)
    start = time.perf_counter()
    save = saves_weights(name, arm)
    model, result = experiment(name).fit(arm) if save else (None, experiment(name).run(arm))
    entry = {
        "arm": arm,
        "result": result,
        "opening": opening,
        "seconds": round(time.perf_counter() - start, 1),
        **where_and_when(),
    }
    return entry | {"weights": save_weights(name, entry, model)} if save else entry


def saves_weights(name: str, arm: dict) -> bool:
    """Whether an arm's weights belong beside the record."""
    return hasattr(experiment(name), "fit") and arm["seed"] == WEIGHTS_SEED


def save_weights(name: str, entry: dict, model: nn.Module) -> dict:
    """Save an arm's model in float16, if with these weights it has the losses of the arm.

    Returns:
        The arm's ``weights`` (:class:`lib.results.SavedWeights`).

    Raises:
        ValueError: if a loss differs by more than `TOLERANCE`.
    """
    narrow = {key: tensor.half() for key, tensor in model.state_dict().items()}
    model.load_state_dict(narrow)  # rounded, in the model's own dtype
    losses = experiment(name).block_losses(model)
    for difference in differences(entry["result"]["loss"], losses, "loss"):
        raise ValueError(
            f"{name}, {entry['arm']}: these weights are of another model, {difference}"
        )
    path = results.FOLDER / "weights" / f"{name}-{'-'.join(map(str, entry['arm'].values()))}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **{key: tensor.numpy() for key, tensor in narrow.items()})
    return {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def add_weights(name: str, only: str = "") -> None:
    """Train again, for their weights alone, the arms that should have saved them and have not.

    Raises:
        ValueError: if the record is out of date, or as :func:`save_weights`.
    """
    if outdated := problems(name):
        raise ValueError(f"{outdated[0]}, then --weights")
    torch.set_num_threads(1)
    record = results.load(name)
    for entry in record["arms"]:
        arm = entry["arm"]
        if saves_weights(name, arm) and "weights" not in entry and only in json.dumps(arm):
            entry["weights"] = save_weights(name, entry, experiment(name).fit(arm)[0])
            write(name, record, experiment(name).arms())
            print(f"{name}: {entry['weights']['file']}", flush=True)


def where_and_when() -> dict:
    """Where, when and with what an arm is run."""
    return {
        "processor": processor(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
    }


def replay(name: str, entry: dict) -> list[str]:
    """Run an arm's opening again; return where it differs from the record, none if nowhere.

    A quantity that was not measured then is left out. What is `ROUNDED` may differ by `ROUNDING` on
    another processor than the record's.
    """
    torch.set_num_threads(1)
    now = json.loads(json.dumps(experiment(name).run(entry["arm"], n_steps=OPENING)))
    comparable = {key: value for key, value in now.items() if key in entry["opening"]}
    elsewhere = entry["processor"] != processor()
    rounded = ROUNDED.get(name, ()) if elsewhere else ()
    return list(differences(entry["opening"], comparable, rounded=rounded))


def other_text(name: str, entry: dict) -> str:
    """Why an arm cannot be run again here: its text is not that of this Python. Else ``""``."""
    corpus_hash = getattr(experiment(name), "corpus_hash", None)
    if corpus_hash is None or corpus_hash() == entry["result"]["corpus"]:
        return ""
    return (
        f"{name} was trained on the help topics of Python {entry['python']}, and those of Python "
        f"{platform.python_version()} are another text"
    )


def differences(
    old: object,
    new: object,
    at: str = "opening",
    *,
    rounded: Sequence[str] = (),
    tolerance: float = TOLERANCE,
) -> Iterator[str]:
    """Where two results differ, numbers by more than ``tolerance``, relative.

    Under the keys ``rounded`` the tolerance is `ROUNDING`.
    """
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        for key in old:
            within = ROUNDING if key in rounded else tolerance
            yield from differences(
                old[key], new[key], f"{at}.{key}", rounded=rounded, tolerance=within
            )
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, pair in enumerate(zip(old, new, strict=True)):
            yield from differences(*pair, f"{at}[{index}]", rounded=rounded, tolerance=tolerance)
    elif isinstance(old, float) and isinstance(new, float):
        same = math.isclose(old, new, rel_tol=tolerance) or (math.isnan(old) and math.isnan(new))
        if not same:
            yield f"{at}: {old} in the record, {new} now"
    elif type(old) is not type(new) or old != new:
        yield f"{at}: {old!r} in the record, {new!r} now"


def read(name: str) -> dict:
    """The record as it is, or an empty one."""
    path = results.FOLDER / f"{name}.json"
    if path.is_file():
        return results.load(name)
    return {"experiment": EXPERIMENTS[name], "code": "", "confirmed": "", "arms": []}


def write(name: str, record: dict, grid: list[dict]) -> None:
    """Write the record, arms in the grid's order; never half a file."""
    record["arms"].sort(key=lambda entry: grid.index(entry["arm"]))
    arms = ",\n".join(" " + json.dumps(entry) for entry in record["arms"])
    head = json.dumps({key: value for key, value in record.items() if key != "arms"}, indent=1)
    text = head.removesuffix("\n}") + f',\n "arms": [\n{arms}\n ]\n}}\n'
    results.FOLDER.mkdir(parents=True, exist_ok=True)
    write_whole(results.FOLDER / f"{name}.json", text)


def update(name: str, *, force: bool = False, only: str = "", processes: int = 2) -> None:
    """Bring one record up to date with the grid and the code.

    Args:
        name: the record.
        force: retrain every arm that ``only`` admits.
        only: train no arm whose settings lack this text; the rest of the record stays as it is.
        processes: arms at the same time, one thread each.

    Raises:
        ValueError: if there is something to do, and the record's text is not that of this Python.
    """
    grid, record, now = experiment(name).arms(), read(name), code_hash(name)
    valid = [entry for entry in record["arms"] if entry["arm"] in grid]
    if force:
        valid = [entry for entry in valid if only not in json.dumps(entry["arm"])]
    if valid and (record["code"] != now or len(valid) < len(grid)):
        if reason := other_text(name, valid[0]):
            raise ValueError(f"{reason}: --force would retrain every arm on it")
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(processes, mp_context=context) as pool:
        if record["code"] != now and valid:
            print(f"{name}: the code has changed, {len(valid)} openings run again", flush=True)
            with interrupts_blocked():
                replayed = pool.map(replay, [name] * len(valid), valid)
            unchanged = []
            for entry, different in zip(valid, replayed, strict=True):
                if different:
                    print(f"  {entry['arm']}: {different[0]}", flush=True)
                else:
                    unchanged.append(entry)
            valid = unchanged
        record |= {
            "experiment": EXPERIMENTS[name],
            "code": now,
            "confirmed": datetime.date.today().isoformat(),
            "arms": valid,
        }
        write(name, record, grid)
        done = [entry["arm"] for entry in valid]
        waiting = [arm for arm in grid if arm not in done and only in json.dumps(arm)]
        with interrupts_blocked():
            running = [pool.submit(train, name, arm) for arm in waiting]
        for count, future in enumerate(concurrent.futures.as_completed(running), 1):
            entry = future.result()
            record["arms"].append(entry)
            write(name, record, grid)
            print(f"{name} {count}/{len(waiting)} {entry['seconds']} s {entry['arm']}", flush=True)
    print(f"{name}: {len(record['arms'])} of {len(grid)} arms are recorded", flush=True)


@contextlib.contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Processes started in here ignore Ctrl-C; this one receives it at the end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def problems(name: str) -> list[str]:
    """What is out of date in a record; nothing is run."""
    path: Path = results.FOLDER / f"{name}.json"
    if not path.is_file():
        return [f"there is no {path.name}"]
    record, grid = results.load(name), experiment(name).arms()
    arms = [entry["arm"] for entry in record["arms"]]
    outdated = [f"no result for {arm}" for arm in grid if arm not in arms]
    outdated += [f"left the grid: {arm}" for arm in arms if arm not in grid]
    if record["code"] != code_hash(name):
        outdated.append("the code has changed since")
    return [f"{problem}: run `make results`" for problem in outdated]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"records: {', '.join(EXPERIMENTS) or 'none yet'}")
    parser.add_argument(
        "--force", action="store_true", help="retrain arms that are still valid, too"
    )
    parser.add_argument("--only", default="", help="train only arms whose settings hold this text")
    parser.add_argument("--weights", action="store_true", help="save weights that are missing")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    if unknown := set(options.names) - EXPERIMENTS.keys():
        parser.error(f"unknown {sorted(unknown)}, known are {sorted(EXPERIMENTS)}")
    for name in options.names or EXPERIMENTS:
        if options.weights:
            add_weights(name, options.only)
        else:
            update(name, force=options.force, only=options.only, processes=options.processes)


if __name__ == "__main__":
    main()
