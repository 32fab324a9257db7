"""The grid behind chapter 08: its arms, its data, its model, and what a run returns."""

import itertools
import json
import math

import pytest
import torch
from torch import nn

from lib import warmup as experiment
from lib.data import numeral_pairs
from lib.training import warmup_cosine

ARM = {"placement": "post", "warmup": 4, "rate": 0.003, "seed": 1}


@pytest.fixture(scope="module")
def pairs():
    return numeral_pairs(experiment.LARGEST)


@pytest.fixture
def small(monkeypatch):
    """The same experiment, small enough to run again and again."""
    monkeypatch.setattr(experiment, "SIZES", {**experiment.SIZES, "n_layers": 2, "d_ff": 40})
    monkeypatch.setattr(experiment, "N_STEPS", 12)
    monkeypatch.setattr(experiment, "WINDOW", 5)
    monkeypatch.setattr(experiment, "N_VALID", 8)


def test_the_grid_crosses_everything_with_everything():
    grid = experiment.arms()
    expected = [
        arm
        for placement, rates in experiment.RATES.items()
        for arm in itertools.product((placement,), (experiment.WARMUP, 0), rates, experiment.SEEDS)
    ]
    assert [tuple(arm.values()) for arm in grid] == expected
    assert list(experiment.RATES) == ["pre", "post"]
    assert len(experiment.SEEDS) >= 3
    assert json.loads(json.dumps(grid)) == grid


def test_a_row_is_the_numeral_and_then_its_words(pairs):
    tokens, counts = experiment.encode(torch.tensor([20_321, 7]), pairs)
    n_source = len(pairs.source)
    first, second = tokens.tolist()
    assert "".join(pairs.source.decode(first[:8])) == "两万零三百二十一"
    assert pairs.decode_target([t - n_source for t in first[8:]]) == (
        "twenty thousand three hundred twenty-one"
    )
    assert "".join(pairs.source.decode(second[:1])) == "七"
    assert pairs.decode_target([t - n_source for t in second[1:4]]) == "seven"
    assert second[4:] == [0] * (len(first) - 4)
    # the words and the end count; the numeral, the start and padding do not
    assert counts.int().tolist()[0] == [0] * 9 + [1] * (len(first) - 9)
    assert counts.int().tolist()[1] == [0, 0, 1, 1] + [0] * (len(first) - 4)


def test_every_token_is_one_the_model_knows(pairs):
    model = experiment.make_model("pre", 0, pairs=pairs)
    tokens, _ = experiment.encode(pairs.valid[:50], pairs)
    assert int(tokens.max()) < model.embedding.num_embeddings
    assert len(set(tokens.unique().tolist())) > len(pairs.target)


def test_two_placements_start_from_the_same_weights(pairs):
    pre, post = (experiment.make_model(name, 2, pairs=pairs) for name in ("pre", "post"))
    assert pre.final_norm is not None
    assert post.final_norm is None
    weights = dict(pre.named_parameters())
    for name, weight in post.named_parameters():
        assert weight.dtype == torch.float64
        assert torch.equal(weight, weights[name]), name
    other = experiment.make_model("pre", 3, pairs=pairs)
    assert not torch.equal(other.output.weight, pre.output.weight)


def test_a_run_repeats_itself_and_begins_like_a_short_one(small):
    whole = experiment.run(ARM)
    assert json.loads(json.dumps(experiment.run(ARM))) == whole
    assert len(whole["train"]) == 3
    short = experiment.run(ARM, n_steps=5)
    assert short["train"] == whole["train"][:1]
    assert short["valid"] != whole["valid"]
    other_seed = experiment.run({**ARM, "seed": 0}, n_steps=5)
    assert other_seed["train"] != short["train"]


def test_the_default_dtype_does_not_matter(small):
    short = experiment.run(ARM, n_steps=3)
    torch.set_default_dtype(torch.float64)
    try:
        assert experiment.run(ARM, n_steps=3) == short
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_the_schedule_is_that_of_the_whole_run(small, monkeypatch):
    seen = []

    def watched(step, *, warmup, total):
        seen.append((step, warmup, total))
        return warmup_cosine(step, warmup=warmup, total=total)

    monkeypatch.setattr(experiment, "warmup_cosine", watched)
    experiment.run(ARM, n_steps=3)
    experiment.run({**ARM, "warmup": 0}, n_steps=1)
    assert seen == [(1, 4, 12), (2, 4, 12), (3, 4, 12), (1, 0, 12)]


def test_what_is_not_finite_is_written_as_null(small, monkeypatch):
    original = experiment.make_model

    def broken(placement, seed, *, pairs):
        model = original(placement, seed, pairs=pairs)
        nn.init.constant_(model.output.weight, math.nan)
        return model

    monkeypatch.setattr(experiment, "make_model", broken)
    result = experiment.run(ARM, n_steps=6)
    assert result == {"train": [None, None], "largest": None, "valid": None}
    assert "NaN" not in json.dumps(result)


def test_guessing_knows_how_frequent_tokens_are_and_nothing_else(pairs):
    tokens, counts = experiment.encode(pairs.valid[: experiment.N_VALID], pairs)
    counted = tokens[counts].tolist()
    by_hand = -sum(math.log(counted.count(token) / len(counted)) for token in counted) / len(
        counted
    )
    assert experiment.guess_loss() == pytest.approx(by_hand)
