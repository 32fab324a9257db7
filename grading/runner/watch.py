"""Start a submission's sandboxes, watch what they use, and end them; and the judge, if it is stuck.

This is a process of its own, between the fork server and the judge. The judge handles what the
learner's code returned, and some values can keep Python busy for minutes. So the judge neither
starts nor watches a sandbox: its parent does, twenty times a second, whatever the judge is doing.
The judge asks for a sandbox, and gets a socket to the learner's process.
"""

import contextlib
import json
import math
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from grading.runner.job import Job, Verdict
from grading.runner.judge import _problem, seconds_for_tests
from grading.runner.sandbox import WRITABLE, Bubblewrap

TICK = 0.05  # seconds between two looks
SPARE_SECONDS = 20  # that the judge may take beyond the time that it gives its tests
TICKS = os.sysconf("SC_CLK_TCK")
# Bytes that the kernel keeps for a socket at most, by the line of `sockstat` that counts them.
SOCKETS = {"sockets:": 425_984, "TCP:": 10 * 2**20, "TCP6:": 10 * 2**20}
WEIGHT = 1.25  # one step of niceness: a process gets 1.25 times less of a processor
START, END, GONE = b"start", b"end", b"gone"  # what the judge may ask for, or tell
CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT)
HELD = ("RssAnon:", "RssShmem:", "VmSwap:", "VmPTE:", "HugetlbPages:")  # in a `status`
Learner = Callable[[dict, list[int]], tuple[int, int]]


class NoVerdict(Exception):
    """There is no verdict, for a reason that is not the submission's; the message gives it."""


class Sandbox:
    """A learner's process, as the judge holds it.

    Args:
        line: to the process that watches.

    Attributes:
        connection: the socket to :mod:`grading.runner.learner`.
    """

    def __init__(self, line: socket.socket):
        self._line = line
        line.send(START)
        _, (connection, self._process, self._delays), _, _ = socket.recv_fds(line, 16, 3)
        self.connection = socket.socket(fileno=connection)
        self._before = _delay("/proc/self/schedstat")

    def interrupt(self) -> None:
        """As Ctrl-C does."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._process, signal.SIGINT)

    def waited(self) -> float:
        """Seconds in which the learner's process, or this one, had no processor to run on."""
        return _delay(self._delays) + _delay("/proc/self/schedstat") - self._before

    def end(self) -> str:
        """End everything, and say why it had ended, if that is known."""
        gone = False
        with contextlib.suppress(OSError):
            gone = self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        self.connection.close()
        os.close(self._process)
        os.close(self._delays)
        self._line.send(GONE if gone else END)
        return self._line.recv(1000).decode().strip()


