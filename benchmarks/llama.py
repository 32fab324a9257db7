"""One network twice: a Llama of ``transformers``, and :mod:`lib` with the same weights."""

import re
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from lib import smollm
from lib.rope import RotaryPosition
from lib.transformer import LanguageModel

# By what name a layer's parts go here and there.
NAMES = {
    "self_norm": "input_layernorm",
    "self_attention.w_q": "self_attn.q_proj",
    "self_attention.w_k": "self_attn.k_proj",
    "self_attention.w_v": "self_attn.v_proj",
    "self_attention.w_o": "self_attn.o_proj",
    "feed_forward_norm": "post_attention_layernorm",
    "feed_forward.w_gate": "mlp.gate_proj",
    "feed_forward.w_1": "mlp.up_proj",
    "feed_forward.w_2": "mlp.down_proj",
}


def from_transformers(theirs: nn.Module) -> LanguageModel:
    """Make the :class:`lib.transformer.LanguageModel` that computes what a Llama does.

    Args:
        theirs: a ``LlamaForCausalLM`` with plain rotary positions.

    Returns:
        A model of its own with equal weights, dtype of theirs, in evaluation mode.

    Raises:
        RuntimeError: if a weight of either has no counterpart in the other.
    """
    config = theirs.config
    ours = LanguageModel(
        config.vocab_size,
        config.hidden_size,
        config.num_hidden_layers,
        config.num_attention_heads,
        d_ff=config.intermediate_size,
        n_kv_heads=config.num_key_value_heads,
        head_dim=config.head_dim,
        position=RotaryPosition(
            config.head_dim, base=config.rope_parameters["rope_theta"], layout="half"
        ),
        embedding_scale=1.0,
        norm="rms",
        norm_eps=config.rms_norm_eps,
        activation="swiglu",
        bias=False,
    )
    renamed = {
        "model.embed_tokens.weight": "embedding.weight",
        "model.norm.weight": "final_norm.weight",
        "lm_head.weight": "output.weight",
    }
    for layer in range(config.num_hidden_layers):
        for mine, other in NAMES.items():
            renamed[f"model.layers.{layer}.{other}.weight"] = f"blocks.{layer}.{mine}.weight"
    weights = theirs.state_dict()
    if missing := weights.keys() - renamed.keys():
        raise RuntimeError(f"no counterpart for {sorted(missing)}")
    ours.to(theirs.dtype).load_state_dict({renamed[name]: weights[name] for name in weights})
    return ours.eval()


# What the tensors of a GGUF file are called in ``transformers``, in a layer and outside.
GGUF_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def from_gguf(
    config: smollm.Config, tensors: Mapping[str, Tensor], *, attention: str = "sdpa"
) -> nn.Module:
    """Make the ``LlamaForCausalLM`` of a GGUF file.

    The file has the rows of q and k in another order: in ``transformers`` the layout of RoPE is
    ``"half"``.

    Args:
        config: the sizes.
        tensors: the numbers, by the file's names. They are shared, not copied, except for q and k.
        attention: which implementation ``transformers`` should take.

    Returns:
        The model in evaluation mode, with the tensors' dtype and device.
    """
    import transformers  # here, because growth.py and memory.py do without

    state = {}
    for name, matrix in tensors.items():
        part, layer = name.removesuffix(".weight"), ""
        if block := re.fullmatch(r"blk\.(\d+)\.(\w+)", part):
            layer, part = f"model.layers.{block[1]}.", block[2]
        if part in ("attn_q", "attn_k"):
            heads = config.n_heads if part == "attn_q" else config.n_kv_heads
            matrix = matrix.unflatten(0, (heads, -1, 2)).transpose(1, 2).reshape(matrix.shape)
        state[f"{layer}{GGUF_NAMES[part]}.weight"] = matrix
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    llama = transformers.LlamaConfig(
        vocab_size=config.vocab_size,
        hidden_size=config.d_model,
        intermediate_size=config.d_ff,
        num_hidden_layers=config.n_layers,
        num_attention_heads=config.n_heads,
        num_key_value_heads=config.n_kv_heads,
        max_position_embeddings=config.context_length,
        rms_norm_eps=config.norm_eps,
        rope_parameters={"rope_type": "default", "rope_theta": config.rope_base},
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
        attn_implementation=attention,
    )
    with torch.random.fork_rng(devices=[]):
        model = transformers.LlamaForCausalLM(llama)
    model.load_state_dict(state, assign=True)
    model.tie_weights()
    return model.to(state["lm_head.weight"].device).eval()


def pair(
    width: int, n_layers: int, *, max_len: int, vocab_size: int = 1_000
) -> tuple[LanguageModel, nn.Module]:
    """Make both, float32, in evaluation mode; heads of 64, the feed-forward 8/3 as wide.

    Args:
        width: ``d_model``, a multiple of 64.
        n_layers: number of blocks.
        max_len: most positions that ``transformers`` should expect.
        vocab_size: number of tokens.

    Returns:
        Ours and theirs, with equal weights.
    """
    import transformers  # here, because growth.py and memory.py do without

    config = transformers.LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=width,
        intermediate_size=8 * width // 3,
        num_hidden_layers=n_layers,
        num_attention_heads=width // 64,
        max_position_embeddings=max_len,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
    )
    torch.manual_seed(0)
    theirs = transformers.LlamaForCausalLM(config).eval()
    return from_transformers(theirs), theirs


def alone(width: int, n_layers: int, *, vocab_size: int = 1_000, **options) -> LanguageModel:
    """The same shapes without ``transformers``.

    Args:
        width: as in :func:`pair`.
        n_layers: likewise.
        vocab_size: likewise.
        **options: replaced or added options of :class:`lib.transformer.LanguageModel`.
    """
    torch.manual_seed(0)
    llama = {
        "d_ff": 8 * width // 3,
        "position": RotaryPosition(64, layout="half"),
        "norm": "rms",
        "activation": "swiglu",
        "bias": False,
    }
    return LanguageModel(vocab_size, width, n_layers, width // 64, **{**llama, **options}).eval()
