"""A process that has imported what is needed, and forks: a start costs hundredths of a second.

There are two kinds. One has imported torch, before any submission is read, and holds nothing of the
course. It forks judges (:mod:`grading.runner.judge`), trusted, one for each submission, and the
learner's process (:mod:`grading.runner.learner`), which enters a sandbox before it runs anything.
The other has imported a module of the grader's, and forks processes that call a function of it:
what takes long is then not done by the one process that writes.
"""

import contextlib
import ctypes
import gc
import importlib
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
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

from grading.runner import seccomp
from grading.runner.job import Job, Limits, Verdict

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER = 24, 36
JUDGE, LEARNER, CALL = b"judge\n", b"learn\n", b"calls\n"  # requests: words of equal length
COURSE = Path(__file__).resolve().parents[2]  # the folder that holds `grading`
INHERITED = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "CUDA_VISIBLE_DEVICES", "GRADING_DEBUG")
MAX_ANSWER = 64 * 2**20  # bytes that a function in a sandbox may return
FIRST_USER = 2_000_000_000  # above what any system gives away; a process number is added
LIBC = ctypes.CDLL(None, use_errno=True)


class ForkServerError(Exception):
    """The fork server is gone, or did not do what was asked."""


class ForkServer:
    """The fork server, as the process that grades uses it.

    Args:
        module: what it imports, and whose functions it can be asked to call; its function
            `prepare` is called once, before any fork. Empty for one that runs notebooks.
        program: the module that is started, this one or :mod:`grading.runner.apart`.
    """

    def __init__(self, module: str = "", program: str = "grading.runner.forkserver"):
        self.module, self.program = module, program
        self.path = ""
        self._lock = threading.Lock()
        self._process: subprocess.Popen | None = None
        self._folder: tempfile.TemporaryDirectory | None = None

    def start(self) -> None:
        """Start it, if it is not running.

        Raises:
            ForkServerError: if it does not start.
        """
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                return
            self._folder = tempfile.TemporaryDirectory(prefix="n-")
            self.path = f"{self._folder.name}/s"
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", self.program, self.path, self.module],
                stdin=subprocess.PIPE,  # when it closes, the fork server knows that we have ended
                stdout=subprocess.PIPE,
                env=self._environment(),
                cwd=self._folder.name,
                start_new_session=True,  # Ctrl-C is for us
            )
            if self._process.stdout.readline() != b"ready\n":
                self._process.kill()
                self._process.wait()
                raise ForkServerError("the process that runs notebooks did not start")

    def _environment(self) -> dict[str, str]:
        folder = self._folder.name
        return {name: os.environ[name] for name in INHERITED if name in os.environ} | {
            "OMP_NUM_THREADS": "1",
            "MPLBACKEND": "agg",
            "MPLCONFIGDIR": f"{folder}/matplotlib",
            "IPYTHONDIR": f"{folder}/ipython",
            "HOME": folder,
            "PYTHONPATH": str(COURSE),
        }

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


def ask(path: str, job: Job, seconds: float) -> Verdict:
    """Have the fork server at this address judge a job.

    Args:
        path: its socket.
        job: what to run.
        seconds: after which to give up.

    Raises:
        ForkServerError: if no verdict came, whatever the reason.
    """
    return Verdict(**_ask(path, JUDGE, {"path": path, "job": job.to_json()}, seconds))


def call(path: str, function: str, argument: dict, seconds: float) -> dict:
    """Have the fork server at this address call a function of its module, in a new process.

    Args:
        path: its socket.
        function: the function's name.
        argument: what to pass, as JSON takes it; the function returns such a dictionary too.
        seconds: after which to give up.

    Raises:
        ForkServerError: if nothing came back, whatever the reason.
    """
    return _ask(path, CALL, {"function": function, "argument": argument}, seconds)["result"]


