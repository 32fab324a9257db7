"""A learner's answer as the tests reach it: proxies whose calls cross to the sandbox as data.

A test holds a :class:`Proxy` where in a single kernel it would hold the learner's function, class
or object. What it does with it becomes a request (:class:`Session`), which
:mod:`grading.runner.learner` answers from inside the sandbox; arguments and results cross by
:mod:`grading.runner.protocol`. The other side is the learner's, so no reply is believed to be more
than data, or even to be one.
"""

import builtins
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from grading.runner.job import Ended, Limits, Stopped
from grading.runner.probe import Probe
from grading.runner.protocol import (
    Body,
    Disconnected,
    Incoming,
    Packer,
    ProtocolError,
    Sent,
    Timeout,
    send,
)

MAX_CALLBACKS = 100_000  # calls from the answer to functions of the tests, per request
MAX_PASSED = 2**28  # bytes that it may pass to them in a cell: a test may keep its arguments
MAX_TEXT = 100_000
MAX_SHOWN = 300  # characters of a message that a library raised in the answer
OWN = "(its message is your code's own and is not shown: the tests' inputs may be in it)"


class Session:
    """The connection from the tests to the learner's side: requests out, data in.

    Args:
        start: starts a sandbox and returns it; it has ``connection``, ``interrupt()``, ``waited()``
            (seconds in which there was no processor to run on), ``end()`` (says how it ended).
        limits: what the submission may use.
    """

    def __init__(self, start: Callable[[], object], limits: Limits):
        self._start, self.limits = start, limits
        self.sandbox = None
        self.round = 0  # counts sandboxes: what belongs to an earlier one is gone
        self._waited = self._waited_before = 0.0
        self.deadline = time.monotonic() + limits.cell_seconds  # on the clock of `now`
        self.callbacks: dict[int, Callable] = {}
        self._numbers = itertools.count()
        self.printed = False  # whether the answer has printed anything while a test called it
        self.passed = 0  # bytes that it has passed to functions of the tests
        self._open()

    def now(self) -> float:
        """The clock of the limits: it stands still while there is no processor to run on."""
        if self.sandbox is not None:
            waited = self._waited_before + self.sandbox.waited()
            self._waited = max(self._waited, waited)
        return time.monotonic() - self._waited

    def _open(self) -> None:
        self._waited_before = self._waited
        self.sandbox = self._start()
        self.round += 1
        self.incoming = Incoming(self.sandbox.connection)
        self.sent = Sent()
        self.changed: list = []  # of what the last call passed: what the answer wrote into
        self.packer = Packer(self._refer, self._resolve, sent=self.sent)

    def begin(self, seconds: float) -> None:
        """A cell begins: it has this long."""
        self.deadline = self.now() + seconds
        self.printed, self.passed = False, 0

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
            ProtocolError: if an argument cannot cross.
        """
        if self.sandbox is None:
            raise Ended("Python had stopped before")
        blobs: list[bytes] = []
        written, gone = self.sent.written(blobs)
        if arguments is not None:
            what = what | {"arguments": self.packer.pack(arguments, blobs, share=True)}
        what = what | {"written": written, "gone": gone}
        try:
            header, body, interrupted = self._exchange(what, blobs)
        except Disconnected:
            why = self.sandbox.end()
            self.sandbox = None
            raise Ended(why or "Python stopped: the process ended") from None
        except (ProtocolError, Ended) as problem:
            self.close()
            raise Ended(f"{problem}") from None
        except BaseException:
            # Left in the middle, by an alarm for instance: the next reply would be this one's.
            self.close()
            raise
        if interrupted:
            raise Stopped(self._too_long())
        return header, Body(body)

    def _exchange(self, what: dict, blobs: list[bytes]) -> tuple[dict, memoryview, bool]:
        """A request and its reply, and whether what it started had to be interrupted."""
        connection, calls, interrupted = self.sandbox.connection, 0, False
        try:
            send(connection, what, blobs, self.deadline + self._waited)
            while True:
                until = self.deadline + (2.0 if interrupted else 0.0)
                try:
                    soon = time.monotonic() + 1  # check the clock at intervals
                    header, body = self.incoming.receive(min(soon, until + self._waited))
                except Timeout:
                    if self.now() < until:
                        continue
                    if interrupted:
                        raise
                    interrupted = True
                    self.sandbox.interrupt()
                    continue
                if "callback" not in header:
                    return header, body, interrupted
                calls += 1
                if calls > MAX_CALLBACKS or interrupted:
                    raise Ended("it called functions of the tests without end")
                self.passed += self.incoming.size
                if self.passed > MAX_PASSED:
                    raise Ended(f"it passed more than {MAX_PASSED >> 20} MB to functions of tests")
                answer, back = self._called(header, Body(body))
                send(connection, answer, back, self.deadline + self._waited)
        except Timeout:
            raise Ended(f"{self._too_long()} and could not be interrupted") from None

    def _too_long(self) -> str:
        return f"it ran for more than {self.limits.cell_seconds:.0f} s"

    def _called(self, header: dict, body: Body) -> tuple[dict, list[bytes]]:
        """Run a function of the tests for the answer."""
        blobs: list[bytes] = []
        try:
            function = self.callbacks.get(header["callback"])
            if function is None:
                raise RuntimeError(
                    "a function of the tests can be called during the call that it was passed to"
                )
            arguments = self.packer.unpack(header["arguments"], body)
            args, kwargs = arguments
            result = function(*args, **kwargs)
            return {"result": self.packer.pack(result, blobs)}, blobs
        except Exception as problem:
            kind = next(k for k in type(problem).__mro__ if k.__name__ in vars(builtins))
            return {"raised": {"type": kind.__name__, "message": str(problem)[:MAX_TEXT]}}, []

    def _refer(self, value: object) -> dict:
        if type(value) is Proxy:
            return _of(value).place
        if callable(value):
            number = next(self._numbers)
            self.callbacks[number] = value
            return {"callback": number, "name": str(getattr(value, "__name__", "function"))}
        raise ProtocolError(f"an argument of type {type(value).__name__} cannot be passed")

    def _resolve(self, reference: dict) -> object:
        if "back" in reference:
            return self.callbacks[reference["back"]]
        name = reference["type"]
        if type(reference["handle"]) is not int or type(name) is not str:
            raise ProtocolError("a reference that is none")
        return Proxy(self, {"handle": reference["handle"]}, name)

    def ask(self, what: dict, arguments: object = None) -> object:
        """Ask for a result, and raise what the answer raised.

        Functions that are passed can be called until the reply has been read, and no longer.
        """
        try:
            return self._read(*self.request(what, arguments))
        except Ended as problem:
            raise Stopped(f"Python stopped while this was tried: {problem}") from None
        finally:
            self.callbacks.clear()

    def _read(self, reply: dict, body: Body) -> object:
        try:
            result = None
            if "raised" not in reply:
                result = self.packer.unpack(reply["result"], body)
            self.changed = self.sent.changed(reply.get("changed", []))
            self.printed |= reply.get("printed") is True
            raised = reply.get("raised")
            problem = None if raised is None else _error(raised)
        except Stopped:
            raise
        except Exception as problem:
            known = isinstance(problem, ProtocolError)
            reason = str(problem) if known else "a reply of another form"
            raise TypeError(f"what the call returned cannot be looked at: {reason}") from None
        if problem is not None:
            raise problem
        return result


@dataclass(frozen=True)
class _Target:
    """Where on the learner's side a proxy's original is: by name, or by handle."""

    session: Session
    place: dict
    round: int
    name: str


class Proxy:
    """What a test holds instead of a learner's function, class or object."""

    __slots__ = ("_target",)

    def __init__(self, session: Session, place: dict, name: str):
        self._target = _Target(session, place, session.round, name)

    def __call__(self, *args, **kwargs):
        target = _of(self)
        return target.session.ask({"do": "call"} | target.place, (args, kwargs))

    def __getattr__(self, attribute: str):
        target = _of(self)
        if attribute == "__name__":
            return target.name
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        attributes = [*target.place.get("attributes", []), attribute]
        place = target.place | {"attributes": attributes}
        value = target.session.ask({"do": "get"} | place)
        if type(value) is Proxy:
            return Proxy(target.session, place, attribute)  # a method: found again by its name
        return value

    def __repr__(self):
        return f"<{_of(self).name} of the answer>"


