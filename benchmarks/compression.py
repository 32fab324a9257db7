r"""What a smaller cache costs: bytes per token against perplexity, the record ``compression``.

Two questions in one grid (chapter 15):

- Small language models with every kind of attention (multi-head, grouped, one key head, latent)
  are trained alike, and then read help topics that they have not seen with every kind of cache.
- SmolLM2 reads help topics with every kind of cache. Its attention is the one it was trained with.

:mod:`benchmarks.record` runs the grid and decides which arms are out of date. The arms of SmolLM2
need the extra ``pretrained``; each is one text, and its "steps" are the pieces that are read.

Conventions:

- Losses are means over all tokens of a text but the first, in nats.
- Bytes are those of the whole state, in float32 where nothing is quantized, divided by the tokens
  read. A window's include the last piece, a quantized cache's the group that is not full.
- All small models of a seed see the same batches in the same order. A text is as long as in
  training, so nothing is asked of a position that did not occur there.
"""

from functools import cache, partial
from itertools import repeat
from typing import Any

import torch
from torch import Tensor, nn

from lib import smollm
from lib.caches import QuantizedCache, WindowCache
from lib.data import TextCorpus, random_windows, text_corpus
from lib.extrapolation import corpus_hash
from lib.kv_cache import DecodeState, KVCache
from lib.latent import LatentAttention
from lib.rope import RotaryPosition
from lib.training import sequence_loss, teacher_forcing, train, warmup_cosine
from lib.transformer import LanguageModel

__all__ = ["arms", "build", "caches", "corpus_hash", "read", "run"]

D_MODEL, N_LAYERS, N_HEADS, HEAD_DIM, ROPE_DIM = 64, 2, 8, 16, 8
KINDS: dict[str, dict[str, int]] = {  # numbers per token and layer in the cache:
    "MHA": {"n_kv_heads": 8},  # 256
    "GQA, 4 key heads": {"n_kv_heads": 4},  # 128
    "GQA, 2 key heads": {"n_kv_heads": 2},  # 64
    "MQA": {"n_kv_heads": 1},  # 32
    "MLA, latent of 56": {"latent_dim": 56},  # 64, with ROPE_DIM
    "MLA, latent of 24": {"latent_dim": 24},  # 32
}
N_WORDS = 1000  # in the vocabulary of the small models
LENGTH, BATCH, STEPS, WARMUP, RATE, CLIP = 128, 16, 400, 50, 1e-2, 1.0
SEEDS = (0, 1, 2)
N_TEXTS = 64  # windows of the validation text, for the small models
REAL = "SmolLM2-135M-Instruct"
TOPICS = (
    "assignment",
    "calls",
    "class",
    "comparisons",
    "debugger",
    "execmodel",
    "import",
    "strings",
)
REAL_LENGTH = 512
SINKS = 4
# Tokens per piece, and what a window holds, its sinks included.
SMALL_READING, REAL_READING = (8, (8, 16, 32)), (32, (32, 64, 128))


