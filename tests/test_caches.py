"""Tests of :mod:`lib.caches`; that of the plain cache's tests, run with blocks, is beside them."""

from functools import partial

import pytest
import torch

from lib.alibi import AlibiPosition
from lib.caches import (
    BlockPool,
    PagedCache,
    QuantizedCache,
    WindowCache,
    dequantize,
    quantize,
)
from lib.kv_cache import DecodeState, KVCache
from lib.masks import sliding_window_mask
from lib.rope import RotaryPosition
from lib.schemes import SCHEMES, ModelSizes, make_position
from lib.transformer import LanguageModel

BATCH, HEADS, DIM, VALUE_DIM = 2, 3, 4, 5
VOCAB = 13


def make_kv(new, seed=0, batch=BATCH, dim=DIM, value_dim=VALUE_DIM):
    generator = torch.Generator().manual_seed(seed)
    k = torch.randn(batch, HEADS, new, dim, generator=generator)
    v = torch.randn(batch, HEADS, new, value_dim, generator=generator)
    return k, v


def make_model(position=None, **options):
    torch.manual_seed(0)
    position = RotaryPosition(6) if position is None else position
    model = LanguageModel(
        VOCAB, 20, 2, 4, n_kv_heads=2, head_dim=6, value_dim=3, position=position, **options
    )
    return model.double().eval().requires_grad_(False)


def make_tokens(length, batch=BATCH, seed=1):
    return torch.randint(VOCAB, (batch, length), generator=torch.Generator().manual_seed(seed))


def read(model, tokens, state, pieces):
    return torch.cat([model(p, state=state) for p in tokens.split(pieces, dim=1)], dim=1)


# --- blocks


@pytest.mark.parametrize("name", SCHEMES)
def test_paged_logits_are_those_of_the_plain_cache(name):
    sizes = ModelSizes(20, 4, 6, max_len=16)
    model = make_model(make_position(name, sizes))
    tokens = make_tokens(11)
    mask = torch.ones(BATCH, 11, dtype=torch.bool)
    mask[0, :3] = False
    results = []
    for make_cache in (None, partial(PagedCache, block_size=4)):
        state = model.decode_state(BATCH, 11, make_cache=make_cache)
        pieces = zip(tokens.split([5, 1, 1, 4], 1), mask.split([5, 1, 1, 4], 1), strict=True)
        results.append(torch.cat([model(t, mask=m, state=state) for t, m in pieces], dim=1))
    torch.testing.assert_close(*results, rtol=0, atol=1e-12)


