"""What runs inside a sandbox: a learner's cells, and the calls that the tests make.

This process is the learner's. Nothing that it sends is believed to be more than data: whoever takes
it over can return wrong values, which is what a wrong answer does too. It knows no test, no
expectation and no other learner, and holds no secret.
"""

import base64
import builtins
import dis
import io
import linecache
import os
import signal
import socket
import sys
import threading
import warnings
from contextlib import contextmanager
from typing import Any

import torch
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from grading.runner.protocol import Body, Packer, ProtocolError, Received, receive, send

MAX_TEXT = 100_000  # characters that a cell, or a call, may print
MAX_PICTURES = 4_000_000  # bytes of pictures and other rich output per cell
MAX_HANDLES = 10_000
RAISE = dis.opmap["RAISE_VARARGS"]  # what `raise` and `assert` end in


class Pages:
    """The outputs of one cell, in notebook format, up to a limit."""

    def __init__(self):
        self.clear()

    def clear(self) -> None:
        self.outputs: list[dict] = []
        self._text = self._rich = 0

    def write(self, text: str) -> None:
        if self._text >= MAX_TEXT:
            return
        self._text += len(text)
        if self._text >= MAX_TEXT:
            text = text[: max(0, len(text) - (self._text - MAX_TEXT))]
            text += f"\n[more than {MAX_TEXT} characters: the rest is left out]\n"
        last = self.outputs[-1] if self.outputs else {}
        if last.get("output_type") == "stream":
            last["text"] += text
        else:
            self.outputs.append({"output_type": "stream", "name": "stdout", "text": text})

    def show(self, kind: str, data: dict) -> None:
        texts = {key: value for key, value in data.items() if isinstance(value, str)}
        self._rich += sum(map(len, texts.values()))
        if texts and self._rich <= MAX_PICTURES and len(self.outputs) < 200:
            output = {"output_type": kind, "data": texts, "metadata": {}}
            if kind == "execute_result":
                output["execution_count"] = None
            self.outputs.append(output)

    def fail(self, name: str, message: str, lines: list[str]) -> None:
        lines = [line[:MAX_TEXT] for line in lines[:100]]
        self.outputs.append(
            {
                "output_type": "error",
                "ename": name[:200],
                "evalue": message[:MAX_TEXT],
                "traceback": lines,
            }
        )


PAGES = Pages()


class Printed:
    """`sys.stdout` and `sys.stderr` of a learner's cells."""

    encoding = "utf-8"
    errors = "replace"

    def write(self, text: str) -> int:
        PAGES.write(str(text))
        return len(text)

    def writelines(self, lines) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return 1


def _as_text(data: dict) -> dict:
    """Rich output with pictures in base64, as notebooks store them."""
    return {
        key: base64.b64encode(value).decode() if isinstance(value, bytes) else value
        for key, value in data.items()
    }


class _Hook(DisplayHook):
    def write_output_prompt(self):
        pass

    def write_format_data(self, format_dict, md_dict=None):
        PAGES.show("execute_result", _as_text(format_dict))

    def finish_displayhook(self):
        self._is_active = False


class _Publisher(DisplayPublisher):
    def publish(self, data, metadata=None, source=None, *, transient=None, update=False, **kwargs):
        PAGES.show("display_data", _as_text(data))

    def clear_output(self, wait=False):
        PAGES.clear()


class AnswerShell(InteractiveShell):
    """IPython without a terminal, history or network: cells in, outputs out."""

    displayhook_class = _Hook
    display_pub_class = _Publisher

    def _showtraceback(self, etype, evalue, stb):
        PAGES.fail(etype.__name__, str(evalue), list(stb))

    def enable_gui(self, gui=None):
        pass