def arms() -> list[dict[str, Any]]:
    """The grid: each text for the real model, each kind and seed of the small ones."""
    real = [
        {"model": REAL, "text": name, "steps": REAL_LENGTH // REAL_READING[0]} for name in TOPICS
    ]
    small = [{"model": kind, "seed": seed, "steps": STEPS} for kind in KINDS for seed in SEEDS]
    return real + small


@cache
def corpus() -> TextCorpus:
    """The help topics as words, read once."""
    return text_corpus(unit="word", n_words=N_WORDS)


def caches(windows: tuple[int, ...]) -> dict[str, partial | type[KVCache]]:
    """The ways to keep a text, by name; windows with sinks hold as many tokens as those without."""
    made = {"full": KVCache, "8 bits": partial(QuantizedCache, bits=8)}
    made["4 bits"] = partial(QuantizedCache, bits=4)
    for width in windows:
        made[f"window {width}"] = partial(WindowCache, window=width)
        made[f"window {width - SINKS} + {SINKS}"] = partial(
            WindowCache, window=width - SINKS, sinks=SINKS
        )
    return made


def build(kind: str, seed: int) -> LanguageModel:
    """Make a small model, not trained; latent attention takes the place of the model's own."""
    sizes = KINDS[kind]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LanguageModel(
            len(corpus().vocabulary),
            D_MODEL,
            N_LAYERS,
            N_HEADS,
            head_dim=HEAD_DIM,
            n_kv_heads=sizes.get("n_kv_heads"),
            position=RotaryPosition(HEAD_DIM),
            bias=False,
        )
        if "latent_dim" in sizes:
            for block in model.blocks:
                block.self_attention = LatentAttention(
                    D_MODEL, N_HEADS, head_dim=HEAD_DIM, rope_dim=ROPE_DIM, **sizes
                )
                for module in block.self_attention.modules():
                    if isinstance(module, nn.Linear):
                        nn.init.xavier_uniform_(module.weight)  # as lib.stack does
            model.position = RotaryPosition(ROPE_DIM)
        return model


def empty_state(model: LanguageModel, rows: int, length: int, make_cache) -> DecodeState:
    """A state of caches of one kind; of latent attention they hold the latents, as one head.

    The rotated key is in the values' place. It is a key, so it is quantized per channel like one.
    """
    attention = model.blocks[0].self_attention
    if not isinstance(attention, LatentAttention):
        return model.decode_state(rows, length, make_cache=make_cache)
    if getattr(make_cache, "func", None) is QuantizedCache:
        make_cache = partial(make_cache, values_per_channel=True)
    sizes = (rows, 1, length, attention.latent_dim)
    return DecodeState([make_cache(*sizes, value_dim=attention.rope_dim) for _ in model.blocks])


@torch.no_grad()
def read(model: LanguageModel, tokens: Tensor, piece: int, make_cache) -> tuple[float, float]:
    """Read texts through a cache, in pieces.

    Args:
        model: in evaluation mode.
        tokens: ``(rows, length + 1)``; the last is scored, and not read.
        piece: tokens per pass.
        make_cache: as in :meth:`lib.transformer.Decoder.decode_state`.

    Returns:
        The mean loss, and the bytes of the state for each token read.
    """
    inputs, targets = teacher_forcing(tokens)
    state = empty_state(model, *inputs.shape, make_cache)
    logits = torch.cat([model(now, state=state) for now in inputs.split(piece, dim=1)], dim=1)
    return sequence_loss(logits, targets).item(), state.nbytes / inputs.numel()


def measure(model: LanguageModel, tokens: Tensor, piece: int, windows: tuple[int, ...]) -> dict:
    """Loss and bytes with each cache."""
    found = {
        name: read(model, tokens, piece, make_cache) for name, make_cache in caches(windows).items()
    }
    return {
        "corpus": corpus_hash(),
        "loss": {name: round(loss, 5) for name, (loss, _) in found.items()},
        "bytes": {name: round(n_bytes, 2) for name, (_, n_bytes) in found.items()},
    }


@cache
def real_model():
    """SmolLM2 and its tokenizer, loaded once.

    Raises:
        ValueError: if it is not installed.
    """
    return smollm.load()


def run(arm: dict[str, Any], n_steps: int | None = None) -> dict[str, Any]:
    """Train an arm's model, or take the real one, and read with every cache.

    Args:
        arm: one of :func:`arms`.
        n_steps: steps of the training, or pieces of the text; all when not given.

    Returns:
        ``corpus``, a hash of the help topics; ``loss`` and ``bytes`` per token, by cache; of a
        small model also ``n_weights``, and ``train_loss``, the mean of the last 50 steps.
    """
    n_steps = arm["steps"] if n_steps is None else n_steps
    if arm["model"] == REAL:
        from pydoc_data.topics import topics

        model, tokenizer = real_model()
        piece, windows = REAL_READING
        tokens = torch.tensor([tokenizer.encode(topics[arm["text"]])[: piece * n_steps + 1]])
        if tokens.shape[1] <= piece * n_steps:
            raise ValueError(f"{arm['text']} has {tokens.shape[1]} tokens, too few")
        return measure(model, tokens, piece, windows)
    text, model = corpus(), build(arm["model"], arm["seed"])
    generator = torch.Generator().manual_seed(arm["seed"])

    def loss_fn(model: LanguageModel, batch: Tensor) -> Tensor:
        inputs, targets = teacher_forcing(batch)
        return sequence_loss(model(inputs), targets)

    losses = train(
        model,
        (random_windows(text.train, BATCH, LENGTH + 1, generator=generator) for _ in repeat(None)),
        loss_fn,
        torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01),
        n_steps=n_steps,
        rate=lambda step: RATE * warmup_cosine(step, warmup=WARMUP, total=arm["steps"], floor=0.05),
        clip=CLIP,
    )
    starts = torch.linspace(0, len(text.valid) - LENGTH - 1, N_TEXTS).long()[:, None]
    result = measure(model, text.valid[starts + torch.arange(LENGTH + 1)], *SMALL_READING)
    late = losses[-50:]
    return result | {
        "n_weights": sum(weight.numel() for weight in model.parameters()),
        "train_loss": round(sum(late) / len(late), 5),
    }