def test_blocks_are_taken_when_needed_and_given_back():
    pool = BlockPool(8, HEADS, 3, DIM, value_dim=VALUE_DIM)
    cache = PagedCache(BATCH, HEADS, 12, DIM, value_dim=VALUE_DIM, pool=pool)
    assert (pool.n_used, pool.n_free) == (0, 8)
    for length in range(1, 13):
        cache.update(*make_kv(1, seed=length))
        blocks = -(-length // 3)
        assert [len(row) for row in cache.table] == [blocks, blocks]
        assert pool.n_used == 2 * blocks
        assert cache.nbytes == 2 * blocks * pool.block_bytes == 2 * blocks * HEADS * 3 * 9 * 4
        assert 0 <= 3 * blocks - length < 3  # empty slots in a row
    with pytest.raises(ValueError, match="all 8 blocks of the pool are in use"):
        pool.take()
    cache.truncate(4)
    assert pool.n_used == 4
    cache.reset()
    assert pool.n_free == 8


def test_blocks_need_not_lie_side_by_side():
    pool = BlockPool(6, HEADS, 2, DIM, value_dim=VALUE_DIM)
    make = partial(PagedCache, 1, HEADS, 9, DIM, value_dim=VALUE_DIM, pool=pool)
    caches, parts = [make(), make()], [[], []]
    for step in range(6):  # in turn, so that their blocks alternate
        k, v = make_kv(1, seed=step, batch=1)
        held = caches[step % 2].update(k, v)
        parts[step % 2].append((k, v))
        for tensors, whole in zip(zip(*parts[step % 2], strict=True), held, strict=True):
            assert torch.equal(whole, torch.cat(tensors, dim=2))
    assert sorted(caches[0].table[0] + caches[1].table[0]) == [2, 3, 4, 5] or pool.n_used == 4


def test_an_empty_pool_refuses_and_nothing_changes():
    pool = BlockPool(4, HEADS, 2, DIM, value_dim=VALUE_DIM)
    cache = PagedCache(BATCH, HEADS, 20, DIM, value_dim=VALUE_DIM, pool=pool)
    k, v = make_kv(3)
    cache.update(k, v)
    with pytest.raises(ValueError, match=r"2 blocks are needed, 0 of them .* has 0 free"):
        cache.update(*make_kv(2, seed=5))
    assert (cache.length, pool.n_used) == (3, 4)
    assert torch.equal(cache.update(*make_kv(0))[0], k)
    cache.update(*make_kv(1))  # fits into the last block


def test_a_shared_prefix_is_stored_once_and_copied_when_written():
    pool = BlockPool(20, HEADS, 4, DIM, value_dim=VALUE_DIM)
    first = PagedCache(1, HEADS, 20, DIM, value_dim=VALUE_DIM, pool=pool)
    k, v = make_kv(10, batch=1)
    first.update(k, v)
    forks = [first.fork() for _ in range(3)]
    assert pool.n_used == 3  # ten tokens, stored once
    for seed, cache in enumerate([*forks, first], 1):
        new = make_kv(1, seed=seed, batch=1)
        for whole, old, more in zip(cache.update(*new), (k, v), new, strict=True):
            assert torch.equal(whole, torch.cat([old, more], dim=2))
    # two full blocks are still shared; the third was copied by all but the last one
    assert pool.n_used == 2 + 4
    for seed, cache in enumerate([*forks, first], 1):
        assert torch.equal(cache.update(*make_kv(0, batch=1))[0][:, :, 10:], make_kv(1, seed, 1)[0])
        assert cache.table[0][:2] == first.table[0][:2]
    for cache in forks:
        cache.reset()
    assert pool.n_used == 3
    assert torch.equal(first.update(*make_kv(0, batch=1))[0][:, :, :10], k)


def test_a_fork_on_a_block_boundary_copies_nothing():
    pool = BlockPool(4, HEADS, 4, DIM, value_dim=VALUE_DIM)
    first = PagedCache(1, HEADS, 20, DIM, value_dim=VALUE_DIM, pool=pool)
    first.update(*make_kv(8, batch=1))
    second = first.fork()
    second.update(*make_kv(1, batch=1))
    assert pool.n_used == 3


def test_a_copy_needs_a_free_block():
    pool = BlockPool(1, HEADS, 4, DIM, value_dim=VALUE_DIM)
    first = PagedCache(1, HEADS, 4, DIM, value_dim=VALUE_DIM, pool=pool)
    first.update(*make_kv(2, batch=1))
    second = first.fork()
    with pytest.raises(ValueError, match="1 blocks are needed, 1 of them for copies"):
        second.update(*make_kv(1, batch=1))
    first.reset()  # the other user
    assert second.update(*make_kv(1, batch=1))[0].shape[2] == 3


def test_layers_of_one_pool_and_forked_states():
    """Two texts with one prefix: the logits of a text that was read alone."""
    model = make_model()
    pool = BlockPool(40, 2, 4, 6, value_dim=3, dtype=torch.float64)
    tokens = make_tokens(12)
    tokens[1, :7] = tokens[0, :7]
    state = model.decode_state(1, 12, make_cache=partial(PagedCache, pool=pool))
    model(tokens[:1, :7], state=state)
    other = state.fork()
    for row, each in enumerate((state, other)):
        out = read(model, tokens[row : row + 1, 7:], each, [1, 3, 1])
        torch.testing.assert_close(out, model(tokens[row : row + 1])[:, 7:], rtol=0, atol=1e-12)
    assert pool.n_used == 2 * (1 + 2 + 2)  # per layer: one shared block, two for each text


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"head_dim": 5}, r"the pool has .* \(3, 4, 5, torch.float32"),
        ({"n_kv_heads": 2}, "but the cache needs"),
        ({"dtype": torch.float64}, "torch.float64"),
    ],
)
def test_a_pool_of_other_sizes_is_refused(change, match):
    pool = BlockPool(4, HEADS, 2, DIM, value_dim=VALUE_DIM)
    sizes = {"batch_size": 1, "n_kv_heads": HEADS, "max_len": 4, "head_dim": DIM}
    with pytest.raises(ValueError, match=match):
        PagedCache(**{**sizes, "value_dim": VALUE_DIM, "pool": pool, **change})


