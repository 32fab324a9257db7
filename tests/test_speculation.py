"""Tests of :mod:`lib.speculation`."""

import itertools
from functools import partial

import pytest
import torch

from lib.caches import BlockPool, PagedCache, QuantizedCache, WindowCache
from lib.generation import generate
from lib.rope import RotaryPosition
from lib.sampling import sample
from lib.speculation import (
    Draft,
    ModelDraft,
    accept_greedy,
    accept_sampled,
    acceptance,
    common_prefix,
    expected_tokens,
    prompt_lookup,
    residual,
    speculate,
)
from lib.transformer import LanguageModel

VOCAB = 7


def make_model(seed=0, vocab=VOCAB, sharp=1.0):
    torch.manual_seed(seed)
    position = RotaryPosition(4)
    model = LanguageModel(vocab, 8, 1, 2, d_ff=8, position=position, output_scale=sharp)
    return model.double().eval().requires_grad_(False)


def random_distributions(rows, vocab, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(rows, vocab, generator=generator, dtype=torch.float64).softmax(-1)


# --- greedy


@pytest.mark.parametrize(
    ("draft", "expected"),
    [
        ([], [2]),
        ([2, 0, 1], [2, 0, 1, 3]),
        ([2, 0, 4], [2, 0, 1]),
        ([1, 0, 1], [2]),  # the rest would fit again, and must not count
    ],
)
def test_greedy_acceptance_by_hand(draft, expected):
    logits = torch.eye(5)[[2, 0, 1, 3]][: len(draft) + 1]
    assert accept_greedy(logits, torch.tensor(draft, dtype=torch.int64)).tolist() == expected


class Oracle:
    """Guesses the true tokens, but every ``wrong``-th one is another one."""

    def __init__(self, text, wrong):
        self.text, self.wrong = text, wrong

    def __call__(self, tokens, n_draft):
        places = torch.arange(len(tokens), len(tokens) + n_draft)
        return Draft((self.text[places] + (places % self.wrong == 0)) % VOCAB)


@pytest.mark.parametrize("make_cache", [None, PagedCache, partial(WindowCache, window=100)])
@pytest.mark.parametrize("wrong", [1, 3, 1000])
@pytest.mark.parametrize("n_draft", [0, 1, 4])
def test_greedy_tokens_are_those_of_the_loop(make_cache, wrong, n_draft):
    model = make_model(sharp=3.0)
    prompt = torch.tensor([[1, 5, 2, 2]])
    expected = generate(model, prompt, 23)[0]
    text = torch.cat([prompt[0], expected])
    result = speculate(
        model, prompt, 23, Oracle(text, wrong), n_draft=n_draft, make_cache=make_cache
    )
    assert result.tokens.tolist() == expected.tolist()
    assert result.passes + result.accepted == 23  # a pass gives one more than it accepts
    if wrong == 1 or n_draft == 0:
        assert result.passes == 23
    if wrong == 1000:
        assert result.passes == -(-23 // (n_draft + 1))
        assert result.accepted == result.drafted


@pytest.mark.parametrize("wrong", [1, 3, 1000])
@pytest.mark.parametrize("n_draft", [0, 1, 4])
def test_an_end_token_ends_the_text_where_generate_does(wrong, n_draft):
    """Every token of the text in turn, so that an end is anywhere in a draft, and in none."""
    model = make_model(sharp=3.0)
    prompt = torch.tensor([[1, 5, 2, 2]])
    text = torch.cat([prompt[0], generate(model, prompt, 23)[0]])
    for end_token in range(VOCAB):
        expected = generate(model, prompt, 23, end_token=end_token)[0].tolist()
        draft = Oracle(text, wrong)
        result = speculate(model, prompt, 23, draft, n_draft=n_draft, end_token=end_token)
        assert result.tokens.tolist() == expected
        assert result.passes + result.accepted >= len(expected)
        if end_token not in expected:
            assert result.passes + result.accepted == 23


@pytest.mark.parametrize("fails", [False, True])
def test_blocks_of_a_shared_pool_are_given_back(fails):
    model = make_model()
    pool = BlockPool(40, 2, 4, 4, dtype=torch.float64)
    prompt, calls = torch.tensor([[1, 5, 2, 2]]), []

    def draft(tokens, n_draft):
        calls.append(pool.n_used)
        if fails and len(calls) > 2:
            raise KeyError("no draft")
        return prompt_lookup(tokens, n_draft)

    try:
        speculate(model, prompt, 9, draft, make_cache=partial(PagedCache, pool=pool))
    except KeyError:
        assert fails
    assert max(calls) > 0
    assert pool.n_used == 0


def test_refused_drafts_do_not_change_what_a_quantized_cache_holds():
    """With ``undo``, refused drafts leave the tokens of the loop over the same cache."""
    model = make_model(sharp=3.0)
    prompt = torch.tensor([[1, 5, 2, 2]])
    make_cache = partial(QuantizedCache, bits=4, group=8, undo=4)
    state = model.decode_state(1, 40, make_cache=make_cache)
    tokens = prompt
    for _ in range(30):
        logits = model(tokens[:, state.length :], state=state, last_only=True)[:, -1]
        tokens = torch.cat([tokens, logits.argmax(-1, keepdim=True)], dim=1)
    wrong = Oracle(tokens[0], 1)  # all are refused
    result = speculate(model, prompt, 30, wrong, n_draft=3, make_cache=make_cache)
    assert result.passes == 30
    assert result.tokens.tolist() == tokens[0, 4:].tolist()


def test_prompt_lookup_and_a_model_write_the_same_text_in_fewer_passes():
    model = make_model(sharp=3.0)
    prompt = torch.tensor([[1, 5, 2, 2]])
    expected = generate(model, prompt, 30)[0].tolist()
    itself = ModelDraft(model, 40)
    other = ModelDraft(make_model(1), 40)
    results = [speculate(model, prompt, 30, draft) for draft in (prompt_lookup, itself, other)]
    assert [result.tokens.tolist() for result in results] == [expected] * 3
    assert results[0].passes < 30
    assert results[1].passes == 6  # five tokens a pass
    assert results[2].accepted < results[1].accepted


def test_prompt_lookup_by_hand():
    tokens = torch.tensor([1, 2, 3, 4, 9, 2, 3, 5, 1, 2, 3])
    assert prompt_lookup(tokens, 4).tokens.tolist() == [4, 9, 2, 3]  # 1, 2, 3 occurred before
    assert prompt_lookup(tokens, 4, longest=2).tokens.tolist() == [5, 1, 2, 3]  # the latest 2, 3
    assert prompt_lookup(torch.tensor([1, 2, 3]), 4).tokens.tolist() == []
    assert prompt_lookup(torch.tensor([6, 6]), 4).tokens.tolist() == [6]
    assert prompt_lookup(torch.tensor([6]), 4).tokens.tolist() == []
    assert prompt_lookup(tokens, 0).tokens.tolist() == []


def test_a_draft_model_reads_each_token_once():
    model = make_model()
    draft, lengths = ModelDraft(model, 30), []
    model.register_forward_pre_hook(lambda _, args: lengths.append(args[0].shape[1]))
    text = torch.tensor([1, 2, 3, 4, 5])
    first = draft(text, 3).tokens
    assert lengths == [5, 1, 1]
    more = torch.cat([text, first[:2], (first[2:] + 1) % VOCAB])  # two of three were accepted
    again = draft(more, 2).tokens
    assert lengths[3:] == [1, 1]
    assert again.tolist() == generate(model, more[None], 2)[0].tolist()


def test_the_model_that_checks_reads_each_token_once():
    """The prompt, the drafts, and after each pass the one token that no draft had."""
    model, lengths = make_model(sharp=3.0), []
    prompt = torch.tensor([[1, 5, 2, 2]])
    text = torch.cat([prompt[0], generate(model, prompt, 23)[0]])
    model.register_forward_pre_hook(lambda _, args: lengths.append(args[0].shape[1]))
    result = speculate(model, prompt, 23, Oracle(text, 3))
    assert len(lengths) == result.passes
    assert sum(lengths) == 4 + result.drafted + result.passes - 1


@pytest.mark.parametrize("bad", [[0, 1, 2, 9], list(range(6)) * 2])
def test_a_draft_model_goes_on_after_a_call_that_failed(bad):
    """A token out of the vocabulary, and a text that is too long."""
    model = make_model()
    draft, text = ModelDraft(model, 10), torch.tensor([0, 1, 2, 3, 4, 5])
    draft(text, 2)
    with pytest.raises((IndexError, ValueError)):
        draft(torch.tensor([0, 1, 6, *bad]), 2)
    assert draft(text, 2).tokens.tolist() == generate(model, text[None], 2)[0].tolist()


def test_a_draft_model_reports_what_it_drew_from():
    model, draft = make_model(sharp=3.0), ModelDraft(make_model(sharp=3.0), 12, temperature=0.5)
    for text in ([1, 2, 3], [1, 2, 4, 0, 5, 6, 1], [1, 2]):  # what was refused leaves no trace
        text = torch.tensor(text)
        guess = draft(text, 3)
        logits = model(torch.cat([text, guess.tokens])[None])[0, len(text) - 1 : -1]
        torch.testing.assert_close(guess.probabilities, (logits / 0.5).softmax(-1))
    assert ModelDraft(model, 9)(text, 3).probabilities is None


# --- sampling: exact enumeration


def chain(table, text):
    """A model by hand: the next token's distribution depends on the last two tokens."""
    return table[text[-2], text[-1]]


def enumerate_texts(target, draft, text, length, n_draft):
    """Probabilities of all texts of ``length`` tokens, by every way that a pass can go."""
    if len(text) >= length:
        return {text[:length]: 1.0}
    total, vocab = {}, target.shape[-1]

    def add(longer, probability):
        if probability > 0:
            for end, share in enumerate_texts(target, draft, longer, length, n_draft).items():
                total[end] = total.get(end, 0.0) + probability * share

    for guess in itertools.product(range(vocab), repeat=n_draft):
        weight, so_far = 1.0, text
        for token in guess:
            weight *= float(chain(draft, so_far)[token])
            so_far += (token,)
        so_far = text
        for token in guess:
            p, q = chain(target, so_far), chain(draft, so_far)
            accept = float(acceptance(p, q)[token])
            for other in range(vocab):
                add((*so_far, other), weight * (1 - accept) * float(residual(p, q)[other]))
            weight *= accept
            so_far += (token,)
        for other in range(vocab):
            add((*so_far, other), weight * float(chain(target, so_far)[other]))
    return total


@pytest.mark.parametrize("n_draft", [1, 2])
@pytest.mark.parametrize("seed", [0, 1])
def test_every_text_has_the_models_own_probability(n_draft, seed):
    vocab = 3
    target = random_distributions(9, vocab, seed).view(3, 3, 3)
    draft = random_distributions(9, vocab, seed + 10).view(3, 3, 3)
    target[0, 1] = torch.tensor([0.0, 1.0, 0.0])  # certain, and zero, tokens on both sides
    draft[1, 0] = torch.tensor([0.5, 0.0, 0.5])
    draft[2, 2] = target[2, 2]
    texts = enumerate_texts(target, draft, (0, 1), 5, n_draft)
    assert sum(texts.values()) == pytest.approx(1.0)
    for new in itertools.product(range(vocab), repeat=3):
        text, probability = (0, 1), 1.0
        for token in new:
            probability *= float(chain(target, text)[token])
            text += (token,)
        assert texts.get(text, 0.0) == pytest.approx(probability, abs=1e-12)


def test_acceptance_and_residual_by_hand():
    p = torch.tensor([0.5, 0.3, 0.2, 0.0])
    q = torch.tensor([0.2, 0.6, 0.2, 0.0])
    torch.testing.assert_close(acceptance(p, q), torch.tensor([1.0, 0.5, 1.0, 1.0]))
    torch.testing.assert_close(residual(p, q), torch.tensor([1.0, 0.0, 0.0, 0.0]))
    torch.testing.assert_close(residual(p, p), p)
    assert float((q * acceptance(p, q)).sum()) == pytest.approx(0.7)  # 1 - total variation


# --- sampling: by drawing


def chi_square(counts, expected):
    return float(((counts - expected).square() / expected).sum())


@pytest.mark.parametrize("certain", [False, True])
def test_accept_sampled_draws_from_the_target(certain):
    """Counts of the first two tokens, 8 degrees of freedom: above 26.1 once in a thousand."""
    vocab, draws = 3, 4000
    generator = torch.Generator().manual_seed(5)
    target = random_distributions(3, vocab, 2)  # does not depend on the draft's tokens here
    q = random_distributions(2, vocab, 3).square()
    q = q / q.sum(-1, keepdim=True)
    counts = torch.zeros(vocab, vocab, dtype=torch.float64)
    for _ in range(draws):
        if certain:
            gained = accept_sampled(target, torch.tensor([2, 0]), generator=generator)
        else:
            tokens = torch.multinomial(q, 1, generator=generator)[:, 0]
            gained = accept_sampled(target, tokens, q, generator=generator)
        if len(gained) == 1:  # the next pass would draw it
            gained = torch.cat([gained, torch.multinomial(target[1], 1, generator=generator)])
        counts[gained[0], gained[1]] += 1
    expected = draws * target[0][:, None] * target[1][None]
    assert chi_square(counts, expected) < 26.1
    wrong = draws * q[0][:, None] * q[1][None]
    assert chi_square(counts, wrong) > 100  # the test can tell


@pytest.mark.parametrize("kind", ["model", "lookup"])
def test_speculate_samples_like_the_model(kind):
    vocab, draws, new, temperature = 3, 700, 3, 0.7
    model, small = make_model(2, vocab, sharp=1.5), make_model(3, vocab, sharp=1.5)
    generator = torch.Generator().manual_seed(11)
    prompt = torch.tensor([[0, 1, 0]])
    draft = prompt_lookup
    if kind == "model":
        draft = ModelDraft(small, 8, temperature=1.0, generator=generator)
    options = {"n_draft": 2, "temperature": temperature, "generator": generator}
    counts = torch.zeros(vocab**new, dtype=torch.float64)
    accepted = drafted = 0
    for _ in range(draws):
        result = speculate(model, prompt, new, draft, **options)
        a, b, c = result.tokens.tolist()
        counts[(a * vocab + b) * vocab + c] += 1
        accepted, drafted = accepted + result.accepted, drafted + result.drafted
    texts = torch.tensor(list(itertools.product(range(vocab), repeat=new)))
    whole = torch.cat([prompt.expand(len(texts), -1), texts], dim=1)
    log_p = (model(whole)[:, 2:-1] / temperature).log_softmax(-1)
    p = log_p.gather(2, texts[..., None])[..., 0].sum(1).exp()
    assert 0.1 * drafted < accepted < 0.95 * drafted  # both ways were taken
    assert chi_square(counts, draws * p) < 54.1  # 26 degrees: once in a thousand


def same_seed_twice(seed):
    return (torch.Generator().manual_seed(seed) for _ in range(2))


def test_draws_of_one_seed_are_not_independent():
    """Why :func:`speculate` refuses them: the counts are not the model's, 2 degrees of freedom."""
    p = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    q = p.flip(0)
    counts = torch.zeros(2, 3)
    for row, offset in enumerate((0, 10_000)):
        for seed in range(3000):
            drafts, checks = (torch.Generator().manual_seed(s) for s in (seed + offset, seed))
            token = sample(q.log(), generator=drafts)[None]
            gained = accept_sampled(torch.stack([p, p]), token, q[None], generator=checks)
            counts[row, gained[0]] += 1
    biased, independent = (chi_square(row, 3000 * p) for row in counts)
    assert independent < 13.8  # once in a thousand
    assert biased > 100


def test_a_draft_model_with_the_same_seed_is_refused():
    model, prompt = make_model(), torch.tensor([[1, 2]])
    one, other = same_seed_twice(3)

    def write(draft, generator, temperature=1.0):
        return speculate(model, prompt, 3, draft, temperature=temperature, generator=generator)

    draft = ModelDraft(model, 8, temperature=1.0, generator=one)
    with pytest.raises(ValueError, match="has the same seed, 3, so its draws"):
        write(draft, other)
    write(draft, one)
    write(draft, None)
    write(draft, other.manual_seed(4))
    one, other = same_seed_twice(3)
    write(ModelDraft(model, 8, temperature=1.0, generator=one), other, temperature=0.0)
    write(ModelDraft(model, 8, generator=one), other)  # nothing is drawn


# --- the rest


def test_expected_tokens():
    assert expected_tokens(0.0, 5) == 1.0
    assert expected_tokens(1.0, 5) == 6.0
    rate = 0.3
    stops = [(1 - rate) * rate**j * (j + 1) for j in range(4)]
    assert expected_tokens(rate, 4) == pytest.approx(sum(stops) + rate**4 * 5)


def test_common_prefix():
    a = torch.tensor([1, 2, 3, 4])
    assert common_prefix(a, torch.tensor([1, 2, 9, 4])) == 2
    assert common_prefix(a, a[:3]) == 3
    assert common_prefix(a[:0], a) == 0


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: accept_greedy(torch.ones(2, 3), torch.tensor([0, 1])), r"logits has shape \(2, 3"),
        (lambda: accept_sampled(torch.ones(2, 3), torch.tensor([0, 1])), "target has shape"),
        (
            lambda: accept_sampled(torch.ones(2, 3), torch.tensor([0]), torch.ones(2, 3)),
            r"need \(1, 3\)",
        ),
        (lambda: expected_tokens(1.5, 2), "rate from 0 to 1"),
        (lambda: prompt_lookup(torch.tensor([1]), 2, longest=0), "longest"),
        (lambda: speculate(None, torch.ones(2, 3), 1, prompt_lookup), r"\(1, prompt_len\)"),
        (lambda: speculate(None, torch.ones(1, 3), 0, prompt_lookup), "max_new_tokens"),
        (
            lambda: speculate(None, torch.ones(1, 3), 1, prompt_lookup, temperature=-1.0),
            "temperature must be 0 or more",
        ),
        (lambda: speculate(None, torch.ones(1, 3), 1, prompt_lookup, n_draft=-1), "got -1"),
        (
            lambda: speculate(make_model(), torch.ones(1, 3), 1, prompt_lookup, end_token=VOCAB),
            "end_token=7 is not among the 7 tokens",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, match):
    with pytest.raises(ValueError, match=match):
        call()
