"""Training grids that are too long for a page: run what is missing, keep what still holds.

``make results``, or ``python -m benchmarks.record [NAME ...] [--force] [--only TEXT]``.

An experiment is a module of `lib` with two functions:

- ``arms()``: the grid, a list of settings that JSON can hold, the seed among them;
- ``run(arm, n_steps=None)``: trains one arm and returns a result that JSON can hold. With
  ``n_steps`` it stops early (the schedule stays that of the whole run) and evaluates as always.

The record, ``benchmarks/results/NAME.json``, holds for each arm its result after all steps and its
*opening*, the result after `OPENING` steps. It carries a hash of what the experiment's code does:
the module and all of `lib` that it imports, without comments and docstrings. When the code has
changed since, each opening is run again. If it gives the same numbers, the arm is kept, and the
record says when that was; if not, the arm is trained anew. A quantity that ``run`` did not measure
before is no difference: the arm is kept without it until ``--force`` trains it anew, all arms or,
with ``--only``, some. An arm whose settings changed is trained anew, one that left the grid is
dropped. Each arm is written as soon as it is done, so an interrupted run goes on where it was.

An experiment that trains on a text has a third function, ``corpus_hash()``, and its results hold
that hash as ``corpus``. Under a Python whose help topics are another text nothing can be
replayed: the tests say so and skip, and the record is left alone unless ``--force`` is given.

An experiment that is no module of `lib` has a function ``source()``: the code that it depends on.
That code is hashed too, with all of `lib` that it imports.
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
from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks.machine import ROOT, commit, processor, write_atomically
from lib import results
from tools import imports

EXPERIMENTS = {  # name of the record -> module
    "extrapolation": "lib.extrapolation",
    "translation": "benchmarks.translation",
    "warmup": "lib.warmup",
}
OPENING = 10  # steps
TOLERANCE = 1e-3  # relative; sums in another order differ by about 1e-6 after the opening


def code_hash(name: str) -> str:
    """A hash of what the experiment's code does now."""
    source = getattr(experiment(name), "source", None)
    if source is None:
        return imports.behaviour(imports.closure(f"import {EXPERIMENTS[name]}", ROOT / "lib"))
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
    result = experiment(name).run(arm)
    seconds = round(time.perf_counter() - start, 1)
    return {
        "arm": arm,
        "result": result,
        "opening": opening,
        "seconds": seconds,
        **where_and_when(),
    }


def where_and_when() -> dict:
    """What an arm is stamped with."""
    return {
        "processor": processor(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
    }


def replay(name: str, kept: dict) -> list[str]:
    """Run an arm's opening again; return where it differs from the record, none if nowhere.

    What is measured now and was not measured then is left out.
    """
    torch.set_num_threads(1)
    now = json.loads(json.dumps(experiment(name).run(kept["arm"], n_steps=OPENING)))
    known = {key: value for key, value in now.items() if key in kept["opening"]}
    return list(differences(kept["opening"], known))


def other_text(name: str, kept: dict) -> str:
    """Why an arm cannot be run again here: its text is not that of this Python. Else nothing."""
    corpus_hash = getattr(experiment(name), "corpus_hash", None)
    if corpus_hash is None or corpus_hash() == kept["result"]["corpus"]:
        return ""
    return (
        f"{name} was trained on the help topics of Python {kept['python']}, and those of Python "
        f"{platform.python_version()} are another text"
    )


def differences(old: object, new: object, at: str = "opening") -> Iterator[str]:
    """Where two results differ, numbers by more than `TOLERANCE`."""
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        for key in old:
            yield from differences(old[key], new[key], f"{at}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, pair in enumerate(zip(old, new, strict=True)):
            yield from differences(*pair, f"{at}[{index}]")
    elif isinstance(old, float) and isinstance(new, float):
        same = math.isclose(old, new, rel_tol=TOLERANCE) or (math.isnan(old) and math.isnan(new))
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
    place = {json.dumps(arm, sort_keys=True): index for index, arm in enumerate(grid)}
    record["arms"].sort(key=lambda kept: place[json.dumps(kept["arm"], sort_keys=True)])
    arms = ",\n".join(" " + json.dumps(kept) for kept in record["arms"])
    head = json.dumps({key: value for key, value in record.items() if key != "arms"}, indent=1)
    text = head.removesuffix("\n}") + f',\n "arms": [\n{arms}\n ]\n}}\n'
    results.FOLDER.mkdir(parents=True, exist_ok=True)
    write_atomically(results.FOLDER / f"{name}.json", text)


def update(name: str, *, force: bool = False, only: str = "", processes: int = 2) -> None:
    """Bring one record up to date with the grid and the code.

    Args:
        name: the record.
        force: train every arm anew that ``only`` admits.
        only: train no arm whose settings lack this text; the rest of the record stays as it is.
        processes: arms at the same time, one thread each.

    Raises:
        ValueError: if there is something to do, and the record's text is not that of this Python.
    """
    grid, record, now = experiment(name).arms(), read(name), code_hash(name)
    known = [kept for kept in record["arms"] if kept["arm"] in grid]
    if force:
        known = [kept for kept in known if only not in json.dumps(kept["arm"])]
    if known and (record["code"] != now or len(known) < len(grid)):
        if reason := other_text(name, known[0]):
            raise ValueError(f"{reason}: --force would train every arm anew on it")
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(processes, mp_context=context) as pool:
        if record["code"] != now and known:
            print(f"{name}: the code has changed, {len(known)} openings run again", flush=True)
            with deaf():
                replayed = pool.map(replay, [name] * len(known), known)
            found = list(replayed)
            for kept, different in zip(known, found, strict=True):
                if different:
                    print(f"  {kept['arm']}: {different[0]}", flush=True)
            known = [kept for kept, different in zip(known, found, strict=True) if not different]
        record |= {
            "experiment": EXPERIMENTS[name],
            "code": now,
            "confirmed": datetime.date.today().isoformat(),
            "arms": known,
        }
        write(name, record, grid)
        done = [kept["arm"] for kept in known]
        waiting = [arm for arm in grid if arm not in done and only in json.dumps(arm)]
        with deaf():
            running = [pool.submit(train, name, arm) for arm in waiting]
        for count, future in enumerate(concurrent.futures.as_completed(running), 1):
            kept = future.result()
            record["arms"].append(kept)
            write(name, record, grid)
            print(f"{name} {count}/{len(waiting)} {kept['seconds']} s {kept['arm']}", flush=True)
    print(f"{name}: {len(record['arms'])} of {len(grid)} arms are recorded", flush=True)


@contextlib.contextmanager
def deaf() -> Iterator[None]:
    """Processes started in here hear no Ctrl-C; this one does, at the end."""
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
    arms = [kept["arm"] for kept in record["arms"]]
    found = [f"no result for {arm}" for arm in grid if arm not in arms]
    found += [f"left the grid: {arm}" for arm in arms if arm not in grid]
    if record["code"] != code_hash(name):
        found.append("the code has changed since")
    return [f"{problem}: run `make results`" for problem in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"records: {', '.join(EXPERIMENTS) or 'none yet'}")
    parser.add_argument("--force", action="store_true", help="train arms anew, kept or not")
    parser.add_argument("--only", default="", help="train only arms whose settings hold this text")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    if unknown := set(options.names) - EXPERIMENTS.keys():
        parser.error(f"unknown {sorted(unknown)}, known are {sorted(EXPERIMENTS)}")
    for name in options.names or EXPERIMENTS:
        update(name, force=options.force, only=options.only, processes=options.processes)


if __name__ == "__main__":
    main()