def make_shell() -> AnswerShell:
    """A shell as a notebook's kernel has it. Made once, before any fork: it takes a while."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.enable_tip = False
    config.InteractiveShell.autoindent = False
    AnswerShell.clear_instance()
    shell = AnswerShell.instance(config=config)
    shell.enable_matplotlib("inline")
    return shell


def leave_pictures_out() -> None:
    """Let `plt.show()` do nothing: drawing takes longer than everything else in a notebook."""
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")


class Server:
    """Answers the requests that come through a socket.

    Args:
        connection: the other end belongs to the tests.
        shell: where the cells run.
    """

    def __init__(self, connection: socket.socket, shell: InteractiveShell):
        self.connection, self.shell = connection, shell
        self.received = Received()
        self.packer = Packer(self._refer, self._resolve, received=self.received)
        self.handles: list[object] = []
        self.main = threading.get_ident()
        self.pid = os.getpid()

    def serve(self) -> None:
        """Until the other side has closed."""
        while True:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            header, body = receive(self.connection)
            blobs: list[bytes] = []
            try:
                reply = self._do(header, Body(body), blobs)
                self._send(reply, blobs)
            except ProtocolError as problem:
                self._send({"raised": _described(TypeError(str(problem)))}, [])

    def _send(self, reply: dict, blobs: list[bytes]) -> None:
        if os.getpid() != self.pid:
            os._exit(0)  # a copy, made by a cell that forked: one of us answers
        send(self.connection, reply, blobs)

    def _do(self, request: dict, body: Body, blobs: list[bytes]) -> dict:
        self.received.apply(request.get("written", []), request.get("gone", []), body)
        what = request["do"]
        if what == "cell":
            return self._cell(request["source"])
        if what == "names":
            space = self.shell.user_ns
            values = {name: space[name] for name in request["names"] if name in space}
            trees = {}
            for name, value in values.items():
                try:
                    trees[name] = self.packer.pack(value, blobs)
                except ProtocolError:  # the tests find it by its name
                    trees[name] = {"reference": {"handle": -1, "type": "object"}}
            return {"names": trees}
        PAGES.clear()
        before: dict = {}
        try:
            arguments = self.packer.unpack(request.get("arguments"), body)
            before = self.received.state()
            with self._listening():
                result = getattr(self, f"_{what}")(request, arguments)
            reply = {"result": self.packer.pack(result, blobs)}
        except BaseException as problem:
            blobs.clear()
            reply = {"raised": _described(problem)}
        after = self.received.state()
        reply["changed"] = [number for number in before if after.get(number) != before[number]]
        reply["printed"] = any(output["output_type"] == "stream" for output in PAGES.outputs)
        return reply

    @contextmanager
    def _listening(self):
        """Let an interrupt reach what runs inside, and only that."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _cell(self, source: str) -> dict:
        PAGES.clear()
        failed = True
        try:
            with self._listening():
                done = self.shell.run_cell(source, store_history=True)
            failed = not done.success
        except BaseException as problem:
            PAGES.fail(type(problem).__name__, str(problem), [str(problem)])
        return {"outputs": PAGES.outputs, "failed": failed}

    def _call(self, request: dict, arguments: Any) -> object:
        function = self._target(request)
        args, kwargs = arguments
        return function(*args, **kwargs)

    def _get(self, request: dict, arguments: Any) -> object:
        return self._target(request)

    def _gradients(self, request: dict, arguments: Any) -> object:
        """The gradient for each floating-point tensor among the arguments, as in `Probe`.

        If the result has another shape than `upstream`, that result instead. The first part of
        what is returned says which of the two it is.
        """
        function = self._target(request)
        args, upstream, part = arguments
        gradients = []
        for place, value in enumerate(args):
            if not isinstance(value, torch.Tensor) or not value.is_floating_point():
                continue
            leaf = value.clone().requires_grad_()
            given = [*args[:place], leaf, *args[place + 1 :]]
            result = function(*[x.clone() if isinstance(x, torch.Tensor) else x for x in given])
            result = result if part is None else result[part]
            if not isinstance(result, torch.Tensor) or result.shape != upstream.shape:
                return False, result.detach() if isinstance(result, torch.Tensor) else result
            if result.requires_grad:
                gradients += torch.autograd.grad(result, leaf, upstream, allow_unused=True)
            else:
                gradients.append(None)
        return True, gradients

    def _target(self, request: dict) -> Any:
        if "name" in request:
            space = self.shell.user_ns
            if request["name"] not in space:
                raise NameError(f"name '{request['name']}' is not defined")
            target = space[request["name"]]
        else:
            target = self.handles[request["handle"]]
        for attribute in request.get("attributes", []):
            target = getattr(target, attribute)
        return target

    def _refer(self, value: object) -> dict:
        if isinstance(value, _Callback):
            return {"back": value.number}
        if len(self.handles) >= MAX_HANDLES:
            raise ProtocolError(f"more than {MAX_HANDLES} objects were returned")
        self.handles.append(value)
        try:
            name = type(value).__name__[:100]
        except Exception:
            name = "object"
        return {"handle": len(self.handles) - 1, "type": name, "callable": callable(value)}

    def _resolve(self, reference: dict) -> object:
        if "callback" in reference:
            return _Callback(self, reference["callback"], reference["name"])
        if "name" in reference:
            return self._target(reference)
        return self.handles[reference["handle"]]

    def call_back(self, number: int, args: tuple, kwargs: dict) -> object:
        """Call a function of the tests."""
        if threading.get_ident() != self.main:
            raise RuntimeError("functions of the tests can be called from the main thread only")
        blobs: list[bytes] = []
        arguments = self.packer.pack((args, kwargs), blobs)
        previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            send(self.connection, {"callback": number, "arguments": arguments}, blobs)
            header, body = receive(self.connection)
        finally:
            signal.signal(signal.SIGINT, previous)
        parts = Body(body)
        if "raised" in header:
            raise _made(header["raised"])
        return self.packer.unpack(header["result"], parts)


