"""What a submission may use: however it goes over a limit, it is stopped because of that limit.

Each piece of code here takes memory, processes, files or processor time in a way that a look at one
process, or at one tree of processes, does not see. Root grades with a user for each submission, and
an ordinary user with no other user than itself; what differs is tried both ways.
"""

import contextlib
import errno
import json
import os
import platform
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from course_folder import ROOT

from grading.runner import forkserver, pool, seccomp
from grading.runner.forkserver import ForkServerError
from grading.runner.job import Cell, Job, Limits, Verdict
from grading.runner.watch import Watched

MB = 2**20
LIMITS = Limits(cell_seconds=20, total_seconds=40, memory=300 * MB, processes=16, files=1000)
NOBODY = 65534
COLUMN = seccomp.MACHINES[platform.machine()][1]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


def job(*cells: Cell | str, limits: Limits = LIMITS, names: tuple[str, ...] = ()) -> Job:
    """A job of these cells; text is a cell of the learner's."""
    made = [cell if isinstance(cell, Cell) else Cell(cell, "answer") for cell in cells]
    return Job(tuple(made), names, limits=limits)


def by_nobody(jobs: list[Job]) -> list[Verdict]:
    """Run jobs as an ordinary user, who must be able to read Python and the course."""
    program = """import json, sys
from grading.runner import forkserver, pool
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
    "sockets": f"""import os, socket
for _ in range(10):
    if os.fork() == 0:
        pairs = [socket.socketpair() for _ in range(100)]
        for one in [one for pair in pairs for one in pair]:
            one.setblocking(False)
            one.send(b"1" * 100_000)
        {KEEP}
        os._exit(0)
{KEEP}""",
    "files in all folders": f"""data = b"1" * ({60 * MB})
for place in ("/tmp/a", "/dev/shm/a", "/home/learner/a"):
    open(place, "wb").write(data)
held = b"1" * ({100 * MB})
{KEEP}""",
    "a process whose first thread has ended": f"""import ctypes, os, threading, time
def hold():
    time.sleep(0.3)
    held = b"1" * ({500 * MB})
    time.sleep(3)
    os._exit(0)
if os.fork() == 0:
    threading.Thread(target=hold).start()
    ctypes.CDLL(None).syscall({(60, 93)[COLUMN]}, 0)
time.sleep(4)""",
    "a process whose name reads like a line about memory": f"""import ctypes
ctypes.CDLL(None).prctl(15, b"\\x0cVmPTE: -999999")
held = b"1" * ({500 * MB})
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
    """The verdicts on all that goes over a limit, four at a time: most of them sleep."""
    with ThreadPoolExecutor(4) as threads:
        jobs = [job(code, limits=limits) for code, limits, _ in OVER.values()]
        return dict(zip(OVER, threads.map(pool.run, jobs), strict=True))


@pytest.mark.parametrize("name", OVER)
def test_who_goes_over_a_limit_is_stopped_because_of_it(overdone, name):
    _, limits, reason = OVER[name]
    verdict = overdone[name]
    assert f"more than {reason}" in " ".join(verdict.notes), shown(verdict)
    assert verdict.peak > (limits.memory if name.startswith("memory") else 0)


@pytest.mark.long
@as_root
def test_an_ordinary_user_stops_them_too():
    names = [name for name in OVER if name.startswith("memory")] + ["files: /tmp"]
    for name, verdict in zip(names, by_nobody([job(OVER[name][0]) for name in names]), strict=True):
        assert f"more than {OVER[name][2]}" in " ".join(verdict.notes), (name, shown(verdict))


@pytest.mark.long
def test_the_kernel_refuses_more_processes_than_allowed():
    source = """import os
number = 0
try:
    while True:
        if os.fork() == 0:
            import time; time.sleep(30)
            os._exit(0)
        number += 1
except OSError:
    print("processes", number + 1)"""
    verdicts = [pool.run(job(source))] + (by_nobody([job(source)]) if os.geteuid() == 0 else [])
    for verdict in verdicts:
        assert f"processes {LIMITS.processes}" in shown(verdict)


