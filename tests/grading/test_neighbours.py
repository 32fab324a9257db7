"""Two submissions at the same time: neither sees, reads, signals or traces the other.

Also the filter of system calls, from inside.
"""

import errno
import re
import struct
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from grading.runner import pool, seccomp
from grading.runner.job import Cell, Job

# Both run this; ME and YOU are words, SINCE is when both have started.
NEIGHBOUR = """
import ctypes, os, signal, socket, subprocess, time
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
me, you = "ME", "YOU"
secret = bytearray(b"secret of " + me.encode())
numbers = {"one": 4711, "two": 4712}
for place in ("/tmp", "/dev/shm", "/home/learner"):
    Path(place, me).write_text(me)
server = socket.socket(socket.AF_UNIX)
server.bind("\\0" + me)
server.listen()
web = socket.create_server(("127.0.0.1", numbers[me]))
child = subprocess.Popen(["sleep", "54321" if me == "one" else "54322"])
time.sleep(max(0, SINCE - time.time()))

seen = []
for pid in Path("/proc").glob("[0-9]*"):
    try:
        if ("54322" if me == "one" else "54321") in (pid / "cmdline").read_text():
            seen.append(pid)
    except OSError:
        pass
for place in ("/tmp", "/dev/shm", "/home/learner", "/proc/1/root/tmp"):
    try:
        seen += [name for name in os.listdir(place) if name == you]
    except OSError:
        pass
for family, address in (
    (socket.AF_UNIX, "\\0" + you), (socket.AF_INET, ("127.0.0.1", numbers[you]))):
    try:
        socket.socket(family).connect(address)
        seen.append(address)
    except OSError:
        pass
os.kill(0, signal.SIGUSR1)  # its own group
for pid in range(1, 5000):
    if Path(f"/proc/{pid}").exists():
        continue  # of this sandbox
    try:
        os.kill(pid, signal.SIGUSR1)
        seen.append(f"signal to {pid}")
    except OSError:
        pass
    if libc.ptrace(16, pid, 0, 0) == 0:
        seen.append(f"traced {pid}")
time.sleep(1.5)
heard = set()
while (got := signal.sigtimedwait([signal.SIGUSR1], 0)) is not None:
    heard.add(got.si_pid)
print("seen:", seen, "heard from others:", heard - {os.getpid()}, "processes:",
      len(list(Path("/proc").glob("[0-9]*"))), "group:", os.getpgid(0) == os.getpid())
"""


def run(*sources: str) -> list[str]:
    """What each cell prints, each in a submission of its own, all at the same time."""

    def one(source: str) -> str:
        verdict = pool.run(Job((Cell(source, "answer"),), ()))
        return "".join(str(output.get("text", output)) for output in verdict.outputs[0])

    with ThreadPoolExecutor(len(sources)) as threads:
        return list(threads.map(one, sources))


def test_neighbours_are_alone():
    source = NEIGHBOUR.replace("SINCE", str(time.time() + 4))
    one = source.replace("ME", "one").replace("YOU", "two")
    two = source.replace("ME", "two").replace("YOU", "one")
    for printed in run(one, two):
        # bubblewrap, what it runs, this one and its child
        assert "seen: [] heard from others: set() processes: 4 group: True" in printed, printed


USES = """
import ctypes, os, shutil, socket, subprocess, sys, threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context

print(subprocess.run(["echo", "a process"], capture_output=True, text=True).stdout)
print(*ThreadPoolExecutor(2).map(str.upper, ["a", "thread"]))
with get_context("fork").Pool(2) as pool:
    print(pool.map(abs, [-1, -2]))
one, two = socket.socketpair()
one.send(b"a socket"); print(two.recv(20))
open("file", "w").write("a copy"); shutil.copy("file", "other"); print(open("other").read())
import fcntl
fcntl.flock(open("file"), fcntl.LOCK_EX); print("a lock")
import torch
print(torch.ones(300, 300).matmul(torch.ones(300, 300)).sum().item(), "by torch")
if os.fork() == 0:
    os._exit(0)
print("status", os.wait()[1])
"""
CALLS = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print({name: (libc.syscall(number, -1, 0, 0, 0, 0), ctypes.get_errno())
       for name, number in NUMBERS.items()})
