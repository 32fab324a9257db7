"""Tests of :mod:`lib.generation`; that caching changes nothing is in ``test_schemes.py`` too."""

import math
import re

import pytest
import torch

from lib.alibi import AlibiPosition
from lib.generation import generate, pick_token
from lib.learned import LearnedPosition
from lib.rope import RotaryPosition
from lib.transformer import LanguageModel, Seq2Seq

VOCAB = 7
END = 0


def make_lm(**options):
    torch.manual_seed(0)
    return LanguageModel(VOCAB, 12, 2, 3, position=AlibiPosition(3), **options)


class Script(LanguageModel):
    """Says what it is told to: after token t comes t + 1, after the last one 0."""

    def __init__(self):
        super().__init__(VOCAB, 2, 1, 1)
        self.read = []

    def forward(self, tokens, *, mask=None, state=None, last_only=False, **kwargs):
        self.read.append(tokens.shape[1])
        super().forward(tokens, mask=mask, state=state)
        self.state = state
        logits = torch.nn.functional.one_hot((tokens + 1) % VOCAB, VOCAB).float()
        return logits[:, -1:] if last_only else logits


# --- by hand


def test_a_script_is_followed():
    prompt = torch.tensor([[6, 1], [0, 3]])
    assert generate(Script(), prompt, 3).tolist() == [[2, 3, 4], [4, 5, 6]]


def test_the_cached_loop_reads_each_token_once():
    model, prompt = Script(), torch.tensor([[1, 1, 1, 2]])
    generate(model, prompt, 3)
    assert model.read == [4, 1, 1]
    assert model.state.length == model.state.max_len == 6  # the last token is never read
    model.read.clear()
    generate(model, prompt, 3, use_cache=False)
    assert model.read == [4, 5, 6]


@pytest.mark.parametrize("use_cache", [False, True])
def test_rows_end_early_and_the_longest_decides(use_cache):
    prompt = torch.tensor([[4], [2], [6]])
    new = generate(Script(), prompt, 9, end_token=END, use_cache=use_cache)
    # 5 6 0 | 3 4 5 6 0 | 0: with their ends, 3, 5 and 1 tokens
    assert new.tolist() == [[5, 6, 0, 0, 0], [3, 4, 5, 6, 0], [0, 0, 0, 0, 0]]
    assert generate(Script(), prompt, 2, end_token=END).tolist() == [[5, 6], [3, 4], [0, 0]]
    assert generate(Script(), prompt[2:], 9, end_token=END).tolist() == [[0]]
    # without an end token 0 is a token like any other
    assert generate(Script(), prompt[2:], 4).tolist() == [[0, 1, 2, 3]]


