"""Tests of :mod:`lib.training`."""

import itertools
import math

import pytest
import torch
from torch import nn

from lib.training import (
    inverse_sqrt_rate,
    sequence_loss,
    shuffled_batches,
    teacher_forcing,
    train,
    warmup_cosine,
)
from lib.transformer import LanguageModel

# --- teacher forcing and loss


def test_targets_are_the_inputs_one_later():
    inputs, targets = teacher_forcing(torch.tensor([[1, 5, 6, 2], [1, 7, 2, 0]]))
    assert inputs.tolist() == [[1, 5, 6], [1, 7, 2]]
    assert targets.tolist() == [[5, 6, 2], [7, 2, 0]]


def test_loss_by_hand():
    # probabilities 1/4 and 1/2 of the right token; the third does not count
    logits = torch.tensor([[[0.25, 0.75], [0.5, 0.5], [0.9, 0.1]]]).log()
    targets, mask = torch.tensor([[0, 1, 1]]), torch.tensor([[True, True, False]])
    loss = sequence_loss(logits, targets, mask=mask)
    assert loss.item() == pytest.approx((math.log(4) + math.log(2)) / 2)
    everything = sequence_loss(logits, targets)
    assert everything.item() == pytest.approx((math.log(4) + math.log(2) + math.log(10)) / 3)


def test_loss_is_a_mean_over_tokens_and_matches_torch():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 5, 7, generator=generator, dtype=torch.float64)
    targets = torch.randint(1, 7, (3, 5), generator=generator)
    mask = torch.arange(5) < torch.tensor([[5], [2], [1]])
    expected = nn.functional.cross_entropy(
        logits.flatten(0, 1), targets.where(mask, 0).flatten(), ignore_index=0
    )
    torch.testing.assert_close(sequence_loss(logits, targets, mask=mask), expected)


def test_what_does_not_count_has_no_gradient_and_may_be_infinite():
    logits = torch.zeros(1, 2, 3)
    logits[0, 1] = torch.inf
    logits.requires_grad_()
    loss = sequence_loss(logits, torch.tensor([[1, 2]]), mask=torch.tensor([[True, False]]))
    assert loss.item() == pytest.approx(math.log(3))


def test_loss_of_half_precision_is_computed_wide():
    logits = torch.zeros(1, 1, 1000, dtype=torch.bfloat16)
    loss = sequence_loss(logits, torch.tensor([[3]]))
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(math.log(1000), rel=1e-6)


def test_loss_takes_int32_targets_as_models_take_int32_tokens():
    logits, targets = torch.randn(2, 3, 5), torch.tensor([[0, 4, 2], [1, 1, 3]])
    assert sequence_loss(logits, targets.int()) == sequence_loss(logits, targets)


# --- rates


def test_inverse_sqrt_rate():
    rates = [inverse_sqrt_rate(s, d_model=64, warmup=100) for s in range(1, 1001)]
    assert rates[0] == pytest.approx(64**-0.5 * 100**-1.5)
    assert rates[49] == pytest.approx(50 * rates[0])  # straight up
    assert max(rates) == rates[99] == pytest.approx(1 / (8 * 10))  # d^(-1/2) w^(-1/2)
    assert rates[399] == pytest.approx(rates[99] / 2)  # then like 1/sqrt(step)


def test_warmup_cosine():
    factor = [warmup_cosine(s, warmup=10, total=30, floor=0.2) for s in range(1, 41)]
    assert factor[0] == pytest.approx(0.1)
    assert factor[4] == pytest.approx(0.5)
    assert factor[9] == 1.0
    assert factor[19] == pytest.approx(0.6)  # half way down from 1 to 0.2
    assert factor[29] == pytest.approx(0.2)
    assert factor[39] == pytest.approx(0.2)
    assert all(a > b for a, b in itertools.pairwise(factor[9:30]))
    assert warmup_cosine(1, warmup=0, total=2) == pytest.approx(0.5)


# --- batches and the loop