@pytest.mark.long
def test_processor_time_is_that_of_the_notebook():
    """A cell that ends its process does not get the time anew."""
    spends = "import os, time\nend = time.process_time() + 1.5\nif os.fork() == 0:\n    end = 1.5"
    spends += "\nwhile time.process_time() < end:\n    pass\nos._exit(0)"
    verdict = pool.run(job(*[spends] * 4, limits=replace(SECONDS, total_seconds=4)))
    assert "more than 4 s of processor time" in shown(verdict)


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
    watched = Watched(job(limits=limits), learner, 0, 0.0)
    try:
        end = time.monotonic() + 20
        while not watched.reason and time.monotonic() < end:
            watched.look()
        assert watched.reason == "it started more than 5 processes"
    finally:
        watched.connection.close()
        assert watched.end(gone=False) == watched.reason
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


# What the kernel would keep, and with which error it is refused.
REFUSED_CALLS = {
    f"call({(278, 75)[COLUMN]}, write, None, 0, 0)": errno.EPERM,  # vmsplice
    "os.splice(file, write, 1)": errno.EPERM,
    f"call({(276, 77)[COLUMN]}, read, write, 1, 0)": errno.EPERM,  # tee
    "os.sendfile(one.fileno(), file, 0, 1)": errno.EPERM,
    "checked(libc.inotify_init())": errno.EPERM,
    "checked(libc.inotify_init1(0))": errno.EPERM,
    "checked(libc.fanotify_init(0x200, 0))": errno.EPERM,
    f"call({(206, 0)[COLUMN]}, 1, ctypes.byref(ctypes.c_ulong()))": errno.EPERM,  # io_setup
    "fcntl.lockf(file, fcntl.LOCK_EX, 1)": errno.ENOLCK,
    **{f"fcntl.fcntl(file, {kind}, bytes(32))": errno.ENOLCK for kind in (6, 7, 37, 38)},
    "socket.socketpair(40)": errno.EAFNOSUPPORT,
}


def test_what_the_kernel_would_keep_uncounted_is_refused():
    source = """import ctypes, fcntl, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def checked(done):
    if done < 0:
        raise OSError(ctypes.get_errno(), "")
def call(*words):
    checked(libc.syscall(*words))
read, write = os.pipe()
one, two = socket.socketpair()
os.write(write, b"x")
file = os.open("/tmp/x", os.O_RDWR | os.O_CREAT)
os.write(file, b"x")
os.lseek(file, 0, 0)"""
    for code in REFUSED_CALLS:
        source += f"\ntry:\n    {code}\n    print(0)\nexcept OSError as problem:"
        source += "\n    print(problem.errno)"
    output = pool.run(job(source)).outputs[0][0]["text"].split()
    assert dict(zip(REFUSED_CALLS, map(int, output), strict=True)) == REFUSED_CALLS


def test_a_crash_starts_no_program_of_the_machines():
    """With a limit of 0, the kernel still starts the one that a machine pipes its cores to."""
    source = "import resource; print(resource.getrlimit(resource.RLIMIT_CORE))"
    assert "(1, 1)" in shown(pool.run(job(source)))


def test_a_name_that_is_no_number_is_no_reason_for_another_try():
    source = "import ctypes, time\nctypes.CDLL(None).prctl(15, b'a\\x0cVmPTE:')\ntime.sleep(0.5)"
    assert "alive" in shown(pool.run(job(f"{source}\nprint('alive')")))


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
    output = shown(pool.run(job(source, limits=Limits())))
    for words in ("mapped 7 0", "counted 3", "loaded 16.0", "shared 3.0", "threads 27000000.0"):
        assert words in output, output


# --- a processor is shared out by submission

