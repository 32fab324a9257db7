"""Run a submission with the verdict on this side, and the learner's code in a sandbox.

Learner's cells run in a sandbox (:mod:`grading.runner.learner`). Test cells run here, unchanged, in
a process that the learner's code cannot reach: the names that the learner defined are proxies
(:mod:`grading.runner.proxy`). What the learner prints, patches, redefines or ends changes nothing
here.

One bad cell costs its own points: after a sandbox has ended, a new one runs the cells again, all
but the one that ended it.
"""

import builtins
import contextlib
import functools
import io
import json
import signal
import threading
import time
import traceback
from collections.abc import Callable

from grading.runner.job import Cell, Ended, Job, Limits, Stopped, Verdict
from grading.runner.protocol import ProtocolError
from grading.runner.proxy import MAX_TEXT, Proxy, Session, SplitProbe

MAX_RESTARTS = 5
MAX_SHOWN = 8_000_000  # characters of outputs that the cells of a notebook may have together
LEFT_OUT = "[The outputs of this notebook are too large: the rest is left out.]\n"
PRINTED = "[What your code printed here is not shown: the tests' inputs may be in it.]\n"


def judge(job: Job, start: Callable[[], object], tell: Callable[[list], None]) -> Verdict:
    """Run a job's cells in order.

    Args:
        job: the cells, the names that tests may use of the learner's, and the limits.
        start: starts a sandbox (see :class:`grading.runner.proxy.Session`).
        tell: is given each cell's outputs as soon as they are there.

    Returns:
        What else there is to say of the run.

    Raises:
        OSError: if no sandbox can be started.
    """
    return _Run(job, start).all(job.cells, tell)


def seconds_for_tests(limits: Limits) -> float:
    """Of processor time that the tests of a cell have, on this side."""
    return 2 * limits.cell_seconds + 5


class _Run:
    """One notebook on its way: a method for each role that a cell can have."""

    def __init__(self, job: Job, start: Callable[[], object]):
        self.names, self.salt, self.limits = job.names, job.salt, job.limits
        self.start = time.monotonic()
        self.result = Verdict()
        self.space: dict = {"__name__": "__main__", "__builtins__": builtins}  # the tests' names
        self.own: set[str] = set()  # names of given cells: a learner's are not looked at
        self.ran: list[str] = []  # cells that a new sandbox has to run again
        self.restarts = 0
        self.shown = 0  # characters of outputs of the learner's cells
        self.session = Session(start, self.limits)
        self.end = self.start + self.limits.total_seconds  # on the session's clock
        self.spent = {"sandbox": time.monotonic() - self.start}
        self.spent |= {"answer": 0.0, "test": 0.0, "given": 0.0}

    def all(self, cells: tuple[Cell, ...], tell: Callable[[list], None]) -> Verdict:
        run = {"answer": self._answer, "test": self._test, "given": self._given}
        try:
            for number, cell in enumerate(cells, 1):
                begin = time.monotonic()
                late = self.session.now() > self.end
                tell(self._too_late() if late else run[cell.role](number, cell))
                self.spent[cell.role] += time.monotonic() - begin
        finally:
            self.session.close()
        self.spent["all"] = time.monotonic() - self.start
        self.result.seconds = {key: round(value, 4) for key, value in self.spent.items()}
        return self.result

    def _answer(self, number: int, cell: Cell) -> list[dict]:
        """Run a learner's cell in the sandbox."""
        if not self._revive():
            return [_gone()]
        self._begin()
        try:
            reply, _ = self.session.request({"do": "cell", "source": cell.source})
        except Stopped as problem:
            self.ran.append(cell.source)
            return [_problem("TimeoutError", f"This cell: {problem}.")]
        except Ended as problem:
            self.result.notes.append(f"Cell {number}: {problem}.")
            message = f"Python stopped while this cell ran: {problem}."
            return [_problem("RuntimeError", message)]
        self.ran.append(cell.source)
        return self._bounded(_clean(reply.get("outputs")))

    def _bounded(self, outputs: list[dict]) -> list[dict]:
        """A cell's outputs, as far as all of the notebook's stay within a limit."""
        shown = []
        for output in outputs:
            self.shown += 1000 + len(json.dumps(output))  # many small ones cost time, too
            if self.shown > MAX_SHOWN:
                return [*shown, {"output_type": "stream", "name": "stdout", "text": LEFT_OUT}]
            shown.append(output)
        return shown

    def _given(self, number: int, cell: Cell) -> list[dict]:
        """Run a cell of the instructor's on both sides."""
        run_here(cell.source, self.space)
        self.own |= {name for name in cell.defines if name in self.space}
        if "probe" in self.space and not isinstance(self.space["probe"], SplitProbe):
            self.space["probe"] = SplitProbe()
            self.space["probe"].salt = self.salt
        return self._answer(number, cell)

    def _test(self, number: int, cell: Cell) -> list[dict]:
        """Run a test here, with proxies for what the learner has defined by now."""
        if not self._revive():
            return [_gone()]
        self._begin()
        with self._alarm():
            outputs = self._refresh()
        self._begin()
        if not outputs:
            with self._alarm():
                outputs = run_here(cell.source, self.space)
            if self.session.printed:
                outputs.insert(0, {"output_type": "stream", "name": "stdout", "text": PRINTED})
        if self.session.sandbox is None:
            self.result.notes.append(f"Python stopped in the tests of cell {number}.")
        return outputs

    def _refresh(self) -> list[dict]:
        """Put what the learner has defined by now into the tests' names."""
        wanted = [name for name in self.names if name not in self.own]
        try:
            reply, body = self.session.request({"do": "names", "names": wanted})
            defined = reply["names"]
            values = {
                name: self.session.packer.unpack(tree, body)
                for name, tree in defined.items()
                if name in wanted
            }
        except (Ended, Stopped, ProtocolError) as problem:
            return [_problem("RuntimeError", f"Python stopped before the tests: {problem}.")]
        except Exception as problem:  # the learner's process sent it
            reason = f"What your code defines cannot be read ({type(problem).__name__})."
            return [_problem("RuntimeError", reason)]
        for name in wanted:
            self.space.pop(name, None)
            if name in values:
                value = values[name]
                by_name = type(value) is Proxy
                self.space[name] = Proxy(self.session, {"name": name}, name) if by_name else value
        return []

    def _begin(self) -> None:
        """Give what runs next the time of a cell, or what the notebook has left."""
        self.session.begin(min(self.limits.cell_seconds, self.end - self.session.now()))

    def _alarm(self):
        """Limit what runs next on this side to its time, and to what the notebook has left."""
        left = max(1.0, self.end - self.session.now())
        return _alarm(min(seconds_for_tests(self.limits), left))

    def _revive(self) -> bool:
        """Make sure that there is a sandbox in which the earlier cells have run."""
        while self.session.sandbox is None:
            self.restarts += 1
            if self.restarts > MAX_RESTARTS or self.session.now() > self.end:
                return False
            self.session.reopen()
            for source in list(self.ran):
                self._begin()
                try:
                    self.session.request({"do": "cell", "source": source})
                except Stopped:
                    pass
                except Ended:
                    self.ran.remove(source)
                    break
        return True

    def _too_late(self) -> list[dict]:
        message = (
            f"The notebook ran for more than {self.limits.total_seconds:.0f} s and was stopped "
            f"before this cell. Look for a loop that does not end."
        )
        return [_problem("TimeoutError", message)]


