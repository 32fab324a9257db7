"""A process that has imported what notebooks need, and forks: starting a submission then costs
hundredths of a second, not seconds.

It is started before any submission is read, and holds nothing of the course. It forks two kinds of
process: judges (:mod:`grading.judge`), trusted, one for each submission; and the learner's process
(:mod:`grading.agent`), which enters a sandbox before it runs anything.
"""

import ctypes
import gc
import json
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from dataclasses import asdict
from pathlib import Path

from grading import seccomp

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
PR_CAPBSET_DROP = 24
FIRST_USER = 2_000_000_000  # above what any system gives away; a process number is added
LIBC = ctypes.CDLL(None, use_errno=True)


class NurseryError(Exception):
    """The process that forks is gone, or did not do what was asked."""


class Nursery:
    """The forking process, seen from the one that grades. Threads may share it."""

    def __init__(self, *, sandboxed: bool = True, gpu: bool = False):
        self.sandboxed, self.gpu = sandboxed, gpu
        self._lock = threading.Lock()
        self._process: subprocess.Popen | None = None
        self._folder: tempfile.TemporaryDirectory | None = None

    def start(self) -> None:
        """Start it, if it is not running."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                return
            self._folder = tempfile.TemporaryDirectory(prefix="n-")
            environment = {
                key: value
                for key, value in os.environ.items()
                if key
                in (
                    "PATH",
                    "LANG",
                    "LC_ALL",
                    "TZ",
                    "TMPDIR",
                    "CUDA_VISIBLE_DEVICES",
                    "GRADING_DEBUG",
                )
            }
            environment |= {
                "OMP_NUM_THREADS": "1",
                "MPLBACKEND": "agg",
                "MPLCONFIGDIR": f"{self._folder.name}/matplotlib",
                "IPYTHONDIR": f"{self._folder.name}/ipython",
                "HOME": self._folder.name,
                "PYTHONPATH": str(Path(__file__).resolve().parent.parent),
            }
            self.path = f"{self._folder.name}/s"
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "grading.nursery", self.path],
                stdin=subprocess.PIPE,  # its end tells the process that we are gone
                stdout=subprocess.PIPE,
                env=environment,
                cwd=self._folder.name,
                start_new_session=True,  # Ctrl-C is for us
            )
            if self._process.stdout.readline() != b"ready\n":
                self._process.kill()
                self._process.wait()
                raise NurseryError("the process that runs notebooks did not start")

    def judge(self, work: dict, seconds: float) -> dict:
        """Have a judge run a submission.

        Args:
            work: what :func:`_judge` takes.
            seconds: after which to give up.

        Raises:
            NurseryError: if no verdict came, whatever the reason.
        """
        self.start()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(seconds)
            try:
                connection.connect(self.path)
                text = json.dumps(
                    work | {"sandboxed": self.sandboxed, "gpu": self.gpu, "path": self.path}
                )
                connection.sendall(b"judge\n" + text.encode() + b"\n")
                with connection.makefile("rb") as stream:
                    pid = int(stream.readline() or b"0")
                    try:
                        line = stream.readline()
                    except TimeoutError:
                        os.kill(pid, signal.SIGKILL)
                        raise
                answer = json.loads(line)
            except (OSError, ValueError) as problem:
                raise NurseryError(f"no verdict came ({type(problem).__name__})") from None
        if "problem" in answer:
            raise NurseryError(answer["problem"])
        return answer

    def close(self) -> None:
        """End it, and all judges and sandboxes with it."""
        with self._lock:
            if self._process is not None:
                self._process.stdin.close()
                try:
                    self._process.wait(5)
                except subprocess.TimeoutExpired:
                    self._process.kill()
                    self._process.wait()
                self._process.stdout.close()
                self._process = None
            if self._folder is not None:
                self._folder.cleanup()
                self._folder = None


# --- in the forking process


def main(path: str) -> None:
    """Import, listen, fork."""
    import torch
    import torch.fx.experimental.symbolic_shapes

    import grading.judge
    import grading.sandbox  # noqa: F401
    from grading.agent import PAGES, make_shell

    torch.set_num_threads(1)
    shell = make_shell()
    # What a first figure and a first error import and look for, once and for all forks.
    for source in ("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()", "1 / 0"):
        shell.run_cell(source, store_history=False, silent=False)
    shell.reset(new_session=True)
    PAGES.clear()
    for name in list(sys.path):  # the course is not the learner's to import
        if name in ("", str(Path(__file__).resolve().parent.parent)):
            sys.path.remove(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are not waited for
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    os.chmod(path, 0o600)
    server.listen(64)
    # Collecting would walk through all of torch: a quarter of a second for each fork.
    gc.collect()
    gc.freeze()
    os.write(1, b"ready\n")
    os.set_blocking(0, False)
    while True:
        ready, _, _ = select.select([0, server], [], [])
        if 0 in ready:
            # Nobody else may be left to do so.
            shutil.rmtree(Path(path).parent, ignore_errors=True)
            return
        connection, _ = server.accept()
        _serve(connection, server, shell)


def _serve(connection: socket.socket, server: socket.socket, shell) -> None:
    """Fork what is asked for."""
    connection.settimeout(10)
    # The first word and no more: what a judge is told may not come to lie in this process's memory,
    # of which each learner's process is a copy.
    try:
        kind, numbers, _, _ = socket.recv_fds(connection, len(b"judge\n"), 16)
    except OSError:
        connection.close()
        return
    connection.settimeout(None)
    if kind == b"judge\n":
        pid = os.fork()
        if pid == 0:
            server.close()
            _child(lambda: _judge(connection))
        try:
            connection.sendall(f"{pid}\n".encode())
        except OSError:
            pass
    elif kind == b"agent\n":
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            server.close()
            os.close(read)
            _child(lambda: _enter(connection, numbers, write, shell))
        os.close(write)
        told = b""
        while piece := os.read(read, 64):
            told += piece
        os.close(read)
        try:
            connection.sendall(told or b"0")
        except OSError:
            pass
    for number in numbers:
        os.close(number)
    connection.close()


def _child(work) -> None:
    try:
        work()
    except BaseException:
        if os.environ.get("GRADING_DEBUG"):
            traceback.print_exc()
    finally:
        os._exit(0)


# --- in a judge


def _judge(connection: socket.socket) -> None:
    """Judge one submission, and send the verdict as one line of JSON."""
    from grading.judge import judge
    from grading.sandbox import NoSandbox, Outer, Sandbox, _memory
    from grading.work import Cell, Limits

    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.close(0)
    os.open("/dev/null", os.O_RDWR)
    with connection.makefile("rb") as stream:
        work = json.loads(stream.readline())
    limits = Limits(**work["limits"])
    if not work["gpu"]:  # whose driver takes address space as it likes
        span = _address_space() + limits.memory + 2**31
        resource.setrlimit(resource.RLIMIT_AS, (span, span))
    root = os.geteuid() == 0
    spare = _memory(os.getpid())
    peaks: list[Sandbox] = []

    def start() -> Sandbox:
        outer = Outer(limits, root=root, gpu=work["gpu"]) if work["sandboxed"] else None
        ours, theirs = socket.socketpair()
        numbers = [theirs.fileno(), *(outer.namespaces if outer else [])]
        setting = asdict(limits) | {"root": root, "outer": outer.pid if outer else 0}
        setting |= {"pictures": work["pictures"], "gpu": work["gpu"]}
        with socket.socket(socket.AF_UNIX) as nursery:
            nursery.connect(work["path"])
            message = b"agent\n" + json.dumps(setting).encode()
            socket.send_fds(nursery, [message + b"\n"], numbers)
            pid = int(nursery.recv(64) or b"0")
        theirs.close()
        if not pid:
            if outer:
                outer.end()
            raise NoSandbox("no process could enter the sandbox")
        made = Sandbox(ours, pid, outer, limits, spare)
        peaks.append(made)
        return made

    cells = [Cell(each["source"], each["role"]) for each in work["cells"]]
    try:
        judged = asdict(judge(cells, work["names"], work["salt"], start, limits))
        judged["peak"] = max((each.peak for each in peaks), default=0)
    except Exception as problem:
        place = traceback.extract_tb(problem.__traceback__)[-1]
        where = f"{Path(place.filename).name}, line {place.lineno}"
        judged = {"problem": f"{type(problem).__name__} in {where}"}
        if isinstance(problem, NoSandbox):
            judged = {"problem": str(problem)}
    # Halves of characters, which a learner's text may hold, cannot be written to any file.
    text = json.dumps(judged, ensure_ascii=False).encode("utf-8", "replace")
    connection.sendall(text + b"\n")


# --- in a learner's process


def _enter(connection: socket.socket, numbers: list[int], write: int, shell) -> None:
    """Enter the sandbox, give up all rights, and run the learner's cells."""
    from grading import agent

    with connection.makefile("rb") as stream:
        setting = json.loads(stream.readline())
    connection.close()
    theirs, *namespaces = numbers
    for number in namespaces:
        if LIBC.setns(number, 0) != 0:
            raise OSError(ctypes.get_errno(), "setns")
    # The process number space holds for children only.
    pid = os.fork()
    if pid:
        os.write(write, str(pid).encode())
        return
    os.close(write)
    os.setsid()  # signals to a process's own group would reach all that were forked here
    keep = os.dup2(theirs, 200)
    null = os.open("/dev/null", os.O_RDWR)
    for number in (0, 1) if os.environ.get("GRADING_DEBUG") else (0, 1, 2):
        os.dup2(null, number)
    os.closerange(3, 200)
    os.closerange(201, 4096)
    if namespaces:
        _give_up_rights(setting)
        os.chdir("/home/learner")
        chosen = "CUDA_VISIBLE_DEVICES"
        visible = {chosen: os.environ[chosen]} if chosen in os.environ else {}
        os.environ.clear()
        os.environ.update(
            PATH="/usr/bin:/bin", HOME="/home/learner", LANG="C.UTF-8", OMP_NUM_THREADS="1"
        )
        os.environ.update(visible)
    else:
        folder = tempfile.mkdtemp(prefix="learner-")
        os.chdir(folder)
        seconds = int(setting["total_seconds"]) + 5  # should nobody be left to end it
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    for name in (signal.SIGINT, signal.SIGCHLD, signal.SIGTERM):
        signal.signal(name, signal.SIG_DFL)
    if not setting["pictures"]:
        agent.leave_pictures_out()
    agent.serve(socket.socket(fileno=keep), shell)


