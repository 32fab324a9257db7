"""What breaks each claim of chapter 02, and nothing else in it."""

from collections.abc import Callable

import torch
from torch import Tensor

import lib.transformer  # noqa: F401 (bound to the unbroken parts before one of them is patched)
from lib.sinusoidal import SinusoidalPosition
from tests.course.execution import Perturbation


def split_interleaved(_: Callable) -> Callable:
    """Give head h the columns h, h + n_heads, h + 2 n_heads, ... in place of a block."""
    return lambda x, n_heads: x.unflatten(-1, (-1, n_heads)).movedim(-1, -3)


def merge_interleaved(_: Callable) -> Callable:
    """Undo it, so that nothing but the layout is wrong."""
    return lambda x: x.movedim(-3, -1).flatten(-2)


def undivided(attention: type) -> type:
    """Give every head the whole width where no width is asked for."""

    class Undivided(attention):
        def __init__(self, d_model, n_heads, *, head_dim=None, **options):
            head_dim = d_model if head_dim is None else head_dim
            super().__init__(d_model, n_heads, head_dim=head_dim, **options)

    return Undivided


def unpadded(attention: type) -> type:
    """Forget a mask that is the same for all queries."""

    class Unpadded(attention):
        def forward(self, x, context=None, *, mask=None, **options):
            if mask is not None and mask.shape[-2] == 1:
                mask = None
            return super().forward(x, context, mask=mask, **options)

    return Unpadded


def numbered_context(attention: type) -> type:
    """Add its position to each token of the context."""

    class Numbered(attention):
        def forward(self, x, context=None, **options):
            if context is not None:
                position = torch.arange(context.shape[-2], dtype=context.dtype)
                context = context + position[:, None]
            return super().forward(x, context, **options)

    return Numbered


def asking_counts(attention: type) -> type:
    """Add the token that asks to its answer, in cross-attention."""

    class Added(attention):
        def forward(self, x, context=None, **options):
            result = super().forward(x, context, **options)
            if context is None:
                return result
            return (result[0] + x, *result[1:]) if isinstance(result, tuple) else result + x

    return Added


def ungrouped(attention: type) -> type:
    """Give every query head keys and values of its own."""

    class Ungrouped(attention):
        def __init__(self, *sizes, n_kv_heads=None, **options):
            super().__init__(*sizes, **options)

    return Ungrouped


def one_ahead(make: Callable) -> Callable:
    """Let each query see one position more than it may."""

    def make_wrongly(q_len: int, k_len: int) -> Tensor:
        return make(q_len, k_len, offset=k_len - q_len + 1)

    return make_wrongly


def short_sighted(make: Callable) -> Callable:
    """Let each query see itself and the position before it, and nothing else."""

    def make_wrongly(q_len: int, k_len: int) -> Tensor:
        return make(q_len, k_len) & ~make(q_len, k_len, offset=k_len - q_len - 2)

    return make_wrongly


def with_positions(encoder: type) -> Callable:
    """Put positions into the encoder that should have none."""

    def make_wrongly(vocab_size, d_model, *, position, **options):
        position = SinusoidalPosition(d_model)
        return encoder(vocab_size, d_model, position=position, **options)

    return make_wrongly


def numbers_from_the_text(position: type) -> type:
    """Let the numbers that T5 adds to the scores depend on the tokens, later ones too."""

    class FromText(position):
        def bias(self, q, k, prepared):
            added = super().bias(q, k, prepared)
            return added * k.square().mean()

    return FromText


MODULE = "lib.attention.MultiHeadAttention"
CAUSAL = "lib.attention.causal_mask"

PERTURBATIONS = {
    "thm-one-list": Perturbation(
        "the error is said to be 1 - w", replace=("w[job] ** 2 / (w**2).sum()", "w[job]")
    ),
    "thm-blocks": Perturbation(
        "interleaved columns",
        patch={
            "lib.attention.split_heads": split_interleaved,
            "lib.attention.merge_heads": merge_interleaved,
        },
    ),
    "prp-view": Perturbation(
        "the view is said to keep the tokens",
        replace=("divmod(h * length + t, n_heads)", "divmod(t * n_heads + h, n_heads)"),
    ),
    "eq-output-sum": Perturbation(
        "columns of W_o are given to the heads, in place of rows",
        replace=(
            "w_o.reshape(n_heads, d_v, d_model)",
            "w_o.reshape(d_v, n_heads, d_model).mT.reshape(n_heads, d_v, d_model)",
        ),
    ),
    "prp-equal-heads": Perturbation(
        "the heads look at different places",
        replace=("weights @ tokens @ value_maps[h]", "weights.roll(h, 0) @ tokens @ value_maps[h]"),
    ),
    "eq-head-parameters": Perturbation("heads of the whole width", patch={MODULE: undivided}),
    "eq-head-products": Perturbation("heads of the whole width", patch={MODULE: undivided}),
    "prp-grouped-cost": Perturbation("groups of one head", patch={MODULE: ungrouped}),
    "prp-padding": Perturbation("the padding mask is dropped", patch={MODULE: unpadded}),
    "thm-prefix": Perturbation("a causal mask one ahead", patch={CAUSAL: one_ahead}),
    "prp-one-key": Perturbation("the asking token counts", patch={MODULE: asking_counts}),
    "prp-three-uses": Perturbation(
        "T5's numbers are computed from the text",
        patch={"lib.t5.T5Position": numbers_from_the_text},
    ),
    "thm-equivariance": Perturbation("a numbered context", patch={MODULE: numbered_context}),
    "cor-encoder": Perturbation("positions", patch={"lib.transformer.Encoder": with_positions}),
    "prp-causal-order": Perturbation("two positions only", patch={CAUSAL: short_sighted}),
    "prp-dense": Perturbation(
        "rows and columns of blocks are exchanged",
        replace=(
            "full[n * d : (n + 1) * d, m * d : (m + 1) * d]",
            "full[m * d : (m + 1) * d, n * d : (n + 1) * d]",
        ),
    ),
    "eq-full-map": Perturbation(
        "who asks and who is asked are exchanged", replace=('"hmn,hij->nimj"', '"hmn,hij->minj"')
    ),
}