SPIN = "end = time.process_time() + 100\n        while time.process_time() < end:\n            pass"


@pytest.mark.long
def test_many_processes_weigh_as_much_as_one():
    source = f"""import os, time
before = os.getpriority(os.PRIO_PROCESS, 0)
for _ in range(24):
    if os.fork() == 0:
        os.setsid()
        os.setpgid(0, 0)
        {SPIN}
        os._exit(0)
# 24 processes, each of a weight that is 1.25 ** 14 = 23 times less; 19 is the most there is.
nice, end = min(19, before + 14), time.monotonic() + 15
while os.getpriority(os.PRIO_PROCESS, 0) < nice and time.monotonic() < end:
    time.sleep(0.1)
pids = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) > 2]
time.sleep(0.5)  # this process may be the first that gets it
print("nice", {{os.getpriority(os.PRIO_PROCESS, pid) for pid in pids}} == {{nice}})
print("groups", len({{(os.getsid(pid), os.getpgid(pid)) for pid in pids}}))"""
    output = shown(pool.run(job(source, limits=replace(LIMITS, memory=2**31, processes=64))))
    assert "nice True\\ngroups 1" in output, output


@pytest.mark.long
def test_a_busy_neighbour_costs_no_points():
    busy = f"""import os, time
for _ in range(24):
    if os.fork() == 0:
        os.setsid()
        {SPIN}
time.sleep(100)"""
    wait = "import time; time.sleep(1.5)"
    slow = f"import time\nif True:\n        {SPIN.replace('100', '1')}\nprint('done')"
    limits = replace(LIMITS, cell_seconds=2, memory=2**31, processes=64)
    jobs = [
        job(busy, limits=replace(limits, cell_seconds=12, total_seconds=12)),
        job(wait, wait, slow, slow, limits=limits),
    ]
    with ThreadPoolExecutor(2) as threads:
        _, honest = threads.map(pool.run, jobs)
    assert shown(honest).count("done") == 2, shown(honest)


# --- what is ended from outside, and what a submission ends itself

SLEEP = "import time; time.sleep(30)"


def bubblewraps(number: int) -> list[int]:
    """The fork server's processes of this name, once there are so many."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        with contextlib.suppress(psutil.Error):
            server = psutil.Process(pool.fork_server()._process.pid)
            below = server.children(recursive=True)
            running = [each.pid for each in below if each.name() == "bwrap"]
            if len(running) == number:
                return running
        time.sleep(0.05)
    raise AssertionError(f"there are not {number}")


@pytest.mark.parametrize("which", [0, 1], ids=["the outer process", "the inner process"])
def test_a_sandbox_that_is_ended_from_outside_means_another_try(which):
    if which and os.geteuid():
        pytest.skip("an ordinary user's submission can end the inner process itself")
    with ThreadPoolExecutor(1) as threads:
        bubblewraps(0)
        verdict = threads.submit(pool.run, job(SLEEP))
        sandboxes = bubblewraps(2)
        time.sleep(0.5)
        os.kill(sandboxes[which], signal.SIGKILL)
        with pytest.raises(ForkServerError, match="the sandbox was ended from outside"):
            verdict.result(20)


TRIES = """import os
for pid in (1, 2):
    for name, mode in (("mem", "r+b"), ("environ", "rb"), ("maps", "rb"), ("fd/2", "ab")):
        try:
            open(f"/proc/{pid}/{name}", mode, 0).close()
            print("opened", pid, name)
        except OSError:
            print("refused")
    for name in ("cwd/", "root/tmp"):
        try:
            print("listed", pid, os.listdir(f"/proc/{pid}/{name}"))
        except OSError:
            print("refused")
