"""Tests of :mod:`lib.kv_cache`, and that :class:`lib.caches.PagedCache` behaves as its cache."""

from functools import partial

import pytest
import torch

from lib.caches import PagedCache, WindowCache
from lib.kv_cache import DecodeState, KVCache, kv_cache_bytes

BATCH, KV_HEADS, MAX_LEN, HEAD_DIM, VALUE_DIM = 2, 3, 7, 4, 5
KINDS = {
    "plain": KVCache,
    "blocks of 1": partial(PagedCache, block_size=1),
    "blocks of 3": partial(PagedCache, block_size=3),
    "one block": partial(PagedCache, block_size=MAX_LEN),
}
kind_of_cache = KVCache


@pytest.fixture(autouse=True, params=KINDS)
def each_kind(request, monkeypatch):
    """Run every test with every kind of cache."""
    monkeypatch.setitem(globals(), "kind_of_cache", KINDS[request.param])


def make_cache(**kwargs):
    return kind_of_cache(BATCH, KV_HEADS, MAX_LEN, HEAD_DIM, value_dim=VALUE_DIM, **kwargs)


def memory(cache):
    """Where the cache's numbers are: its own tensors or those of its pool."""
    pair = (
        (cache._keys, cache._values)
        if type(cache) is KVCache
        else (cache.pool.keys, cache.pool.values)
    )
    return [x.data_ptr() for x in pair]


def make_kv(new, start=0.0):
    """Every number is different, so that a mixed-up slot shows."""
    k = start + torch.arange(BATCH * KV_HEADS * new * HEAD_DIM).float()
    v = -start - torch.arange(BATCH * KV_HEADS * new * VALUE_DIM).float()
    return (
        k.view(BATCH, KV_HEADS, new, HEAD_DIM),
        v.view(BATCH, KV_HEADS, new, VALUE_DIM),
    )


# --- one layer


def test_update_returns_everything_so_far():
    cache, parts = make_cache(), []
    for new in (3, 1, 2):
        k, v = make_kv(new, 1000.0 * len(parts))
        parts.append((k, v))
        keys, values = cache.update(k, v)
        assert torch.equal(keys, torch.cat([k for k, _ in parts], dim=2))
        assert torch.equal(values, torch.cat([v for _, v in parts], dim=2))
    assert cache.length == 6
    assert (cache.batch_size, cache.max_len) == (BATCH, MAX_LEN)


def test_update_writes_in_place():
    cache = make_cache()
    before = memory(cache)
    keys, values = cache.update(*make_kv(3))
    cache.update(*make_kv(2))
    assert memory(cache) == before
    if type(cache) is KVCache:  # and returns views
        assert before == [keys.data_ptr(), values.data_ptr()]
    k, v = make_kv(1)
    cache.update(k, v)
    k.fill_(77.0)  # what was stored is the caller's numbers, not the caller's memory
    assert not (cache.update(*make_kv(1))[0][:, :, 5] == 77.0).any()


def test_a_full_cache_refuses_and_is_unchanged():
    cache = make_cache()
    cache.update(*make_kv(MAX_LEN - 1))
    keys, values = (x.clone() for x in cache.update(*make_kv(0)))
    with pytest.raises(ValueError, match="max_len=7 slots and holds 6: 2 more do not fit"):
        cache.update(*make_kv(2, 500.0))
    assert cache.length == MAX_LEN - 1
    again = cache.update(*make_kv(0))
    assert torch.equal(again[0], keys)
    assert torch.equal(again[1], values)
    cache.update(*make_kv(1))  # exactly full
    assert cache.length == MAX_LEN


