"""What crosses between tests and answers: every value that may, and nothing that may not."""

import json
import socket

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from grading.runner import protocol
from grading.runner.protocol import (
    HEAD,
    Body,
    Disconnected,
    Incoming,
    Packer,
    ProtocolError,
    Received,
    Sent,
    send,
)

NAMES = [*protocol.SIMPLE, *protocol.NUMPY_DTYPES, ",", "f8,", "O", "V8", "<f8", "M8[s]", "{}"]


# --- values that may cross


def is_same(one, other) -> bool:
    """Whether two values are equal in kind and, bit by bit, in content."""
    if type(one) is not type(other):
        return False
    if isinstance(one, (torch.Tensor, np.ndarray, np.generic)):
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        if isinstance(one, torch.Tensor):
            return (one.requires_grad, bits(one)) == (other.requires_grad, bits(other))
        return one.tobytes() == other.tobytes()
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, dict):
        return is_same(list(one.items()), list(other.items()))
    return repr(one) == repr(other)  # nan and -0.0, too


def bits(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.detach().contiguous().view(-1).view(torch.uint8).numpy())


@st.composite
def tensors(draw):
    """Any bytes as a tensor, some of them seen through other strides."""
    dtype = protocol.TORCH_DTYPES[draw(st.sampled_from(protocol.SIMPLE))]
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    raw = draw(st.binary(min_size=int(np.prod(shape)) * dtype.itemsize, max_size=1024))
    raw = torch.tensor(list(raw[: int(np.prod(shape)) * dtype.itemsize]), dtype=torch.uint8)
    value = (raw % 2).bool() if dtype is torch.bool else raw.view(dtype)
    value = value.reshape(shape)
    if draw(st.booleans()):
        value = value.permute(list(reversed(range(len(shape)))))
    gradient = value.is_floating_point() and draw(st.booleans())
    return value.requires_grad_() if gradient else value


@st.composite
def arrays(draw):
    dtype = protocol.NUMPY_DTYPES[draw(st.sampled_from(sorted(protocol.NUMPY_DTYPES)))]
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.frombuffer(draw(st.binary(min_size=size, max_size=size)), np.uint8)
    value = (raw % 2).astype(bool) if dtype.kind == "b" else raw.view(dtype)
    value = value.reshape(shape).T if draw(st.booleans()) else value.reshape(shape)
    return value[()] if draw(st.booleans()) else value


HASHABLE = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())  # surrogates as well
    | st.binary()
)
PLAIN = (
    HASHABLE
    | st.complex_numbers()
    | st.builds(range, st.integers(), st.integers(), st.integers(min_value=1))
    | st.builds(slice, st.none() | st.integers(), st.integers(), st.none() | st.integers())
    | st.sampled_from([..., torch.float16, torch.device("cpu"), torch.device("cuda", 3)])
    | tensors()
    | arrays()
)
VALUES = (
    st.recursive(
        PLAIN,
        lambda part: st.lists(part) | st.lists(part).map(tuple) | st.dictionaries(HASHABLE, part),
        max_leaves=8,
    )
    | st.sets(HASHABLE, max_size=1)
    | st.frozensets(HASHABLE, max_size=1)
)


def refuse(value):
    raise ProtocolError("no references here")


def crossed(value):
    """A value on the other side of a connection."""
    one, two = socket.socketpair()
    with one, two:
        blobs = []
        tree = Packer(refuse, refuse).pack(value, blobs)
        send(one, {"value": tree}, blobs)
        header, body = Incoming(two).receive()
    return Packer(refuse, refuse).unpack(header["value"], Body(body))


@given(VALUES)
def test_a_value_that_may_cross_arrives_as_it_was(value):
    assert is_same(crossed(value), value)


def test_what_is_nearly_a_value_arrives_as_one():
    """Subclasses as their base, another byte order as this machine's, conjugates as numbers."""
    from collections import OrderedDict, namedtuple

    pair = namedtuple("Pair", "a b")(1, torch.Size([2]))
    assert is_same(crossed(pair), (1, (2,)))
    assert is_same(crossed(OrderedDict(a=1)), {"a": 1})
    assert is_same(crossed(np.arange(3, dtype=">i8")), np.arange(3, dtype="i8"))
    z = torch.tensor([1 + 2j])
    assert is_same(crossed(z.conj()), torch.tensor([1 - 2j]))
    assert is_same(crossed(torch.ones(1).expand(3)), torch.ones(3))
    assert is_same(crossed(torch.nn.Parameter(torch.ones(1))), torch.ones(1, requires_grad=True))


