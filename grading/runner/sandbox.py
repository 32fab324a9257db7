"""A sandbox for each submission's code, made with bubblewrap.

bubblewrap starts a process that does nothing in new namespaces: no network, its own processes, and
a file system that holds Python, the system's libraries and an empty folder, all but the last
read-only. A process forked from one that has imported torch (:mod:`grading.runner.forkserver`) then
enters these namespaces, gives up all rights, and runs the learner's cells. When bubblewrap's
process ends, the kernel ends all others in it, daemons included.

Graded by root, the code runs as a user that owns nothing and exists nowhere, another for each
submission. Graded by anybody else, it runs in a user namespace with that user's number and no
rights over anything outside.
"""

import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from grading.runner import seccomp
from grading.runner.job import Limits

HOME = "/home/learner"
WRITABLE = ("/tmp", HOME, "/dev/shm")
EXCHANGE = (
    "/usr/local/share/nbgrader"  # where nbgrader puts an exchange unless it is told otherwise
)
REMEDY = (
    "install bubblewrap (Debian, Ubuntu: apt-get install bubblewrap; Fedora: dnf install "
    "bubblewrap). If it is there and refuses, the machine forbids user namespaces: run as root, "
    "allow them (sysctl kernel.unprivileged_userns_clone=1, or an AppArmor profile for bwrap), or "
    "grade on another machine: a Linux server, a virtual machine, a container that allows them."
)
NS_GET_USERNS = 0xB701  # from linux/nsfs.h


class NoSandbox(Exception):
    """No sandbox can be made here; the message gives the reason and the remedy."""


def python_folders() -> list[str]:
    """The folders that Python and its packages need; none of them is the course's."""
    places = {sys.prefix, sys.base_prefix, sysconfig.get_path("purelib"), "/usr"}
    places |= {sysconfig.get_path("platlib"), sysconfig.get_path("stdlib")}
    places = {os.path.realpath(place) for place in places} | {sys.prefix}
    return sorted(
        place
        for place in places
        if not any(place != other and place.startswith(other + "/") for other in places)
    )


def shown(path: Path) -> str | None:
    """The visible folder that contains this one; None if submitted code cannot see it."""
    real = path.resolve()
    folders = map(Path, python_folders())
    return next((str(folder) for folder in folders if real.is_relative_to(folder)), None)


def devices(folder: Path = Path("/dev")) -> list[Path]:
    """The device nodes of GPUs: NVIDIA's, AMD's (``kfd``), and those of both (``dri``)."""
    return sorted(path for name in ("nvidia*", "kfd", "dri") for path in folder.glob(name))