def test_truncate_and_reset():
    cache = make_cache()
    k, v = make_kv(5)
    cache.update(k, v)
    cache.truncate(2)
    assert cache.length == 2
    new_k, new_v = make_kv(1, 900.0)
    keys, values = cache.update(new_k, new_v)
    assert torch.equal(keys, torch.cat([k[:, :, :2], new_k], dim=2))
    assert torch.equal(values, torch.cat([v[:, :, :2], new_v], dim=2))
    cache.truncate(3)  # nothing to forget
    for length in (-1, 4):
        with pytest.raises(ValueError, match=f"cannot truncate to {length}: the cache holds 3"):
            cache.truncate(length)
    cache.reset()
    assert cache.length == 0
    assert torch.equal(cache.update(new_k, new_v)[0], new_k)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_bytes(dtype):
    cache = make_cache(dtype=dtype)
    cache.update(*(x.to(dtype) for x in make_kv(MAX_LEN)))
    slots = MAX_LEN
    if isinstance(cache, PagedCache):
        slots = sum(len(blocks) for blocks in cache.table) // BATCH * cache.pool.block_size
        assert MAX_LEN <= slots < MAX_LEN + cache.pool.block_size
    formula = kv_cache_bytes(
        slots,
        n_layers=1,
        n_kv_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        value_dim=VALUE_DIM,
        batch_size=BATCH,
        dtype=dtype,
    )
    assert cache.nbytes == formula == 2 * 3 * slots * (4 + 5) * dtype.itemsize
    # the sizes multiply, and keys and values count alike when value_dim is not given
    assert kv_cache_bytes(11, n_layers=13, n_kv_heads=17, head_dim=19, dtype=dtype) == (
        2 * 11 * 13 * 17 * 19 * dtype.itemsize
    )


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda k, v: (k[:1], v), r"k has shape \(1, 3, 2, 4\) .* \(2, 3, 'new', 4\)"),
        (lambda k, v: (k, v[:, :1]), r"v has shape \(2, 1, 2, 5\) .* \(2, 3, 'new', 5\)"),
        (lambda k, v: (k[..., :3], v), r"k has shape \(2, 3, 2, 3\)"),
        (lambda k, v: (k[0], v[0]), r"k has shape \(3, 2, 4\)"),
        (lambda k, v: (k, v[:, :, :1]), "2 new keys came with 1 new values"),
        (lambda k, v: (k.double(), v), "k is torch.float64 but the cache is torch.float32"),
        (lambda k, v: (k, v.to("meta")), "v is on meta but the cache is on cpu"),
        (lambda k, v: (k, v.requires_grad_()), "v carries a gradient"),
    ],
)
def test_bad_updates_are_refused_and_change_nothing(change, match):
    cache = make_cache()
    cache.update(*make_kv(1))
    k, v = make_kv(2, 50.0)
    before = [x.clone() for x in cache.update(*make_kv(0))]
    with pytest.raises(ValueError, match=match):
        cache.update(*change(k, v))
    after = cache.update(*make_kv(0))
    assert cache.length == 1
    assert all(torch.equal(x, y) for x, y in zip(before, after, strict=True))


def test_a_gradient_is_no_error_where_none_is_recorded():
    k, v = make_kv(2)
    with torch.no_grad():
        assert not make_cache().update(k.requires_grad_(), v)[0].requires_grad


@pytest.mark.parametrize("sizes", [(0, 1, 1, 1), (1, 0, 1, 1), (1, 1, 0, 1), (1, 1, 1, -2)])
def test_sizes_below_one_are_refused(sizes):
    with pytest.raises(ValueError, match=r"must be 1 or more, got "):
        kind_of_cache(*sizes)


# --- a decoder's state


def make_state(n_layers=2, **kwargs):
    return DecodeState([make_cache() for _ in range(n_layers)], **kwargs)


def test_positions_count_on_and_masks_follow():
    state = make_state()
    assert state.append(3).tolist() == [[0, 1, 2]]
    assert state.mask(3).int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert state.append(1).tolist() == [[3]]
    assert state.mask(1) is None  # one new token sees everything
    assert state.append(2).tolist() == [[4, 5]]
    assert state.mask(2).int().tolist() == [[1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1]]
    assert state.k_positions.tolist() == [[0, 1, 2, 3, 4, 5]]
    assert state.valid.all()
    assert state.length == 6
    assert state.largest_position == 5


