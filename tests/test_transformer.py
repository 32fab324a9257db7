"""Tests of :mod:`lib.transformer`, :mod:`lib.block` and :mod:`lib.stack`.

What holds for every position scheme is in ``test_schemes.py``; pretrained architectures are in
``test_models_parity.py``.
"""

import pytest
import torch
from torch.nn import functional as F

from lib.norms import LayerNorm, RMSNorm, layer_norm
from lib.position import (
    AlibiPosition,
    LearnedPosition,
    Position,
    RotaryPosition,
    ShawPosition,
    SinusoidalPosition,
    T5Position,
    TransformerXLPosition,
)
from lib.transformer import Block, Decoder, Encoder, FeedForward, LanguageModel, Seq2Seq

F64 = torch.float64


def make(*shape, dtype=F64, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=F64).to(dtype)


def make_tokens(*shape, vocab=11, seed=0):
    return torch.randint(vocab, shape, generator=torch.Generator().manual_seed(seed))


def make_lm(**options):
    torch.manual_seed(0)
    return LanguageModel(11, 12, 2, 3, **options).to(F64)


# --- feed-forward


def test_feed_forward_by_hand():
    layer = FeedForward(1, 2, activation="relu").to(F64)
    with torch.no_grad():
        layer.w_1.weight.copy_(torch.tensor([[1.0], [-1.0]]))
        layer.w_1.bias.copy_(torch.tensor([0.0, 1.0]))
        layer.w_2.weight.copy_(torch.tensor([[10.0, 100.0]]))
        layer.w_2.bias.fill_(5.0)
    x = torch.tensor([[3.0], [-2.0]], dtype=F64)  # (3, -2 cut to 0) and (-2 cut to 0, 3)
    assert layer(x).tolist() == [[35.0], [305.0]]


@pytest.mark.parametrize("activation", ["relu", "gelu", "swiglu"])
@pytest.mark.parametrize("bias", [False, True])
def test_feed_forward_is_its_formula(activation, bias):
    layer, x = FeedForward(4, 7, activation=activation, bias=bias).to(F64), make(2, 3, 4)
    inner = x @ layer.w_1.weight.T + (layer.w_1.bias if bias else 0)
    if activation == "swiglu":
        gate = x @ layer.w_gate.weight.T + (layer.w_gate.bias if bias else 0)
        inner = gate * torch.sigmoid(gate) * inner
    elif activation == "gelu":  # x times the normal distribution function, not its tanh likeness
        inner = inner * 0.5 * (1 + torch.erf(inner / 2**0.5))
    else:
        inner = inner.clamp(min=0)
    expected = inner @ layer.w_2.weight.T + (layer.w_2.bias if bias else 0)
    torch.testing.assert_close(layer(x), expected, rtol=1e-10, atol=1e-12)
    assert FeedForward(4).w_1.out_features == 16


# --- block


@pytest.mark.parametrize("norm_placement", ["pre", "post"])
@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("crosses", [False, True])
def test_block_is_its_formula(norm_placement, norm, crosses):
    block = Block(
        6, 2, cross_attention=crosses, norm_placement=norm_placement, norm=norm, norm_eps=0.1
    ).to(F64)
    for i, parameter in enumerate(block.parameters()):
        parameter.data.copy_(make(*parameter.shape, seed=i))
    x, context = make(2, 5, 6, seed=1), make(2, 7, 6, seed=2)
    mask, context_mask = make(5, 5, seed=3) > 0, make(5, 7, seed=4) > 0
    sublayers = [(lambda y: block.self_attention(y, mask=mask), block.self_norm)]
    if crosses:
        sublayers.append(
            (lambda y: block.cross_attention(y, context, mask=context_mask), block.cross_norm)
        )
    sublayers.append((block.feed_forward, block.feed_forward_norm))
    expected = x
    for function, own_norm in sublayers:
        if norm_placement == "pre":
            expected = expected + function(own_norm(expected))
        else:
            expected = own_norm(expected + function(expected))
        assert isinstance(own_norm, LayerNorm if norm == "layer" else RMSNorm)
        assert own_norm.eps == 0.1
    inputs = {"mask": mask, "context": context if crosses else None, "context_mask": context_mask}
    torch.testing.assert_close(block(x, **inputs), expected, rtol=1e-12, atol=1e-12)
    readable, weights = block(x, **inputs, return_weights=True)
    torch.testing.assert_close(readable, expected, rtol=1e-12, atol=1e-12)
    assert weights.self_attention.shape == (2, 2, 5, 5)
    assert (weights.cross_attention is not None) == crosses
    if crosses:
        assert weights.cross_attention.shape == (2, 2, 5, 7)