def test_a_free_block_is_neither_shared_nor_released():
    pool = BlockPool(2, HEADS, 2, DIM)
    block = pool.take()
    pool.release(block)
    for change in (pool.release, pool.share):
        with pytest.raises(ValueError, match=f"block {block} is free"):
            change(block)
    assert (pool.n_used, pool.n_free) == (0, 2)


def test_sizes_of_a_pool():
    with pytest.raises(ValueError, match="block_size"):
        BlockPool(1, 1, 0, 1)
    with pytest.raises(ValueError, match="block_size"):
        PagedCache(1, 1, 1, 1, block_size=0)


# --- codes


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_no_number_is_off_by_more_than_half_a_step(bits):
    x = 5 * torch.randn(7, 40, generator=torch.Generator().manual_seed(0)) + 100
    codes, zero, scale = quantized = quantize(x, bits, dim=1)
    assert codes.dtype == torch.uint8
    assert int(codes.max()) == 2**bits - 1
    assert zero.shape == scale.shape == (7, 1)
    error = (dequantize(quantized) - x).abs()
    assert (error <= 0.5 * scale + 1e-4).all()
    assert (error.amax(dim=1) > 0.4 * scale[:, 0]).all() or bits == 8  # and the bound is near


def test_equal_numbers_are_exact():
    x = torch.full((3, 5), -7.25)
    assert torch.equal(dequantize(quantize(x, 4, dim=1)), x)


def test_quantize_refuses():
    with pytest.raises(ValueError, match="bits must be 1 to 8, got 9"):
        quantize(torch.ones(2), 9, dim=0)
    with pytest.raises(ValueError, match=r"floating-point numbers to quantize, got torch.int64"):
        quantize(torch.ones(2).long(), 8, dim=0)
    with pytest.raises(ValueError, match="bits must be 8 or 4, got 3"):
        QuantizedCache(1, 1, 1, 1, bits=3)
    with pytest.raises(ValueError, match="undo cannot be negative, got -1"):
        QuantizedCache(1, 1, 1, 1, undo=-1)


def quantized_cache(bits, max_len=20, group=4, **options):
    make = partial(QuantizedCache, BATCH, HEADS, max_len, DIM, value_dim=VALUE_DIM)
    return make(bits=bits, group=group, **options)


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("pieces", [[14], [1] * 14, [3, 6, 1, 4]])
def test_quantized_keys_by_channel_and_values_by_token(bits, pieces):
    k, v = make_kv(14)
    k[..., 1] += 50.0  # a channel that is large in every token
    cache, done = quantized_cache(bits), 0
    for new in pieces:
        keys, values = cache.update(k[:, :, done : done + new], v[:, :, done : done + new])
        done += new
    groups = k[:, :, :12].unflatten(2, (3, 4))
    step = (groups.amax(3) - groups.amin(3)) / (2**bits - 1)  # per group and channel
    error = (keys[:, :, :12] - k[:, :, :12]).abs().unflatten(2, (3, 4))
    assert (error <= 0.5 * step.unsqueeze(3) + 1e-5).all()
    assert error.max() > 0
    assert torch.equal(keys[:, :, 12:], k[:, :, 12:])  # their group is not full yet
    step = (v.amax(3, keepdim=True) - v.amin(3, keepdim=True)) / (2**bits - 1)
    assert ((values - v).abs() <= 0.5 * step + 1e-5).all()
    assert not torch.equal(values, v)
    whole = quantized_cache(bits)  # what is held does not depend on the pieces
    for x, y in zip((keys, values), whole.update(k, v), strict=True):
        assert torch.equal(x, y)