def test_how_often_the_loop_looks_for_the_end_changes_no_result(monkeypatch):
    prompt = torch.tensor([[4], [2], [6]])
    expected, model = generate(Script(), prompt, 20, end_token=END), Script()
    assert expected.shape == (3, 5)

    def looks_every(n):  # on a GPU, every 16 steps
        monkeypatch.setattr("lib.generation.CHECK_EVERY", {"cpu": n})

    for n in (1, 4, 16, 100):
        looks_every(n)
        model.read.clear()
        assert torch.equal(generate(model, prompt, 20, end_token=END), expected)
        assert len(model.read) == min(20, -(-5 // n) * n)


@pytest.mark.parametrize("end_token", [None, 2])
@pytest.mark.parametrize("use_cache", [False, True])
def test_greedy_is_the_likeliest_token_of_the_plain_forward(end_token, use_cache):
    model, tokens = make_lm().double(), torch.tensor([[1, 2, 3], [6, 5, 4]])
    for _ in range(6):
        tokens = torch.cat([tokens, model(tokens)[:, -1].argmax(-1, keepdim=True)], dim=1)
    new = generate(model, tokens[:, :3], 6, end_token=end_token, use_cache=use_cache)
    for row, expected in zip(new.tolist(), tokens[:, 3:].tolist(), strict=True):
        if end_token in expected:
            expected = expected[: expected.index(end_token)] + [end_token] * 6
        assert row == expected[: len(row)]


# --- drawing


def test_drawing_follows_the_probabilities():
    generator = torch.Generator().manual_seed(0)
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).log().expand(40_000, 4)
    for temperature in (1.0, 0.5, 2.0):
        drawn = pick_token(logits, temperature=temperature, generator=generator)
        share = torch.bincount(drawn, minlength=4) / len(drawn)
        expected = torch.softmax(logits[0] / temperature, dim=-1)
        # four standard deviations of a share over 40 000 draws: at most 0.01
        torch.testing.assert_close(share, expected, rtol=0, atol=0.01)
    never = torch.tensor([[0.0, -torch.inf]]).expand(1000, 2)
    assert (pick_token(never, temperature=1.0, generator=generator) == 0).all()


def test_drawing_repeats_with_its_generator_and_without_a_cache():
    model, prompt = make_lm().double(), torch.tensor([[1, 2, 3], [6, 5, 4]])

    def draw(seed, use_cache=True):
        generator = torch.Generator().manual_seed(seed)
        return generate(
            model, prompt, 20, temperature=1.5, generator=generator, use_cache=use_cache
        )

    assert torch.equal(draw(1), draw(1))
    assert torch.equal(draw(1), draw(1, use_cache=False))
    assert not torch.equal(draw(1), draw(2))
    torch.manual_seed(7)
    before = torch.get_rng_state()
    draw(1)
    assert torch.equal(torch.get_rng_state(), before)  # torch's own is not touched


def test_almost_zero_temperature_is_greedy():
    model, prompt = make_lm().double(), torch.tensor([[1, 2, 3]])
    generator = torch.Generator().manual_seed(0)
    cold = generate(model, prompt, 8, temperature=1e-4, generator=generator)
    assert torch.equal(cold, generate(model, prompt, 8))


# --- modes


def test_decoding_is_in_evaluation_mode_and_without_gradients():
    model = make_lm(dropout=0.5).train()
    prompt = torch.tensor([[1, 2, 3]])
    first = generate(model, prompt, 8)
    assert torch.equal(first, generate(model, prompt, 8))
    assert model.training
    model.eval()
    assert torch.equal(first, generate(model, prompt, 8))
    assert not model.training
    assert not first.requires_grad
    first.add_(0)  # an ordinary tensor, which may be written to
    with pytest.raises(ValueError, match="tokens go from 9 to 9"):
        generate(model.train(), prompt * 0 + 9, 8)
    assert model.training  # an error leaves the mode alone too
    model.blocks[0].eval()
    generate(model, prompt, 1)
    assert model.training  # nor are its parts' modes changed
    assert model.blocks[1].training
    assert not any(module.training for module in model.blocks[0].modules())


# --- errors


def test_bad_calls_are_refused():
    lm, pair = make_lm(), Seq2Seq(5, VOCAB, 12, 1, 3)
    learned = LanguageModel(VOCAB, 12, 1, 3, position=LearnedPosition(6, 12))
    prompt, source = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([[1, 2], [3, 4]])
    holes = torch.tensor([[True, False, True], [True, True, True]])
    for call, match in [
        (lambda: generate(lm, prompt[0], 2), r"prompt must be .* got \(3,\)"),
        (lambda: generate(lm, prompt[:, :0], 2), r"at least 1, got \(2, 0\)"),
        (lambda: generate(lm, prompt, 0), "max_new_tokens must be at least 1, got 0"),
        (lambda: generate(lm, prompt, 2, temperature=-1.0), "0 or more, got -1.0"),
        (lambda: generate(lm, prompt, 2, temperature=math.nan), "0 or more, got nan"),
        (lambda: generate(lm, prompt.float(), 2), "got torch.float32"),
        (lambda: generate(lm, prompt, 2, encoder_input=source), "LanguageModel takes no enc"),
        (lambda: generate(lm, prompt, 2, encoder_mask=source > 0), "encoder_mask .* no encoder_"),
        (lambda: generate(pair, prompt, 2), "Seq2Seq needs encoder_input"),
        (lambda: generate(pair, prompt, 2, encoder_input=source[:1]), "has 1 rows but prompt 2"),
        (
            lambda: generate(lm, prompt, 2, prompt_mask=holes.int()),
            r"torch.bool of shape \(2, 3\), got torch.int32",
        ),
        (lambda: generate(lm, prompt, 2, prompt_mask=holes[:1]), r"of shape \(1, 3\)"),
        (lambda: generate(lm, prompt, 2, prompt_mask=holes), r"\[1, 0, 1\].*to the left"),
        (
            lambda: generate(lm, prompt, 2, prompt_mask=holes.flip(1) & False),
            "False on the left and True on the right",
        ),
        (
            lambda: generate(lm, prompt, 2, prompt_mask=torch.tensor([[True, True, False]] * 2)),
            "move the padding to the left",
        ),
        (lambda: generate(learned, prompt, 5), "3 prompt tokens and max_new_tokens=5 need 7"),
    ]:
        with pytest.raises(ValueError, match=match):
            call()
    # the last token is never read: three and four more need six positions
    assert generate(learned, prompt, 4).shape == (2, 4)
    mask = torch.tensor([[False, True, True]] * 2)
    assert generate(learned, prompt, 5, prompt_mask=mask).shape == (2, 5)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu():
    model, prompt = make_lm().double(), torch.tensor([[1, 2, 3], [6, 5, 4]])
    expected = generate(model, prompt, 40, end_token=2)
    model, prompt = model.cuda(), prompt.cuda()
    assert torch.equal(generate(model, prompt, 40, end_token=2).cpu(), expected)
    generator = torch.Generator("cuda").manual_seed(0)
    assert generate(model, prompt, 4, temperature=1.0, generator=generator).is_cuda


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_loop_does_not_wait_for_the_gpu():
    model, prompt = make_lm().cuda(), torch.tensor([[1, 2, 3]], device="cuda")
    generate(model, prompt, 4)
    torch.cuda.set_sync_debug_mode("error")
    try:
        generate(model, prompt, 40)
        generate(model, prompt, 40, temperature=1.0)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("end_token", [-1, VOCAB])
def test_a_row_that_could_never_end_is_refused(end_token):
    with pytest.raises(ValueError, match=f"end_token={end_token} is not among the {VOCAB} tokens"):
        generate(make_lm(), torch.tensor([[1]]), 2, end_token=end_token)


@pytest.mark.parametrize("temperature", [-0.5, math.nan])
def test_a_temperature_below_zero_is_refused(temperature):
    with pytest.raises(ValueError, match=f"temperature must be 0 or more, got {temperature}"):
        pick_token(torch.zeros(2, 3), temperature=temperature)


@pytest.mark.parametrize("shape", [(3,), (2, 1, 3), (2, 0)])
def test_one_row_of_logits_for_each_text(shape):
    with pytest.raises(ValueError, match=re.escape(f"(batch, vocab_size), got {shape}")):
        pick_token(torch.zeros(shape))


# --- autocast


@pytest.mark.parametrize("position", [AlibiPosition(3), RotaryPosition(4), None])
def test_the_cache_has_autocasts_dtype(position):
    torch.manual_seed(0)
    model, tokens = LanguageModel(VOCAB, 12, 2, 3, position=position), torch.tensor([[4, 2, 6, 1]])
    outside = model.decode_state(1, 9)
    with torch.autocast("cpu", torch.bfloat16):
        assert generate(model, tokens, 3).shape == (1, 3)
        full = model(tokens)
        with torch.no_grad():
            state = model.decode_state(1, 4)
            cached = torch.cat([model(tokens[:, i : i + 2], state=state) for i in (0, 2)], dim=1)
            with pytest.raises(ValueError, match=r"k is torch\.bfloat16 .* autocast"):
                model(tokens, state=outside)
    assert (cached.dtype, outside.length) == (torch.bfloat16, 0)
    torch.testing.assert_close(cached, full, rtol=0.05, atol=0.05)  # a few roundings to 8 bits
    full.float().square().mean().backward()


def test_a_seq2seq_decodes_under_autocast():
    torch.manual_seed(0)
    model, tokens = Seq2Seq(VOCAB, VOCAB, 12, 2, 3), torch.tensor([[4, 2, 6, 1]])
    with torch.autocast("cpu", torch.bfloat16):
        assert generate(model, tokens[:, :1], 3, encoder_input=tokens).shape == (1, 3)
