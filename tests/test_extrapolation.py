"""The grid of chapter 07: what its arms are, and losses by position, by hand and over again."""

import json
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from lib import extrapolation as experiment
from lib.position import AlibiPosition, LearnedPosition, NoPosition
from lib.training import teacher_forcing
from lib.transformer import LanguageModel

VOCAB = 7


def tiny(position=None, seed=0):
    torch.manual_seed(seed)
    return LanguageModel(VOCAB, 8, 2, 2, position=position).eval()


class Repeater(nn.Module):
    """Scores the token just read by the position it stands at, and every other token by 0."""

    position = NoPosition()

    def forward(self, tokens, *, positions):
        return F.one_hot(tokens, VOCAB) * positions.unsqueeze(-1).float()


# --- the arms


def test_every_scheme_has_every_seed_once():
    settings = [(arm["scheme"], arm["seed"]) for arm in experiment.arms()]
    assert sorted(settings) == sorted((s, seed) for s in experiment.SCHEMES for seed in (0, 1, 2))
    assert {arm["steps"] for arm in experiment.arms()} == {experiment.STEPS}
    assert json.loads(json.dumps(experiment.arms())) == experiment.arms()


def test_arms_of_a_seed_begin_with_the_same_weights():
    plain = experiment.build("none", 4).state_dict()
    for scheme in experiment.SCHEMES:
        own = experiment.build(scheme, 4).state_dict()
        shared = {name: value for name, value in own.items() if not name.startswith("position.")}
        assert shared.keys() == plain.keys()
        assert all(torch.equal(plain[name], value) for name, value in shared.items())
    other = experiment.build("none", 5).state_dict()
    assert not torch.equal(plain["output.weight"], other["output.weight"])


def test_building_leaves_the_global_generator_alone():
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    experiment.build("t5", 0)
    assert torch.equal(torch.rand(3), expected)


def test_the_largest_distance_of_training_reaches_the_last_bucket_of_one_t5_only():
    far = torch.tensor([[experiment.TRAIN_LENGTH - 1]])
    for scheme, last in (("t5", True), ("t5-wide", False)):
        position = experiment.build(scheme, 0).position
        with torch.no_grad():
            position.table.copy_(torch.arange(16.0).unsqueeze(1).expand(16, 4))
        bias = position.prepare(far, torch.tensor([[0]]))
        assert (bias == 15).all() == last


def test_an_unknown_scheme_is_refused():
    with pytest.raises(ValueError, match="unknown scheme 'ropey', there are none, learned"):
        experiment.build("ropey", 0)


def test_variants_of_a_trained_model():
    assert experiment.variants("alibi") == {}
    assert experiment.variants("learned") == {"clamped": experiment.TRAIN_LENGTH - 1}
    variants = experiment.variants("rope")
    assert set(variants) == {f"{n} {s}" for n in ("interpolation", "ntk", "yarn") for s in (2, 8)}
    for name, position in variants.items():
        assert position.head_dim == experiment.HEAD_DIM
        assert position.scaling.factor == int(name.split()[1])
    assert variants["yarn 8"].scaling.original_max_len == experiment.TRAIN_LENGTH


# --- losses by position


def test_by_hand():
    # ln(e^m + 6) − m where the next token is the same, ln(e^m + 6) where it is not
    tokens = torch.tensor([0, 1, 1, 2, 2, 2, 3, 3, 0])
    losses = experiment.losses_by_block(
        Repeater(), tokens, length=4, block=2, first=2, n_targets=2, batch=1
    )

    def by_hand(token, position):
        repeated = tokens[token + 1] == tokens[token]
        return torch.tensor(position).float().exp().add(6).log() - (position if repeated else 0)

    expected = [
        [(by_hand(2, 0) + by_hand(3, 1)) / 2, (by_hand(4, 0) + by_hand(5, 1)) / 2],
        [(by_hand(2, 2) + by_hand(3, 3)) / 2, (by_hand(4, 2) + by_hand(5, 3)) / 2],
    ]
    torch.testing.assert_close(losses, torch.tensor(expected))