def test_dropout_falls_on_the_sublayer_and_not_on_the_residual():
    block = Block(6, 2, dropout=1.0).train()
    x = make(2, 5, 6, dtype=torch.float32)
    assert torch.equal(block(x), x)  # every sublayer is dropped, x goes round
    assert not torch.equal(block.eval()(x), x)


# --- stacks


def test_embedding_is_scaled_typed_positioned_and_normed_in_this_order():
    class Add(Position):
        def embed(self, x, positions):
            return x + positions.unsqueeze(-1) * torch.arange(12)  # a norm does not undo this

    torch.manual_seed(0)
    options = {"position": Add(), "n_token_types": 3, "norm_eps": 0.1}
    tokens, types = make_tokens(2, 5), make_tokens(2, 5, vocab=3, seed=1)
    positions = make_tokens(2, 5, vocab=50, seed=2)
    encoder = Encoder(11, 12, 1, 3, embedding_norm=True, **options).to(F64)
    encoder.blocks = torch.nn.ModuleList()  # what is left is the embedding and the last norm
    vectors = 12**0.5 * encoder.embedding.weight[tokens]
    vectors = vectors + positions.unsqueeze(-1) * torch.arange(12)
    expected = layer_norm(vectors + encoder.type_embedding.weight[types], eps=0.1)
    actual = encoder(tokens, positions=positions, token_types=types)
    torch.testing.assert_close(actual, layer_norm(expected, eps=0.1))
    untyped = layer_norm(vectors + encoder.type_embedding.weight[0], eps=0.1)
    torch.testing.assert_close(encoder(tokens, positions=positions), layer_norm(untyped, eps=0.1))
    assert Encoder(11, 12, 1, 3, embedding_scale=1.0).embedding_scale == 1.0


@pytest.mark.parametrize("stack", [Encoder, Decoder])
def test_only_pre_norm_has_a_final_norm(stack):
    assert stack(11, 12, 2, 3).final_norm is not None
    assert stack(11, 12, 2, 3, norm_placement="post").final_norm is None
    assert isinstance(stack(11, 12, 2, 3, norm="rms").final_norm, RMSNorm)
    tokens, model = make_tokens(2, 5), stack(11, 12, 2, 3).to(F64)
    torch.testing.assert_close(model(tokens).mean(-1), torch.zeros(2, 5, dtype=F64))


def test_weights_start_xavier_uniform():
    torch.manual_seed(0)
    model = LanguageModel(50, 64, 1, 4, n_kv_heads=2, d_ff=128)
    for linear, fan in [
        (model.blocks[0].self_attention.w_q, 64 + 64),
        (model.blocks[0].self_attention.w_k, 64 + 32),
        (model.blocks[0].feed_forward.w_1, 64 + 128),
        (model.output, 64 + 50),
    ]:
        bound = (6 / fan) ** 0.5
        assert 0.97 * bound < linear.weight.abs().max() <= bound
        assert linear.bias is None or (linear.bias == 0).all()
    assert model.embedding.weight.std().item() == pytest.approx(64**-0.5, rel=0.05)


def test_position_is_prepared_once_per_forward_and_shared_by_all_layers():
    class Counting(Position):
        def __init__(self):
            super().__init__()
            self.calls = []

        def embed(self, x, positions):
            self.calls.append("embed")
            return x

        def prepare(self, q_positions, k_positions):
            self.calls.append((q_positions.tolist(), k_positions.tolist()))
            return "tables"

        def transform(self, q, k, prepared):
            self.calls.append((prepared, k.shape[2]))
            return q, k

        def bias(self, q, k, prepared):
            self.calls.append((prepared, k.shape[2]))

    model = make_lm(position=Counting())
    state, tokens = model.decode_state(1, 5), make_tokens(1, 3)
    with torch.no_grad():
        model(tokens, state=state)
        model.position.calls.clear()
        model(tokens[:, :1], state=state)
    layer = [("tables", 1), ("tables", 4)]  # transform sees the new key, bias all four
    assert model.position.calls == ["embed", ([[3]], [[0, 1, 2, 3]]), *layer, *layer]