def test_left_padding():
    state = make_state()
    mask = torch.tensor([[False, True, True], [True, True, True]])
    assert state.append(3, mask=mask).tolist() == [[0, 0, 1], [0, 1, 2]]
    expected = torch.tensor([[[0, 0, 0], [0, 1, 0], [0, 1, 1]], [[1, 0, 0], [1, 1, 0], [1, 1, 1]]])
    assert torch.equal(state.mask(3), expected.bool().unsqueeze(1))
    assert state.append(1).tolist() == [[2], [3]]  # each row goes on by itself
    assert torch.equal(state.mask(1).int().flatten(1), torch.tensor([[0, 1, 1, 1], [1, 1, 1, 1]]))
    # padding in a later chunk, and a row of padding alone
    mask = torch.tensor([[False, True], [False, False]])
    assert state.append(2, mask=mask).tolist() == [[0, 3], [0, 0]]
    assert state.append(1).tolist() == [[4], [4]]
    assert state.k_positions.tolist() == [[0, 0, 1, 2, 0, 3, 4], [0, 1, 2, 3, 0, 0, 4]]
    assert state.valid.int().tolist() == [[0, 1, 1, 1, 0, 1, 1], [1, 1, 1, 1, 0, 0, 1]]


def test_a_row_of_padding_alone_starts_at_zero():
    state = make_state()
    mask = torch.tensor([[False, False], [True, True]])
    assert state.append(2, mask=mask).tolist() == [[0, 0], [0, 1]]
    assert state.append(1).tolist() == [[0], [2]]


def test_given_positions_are_kept_and_counted_on_from():
    state = make_state()
    state.append(2, positions=torch.tensor([[10, 11], [5, 90]]))
    assert state.largest_position is None  # chosen by the caller: no bound is known
    assert state.append(2).tolist() == [[12, 13], [91, 92]]
    assert state.k_positions.tolist() == [[10, 11, 12, 13], [5, 90, 91, 92]]
    shared = make_state()
    shared.append(2, positions=torch.tensor([[7, 8]]))
    assert shared.k_positions.tolist() == [[7, 8], [7, 8]]


def test_state_refuses_overflow_unchanged():
    state = make_state()
    state.append(6)
    with pytest.raises(ValueError, match="max_len=7 slots and holds 6: 2 more do not fit"):
        state.append(2, mask=torch.ones(BATCH, 2, dtype=torch.bool))
    assert state.length == 6
    assert state.append(1).tolist() == [[6]]
    assert state.mask(1) is None  # the refused mask was not taken note of


def test_state_truncate_and_reset():
    state = make_state()
    state.append(5, positions=torch.arange(5).unsqueeze(0) + 3)
    for cache in state.caches:
        cache.update(*make_kv(5))
    state.truncate(2)
    assert state.k_positions.tolist() == [[3, 4], [3, 4]]
    assert [cache.length for cache in state.caches] == [2, 2]
    assert state.append(1).tolist() == [[5], [5]]
    with pytest.raises(ValueError, match="cannot truncate to 4: the state holds 3"):
        state.truncate(4)
    state.reset()
    assert state.length == 0
    assert [cache.length for cache in state.caches] == [0, 0]
    assert state.append(2).tolist() == [[0, 1]]
    assert state.largest_position == 1


def test_truncating_forgets_padding_and_given_positions_too():
    """As a decoder does when it refuses a call after the state took note of it."""
    state, padded = make_state(), torch.tensor([[False, True], [True, True]])
    state.append(2)
    for seen in ({"mask": padded}, {"positions": torch.tensor([[40, 41]])}):
        state.append(2, **seen)
        state.truncate(2)
        assert state.largest_position == 1
        assert state.k_positions.tolist() == [[0, 1]]
        assert state.mask(1) is None
    assert state.append(1).tolist() == [[2]]
    state.append(2, mask=padded)
    state.truncate(4)  # one slot of padding is left
    assert state.mask(1).int().flatten(1).tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]


