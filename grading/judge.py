"""Run a submission with the verdict on this side, and the learner's code in a sandbox.

Learner's cells run in a sandbox (:mod:`grading.agent`). Test cells run here, unchanged, in a
process that the learner's code cannot reach: the names that the learner defined are stand-ins,
whose calls cross as data (:mod:`grading.wire`). What the learner prints, patches, redefines or ends
changes nothing here.

One bad cell costs its own points: after a sandbox has ended, a new one runs the cells again, all
but the one that ended it.
"""

import ast
import builtins
import contextlib
import functools
import io
import signal
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from grading.probe import Probe
from grading.wire import Body, Gone, Kept, Late, Packer, WireError, receive, send

MAX_CALLBACKS = 100_000  # calls from the answer to functions of the tests, per cell
MAX_TEXT = 100_000
MAX_RESTARTS = 5


@dataclass(frozen=True)
class Limits:
    """What a submission may use.

    Attributes:
        cell_seconds: for one cell, and for all calls that one test cell makes.
        total_seconds: for the whole notebook.
        memory: bytes for all processes of the submission together.
        processes: how many of them there may be at a time.
        disk: bytes that it may write.
    """

    cell_seconds: float = 30.0
    total_seconds: float = 300.0
    memory: int = 2 * 2**30
    processes: int = 64
    disk: int = 64 * 2**20


@dataclass(frozen=True)
class Cell:
    """A code cell of a notebook that is to be judged.

    Attributes:
        source: the code.
        role: ``answer`` (runs in the sandbox), ``test`` (runs here) or ``given`` (the instructor's
            and not graded: runs on both sides).
    """

    source: str
    role: str