def _spans(setting: dict) -> dict[int, int]:
    """The limits of each single process, by the system's numbers for them."""
    spans = {
        resource.RLIMIT_FSIZE: setting["disk"],
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: 256,
        resource.RLIMIT_CPU: int(setting["total_seconds"]) + 5,
        resource.RLIMIT_MEMLOCK: 2**20,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    if not setting["gpu"]:  # whose driver takes address space as it likes
        spans[resource.RLIMIT_AS] = setting["memory"] + _address_space() + 2**30
    return spans


def _give_up_rights(setting: dict) -> None:
    """Another user, no capabilities, no way to new ones, and limits that cannot be raised."""
    for kind, value in _spans(setting).items():
        resource.setrlimit(kind, (value, value))
    if setting["root"]:
        user = FIRST_USER + setting["outer"]
        os.setgroups([])
        for capability in range(64):
            LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    resource.setrlimit(resource.RLIMIT_NPROC, (setting["processes"], setting["processes"]))
    _drop_capabilities()
    if LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs")
    LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    seccomp.install()


def _drop_capabilities() -> None:
    """Empty all three sets, for this process and what it starts."""

    class Header(ctypes.Structure):
        _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))

    header = Header(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()
    if LIBC.capset(ctypes.byref(header), ctypes.byref(sets)) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


if __name__ == "__main__":
    main(sys.argv[1])
    os._exit(0)