def command(limits: Limits, *, info: int, calls: int, root: bool, gpu: bool = False) -> list[str]:
    """bubblewrap's command line; what it runs sleeps until it is ended.

    Args:
        limits: what the submission may use.
        info: the descriptor to which it writes its process number.
        calls: the descriptor from which it reads the filter of system calls for its own processes:
            as an ordinary user, learners' code could take them over.
        root: whether root grades.
        gpu: whether the GPU is let in.
    """
    words = ["bwrap", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    words += ["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--clearenv"]
    words += ["--cap-drop", "ALL", "--hostname", "sandbox"] + ([] if root else ["--unshare-user"])
    disk = str(limits.disk)
    for folder in WRITABLE[:2]:  # first: Python may be installed below one of them
        words += ["--perms", "1777", "--size", disk, "--tmpfs", folder]
    for name in ("/lib", "/lib64", "/lib32", "/bin", "/sbin"):
        if os.path.islink(name):
            words += ["--symlink", os.readlink(name), name]
        elif os.path.isdir(name):
            words += ["--ro-bind", name, name]
    folders = python_folders()
    above = {str(parent) for name in folders for parent in Path(name).parents}
    for name in sorted(above - {"/", "/tmp", "/home", "/usr"}):
        words += ["--perms", "0755", "--dir", name]
    for name in folders:
        words += ["--ro-bind", name, name]
    for name in ("purelib", "platlib"):  # the course's own package, if it was installed by copying
        package = os.path.join(os.path.realpath(sysconfig.get_path(name)), "lib")
        if os.path.isdir(package):
            words += ["--tmpfs", package, "--remount-ro", package]
    if os.path.isdir(EXCHANGE):
        words += ["--tmpfs", EXCHANGE, "--remount-ro", EXCHANGE]
    for name in ("/etc/ld.so.cache", "/etc/localtime", "/etc/fonts", "/etc/alternatives"):
        words += ["--ro-bind-try", name, name]
    words += ["--proc", "/proc", "--dev", "/dev"]
    # A shared mapping of it is memory that no process seems to hold.
    words += ["--dev-bind", "/dev/null", "/dev/zero"]
    if gpu:
        for device in devices():
            words += ["--dev-bind", str(device), str(device)]
    words += ["--perms", "1777", "--size", disk, "--tmpfs", WRITABLE[2]]
    words += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", HOME]
    words += ["--info-fd", str(info), "--seccomp", str(calls), "--"]
    # It ends by itself too: a judge killed in the instant of starting it leaves nobody to end it.
    seconds = int(limits.wall_seconds) + 300
    words += ["/bin/sh", "-c", f"echo ready; exec sleep {seconds} >/dev/null 2>&1"]
    return words


def check() -> None:
    """Try whether a sandbox can be made.

    Raises:
        NoSandbox: if not, with the reason and the remedy.
    """
    if not sys.platform.startswith("linux"):
        raise NoSandbox(f"there is no sandbox for {sys.platform}: grade on Linux. {REMEDY}")
    if shutil.which("bwrap") is None:
        raise NoSandbox(f"bwrap was not found: {REMEDY}")
    try:
        Bubblewrap(Limits(), root=os.geteuid() == 0).end()
    except NoSandbox as problem:
        raise NoSandbox(f"bubblewrap cannot make a sandbox here ({problem}): {REMEDY}") from None


class Bubblewrap:
    """bubblewrap's process and the namespaces it made.

    Raises:
        NoSandbox: if it does not start.
    """

    def __init__(self, limits: Limits, *, root: bool, gpu: bool = False):
        try:
            filtered = seccomp.program(platform.machine())
        except OSError as problem:
            raise NoSandbox(problem.strerror) from None
        read, write = os.pipe()
        calls, into = os.pipe()
        with open(into, "wb") as file:
            file.write(filtered)
        try:
            with tempfile.TemporaryFile() as errors:
                try:
                    self.process = subprocess.Popen(
                        command(limits, info=write, calls=calls, root=root, gpu=gpu),
                        pass_fds=[write, calls],
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE,
                        stderr=errors,
                        env={"PATH": os.environ.get("PATH", "/usr/bin:/bin")},
                    )
                except OSError as problem:
                    raise NoSandbox(f"bwrap: {problem.strerror}") from None
                os.close(write)
                write = -1
                info_text = b""
                while piece := os.read(read, 4096):
                    info_text += piece
                    if info_text.rstrip().endswith(b"}"):
                        break
                try:
                    self.pid = json.loads(info_text)["child-pid"]
                    self.namespaces = self._open(user=not root)
                except (ValueError, KeyError, OSError):
                    self.process.kill()
                    self.process.wait()
                    errors.seek(0)
                    reason = errors.read(2000).decode(errors="replace").strip()
                    raise NoSandbox(reason or "it ended without a word") from None
        finally:
            os.close(read)
            os.close(calls)
            if write >= 0:
                os.close(write)

    def _open(self, *, user: bool) -> list[int]:
        """The namespaces as file descriptors, in the order in which they can be entered."""
        # bwrap tells the number before it has built everything.
        if self.process.stdout.readline() != b"ready\n":
            raise OSError("bwrap ended")
        kinds = ["ipc", "uts", "net", "pid", "mnt"]
        numbers = [os.open(f"/proc/{self.pid}/ns/{kind}", os.O_RDONLY) for kind in kinds]
        if user:
            numbers.insert(0, fcntl.ioctl(numbers[-1], NS_GET_USERNS))  # the one that owns them
        if self._parent() != self.process.pid:
            raise OSError("bwrap ended, and its child's number may be another's")
        return numbers

    def _parent(self) -> int:
        text = Path(f"/proc/{self.pid}/stat").read_text()
        return int(text.rpartition(")")[2].split()[1])

    def kill(self) -> None:
        """Kill bubblewrap's process; the kernel then ends everything inside."""
        if self.process.poll() is None:
            self.process.kill()

    def code(self, seconds: float) -> int | None:
        """The exit code, for which this waits so many seconds; None if it is still running."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        """End everything inside, and wait for it."""
        for number in getattr(self, "namespaces", []):
            os.close(number)
        self.namespaces = []
        self.kill()
        self.process.wait()
        self.process.stdout.close()