def _delay(file: int | str) -> float:
    """Seconds that a process has waited for a processor; 0 where the kernel does not count them."""
    try:
        if isinstance(file, int):
            return int(os.pread(file, 100, 0).split()[1]) / 1e9
        return int(Path(file).read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


class Usage:
    """What the processes of a sandbox use, all together.

    They are read from the sandbox's own /proc, where every one of them is, whichever process
    started it: none can leave the process number space.

    Args:
        pid: the number of a process inside, seen from here.
        spare: bytes of memory that a process has from the one it was forked from.
    """

    def __init__(self, pid: int, spare: int):
        root = f"/proc/{pid}/root"
        self._proc = os.open(f"{root}/proc", os.O_RDONLY)
        self._folders = [os.open(root + place, os.O_RDONLY) for place in WRITABLE]
        self._spare = spare
        self._seen: dict[tuple[int, str], float] = {}  # processor time by process and its start
        self._ended = 0.0  # of those that have ended
        self.memory = self.processes = self.running = self.files = 0
        self.seconds = 0.0

    def close(self) -> None:
        for number in (self._proc, *self._folders):
            os.close(number)

    def look(self, enough: int) -> None:
        """Look at all processes and files.

        Args:
            enough: bytes of memory; beyond it, memory in common is shared out, which takes time.
        """
        stats = self._stats()
        self.processes = len(stats) - 2  # bubblewrap, and what it runs
        self._add_seconds(stats)
        threads = sum(int(stat[17]) for stat in stats.values()) - 2
        self.running = self._running(stats) if threads > 1 else 1
        disks = [os.fstatvfs(number) for number in self._folders]
        self.files = sum(disk.f_files - disk.f_ffree for disk in disks)
        written = sum((disk.f_blocks - disk.f_bfree) * disk.f_frsize for disk in disks)
        written += self._buffers()
        holders = self._holders(stats)
        held = sum(map(self._held, holders))
        self.memory = written + max(0, held - self._spare)
        if self.memory > enough:
            self.memory = written + sum(map(self._share, holders))
        if self.memory > enough:
            # One that is about to become another program has its parent's memory for a moment.
            time.sleep(TICK / 5)
            again = written + sum(map(self._share, self._holders(self._stats())))
            self.memory = min(self.memory, again)

    def _read(self, name: str) -> str:
        """A file of /proc; empty if its process has ended, or if we may not read it."""
        try:
            handle = os.open(name, os.O_RDONLY, dir_fd=self._proc)
            # A process's name is its own to choose. Of it, the kernel quotes "\n" and no other end
            # of a line.
            with open(handle, errors="replace", newline="\n") as file:
                return file.read()
        except OSError:
            return ""

    def _stats(self) -> dict[int, list[str]]:
        """The `stat` fields of each process, parents before their children."""
        pids = sorted(int(name) for name in os.listdir(self._proc) if name.isdigit())
        stats = {pid: self._stat(pid) for pid in pids}
        return {pid: stat for pid, stat in stats.items() if stat}

    def _stat(self, pid: int | str) -> list[str]:
        """What follows the name in a process's or a thread's `stat`."""
        return self._read(f"{pid}/stat").rpartition(")")[2].split()

    def _add_seconds(self, stats: dict[int, list[str]]) -> None:
        """Processor time: a process passes it on to the parent that waits for it, or to nobody."""
        times = {pid: [int(ticks) / TICKS for ticks in stat[11:15]] for pid, stat in stats.items()}
        now = {(pid, stats[pid][19]): sum(times[pid][:2]) for pid in stats}
        self._ended += sum(self._seen[key] for key in self._seen.keys() - now.keys())
        self._seen = now
        passed_on = sum(map(sum, times.values()))
        self.seconds = max(self.seconds, passed_on, self._ended + sum(now.values()))

    def _running(self, stats: dict[int, list[str]]) -> int:
        """How many threads run, or would if there were a processor."""
        states = [self._stat(task)[:1] for pid in stats for task in self._tasks(pid)]
        return states.count(["R"])

    def _tasks(self, pid: int) -> list[str]:
        """The folders of a process's threads."""
        with contextlib.suppress(OSError):
            tasks = os.listdir(f"/proc/self/fd/{self._proc}/{pid}/task")
            return [f"{pid}/task/{task}" for task in tasks]
        return []

    def _holders(self, stats: dict[int, list[str]]) -> list[str]:
        """The folder that tells of each process's memory: once its first thread has ended, that of
        another."""
        holders = []
        for pid, stat in stats.items():
            ended = stat[0] in "ZX" and int(stat[17]) > 1
            living = [task for task in self._tasks(pid) if self._has_memory(task)] if ended else []
            holders.append(living[0] if living else str(pid))
        return holders

    def _has_memory(self, task: str) -> bool:
        return _sum(self._read(f"{task}/status"), *HELD) is not None

    def _buffers(self) -> int:
        """Bytes that may lie in sockets, which no process is charged for."""
        lines = self._read("1/net/sockstat") + self._read("1/net/sockstat6")
        counts = [line.split()[:3] for line in lines.splitlines()]
        return sum(SOCKETS.get(kind, 0) * int(number) for kind, _, number in counts)

    def _held(self, holder: str) -> int:
        """Bytes of memory of a process, with those that it has in common with others."""
        return _sum(self._read(f"{holder}/status"), *HELD) or 0

    def _share(self, holder: str) -> int:
        """Bytes of memory of a process, and its share of those that it has in common with others.

        A kernel lets root look so closely, and does not let anybody else.
        """
        shared = _sum(self._read(f"{holder}/smaps_rollup"), "Pss_Anon:", "SwapPss:")
        return max(0, self._held(holder) - self._spare) if shared is None else shared


def _sum(text: str, *names: str) -> int | None:
    """The bytes in these lines of a file of /proc; None if it has none of them."""
    sizes = [int(line.split()[1]) for line in text.split("\n") if line.startswith(names)]
    return 1024 * sum(sizes) if sizes else None


class Watched:
    """A sandbox, the learner's process in it, and what they have used so far.

    Args:
        job: what is run.
        learner: starts the learner's process, given what it needs to know, and the descriptors of
            its connection and of the namespaces; returns its number and a descriptor of it.
        spare: see :class:`Usage`.
        spent: seconds of processor time that earlier sandboxes of the job have taken.

    Raises:
        NoSandbox: if there can be none.
    """

    def __init__(self, job: Job, learner: Learner, spare: int, spent: float):
        self.limits, self.root = job.limits, os.geteuid() == 0
        self.reason = ""
        self.peak = self._nice = 0
        self._before = self.spent = spent
        self._outer = Bubblewrap(job.limits, root=self.root, gpu=job.gpu)
        try:
            ours, theirs = socket.socketpair()
            setting = asdict(job.limits) | {"root": self.root, "outer": self._outer.pid}
            setting |= {"pictures": job.pictures, "gpu": job.gpu}
            with theirs:
                numbers = [theirs.fileno(), *self._outer.namespaces]
                self._pid, self._process = learner(setting, numbers)
            self._usage = Usage(self._outer.pid, spare)
        except BaseException:
            self._outer.end()
            raise
        self.connection = ours

    def pass_on(self, line: socket.socket) -> None:
        """Give the judge what it needs: the connection, the process, the delays it has had."""
        try:
            delays = os.open(f"/proc/{self._pid}/schedstat", os.O_RDONLY)
        except OSError:  # the process has ended, or the kernel does not count them
            delays = os.open("/dev/null", os.O_RDONLY)
        with self.connection:
            numbers = [self.connection.fileno(), self._process, delays]
            socket.send_fds(line, [START], numbers)
        os.close(delays)

    def look(self) -> None:
        """Look at what is used, end the sandbox if it is too much, and see to fair shares."""
        usage, limits = self._usage, self.limits
        try:
            usage.look(limits.memory)
        except OSError:  # it is ending
            return
        self.peak = max(self.peak, usage.memory)
        self.spent = self._before + usage.seconds
        gigabytes, seconds = limits.memory / 2**30, limits.total_seconds
        passed = {
            f"took more than {gigabytes:.1f} GB of memory": usage.memory > limits.memory,
            f"started more than {limits.processes} processes": usage.processes > limits.processes,
            f"made more than {limits.files} files": usage.files > limits.files,
            f"took more than {seconds:.0f} s of processor time": self.spent > seconds,
        }
        reasons = [f"it {words}" for words, too_much in passed.items() if too_much]
        if reasons and not self.reason:
            self.reason = reasons[0]
            self._outer.kill()
        if usage.running > 1:
            self._weigh(usage.running)

    def _weigh(self, running: int) -> None:
        """Raise the niceness in steps, until all running threads weigh as much as one."""
        self._nice = max(self._nice, round(math.log(running, WEIGHT)))
        with contextlib.suppress(OSError):
            own = os.getpriority(os.PRIO_PROCESS, 0)
            # They are one group for good (:data:`grading.runner.seccomp.PRETENDED`). Each time
            # anew, because one that is just being forked may be missed.
            os.setpriority(os.PRIO_PGRP, self._pid, min(19, own + self._nice))

    def end(self, *, gone: bool) -> str:
        """End everything, and say why it had ended, if that is known.

        Args:
            gone: whether the learner's process had closed its connection before.

        Raises:
            NoVerdict: if it was ended from outside, which no submission can do.
        """
        self.look()
        # What ends bubblewrap ends the learner's process first.
        code = None if self.reason else self._outer.code(0.2 if gone else 0)
        self._outer.end()
        self._usage.close()
        os.close(self._process)
        # Learners' code cannot reach bubblewrap's first process; but where an ordinary user grades,
        # it can end the one inside, and the first then ends without a signal.
        if code is not None and (code < 0 or self.root):
            raise NoVerdict("the sandbox was ended from outside")
        return self.reason


class Watch:
    """A job on its way: a judge, and one sandbox after the other.

    Args:
        job: what to run.
        judge: what the judge's process does, with a socket to ask for sandboxes and a descriptor to
            report to.
        learner: starts a learner's process in a sandbox (see :class:`Watched`).
        asked: the connection to whoever waits for the verdict; once it is closed, all ends.
    """

    def __init__(
        self,
        job: Job,
        judge: Callable[[socket.socket, int], None],
        learner: Learner,
        asked: socket.socket,
    ):
        self.job, self.asked = job, asked
        self._be_judge, self._learner = judge, learner
        self.spare = _sum(Path("/proc/self/status").read_text(), *HELD)
        self.watched: Watched | None = None
        self.peak, self.spent = 0, 0.0
        self.reported = (
            bytearray()
        )  # what the judge wrote: a line for each cell, then one for the run
        self.stopped = ""  # why the judge was ended
        self.end = time.monotonic() + job.limits.wall_seconds + SPARE_SECONDS
        self.test_seconds = seconds_for_tests(job.limits) + SPARE_SECONDS
        self.cell_start = 0.0  # on the clock of the judge's processor time

    def run(self) -> Verdict:
        """Run the job to its end.

        Raises:
            NoSandbox: if none can be made.
            NoVerdict: if the judge failed, or something was ended from outside.
        """
        self.line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.report, write = os.pipe()
        self.judge = os.fork()
        if self.judge == 0:
            for number in (self.line, self.asked):
                number.close()
            os.close(self.report)
            self._be_judge(theirs, write)
        theirs.close()
        os.close(write)
        try:
            while self._serve():
                self._look()
        except BaseException:
            os.kill(self.judge, signal.SIGKILL)  # a child that nobody has waited for yet
            raise
        finally:
            _, status = os.waitpid(self.judge, 0)
            self._end_sandbox()
        return self._verdict(os.waitstatus_to_exitcode(status))

    def _serve(self) -> bool:
        """Do what the judge asks for; whether it is still there."""
        ready, _, _ = select.select([self.line, self.report, self.asked], [], [], TICK)
        if self.asked in ready:
            raise NoVerdict("nobody waits for it any more")
        if self.report in ready:
            piece = os.read(self.report, 2**20)
            self.reported += piece
            if b"\n" in piece:
                self.cell_start = self._judge_seconds()
            return bool(piece)
        if self.line in ready:
            word = self.line.recv(len(START))
            reason = self._end_sandbox(gone=word == GONE)
            if word == START:
                self.watched = Watched(self.job, self._learner, self.spare, self.spent)
                self.watched.pass_on(self.line)
            elif word:
                self.line.send(reason.encode() or b" ")
        return True

    def _look(self) -> None:
        if self.watched is not None:
            self.watched.look()
        if self._judge_seconds() - self.cell_start > self.test_seconds:
            self.stopped = "the tests did not come to an end with what the answer returned"
        elif time.monotonic() > self.end:
            seconds = self.job.limits.wall_seconds
            self.stopped = f"the notebook ran for more than {seconds:.0f} s and was stopped"
        if self.stopped:
            os.kill(self.judge, signal.SIGKILL)

    def _judge_seconds(self) -> float:
        times = Path(f"/proc/{self.judge}/stat").read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, times)) / TICKS

    def _end_sandbox(self, *, gone: bool = False) -> str:
        watched, self.watched = self.watched, None
        if watched is None:
            return ""
        try:
            return watched.end(gone=gone)
        finally:
            self.peak, self.spent = max(self.peak, watched.peak), watched.spent

    def _verdict(self, code: int) -> Verdict:
        """What the judge reported; of cells of which it could not, why.

        Args:
            code: with which the judge ended.
        """
        *lines, _ = self.reported.split(b"\n")
        results = [json.loads(line) for line in lines]
        if results and isinstance(results[-1], dict):
            last = results.pop()
            if "problem" in last:
                raise NoVerdict(last["problem"])
            return Verdict(**last | {"outputs": results, "peak": self.peak})
        if -code in CRASHES:
            self.stopped = "the tests crashed with what the answer returned"
        if not self.stopped:
            raise NoVerdict(f"the judge ended with {code}")
        missing = [[_problem("TimeoutError", f"Not run to the end: {self.stopped}.")]]
        missing *= len(self.job.cells) - len(results)
        note = f"Cell {len(results) + 1}: {self.stopped}."
        return Verdict(outputs=[*results, *missing], notes=[note], peak=self.peak)