def test_every_item_comes_once_per_round_in_a_new_order():
    batches = shuffled_batches(10, 3, generator=torch.Generator().manual_seed(0))
    rounds = [torch.cat([next(batches) for _ in range(3)]).tolist() for _ in range(3)]
    for order in rounds:
        assert len(set(order)) == 9
        assert set(order) < set(range(10))
    assert rounds[0] != rounds[1]
    again = shuffled_batches(10, 3, generator=torch.Generator().manual_seed(0))
    assert torch.cat([next(again) for _ in range(3)]).tolist() == rounds[0]


def step_down(model, batch):
    return model.weight.square().sum() * batch


def test_train_by_hand():
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 8.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=99.0)
    # gradient 2w; rate 1/4 halves the weight, rate 1/8 takes a quarter off
    losses = train(
        model,
        itertools.repeat(1.0),
        step_down,
        optimizer,
        n_steps=3,
        rate=lambda step: {1: 0.25, 2: 0.25, 3: 0.125}[step],
    )
    assert losses == [64.0, 16.0, 4.0]
    assert model.weight.item() == 1.5
    assert not model.training


def test_train_clips_the_whole_gradient():
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 8.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    train(model, [1.0], step_down, optimizer, n_steps=1, clip=0.5)
    assert model.weight.item() == pytest.approx(7.5)


def test_train_is_in_training_mode_and_takes_no_batch_too_many():
    modes, model = [], nn.Linear(1, 1).eval()
    batches = iter([1.0, 1.0, 1.0])

    def loss(model, batch):
        modes.append(model.training)
        return step_down(model, batch)

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, batches, loss, optimizer, n_steps=2)
    assert modes == [True, True]
    assert list(batches) == [1.0]


def test_a_small_model_learns_a_small_text():
    """0 1 2 3 4 0 1 2 …: the next token follows from the last."""
    torch.manual_seed(0)
    model = LanguageModel(5, 16, 1, 2)
    text = torch.arange(40) % 5
    places = shuffled_batches(30, 8, generator=torch.Generator().manual_seed(0))

    def loss(model, start):
        inputs, targets = teacher_forcing(text[start.unsqueeze(-1) + torch.arange(9)])
        return sequence_loss(model(inputs), targets)

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = train(model, places, loss, optimizer, n_steps=60)
    assert losses[0] > 1.0  # ln 5 is 1.6
    assert losses[-1] < 0.05


# --- errors


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: teacher_forcing(torch.ones(2, 1)), r"at least 2, got \(2, 1\)"),
        (lambda: teacher_forcing(torch.ones(5)), r"got \(5,\)"),
        (
            lambda: sequence_loss(torch.ones(2, 3, 4), torch.ones(2, 2).long()),
            r"logits \(2, 3, 4\) and targets \(2, 2\)",
        ),
        (
            lambda: sequence_loss(
                torch.ones(2, 3, 4), torch.ones(2, 3).long(), mask=torch.ones(2, 3)
            ),
            r"torch.bool of shape \(2, 3\), got torch.float32",
        ),
        (
            lambda: sequence_loss(
                torch.ones(2, 3, 4), torch.ones(2, 3).long(), mask=torch.ones(3) > 0
            ),
            r"of shape \(2, 3\), got torch.bool of shape \(3,\)",
        ),
        (
            lambda: sequence_loss(torch.zeros(2, 3, 5), torch.zeros(2, 3)),
            r"targets must be int32 or int64, got torch\.float32",
        ),
        (lambda: inverse_sqrt_rate(0, d_model=4, warmup=3), "step must be 1 or more, got step=0"),
        (lambda: warmup_cosine(1, warmup=5, total=5), "warmup=5, total=5"),
        (lambda: warmup_cosine(0, warmup=1, total=5), "step=0"),
        (
            lambda: shuffled_batches(3, 4, generator=torch.Generator()),
            "batch_size=4 must be 1 or more, and at most 3",
        ),
        (lambda: train(nn.Linear(1, 1), [], step_down, None, n_steps=0), "n_steps .* got 0"),
        (
            lambda: train(
                (model := nn.Linear(1, 1)),
                [1.0],
                step_down,
                torch.optim.SGD(model.parameters()),
                n_steps=2,
            ),
            "ran out after 1 of n_steps=2",
        ),
    ],
)
def test_bad_calls_are_refused(call, match):
    with pytest.raises(ValueError, match=match):
        call()