@pytest.mark.parametrize("undo", [0, 5])
@pytest.mark.parametrize(("bits", "group", "max_len"), [(8, 4, 20), (4, 4, 18), (4, 32, 10)])
def test_bytes_of_a_quantized_cache(bits, group, max_len, undo):
    cache = quantized_cache(bits, max_len=max_len, group=group, dtype=torch.bfloat16, undo=undo)
    key_bytes, value_bytes = {8: (4, 5), 4: (2, 3)}[bits]  # five codes of 4 bits: three bytes
    groups = max_len // group
    row = groups * (group * key_bytes + 2 * 4 * DIM)  # codes, and zero and scale in float32
    row += min(group - 1 + undo, max_len) * DIM * 2  # exact keys
    row += max_len * (value_bytes + 2 * 4)
    assert cache.nbytes == BATCH * HEADS * row


def test_a_quantized_cache_truncated():
    cache = quantized_cache(8)
    k, v = make_kv(11)
    held, _ = (x.clone() for x in cache.update(k, v))
    cache.truncate(6)  # cuts the second group
    keys, _ = cache.update(*make_kv(0))
    assert torch.equal(keys, held[:, :, :6])
    more_k, more_v = make_kv(5, seed=9)
    keys, values = cache.update(more_k, more_v)
    assert torch.equal(keys[:, :, :4], held[:, :, :4])
    wide = 2 * (held[:, :, 4:6].abs().max() + more_k.abs().max()) / 255
    assert (keys[:, :, 6:] - more_k).abs().max() <= 0.5 * wide
    assert (keys[:, :, 4:6] - held[:, :, 4:6]).abs().max() <= 0.5 * wide
    assert values.shape[2] == 11


@pytest.mark.parametrize("pieces", [[1], [5], [2, 1]])
@pytest.mark.parametrize("bits", [8, 4])
def test_refused_drafts_leave_no_trace_with_undo(bits, pieces):
    """Pieces of five of which the last four are taken back, and a long one before and after."""
    k, v = make_kv(40)
    k[:, :, 17] = 30.0  # the refused ones are as large, and must not widen a group
    cache, plain = (quantized_cache(bits, max_len=48, undo=5) for _ in "ab")
    cache.update(k[:, :, :13], v[:, :, :13])
    while cache.length < 30:
        place = cache.length
        piece = [x[:, :, place : place + 5].clone() for x in (k, v)]
        for x in piece:
            x[:, :, 1:] = 50.0
        cache.update(*piece)
        cache.truncate(place)  # the pass failed
        cache.update(*piece)
        for taken in pieces:
            cache.truncate(max(place + 1, cache.length - taken))
        cache.truncate(place + 1)
    rest = cache.update(k[:, :, 30:], v[:, :, 30:])
    for x, y in zip(rest, plain.update(k, v), strict=True):
        assert torch.equal(x, y)


@pytest.mark.parametrize("bits", [8, 4])
def test_a_group_that_was_cut_is_cut_again(bits):
    """What was stored after the first cut is exact: the old codes of its slots are not read."""
    cache = quantized_cache(bits, max_len=12, group=4)
    k, v = make_kv(7)
    cache.update(k, v)
    cache.truncate(2)  # opens the first group; its exact keys are gone
    rounded = cache.update(*make_kv(0))[0].clone()
    new, new_v = make_kv(1, seed=5)
    cache.update(new, new_v)
    cache.truncate(3)  # all that it holds: nothing changes
    keys, _ = cache.update(*make_kv(0))
    assert torch.equal(keys[:, :, :2], rounded)
    assert torch.equal(keys[:, :, 2:], new)