def _of(value: Proxy) -> _Target:
    target = value._target
    if "handle" in target.place and target.round != target.session.round:
        raise Stopped("the object is gone, because Python stopped")
    return target


def _error(raised: dict) -> Exception:
    """The exception that a learner's code raised, as one of the same name and built-in kind.

    Tests see its whole message. ``shown`` is what of it may be told: what a learner's own `raise`
    says may quote a hidden test's input, and its author knows it; what a library says explains.
    """
    name, message, place = str(raised["type"])[:100], str(raised["message"]), raised["place"]
    kinds = [getattr(builtins, kind, None) for kind in raised["kinds"] if isinstance(kind, str)]
    bases = [k for k in kinds if isinstance(k, type) and issubclass(k, Exception)]
    base = bases[0] if bases else RuntimeError
    if base in (StopIteration, StopAsyncIteration):  # it would end a loop of the test silently
        base = RuntimeError
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
    problem.shown = OWN if raised["own"] is True and message else message[:MAX_SHOWN]
    return problem


class SplitProbe(Probe):
    """The tests' tool, for an answer that runs elsewhere."""

    def _watched(self, function, args):
        if type(function) is not Proxy:
            return super()._watched(function, args)
        result = function(*args)
        changed = _of(function).session.changed

        def holds_changed(value):
            if isinstance(value, (list, tuple)):
                return any(map(holds_changed, value))
            return any(value is each for each in changed)

        return result, [place for place, value in enumerate(args, 1) if holds_changed(value)]

    def gradients(self, function, *args, upstream, part=None):
        if type(function) is not Proxy:
            return super().gradients(function, *args, upstream=upstream, part=part)
        target = _of(function)
        fits, result = target.session.ask(
            {"do": "gradients"} | target.place, (args, upstream, part)
        )
        if fits is not True:
            raise AssertionError(
                f"Expected a tensor of shape {tuple(upstream.shape)}, but got {self._what(result)}"
            )
        wanted = [
            value for value in args if isinstance(value, torch.Tensor) and value.is_floating_point()
        ]
        if not isinstance(result, list) or len(result) != len(wanted):
            raise AssertionError("The gradients could not be computed.")
        return result

    def _said(self, problem, test):
        if isinstance(problem, Stopped):
            return f"It was stopped: {problem}."
        shown = getattr(problem, "shown", None)
        if shown is None:
            return super()._said(problem, test)
        text = f"It raised {type(problem).__name__}: {shown}".removesuffix(": ")
        if place := getattr(problem, "answer_place", None):
            line, name, source = place
            text += f"\nin line {line} of the cell, in `{name}`: {source}"
        return text + self._advice(problem)

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
