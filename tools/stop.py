"""Run a command so that Ctrl-C ends it, and all it started, with one line and no traceback.

Ctrl-C sends SIGINT to the commands in the terminal, ``kill`` and a time limit send SIGTERM, a
closed terminal sends SIGHUP. All three become a KeyboardInterrupt in the command, which has a few
seconds to release what it holds. Whatever it started that is still there is then ended too:
kernels, for example, are in sessions of their own, where no Ctrl-C reaches them. The exit status
is 128 plus the signal's number, as shells have it: 130 for Ctrl-C. A reader of the output who
goes away, as in ``make return | head -1``, ends it without a traceback, too.

Only the standard library is needed: this is used before anything is installed.
"""

import contextlib
import functools
import os
import runpy
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
GRACE = 3.0  # seconds that an interrupted command has for itself
UNHURRIED = {"grading"}  # has a report to write when it is interrupted
PATIENCE = 1.0  # seconds between asking a process to end and ending it
PROC = Path("/proc")


def run(module: str, arguments: list[str]) -> int:
    """Run a module as ``python -m`` does; return 0, or leave by the exit that it chose.

    Args:
        module: such as ``tools.book``.
        arguments: what it finds in ``sys.argv``.
    """
    received: list[int] = []
    started: dict[int, str] = {}
    me = os.getpid()
    starting = one_start_at_a_time()

    def give_up() -> None:
        # A pool's own thread replaces every worker that ends; from here on it cannot.
        starting.acquire(timeout=PATIENCE)
        if threading.current_thread() is threading.main_thread():  # the others may not
            for number in SIGNALS:
                signal.signal(number, signal.SIG_IGN)
        end({**started, **descendants(me)})
        print("\nstopped" if sys.stderr.isatty() else "stopped", file=sys.stderr)
        leave(128 + received[0])

    timer = threading.Timer(GRACE, give_up)
    timer.daemon = True

    def on_signal(number, _):
        if os.getpid() != me:  # a fork of this process, which nobody waits for any more
            os._exit(128 + number)
        if not received:
            received.append(number)
            started.update(descendants(me))  # now: whose parent ends is nobody's child
            if module not in UNHURRIED:
                timer.start()
        raise KeyboardInterrupt

    for number in SIGNALS:
        # A command started in the background, or under nohup, ignores some, and goes on to.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, on_signal)
    remind_main_thread(received)
    sys.argv = [module, *arguments]
    try:
        with reader_may_leave():
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        return 0
    except SystemExit:
        timer.cancel()
        if received:  # it has reported that itself
            end({**started, **descendants(me)})
        raise
    except BaseException:  # an interrupted call may raise an exception of its own
        timer.cancel()
        if not received:
            raise
        give_up()


@contextlib.contextmanager
def reader_may_leave() -> Iterator[None]:
    """Make the end of the output's reader an exit: what the command chose, or 128 plus SIGPIPE."""
    over = SystemExit(128 + signal.SIGPIPE)
    try:
        try:
            yield
            over = SystemExit(0)
        except SystemExit as chosen:
            over = chosen
            raise
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        poll = select.poll()
        poll.register(1)
        if not any(event & select.POLLERR for _, event in poll.poll(0)):
            raise  # another pipe's
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what is flushed at the exit
        raise over from None


def one_start_at_a_time() -> threading.RLock:
    """Return a lock that is held while a process is started, and start each in its own session.

    So Ctrl-C reaches this process alone, and not what it starts: each of them would write a
    traceback of its own, and some are started by other people's code.
    """
    make = subprocess.Popen.__init__
    starting = threading.RLock()

    @functools.wraps(make)
    def started(self, *args, **options):
        if "process_group" not in options and "preexec_fn" not in options:
            options.setdefault("start_new_session", True)
        with starting:
            make(self, *args, **options)

    subprocess.Popen.__init__ = started
    os.register_at_fork(
        before=starting.acquire,
        after_in_parent=starting.release,
        after_in_child=starting.release,
    )
    return starting


def remind_main_thread(received: list[int]) -> None:
    """Send this thread a signal again if its handler has not run after a second.

    Python runs handlers in the main thread only, between two instructions. A signal that comes
    while that thread hands the interpreter's lock to another, on its way into a wait without an
    end, does not interrupt the wait.
    """
    main = threading.get_ident()
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))

    def remind() -> None:
        while number := os.read(reading, 1):
            time.sleep(PATIENCE)
            if not received and number[0] in SIGNALS:
                signal.pthread_kill(main, number[0])

    threading.Thread(target=remind, daemon=True).start()


def leave(status: int) -> None:
    """End this process at once: nothing that it registered for its exit can fail any more."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # who read it is gone
            pass
    os._exit(status)


def processes() -> dict[int, tuple[int, str]]:
    """All processes: the parent's id of each, and when it started, since ids are used again."""
    every = {}
    if (PROC / "self" / "stat").is_file():
        for path in PROC.iterdir():
            if path.name.isdigit():
                try:
                    # The name, in parentheses, may hold spaces and parentheses.
                    fields = (path / "stat").read_text(errors="replace").rpartition(")")[2].split()
                except OSError:  # it has ended
                    continue
                if fields[0] != "Z":
                    every[int(path.name)] = (int(fields[1]), fields[19])
        return every
    command = ["ps", "-A", "-o", "pid=,ppid=,stat=,lstart="]
    for line in subprocess.run(command, capture_output=True, text=True).stdout.splitlines():
        process, parent, state, began = line.split(maxsplit=3)
        if not state.startswith("Z"):
            every[int(process)] = (int(parent), began)
    return every


def descendants(root: int) -> dict[int, str]:
    """The children of a process, their children and so on, each with when it started."""
    every = processes()
    below: dict[int, str] = {}
    parents = {root}
    while parents:
        children = {each for each, (parent, _) in every.items() if parent in parents}
        parents = children - below.keys()
        below.update((each, every[each][1]) for each in parents)
    return below


def end(started: dict[int, str]) -> None:
    """Ask processes to end, and end those that do not.

    Args:
        started: their ids, each with when it started.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in alive(started):
            try:
                os.kill(process, number)
            except OSError:  # it has ended, or is another user's
                pass
        deadline = time.monotonic() + PATIENCE
        while alive(started):
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
        else:
            return


def alive(started: dict[int, str]) -> list[int]:
    """Which of these processes are still there."""
    every = processes()
    return [each for each, began in started.items() if each in every and every[each][1] == began]
