"""Tests of :mod:`lib.gguf`: small files by the package ``gguf``, and the language model's file."""

import struct

import gguf as reference
import numpy as np
import pytest
import torch

from lib.gguf import StoredTensor, dequantize_q4_1, dequantize_q8_0, read

Q = reference.GGMLQuantizationType
KINDS = {"F32": Q.F32, "F16": Q.F16, "Q4_1": Q.Q4_1, "Q8_0": Q.Q8_0}


def write(path, entries=(), tensors=()):
    """A file by the package: entries as (name, value), tensors as (name, array, kind)."""
    writer = reference.GGUFWriter(path, "llama")
    for name, value in entries:
        if isinstance(value, list):
            writer.add_array(name, value)
        else:
            adds = {bool: writer.add_bool, str: writer.add_string, float: writer.add_float32}
            adds.get(type(value), writer.add_uint32)(name, value)
    for name, array, kind in tensors:
        stored = reference.quants.quantize(array, KINDS[kind])
        writer.add_tensor(name, stored, raw_dtype=KINDS[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def weights(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


# --- blocks by hand


def half(number):
    return list(struct.pack("<e", number))


def test_a_block_of_8_bits_by_hand():
    quanta = [127, -128, 0, 1, -1, *range(2, 29)]
    block = half(0.25) + [q % 256 for q in quanta]
    restored = dequantize_q8_0(torch.tensor([block, half(-2) + 32 * [3]], dtype=torch.uint8))
    assert restored[0].tolist() == [q / 4 for q in quanta]
    assert restored[1].tolist() == 32 * [-6.0]
    assert restored.dtype == torch.float32


def test_a_block_of_4_bits_by_hand():
    quanta = [(7 * i + i // 16) % 16 for i in range(32)]  # the halves differ
    packed = [low + 16 * high for low, high in zip(quanta[:16], quanta[16:], strict=True)]
    block = torch.tensor(half(0.5) + half(-3) + packed, dtype=torch.uint8)
    assert dequantize_q4_1(block).tolist() == [q / 2 - 3 for q in quanta]


# --- files


@pytest.fixture
def path(tmp_path):
    entries = [
        ("an.integer", 7),
        ("a.number", 0.5),
        ("a.switch", True),
        ("a.text", "Ü <|im_end|>"),
        ("some.texts", ["a", "", "日本"]),
        ("some.integers", [3, -1, 2]),
    ]
    shapes = {"F32": (5, 3), "F16": (3, 7, 2), "Q8_0": (5, 64), "Q4_1": (3, 2, 96)}
    tensors = [(f"{kind}.weight", weights(*shape), kind) for kind, shape in shapes.items()]
    return write(tmp_path / "small.gguf", entries, [*tensors, ("v", weights(11), "F32")])


def same_as_the_package(path):
    metadata, tensors = read(path)
    other = reference.GGUFReader(path)
    entries = {name: f.contents() for name, f in other.fields.items() if name[:5] != "GGUF."}
    assert metadata == entries
    assert list(tensors) == [each.name for each in other.tensors]
    for each in other.tensors:
        stored = tensors[each.name]
        assert stored.kind == each.tensor_type.name
        assert stored.shape == tuple(each.shape.tolist())[::-1]
        expected = reference.quants.dequantize(each.data, each.tensor_type)
        assert np.array_equal(stored.dequantize().numpy(), expected), each.name
    return metadata, tensors


def test_a_small_file_is_read_as_the_package_reads_it(path):
    metadata, tensors = same_as_the_package(path)
    assert metadata["some.texts"] == ["a", "", "日本"]
    assert {each.kind for each in tensors.values()} == set(KINDS)


def test_numbers_are_a_copy(path):
    """What is done to a model's weights must not reach the file, nor the next model."""
    _, tensors = read(path)
    before = tensors["v"].dequantize()
    tensors["v"].dequantize().zero_()
    assert torch.equal(tensors["v"].dequantize(), before)
    assert before.abs().min() > 0


def test_the_alignment_is_what_the_file_says(tmp_path):
    path = tmp_path / "aligned.gguf"
    writer = reference.GGUFWriter(path, "llama")
    writer.add_custom_alignment(256)
    for name in ("a", "b"):
        writer.add_tensor(name, weights(3, seed=ord(name)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    metadata, _ = same_as_the_package(path)
    assert metadata["general.alignment"] == 256


def test_the_language_models_tensors(smollm_file):
    _, tensors = read(smollm_file)
    assert len(tensors) == 272
    assert {each.kind for each in tensors.values()} == {"F32", "Q4_1", "Q8_0"}
    last = ("blk.29.attn_k.weight", "blk.29.ffn_down.weight", "output_norm.weight")
    for name in ("token_embd.weight", "blk.0.attn_q.weight", *last):
        stored = tensors[name]
        rows = stored.data.numpy().reshape(stored.shape[0], -1)
        if stored.kind == "F32":
            rows = rows.view(np.float32)
        expected = reference.quants.dequantize(rows, KINDS[stored.kind]).reshape(stored.shape)
        assert np.array_equal(stored.dequantize().numpy(), expected), name


@pytest.mark.long  # the package takes seconds for the vocabulary
def test_the_whole_language_model_is_read_as_the_package_reads_it(smollm_file):
    metadata, _ = same_as_the_package(smollm_file)
    assert metadata["general.name"] == "Smollm2 135M 8k Lc100K Mix1 Ep2"


# --- errors


def test_what_is_no_such_file_is_refused(path):
    data = path.read_bytes()
    path.write_bytes(b"GGML" + data[4:])
    with pytest.raises(ValueError, match=r"begins with b'GGML', version 3: not GGUF 3"):
        read(path)
    path.write_bytes(data[:4] + struct.pack("<I", 2) + data[8:])
    with pytest.raises(ValueError, match=r"begins with b'GGUF', version 2: not GGUF 3"):
        read(path)


@pytest.mark.parametrize("length", [0, 7, 60, 300])
def test_a_header_that_is_cut_off_is_refused(path, length):
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(ValueError, match=rf"small\.gguf is cut off after {length} bytes"):
        read(path)


def test_tensors_that_are_cut_off_are_named(path):
    path.write_bytes(path.read_bytes()[:-40])  # 11 numbers and 20 bytes up to the alignment
    with pytest.raises(ValueError, match=r"v ends at byte \d+, but .* has \d+: it is cut off"):
        read(path)


def test_a_type_that_is_not_known_is_named(tmp_path):
    writer = reference.GGUFWriter(tmp_path / "x.gguf", "llama")
    writer.add_tensor("w", np.zeros((2, 18), np.uint8), raw_dtype=Q.Q4_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ValueError, match=r"w has numbers of type 2, only 0 \(F32\), 1 .* are supp"):
        read(tmp_path / "x.gguf")


def test_a_row_is_whole_blocks(path):
    data = path.read_bytes()
    entry = struct.pack("<Q", 11) + b"Q8_0.weight" + struct.pack("<I", 2)
    assert data.count(entry) == 1
    path.write_bytes(data.replace(entry + struct.pack("<Q", 64), entry + struct.pack("<Q", 63)))
    with pytest.raises(ValueError, match="rows of 63 numbers, Q8_0 has blocks of 32"):
        read(path)


def test_a_stored_tensor_is_made_by_hand():
    data = torch.tensor(half(1) + 32 * [2] + half(3) + 32 * [1], dtype=torch.uint8)
    assert StoredTensor("Q8_0", (2, 32), data).dequantize().sum(dim=1).tolist() == [64.0, 96.0]
