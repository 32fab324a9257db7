"""lib.efficient: by hand, loops from the papers, estimates that converge, errors, dtypes."""

import math

import pytest
import torch

from lib.attention import causal_mask, scaled_dot_product_attention
from lib.efficient import (
    linformer_attention,
    performer_attention,
    performer_projection,
    sliding_window_mask,
)

BATCH, HEADS, Q_LEN, K_LEN, HEAD_DIM, VALUE_DIM = 2, 3, 7, 9, 4, 5
CLOSE = {"rtol": 0, "atol": 1e-12}


def make(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def inputs(q_len=Q_LEN, k_len=K_LEN):
    return (
        make(BATCH, HEADS, q_len, HEAD_DIM, seed=1),
        make(BATCH, HEADS, k_len, HEAD_DIM, seed=2),
        make(BATCH, HEADS, k_len, VALUE_DIM, seed=3),
    )


def directions(n_features=32, head_dim=HEAD_DIM, seed=4, **options):
    generator = torch.Generator().manual_seed(seed)
    return performer_projection(
        n_features, head_dim, generator=generator, dtype=torch.float64, **options
    )


# Linformer


def test_linformer_by_hand():
    # Two keys averaged into one: every query gets the mean of the values.
    query, key = torch.tensor([[5.0], [-7.0]]), torch.tensor([[1.0], [2.0]])
    half = torch.tensor([[0.5, 0.5]])
    result = linformer_attention(query, key, torch.tensor([[10.0], [30.0]]), half, half)
    assert result.tolist() == [[20.0], [20.0]]


@pytest.mark.parametrize("per_head", [False, True])
def test_linformer_loop(per_head):
    query, key, value = inputs()
    rank = 3
    shape = (HEADS, rank, K_LEN) if per_head else (rank, K_LEN)
    e, f = make(*shape, seed=5), make(*shape, seed=6)
    expected = torch.zeros(BATCH, HEADS, Q_LEN, VALUE_DIM, dtype=torch.float64)
    for b in range(BATCH):
        for h in range(HEADS):
            e_h, f_h = (e[h], f[h]) if per_head else (e, f)
            for i in range(Q_LEN):
                mixed_keys = [sum(e_h[r, n] * key[b, h, n] for n in range(K_LEN)) for r in range(3)]
                scores = [(query[b, h, i] @ mixed).item() / 2.0 for mixed in mixed_keys]
                total = sum(map(math.exp, scores))
                for r in range(rank):
                    mixed_value = sum(f_h[r, n] * value[b, h, n] for n in range(K_LEN))
                    expected[b, h, i] += math.exp(scores[r]) / total * mixed_value
    torch.testing.assert_close(linformer_attention(query, key, value, e, f), expected, **CLOSE)


def test_linformer_with_nothing_summed_up_is_attention():
    query, key, value = inputs()
    order = torch.eye(K_LEN, dtype=torch.float64).roll(4, dims=0)
    for scale in (None, 0.3):
        torch.testing.assert_close(
            linformer_attention(query, key, value, order, order, scale=scale),
            scaled_dot_product_attention(query, key, value, scale=scale),
        )


def test_linformer_errors():
    query, key, value = inputs()
    with pytest.raises(ValueError, match=r"\(3, 8\) and value_projection \(3, 9\) need 9 columns"):
        linformer_attention(query, key, value, make(3, 8), make(3, 9))
    with pytest.raises(ValueError, match=r"\(3, 9\) and value_projection \(3, 8\) need 9 columns"):
        linformer_attention(query, key, value, make(3, 9), make(3, 8))
    with pytest.raises(ValueError, match=r"key_projection is torch\.float32 .* key is .*64"):
        linformer_attention(query, key, value, make(3, 9).float(), make(3, 9))
    with pytest.raises(ValueError, match="rank 3 but value_projection has rank 1"):
        linformer_attention(query, key, value, make(3, 9), make(1, 9))
    with pytest.raises(ValueError, match=r"value_projection needs .* got shape \(9,\)"):
        linformer_attention(query, key, value, make(3, 9), make(9))
    with pytest.raises(ValueError, match=r"key needs .* got shape \(9,\)"):
        linformer_attention(query, make(9), value, make(3, 9), make(3, 9))
    with pytest.raises(ValueError, match="key_projection is on meta but key is on cpu"):
        linformer_attention(query, key, value, make(3, 9).to("meta"), make(3, 9))


# Performer


def estimate_loop(query, key, value, projection, scale, causal=False):
    """The estimate, one query and one key at a time, with the paper's features."""

    def features(x):
        x = x * math.sqrt(scale)
        return [math.exp((w @ x - x @ x / 2).item()) for w in projection]

    output = torch.zeros(*query.shape[:-1], value.shape[-1], dtype=torch.float64)
    for b in range(query.shape[0]):
        for h in range(query.shape[1]):
            for i in range(query.shape[2]):
                asking, total = features(query[b, h, i]), 0.0
                for j in range(i + 1 if causal else key.shape[2]):
                    asked = features(key[b, h, j])
                    weight = sum(x * y for x, y in zip(asking, asked, strict=True))
                    output[b, h, i] += weight * value[b, h, j]
                    total += weight
                output[b, h, i] /= total
    return output


def test_performer_with_one_feature_by_hand():
    # One feature: φ(q) cancels, and φ(k) = exp(2k − k²/2) with ω = 2.
    query, key = torch.tensor([[9.0]]), torch.tensor([[0.0], [2.0]])
    result = performer_attention(
        query, key, torch.tensor([[1.0], [5.0]]), projection=torch.tensor([[2.0]])
    )
    weight = math.exp(2.0)
    assert result.item() == pytest.approx((1.0 + 5.0 * weight) / (1.0 + weight))


@pytest.mark.parametrize("scale", [None, 0.7])
def test_performer_loop(scale):
    query, key, value = inputs()
    projection = directions(6)
    expected = estimate_loop(query, key, value, projection, 0.5 if scale is None else scale)
    result = performer_attention(query, key, value, projection=projection, scale=scale)
    torch.testing.assert_close(result, expected, **CLOSE)


@pytest.mark.parametrize("chunk", [1, 2, 4, 9, 64])
def test_causal_performer_loop(chunk):
    query, key, value = inputs(q_len=K_LEN)
    projection = directions(6)
    expected = estimate_loop(query, key, value, projection, 0.5, causal=True)
    result = performer_attention(query, key, value, projection=projection, causal=True, chunk=chunk)
    torch.testing.assert_close(result, expected, **CLOSE)


def test_causal_performer_does_not_look_ahead():
    query, key, value = inputs(q_len=K_LEN)
    options = {"projection": directions(), "causal": True, "chunk": 4}
    before = performer_attention(query, key, value, **options)
    for place in range(1, K_LEN):
        later_key, later_value = key.clone(), value.clone()
        later_key[:, :, place:] += 3.0
        later_value[:, :, place:] = 1e6
        after = performer_attention(query, later_key, later_value, **options)
        torch.testing.assert_close(after[:, :, :place], before[:, :, :place], rtol=0, atol=1e-9)
        assert (after[:, :, place] - before[:, :, place]).abs().min() > 1.0


@pytest.mark.parametrize("causal", [False, True])
def test_more_features_come_closer(causal):
    query, key, value = inputs(q_len=K_LEN)
    query, key = query / 2, key / 2  # the variance of the estimate grows as exp(|q + k|²)
    mask = causal_mask(K_LEN, K_LEN) if causal else None
    exact = scaled_dot_product_attention(query, key, value, mask=mask)

    def error(n_features):
        errors = [
            performer_attention(
                query, key, value, projection=directions(n_features, seed=seed), causal=causal
            )
            - exact
            for seed in range(10)
        ]
        return torch.stack(errors).square().mean().sqrt().item()

    few, many = error(64), error(64 * 64)
    # The error of a mean falls with the square root: 64 times the features, an eighth of it.
    assert few / 16 < many < few / 4
    assert many < 0.05


def test_directions_are_orthogonal_in_blocks_and_as_long_as_normal_ones():
    rows = directions(2 * 4 + 2)
    for block in (rows[:4], rows[4:8], rows[8:]):
        products = block @ block.T
        torch.testing.assert_close(products, products.diagonal().diag(), rtol=0, atol=1e-12)
    for orthogonal in (True, False):
        rows = directions(40_000, orthogonal=orthogonal)
        covariance = rows.T @ rows / 40_000
        identity = torch.eye(HEAD_DIM, dtype=torch.float64)
        torch.testing.assert_close(covariance, identity, rtol=0, atol=0.04)
        torch.testing.assert_close(rows.mean(0), torch.zeros_like(rows[0]), rtol=0, atol=0.03)
        fourth = rows.square().sum(-1).var()  # 2 · head_dim for a normal vector
        assert fourth.item() == pytest.approx(2 * HEAD_DIM, rel=0.1)
    independent = directions(4, orthogonal=False)
    assert (independent @ independent.T).triu(1).abs().max() > 0.1


def test_orthogonal_directions_estimate_better():
    x, y = make(2, 8) * 0.5

    def squared_error(orthogonal):
        rows = directions(8 * 4000, 8, orthogonal=orthogonal).unflatten(0, (4000, 8))
        estimates = (rows @ (x + y) - (x @ x + y @ y) / 2).exp().mean(-1)
        return (estimates - (x @ y).exp()).square().mean()

    assert squared_error(True) < 0.95 * squared_error(False)


@pytest.mark.parametrize("causal", [False, True])
def test_large_inputs_lose_nothing(causal):
    """Features of e^−300 in float32, against the same sums of logarithms in float64."""
    query, key, value = (x.float().double() for x in inputs(q_len=K_LEN))
    query, key, projection = 20 * query, 20 * key, directions().float().double()

    def logarithms(x):  # 0.5 = 1/sqrt(head_dim), the default scale
        return x @ projection.T * math.sqrt(0.5) - x.square().sum(-1, keepdim=True) / 4

    assert logarithms(query).amax(-1).min() < -300
    pairs = logarithms(query).unsqueeze(-2) + logarithms(key).unsqueeze(-3)
    scores = pairs.logsumexp(-1)
    if causal:
        scores = scores.masked_fill(~causal_mask(K_LEN, K_LEN), -torch.inf)
    result = performer_attention(
        query.float(), key.float(), value.float(), projection=projection, causal=causal, chunk=1
    )
    expected = (scores.softmax(-1) @ value).float()
    torch.testing.assert_close(result, expected, rtol=1e-2, atol=1e-2)


def test_features_too_small_for_their_chunk_give_zero():
    query, key, value = (x[0, 0, :2].float() for x in inputs(q_len=K_LEN))
    key = torch.tensor([[40.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])  # features e^−400 and 1
    options = {"projection": directions(), "causal": True}
    together = performer_attention(query, key, value, chunk=2, **options)
    apart = performer_attention(query, key, value, chunk=1, **options)
    torch.testing.assert_close(together, torch.stack((torch.zeros(VALUE_DIM), value[1])))
    torch.testing.assert_close(apart, value)


def test_rescaling_the_state_keeps_early_keys():
    """Feature by feature the keys' level rises over chunks; the sums must follow it."""
    query, key, value = inputs(q_len=K_LEN)
    key = key * torch.linspace(0.0, 6.0, K_LEN, dtype=torch.float64)[:, None]
    key = key.flip(-2)  # and fall, and rise in the second row
    key[1] = key[1].flip(-2)
    projection = directions(6)
    result = performer_attention(query, key, value, projection=projection, causal=True, chunk=2)
    expected = estimate_loop(query, key, value, projection, 0.5, causal=True)
    torch.testing.assert_close(result, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("causal", [False, True])
def test_performer_gradients(causal):
    tensors = [x[:1, :1, :5].clone().requires_grad_() for x in inputs(q_len=K_LEN)]
    projection = directions(6)

    def function(query, key, value):
        return performer_attention(query, key, value, projection=projection, causal=causal, chunk=2)

    assert torch.autograd.gradcheck(function, tensors)


@pytest.mark.parametrize(
    ("shapes", "options", "message"),
    [
        ([(7, 4), (9, 4), (9, 5), (6, 3)], {}, r"projection \(6, 3\).*query \(7, 4\)"),
        ([(7, 4), (9, 3), (9, 5), (6, 4)], {}, r"projection \(6, 4\).*key \(9, 3\)"),
        ([(7, 4), (9, 4), (9, 5), (2, 6, 4)], {}, r"projection \(2, 6, 4\)"),
        ([(7, 4), (9, 4), (8, 5), (6, 4)], {}, "key has 9 positions and value 8"),
        ([(7, 4), (0, 4), (0, 5), (6, 4)], {}, "at least 1"),
        ([(4,), (9, 4), (9, 5), (6, 4)], {}, r"query needs at least 2 .* got shape \(4,\)"),
        ([(7, 4), (4,), (9, 5), (6, 4)], {}, r"key needs at least 2 .* got shape \(4,\)"),
        ([(7, 4), (9, 4), (5,), (6, 4)], {}, r"value needs at least 2 .* got shape \(5,\)"),
        ([(7, 4), (9, 4), (9, 5), (6, 4)], {"causal": True}, "q_len=7 and k_len=9"),
        ([(7, 4), (9, 4), (9, 5), (6, 4)], {"chunk": 0}, "chunk=0"),
        ([(7, 4), (9, 4), (9, 5), (6, 4)], {"scale": -1.0}, r"scale=-1\.0"),
    ],
)
def test_performer_errors(shapes, options, message):
    query, key, value, projection = (make(*shape) for shape in shapes)
    with pytest.raises(ValueError, match=message):
        performer_attention(query, key, value, projection=projection, **options)


def test_performer_refuses_another_device():
    tensors = [make(*shape) for shape in [(7, 4), (9, 4), (9, 5), (6, 4)]]
    with pytest.raises(ValueError, match="projection is on meta but query is on cpu"):
        performer_attention(*tensors[:3], projection=tensors[3].to("meta"))


def test_projection_errors():
    with pytest.raises(ValueError, match="got n_features=0"):
        performer_projection(0, 4)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-5), (torch.bfloat16, 2**-8)])
def test_dtypes(dtype, tolerance):
    # bfloat16: half a unit in the last place, as only the result is rounded.
    exact_inputs = [x.to(dtype).double() for x in inputs(q_len=K_LEN)]
    projection = directions()
    for causal in (False, True):
        options = {"projection": projection, "causal": causal, "chunk": 4}
        result = performer_attention(*(x.to(dtype) for x in exact_inputs), **options)
        assert result.dtype == dtype
        exact = performer_attention(*exact_inputs, **options)
        torch.testing.assert_close(result.double(), exact, rtol=tolerance, atol=2e-5)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("causal", [False, True])
def test_on_a_gpu(causal):
    tensors = inputs(q_len=K_LEN)
    options = {"causal": causal, "chunk": 4}
    on_cpu = performer_attention(*tensors, projection=directions(), **options)
    on_gpu = performer_attention(
        *(x.cuda() for x in tensors), projection=directions().cuda(), **options
    )
    torch.testing.assert_close(on_gpu.cpu(), on_cpu)
    assert sliding_window_mask(2, 3, window=1, global_tokens=[0], device="cuda").is_cuda
    generator = torch.Generator("cuda").manual_seed(0)
    assert performer_projection(5, 4, generator=generator, device="cuda").is_cuda
