"""What breaks each claim of chapter 09, and nothing else in it."""

from collections.abc import Callable

import torch
from torch import Tensor

import lib.transformer  # noqa: F401 (bound to the unbroken parts before one of them is patched)
from tests.course.execution import Perturbation


def unscaled(encoder: type) -> type:
    """Forget the factor on the embedding."""

    class Unscaled(encoder):
        def __init__(self, *sizes, **options):
            super().__init__(*sizes, embedding_scale=1.0, **options)

    return Unscaled


def linear(feed_forward: type) -> type:
    """Leave out the nonlinearity between the two maps."""

    class Linear(feed_forward):
        def __init__(self, *sizes, **options):
            super().__init__(*sizes, **options)
            self.activation = torch.nn.Identity()

    return Linear


def from_normalized(block: type) -> type:
    """Take the residual from the normalized vectors, in the encoder's layers."""

    class FromNormalized(block):
        def _residual(self, x, sublayer, norm):
            if self.cross_attention is not None:
                return super()._residual(x, sublayer, norm)
            return norm(x) + sublayer(norm(x)), None

    return FromNormalized


def crosses_last(block: type) -> type:
    """Put the cross-attention after the feed-forward layer, in the decoder's layers."""

    class CrossesLast(block):
        def _residual(self, x, sublayer, norm):
            if self.cross_attention is None or norm is self.self_norm:
                return super()._residual(x, sublayer, norm)
            if norm is self.cross_norm:
                self.postponed = sublayer
                return x, None
            x, _ = super()._residual(x, sublayer, norm)
            return super()._residual(x, self.postponed, self.cross_norm)

    return CrossesLast


def pooled(encoder: type) -> type:
    """Compress the source into one vector: the mean of the rows of its real tokens."""

    class Pooled(encoder):
        def forward(self, tokens, *, mask=None, **options):
            rows = super().forward(tokens, mask=mask, **options)
            real = torch.ones_like(rows[..., :1]) if mask is None else mask[..., None]
            mean = (rows * real).sum(1, keepdim=True) / real.sum(1, keepdim=True)
            return mean.expand_as(rows)

    return Pooled


def ignores_padding_mask(encoder: type) -> type:
    """Let the source's real tokens attend to its padding."""

    class Unmasked(encoder):
        def forward(self, tokens, *, mask=None, **options):
            return super().forward(tokens, **options)

    return Unmasked


def scaled_down(model: type) -> type:
    """Divide the logits by the root of the width, whatever was asked for."""

    class Scaled(model):
        def forward(self, *inputs, **options):
            result = super().forward(*inputs, **options)
            root = self.embedding.embedding_dim**0.5
            return (result[0] / root, *result[1:]) if isinstance(result, tuple) else result / root

    return Scaled


def counted_from_the_end(count: Callable) -> Callable:
    """Give the last real token position 0."""

    def count_wrongly(tokens: Tensor, mask: Tensor | None) -> Tensor:
        positions = count(tokens, mask)
        last = positions.max(dim=1, keepdim=True).values
        return last - positions if mask is None else (last - positions) * mask

    return count_wrongly


def unshifted(_: Callable) -> Callable:
    """Let the decoder read what it has to predict."""
    return lambda tokens: (tokens[:, 1:], tokens[:, 1:])


def padding_counts(loss: Callable) -> Callable:
    """Divide by the number of all rows, those of padding too."""

    def loss_wrongly(logits: Tensor, targets: Tensor, *, mask: Tensor | None = None) -> Tensor:
        value = loss(logits, targets, mask=mask)
        return value if mask is None else value * mask.sum() / mask.numel()

    return loss_wrongly


def last_row_learns(loss: Callable) -> Callable:
    """Send a gradient into the last row only; the value stays as it is."""

    def loss_wrongly(logits: Tensor, targets: Tensor, *, mask: Tensor | None = None) -> Tensor:
        held = torch.cat([logits[:, :-1].detach(), logits[:, -1:]], dim=1)
        return loss(held, targets, mask=mask)

    return loss_wrongly


def second_best(pick: Callable) -> Callable:
    """Choose the token with the second-largest logit."""

    def pick_wrongly(logits: Tensor, **options) -> Tensor:
        best = torch.nn.functional.one_hot(pick(logits, **options), logits.shape[-1]).bool()
        return pick(logits.masked_fill(best, -torch.inf), **options)

    return pick_wrongly


PERTURBATIONS = {
    "eq-machine-embedding": Perturbation(
        "no factor on the embedding", patch={"lib.transformer.Encoder": unscaled}
    ),
    "eq-ffn": Perturbation("no nonlinearity", patch={"lib.block.FeedForward": linear}),
    "eq-encoder-layer": Perturbation(
        "the residual is taken from the norm", patch={"lib.block.Block": from_normalized}
    ),
    "prp-context": Perturbation(
        "the source is compressed into one vector", patch={"lib.transformer.Encoder": pooled}
    ),
    "eq-decoder-layer": Perturbation(
        "cross-attention comes last", patch={"lib.block.Block": crosses_last}
    ),
    "eq-logits": Perturbation(
        "logits divided by a root", patch={"lib.transformer.LanguageModel": scaled_down}
    ),
    "thm-teacher-forcing": Perturbation(
        "positions count from the end",
        patch={"lib.transformer.count_positions": counted_from_the_end},
    ),
    "prp-seen-tokens": Perturbation(
        "the shift is forgotten", patch={"lib.training.teacher_forcing": unshifted}
    ),
    "prp-entropy": Perturbation(
        "the two distributions change places",
        replace=("torch.special.xlogy(p, q)", "torch.special.xlogy(q, p)"),
    ),
    "eq-cross-entropy": Perturbation(
        "padding counts in the mean", patch={"lib.training.sequence_loss": padding_counts}
    ),
    "eq-loss-gradient": Perturbation(
        "only the last row learns", patch={"lib.training.sequence_loss": last_row_learns}
    ),
    "prp-double-softmax": Perturbation(
        "the floor of a single softmax",
        replace=("math.log(math.e + n_tokens - 1) - 1", "0.0 * n_tokens"),
    ),
    "prp-padded": Perturbation(
        "the encoder attends to padding", patch={"lib.transformer.Encoder": ignores_padding_mask}
    ),
    "prp-greedy": Perturbation("second best", patch={"lib.generation.pick_token": second_best}),
    "prp-steps": Perturbation(
        "a skip over two tokens in the recurrent network",
        replace=("torch.tanh(h @ w + x[j] @ u)", "torch.tanh(h @ w + x[j] @ u + x[j - 2] @ u)"),
    ),
}
