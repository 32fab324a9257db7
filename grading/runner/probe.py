# The tests' tools. You need not read this cell; please leave it as it is: the tests need it.

import contextlib
import hashlib
import linecache
import math
import sys
import traceback

import torch


class Probe:
    """How a test of this course reaches an answer, and how it says what it found.

    A test touches an answer in two ways only: it calls it, `softmax(scores, -1)`, or it hands it
    to a method below. It never reads its source, never asks what type it is, and never relies on
    getting the same object back. So the answer may as well run in another process, with arguments
    and results crossing as data. A grader that works so puts its own `probe` in this place, and
    the tests stay as they are. One instance, `probe`, serves all tests of a notebook.
    """

    # A grader puts a secret and the submission's hash here. While it is empty, the "random"
    # inputs depend on the name of the cell alone, and are the same at every run.
    salt = ""
    _tolist = staticmethod(torch.Tensor.tolist)  # kept from before any answer has run

    # --- on the side of the tests

    def generator(self, cell):
        """A random generator for the tests of one cell: repeatable, and fresh with each salt."""
        digest = hashlib.sha256(f"{self.salt}/{cell}".encode()).digest()
        return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))

    def check(self, tried):
        """Decorate a test so that it runs at once and says what was tried, passed or not.

        What the answer writes to stderr, a warning for instance, is shown as ordinary output:
        nbgrader gives no points for a cell with stderr, however right its result. In a notebook a
        failure shows its message alone: the code of these tools would only stand in the way.
        """

        def run(test):
            try:
                with contextlib.redirect_stderr(sys.stdout):
                    test()
            except Exception as problem:
                if isinstance(problem, NotImplementedError) and not str(problem):
                    *_, (frame, _) = traceback.walk_tb(problem.__traceback__)
                    self._show(problem, f"Nothing filled in yet in `{frame.f_code.co_name}`.")
                    raise
                said = AssertionError(f"Tried: {tried}.\n{self._said(problem, test)}")
                self._show(said, f"AssertionError: {said}")
                raise said from problem
            print(f"Passed: {tried}.")

        return run

    def also(self, what):
        """Say what the tests that are added when the work is graded look at; see `make check`."""
        print(f"When graded, also: {what}.")

    def close(self, actual, expected, hint="", *, tolerance=1e-10, name="the result"):
        """Compare data (tensors, numbers, strings, None, and tuples or lists of them).

        Types, shapes and dtypes must be equal; numbers may differ by `tolerance`, taken as
        absolute and as relative. The message says where and by how much, then gives the hint.
        """
        problem = self._difference(actual, expected, tolerance, name)
        if problem and actual is None and "gradient" in name:
            problem = f"{name}: none arrives, so something on the way is detached"
        if problem:
            raise AssertionError(f"{problem}\n{hint}".strip())

    def equal(self, actual, expected, hint="", *, name="the result"):
        """Compare data exactly."""
        self.close(actual, expected, hint, tolerance=0.0, name=name)

    def unpack(self, result, *names):
        """The parts of a result that must be a tuple (or list) of that many."""
        if not isinstance(result, (tuple, list)) or len(result) != len(names):
            raise AssertionError(
                f"Expected a tuple ({', '.join(names)}), but the call returned {self._what(result)}"
            )
        return tuple(result)

    def counted(self, function):
        """A function of the tests, to be handed to an answer; `.calls` lists its arguments."""

        def wrapper(*args):
            wrapper.calls.append([self._copy(value) for value in args])
            return function(*args)

        wrapper.calls = []
        return wrapper

    def varied(self, args, others):
        """A call's arguments, and the same with one of `others` in its place, for each in turn.

        An answer that keeps results for a second call may overlook that one argument is another.
        """
        places = range(len(args))
        return [args, *((*args[:place], others[place], *args[place + 1 :]) for place in places)]

    def filled(self, args, places=None):
        """A call's arguments with the numbers of one tensor all 0, then all 1, for each in turn.

        Where a number is 0 or 1, an answer may leave out a step, and the gradient with it. Only
        the tensors at `places` are filled, if given; else all of a floating-point type.
        """
        calls = []
        for place, value in enumerate(args):
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                if places is None or place in places:
                    for fill in (torch.zeros_like, torch.ones_like):
                        calls.append((*args[:place], fill(value), *args[place + 1 :]))
        return calls

    # --- on the side of the answer

    def new(self, make, *args, **kwargs):
        """An object that the answer keeps, such as a cache: `handle.method(data)` returns data,
        and `handle.attribute` reads data. Use the handle for nothing else."""
        return make(*args, **kwargs)

    def unchanged(self, function, *args):
        """Call `function(*args)`, insist that no argument was changed, and return the result."""
        result, changed = self._watched(function, args)
        if changed:
            raise AssertionError(
                f"argument {changed[0]} of the call was changed in place. Whoever called may need "
                "it again: work on a new tensor"
            )
        return result

    def gradients(self, function, *args, upstream, part=None):
        """The gradient of the sum of `upstream × function(*args)` with respect to each argument.

        `part` picks one of several results. Returns a list with one entry per floating-point
        tensor among the arguments: its gradient, or None where none arrives. Each is asked for in
        a call of its own, in which no other argument needs one.
        """
        places = [
            place
            for place, value in enumerate(args)
            if isinstance(value, torch.Tensor) and value.is_floating_point()
        ]
        return [self._gradient(function, args, place, upstream, part) for place in places]

    # --- inside

    def _gradient(self, function, args, place, upstream, part):
        """The gradient with respect to one argument."""
        leaf = args[place].clone().requires_grad_()
        # Copies go in, so that a change in place shows in `unchanged` and not here.
        result = function(*self._copy((*args[:place], leaf, *args[place + 1 :])))
        result = result if part is None else result[part]
        if not isinstance(result, torch.Tensor) or result.shape != upstream.shape:
            raise AssertionError(
                f"Expected a tensor of shape {tuple(upstream.shape)}, but got {self._what(result)}"
            )
        if not result.requires_grad:
            return None
        return torch.autograd.grad(result, leaf, upstream, allow_unused=True)[0]

    def _show(self, problem, text):
        """Let IPython print this text where an exception's traceback would stand."""
        problem._render_traceback_ = lambda: [text]

    def _said(self, problem, test):
        """What a failing test says: its message, or what the answer raised, and in which line."""
        ours = {test.__code__.co_filename, Probe.check.__code__.co_filename}
        lines = [
            (frame.f_code, line)
            for frame, line in traceback.walk_tb(problem.__traceback__)
            if frame.f_globals is test.__globals__ and frame.f_code.co_filename not in ours
        ]
        if isinstance(problem, AssertionError) and not lines:
            return str(problem)
        text = f"It raised {type(problem).__name__}: {problem}".removesuffix(": ")
        if lines:
            code, line = lines[-1]
            source = linecache.getline(code.co_filename, line).strip()
            text += f"\nin line {line} of the cell, in `{code.co_name}`: {source}"
        return text + self._advice(problem)

    def _advice(self, problem):
        """What helps where torch's own message does not say it; they come as these exceptions."""
        if not isinstance(problem, (RuntimeError, IndexError)):
            return ""
        if "inplace operation" in str(problem):
            return "\nSomething that the gradient needs was changed in place: work on a new tensor."
        if any(word in str(problem) for word in ("shape", "size", "imension")):
            return "\nPrint the .shape of each tensor and compare with the docstring."
        return ""

    def _watched(self, function, args):
        """The result of a call, and which of its arguments it changed; the first is number 1."""
        kept = self._copy(args)
        result = function(*args)
        pairs = enumerate(zip(args, kept, strict=True), 1)
        return result, [place for place, pair in pairs if self._difference(*pair, 0.0, "")]

    def _copy(self, value):
        if isinstance(value, (list, tuple)):
            return (list if isinstance(value, list) else tuple)(map(self._copy, value))
        return value.clone() if isinstance(value, torch.Tensor) else value

    def _what(self, value):
        """Name a value in a message."""
        if value is None:
            return "None (is a `return` missing?)"
        if isinstance(value, torch.Tensor):
            return f"a tensor of shape {tuple(value.shape)} and dtype {value.dtype}"
        if isinstance(value, (tuple, list)):
            return f"a {type(value).__name__} of {len(value)}"
        return f"{value!r:.80} of type {type(value).__name__}"

    def _difference(self, actual, expected, tolerance, name):
        """What is different, in words; empty if nothing is."""
        if isinstance(expected, torch.Tensor):
            if type(actual) not in (torch.Tensor, torch.nn.Parameter):
                return f"{name}: got {self._what(actual)}, expected {self._what(expected)}"
            for kind, a, e in (
                ("shape", tuple(actual.shape), tuple(expected.shape)),
                ("dtype", actual.dtype, expected.dtype),
            ):
                if a != e:
                    return f"{name}: got {kind} {a}, expected {kind} {e}"
            return self._far(self._tolist(actual), self._tolist(expected), tolerance, name)
        if isinstance(expected, (tuple, list)):
            if not isinstance(actual, (tuple, list)) or len(actual) != len(expected):
                return f"{name}: got {self._what(actual)}, expected {self._what(expected)}"
            for place, (a, e) in enumerate(zip(actual, expected, strict=True)):
                problem = self._difference(a, e, tolerance, f"part {place} of {name}")
                if problem:
                    return problem
            return ""
        if type(actual) is not type(expected):
            wanted = "None" if expected is None else self._what(expected)
            return f"{name}: got {self._what(actual)}, expected {wanted}"
        return self._far(actual, expected, tolerance, name)

    def _far(self, actual, expected, tolerance, name):
        """Compare numbers in nested lists, in plain Python; describe the first that is off."""
        sizes, ours, theirs = [], [actual], [expected]
        while theirs and isinstance(theirs[0], list):
            sizes.append(len(theirs[0]))
            ours, theirs = ([each for row in rows for each in row] for rows in (ours, theirs))

        def near(a, e):
            numbers = isinstance(e, (int, float)) and tolerance > 0
            return numbers and math.isclose(a, e, rel_tol=tolerance, abs_tol=tolerance)

        pairs = enumerate(zip(ours, theirs, strict=True))
        off = [place for place, (a, e) in pairs if a != e and not near(a, e)]
        if not off:
            return ""
        a, e, place, index = ours[off[0]], theirs[off[0]], off[0], []
        for size in reversed(sizes):
            place, last = divmod(place, size)
            index.insert(0, last)
        where = f" at {index}" if index else ""
        text = f"{name}{where}: got {self._short(a)}, expected {self._short(e)}"
        if type(a) is type(e) is float and math.isclose(a, e, rel_tol=1e-6):
            why = ": has a float32 number come in, or something small been added?"
            text += f" (they differ by {abs(a - e):.1e}{why if tolerance else ''})"
        return text + (f"; {len(off)} of {len(theirs)} entries are off" if len(theirs) > 1 else "")

    def _short(self, value):
        return f"{value:.6g}" if type(value) is float else repr(value)


probe = Probe()
