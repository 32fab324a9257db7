"""Tests of :mod:`lib.serving`."""

import math
import random
from functools import partial

import pytest
import torch

from lib.alibi import AlibiPosition
from lib.caches import BlockPool, PagedCache, WindowCache
from lib.kv_cache import DecodeState, KVCache
from lib.rope import RotaryPosition
from lib.serving import (
    Machine,
    ModelShape,
    RaggedBatch,
    Request,
    continue_from,
    pass_seconds,
    read_in_chunks,
    serve,
)
from lib.speculation import expected_tokens
from lib.transformer import LanguageModel

VOCAB = 11


def make_model(position=None):
    torch.manual_seed(0)
    position = RotaryPosition(6) if position is None else position
    model = LanguageModel(VOCAB, 20, 2, 4, n_kv_heads=2, head_dim=6, position=position)
    return model.double().eval().requires_grad_(False)


def make_tokens(length, batch=1, seed=1):
    return torch.randint(VOCAB, (batch, length), generator=torch.Generator().manual_seed(seed))


def close(a, b):
    torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


# --- corollaries of cached decoding


@pytest.mark.parametrize("chunk", [1, 4, 9, 50])
def test_chunks_give_the_logits_of_one_pass(chunk):
    model, tokens = make_model(), make_tokens(9, batch=2)
    lengths = []
    hook = model.register_forward_pre_hook(lambda _, args: lengths.append(args[0].shape[1]))
    state = model.decode_state(2, 9)
    logits = read_in_chunks(model, tokens, state, chunk)
    assert max(lengths) <= chunk
    assert sum(lengths) == 9
    hook.remove()
    close(logits, model(tokens)[:, -1])
    with pytest.raises(ValueError, match="chunk"):
        read_in_chunks(model, tokens, state, 0)
    with pytest.raises(ValueError, match="chunks need a state"):
        read_in_chunks(model, tokens, None, chunk)


@pytest.mark.parametrize("common", [0, 3, 6, 8])
def test_a_common_prefix_is_not_read_again(common):
    model = make_model()
    held, tokens = make_tokens(8), make_tokens(6, seed=2)
    tokens[:, :common] = held[:, : tokens[:, :common].shape[1]]
    tokens[:, common : common + 1] = (held[:, common : common + 1] + 1) % VOCAB
    state = model.decode_state(1, 12)
    model(held, state=state)
    logits, reused = continue_from(model, tokens, state, held)
    assert reused == min(common, 5)  # the last token is always read
    assert state.length == 6
    close(logits, model(tokens)[:, -1])
    with pytest.raises(ValueError, match=r"held \(1, 6\)"):
        continue_from(model, tokens, state, held)


def test_a_text_that_does_not_fit_leaves_the_state_as_it_was():
    model = make_model()
    held, state = make_tokens(8), model.decode_state(1, 12)
    model(held, state=state)
    longer = torch.cat([held[:, :3], make_tokens(10, seed=2)], dim=1)
    with pytest.raises(ValueError, match="max_len=12 slots, and the text has 13 tokens"):
        continue_from(model, longer, state, held)
    assert state.length == 8
    rest = make_tokens(4, seed=3)
    close(model(rest, state=state), model(torch.cat([held, rest], dim=1))[:, 8:])


# --- texts of different lengths in one pass


@pytest.mark.parametrize("position", [RotaryPosition(6), AlibiPosition(4)])
@pytest.mark.parametrize(
    "make_cache", [KVCache, partial(PagedCache, block_size=4), partial(WindowCache, window=5)]
)
def test_a_ragged_batch_gives_the_logits_of_each_text_alone(position, make_cache):
    model = make_model(position)
    lengths = [3, 9, 1]
    states = [model.decode_state(1, 20, make_cache=make_cache) for _ in lengths]
    texts = [make_tokens(20, seed=seed) for seed in range(3)]
    alone = [model.decode_state(1, 20, make_cache=make_cache) for _ in lengths]
    for text, length, *pair in zip(texts, lengths, states, alone, strict=True):
        for state in pair:
            model(text[:, :length], state=state)

    def step(rows, new):
        batch = RaggedBatch([states[row] for row in rows])
        starts = [states[row].length for row in rows]
        pieces = [texts[row][:, at : at + new] for row, at in zip(rows, starts, strict=True)]
        logits = model(torch.cat(pieces), state=batch)
        for row, piece, mine in zip(rows, pieces, logits, strict=True):
            close(mine[None], model(piece, state=alone[row]))

    step([0, 1, 2], 1)
    step([0, 1, 2], 3)  # a piece, as a draft is
    step([2, 0], 1)  # text 1 has left, and the order is another one
    step([1, 0, 2], 2)
    assert [state.length for state in states] == [3 + 7, 9 + 6, 1 + 7]


