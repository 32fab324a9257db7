r"""Files in the format GGUF: a language model's sizes, vocabulary and quantized weights.

Such a file has four parts, with all numbers in little-endian order:

====================  ==========================================================================
part                  what it holds
====================  ==========================================================================
header                ``GGUF``, the version (3), the number of tensors, the number of entries
metadata              entries of a name, a type and a value: sizes, vocabulary, chat template
tensors' list         of each: name, shape, the type of its numbers, where its bytes begin
tensors' bytes        one tensor after another, each beginning at a multiple of the alignment
====================  ==========================================================================

**Quantization.** Weights are rounded in blocks of 32 consecutive numbers of a row. A block
has one scale d (in Q4_1 also an offset m, its smallest value) in half precision, and a small
integer q for each weight:

======  ==========================  ==============  ====================  ================
type    a weight is                 q               bytes per block       bits per weight
======  ==========================  ==============  ====================  ================
Q8_0    :math:`d\,q`                −128 to 127     2 + 32 = 34           8.5
Q4_1    :math:`d\,q + m`            0 to 15         2 + 2 + 16 = 20       5
======  ==========================  ==============  ====================  ================

Source: the description of the format in the repository ``ggml-org/ggml``, ``docs/gguf.md``; blocks:
``src/ggml-common.h`` there. It is read here without any package but torch.
"""

import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import torch
from torch import Tensor

__all__ = ["StoredTensor", "dequantize_q4_1", "dequantize_q8_0", "read"]

BLOCK = 32  # weights that share a scale
# Types of metadata entries by their number: a scalar as struct writes it, a string, a list.
SCALARS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))
STRING, LIST = 8, 9


def dequantize_q8_0(blocks: Tensor) -> Tensor:
    r"""Restore 32 weights from each block of 34 bytes: d as float16, then 32 signed bytes q.

    Args:
        blocks: uint8 ``(..., 34)``.

    Returns:
        float32 ``(..., 32)``: :math:`d\,q`.

    Example:
        d = 0.5 (in half precision 0x3800), q = 1, 2, −1 and 29 times 0:

        >>> dequantize_q8_0(torch.tensor([0x00, 0x38, 1, 2, 255] + 29 * [0], dtype=torch.uint8))[:4]
        tensor([ 0.5000,  1.0000, -0.5000,  0.0000])
    """
    scale = blocks[..., :2].view(torch.float16).float()  # (..., 1)
    return scale * blocks[..., 2:].view(torch.int8)


def dequantize_q4_1(blocks: Tensor) -> Tensor:
    r"""Restore 32 weights from each block of 20 bytes: d and m as float16, then two q to a byte.

    Byte i holds :math:`q_i` in its lower four bits and :math:`q_{i + 16}` in the upper four.

    Args:
        blocks: uint8 ``(..., 20)``.

    Returns:
        float32 ``(..., 32)``: :math:`d\,q + m`.

    Example:
        d = 0.5, m = −2 (0xC000), q = 15 and 0 at either end, everything else 4:

        >>> halves = [0x00, 0x38, 0x00, 0xC0]
        >>> packed = torch.tensor(halves + [0x4F] + 14 * [0x44] + [0x04], dtype=torch.uint8)
        >>> dequantize_q4_1(packed)[[0, 1, 15, 16, 30, 31]]
        tensor([ 5.5000,  0.0000,  0.0000,  0.0000,  0.0000, -2.0000])
    """
    scale = blocks[..., 0:2].view(torch.float16).float()  # (..., 1)
    smallest = blocks[..., 2:4].view(torch.float16).float()  # (..., 1)
    packed = blocks[..., 4:]
    quanta = torch.cat((packed & 0x0F, packed >> 4), dim=-1)  # (..., 32)
    return scale * quanta + smallest


class Kind(NamedTuple):
    """A type of stored numbers: how many of them a block has, its bytes, and how to read it."""

    name: str
    numbers: int
    nbytes: int
    restore: Callable[[Tensor], Tensor]