def test_without_undo_a_refused_token_leaves_its_rounding():
    """What the docstring says of ``undo``: errors add up, in the group that is cut."""
    k, v = make_kv(12)
    cache, plain = quantized_cache(8), quantized_cache(8)
    once, _ = plain.update(k, v)
    wide = k.clone()
    wide[:, :, 7] = 30.0  # refused
    cache.update(wide, v)
    cache.truncate(7)
    twice, _ = cache.update(k[:, :, 7:], v[:, :, 7:])
    others = [0, 1, 2, 3, 8, 9, 10, 11]
    assert torch.equal(twice[:, :, others], once[:, :, others])
    step, first = ((x[:, :, 4:8].amax(2) - x[:, :, 4:8].amin(2)) / 255 for x in (k, wide))
    off = (twice - k)[:, :, 4:8].abs().amax(2)
    assert (off > step).any()
    assert (off <= 0.5 * (step + first) + 0.5 * first / 255 + 1e-5).all()


def test_values_per_channel_are_treated_as_keys():
    k, _ = make_kv(14)
    k[..., 1] += 50.0
    cache = QuantizedCache(BATCH, HEADS, 20, DIM, bits=4, group=4, values_per_channel=True)
    for piece in k.split([3, 6, 1, 4], dim=2):
        keys, values = cache.update(piece, piece)
    assert torch.equal(keys, values)
    by_channel, by_token = QuantizedCache(BATCH, HEADS, 20, DIM, bits=4, group=4).update(k, k)
    assert torch.equal(by_channel, keys)
    assert not torch.equal(by_token, values)
    cache.truncate(2)
    assert cache.update(k[:, :, :0], k[:, :, :0])[1].shape[2] == 2


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize(("dtype", "epsilon"), [(torch.bfloat16, 2**-8), (torch.float16, 2**-11)])
def test_half_precision_adds_its_own_rounding(bits, dtype, epsilon):
    k, v = (10 * x.to(dtype) for x in make_kv(64))
    cache = quantized_cache(bits, max_len=64, group=32, dtype=dtype)
    keys, _ = cache.update(k, v)
    groups = k.float().unflatten(2, (2, 32))
    step = (groups.amax(3) - groups.amin(3)) / (2**bits - 1)
    off = (keys.float() - k.float()).abs().unflatten(2, (2, 32))
    assert (off <= 0.5 * step.unsqueeze(3) + epsilon * (groups.abs() + step.unsqueeze(3))).all()
    if dtype == torch.bfloat16 and bits == 8:
        assert (off > 0.6 * step.unsqueeze(3)).any()  # half a step is not the bound


def test_the_error_of_an_output_is_within_its_bound():
    """The statement of ``prp-quantized``: from errors of keys and values to one of the output."""
    generator = torch.Generator().manual_seed(3)
    q = torch.randn(1, 1, 6, 16, generator=generator).double()
    k = torch.randn(1, 1, 64, 16, generator=generator).double()
    v = torch.randn(1, 1, 64, 8, generator=generator).double()
    cache = QuantizedCache(1, 1, 64, 16, value_dim=8, dtype=torch.float64, bits=4, group=32)
    near_k, near_v = cache.update(k, v)
    exact = (q @ k.mT / 4).softmax(-1) @ v
    off = ((q @ near_k.mT / 4).softmax(-1) @ near_v - exact).abs().amax(-1)
    epsilon = (q @ (near_k - k).mT / 4).abs().amax(-1)
    bound = (near_v - v).abs().max() + torch.expm1(2 * epsilon) * v.abs().max()
    assert (off <= bound).all()
    assert off.max() > 0.001


# --- a window


@pytest.mark.parametrize("position", ["none", "rope", "alibi"])
@pytest.mark.parametrize(("window", "sinks"), [(3, 0), (3, 2), (1, 1), (5, 4), (30, 0), (4, 30)])
@pytest.mark.parametrize("pieces", [[19], [1] * 19, [4, 1, 1, 7, 2, 4]])
def test_a_window_gives_the_logits_of_its_mask(position, window, sinks, pieces):
    schemes = {"none": None, "rope": RotaryPosition(6), "alibi": AlibiPosition(4)}
    model = make_model(schemes[position])
    tokens = make_tokens(19)
    sink_tokens = range(min(sinks, 19))
    mask = sliding_window_mask(19, 19, window=window, global_tokens=sink_tokens)
    positions = torch.arange(19)[None]
    expected = model.output(model._layers(tokens, positions, positions, mask=mask))
    make_cache = partial(WindowCache, window=window, sinks=sinks)
    state = model.decode_state(BATCH, 19, make_cache=make_cache)
    logits = read(model, tokens, state, pieces)
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-12)


