"""BERT, Llama and T5 of the ``transformers`` package, copied weight by weight into :mod:`lib`.

Small configurations with random weights, all sizes different where the architecture allows it.
Everything runs in float64. BERT then agrees to 1e-10. Llama's and T5's norms and Llama's rotary
tables are forced into float32 in that package, so that as shipped they agree to 1e-5 only; with
those places computed in float64 (below, in ``wide_*``) they agree to 1e-10 too.
"""

import pytest
import torch
import transformers

from benchmarks.llama import from_transformers
from lib.learned import LearnedPosition
from lib.norms import rms_norm
from lib.t5 import T5Position
from lib.transformer import Encoder, Seq2Seq

F64 = torch.float64
AS_SHIPPED, WIDE = {"rtol": 0, "atol": 1e-5}, {"rtol": 0, "atol": 1e-10}
VOCAB, LAYERS, HEADS = 23, 2, 4


def randomize(model):
    """Weights large enough that attention is far from uniform; norms near 1, none exactly."""
    generator = torch.Generator().manual_seed(5)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator, dtype=F64)
        is_norm = "norm" in name.lower() and name.endswith("weight")
        parameter.data = 1.0 + 0.2 * noise if is_norm else 0.25 * noise
    return model.to(F64).eval()


def make_tokens(rows, length, seed=0):
    return torch.randint(VOCAB, (rows, length), generator=torch.Generator().manual_seed(seed))


def copy(pairs):
    """Copy ``(ours, theirs)``, modules with weight and perhaps bias, checking that all is used."""
    for ours, theirs in pairs:
        mine, other = dict(ours.named_parameters()), dict(theirs.named_parameters())
        assert mine.keys() == other.keys()
        for name in mine:
            assert mine[name].shape == other[name].shape
            mine[name].data.copy_(other[name].data)


# --- BERT


@pytest.fixture(scope="module")
def bert():
    config = transformers.BertConfig(
        vocab_size=VOCAB,
        hidden_size=20,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=36,
        max_position_embeddings=17,
        type_vocab_size=3,
        attn_implementation="eager",
    )
    theirs = randomize(transformers.BertModel(config, add_pooling_layer=False))
    ours = Encoder(
        VOCAB,
        20,
        LAYERS,
        HEADS,
        d_ff=36,
        position=LearnedPosition(17, 20),
        n_token_types=3,
        embedding_scale=1.0,
        embedding_norm=True,
        norm_placement="post",
        norm_eps=config.layer_norm_eps,
    ).to(F64)
    embeddings = theirs.embeddings
    ours.position.table.data.copy_(embeddings.position_embeddings.weight)
    copy(
        [
            (ours.embedding, embeddings.word_embeddings),
            (ours.type_embedding, embeddings.token_type_embeddings),
            (ours.embedding_norm, embeddings.LayerNorm),
        ]
    )
    for block, layer in zip(ours.blocks, theirs.encoder.layer, strict=True):
        copy(
            [
                (block.self_attention.w_q, layer.attention.self.query),
                (block.self_attention.w_k, layer.attention.self.key),
                (block.self_attention.w_v, layer.attention.self.value),
                (block.self_attention.w_o, layer.attention.output.dense),
                (block.self_norm, layer.attention.output.LayerNorm),
                (block.feed_forward.w_1, layer.intermediate.dense),
                (block.feed_forward.w_2, layer.output.dense),
                (block.feed_forward_norm, layer.output.LayerNorm),
            ]
        )
    return ours, theirs


@torch.no_grad()
def test_bert(bert):
    ours, theirs = bert
    tokens, types = make_tokens(3, 9), make_tokens(3, 9, seed=1) % 3
    mask = torch.arange(9) < torch.tensor([[9], [6], [1]])
    expected = theirs(
        tokens,
        attention_mask=mask.long(),
        token_type_ids=types,
        # the package counts padding too; here it has position 0
        position_ids=torch.arange(9) * mask,
        output_attentions=True,
    )
    actual, weights = ours(tokens, mask=mask, token_types=types, return_weights=True)
    torch.testing.assert_close(actual, expected.last_hidden_state, **WIDE)
    torch.testing.assert_close(weights.self_attention, list(expected.attentions), **WIDE)
    fused = ours(tokens, mask=mask, token_types=types)
    torch.testing.assert_close(fused, expected.last_hidden_state, **WIDE)
    torch.testing.assert_close(ours(tokens), theirs(tokens).last_hidden_state, **WIDE)


# --- Llama


@pytest.fixture(scope="module", params=[1, 2, 4])
def llama(request):
    config = transformers.LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=20,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=request.param,
        head_dim=6,
        intermediate_size=36,
        rms_norm_eps=1e-3,
        rope_parameters={"rope_type": "default", "rope_theta": 50.0},
        tie_word_embeddings=False,
        attn_implementation="sdpa",  # "eager" forces the softmax into float32, where padding is NaN
        pad_token_id=None,
    )
    theirs = randomize(transformers.LlamaForCausalLM(config))
    return from_transformers(theirs), theirs


def wide_norm(self, x):
    return rms_norm(x, self.weight, eps=self.variance_epsilon)


def wide_rotary(self, x, position_ids):
    exponents = torch.arange(0, 6, 2, dtype=F64) / 6
    angles = position_ids.to(F64).unsqueeze(-1) * 50.0**-exponents
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