def test_logits_are_dot_products_with_rows_of_the_vocabulary():
    tokens = make_tokens(2, 5)
    for tie_output in (False, True):
        model = make_lm(tie_output=tie_output, output_scale=0.5)
        assert (model.output.weight is model.embedding.weight) == tie_output
        hidden = Decoder.forward(model, tokens)
        expected = torch.einsum("bld,vd->blv", hidden, 0.5 * model.output.weight)
        torch.testing.assert_close(model(tokens), expected)
        torch.testing.assert_close(model(tokens, last_only=True), expected[:, -1:])
    parameters = sum(p.numel() for p in make_lm().parameters())
    assert sum(p.numel() for p in make_lm(tie_output=True).parameters()) == parameters - 11 * 12


def test_weights_of_every_layer_are_returned():
    torch.manual_seed(0)
    model = Seq2Seq(7, 11, 12, 2, 3, n_kv_heads=1).to(F64)
    source, target = make_tokens(2, 5, vocab=7), make_tokens(2, 4)
    source_mask = torch.tensor([[True] * 5, [True, True, True, False, False]])
    logits, weights = model(source, target, source_mask=source_mask, return_weights=True)
    torch.testing.assert_close(logits, model(source, target, source_mask=source_mask))
    assert [w.shape for w in weights.self_attention] == [(2, 3, 4, 4)] * 2
    assert [w.shape for w in weights.cross_attention] == [(2, 3, 4, 5)] * 2
    for w in (*weights.self_attention, *weights.cross_attention):
        torch.testing.assert_close(w.sum(-1), torch.ones(2, 3, 4, dtype=F64))
    assert all((w.triu(1) == 0).all() for w in weights.self_attention)
    assert all((w[1, :, :, 3:] == 0).all() for w in weights.cross_attention)
    hidden, weights = model.encoder(source, mask=source_mask, return_weights=True)
    torch.testing.assert_close(hidden, model.encoder(source, mask=source_mask))
    assert [w.shape for w in weights.self_attention] == [(2, 3, 5, 5)] * 2
    assert weights.cross_attention == []
    assert all((w[1, :, :, 3:] == 0).all() for w in weights.self_attention)