@pytest.mark.parametrize("block", [1, 3, 6])
def test_the_context_of_a_target_is_what_stands_before_it_in_its_window(block):
    model = tiny(AlibiPosition(2))
    tokens = torch.randint(VOCAB, (40,), generator=torch.Generator().manual_seed(1))
    n_targets = 12 // block
    measured = experiment.losses_by_block(
        model, tokens, length=12, block=block, first=13, n_targets=n_targets
    )
    assert measured.shape == (12 // block, n_targets)
    for b in range(12 // block):
        for t in range(n_targets):
            losses = []
            for place in range(block):
                token, context = 13 + t * block + place, b * block + place
                logits = model(tokens[None, token - context : token + 1])[0, -1]
                losses.append(-logits.log_softmax(-1)[tokens[token + 1]])
            torch.testing.assert_close(measured[b, t], torch.stack(losses).mean().detach())


def test_positions_beyond_the_largest_are_replaced():
    model = tiny(LearnedPosition(4, 8))
    tokens = torch.randint(VOCAB, (30,), generator=torch.Generator().manual_seed(2))
    losses = experiment.losses_by_block(
        model, tokens, length=8, block=8, first=0, n_targets=1, largest=3
    )
    inputs, targets = teacher_forcing(tokens[None, :9])
    logits = model(inputs, positions=torch.tensor([[0, 1, 2, 3, 3, 3, 3, 3]]))
    torch.testing.assert_close(losses[0, 0], F.cross_entropy(logits[0], targets[0]).detach())


def test_the_batch_does_not_matter():
    tokens = torch.randint(VOCAB, (60,), generator=torch.Generator().manual_seed(3))
    sizes = {"length": 8, "block": 4, "first": 9, "n_targets": 5}
    one, all_ = (
        experiment.losses_by_block(tiny(), tokens, **sizes, batch=batch) for batch in (1, 99)
    )
    torch.testing.assert_close(one, all_)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"length": 7}, "length=7 must be a multiple of block=2"),
        ({"block": 0}, "length=6 must be a multiple of block=0"),
        ({"first": 3}, r"first=3 and n_targets=2: .* the first would begin at -1"),
        ({"n_targets": 0}, "n_targets=0"),
        ({"n_targets": 4}, "end within 16 tokens, .* the last end at 17"),
    ],
)
def test_windows_that_do_not_fit(sizes, message):
    sizes = {"length": 6, "block": 2, "first": 4, "n_targets": 2} | sizes
    tokens = torch.zeros(16, dtype=torch.int64)
    with pytest.raises(ValueError, match=message):
        experiment.losses_by_block(tiny(), tokens, **sizes)


def test_the_last_window_may_end_with_the_text():
    tokens = torch.zeros(15, dtype=torch.int64)
    losses = experiment.losses_by_block(tiny(), tokens, length=6, block=2, first=4, n_targets=3)
    assert losses.shape == (3, 3)


# --- attention to what is far


def test_equal_scores_share_by_counting():
    model = tiny()
    with torch.no_grad():
        for block in model.blocks:  # every score 0: all visible keys have the same weight
            block.self_attention.w_q.weight.zero_()
            block.self_attention.w_q.bias.zero_()
    tokens = torch.randint(VOCAB, (50,), generator=torch.Generator().manual_seed(4))
    sizes = {"length": 10, "distance": 4, "block": 2, "n_windows": 3}
    share, entropy = experiment.distant_attention(model, tokens, **sizes)
    assert share.shape == entropy.shape == (2, 2)
    expected = (5 / 9 + 6 / 10) / 2  # queries 8 and 9 see 5 and 6 keys at distance 4 or more
    assert share.flatten().tolist() == pytest.approx([expected] * 4, rel=1e-6)
    expected = (math.log(5) + math.log(6)) / 2
    assert entropy.flatten().tolist() == pytest.approx([expected] * 4, rel=1e-6)
    with pytest.raises(ValueError, match="length=51 does not fit in 50 tokens"):
        experiment.distant_attention(model, tokens, **sizes | {"length": 51})


