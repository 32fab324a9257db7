"""What a submission may use: however it goes over a limit, it is stopped because of that limit.

Each piece of code here takes memory, processes, files or processor time in a way that a look at one
process, or at one tree of processes, does not see. Root grades with a user for each submission, and
an ordinary user with no other user than itself; what differs is tried both ways.
"""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from course_folder import ROOT

from grading.runner import pool
from grading.runner.job import Cell, Job, Limits, Verdict
from grading.runner.watch import Watched

MB = 2**20
LIMITS = Limits(cell_seconds=20, total_seconds=40, memory=300 * MB, processes=16, files=1000)
NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


def job(*cells: Cell | str, limits: Limits = LIMITS, names: tuple[str, ...] = ()) -> Job:
    """A job of these cells; text is a cell of the learner's."""
    made = [cell if isinstance(cell, Cell) else Cell(cell, "answer") for cell in cells]
    return Job(tuple(made), names, limits=limits)


def by_nobody(jobs: list[Job]) -> list[Verdict]:
    """Run jobs as an ordinary user, who must be able to read Python and the course."""
    program = """import json, sys
from grading.runner import pool
from grading.runner.job import Job
print(json.dumps([pool.run(Job.from_json(text)).to_json() for text in json.load(sys.stdin)]))"""
    away, back = ["mount --make-rprivate /", "mount -t tmpfs none /mnt"], []
    closed = set()
    for number, folder in enumerate((Path(sys.base_prefix), Path(sys.prefix).resolve(), ROOT)):
        shut = [path for path in folder.parents if not path.stat().st_mode & 1]
        if shut:
            closed.add(shut[-1])
            away.append(f"mkdir /mnt/{number}; mount --rbind '{folder}' /mnt/{number}")
            back.append(f"mkdir -p '{folder}'; mount --rbind /mnt/{number} '{folder}'")
    over = [f"mount -t tmpfs -o mode=755 none '{folder}'" for folder in closed]
    user = f'exec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups "$@"'
    words = ["unshare", "--mount", "sh", "-ec", "\n".join([*away, *over, *back, user]), "sh"]
    done = subprocess.run(
        [*words, sys.executable, "-B", "-c", program],
        cwd=ROOT,
        input=json.dumps([each.to_json() for each in jobs]),
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return [Verdict(**json.loads(text)) for text in json.loads(done.stdout)]


def shown(verdict: Verdict) -> str:
    """All that a verdict says: outputs and notes."""
    return repr([*verdict.outputs, *verdict.notes])


# --- memory, files, processor time

KEEP = "import time; time.sleep(3)"
FOUR = f"""import os
for _ in range(4):
    if os.fork() == 0:
        BEFORE
        held = b"1" * ({120 * MB})
        {KEEP}
        os._exit(0)
{KEEP}"""
PROGRAMS = f"""import subprocess, sys
program = "held = b'1' * ({120 * MB}); {KEEP}"
for _ in range(4):
    subprocess.Popen([sys.executable, "-c", program])
{KEEP}"""
MEMORY = {
    "one process": f"held = b'1' * ({500 * MB})\n{KEEP}",
    "several, each below the limit": FOUR.replace("BEFORE", "pass"),
    "orphans": FOUR.replace("BEFORE", "os.fork() and os._exit(0)"),
    "other programs": PROGRAMS,
    "files in all folders": f"""data = b"1" * ({60 * MB})
for place in ("/tmp/a", "/dev/shm/a", "/home/learner/a"):
    open(place, "wb").write(data)
held = b"1" * ({100 * MB})
{KEEP}""",
}
FILES = """import os
for number in range(2000):
    os.close(os.open(f"PLACE/{number}", os.O_CREAT))
import time; time.sleep(1)"""
TIME = """import os, signal, time
def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
for _ in range(4):
    if os.fork() == 0:
        while True:
            START
            if os.fork() == 0:
                work(0.4)
                os._exit(0)
            END
work(100)"""
WAYS = {
    "children that are waited for": ("pass", "os.wait()"),
    "children that nobody waits for": (
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
        "time.sleep(0.3)",
    ),
    "orphans": ("pass", "os._exit(0) if os.fork() else time.sleep(0.3)"),
}
SECONDS = replace(LIMITS, cell_seconds=60, total_seconds=4, memory=2048 * MB, processes=64)
OVER = {
    **{f"memory: {name}": (code, LIMITS, "0.3 GB of memory") for name, code in MEMORY.items()},
    **{
        f"files: {place}": (FILES.replace("PLACE", place), LIMITS, "1000 files")
        for place in ("/tmp", "/dev/shm", "/home/learner")
    },
    **{
        f"time: {name}": (
            TIME.replace("START", before).replace("END", after),
            SECONDS,
            "4 s of processor time",
        )
        for name, (before, after) in WAYS.items()
    },
}


@pytest.fixture(scope="module")
def overdone() -> dict[str, Verdict]:
    """The verdicts on all that goes over a limit, two at a time."""
    with ThreadPoolExecutor(2) as threads:
        jobs = [job(code, limits=limits) for code, limits, _ in OVER.values()]
        return dict(zip(OVER, threads.map(pool.run, jobs), strict=True))


@pytest.mark.parametrize("name", OVER)
def test_who_goes_over_a_limit_is_stopped_because_of_it(overdone, name):
    _, limits, reason = OVER[name]
    verdict = overdone[name]
    assert f"more than {reason}" in " ".join(verdict.notes), shown(verdict)
    assert verdict.peak > (limits.memory if name.startswith("memory") else 0)


@as_root
def test_an_ordinary_user_stops_them_too():
    names = [name for name in OVER if name.startswith("memory")] + ["files: /tmp"]
    for name, verdict in zip(names, by_nobody([job(OVER[name][0]) for name in names]), strict=True):
        assert f"more than {OVER[name][2]}" in " ".join(verdict.notes), (name, shown(verdict))


@as_root
def test_more_processes_than_allowed_are_seen_where_the_kernel_does_not_refuse_them():
    """The kernel refuses them to a submission, so these come from outside: without its limits."""
    inside = []

    def learner(setting: dict, numbers: list[int]) -> tuple[int, int]:
        words = ["nsenter", "--target", str(setting["outer"]), "--pid", "--mount", "sh", "-c"]
        loop = "for _ in 1 2 3 4 5 6 7 8; do sleep 60 & done; wait"
        inside.append(subprocess.Popen([*words, loop]))
        return inside[0].pid, os.pidfd_open(inside[0].pid)

    limits = replace(LIMITS, processes=5)
    watched = Watched(job(limits=limits), learner, 0)
    try:
        end = time.monotonic() + 20
        while not watched.reason and time.monotonic() < end:
            watched.look()
        assert watched.reason == "it started more than 5 processes"
    finally:
        watched.connection.close()
        assert watched.end() == watched.reason
        inside[0].wait(20)


def test_memory_that_nothing_counts_is_refused():
    source = """import ctypes, mmap, os
def tried(what):
    try:
        return what()
    except OSError:
        return "refused"
print(tried(lambda: mmap.mmap(-1, 4096)))
print(tried(lambda: mmap.mmap(os.open("/dev/zero", os.O_RDWR), 4096)))
print(tried(lambda: os.memfd_create("x")))
"""
    assert "refused\\nrefused\\nrefused\\n" in shown(pool.run(job(source)))


def test_what_learners_need_works_beside_it():
    source = """import mmap, multiprocessing, numpy, torch
from torch.utils.data import DataLoader
with open("/dev/shm/x", "w+b") as file:
    file.truncate(4096)
    shared = mmap.mmap(file.fileno(), 4096)
shared[0] = 7
print("mapped", shared[0], mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE)[0])
context = multiprocessing.get_context("fork")
number = context.Value("i", 0)
def add():
    with number.get_lock():
        number.value += 1
workers = [context.Process(target=add) for _ in range(3)]
for each in workers: each.start()
for each in workers: each.join()
print("counted", number.value)
print("loaded", sum(batch.sum().item() for batch in DataLoader(torch.ones(8, 2), 2, num_workers=2)))
print("shared", torch.ones(3).share_memory_().sum().item())
print("threads", numpy.ones((300, 300)).dot(numpy.ones((300, 300))).sum())"""
    said = shown(pool.run(job(source, limits=Limits())))
    for words in ("mapped 7 0", "counted 3", "loaded 16.0", "shared 3.0", "threads 27000000.0"):
        assert words in said, said