@contextlib.contextmanager
def _alarm(seconds: float):
    """Stop a test that does not come to an end with what an answer returned.

    The seconds are processor time of this process: for the answer it waits with a limit of its own.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number, frame):
        raise Stopped(f"the test ran for more than {seconds:.0f} s")

    previous = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)  # again, in case something catches it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


def run_here(source: str, space: dict) -> list[dict]:
    """Run a cell of the instructor's, and return its outputs."""
    out = io.StringIO()
    outputs = []
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            exec(_compiled(source), space)
        except BaseException as problem:
            render = getattr(problem, "_render_traceback_", None)
            lines = render() if render else traceback.format_exception_only(problem)
            lines = [str(line)[:MAX_TEXT] for line in lines]
            message = str(problem)[:MAX_TEXT]
            if hasattr(problem, "shown"):  # the answer raised it
                message = problem.shown
                lines = lines if render else _with_place(problem)
            outputs.append(_problem(type(problem).__name__, message, lines))
    if out.getvalue():
        text = out.getvalue()[:MAX_TEXT]
        outputs.insert(0, {"output_type": "stream", "name": "stdout", "text": text})
    return outputs


def _with_place(problem: BaseException) -> list[str] | None:
    """The exception that an answer raised, and its line, in the words of `probe.check`."""
    place = getattr(problem, "answer_place", None)
    if place is None:
        return None
    line, name, source = place
    text = f"{type(problem).__name__}: {problem.shown}"
    return [f"{text}\nin line {line} of the cell, in `{name}`: {source}"]


@functools.lru_cache(64)
def _compiled(source: str):
    return compile(source, "<test>", "exec")


def _problem(name: str, message: str, lines: list[str] | None = None) -> dict:
    """An error as a notebook stores it."""
    return {
        "output_type": "error",
        "ename": name,
        "evalue": message,
        "traceback": lines or [f"{name}: {message}"],
    }


def _gone() -> dict:
    return _problem("RuntimeError", "Python stopped before this cell, more than once.")


def _clean(outputs: object) -> list[dict]:
    """The learner's outputs; everything that is not a valid output is left out."""
    clean: list[dict] = []
    for output in outputs if isinstance(outputs, list) else []:
        if not isinstance(output, dict):
            continue
        kind = output.get("output_type")
        if kind == "stream" and isinstance(output.get("text"), str):
            text = output["text"][: 2 * MAX_TEXT]
            clean.append({"output_type": "stream", "name": "stdout", "text": text})
        elif kind == "error":
            lines = output.get("traceback")
            lines = lines[:100] if isinstance(lines, list) else []
            parts = [output.get("ename"), output.get("evalue"), *lines]
            if all(isinstance(part, str) for part in parts):
                clean.append(_problem(parts[0][:200], parts[1][:MAX_TEXT], lines))
        elif kind in ("display_data", "execute_result") and isinstance(output.get("data"), dict):
            data = {
                key: value
                for key, value in output["data"].items()
                if key in ("text/plain", "image/png", "image/jpeg") and isinstance(value, str)
            }
            if data:
                clean.append({"output_type": "display_data", "data": data, "metadata": {}})
    return clean[:300]