def _ask(path: str, request: bytes, message: dict, seconds: float) -> dict:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(seconds)
        try:
            connection.connect(path)
            message = message | {"seconds": seconds}
            connection.sendall(request + json.dumps(message).encode() + b"\n")
            with connection.makefile("rb") as stream:
                answer = json.loads(stream.readline())
        except (OSError, ValueError) as problem:
            raise ForkServerError(f"no answer came ({type(problem).__name__})") from None
    if "problem" in answer:
        raise ForkServerError(answer["problem"])
    return answer


# --- in the forking process


def main(path: str, module: str) -> None:
    """Import, listen, fork."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    os.chmod(path, 0o600)
    if module:
        importlib.import_module(module).prepare()
        shell = None
    else:
        shell = _import_for_notebooks()
        for name in list(sys.path):  # the course is not the learner's to import
            if name in ("", str(COURSE)):
                sys.path.remove(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are not waited for
    # Nor are learners' processes, whose parents end at once. Left to the machine's first process,
    # which need not wait for them either, they would keep their sandbox from ending.
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Collecting would walk through all of torch: a quarter of a second for each fork.
    gc.collect()
    gc.freeze()
    server.listen(64)
    os.write(1, b"ready\n")
    os.set_blocking(0, False)
    while True:
        ready, _, _ = select.select([0, server], [], [])
        if 0 in ready:
            # Nobody else may be left to do so.
            shutil.rmtree(Path(path).parent, ignore_errors=True)
            return
        connection, _ = server.accept()
        _serve(connection, server, module, shell)


def _import_for_notebooks():
    """Import what judges and learners need, and return the shell that learners' cells run in."""
    import torch
    import torch.fx.experimental.symbolic_shapes

    import grading.runner.watch  # noqa: F401
    from grading.runner.learner import PAGES, make_shell

    torch.set_num_threads(1)
    shell = make_shell()
    # What a first figure and a first error import and look for, once and for all forks.
    for source in ("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()", "1 / 0"):
        shell.run_cell(source, store_history=False, silent=False)
    shell.reset(new_session=True)
    PAGES.clear()
    return shell


def _serve(connection: socket.socket, server: socket.socket, module: str, shell) -> None:
    """Fork what is asked for."""
    connection.settimeout(10)
    # The first word and no more: what a judge is told may not come to lie in this process's memory,
    # of which each learner's process is a copy.
    try:
        request, numbers, _, _ = socket.recv_fds(connection, len(JUDGE), 16)
    except OSError:
        connection.close()
        return
    connection.settimeout(None)
    if module:
        works = {CALL: partial(_call, module, connection)}
    else:
        works = {JUDGE: partial(_judge, connection)}
        works[LEARNER] = partial(_enter, connection, numbers, shell)
    if request in works and os.fork() == 0:
        server.close()
        _child(works[request])
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


def _receive(connection: socket.socket) -> dict:
    """Set up a process that ends with the fork server or after its time, and read its request."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.close(0)
    os.open("/dev/null", os.O_RDWR)
    with connection.makefile("rb") as stream:
        message = json.loads(stream.readline())
    signal.alarm(int(message["seconds"]) + 1)
    return message


def _reply(connection: socket.socket, answer: dict) -> None:
    # Lone surrogates, which a learner's text may contain, cannot be written to any file.
    text = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")
    connection.sendall(text + b"\n")


def _where(problem: BaseException) -> str:
    """What went wrong, without its message, which may quote a learner's text."""
    place = traceback.extract_tb(problem.__traceback__)[-1]
    return f"{type(problem).__name__} in {Path(place.filename).name}, line {place.lineno}"


# --- in a process that calls a function


def _call(module: str, connection: socket.socket) -> None:
    message = _receive(connection)
    try:
        function = getattr(importlib.import_module(module), message["function"])
        answer = {"result": function(message["argument"])}
    except Exception as problem:
        answer = {"problem": _where(problem)}
    _reply(connection, answer)


