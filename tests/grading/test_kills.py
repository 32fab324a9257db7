"""Whatever is killed in the middle, the next run finishes what is missing, and nothing is lost."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from course_folder import NAME, RIGHT, ROOT, Folder, answers, source

from grading import storage

WORK = {
    "full": answers(**RIGHT),
    "partial": answers(double=RIGHT["double"]),
    "blank": answers(),
    "exits": answers(double="import os\nos._exit(0)", shout=RIGHT["shout"]),
    "slow": answers(double="import time\ntime.sleep(0.5)\n" + RIGHT["double"]),
}
SCORES = {"full": 5.0, "partial": 2.0, "blank": 0.0, "exits": 3.0, "slow": 2.0, "cut": 0.0}


def _course(root: Path) -> Folder:
    """Everybody has a score of 1 to 3 points for earlier work, and has handed in anew."""
    folder = Folder(root)
    folder.publish(source())
    earlier = {"full": answers(shout=RIGHT["shout"]), "blank": answers(double=RIGHT["double"])}
    for learner in SCORES:
        folder.hand_in(learner, earlier.get(learner, answers(**RIGHT)))
    assert _start(folder).wait(300) == 0
    old = folder.gradebook()
    assert not [learner for learner, score in SCORES.items() if old[learner] == score]
    for learner, notebook in WORK.items():
        folder.hand_in(learner, notebook)
    folder.hand_in("cut", b"{")
    return folder


def _place(folder: Folder) -> Path:
    """Where this course's runs put temporary files: so their processes are known from others'."""
    place = folder.root / "t"
    place.mkdir(exist_ok=True)
    return place


def _start(folder: Folder) -> subprocess.Popen:
    words = [sys.executable, "-m", "grading", NAME, "--course", str(folder.root), "--jobs", "2"]
    return subprocess.Popen(
        words,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"OMP_NUM_THREADS": "1", "TMPDIR": str(_place(folder))},
    )


def _below(pid: int) -> list[int]:
    """All processes that descend from one, but learners' own.

    Nothing tells whether one of these was killed or killed itself; and to an ordinary user's, that
    holds for all processes in its sandbox.
    """
    try:
        below = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return [each.pid for each in below if not _learners(each.pid)]


def _learners(pid: int) -> bool:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    inside = len(status["NSpid"].split()) > 1
    return inside and (status["Name"] not in ("bwrap", "sleep") or os.geteuid() != 0)


def _forking(folder: Folder, *, ready: bool = False) -> list[int]:
    """The processes of this course's runs that fork judges and learners, and those forks.

    Args:
        folder: the course.
        ready: only when they have begun to fork: one without its run that comes so far ends anyway.
    """
    pids, place = [], str(_place(folder))
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or ()
        sockets = [word for word in words if word.startswith(place)]
        if "grading.runner.forkserver" in words and sockets:
            if not ready or os.path.exists(sockets[0]):
                pids.append(process.pid)
    return pids


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


class Invariants:
    """What holds at every moment, whatever was killed."""

    def __init__(self, folder: Folder):
        self.folder, self.progress = folder, folder.root / "progress" / NAME
        self.verdicts = self._verdicts()
        self.earlier = {learner: storage.load(self.progress, learner) for learner in SCORES}

    def _verdicts(self) -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in self.progress.glob("verdicts/*.json")}

    def look(self) -> None:
        # What was run is not run again.
        now = self._verdicts()
        assert {path: now.get(path) for path in self.verdicts} == self.verdicts
        self.verdicts = now
        # A record says that it is done only when the score of that very work is in the gradebook.
        scores = self.folder.gradebook()
        for learner, earlier in self.earlier.items():
            record = storage.load(self.progress, learner)
            if record and record.status != "retry" and record.submission != earlier.submission:
                assert scores.get(learner) == SCORES[learner], learner


def _disturb(folder: Folder, kills: int, seed: int) -> None:
    """Start the command again and again, and kill something of it at some moment."""
    invariants = Invariants(folder)
    chance = random.Random(seed)
    for number in range(kills):
        process = _start(folder)
        what = ("coordinator", "worker", "tree")[number % 3]
        try:
            # Every other time from the first child on, or from when the one that forks is there.
            begin = time.monotonic()
            moment = chance.uniform(0.0, 6.0)
            started = None
            while process.poll() is None and time.monotonic() - begin < 60:
                begun = _below(process.pid) if number % 2 else _forking(folder, ready=True)
                if started is None and begun:
                    started = time.monotonic()
                if started is not None and time.monotonic() - started > moment:
                    break
                time.sleep(0.05)
            _kill(process, what, chance)
            process.wait(300)
            invariants.look()
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
    summary = json.loads((folder.root / "reports" / f"grades-{NAME}.json").read_text())
    assert (summary["run"], summary["retry"], summary["done"]) == (0, 0, True)
    assert not list(folder.root.rglob("*.part"))


@pytest.mark.parametrize(
    "kills", [pytest.param(2, id="two"), pytest.param(20, id="twenty", marks=pytest.mark.long)]
)
def test_killed_runs_lose_nothing(tmp_path, kills):
    folder = _course(tmp_path)
    _disturb(folder, kills, seed=kills)
    _finish(folder)
    # Nothing lives on of the runs that were killed.
    end = time.monotonic() + 20
    while _forking(folder) and time.monotonic() < end:
        time.sleep(0.2)
    assert not _forking(folder)