def test_gradients_reach_every_parameter():
    torch.manual_seed(0)
    model = Seq2Seq(
        7,
        11,
        12,
        2,
        3,
        activation="swiglu",
        encoder_position=LearnedPosition(9, 12),
        decoder_position=LearnedPosition(9, 12),
    )
    source, target = make_tokens(2, 9, vocab=7), make_tokens(2, 9)
    source[0, :7], target[0] = torch.arange(7), make_tokens(9)
    F.cross_entropy(model(source, target).flatten(0, 1), target.flatten()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0 or name.endswith("w_k.bias"), name


def test_decoding_copies_no_keys_and_no_values(monkeypatch):
    """The kernel is handed the cache's own memory, with grouped heads and with padding too."""
    seen, kernel = [], F.scaled_dot_product_attention

    def record(query, key, value, **kwargs):
        seen.append((key.data_ptr(), value.data_ptr()))
        return kernel(query, key, value, **kwargs)

    monkeypatch.setattr("lib.attention.F.scaled_dot_product_attention", record)
    model = make_lm(n_kv_heads=1, position=RotaryPosition(4))
    mask = torch.tensor([[False, True, True], [True, True, True]])
    for padding in (None, mask):
        state = model.decode_state(2, 9)
        with torch.no_grad():
            for new in (3, 1, 2, 1):
                seen.clear()
                model(make_tokens(2, new), mask=padding if new == 3 else None, state=state)
                held = [(c._keys.data_ptr(), c._values.data_ptr()) for c in state.caches]
                assert seen == held or (new == 3 and padding is None)  # the whole prompt


@torch.no_grad()
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("n_kv_heads", [1, 3])
def test_chunks_see_what_came_before_and_no_padding(n_kv_heads, padded):
    model, tokens = make_lm(n_kv_heads=n_kv_heads, position=RotaryPosition(4)), make_tokens(2, 9)
    mask = torch.arange(9) >= (torch.tensor([[2], [0]]) if padded else torch.zeros(2, 1))
    expected = model(tokens, mask=mask)
    if not padded:
        torch.testing.assert_close(model(tokens), expected)
    state = model.decode_state(2, 9)
    logits = [model(tokens[:, :4], mask=mask[:, :4] if padded else None, state=state)]
    for chunk in (tokens[:, 4:7], tokens[:, 7:8], tokens[:, 8:]):  # real tokens, so without a mask
        logits.append(model(chunk, state=state))
    torch.testing.assert_close(torch.cat(logits, dim=1)[mask], expected[mask])


def test_no_value_is_read_while_decoding_within_reach(monkeypatch):
    """Reading a value of a tensor makes the program wait for a GPU."""
    model = make_lm(position=LearnedPosition(9, 12))
    state = model.decode_state(2, 9)
    monkeypatch.setattr("lib.stack.check_ids", lambda *args: None)  # which reads on a CPU alone

    def refuse(*args, **kwargs):
        raise AssertionError("a value was read")

    for name in ("__bool__", "__int__", "item", "tolist"):
        monkeypatch.setattr(torch.Tensor, name, refuse)
    mask = torch.ones(2, 3, dtype=torch.bool)
    with torch.no_grad():
        model(make_tokens(2, 3), mask=mask, state=state)
        model(make_tokens(2, 1), state=state)


# --- errors: the state is as it was afterwards


def wrong_calls():
    tokens, mask = make_tokens(2, 3), torch.ones(2, 3, dtype=torch.bool)
    yield {"tokens": tokens.float()}, "tokens must be int32 or int64, got torch.float32"
    yield {"tokens": tokens[0]}, r"tokens must be \(batch, length\), .* got \(3,\)"
    yield {"tokens": tokens[:, :0]}, r"both at least 1, got \(2, 0\)"
    yield {"tokens": tokens + 9}, "tokens go from 10 to 19, the model has 0 to 10"
    yield {"tokens": tokens - 20}, "tokens go from -.* to -1., the model has 0 to 10"
    yield {"tokens": tokens.to("meta")}, "tokens are on meta but the model is on cpu"
    yield {"mask": mask.int()}, "mask must be torch.bool .* got torch.int32"
    yield {"mask": mask[:, :2]}, r"mask has shape \(2, 2\), need \(2, 3\)"
    yield {"mask": mask.to("meta")}, "mask is on meta but the model is on cpu"
    positions = torch.tensor([[0, 1, 2]])
    yield {"positions": positions.float()}, "positions must be int32 or int64, got torch.float32"
    yield {"positions": positions[:, :2]}, r"positions have shape \(1, 2\) .* \(2, 3\)"
    yield {"positions": positions - 1}, "cannot be negative, got -1"
    yield {"positions": positions + 7}, "position 9 is out of reach: .* max_len=9"
    yield {"positions": positions.to("meta")}, "positions are on meta but the model is on cpu"
    yield {"context": make(2, 4, 12)}, "cross_attention=False, but a context is given"
    yield {"context_mask": mask}, "context_mask is given, but no context"


@pytest.mark.parametrize(("change", "match"), list(wrong_calls()))
@pytest.mark.parametrize("with_state", [False, True])
def test_bad_input_is_refused_and_changes_nothing(change, match, with_state):
    model = make_lm(position=LearnedPosition(9, 12))
    call = {"tokens": make_tokens(2, 3), **change}
    state = None
    if with_state:
        if "context" in change or "context_mask" in change:
            match = "not to both"
        state = model.decode_state(2, 8)
        with torch.no_grad():
            expected = model(make_tokens(2, 5, seed=1))[:, 3:]
            model(make_tokens(2, 5, seed=1)[:, :3], state=state)
    with torch.no_grad(), pytest.raises(ValueError, match=match):
        model(call.pop("tokens"), **call, state=state)
    if with_state:
        assert state.length == 3
        assert [cache.length for cache in state.caches] == [3, 3]
        with torch.no_grad():
            rest = model(make_tokens(2, 5, seed=1)[:, 3:], state=state)
        torch.testing.assert_close(rest, expected)


def test_too_small_a_cache_is_refused_and_unchanged():
    model = make_lm()
    state = model.decode_state(2, 4)
    with torch.no_grad():
        model(make_tokens(2, 3), state=state)
        with pytest.raises(ValueError, match="max_len=4 slots and holds 3: 2 more do not fit"):
            model(make_tokens(2, 2), state=state)
        assert state.length == state.caches[0].length == 3
        model(make_tokens(2, 1), state=state)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_inside_a_layer_leaves_the_state_as_it_was(error):
    def fail(*_):
        raise error

    model = make_lm()
    state = model.decode_state(2, 5)
    with torch.no_grad():
        model(make_tokens(2, 3), state=state)
    with pytest.raises(ValueError, match="carries a gradient"):  # seen by the first layer's cache
        model(make_tokens(2, 1), state=state)
    hook = model.blocks[1].register_forward_pre_hook(fail)
    with torch.no_grad(), pytest.raises(error):
        model(make_tokens(2, 1), state=state)
    hook.remove()
    assert [state.length, *(cache.length for cache in state.caches)] == [3, 3, 3]
    with torch.no_grad():
        model(make_tokens(2, 1), state=state)
    assert [state.length, *(cache.length for cache in state.caches)] == [4, 4, 4]


def test_a_refused_padded_call_leaves_the_state_without_padding():
    model = make_lm(position=LearnedPosition(3, 12))
    state, tokens = model.decode_state(2, 9), make_tokens(2, 3)
    with torch.no_grad():
        model(tokens[:, :2], state=state)
        with pytest.raises(ValueError, match="position 3 is out of reach"):
            model(tokens[:, :2], mask=torch.ones(2, 2) > 0, state=state)
    assert state.mask(1) is None
    assert state.k_positions.tolist() == [[0, 1]]
    assert state.largest_position == 1


def test_counted_positions_out_of_reach_are_refused():
    model = make_lm(position=LearnedPosition(4, 12))
    encoder = Encoder(11, 12, 1, 3, position=LearnedPosition(4, 12))
    for call in (lambda: model(make_tokens(2, 5)), lambda: encoder(make_tokens(2, 5))):
        with pytest.raises(ValueError, match=r"position 4 is out of reach: .* max_len=4"):
            call()
    mask = torch.arange(5).expand(2, 5) > 0  # four real tokens fit
    encoder(make_tokens(2, 5), mask=mask)
    state = model.decode_state(2, 6)
    with torch.no_grad():
        model(make_tokens(2, 5), mask=mask, state=state)
        with pytest.raises(ValueError, match="position 4 is out of reach"):
            model(make_tokens(2, 1), state=state)
    assert state.length == state.caches[1].length == 5
    # after positions of the caller's choice a slot is no bound
    state = model.decode_state(1, 4)
    with torch.no_grad():
        model(make_tokens(1, 2), positions=torch.tensor([[1, 2]]), state=state)
        model(make_tokens(1, 1), state=state)
        with pytest.raises(ValueError, match="position 4 is out of reach"):
            model(make_tokens(1, 1), state=state)
    assert state.length == 3


def test_bad_contexts_and_states_are_refused():
    torch.manual_seed(0)
    plain, crossing = make_lm(), make_lm(cross_attention=True)
    tokens, context = make_tokens(2, 3), make(2, 4, 12)
    mask = torch.ones(2, 4, dtype=torch.bool)
    for call, match in [
        (lambda: crossing(tokens), "cross_attention=True, but no context is given"),
        (lambda: crossing(tokens, context=context[:1]), r"shape \(1, 4, 12\), need \(2, 'cont"),
        (lambda: crossing(tokens, context=context[..., :5]), r"shape \(2, 4, 5\), need \(2, "),
        (lambda: crossing(tokens, context=context[0]), r"shape \(4, 12\), need \(2, "),
        (
            lambda: crossing(tokens, context=context, context_mask=mask[:, :3]),
            r"context_mask has shape \(2, 3\), need \(2, 4\)",
        ),
        (
            lambda: crossing(tokens, context=context, context_mask=mask.int()),
            "context_mask must be torch.bool",
        ),
        (lambda: crossing.decode_state(2, 5), "cross_attention=True, but no context"),
        (lambda: plain.decode_state(2, 5, context=context), "cross_attention=False, but a"),
        (lambda: plain.decode_state(2, 0), "max_len=0"),
        (lambda: plain.decode_state(0, 5), "batch_size=0"),
        (lambda: plain(tokens, state=plain.decode_state(3, 5)), "3 rows and 2 layers, but .* 2"),
        (
            lambda: plain(tokens, state=LanguageModel(11, 12, 1, 3).decode_state(2, 5)),
            "2 rows and 1 layers, but there are 2 rows and 2 layers",
        ),
        (lambda: plain(tokens, state=LanguageModel(11, 12, 2, 3).decode_state(2, 5)), "float32"),
    ]:
        with torch.no_grad(), pytest.raises(ValueError, match=match):
            call()


@pytest.mark.parametrize(
    ("position", "match"),
    [
        (LearnedPosition(50, 1), "LearnedPosition was made for d_model=1, but .* d_model=12"),
        (SinusoidalPosition(2), "d_model=2, but the model has d_model=12"),
        (ShawPosition(1, max_distance=2), "head_dim=1, but the model has head_dim=4"),
        (TransformerXLPosition(1, 4), "n_heads=1, but the model has n_heads=3"),
        (TransformerXLPosition(3, 2), "head_dim=2, but the model has head_dim=4"),
        (T5Position(1, bidirectional=False), "n_heads=1, but the model has n_heads=3"),
        (RotaryPosition(2), "head_dim=2, but the model has head_dim=4"),
        (AlibiPosition(1), "n_heads=1, but the model has n_heads=3"),
    ],
)
def test_a_scheme_made_for_another_size_is_refused(position, match):
    with pytest.raises(ValueError, match=match):
        LanguageModel(11, 12, 2, 3, position=position)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: FeedForward(4, activation="tanh"), "one of relu, gelu, swiglu, got 'tanh'"),
        (lambda: Block(4, 2, norm="batch"), "norm must be one of layer, rms, got 'batch'"),
        (lambda: Block(4, 2, norm_placement="mid"), "one of pre, post, got 'mid'"),
        (lambda: Block(5, 2), "d_model=5 does not divide into n_heads=2"),
        # without a context, cross-attention would be self-attention without a mask
        (
            lambda: Block(4, 2, cross_attention=True)(torch.ones(1, 3, 4)),
            "made with cross_attention=True, but no context is given",
        ),
        (
            lambda: Block(4, 2)(torch.ones(1, 3, 4), context=torch.ones(1, 5, 4)),
            "made with cross_attention=False, but a context is given",
        ),
        (
            lambda: Encoder(3, 4, 1, 2, cross_attention=True)(torch.ones(1, 2).long()),
            "made with cross_attention=True, but no context is given",
        ),
        (lambda: Encoder(0, 4, 1, 2), "must be 1 or more, got vocab_size=0"),
        (lambda: Encoder(3, 4, 0, 2), "n_layers=0"),
        (
            lambda: Encoder(3, 4, 1, 2)(
                torch.ones(1, 2).long(), token_types=torch.ones(1, 2).long()
            ),
            "token_types are given but the model has none",
        ),
        (
            lambda: Encoder(3, 4, 1, 2, n_token_types=2)(
                torch.ones(1, 2).long(), token_types=torch.ones(1, 3).long()
            ),
            r"token_types have shape \(1, 3\) but tokens \(1, 2\)",
        ),
        (
            lambda: Encoder(3, 4, 1, 2, n_token_types=2)(
                torch.ones(1, 2).long(), token_types=torch.full((1, 2), 2)
            ),
            "token_types go from 2 to 2, the model has 0 to 1",
        ),
    ],
)
def test_bad_options_are_refused(call, match):
    with pytest.raises(ValueError, match=match):
        call()