def test_what_may_not_cross_is_refused():
    cycle = []
    cycle.append(cycle)
    sparse, meta = torch.zeros(2).to_sparse(), torch.zeros(2, device="meta")
    for value in (10**5000, cycle, sparse, meta, bytes(2**27 + 1), "x" * 2**24, object()):
        with pytest.raises((ProtocolError, RecursionError)):
            crossed(value)


# --- what a learner's process may send instead


KINDS = "list tuple set frozenset dict tensor array same scalar complex slice range bytes dots"
KINDS = [*KINDS.split(), "dtype", "device", "reference", "no kind"]
SIZES = st.sampled_from([0, 1, 8, -1, 2**40, 2**64, True, 1.0, "1", None])
JUNK = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | SIZES
NUMBERS = st.tuples(
    st.sampled_from(NAMES) | JUNK,
    st.lists(SIZES, max_size=3) | JUNK,
    SIZES,
    st.booleans(),
    st.integers(),
).flatmap(lambda entry: st.integers(0, 5).map(lambda n: list(entry[:n])))
TREES = st.recursive(
    JUNK | st.builds(lambda kind, what: {kind: what}, st.sampled_from(KINDS), NUMBERS | JUNK),
    lambda part: (
        st.lists(part, max_size=4)
        | st.dictionaries(st.sampled_from(KINDS), part, max_size=2)
        | st.builds(
            lambda kind, what: {kind: what}, st.sampled_from(KINDS), st.lists(part, max_size=4)
        )
    ),
    max_leaves=12,
)


@given(TREES, st.binary(max_size=64))
@example({"array": [",", [1], 8]}, bytes(8))
@example({"scalar": [",", 8]}, bytes(8))
@example({"tensor": ["float64", [2**39, 0], 0, False]}, b"")
def test_any_tree_is_a_value_or_refused(tree, data):
    for packer in (Packer(refuse, refuse), Packer(refuse, refuse, received=Received())):
        try:
            value = packer.unpack(json.loads(json.dumps(tree)), Body(memoryview(data)))
        except ProtocolError:
            continue
        repr(value)


def test_nothing_of_an_answers_is_kept_on_the_tests_side():
    tests = Packer(refuse, refuse, sent=Sent())
    entry = {"tensor": ["float32", [1], 4, False, 1]}
    tests.unpack(entry, Body(memoryview(bytes(4))))
    with pytest.raises(ProtocolError):
        tests.unpack({"same": 1}, Body(memoryview(b"")))


def test_a_tensor_without_numbers_has_no_endless_rows():
    with pytest.raises(ProtocolError):
        Packer(refuse, refuse).unpack(
            {"tensor": ["float64", [2**39, 0], 0, False]}, Body(memoryview(b""))
        )


@pytest.mark.parametrize("part", [1, 1000])
def test_colliding_hashes_take_little_time(part):
    """All hashes are one; so they are counted in all sets and dicts of a frame together."""
    numbers = [k * (2**61 - 1) for k in range(1000)]
    sets = [{"set": numbers[n : n + part]} for n in range(0, 1000, part)]
    packer = Packer(refuse, refuse)
    assert len(packer.unpack({"list": sets}, Body(memoryview(b"")))) == 1000 // part
    with pytest.raises(ProtocolError, match="1001 entries"):
        packer.unpack({"list": [*sets, {"dict": [[1, 1]]}]}, Body(memoryview(b"")))


@given(
    st.binary(max_size=200)
    | st.builds(
        lambda text, body: HEAD.pack(len(text), len(body)) + text + body,
        st.binary(max_size=60) | TREES.map(lambda tree: json.dumps(tree).encode()),
        st.binary(max_size=20),
    )
)
@example(HEAD.pack(2**31, 2**60))
@example(HEAD.pack(6000, 0) + b"9" * 6000)
@example(HEAD.pack(10**5, 0) + b"[" * 10**5)
@example(HEAD.pack(4, 0) + b"\xff\xfe{}")
def test_any_bytes_are_a_frame_or_refused(data):
    one, two = socket.socketpair()
    with two:
        with one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**20)
            one.sendall(data)
        try:
            header, _ = Incoming(two).receive()
        except (ProtocolError, Disconnected):
            return
        assert type(header) is dict
