"""Isolate a submission by a user account where no sandbox can be made: only on Gradescope.

A container that others run for one submission, and throw away after it, often forbids namespaces.
There this fork server takes the place of :mod:`grading.runner.forkserver`, at the word of
:mod:`grading.gradescope` and of nobody else. Of the sandbox it keeps what needs no namespace: the
tests run in another process; the learner's code runs as a user that owns nothing, without
capabilities or a way to new ones, behind the filter of system calls, and under the same limits. The
filter refuses sockets of the network too. What is missing: the code sees the container's files that
everybody may read, the names and command lines of its processes, and `/tmp`; how much it writes is
bounded for each file, and not together. So the tests' files must be readable by root alone, and
there may be nothing else of value in the container.
"""

import os
import shutil
import signal
import subprocess
import sys

from grading.runner import forkserver, seccomp, watch
from grading.runner.forkserver import FIRST_USER
from grading.runner.job import Limits
from grading.runner.sandbox import HOME, NoSandbox


class Account:
    """A user of its own, as :class:`grading.runner.sandbox.Bubblewrap` is a sandbox.

    Its number follows from that of a process of ours, so no two are the same at a time.

    Raises:
        NoSandbox: if it cannot be had; the message gives the reason.
    """

    def __init__(self, limits: Limits, *, root: bool, gpu: bool = False):
        if not root:
            raise NoSandbox("only root can run code as another user")
        self.namespaces: list[int] = []  # none to enter
        seconds = str(int(limits.wall_seconds) + 300)
        self.process = subprocess.Popen(["/bin/sleep", seconds], stdin=subprocess.DEVNULL)
        self.pid = self.process.pid
        self.user = FIRST_USER + self.pid
        try:
            os.mkdir(HOME, 0o700)
        except OSError as problem:
            self._end_process()
            raise NoSandbox(f"{HOME} cannot be made: {problem.strerror}") from None
        os.chown(HOME, self.user, self.user)

    def kill(self) -> None:
        """End all processes of the user at once."""
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setresgid(self.user, self.user, self.user)
                os.setresuid(self.user, self.user, self.user)
                # To all that this process may signal, so it must not be root's any more.
                if os.getresuid() == (self.user,) * 3:
                    os.kill(-1, signal.SIGKILL)
            finally:
                os._exit(0)
        os.waitpid(child, 0)

    def code(self, seconds: float) -> int | None:
        """None, as nothing that the user does can end the process that the number is from."""
        return self.process.poll()

    def end(self) -> None:
        """End everything, and remove the user's folder."""
        self.kill()
        if self.process.returncode is None:
            self._end_process()
            shutil.rmtree(HOME, ignore_errors=True)  # does not follow links

    def _end_process(self) -> None:
        self.process.kill()
        self.process.wait()


class AccountUsage(watch.Usage):
    """What all processes of a user use together; its files are not counted."""

    def __init__(self, pid: int, spare: int):
        super().__init__(pid, spare)
        self._user = FIRST_USER + pid
        for number in self._folders:
            os.close(number)
        self._folders = []

    def _stats(self) -> dict[int, list[str]]:
        return {pid: stat for pid, stat in super()._stats().items() if self._owner(pid)}

    def _owner(self, pid: int) -> bool:
        lines = self._read(f"{pid}/status").split("\n")
        users = next((line.split()[1:] for line in lines if line.startswith("Uid:")), [])
        return str(self._user) in users

    def _buffers(self) -> int:
        return 0  # those of the whole container; of its own it can have Unix sockets alone


def main(path: str, module: str) -> None:
    """A fork server whose learners' processes get an account in place of a sandbox."""
    watch.Bubblewrap, watch.Usage = Account, AccountUsage
    seccomp.FAMILIES = (1,)  # Unix sockets alone, as there is no network namespace
    forkserver.main(path, module)


if __name__ == "__main__":
    main(*sys.argv[1:])
    os._exit(0)