def test_a_ring_keeps_its_memory_and_the_positions():
    cache = WindowCache(1, HEADS, 10_000, DIM, window=4, sinks=2)
    state = DecodeState([cache])
    row = HEADS * 2 * DIM * 4
    for step in range(50):
        state.append(1)
        cache.update(*make_kv(1, seed=step, batch=1, value_dim=DIM))
        assert cache.nbytes == (4 + 2 + 1) * row
    held = sorted(state.k_positions[0].tolist())
    assert held == [0, 1, 45, 46, 47, 48, 49]
    keys, _ = cache.update(*make_kv(0, batch=1, value_dim=DIM))
    for slot, key in zip(cache.slots(50).tolist(), keys[0].unbind(1), strict=True):
        assert torch.equal(key, make_kv(1, seed=slot, batch=1)[0][0, :, 0])


def test_a_window_longer_than_the_text_takes_no_more_than_the_text():
    cache, plain = WindowCache(1, HEADS, 5, DIM, window=1000, sinks=2), KVCache(1, HEADS, 5, DIM)
    assert cache.nbytes == plain.nbytes
    k, _ = make_kv(5, batch=1)
    for new in k.split([2, 1, 2], dim=2):
        keys, _ = cache.update(new, new)
    assert torch.equal(keys, k)


def test_the_last_piece_can_be_taken_back():
    model = make_model()
    tokens = make_tokens(20)
    make_cache = partial(WindowCache, window=3, sinks=1)
    state = model.decode_state(BATCH, 20, make_cache=make_cache)
    expected = read(model, tokens, state, [10, 1, 9])
    state.reset()
    read(model, tokens[:, :10], state, [10])
    model(make_tokens(6, seed=7), state=state)  # a draft
    state.truncate(11)
    with pytest.raises(ValueError, match=r"cannot truncate to 9: .* from 10 on"):
        state.truncate(9)
    assert state.length == 11
    state.truncate(10)
    logits = read(model, tokens[:, 10:], state, [1, 9])
    torch.testing.assert_close(logits, expected[:, 10:], rtol=0, atol=1e-12)


def test_the_window_keeps_numbers_and_not_the_callers_memory():
    cache = WindowCache(1, HEADS, 20, DIM, window=6)
    k, v = make_kv(2, batch=1, value_dim=DIM)
    cache.update(k, v)
    k.fill_(77.0)
    v.fill_(77.0)
    for x, old in zip(cache.update(k, v), make_kv(2, batch=1, value_dim=DIM), strict=True):
        assert torch.equal(x[:, :, :2], old)


def test_before_the_ring_is_full_everything_can_be_taken_back():
    cache = WindowCache(1, HEADS, 20, DIM, window=6)
    k, _ = make_kv(5, batch=1)
    for new in k.split(1, dim=2):
        cache.update(new, new)
    cache.truncate(2)
    keys, _ = cache.update(k[:, :, 2:4], k[:, :, 2:4])
    assert torch.equal(keys, k[:, :, :4])


def test_a_failed_pass_leaves_the_window_as_it_was():
    model = make_model()
    state = model.decode_state(1, 30, make_cache=partial(WindowCache, window=3))
    tokens = make_tokens(12, batch=1)
    model(tokens[:, :8], state=state)
    expected = model(tokens[:, 8:], state=state.fork())
    second = model.blocks[1].self_attention
    forward, second.forward = second.forward, None  # the first layer succeeds
    with pytest.raises(TypeError):
        model(tokens[:, 5:9], state=state)
    second.forward = forward
    torch.testing.assert_close(model(tokens[:, 8:], state=state), expected)


def test_windows_are_checked():
    with pytest.raises(ValueError, match="window"):
        WindowCache(1, 1, 1, 1, window=0)
    with pytest.raises(ValueError, match="sinks cannot be negative, got -1"):
        WindowCache(1, 1, 1, 1, window=1, sinks=-1)