class _Callback:
    """A function that stayed with the tests."""

    def __init__(self, agent: Server, number: int, name: str):
        self._agent, self.number, self.__name__ = agent, number, name

    def __call__(self, *args, **kwargs):
        return self._agent.call_back(self.number, args, kwargs)


def _made(raised: dict) -> BaseException:
    """An exception from its description, as near as a built-in type comes."""
    kind = getattr(builtins, raised["type"], RuntimeError)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        kind = RuntimeError
    try:
        return kind(raised["message"])
    except Exception:
        return RuntimeError(raised["message"])


def _described(problem: BaseException) -> dict:
    """An exception as data: type, the built-in types it derives from, message, and where.

    ``own`` says whether a cell's `raise` or `assert` raised it, so that the message is the
    learner's own.
    """
    try:
        message = str(problem)[:MAX_TEXT]
    except Exception:
        message = ""
    kinds = [kind.__name__ for kind in type(problem).__mro__ if vars(builtins).get(kind.__name__)]
    place, own = None, False
    try:
        trace = problem.__traceback__
        while trace is not None:
            code, line = trace.tb_frame.f_code, trace.tb_lineno
            own = False
            if trace.tb_frame.f_globals.get("__name__") == "__main__":
                place = [line, code.co_name, _line(code.co_filename, line)]
                own = code.co_code[trace.tb_lasti] == RAISE
            trace = trace.tb_next
    except Exception:
        place = None
    return {
        "type": type(problem).__name__[:100],
        "kinds": kinds,
        "message": message,
        "own": own,
        "place": place,
    }


def _line(file: str, line: int) -> str:
    return linecache.getline(file, line).strip()[:300]


def serve(connection: socket.socket, shell: InteractiveShell) -> None:
    """Answer requests until the other side is gone; the process then ends."""
    sys.stdout = sys.stderr = Printed()
    sys.stdin = io.StringIO()  # `input()` gets no answer
    shell.user_ns["__name__"] = "__main__"
    Server(connection, shell).serve()