print("spaces", open("/proc/sys/user/max_user_namespaces").read())"""
ENDS = "import os, time; os.kill(2, 9); time.sleep(10)"


@pytest.mark.long
def test_bubblewraps_own_processes_are_out_of_reach():
    verdicts = [pool.run(job(TRIES))]
    if os.geteuid() == 0:
        verdicts += by_nobody([job(TRIES), job(ENDS, "print('on')")])
        # It may end them, and so itself: that is no reason for another try.
        assert "Python stopped: the process ended" in shown(verdicts.pop())
    for verdict in verdicts:
        output = shown(verdict)
        assert (output.count("refused"), "opened" in output, "listed" in output) == (
            12,
            False,
            False,
        )
    assert "spaces 0" in shown(verdicts[-1])


# --- the judge

SLOW_TO_UNPACK = """import gc
from grading.runner.learner import Server
server = next(each for each in gc.get_objects() if type(each) is Server)
usual = server._do
def forged(header, body, blobs):
    if header["do"] == "cell":
        return usual(header, body, blobs)
    empty = {"tensor": ["float32", [0], 0, False]}
    return {"names": {"answer": {"list": [empty] * 350_000}}}
server._do = forged"""


def test_values_that_take_long_to_unpack_are_stopped():
    limits = replace(LIMITS, cell_seconds=1, total_seconds=1)
    cells = (SLOW_TO_UNPACK, Cell("print('unpacked')", "test"))
    verdict = pool.run(job(*cells, limits=limits, names=("answer",)))
    assert "Python stopped before the tests: the test ran for more than" in shown(verdict)


DIES = "import os, signal; os.kill(os.getpid(), signal.{})"


def test_a_judge_that_crashes_costs_the_submission_and_one_that_is_killed_means_another_try():
    cells = ["print('first')", "crashes", "print('second')"]
    cells[1] = Cell(DIES.format("SIGSEGV"), "test")  # as a library may, with an odd value
    verdict = pool.run(job(*cells))
    assert verdict.outputs[0][0]["text"] == "first\n"
    assert [outputs[0]["ename"] for outputs in verdict.outputs[1:]] == ["TimeoutError"] * 2
    assert verdict.notes == ["Cell 2: the tests crashed with what the answer returned."]
    cells[1] = Cell(DIES.format("SIGKILL"), "test")
    with pytest.raises(ForkServerError, match="the judge ended with -9"):
        pool.run(job(*cells))


@pytest.mark.long
def test_a_judge_that_python_cannot_interrupt_is_stopped():
    busy = Cell("set([number * (2**61 - 1) for number in range(400_000)])", "test")
    verdict = pool.run(job("print('first')", busy, limits=replace(LIMITS, cell_seconds=1)))
    note = "Cell 2: the tests did not come to an end with what the answer returned."
    assert (verdict.outputs[0][0]["text"], verdict.notes) == ("first\n", [note])


def test_who_gives_up_waiting_leaves_nothing_behind():
    with pytest.raises(ForkServerError, match="no answer came"):
        forkserver.ask(pool.fork_server().path, job(SLEEP), 2)
    assert bubblewraps(0) == []


REUSED = """import os, socket, subprocess, time
from pathlib import Path
from grading.runner.watch import Sandbox
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
learner = subprocess.Popen(["sleep", "60"])
numbers = [theirs.fileno(), os.pidfd_open(learner.pid), os.open("/dev/null", os.O_RDONLY)]
socket.send_fds(theirs, [b"start"], numbers)
sandbox = Sandbox(ours)
learner.kill()
learner.wait()
Path("/proc/sys/kernel/ns_last_pid").write_text(str(learner.pid - 1))
stranger = subprocess.Popen(["sleep", "60"])
sandbox.interrupt()
time.sleep(0.2)
print(stranger.pid == learner.pid, stranger.poll())
stranger.kill()"""


@as_root
def test_a_process_that_has_the_learners_number_now_is_not_signalled():
    space = ["unshare", "--pid", "--fork", "--mount-proc"]
    words = [*space, sys.executable, "-c", REUSED]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "True None\n"