def test_a_fork_goes_on_by_itself():
    state = make_state()
    state.append(2, mask=torch.tensor([[False, True], [True, True]]))
    for cache in state.caches:
        cache.update(*make_kv(2))
    fork = state.fork()
    parts = {}
    for number, each in ((1, state), (2, fork)):
        parts[number] = make_kv(3, 1000.0 * number)
        each.append(number, positions=torch.full((1, number), 50 * number))
        for cache in each.caches:
            cache.update(*(x[:, :, :number] for x in parts[number]))
    for number, each in ((1, state), (2, fork)):
        assert each.length == 2 + number
        assert each.k_positions[:, 2:].unique().tolist() == [50 * number]
        assert each.valid.int().tolist() == [[0, 1] + number * [1], [1, 1] + number * [1]]
        for cache in each.caches:
            for x, old, new in zip(
                cache.update(*make_kv(0)), make_kv(2), parts[number], strict=True
            ):
                assert torch.equal(x, torch.cat([old, new[:, :, :number]], dim=2))


def test_state_bytes_count_the_context_too():
    pair = (torch.ones(BATCH, 3, 9, 4), torch.ones(BATCH, 3, 9, 5))
    state = make_state(context_keys_values=[pair, pair])
    assert state.nbytes == sum(c.nbytes for c in state.caches) + 2 * (2 * 3 * 9 * 9 * 4)
    if type(state.caches[0]) is KVCache:
        assert state.nbytes == 2 * (2 * 3 * 7 * 9 * 4) + 2 * (2 * 3 * 9 * 9 * 4)


def test_states_of_unlike_caches_are_refused():
    other = kind_of_cache(BATCH, KV_HEADS, MAX_LEN + 1, HEAD_DIM)
    with pytest.raises(ValueError, match=r"\[\(2, 7, 0\), \(2, 8, 0\)\]"):
        DecodeState([make_cache(), other])
    with pytest.raises(ValueError, match=r"got .* of \[\]"):
        DecodeState([])
    used = make_cache()
    used.update(*make_kv(1))
    with pytest.raises(ValueError, match=r"all empty, .* \[\(2, 7, 1\)\]"):
        DecodeState([used])
    with pytest.raises(ValueError, match=r"2 layers need as many pairs .* got 1"):
        make_state(context_keys_values=[(torch.ones(1), torch.ones(1))])


def test_states_of_caches_that_keep_other_slots_are_refused():
    def window(window, sinks=0):
        return WindowCache(BATCH, KV_HEADS, MAX_LEN, HEAD_DIM, window=window, sinks=sinks)

    for pair in (
        [make_cache(), window(2)],
        [window(2), make_cache()],
        [window(2), window(3)],
        [window(3, sinks=1), window(4)],
    ):
        kinds = ", ".join(type(cache).__name__ for cache in pair)
        with pytest.raises(ValueError, match=rf"keep the same slots, .* of kinds {kinds}"):
            DecodeState(pair)
    DecodeState([window(3, sinks=1), window(3, sinks=1)])
    DecodeState([make_cache(), KVCache(BATCH, KV_HEADS, MAX_LEN, HEAD_DIM)])


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu():
    state = DecodeState([make_cache(device="cuda")])
    assert state.append(2).is_cuda
    assert state.mask(2).is_cuda
    k, v = make_kv(2)
    with pytest.raises(ValueError, match="k is on cpu but the cache is on cuda"):
        state.caches[0].update(k, v)
    assert state.caches[0].update(k.cuda(), v.cuda())[0].is_cuda


@pytest.mark.parametrize(
    ("length", "n_layers", "message"),
    [(-1, 2, "got length=-1"), (3, -4, "length=3, n_layers=-4")],
)
def test_bytes_of_no_cache_are_refused(length, n_layers, message):
    with pytest.raises(ValueError, match=message):
        kv_cache_bytes(length, n_layers=n_layers, n_kv_heads=3, head_dim=5)
