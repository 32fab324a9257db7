"""Data that crosses between the tests and an answer: plain values and arrays, never code.

The tests run in one process and the answer in another, which may be hostile. What crosses is a
frame: a header in JSON, and the numbers of all tensors and arrays as raw bytes behind it. Nothing
is ever unpickled. What is neither data nor an array stays where it is, and a reference crosses.

Tensors that the tests pass keep their identity: passing one twice gives the answer the same tensor,
and what a test has written into it since is carried over (:class:`Sent`). Nothing is carried over
in the other direction: a test computes what it expects from its own tensors, before the call or
after it, and no answer can change them. All that a test can learn is which of the tensors that it
passed the answer says it wrote into.
"""

import builtins
import json
import math
import re
import socket
import struct
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from grading.runner.job import Stopped

MAX_HEADER = 16 * 2**20
MAX_BODY = 128 * 2**20
MAX_HASHED = 1000  # entries of all sets and dicts of a frame: one can make all their hashes equal
HEAD = struct.Struct("!IQ")
TORCH_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in vars(torch).values()
    if isinstance(dtype, torch.dtype)
}
SIMPLE = [
    name
    for name in TORCH_DTYPES
    if re.fullmatch(r"bool|u?int(8|16|32|64)|b?float(8|16|32|64)(_\w+)?|complex(64|128)", name)
]
# By name: `np.dtype` takes its argument for a small language, and can raise anything.
NUMPY_DTYPES = {
    dtype.name: dtype for dtype in map(np.dtype, np.typecodes["AllInteger"] + "?efdgFDG")
}


class ProtocolError(Exception):
    """The received data is not valid; the message says why."""


class Disconnected(Exception):
    """The other side has closed the connection."""


class Timeout(Exception):
    """The other side did not answer in time."""


def send(
    connection: socket.socket, header: dict, blobs: list[bytes], deadline: float = math.inf
) -> None:
    """Send one frame.

    Args:
        connection: to where.
        header: the message, which has to be valid JSON.
        blobs: the raw bytes behind it.
        deadline: when to give up, on `time.monotonic`'s clock; the connection is then of no use.

    Raises:
        ProtocolError: if it is too large.
        Disconnected: if nobody listens any more.
        Timeout: if it was not taken in time.
    """
    try:
        text = json.dumps(header).encode()
    except (ValueError, RecursionError) as problem:  # an integer of 5,000 digits, lists in lists
        raise ProtocolError(f"a value that cannot be sent: {problem}") from None
    size = sum(map(len, blobs))
    if len(text) > MAX_HEADER or size > MAX_BODY:
        raise ProtocolError(
            f"{(len(text) + size) / 2**20:.0f} MB are too much: at most {MAX_BODY // 2**20} MB of "
            f"numbers and {MAX_HEADER // 2**20} MB of anything else can be returned or passed on"
        )
    if deadline != math.inf:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
    try:
        connection.sendall(HEAD.pack(len(text), size) + text + b"".join(blobs))
    except TimeoutError:
        raise Timeout from None
    except OSError:
        raise Disconnected from None
    finally:
        connection.settimeout(None)


