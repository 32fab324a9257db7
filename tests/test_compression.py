"""The measurement of what smaller caches cost: what is read, and how many bytes it takes."""

import pytest
import torch

from benchmarks import compression
from lib import results
from lib.kv_cache import KVCache, kv_cache_bytes
from lib.training import sequence_loss

KINDS = list(compression.KINDS)


@pytest.fixture(scope="module")
def tokens():
    """Four rows of words of the validation text, one more than is read."""
    return compression.corpus().valid[: 4 * 41].view(4, 41)


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_through_a_full_cache_give_the_loss_of_one_pass(kind, tokens):
    model = compression.build(kind, 0).eval()
    with torch.no_grad():
        expected = sequence_loss(model(tokens[:, :-1]), tokens[:, 1:]).item()
    for piece in (8, 40):
        loss, _ = compression.read(model, tokens, piece, KVCache)
        assert loss == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("kind", "numbers"), list(zip(KINDS, (256, 128, 64, 32, 64, 32), strict=True))
)
def test_a_full_cache_takes_the_bytes_of_the_formula(kind, numbers, tokens):
    """Two layers of float32; the latent and its rotated key count as eq-mla-bytes says."""
    _, n_bytes = compression.read(compression.build(kind, 0).eval(), tokens, 8, KVCache)
    assert n_bytes == 2 * numbers * 4


def test_a_window_forgets_and_holds_its_sinks_in_the_same_bytes(tokens):
    model = compression.build("MQA", 0).eval()
    caches = compression.caches((8,))
    measured = {name: compression.read(model, tokens, 8, make) for name, make in caches.items()}
    assert measured["window 8"][1] == measured["window 4 + 4"][1] == 2 * 32 * 4 * (8 + 8) / 40
    assert measured["8 bits"][1] > measured["4 bits"][1]
    losses = {name: loss for name, (loss, _) in measured.items()}
    assert len(set(losses.values())) == 5
    assert abs(losses["8 bits"] - losses["full"]) < abs(losses["4 bits"] - losses["full"])


@pytest.mark.parametrize("kind", KINDS)
def test_latent_attention_begins_with_weights_drawn_as_the_others(kind):
    """Xavier-uniform, as in lib.stack: no weight beyond its bound, and some near it."""
    attention = compression.build(kind, 0).blocks[1].self_attention
    for name, weight in attention.named_parameters():
        if weight.dim() == 2:
            bound = (6 / sum(weight.shape)) ** 0.5
            assert 0.9 * bound < weight.abs().max() <= bound, name


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_enters_the_scores_is_quantized_per_channel(kind):
    """The keys, and of latent attention the rotated key, which is in the values' place."""
    model = compression.build(kind, 0)
    make_cache = compression.caches(())["4 bits"]
    cache = compression.empty_state(model, 1, 32, make_cache).caches[0]
    k = torch.rand(1, cache.n_kv_heads, 32, cache.head_dim)
    v = torch.rand(1, cache.n_kv_heads, 32, cache.value_dim)
    k[..., 1], v[..., 1] = k[..., 1] + 50.0, v[..., 1] + 50.0  # a channel that is always large
    far = [
        (near - x).abs().max() > 1 / 15 for near, x in zip(cache.update(k, v), (k, v), strict=True)
    ]
    assert far == [False, "MLA" not in kind]


def test_the_seed_decides_the_weights():
    first, again, other = (compression.build("MHA", seed).embedding.weight for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_text_that_is_too_short_is_refused(language_model, monkeypatch):
    monkeypatch.setattr(compression, "real_model", lambda: language_model)
    arm = {"model": compression.REAL, "text": "pass", "steps": 16}
    with pytest.raises(ValueError, match=r"pass has \d+ tokens, too few"):
        compression.run(arm)


def test_the_record_has_the_bytes_of_the_formulas():
    for entry in results.load("compression")["arms"]:
        arm, result = entry["arm"], entry["result"]
        assert result["loss"].keys() == result["bytes"].keys() == entry["opening"]["loss"].keys()
        if arm["model"] == compression.REAL:  # 30 layers, 3 KV heads of width 64
            expected = kv_cache_bytes(
                1, n_layers=30, n_kv_heads=3, head_dim=64, dtype=torch.float32
            )
            assert result["bytes"]["full"] == expected
        elif "MLA" in arm["model"]:  # two layers, groups of 32, exact keys of one but one token
            numbers = compression.KINDS[arm["model"]]["latent_dim"] + compression.ROPE_DIM
            coded = numbers * (4 / 8 + 8 / 32 + 4 * 31 / compression.LENGTH)
            assert result["bytes"]["4 bits"] == pytest.approx(2 * coded, abs=0.01)
