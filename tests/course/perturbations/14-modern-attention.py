"""What breaks each claim of chapter 14, and nothing else in it."""

import math
from collections.abc import Callable

from tests.course.execution import Perturbation


def keys_read_once(count: Callable) -> Callable:
    """Forget that every tile of queries reads the keys and values again."""

    def count_wrongly(q_len, k_len, head_dim, value_dim=None, *, q_tile=None, **options):
        q_tile = q_tile if q_tile is None else q_len
        return count(q_len, k_len, head_dim, value_dim, q_tile=q_tile, **options)

    return count_wrongly


def keys_not_normed(attention: type) -> type:
    """Normalize the queries alone."""

    class Wrong(attention):
        def __init__(self, *sizes, **options):
            super().__init__(*sizes, **options)
            if self.k_norm is not None:
                self.k_norm.forward = lambda x: x

    return Wrong


def gain_ignored(norm: Callable) -> Callable:
    return lambda x, weight=None, **options: norm(x, **options)


def capped_twice_as_high(attend: Callable) -> Callable:
    def attend_wrongly(query, key, value, *, softcap=None, **options):
        softcap = None if softcap is None else 2 * softcap
        return attend(query, key, value, softcap=softcap, **options)

    return attend_wrongly


def sink_is_scaled(attend: Callable) -> Callable:
    """Divide the sink's logit by √d, as if it were a dot product."""

    def attend_wrongly(query, key, value, sinks, **options):
        return attend(query, key, value, sinks / math.sqrt(query.shape[-1]), **options)

    return attend_wrongly


def one_gate_for_all(attention: type) -> type:
    """Give all components the same gate."""

    class Wrong(attention):
        def __init__(self, *sizes, **options):
            super().__init__(*sizes, **options)
            if self.w_g is not None:
                self.w_g.register_forward_hook(
                    lambda module, given, made: made.mean(-1, keepdim=True).expand_as(made)
                )

    return Wrong


def latent_not_normed(attention: type) -> type:
    class Wrong(attention):
        def forward(self, x, **options):
            self.latent_norm.forward = lambda c: c
            return super().forward(x, **options)

    return Wrong


def absorbed_by_other_heads(attention: type) -> type:
    """Take each head's query through the matrix of the next head."""

    class Wrong(attention):
        def _absorbed(self, plain, *rest):
            return super()._absorbed(plain.roll(1, dims=1), *rest)

    return Wrong


def always_double(attention: type) -> type:
    """Keep the cache in torch's default dtype, whatever was asked for."""

    class Wrong(attention):
        def make_cache(self, batch_size, max_len, *, dtype=None, device=None):
            return super().make_cache(batch_size, max_len, device=device)

    return Wrong


PERTURBATIONS = {
    "eq-attention-bytes": Perturbation(
        "the keys are read once in all", patch={"lib.tiled.attention_bytes": keys_read_once}
    ),
    "prp-tile-intensity": Perturbation(
        "stored scores are counted once",
        replace=("+ 4 * n * n", "+ 2 * n * n"),
    ),
    "prp-merge": Perturbation(
        "two states without a key that may be seen are rescaled like others",
        replace=("if top == -math.inf:", "if False:"),
    ),
    "thm-tiled": Perturbation(
        "the scores of a tile without a visible key are not guarded",
        patch={"lib.tiled._finite": lambda _: lambda largest: largest},
    ),
    "prp-recompute": Perturbation(
        "the mask is applied after the exponential",
        replace=(".masked_fill(hidden, -math.inf).exp()", ".exp() * ~hidden"),
    ),
    "eq-qk-norm": Perturbation(
        "keys are not normalized", patch={"lib.attention.MultiHeadAttention": keys_not_normed}
    ),
    "prp-qk-norm-bound": Perturbation(
        "a bound that no score reaches",
        replace=("return math.sqrt(d_k) * g_q", "return d_k * g_q"),
    ),
    "prp-norm-rope": Perturbation(
        "the gain is ignored", patch={"lib.norms.rms_norm": gain_ignored}
    ),
    "eq-softcap": Perturbation(
        "the cap is twice as high",
        patch={"lib.attention.scaled_dot_product_attention": capped_twice_as_high},
    ),
    "prp-softcap": Perturbation(
        "the inner division is forgotten", replace=("torch.tanh(s / cap)", "torch.tanh(s)")
    ),
    "eq-sink": Perturbation(
        "the sink's logit is scaled", patch={"lib.attention.attention_with_sinks": sink_is_scaled}
    ),
    "prp-sink": Perturbation(
        "the gate opens for bad matches",
        replace=("torch.sigmoid(level - z)", "torch.sigmoid(z - level)"),
    ),
    "eq-gate": Perturbation(
        "one gate for all components", patch={"lib.attention.MultiHeadAttention": one_gate_for_all}
    ),
    "prp-mla-rope": Perturbation(
        "no rotation", replace=("(theta * offset)", "(0.0 * theta * offset)")
    ),
    "eq-mla": Perturbation(
        "the latent is not normalized", patch={"lib.latent.LatentAttention": latent_not_normed}
    ),
    "thm-mla-absorbed": Perturbation(
        "queries are absorbed by another head's matrix",
        patch={"lib.latent.LatentAttention": absorbed_by_other_heads},
    ),
    "eq-mla-bytes": Perturbation(
        "the cache ignores the dtype", patch={"lib.latent.LatentAttention": always_double}
    ),
    "prp-mla-intensity": Perturbation(
        "one query for all heads",
        replace=("torch.empty(heads, d_lat", "torch.empty(1, d_lat"),
    ),
}