def boxed(function: Callable[[dict], dict], argument: dict, limits: Limits, seconds: float) -> dict:
    """Call a function in a sandbox of its own, from a process that :func:`call` had made.

    Args:
        function: what to call; its module has been imported.
        argument: what to pass, as JSON takes it.
        limits: what it may use.
        seconds: after which to give up.

    Returns:
        The result, which is untrusted; empty if there is no sandbox, or if nothing came back.
    """
    from grading.runner.sandbox import Bubblewrap, NoSandbox

    root = os.geteuid() == 0
    try:
        outer = Bubblewrap(limits, root=root)
    except NoSandbox:
        return {}
    setting = asdict(limits) | {"root": root, "outer": outer.pid, "gpu": False}
    ours, theirs = socket.socketpair()
    try:
        if os.fork() == 0:
            _child(lambda: _in_a_box(theirs, outer.namespaces, setting, function))
        theirs.close()
        ours.settimeout(seconds)
        ours.sendall(json.dumps(argument).encode() + b"\n")
        with ours.makefile("rb") as stream:
            answer = json.loads(stream.readline(MAX_ANSWER))
    except (OSError, ValueError, RecursionError):
        return {}
    finally:
        ours.close()
        outer.end()
    return answer if isinstance(answer, dict) else {}


def _in_a_box(
    connection: socket.socket,
    namespaces: list[int],
    setting: dict,
    function: Callable[[dict], dict],
) -> None:
    """Enter a sandbox, give up all rights, and only then read what to do."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    _enter_namespaces(namespaces)
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    with _keep_only(connection.fileno(), setting) as line, line.makefile("rb") as stream:
        _reply(line, function(json.loads(stream.readline())))


# --- on the way into a sandbox


def _enter_namespaces(numbers: list[int]) -> None:
    """Enter a sandbox's namespaces; that of process numbers holds for children only."""
    for number in numbers:
        if LIBC.setns(number, 0) != 0:
            raise OSError(ctypes.get_errno(), "setns")


def _keep_only(descriptor: int, setting: dict) -> socket.socket:
    """Close all descriptors but a socket's, give up all rights, and return the socket."""
    os.setsid()  # signals to a process's own group would reach all that were forked here
    connection = os.dup2(descriptor, 200)
    null = os.open("/dev/null", os.O_RDWR)
    for number in (0, 1) if os.environ.get("GRADING_DEBUG") else (0, 1, 2):
        os.dup2(null, number)
    os.closerange(3, connection)
    os.closerange(connection + 1, 4096)
    _give_up_rights(setting)
    return socket.socket(fileno=connection)


# --- in the process that watches a judge and its sandboxes


def _judge(connection: socket.socket) -> None:
    """Have one submission judged, and send the verdict as one line of JSON."""
    from grading.runner.sandbox import NoSandbox
    from grading.runner.watch import NoVerdict, Watch

    message = _receive(connection)
    job = Job.from_json(message["job"])
    judge = partial(_be_judge, job, os.getpid())
    try:
        answer = asdict(Watch(job, judge, partial(_learner, message["path"]), connection).run())
    except (NoSandbox, NoVerdict) as problem:
        answer = {"problem": str(problem)}
    except Exception as problem:
        answer = {"problem": _where(problem)}
    _reply(connection, answer)


def _learner(path: str, setting: dict, numbers: list[int]) -> tuple[int, int]:
    """Have the fork server fork a learner's process; its number, and a descriptor of it."""
    from grading.runner.sandbox import NoSandbox

    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        request = LEARNER + json.dumps(setting).encode() + b"\n"
        socket.send_fds(server, [request], numbers)
        text, processes, _, _ = socket.recv_fds(server, 64, 1)
    if not processes:
        raise NoSandbox("no process could enter the sandbox")
    return int(text), processes[0]


# --- in a judge


