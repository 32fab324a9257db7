"""Tests of :mod:`lib.sampling`: cases by hand, and what defines each set of tokens."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lib.generation import generate, pick_token
from lib.sampling import min_p, sample, temperature, top_k, top_p
from lib.transformer import LanguageModel

P = torch.tensor([0.05, 0.4, 0.15, 0.3, 0.1])  # of the tokens 0 to 4; in order: 1, 3, 2, 4, 0
ROWS = torch.stack((P, P.flip(0)))


def kept_tokens(logits):
    return [row.isfinite().nonzero().flatten().tolist() for row in logits]


@pytest.mark.parametrize(
    ("keep", "tokens"),
    [
        (lambda x: top_k(x, 1), [1]),
        (lambda x: top_k(x, 3), [1, 2, 3]),
        (lambda x: top_k(x, 5), [0, 1, 2, 3, 4]),
        (lambda x: top_k(x, 99), [0, 1, 2, 3, 4]),
        (lambda x: top_p(x, 0.01), [1]),
        (lambda x: top_p(x, 0.39), [1]),
        (lambda x: top_p(x, 0.41), [1, 3]),
        (lambda x: top_p(x, 0.84), [1, 2, 3]),
        (lambda x: top_p(x, 1.0), [0, 1, 2, 3, 4]),
        (lambda x: min_p(x, 0.0), [0, 1, 2, 3, 4]),
        (lambda x: min_p(x, 0.24), [1, 2, 3, 4]),
        (lambda x: min_p(x, 0.74), [1, 3]),
        (lambda x: min_p(x, 1.0), [1]),
    ],
)
def test_what_is_kept_by_hand(keep, tokens):
    logits = ROWS.log() + torch.tensor([[3.0], [-50.0]])  # a constant changes no probability
    changed = keep(logits)
    assert kept_tokens(changed) == [tokens, sorted(4 - token for token in tokens)]
    assert torch.equal(changed[changed.isfinite()], logits[changed.isfinite()])
    assert logits.isfinite().all()  # the input is as it was


def test_equal_logits_are_kept_together_by_k_and_in_order_by_p():
    equal = torch.zeros(4)
    assert kept_tokens(top_k(equal, 2)[None]) == [[0, 1, 2, 3]]
    assert kept_tokens(min_p(equal, 1.0)[None]) == [[0, 1, 2, 3]]
    assert kept_tokens(top_p(equal, 0.5)[None]) == [[0, 1]]


def test_a_temperature_is_a_power_of_the_probabilities():
    for t in (0.5, 1.0, 2.0):
        power = ROWS ** (1 / t)
        expected = power / power.sum(dim=-1, keepdim=True)
        torch.testing.assert_close(temperature(ROWS.log(), t).softmax(dim=-1), expected)


numbers = st.lists(st.floats(-20, 20, width=32), min_size=1, max_size=30)


@given(numbers, st.floats(0.01, 0.99))
def test_no_smaller_set_of_the_likeliest_has_the_probability(row, p):
    logits = torch.tensor(row, dtype=torch.float64)
    probabilities, inside = logits.softmax(-1), top_p(logits, p).isfinite()
    total = float(probabilities[inside].sum())
    assert total >= p - 1e-12
    assert total - float(probabilities[inside].min()) < p + 1e-12
    assert inside.all() or probabilities[inside].min() >= probabilities[~inside].max()


@given(numbers, st.floats(0.0, 1.0))
def test_min_p_compares_with_the_likeliest(row, p):
    logits = torch.tensor(row, dtype=torch.float64)
    probabilities, inside = logits.softmax(-1), min_p(logits, p).isfinite()
    ratio = probabilities / probabilities.max()
    assert inside[logits.argmax()]
    assert (ratio[inside] >= p * (1 - 1e-9)).all()
    assert (ratio[~inside] <= p * (1 + 1e-9)).all()


@given(numbers, st.integers(1, 40))
def test_top_k_keeps_k_and_what_equals_the_last(row, k):
    logits = torch.tensor(row)
    inside = top_k(logits, k).isfinite()
    least = logits[inside].min()
    assert int(inside.sum()) >= min(k, len(row))
    assert int((logits > least).sum()) < k
    assert torch.equal(inside, logits >= least)


def test_samples_have_the_probabilities_that_are_left():
    generator = torch.Generator().manual_seed(0)
    left = top_k(P.log(), 3).expand(40_000, 5)
    drawn = torch.bincount(sample(left, generator=generator), minlength=5) / len(left)
    expected = P * torch.tensor([0, 1, 1, 1, 0]) / 0.85
    # four standard deviations of a share over 40 000 draws: at most 0.01
    torch.testing.assert_close(drawn, expected, rtol=0, atol=0.01)
    assert drawn[0] == drawn[4] == 0


def test_any_number_of_dimensions_and_narrow_formats():
    logits = ROWS.log().view(2, 1, 5).bfloat16()
    for changed in (top_k(logits, 2), top_p(logits, 0.6), min_p(logits, 0.5)):
        assert (changed.shape, changed.dtype) == (logits.shape, torch.bfloat16)
        assert kept_tokens(changed[:, 0]) == [[1, 3], [1, 3]]
    assert temperature(logits, 2.0).dtype == torch.float32
    assert sample(logits).shape == (2, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: top_k(x, 0), "k must be at least 1, got 0"),
        (lambda x: top_p(x, 0.0), r"p must be above 0 and at most 1, got 0\.0"),
        (lambda x: top_p(x, math.nan), "p must be above 0 and at most 1, got nan"),
        (lambda x: min_p(x, 1.5), r"p must be from 0 to 1, got 1\.5"),
        (lambda x: temperature(x, 0.0), r"temperature must be above 0, got 0\.0"),
        (lambda x: temperature(x, math.nan), "temperature must be above 0, got nan"),
        (lambda x: top_k(x.long(), 1), r"floating point .* got torch.int64 of shape \(2, 5\)"),
        (lambda x: sample(x[:, :0]), r"got torch.float32 of shape \(2, 0\)"),
    ],
)
def test_bad_calls_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(ROWS.log())


# --- in the decoding loop


def test_generate_asks_choose_for_each_token():
    torch.manual_seed(0)
    model, prompt = LanguageModel(7, 12, 2, 3), torch.tensor([[1, 2, 3], [6, 5, 4]])
    assert torch.equal(
        generate(model, prompt, 5, choose=lambda logits: logits.argmax(-1)),
        generate(model, prompt, 5),
    )
    least = generate(model, prompt, 5, choose=lambda logits: logits.argmin(-1))
    first = model(prompt)[:, -1].argmin(-1)
    assert torch.equal(least[:, 0], first)

    def likely_two(logits):
        return sample(top_k(temperature(logits, 1.5), 2), generator=generator)

    generator = torch.Generator().manual_seed(3)
    drawn = generate(model, prompt, 30, choose=likely_two)
    full = model(torch.cat((prompt, drawn), dim=1))[:, prompt.shape[1] - 1 : -1]
    rank = (full > full.gather(-1, drawn[..., None])).sum(-1)
    assert set(rank.flatten().tolist()) == {0, 1}
    with pytest.raises(ValueError, match=r"choose or temperature=1\.0 .* got both"):
        generate(model, prompt, 5, choose=likely_two, temperature=1.0)
    with pytest.raises(ValueError, match="got both"):
        generate(model, prompt, 5, choose=likely_two, generator=generator)


def test_pick_token_draws_as_before():
    """The same numbers from the same generator: recorded texts do not change."""
    logits = torch.tensor([[0.5, -1.0, 2.0]] * 6)
    weights = torch.softmax(logits / 0.7, dim=-1)
    noise = torch.empty_like(weights).exponential_(generator=torch.Generator().manual_seed(5))
    drawn = pick_token(logits, temperature=0.7, generator=torch.Generator().manual_seed(5))
    assert torch.equal(drawn, (weights / noise).argmax(-1))
