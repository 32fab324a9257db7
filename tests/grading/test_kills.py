"""Whatever is killed in the middle, the next run finishes what is missing, and nothing is lost."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from course_folder import NAME, RIGHT, ROOT, Folder, answers, source

WORK = {
    "full": answers(**RIGHT),
    "partial": answers(double=RIGHT["double"]),
    "blank": answers(),
    "exits": answers(double="import os\nos._exit(0)", shout=RIGHT["shout"]),
    "slow": answers(double="import time\ntime.sleep(0.5)\n" + RIGHT["double"]),
}
SCORES = {"full": 5.0, "partial": 2.0, "blank": 0.0, "exits": 3.0, "slow": 2.0, "cut": 0.0}


def _course(root: Path) -> Folder:
    folder = Folder(root)
    folder.publish(source())
    for learner, notebook in WORK.items():
        folder.hand_in(learner, notebook)
    folder.hand_in("cut", b"{")
    return folder


def _start(folder: Folder) -> subprocess.Popen:
    words = [sys.executable, "-m", "grading", NAME, "--course", str(folder.root), "--jobs", "2"]
    return subprocess.Popen(
        words,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def _below(pid: int) -> list[int]:
    """All processes that descend from one."""
    found, waiting = [], [pid]
    while waiting:
        for path in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            try:
                children = [int(word) for word in path.read_text().split()]
            except OSError:
                continue
            found += children
            waiting += children
    return found


def _kill(process: subprocess.Popen, what: str, chance: random.Random) -> None:
    below = _below(process.pid)
    targets = {
        "coordinator": [process.pid],
        "worker": chance.sample(below, min(1, len(below))),
        "tree": [process.pid, *below],
    }[what]
    for pid in targets:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def _disturb(folder: Folder, kills: int, seed: int) -> None:
    """Start the command again and again, and kill something of it at some moment."""
    chance = random.Random(seed)
    for number in range(kills):
        process = _start(folder)
        what = ("coordinator", "worker", "tree")[number % 3]
        try:
            # Until the first code runs, and a while into the batch.
            begin = time.monotonic()
            moment = chance.uniform(0.0, 6.0)
            started = None
            while process.poll() is None and time.monotonic() - begin < 60:
                if started is None and _below(process.pid):
                    started = time.monotonic()
                if started is not None and time.monotonic() - started > moment:
                    break
                time.sleep(0.05)
            _kill(process, what, chance)
            process.wait(300)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def _finish(folder: Folder) -> None:
    """Run to the end, and look that all is as if nothing had happened."""
    for _ in range(3):  # a run in which a worker was killed ends with a retry
        if _start(folder).wait(300) == 0:
            break
    assert folder.gradebook() == SCORES
    assert {name: float(row["score"]) for name, row in folder.table().items()} == SCORES
    # Nothing is run twice: the next run finds all as it is.
    assert _start(folder).wait(300) == 0
    told = json.loads((folder.root / "reports" / f"grades-{NAME}.json").read_text())
    assert (told["run"], told["retry"], told["done"]) == (0, 0, True)
    halves = [path for path in folder.root.rglob("*.part") if path.stat().st_size == 0]
    assert not halves


def _nurseries() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"grading.nursery" in words:
            found.append(path.parent.name)
    return found


@pytest.mark.parametrize(
    "kills", [pytest.param(5, id="five"), pytest.param(50, id="fifty", marks=pytest.mark.long)]
)
def test_killed_runs_lose_nothing(tmp_path, kills):
    before = set(_nurseries())
    folder = _course(tmp_path)
    _disturb(folder, kills, seed=kills)
    _finish(folder)
    # Nothing lives on of the runs that were killed.
    end = time.monotonic() + 20
    while set(_nurseries()) - before and time.monotonic() < end:
        time.sleep(0.2)
    assert not set(_nurseries()) - before