def _be_judge(job: Job, parent: int, line: socket.socket, report: int) -> None:
    """Judge one submission; report a line of JSON for each cell, and then one for the run."""
    from grading.runner.judge import judge
    from grading.runner.watch import Sandbox

    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)
    if not job.gpu:  # whose driver takes address space as it likes
        span = _address_space() + job.limits.memory + 2**31
        resource.setrlimit(resource.RLIMIT_AS, (span, span))

    def tell(result: list | dict) -> None:
        print(json.dumps(result), file=file, flush=True)

    try:
        with open(report, "w") as file:
            try:
                tell(asdict(judge(job, lambda: Sandbox(line), tell)))
            except Exception as problem:
                tell({"problem": _where(problem)})
    finally:
        os._exit(0)


# --- in a learner's process


def _enter(connection: socket.socket, numbers: list[int], shell) -> None:
    """Enter the sandbox, give up all rights, and run the learner's cells.

    Whoever asked gets the process's number, and a descriptor of it that stays its own.
    """
    from grading.runner import learner

    with connection.makefile("rb") as stream:
        setting = json.loads(stream.readline())
    theirs, *namespaces = numbers
    with contextlib.suppress(OSError):
        # Should the machine run out of memory, this process is ended before any other.
        Path("/proc/self/oom_score_adj").write_text("1000")
    _enter_namespaces(namespaces)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # so that the number stays taken, below
    pid = os.fork()
    if pid:
        socket.send_fds(connection, [str(pid).encode()], [os.pidfd_open(pid)])
        return
    connection.close()
    line = _keep_only(theirs, setting)
    os.chdir("/home/learner")
    chosen = "CUDA_VISIBLE_DEVICES"
    visible = {chosen: os.environ[chosen]} if chosen in os.environ else {}
    os.environ.clear()
    os.environ.update(
        PATH="/usr/bin:/bin", HOME="/home/learner", LANG="C.UTF-8", OMP_NUM_THREADS="1"
    )
    os.environ.update(visible)
    for name in (signal.SIGINT, signal.SIGCHLD, signal.SIGTERM):
        signal.signal(name, signal.SIG_DFL)
    if not setting["pictures"]:
        learner.leave_pictures_out()
    learner.serve(line, shell)


def _spans(setting: dict) -> dict[int, int]:
    """The limits of each single process, by the system's numbers for them."""
    spans = {
        resource.RLIMIT_FSIZE: setting["disk"],
        # With 0, a program that the machine pipes its cores to would still be run, outside.
        resource.RLIMIT_CORE: 1,
        resource.RLIMIT_NOFILE: 256,
        resource.RLIMIT_CPU: int(setting["total_seconds"]) + 5,
        resource.RLIMIT_MEMLOCK: 2**20,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_SIGPENDING: 1024,
        resource.RLIMIT_NICE: 0,
        resource.RLIMIT_RTPRIO: 0,
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
    else:
        _own_user_namespace()
    resource.setrlimit(resource.RLIMIT_NPROC, (setting["processes"], setting["processes"]))
    _drop_capabilities()
    if LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs")
    # An ordinary user who grades sees what memory a process uses only if it may be dumped.
    LIBC.prctl(PR_SET_DUMPABLE, 0 if setting["root"] else 1, 0, 0, 0)
    seccomp.install()


def _own_user_namespace() -> None:
    """Keep the rights over processes of the same user, bubblewrap's own, out of reach.

    Where an ordinary user grades, all processes of the sandbox are that user's. The kernel lets
    none of them into the memory, the files or the folders of one in another user namespace.
    """
    user, group = os.getuid(), os.getgid()
    if LIBC.unshare(seccomp.CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    itself = Path("/proc/self")
    (itself / "setgroups").write_text("deny")
    (itself / "uid_map").write_text(f"{FIRST_USER} {user} 1")
    (itself / "gid_map").write_text(f"{FIRST_USER} {group} 1")
    Path("/proc/sys/user/max_user_namespaces").write_text("0")  # none below this one


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
    main(*sys.argv[1:])
    os._exit(0)