class Incoming:
    """The frames that arrive; after a timeout, reading resumes where it stopped.

    Args:
        connection: from where.

    Attributes:
        size: bytes of the last frame.
    """

    def __init__(self, connection: socket.socket):
        self.connection, self.size = connection, 0
        self._parts: list[memoryview] = []  # of a frame: its head, its header, its body
        self._data: memoryview | None = None  # the part that is arriving
        self._done = 0

    def receive(self, deadline: float = math.inf) -> tuple[dict, memoryview]:
        """The next frame.

        Args:
            deadline: when to give up, on `time.monotonic`'s clock; a later call goes on.

        Raises:
            Disconnected: if the connection ended.
            Timeout: if the deadline passed.
            ProtocolError: if the frame is too large or no frame at all.
        """
        if not self._parts:
            self._parts.append(self._read(HEAD.size, deadline))
        sizes = HEAD.unpack(self._parts[0])
        if sizes[0] > MAX_HEADER or sizes[1] > MAX_BODY:
            raise ProtocolError("a message larger than any that may be sent")
        while len(self._parts) < 3:
            self._parts.append(self._read(sizes[len(self._parts) - 1], deadline))
        (_, text, body), self._parts = self._parts, []
        self.size = sum(sizes)
        try:
            header = json.loads(bytes(text))
        except (ValueError, RecursionError, MemoryError):
            raise ProtocolError("a message that cannot be read") from None
        if not isinstance(header, dict):
            raise ProtocolError("a message of another form")
        return header, body

    def _read(self, size: int, deadline: float) -> memoryview:
        if self._data is None:
            try:
                self._data, self._done = memoryview(bytearray(size)), 0
            except MemoryError:
                raise ProtocolError("a message for which there is no memory") from None
        while self._done < size:
            self.connection.settimeout(0.05 if deadline != math.inf else None)
            try:
                count = self.connection.recv_into(self._data[self._done :])
            except TimeoutError:
                count = None
            except OSError:
                raise Disconnected from None
            finally:
                self.connection.settimeout(None)
            if count == 0:
                raise Disconnected
            self._done += count or 0
            if time.monotonic() > deadline:
                raise Timeout
        data, self._data = self._data, None
        return data


def receive(connection: socket.socket) -> tuple[dict, memoryview]:
    """Wait for one frame, however long it takes (see :class:`Incoming`)."""
    return Incoming(connection).receive()