print("clone:", libc.syscall(CLONE, 0x10000000 | 17, 0, 0, 0, 0), ctypes.get_errno())
"""


def test_the_filter_leaves_what_learners_need():
    (printed,) = run(USES)
    for part in (
        "a process",
        "A THREAD",
        "[1, 2]",
        "b'a socket'",
        "a copy",
        "a lock",
        "27000000.0 by torch",
    ):
        assert part in printed
    assert "status 0" in printed


def test_the_filter_refuses_from_inside():
    column = 0 if seccomp.platform.machine() == "x86_64" else 1
    numbers = {name: both[column] for name, both in seccomp.REFUSED.items()}
    source = CALLS.replace("NUMBERS", repr(numbers)).replace("CLONE", str(seccomp.CLONE[column]))
    (printed,) = run(source)
    assert printed.count(f"(-1, {errno.EPERM})") == len(numbers), printed
    assert f"clone: -1 {errno.EPERM}" in printed


def answer(
    machine: str,
    call: int,
    argument: int = 0,
    *,
    second: int = 0,
    flags: int = 0,
    kind: int | None = None,
) -> int:
    """What the filter says to a call: a kernel's small machine, in Python."""
    lines = list(struct.iter_unpack("=HBBI", seccomp.program(machine)))
    looked_at = {seccomp.CALL: call, seccomp.ARGUMENT: argument, seccomp.FLAGS: flags}
    looked_at[seccomp.SECOND] = second
    looked_at[seccomp.MACHINE] = seccomp.MACHINES[machine][0] if kind is None else kind
    place, held = 0, 0
    while True:
        code, yes, no, value = lines[place]
        if code == seccomp.RETURN:
            return value
        if code == seccomp.LOAD:
            held = looked_at[value]
            place += 1
            continue
        true = {
            seccomp.EQUAL: held == value,
            seccomp.AT_LEAST: held >= value,
            seccomp.ANY_BIT: bool(held & value),
        }[code]
        place += 1 + (yes if true else no)


RIGHTS = """
from pathlib import Path
print({line for path in Path("/proc").glob("[0-9]*/status") for line in path.open()
       if line.startswith(("CapEff", "CapPrm", "NoNewPrivs", "Seccomp:"))})
"""


def test_no_process_of_a_sandbox_has_rights():
    (printed,) = run(RIGHTS)
    statuses = dict(re.findall(r"'(\w+):\\t(\w+)\\n'", printed))
    assert printed.count(":") == 4, printed
    assert int(statuses["CapEff"], 16) == int(statuses["CapPrm"], 16) == 0
    assert (statuses["NoNewPrivs"], statuses["Seccomp"]) == ("1", "2")


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_the_program_by_hand(machine):
    column = seccomp.MACHINES[machine][1]
    refused = seccomp.ERROR | errno.EPERM
    missing = seccomp.ERROR | errno.ENOSYS
    assert {answer(machine, n[column]) for n in seccomp.REFUSED.values()} == {refused}
    assert {answer(machine, n[column]) for n in seccomp.PRETENDED.values()} == {seccomp.ERROR}
    clone, socket = seccomp.CLONE[column], seccomp.SOCKET[column]
    assert answer(machine, clone, 0x10000011) == refused
    assert answer(machine, clone, 0x3D0F00) == seccomp.ALLOW  # a thread
    assert answer(machine, seccomp.CLONE3[column]) == missing
    assert answer(machine, 2**30 + clone) == missing
    assert answer(machine, clone, kind=0x40000003) == missing  # of 32 bits
    prctl = seccomp.PRCTL[column]
    assert [answer(machine, prctl, option) for option in (3, 4)] == [seccomp.ALLOW, seccomp.ERROR]
    mmap = seccomp.MMAP[column]
    printed = {
        flags: answer(machine, mmap, flags=flags) for flags in (0x01, 0x02, 0x21, 0x22, 0x23)
    }
    assert {flags for flags, what in printed.items() if what == refused} == {0x21, 0x23}
    assert {printed[flags] for flags in (0x01, 0x02, 0x22)} == {seccomp.ALLOW}
    printed = {family: answer(machine, socket, family) for family in range(50)}
    allowed = {family for family, what in printed.items() if what == seccomp.ALLOW}
    assert allowed == set(seccomp.FAMILIES)
    assert set(printed.values()) == {seccomp.ALLOW, seccomp.ERROR | errno.EAFNOSUPPORT}
    pair = seccomp.SOCKETPAIR[column]
    assert printed == {family: answer(machine, pair, family) for family in range(50)}
    printed = {kind: answer(machine, seccomp.FCNTL[column], second=kind) for kind in range(1100)}
    locking = {kind for kind, what in printed.items() if what == seccomp.ERROR | errno.ENOLCK}
    assert locking == set(seccomp.LOCKS)
    assert set(printed.values()) == {seccomp.ALLOW, seccomp.ERROR | errno.ENOLCK}
    assert answer(machine, 1) == seccomp.ALLOW


def test_a_machine_without_numbers_is_refused():
    with pytest.raises(OSError, match=re.escape("no filter of system calls for vax")):
        seccomp.program("vax")