@torch.no_grad()
@pytest.mark.parametrize("wide", [False, True])
def test_llama(llama, wide, monkeypatch):
    ours, theirs = llama
    if wide:
        module = transformers.models.llama.modeling_llama
        monkeypatch.setattr(module.LlamaRMSNorm, "forward", wide_norm)
        monkeypatch.setattr(module.LlamaRotaryEmbedding, "forward", wide_rotary)
    tolerance = WIDE if wide else AS_SHIPPED
    tokens = make_tokens(3, 9)
    mask = torch.arange(9) >= torch.tensor([[0], [3], [7]])
    expected = theirs(
        tokens,
        attention_mask=mask.long(),
        position_ids=(mask.long().cumsum(1) - 1).clamp(min=0),
    ).logits
    full = ours(tokens, mask=mask)
    torch.testing.assert_close(full[mask], expected[mask], **tolerance)
    torch.testing.assert_close(ours(tokens), theirs(tokens).logits, **tolerance)
    state = ours.decode_state(3, 9)
    cached = [ours(tokens[:, :4], mask=mask[:, :4], state=state)]
    for m in range(4, 9):
        seen = mask[:, m : m + 1] if m < 7 else None
        cached.append(ours(tokens[:, m : m + 1], mask=seen, state=state))
    torch.testing.assert_close(torch.cat(cached, dim=1)[mask], expected[mask], **tolerance)


# --- T5


@pytest.fixture(scope="module", params=[False, True], ids=["untied", "tied"])
def t5(request):
    config = transformers.T5Config(
        vocab_size=VOCAB,
        d_model=20,
        d_kv=6,
        d_ff=36,
        num_layers=LAYERS,
        num_heads=HEADS,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=11,
        layer_norm_epsilon=1e-3,
        feed_forward_proj="relu",
        tie_word_embeddings=request.param,
        pad_token_id=0,
        attn_implementation="eager",
    )
    theirs = randomize(transformers.T5ForConditionalGeneration(config))
    buckets = {"num_buckets": 8, "max_distance": 11}
    ours = Seq2Seq(
        VOCAB,
        VOCAB,
        20,
        LAYERS,
        HEADS,
        d_ff=36,
        head_dim=6,
        scale=1.0,  # of cross-attention too, which has no position
        encoder_position=T5Position(HEADS, bidirectional=True, **buckets),
        decoder_position=T5Position(HEADS, bidirectional=False, **buckets),
        tie_output=request.param,
        output_scale=20**-0.5 if request.param else 1.0,
        embedding_scale=1.0,
        norm="rms",
        norm_eps=1e-3,
        activation="relu",
        bias=False,
    ).to(F64)
    copy(
        [
            (ours.encoder.embedding, theirs.shared),
            (ours.decoder.embedding, theirs.shared),
            (ours.encoder.final_norm, theirs.encoder.final_layer_norm),
            (ours.decoder.final_norm, theirs.decoder.final_layer_norm),
            (ours.decoder.output, theirs.lm_head),
        ]
    )
    for mine, other in ((ours.encoder, theirs.encoder), (ours.decoder, theirs.decoder)):
        bias = other.block[0].layer[0].SelfAttention.relative_attention_bias
        mine.position.table.data.copy_(bias.weight)
        for block, layer in zip(mine.blocks, other.block, strict=True):
            attention, *cross, feed_forward = layer.layer
            named = [(block.self_attention, block.self_norm, attention, "SelfAttention")]
            if cross:
                named.append((block.cross_attention, block.cross_norm, *cross, "EncDecAttention"))
            for a, norm, sublayer, name in named:
                b = getattr(sublayer, name)
                copy([(a.w_q, b.q), (a.w_k, b.k), (a.w_v, b.v), (a.w_o, b.o)])
                copy([(norm, sublayer.layer_norm)])
            copy(
                [
                    (block.feed_forward_norm, feed_forward.layer_norm),
                    (block.feed_forward.w_1, feed_forward.DenseReluDense.wi),
                    (block.feed_forward.w_2, feed_forward.DenseReluDense.wo),
                ]
            )
    return ours, theirs


@torch.no_grad()
@pytest.mark.parametrize("wide", [False, True])
def test_t5(t5, wide, monkeypatch):
    ours, theirs = t5
    if wide:
        module = transformers.models.t5.modeling_t5
        monkeypatch.setattr(module.T5LayerNorm, "forward", wide_norm)
    tolerance = WIDE if wide else AS_SHIPPED
    source, target = make_tokens(2, 14), make_tokens(2, 9, seed=1)
    source_mask = torch.arange(14) < torch.tensor([[14], [9]])
    expected = theirs(
        source, attention_mask=source_mask.long(), decoder_input_ids=target, use_cache=False
    )
    context = ours.encoder(source, mask=source_mask)
    real = expected.encoder_last_hidden_state[source_mask]
    torch.testing.assert_close(context[source_mask], real, **tolerance)
    full = ours(source, target, source_mask=source_mask)
    torch.testing.assert_close(full, expected.logits, **tolerance)
    state = ours.decoder.decode_state(2, 9, context=context, context_mask=source_mask)
    cached = [ours.decoder(target[:, m : m + 1], state=state) for m in range(9)]
    torch.testing.assert_close(torch.cat(cached, dim=1), expected.logits, **tolerance)