class Packer:
    """Turns values into a header's tree and blobs, and back.

    Args:
        refer: gives the reference for an object that is no data.
        resolve: gives the object for a reference.
        sent: on the tests' side, the tensors and arrays that were passed.
        received: on the answer's side, the same as they arrived.
    """

    def __init__(
        self,
        refer: Callable[[object], dict],
        resolve: Callable[[dict], object],
        *,
        sent: "Sent | None" = None,
        received: "Received | None" = None,
    ):
        self.refer, self.resolve, self.sent, self.received = refer, resolve, sent, received

    def pack(self, value: object, blobs: list[bytes], *, share: bool = False) -> Any:
        """The tree for a value; raw bytes are appended to `blobs`."""
        kind = type(value)
        if value is None or kind in (bool, int, float, str):
            return value
        if kind in (list, tuple, set, frozenset) or isinstance(value, (list, tuple)):
            # Subclasses of tuple, such as a size or a named tuple, arrive as tuples.
            name = next(base for base in (list, tuple, set, frozenset) if isinstance(value, base))
            return {name.__name__: [self.pack(part, blobs, share=share) for part in list(value)]}
        if isinstance(value, dict):
            pairs = list(dict.items(value))
            return {"dict": [[self.pack(part, blobs, share=share) for part in p] for p in pairs]}
        if isinstance(value, torch.Tensor):
            return self._tensor(value, blobs, share)
        if isinstance(value, np.ndarray) and value.dtype.name in NUMPY_DTYPES:
            return self._array(value, blobs, share)
        if isinstance(value, np.generic) and value.dtype.name in NUMPY_DTYPES:
            blobs.append(value.tobytes())
            return {"scalar": [value.dtype.name, len(blobs[-1])]}
        if kind is complex:
            return {"complex": [value.real, value.imag]}
        if kind is slice:
            parts = (value.start, value.stop, value.step)
            return {"slice": [self.pack(part, blobs) for part in parts]}
        if kind is range:
            return {"range": [value.start, value.stop, value.step]}
        if kind is bytes:
            blobs.append(value)
            return {"bytes": len(value)}
        if value is ...:
            return {"dots": 0}
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        return {"reference": self.refer(value)}

    def _tensor(self, value: torch.Tensor, blobs: list[bytes], share: bool) -> dict:
        if value.layout is not torch.strided or value.device.type == "meta":
            raise ProtocolError(f"a tensor that is {value.layout} on {value.device} cannot be sent")
        name = str(value.dtype).removeprefix("torch.")
        if name not in SIMPLE:
            raise ProtocolError(f"a tensor of dtype {value.dtype} cannot be sent")
        blob = content(value)
        entry = [name, list(value.shape), len(blob), value.requires_grad]
        if share and self.sent is not None:
            number, known = self.sent.number(value, blob)
            if known:
                return {"same": number}
            entry.append(number)
        blobs.append(blob)
        return {"tensor": entry}

    def _array(self, value: np.ndarray, blobs: list[bytes], share: bool) -> dict:
        blob = content(value)
        entry = [value.dtype.name, list(value.shape), len(blob)]
        if share and self.sent is not None and type(value) is np.ndarray:
            number, known = self.sent.number(value, blob)
            if known:
                return {"same": number}
            entry.append(number)
        blobs.append(blob)
        return {"array": entry}

    def unpack(self, tree: Any, body: "Body") -> Any:
        """The value for a tree.

        Raises:
            ProtocolError: if the tree is none of `pack`'s.
        """
        try:
            return self._unpack(tree, body)
        except (ProtocolError, Stopped):
            raise
        except Exception as problem:
            raise ProtocolError(f"a value that cannot be read ({type(problem).__name__})") from None

    def _unpack(self, tree: Any, body: "Body") -> Any:
        if tree is None or type(tree) in (bool, int, float, str):
            return tree
        ((kind, what),) = tree.items()
        if kind in ("set", "frozenset", "dict"):
            body.hashed += len(what)
            if body.hashed > MAX_HASHED:
                raise ProtocolError(
                    f"sets and dicts of {body.hashed} entries: at most {MAX_HASHED} can be read"
                )
        if kind in ("list", "tuple", "set", "frozenset"):
            return getattr(builtins, kind)([self._unpack(part, body) for part in what])
        if kind == "dict":
            return {self._unpack(key, body): self._unpack(value, body) for key, value in what}
        if kind == "tensor":
            name, shape, size, requires_grad, *number = what
            value = _tensor(name, shape, body.take(size))
            if requires_grad and (value.is_floating_point() or value.is_complex()):
                value.requires_grad_()
            return self._hold(value, number)
        if kind == "array":
            name, shape, size, *number = what
            value = _array(name, shape, body.take(size)).copy()
            return self._hold(value, number)
        if kind == "same" and self.received is not None:
            return self.received.values[what]
        if kind == "scalar":
            name, size = what
            return _array(name, [], body.take(size))[()]
        if kind == "complex":
            return complex(*map(float, what))
        if kind == "slice":
            return slice(*[self._unpack(part, body) for part in what])
        if kind == "range":
            return range(*what)
        if kind == "bytes":
            return bytes(body.take(what))
        if kind == "dots":
            return ...
        if kind == "dtype":
            return TORCH_DTYPES[what]
        if kind == "device":
            return torch.device(what)
        if kind == "reference":
            return self.resolve(what)
        raise ProtocolError("a value of an unknown kind")

    def _hold(self, value, number: list):
        if number and self.received is not None:
            self.received.values[number[0]] = value
        return value


class Body:
    """The raw bytes of a frame, taken piece by piece."""

    def __init__(self, data: memoryview):
        self.data, self.at = data, 0
        self.hashed = 0  # entries of sets and dicts so far

    def take(self, size: int) -> memoryview:
        if type(size) is not int or size < 0 or self.at + size > len(self.data):
            raise ProtocolError("a message shorter than it says")
        self.at += size
        return self.data[self.at - size : self.at]