@dataclass
class Judged:
    """What came of a notebook.

    Attributes:
        outputs: for each cell its outputs, in notebook format.
        notes: what happened that is not one cell's matter: sandboxes that ended, and why.
        seconds: where the time went.
    """

    outputs: list[list[dict]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


class Ended(Exception):
    """The sandbox is no more; the message says why, for the learner."""


class Stopped(Exception):
    """What a test sees when the learner's code was stopped while it ran."""


def defined_names(source: str) -> tuple[str, ...]:
    """The names that a cell defines at its top level."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return ()
    names: list[str] = []
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names += [
                part.id
                for target in targets
                for part in ast.walk(target)
                if isinstance(part, ast.Name)
            ]
    return tuple(dict.fromkeys(names))


class Bench:
    """The learner's side as the tests reach it: requests out, data in.

    Args:
        start: starts a sandbox and returns it; it has ``connection``, ``interrupt()``, ``check()``
            (raises :class:`Ended` when a limit is passed), ``end()`` (says how it ended).
        limits: what the submission may use.
    """

    def __init__(self, start: Callable[[], object], limits: Limits):
        self._start, self.limits = start, limits
        self.sandbox = None
        self.round = 0  # counts sandboxes: what belongs to an earlier one is gone
        self.deadline = time.monotonic() + limits.cell_seconds
        self.callbacks: dict[int, Callable] = {}
        self._open()

    def _open(self) -> None:
        self.sandbox = self._start()
        self.round += 1
        self.kept = Kept()
        self.packer = Packer(self._refer, self._resolve, self.kept)

    def close(self) -> None:
        if self.sandbox is not None:
            self.sandbox.end()
            self.sandbox = None

    def reopen(self) -> None:
        self.close()
        self._open()

    def request(self, what: dict, arguments: object = None) -> tuple[dict, Body]:
        """Ask, serve the calls that come back meanwhile, and return the reply.

        Raises:
            Ended: if the sandbox ended, or had to be ended.
            Stopped: if the learner's code took too long and could be interrupted.
            WireError: if an argument cannot cross.
        """
        if self.sandbox is None:
            raise Ended("Python had stopped before")
        blobs: list[bytes] = []
        written, gone = self.kept.written(blobs)
        if arguments is not None:
            what = what | {"arguments": self.packer.pack(arguments, blobs, keep=True)}
        calls = 0
        interrupted = False
        try:
            send(self.sandbox.connection, what | {"written": written, "gone": gone}, blobs)
            while True:
                try:
                    until = self.deadline + (2.0 if interrupted else 0.0)
                    header, body = receive(self.sandbox.connection, until, self.sandbox.check)
                except Late:
                    if interrupted:
                        raise Ended(
                            f"it ran for more than {self.limits.cell_seconds:.0f} s and could not "
                            "be interrupted"
                        ) from None
                    interrupted = True
                    self.sandbox.interrupt()
                    continue
                if "callback" not in header:
                    break
                calls += 1
                if calls > MAX_CALLBACKS or interrupted:
                    raise Ended("it called functions of the tests without end")
                answer, back = self._called(header, Body(body))
                send(self.sandbox.connection, answer, back)
        except Gone:
            why = self.sandbox.end()
            self.sandbox = None
            raise Ended(why or "Python stopped: the process ended") from None
        except (WireError, Ended) as problem:
            self.close()
            raise Ended(f"{problem}") from None
        parts = Body(body)
        if interrupted:
            raise Stopped(f"it ran for more than {self.limits.cell_seconds:.0f} s")
        return header, parts

    def _called(self, header: dict, body: Body) -> tuple[dict, list[bytes]]:
        """Run a function of the tests for the answer."""
        blobs: list[bytes] = []
        try:
            function = self.callbacks[header["callback"]]
            arguments = self.packer.unpack(header["arguments"], body)
            args, kwargs = arguments
            result = function(*args, **kwargs)
            return {"result": self.packer.pack(result, blobs)}, blobs
        except Exception as problem:
            kind = next(k for k in type(problem).__mro__ if k.__name__ in vars(builtins))
            return {"raised": {"type": kind.__name__, "message": str(problem)[:MAX_TEXT]}}, []

    def _refer(self, value: object) -> dict:
        if type(value) is StandIn:
            return _of(value).place
        if callable(value):
            number = len(self.callbacks)
            self.callbacks[number] = value
            return {"callback": number, "name": str(getattr(value, "__name__", "function"))}
        raise WireError(f"an argument of type {type(value).__name__} cannot be passed")

    def _resolve(self, reference: dict) -> object:
        if "back" in reference:
            return self.callbacks[reference["back"]]
        name = reference["type"]
        if type(reference["handle"]) is not int or type(name) is not str:
            raise WireError("a reference that is none")
        return StandIn(self, {"handle": reference["handle"]}, name)

    def ask(self, what: dict, arguments: object = None) -> object:
        """Ask for a result, and raise what the answer raised."""
        try:
            reply, body = self.request(what, arguments)
        except Ended as problem:
            raise Stopped(f"Python stopped while this was tried: {problem}") from None
        try:
            result = None
            if "raised" not in reply:
                result = self.packer.unpack(reply["result"], body)
            self.kept.take_back(reply.get("changed", []), body)
            printed = reply.get("printed", "")
            if isinstance(printed, str) and printed:
                print(printed[:MAX_TEXT], end="")
            raised = reply.get("raised")
            problem = None if raised is None else _error(raised)
        except (WireError, KeyError, TypeError, ValueError, AttributeError) as problem:
            said = str(problem) if isinstance(problem, WireError) else "a reply of another form"
            raise TypeError(f"what the call returned cannot be looked at: {said}") from None
        if problem is not None:
            raise problem
        return result


@dataclass(frozen=True)
class _Target:
    """Where on the learner's side a stand-in's original is: by name, or by handle."""

    bench: Bench
    place: dict
    round: int
    name: str


class StandIn:
    """What a test holds instead of a learner's function, class or object."""

    __slots__ = ("_target",)

    def __init__(self, bench: Bench, place: dict, name: str):
        self._target = _Target(bench, place, bench.round, name)

    def __call__(self, *args, **kwargs):
        target = _of(self)
        return target.bench.ask({"do": "call"} | target.place, (args, kwargs))

    def __getattr__(self, attribute: str):
        target = _of(self)
        if attribute == "__name__":
            return target.name
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        attributes = [*target.place.get("attributes", []), attribute]
        place = target.place | {"attributes": attributes}
        found = target.bench.ask({"do": "get"} | place)
        if type(found) is StandIn:
            return StandIn(target.bench, place, attribute)  # a method: found again by its name
        return found

    def __repr__(self):
        return f"<{_of(self).name} of the answer>"


def _of(value: StandIn) -> _Target:
    target = value._target
    if "handle" in target.place and target.round != target.bench.round:
        raise Stopped("the object is gone, because Python stopped")
    return target


def _error(raised: dict) -> Exception:
    """The exception that a learner's code raised, as one of the same name and built-in kind."""
    name, message, place = str(raised["type"])[:100], str(raised["message"]), raised["place"]
    kinds = [getattr(builtins, kind, None) for kind in raised["kinds"] if isinstance(kind, str)]
    bases = [k for k in kinds if isinstance(k, type) and issubclass(k, Exception)]
    base = bases[0] if bases else RuntimeError
    kind = base
    if base is KeyError:  # it would quote its message again
        kind = type("KeyError", (KeyError,), {"__str__": lambda self: self.args[0]})
    elif base.__name__ != name:
        kind = type(name if name.isidentifier() else "Error", (base,), {})
    try:
        problem = kind(message)
    except TypeError:  # UnicodeDecodeError and the like want more
        problem = RuntimeError(f"{name}: {message}")
    if isinstance(place, list) and len(place) == 3:
        line, function, source = place
        problem.answer_place = (int(line), str(function)[:100], str(source)[:300])
    return problem


class SplitProbe(Probe):
    """The tests' tool, for an answer that runs elsewhere."""

    def gradients(self, function, *args, upstream, part=None):
        if type(function) is not StandIn:
            return super().gradients(function, *args, upstream=upstream, part=part)
        target = _of(function)
        # Copies: what the answer does to them is not carried over.
        passed = [self._copy(value) for value in args]
        fitting, found = target.bench.ask(
            {"do": "gradients"} | target.place, (passed, upstream.clone(), part)
        )
        if fitting is not True:
            raise AssertionError(
                f"Expected a tensor of shape {tuple(upstream.shape)}, but got {self._what(found)}"
            )
        wanted = [
            value for value in args if isinstance(value, torch.Tensor) and value.is_floating_point()
        ]
        if not isinstance(found, list) or len(found) != len(wanted):
            raise AssertionError("The gradients could not be computed.")
        return found

    def _said(self, problem, test):
        if isinstance(problem, Stopped):
            return f"It was stopped: {problem}."
        place = getattr(problem, "answer_place", None)
        if place is None:
            return super()._said(problem, test)
        text = f"It raised {type(problem).__name__}: {problem}".removesuffix(": ")
        line, name, source = place
        text += f"\nin line {line} of the cell, in `{name}`: {source}"
        if any(word in str(problem) for word in ("shape", "size", "imension")):
            text += "\nPrint the .shape of each tensor and compare with the docstring."
        return text

    def check(self, tried):
        inner = super().check(tried)

        def run(test):
            try:
                inner(test)
            except NotImplementedError as problem:
                place = getattr(problem, "answer_place", None)
                if place is not None and not str(problem):
                    self._show(problem, f"Nothing filled in yet in `{place[1]}`.")
                raise

        return run


def judge(
    cells: list[Cell],
    names: list[str],
    salt: str,
    start: Callable[[], object],
    limits: Limits = Limits(),
) -> Judged:
    """Run the cells in order.

    Args:
        cells: the code cells.
        names: what the tests may use of the learner's: the names that the instructor's own
            answers define.
        salt: seeds the tests' random draws.
        start: starts a sandbox (see :class:`Bench`).
        limits: what the submission may use.

    Raises:
        OSError: if no sandbox can be started.
    """
    begin = time.monotonic()
    end = begin + limits.total_seconds
    result = Judged()
    spent = {"sandbox": 0.0, "answer": 0.0, "test": 0.0, "given": 0.0}
    bench = Bench(start, limits)
    spent["sandbox"] = time.monotonic() - begin
    space: dict = {"__name__": "__main__", "__builtins__": builtins}
    ran: list[str] = []  # what a new sandbox has to run again
    own: set[str] = set()
    restarts = 0

    def revive() -> bool:
        """Make sure that there is a sandbox in which the earlier cells have run."""
        nonlocal restarts
        while bench.sandbox is None:
            restarts += 1
            if restarts > MAX_RESTARTS or time.monotonic() > end:
                return False
            bench.reopen()
            for source in list(ran):
                bench.deadline = min(end, time.monotonic() + limits.cell_seconds)
                try:
                    bench.request({"do": "cell", "source": source})
                except Stopped:
                    pass
                except Ended:
                    ran.remove(source)
                    break
        return True

    try:
        for number, cell in enumerate(cells, 1):
            start_cell = time.monotonic()
            bench.deadline = min(end, start_cell + limits.cell_seconds)
            if start_cell > end:
                said = (
                    f"The notebook ran for more than {limits.total_seconds:.0f} s and was stopped "
                    f"before this cell. Look for a loop that does not end."
                )
                result.outputs.append([_problem("TimeoutError", said)])
                continue
            if cell.role == "test":
                outputs = _refresh(bench, space, names, own) if revive() else [_gone()]
                bench.deadline = min(end, time.monotonic() + limits.cell_seconds)
                if not outputs:
                    with _alarm(2 * limits.cell_seconds + 5):
                        outputs = run_here(cell.source, space)
                if bench.sandbox is None:
                    result.notes.append(f"Python stopped in the tests of cell {number}.")
                result.outputs.append(outputs)
                spent["test"] += time.monotonic() - start_cell
                continue
            if cell.role == "given":
                run_here(cell.source, space)
                own |= defined_names_in(space, cell.source)
                if "probe" in space and not isinstance(space["probe"], SplitProbe):
                    probe = SplitProbe()
                    probe.salt = salt
                    space["probe"] = probe
                spent["given"] += time.monotonic() - start_cell
            begin_answer = time.monotonic()
            if not revive():
                result.outputs.append([_gone()])
                continue
            try:
                reply, _ = bench.request({"do": "cell", "source": cell.source})
                result.outputs.append(_clean(reply.get("outputs")))
                ran.append(cell.source)
            except Stopped as problem:
                ran.append(cell.source)
                result.outputs.append([_problem("TimeoutError", f"This cell: {problem}.")])
            except Ended as problem:
                said = f"Python stopped while this cell ran: {problem}."
                result.outputs.append([_problem("RuntimeError", said)])
                result.notes.append(f"Cell {number}: {problem}.")
            spent["answer"] += time.monotonic() - begin_answer
    finally:
        bench.close()
    result.seconds = {key: round(value, 4) for key, value in spent.items()}
    result.seconds["all"] = round(time.monotonic() - begin, 4)
    return result


def defined_names_in(space: dict, source: str) -> set[str]:
    """The instructor's own names: what the learner defines under them is not looked at."""
    return {name for name in defined_names(source) if name in space}


def _refresh(bench: Bench, space: dict, names: list[str], own: set[str]) -> list[dict]:
    """Put what the learner has defined by now into the tests' names."""
    wanted = [name for name in names if name not in own]
    try:
        reply, body = bench.request({"do": "names", "names": wanted})
        found = reply["names"]
        values = {
            name: bench.packer.unpack(tree, body) for name, tree in found.items() if name in wanted
        }
    except (Ended, Stopped, WireError, KeyError, AttributeError, TypeError) as problem:
        return [_problem("RuntimeError", f"Python stopped before the tests: {problem}.")]
    for name in wanted:
        space.pop(name, None)
        if name in values:
            value = values[name]
            by_name = type(value) is StandIn
            space[name] = StandIn(bench, {"name": name}, name) if by_name else value
    return []


@contextlib.contextmanager
def _alarm(seconds: float):
    """Stop a test that does not come to an end with what an answer returned."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number, frame):
        raise Stopped(f"the test ran for more than {seconds:.0f} s")

    heard = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # again, should something catch it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, heard)


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
            outputs.append(_problem(type(problem).__name__, str(problem)[:MAX_TEXT], lines))
    if out.getvalue():
        text = out.getvalue()[:MAX_TEXT]
        outputs.insert(0, {"output_type": "stream", "name": "stdout", "text": text})
    return outputs


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
    """The learner's outputs, as far as they have the form of outputs; all else is left out."""
    kept: list[dict] = []
    for output in outputs if isinstance(outputs, list) else []:
        if not isinstance(output, dict):
            continue
        kind = output.get("output_type")
        if kind == "stream" and isinstance(output.get("text"), str):
            text = output["text"][: 2 * MAX_TEXT]
            kept.append({"output_type": "stream", "name": "stdout", "text": text})
        elif kind == "error":
            lines = output.get("traceback")
            lines = [str(line) for line in lines[:100]] if isinstance(lines, list) else []
            name, said = str(output.get("ename"))[:200], str(output.get("evalue"))[:MAX_TEXT]
            kept.append(_problem(name, said, lines))
        elif kind in ("display_data", "execute_result") and isinstance(output.get("data"), dict):
            data = {
                key: value
                for key, value in output["data"].items()
                if key in ("text/plain", "image/png", "image/jpeg") and isinstance(value, str)
            }
            if data:
                kept.append({"output_type": "display_data", "data": data, "metadata": {}})
    return kept[:300]