def test_content_lowers_the_entropy_of_a_share_that_stays():
    model = tiny(AlibiPosition(2))  # slopes 1/16 and 1/256
    tokens = torch.randint(VOCAB, (90,), generator=torch.Generator().manual_seed(5))
    attended = []
    for scale in (0.0, 30.0):
        with torch.no_grad():
            for block in model.blocks:
                block.self_attention.w_q.weight.copy_(scale * torch.eye(8))
                block.self_attention.w_q.bias.zero_()
        sizes = {"length": 80, "distance": 20, "block": 8, "n_windows": 5}
        attended.append(experiment.distant_attention(model, tokens, **sizes))
    (even, even_entropy), (picked, picked_entropy) = attended
    flat = math.exp(-1 / 256)
    expected = []
    for keys in range(73, 81):  # keys that each of the last 8 queries sees
        weight = torch.tensor([flat**d for d in range(20, keys)], dtype=torch.float64)
        expected.append(torch.distributions.Categorical(weight).entropy().item())
    assert even_entropy[:, 1].tolist() == pytest.approx([sum(expected) / 8] * 2, rel=1e-5)
    assert (picked_entropy < even_entropy - 0.3).all()
    assert ((picked - even).abs() < 0.15).all()


def test_a_share_that_underflows_has_entropy_0():
    model = tiny(AlibiPosition(2))
    tokens = torch.randint(VOCAB, (3000,), generator=torch.Generator().manual_seed(6))
    sizes = {"length": 2200, "distance": 2100, "block": 1, "n_windows": 1}
    share, entropy = experiment.distant_attention(model, tokens, **sizes)
    assert (share[:, 0] == 0).all()  # slope 1/16
    assert (entropy[:, 0] == 0).all()
    assert (entropy[:, 1] > 1).all()


# --- a run


@pytest.fixture
def short(monkeypatch):
    for name, value in {
        "TARGET_BLOCKS": 3,
        "ATTENTION_WINDOWS": 2,
        "TEST_LENGTH": 256,
        "BATCH": 2,
    }.items():
        monkeypatch.setattr(experiment, name, value)


def test_a_run_gives_what_it_says_and_gives_it_again(short):
    arm = {"scheme": "rope", "seed": 3, "steps": 60}
    result = experiment.run(arm, n_steps=2)
    assert result == experiment.run(arm, n_steps=2)
    assert result != experiment.run(arm | {"seed": 4}, n_steps=2)
    assert json.loads(json.dumps(result)) == result
    assert result["corpus"] == experiment.corpus_hash()
    assert len(result["loss"]) == len(result["rise_error"]) == 8
    assert result["rise_error"][1] == 0.0  # of the last block met in training, over itself
    assert set(result["variants"]) == set(experiment.variants("rope"))
    assert len({tuple(variant["loss"]) for variant in result["variants"].values()}) == 6
    for name in ("distant_share", "distant_entropy"):
        assert len(result[name]) == experiment.N_LAYERS


def test_where_there_is_no_position_there_is_no_loss(short):
    result = experiment.run({"scheme": "learned", "seed": 0, "steps": 60}, n_steps=1)
    assert result["loss"][2:] == result["rise_error"][2:] == [None] * 6
    clamped = result["variants"]["clamped"]["loss"]
    assert clamped[:2] == pytest.approx(result["loss"][:2], abs=2e-5)
    assert all(loss is not None for loss in clamped)
    assert not {"distant_share", "distant_entropy"} & result.keys()


def test_a_run_ends_with_its_own_schedule(short, monkeypatch):
    rates = []
    monkeypatch.setattr(
        experiment,
        "train",
        lambda *args, n_steps, rate, **kw: rates.append([rate(s) for s in (1, n_steps)]) or [0.0],
    )
    experiment.run({"scheme": "none", "seed": 0, "steps": 60}, n_steps=2)
    experiment.run({"scheme": "none", "seed": 0, "steps": 60})
    rise = experiment.RATE / experiment.WARMUP
    assert rates == [[rise, pytest.approx(2 * rise)], [rise, pytest.approx(0.05 * experiment.RATE)]]