class Sent:
    """Tensors and arrays that the tests have passed, by number.

    Their bytes are remembered, to find what the tests have written into them since.
    """

    def __init__(self):
        self._sent: dict[int, tuple[weakref.ref, int, bytes]] = {}  # id -> (object, number, bytes)
        self._gone: list[int] = []
        self._last = 0

    def number(self, value, blob: bytes) -> tuple[int, bool]:
        """A value's number, and whether the other side has it already."""
        entry = self._sent.get(id(value))
        if entry and entry[0]() is value:
            if entry[2] == blob:
                return entry[1], True
        self._last += 1
        self._sent[id(value)] = (weakref.ref(value), self._last, blob)
        return self._last, False

    def written(self, blobs: list[bytes]) -> tuple[list, list[int]]:
        """What the tests have written into passed values since: entries for the other side, and
        the numbers that it needs no more."""
        changes = []
        for key, (reference, number, before) in list(self._sent.items()):
            value = reference()
            if value is None:
                del self._sent[key]
                self._gone.append(number)
                continue
            now = content(value)
            if now != before and len(now) == len(before):
                self._sent[key] = (reference, number, now)
                changes.append([number, len(now)])
                blobs.append(now)
        gone, self._gone = self._gone, []
        return changes, gone

    def changed(self, numbers: list[int]) -> list:
        """The values with these numbers, which the answer says it has written into.

        What the answer holds is its own from now on: passed again, a value is sent anew.
        """
        references = []
        # Only what may be a number of ours is hashed: the list is the learner's.
        known = {n for n in numbers if type(n) is int and 0 < n <= self._last}
        for key, (reference, number, _) in list(self._sent.items()):
            if number in known:
                del self._sent[key]
                self._gone.append(number)
                references.append(reference())
        return references


class Received:
    """The same tensors and arrays on the answer's side."""

    def __init__(self):
        self.values: dict[int, Any] = {}

    def apply(self, changes: list, gone: list[int], body: Body) -> None:
        """Carry over what the tests have written into values that they passed."""
        for number, size in changes:
            if number in self.values:
                overwrite(self.values[number], body.take(size))
        for number in gone:
            self.values.pop(number, None)

    def state(self) -> dict[int, tuple]:
        """Each value's bytes, shape and dtype."""
        return {
            number: (content(value), value.shape, value.dtype)
            for number, value in self.values.items()
        }


def content(value) -> bytes:
    """The raw bytes of a tensor or an array, in the order of its indices, as this machine has them.

    A file's array may have another byte order.
    """
    if isinstance(value, np.ndarray):
        return value.astype(value.dtype.newbyteorder("=")).tobytes()
    plain = value.detach().resolve_conj().resolve_neg().cpu()
    if plain.numel() == 0:
        return b""
    # A new tensor: what counts as contiguous may still have strides that cannot be viewed.
    flat = torch.empty(plain.numel(), dtype=plain.dtype).copy_(plain.reshape(-1))
    return flat.view(torch.uint8).numpy().tobytes()


def overwrite(value, data: memoryview) -> None:
    """Put other numbers into a tensor or an array.

    Raises:
        ProtocolError: if the bytes do not fit.
    """
    if isinstance(value, torch.Tensor):
        new = _tensor(str(value.dtype).removeprefix("torch."), list(value.shape), data)
        with torch.no_grad():
            value.detach().copy_(new)
    else:
        value[...] = _array(value.dtype.name, list(value.shape), data)


def _tensor(name: str, shape: list[int], data: memoryview) -> torch.Tensor:
    dtype = TORCH_DTYPES[name]
    if name not in SIMPLE:
        raise ProtocolError("a tensor of an unknown dtype")
    _check_size(shape, dtype.itemsize, len(data))
    if len(data) == 0:
        return torch.empty(shape, dtype=dtype)
    raw = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    return (raw.ne(0) if dtype is torch.bool else raw.view(dtype)).reshape(shape)


def _array(name: str, shape: list[int], data: memoryview) -> np.ndarray:
    dtype = NUMPY_DTYPES[name]
    _check_size(shape, dtype.itemsize, len(data))
    raw = np.frombuffer(bytes(data), np.uint8)
    return (raw != 0 if dtype.kind == "b" else raw.view(dtype)).reshape(shape)


def _check_size(shape: list[int], item: int, size: int) -> None:
    sizes = [n for n in shape if type(n) is int and 0 <= n <= MAX_BODY]
    fits = len(sizes) == len(shape) <= 64 and math.prod(sizes) * item == size
    # An array without numbers may not have rows without end either.
    if not fits or math.prod(n for n in sizes if n) * item > MAX_BODY:
        raise ProtocolError("an array whose shape does not fit its numbers")