# By their number in the file; there are about thirty others.
KINDS = {
    0: Kind("F32", 1, 4, lambda block: block.view(torch.float32).clone()),
    1: Kind("F16", 1, 2, lambda block: block.view(torch.float16).float()),
    3: Kind("Q4_1", BLOCK, 20, dequantize_q4_1),
    8: Kind("Q8_0", BLOCK, 34, dequantize_q8_0),
}


class StoredTensor(NamedTuple):
    """A tensor as it is in the file: the type of its numbers, such as ``"Q4_1"``, shape and bytes.

    The shape has rows first, as in torch; in the file it is the other way round. The bytes, uint8,
    are mapped, and read from the disk when they are used.
    """

    kind: str
    shape: tuple[int, ...]
    data: Tensor

    def dequantize(self) -> Tensor:
        """Its numbers, in float32 and in new memory."""
        (kind,) = (each for each in KINDS.values() if each.name == self.kind)
        return kind.restore(self.data.view(-1, kind.nbytes)).view(self.shape)


def read(path: str | Path) -> tuple[dict[str, Any], dict[str, StoredTensor]]:
    """Read a file's metadata and find its tensors.

    Args:
        path: a file in the format GGUF, version 3.

    Returns:
        The metadata by name, as numbers, strings and lists of them; and the tensors by name.

    Raises:
        ValueError: if it is no such file, is cut off, or holds a type that is not in ``KINDS``.
    """
    path = Path(path)
    with open(path, "rb") as file:
        try:
            magic, version, n_tensors, n_entries = _unpack(file, "4sIQQ")
            if magic != b"GGUF" or version != 3:
                raise ValueError(f"{path} begins with {magic!r}, version {version}: not GGUF 3")
            metadata = {_string(file): _value(file, *_unpack(file, "I")) for _ in range(n_entries)}
            listed = [_listing(file) for _ in range(n_tensors)]
        except struct.error:
            raise ValueError(f"{path} is cut off after {file.tell()} bytes") from None
        alignment = metadata.get("general.alignment", 32)
        start = -(-file.tell() // alignment) * alignment
    size = path.stat().st_size
    mapped = torch.from_file(str(path), shared=False, size=size, dtype=torch.uint8)
    tensors = {}
    for name, shape, number, offset in listed:
        if number not in KINDS:
            known = ", ".join(f"{each} ({kind.name})" for each, kind in KINDS.items())
            raise ValueError(f"{name} has numbers of type {number}, only {known} are supported")
        kind = KINDS[number]
        if shape[-1] % kind.numbers:
            raise ValueError(
                f"{name} has rows of {shape[-1]} numbers, {kind.name} has blocks of {kind.numbers}"
            )
        begin = start + offset
        end = begin + math.prod(shape) // kind.numbers * kind.nbytes
        if end > size:
            raise ValueError(f"{name} ends at byte {end}, but {path} has {size}: it is cut off")
        tensors[name] = StoredTensor(kind.name, shape, mapped[begin:end])
    return metadata, tensors


def _unpack(file: BinaryIO, layout: str) -> tuple[Any, ...]:
    layout = f"<{layout}"  # little-endian, and nothing between the numbers
    return struct.unpack(layout, file.read(struct.calcsize(layout)))


def _string(file: BinaryIO) -> str:
    (length,) = _unpack(file, "Q")
    return _unpack(file, f"{length}s")[0].decode()


def _value(file: BinaryIO, number: int) -> Any:
    """The value of a metadata entry, of the type with this number."""
    if number == STRING:
        return _string(file)
    if number == LIST:
        inner, length = _unpack(file, "IQ")
        return [_value(file, inner) for _ in range(length)]
    if number not in SCALARS:
        raise ValueError(f"a metadata entry has type {number}, known are 0 to 12")
    return _unpack(file, SCALARS[number])[0]


def _listing(file: BinaryIO) -> tuple[str, tuple[int, ...], int, int]:
    """An entry of the list of tensors: name, shape, type, and where it begins."""
    name, (dims,) = _string(file), _unpack(file, "I")
    shape = _unpack(file, f"{dims}Q")[::-1]
    return name, shape, *_unpack(file, "IQ")