def test_ragged_texts_in_one_pool_leave_nothing_when_refused():
    model = make_model()
    pool = BlockPool(12, 2, 2, 6, dtype=torch.float64)  # two layers: six blocks each
    states = [model.decode_state(1, 20, make_cache=partial(PagedCache, pool=pool)) for _ in "ab"]
    model(make_tokens(6), state=states[0])
    model(make_tokens(4), state=states[1])  # ten of twelve blocks
    batch = RaggedBatch(states)
    with pytest.raises(ValueError, match="blocks are needed"):
        model(make_tokens(1, batch=2), state=batch)
    assert [state.length for state in states] == [6, 4]
    assert [cache.length for state in states for cache in state.caches] == [6, 6, 4, 4]
    assert pool.n_used == 10
    states[0].reset()
    assert pool.n_used == 4
    model(make_tokens(1), state=states[1])


def test_ragged_batches_are_checked():
    model = make_model()
    one, two = model.decode_state(1, 4), model.decode_state(2, 4)
    for states in ([one, two], []):
        with pytest.raises(ValueError, match="states of one row each"):
            RaggedBatch(states)
    pair = (torch.ones(1, 2, 3, 6), torch.ones(1, 2, 3, 6))
    context = DecodeState([KVCache(1, 2, 4, 6)], context_keys_values=[pair])
    with pytest.raises(ValueError, match="with a context"):
        RaggedBatch([context])
    other = model.decode_state(1, 4)
    model(make_tokens(3), state=one)
    batch = RaggedBatch([other, one])
    with pytest.raises(ValueError, match="max_len=4 slots and holds 3: 2 more"):
        batch.append(2)
    with pytest.raises(ValueError, match="counts positions itself"):
        batch.append(1, positions=torch.zeros(2, 1, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"cannot truncate to 2: the texts hold \[0, 3\]"):
        batch.truncate(2)
    assert (one.length, other.length) == (3, 0)
    with pytest.raises(ValueError, match="a state is given twice"):
        RaggedBatch([one, other, one])


def test_a_ragged_batch_truncates_all_texts_or_none():
    model = make_model()
    plain = model.decode_state(1, 20)
    window = model.decode_state(1, 20, make_cache=partial(WindowCache, window=2))
    for state in (plain, window):
        for piece in make_tokens(8).split([6, 2], dim=1):
            model(piece, state=state)
    batch = RaggedBatch([plain, window])
    with pytest.raises(ValueError, match=r"cannot truncate to 4: .* from 6 on"):
        batch.truncate(4)
    assert [state.length for state in (plain, window)] == [8, 8]
    assert [cache.length for state in (plain, window) for cache in state.caches] == [8] * 4
    batch.truncate(7)
    assert [state.length for state in (plain, window)] == [7, 7]


# --- the simulator

SHAPE = ModelShape(n_weights=1000, n_layers=2, n_heads=4, n_kv_heads=2, head_dim=8)
MACHINE = Machine(throughput=50_000.0, bandwidth=4_000.0)


def random_requests(number=40, seed=0):
    draw = random.Random(seed)
    now, requests = 0.0, []
    for _ in range(number):
        now += draw.expovariate(1.0)
        requests.append(Request(now, draw.randint(1, 60), draw.randint(1, 40)))
    return requests


def test_pass_seconds_by_hand():
    # operations: weights for 3 + 1 tokens; (4 + 5 + 6) + 11 pairs of query and key
    operations = 2 * 1000 * 4 + 4 * 2 * 4 * 8 * (4 + 5 + 6 + 11)
    moved = 2 * (1000 + 2 * 2 * 2 * 8 * (6 + 11))
    pieces = [(3, 3), (10, 1)]
    fast, slow = 1e12, 1e-3
    assert pass_seconds(SHAPE, Machine(slow, fast), pieces) == pytest.approx(operations / slow)
    assert pass_seconds(SHAPE, Machine(fast, slow, 7.0), pieces) == pytest.approx(moved / slow + 7)


def test_the_pass_of_a_model_has_these_operations():
    """Chapter 10's count of a cached step, ``eq-cost-cached``: 2N + 4Ldt with t = held + 1."""
    operations = pass_seconds(SHAPE, Machine(1.0, 1e12), [(9, 1)])
    assert operations == 2 * 1000 + 4 * 2 * (4 * 8) * 10


@pytest.mark.parametrize("policy", ["static", "continuous"])
def test_one_request_by_hand(policy):
    served = serve([Request(5.0, 7, 4)], SHAPE, MACHINE, policy=policy)
    first = pass_seconds(SHAPE, MACHINE, [(0, 7)])
    steps = [pass_seconds(SHAPE, MACHINE, [(held, 1)]) for held in (7, 8, 9)]
    assert served.first_token == [pytest.approx(first)]
    assert served.per_token == [pytest.approx(sum(steps) / 3)]
    assert served.longest_gap == [pytest.approx(max(steps))]
    assert served.throughput == pytest.approx(4 / (first + sum(steps)))
    assert (served.passes, served.mean_batch, served.preempted) == (4, 1.0, 0)


def test_two_requests_by_hand():
    """The second one comes during the first one's prefill."""
    requests = [Request(0.0, 5, 3), Request(0.01, 6, 1)]
    served = serve(requests, SHAPE, MACHINE)
    a = pass_seconds(SHAPE, MACHINE, [(0, 5)])
    b = pass_seconds(SHAPE, MACHINE, [(5, 1), (0, 6)])
    c = pass_seconds(SHAPE, MACHINE, [(6, 1)])
    assert served.first_token == pytest.approx([a, a + b - 0.01])
    assert served.per_token == pytest.approx([(b + c) / 2, 0.0])
    assert served.throughput == pytest.approx(4 / (a + b + c))
    # a static batch that could not wait for it: the second one follows the first
    static = serve(requests, SHAPE, MACHINE, policy="static")
    d = pass_seconds(SHAPE, MACHINE, [(5, 1)]) + c
    assert static.first_token == pytest.approx(
        [a, a + d + pass_seconds(SHAPE, MACHINE, [(0, 6)]) - 0.01]
    )


def test_a_static_batch_pads_and_waits_for_its_longest():
    requests = [Request(0.0, 5, 3), Request(0.0, 2, 1)]
    static = serve(requests, SHAPE, MACHINE, policy="static")
    passes = [[(0, 5), (0, 5)], [(5, 1), (5, 1)], [(6, 1), (6, 1)]]
    seconds = [pass_seconds(SHAPE, MACHINE, each) for each in passes]
    assert static.first_token == pytest.approx([seconds[0]] * 2)
    assert static.throughput == pytest.approx(4 / sum(seconds))
    assert static.passes == 3


@pytest.mark.parametrize("seed", range(3))
def test_continuous_batches_write_more_and_answer_sooner(seed):
    requests = random_requests(seed=seed)
    options = {"max_batch": 8}
    static = serve(requests, SHAPE, MACHINE, policy="static", **options)
    continuous = serve(requests, SHAPE, MACHINE, **options)
    assert continuous.throughput > static.throughput
    assert sum(continuous.first_token) < sum(static.first_token)
    one = serve(requests, SHAPE, MACHINE, max_batch=1)
    assert continuous.throughput > one.throughput
    assert one.mean_batch == 1.0
    assert one.passes == sum(request.new_tokens for request in requests)


def test_a_budget_bounds_each_pass():
    requests = [Request(0.0, 4, 30), Request(0.05, 500, 2)]
    whole = serve(requests, SHAPE, MACHINE)
    chunked = serve(requests, SHAPE, MACHINE, budget=50)
    assert chunked.longest_gap[0] < 0.5 * whole.longest_gap[0]  # the prompt is read in pieces
    assert chunked.first_token[1] > whole.first_token[1]
    longest_pass = pass_seconds(SHAPE, MACHINE, [(34, 1), (451, 49)])
    assert chunked.longest_gap[0] <= longest_pass


@pytest.fixture
def passes(monkeypatch):
    """The pieces of every pass of the simulator; one that never ends is stopped."""
    seen = []

    def watched(model, machine, pieces):
        seen.append(pieces)
        assert len(seen) <= 10_000, "the simulation does not end"
        return pass_seconds(model, machine, pieces)

    monkeypatch.setattr("lib.serving.pass_seconds", watched)
    return seen


def test_no_pass_exceeds_the_budget(passes):
    requests = [Request(0.0, 70, 5) for _ in range(6)]
    serve(requests, SHAPE, MACHINE, budget=40)
    tokens = [sum(new for _, new in pieces) for pieces in passes]
    assert max(tokens) == 40
    assert sum(tokens) == 6 * (70 + 5 - 1)


@pytest.mark.parametrize("block_size", [1, 4, 16])
def test_blocks_hold_more_texts_than_reserved_rooms(block_size):
    requests = random_requests(60)
    reserved = serve(requests, SHAPE, MACHINE, slots=400)
    paged = serve(requests, SHAPE, MACHINE, slots=400, block_size=block_size)
    assert paged.unused < reserved.unused
    assert paged.mean_batch > reserved.mean_batch
    assert paged.throughput > reserved.throughput
    if block_size == 1:
        assert paged.unused == 0.0


def test_preempted_texts_are_read_again_and_keep_their_place(passes):
    """Every pass fits into memory, and each request gets all of its tokens, in the order of all."""
    served = serve(
        [Request(0.0, 10, 40) for _ in range(9)], SHAPE, MACHINE, slots=104, block_size=4
    )
    used = [sum(-(-(held + new) // 4) * 4 for held, new in pieces) for pieces in passes]
    assert max(used) <= 104
    assert served.preempted > 0
    assert sum(held == 0 for pieces in passes for held, _ in pieces) == 9 + served.preempted
    seconds = sum(pass_seconds(SHAPE, MACHINE, pieces) for pieces in passes)
    assert served.throughput * seconds == pytest.approx(9 * 40)
    pairs = zip(served.first_token, served.per_token, strict=True)
    ends = [first + 39 * each for first, each in pairs]
    assert ends == sorted(ends)


@pytest.mark.parametrize("new_tokens", range(1, 9))
def test_a_draft_ends_with_its_text(passes, new_tokens):
    """Drafts of four that are all accepted: no pass writes beyond the text's last token."""
    request = [Request(0.0, 7, new_tokens)]
    served = serve(request, SHAPE, MACHINE, n_draft=4, acceptance_rate=1.0)
    assert served.passes == 1 + math.ceil((new_tokens - 1) / 5)
    assert sum(new for pieces in passes[1:] for _, new in pieces) == new_tokens - 1
    seconds = sum(pass_seconds(SHAPE, MACHINE, pieces) for pieces in passes)
    assert served.throughput * seconds == pytest.approx(new_tokens)


def test_drafts_by_hand(passes):
    """With all accepted, three tokens a pass; with none, one, and longer passes."""
    request = [Request(0.0, 7, 6)]
    served = serve(request, SHAPE, MACHINE, n_draft=2, acceptance_rate=1.0)
    assert passes == [[(0, 7)], [(7, 3)], [(10, 2)]]  # the last pass may write two more
    assert served.passes == 3
    passes.clear()
    serve(request, SHAPE, MACHINE, n_draft=2, acceptance_rate=0.0)
    assert passes == [[(0, 7)], [(7, 3)], [(8, 3)], [(9, 3)], [(10, 2)], [(11, 1)]]


def test_drafts_give_the_tokens_per_pass_of_the_formula(passes):
    rate, n_draft = 0.6, 3
    request = [Request(0.0, 5, 4000)]
    served = serve(request, SHAPE, MACHINE, n_draft=n_draft, acceptance_rate=rate)
    per_pass = 4000 / served.passes
    assert per_pass == pytest.approx(expected_tokens(rate, n_draft), rel=0.03)


def test_a_common_prefix_is_read_once_by_hand(passes):
    """The first two texts start together, so both read it; the later ones do not."""
    requests = [Request(0.0, 6, 2), Request(0.0, 9, 1), Request(1e-9, 8, 1), Request(2e-9, 3, 1)]
    served = serve(requests, SHAPE, MACHINE, common=4)
    assert passes == [
        [(0, 6), (0, 9)],
        [(6, 1), (4, 4), (2, 1)],  # of its three tokens the last one reads one, for its logits
    ]
    assert served.passes == 2


def test_a_common_prefix_ends_with_the_prompt_that_was_read(passes):
    """A short prompt has a part of it, its answer is no part, and it takes nothing away."""
    requests = [Request(0.0, 3, 6), Request(1e-9, 9, 1), Request(2e-9, 2, 1), Request(3e-9, 9, 1)]
    serve(requests, SHAPE, MACHINE, common=8, max_batch=1)
    answering = [[(held, 1)] for held in range(3, 8)]
    # the first text has eight tokens in memory in the end, but only three in common
    assert passes == [[(0, 3)], *answering, [(3, 6)], [(1, 1)], [(8, 1)]]


@pytest.mark.parametrize("budget", [None, 40])
def test_a_common_prefix_shortens_prefill_and_nothing_else(passes, budget):
    lengths = [(30, 4), (12, 9), (55, 2), (21, 6), (40, 1), (3, 5)]
    requests = [Request(0.1 * i, *each) for i, each in enumerate(lengths)]
    n_read, served = [], []
    for common in (0, 20):
        passes.clear()
        served.append(serve(requests, SHAPE, MACHINE, budget=budget, common=common))
        n_read.append(sum(new for each in passes for _, new in each))
    shorter = sum(min(20, request.prompt_len - 1) for request in requests)
    assert n_read[0] - shorter <= n_read[1] < n_read[0]
    assert max(served[1].first_token) <= max(served[0].first_token)
    assert served[1].throughput >= served[0].throughput


def test_drafts_with_blocks_and_a_budget(passes):
    requests = random_requests(30)
    options = {"n_draft": 3, "acceptance_rate": 0.5, "max_batch": 8, "budget": 64}
    served = serve(requests, SHAPE, MACHINE, slots=200, block_size=4, **options)
    used = [sum(-(-(held + new) // 4) * 4 for held, new in pieces) for pieces in passes]
    assert max(used) <= 200
    assert max(sum(new for _, new in pieces) for pieces in passes) <= 64
    assert served.throughput > serve(requests, SHAPE, MACHINE, max_batch=1).throughput


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"policy": "greedy"}, "policy must be"),
        ({"policy": "static", "block_size": 4}, "for policy='continuous'"),
        ({"block_size": 4, "reserve": 90}, "not both"),
        ({"max_batch": 8, "budget": 8}, "must be above 8"),
        ({"max_batch": 2, "budget": 10, "n_draft": 4}, "must be above 10: max_batch=2"),
        ({"policy": "static", "n_draft": 4}, "for policy='continuous'"),
        ({"n_draft": -1}, "n_draft >= 0"),
        ({"n_draft": 1, "acceptance_rate": 1.5}, "from 0 to 1"),
        ({"slots": 20}, r"takes 30 slots, but there are slots=20"),
        ({"block_size": 16, "slots": 31}, r"takes 32 slots"),
        ({"reserve": 29}, "the longest text has 30 tokens, but reserve=29"),
        ({"common": -1}, "common=-1 cannot be negative"),
        ({"common": 4, "policy": "static"}, "without slots, got 'static'"),
        ({"common": 4, "slots": 40}, "without slots, got 'continuous' and slots=40"),
        ({"max_batch": 0}, "max_batch"),
        ({"block_size": 0}, "block_size"),
    ],
)
def test_what_does_not_fit_is_refused(options, match):
    with pytest.raises(ValueError, match=match):
        serve([Request(0.0, 10, 20), Request(0.0, 5, 5)], SHAPE, MACHINE, **options)


def test_nothing_to_serve_is_refused():
    with pytest.raises(ValueError, match="requests"):
        serve([], SHAPE, MACHINE)
    with pytest.raises(ValueError, match="new_tokens"):
        serve([Request(0.0, 10, 0)], SHAPE, MACHINE)
