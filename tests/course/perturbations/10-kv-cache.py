"""What breaks each claim of chapter 10, and nothing else in it."""

from collections.abc import Callable

import torch

from tests.course.execution import Perturbation
from tests.course.faults import unaffected


def sees_everything(make: Callable) -> Callable:
    """Forget the causal mask."""
    return lambda *arguments, **options: torch.ones_like(make(*arguments, **options))


def queries_from_zero(scheme: type) -> type:
    """Count the queries of each piece from 0."""

    class Wrong(scheme):
        def prepare(self, q_positions, k_positions):
            return super().prepare(q_positions - q_positions.min(), k_positions)

    return Wrong


def pieces_from_zero(make: Callable) -> Callable:
    """Count the positions of each piece from 0."""
    return lambda positions, *arguments, **options: make(
        positions - positions.min(), *arguments, **options
    )


def length_ignored(make: Callable) -> Callable:
    """Keep the frequencies as they are, however long the text."""
    return lambda dim, *, scaling=None, **options: make(dim, **options)


def padding_counted(state: type) -> type:
    """Take the slot for the position."""

    class Wrong(state):
        def append(self, new, *, positions=None, mask=None):
            if mask is not None and positions is None:
                slots = torch.arange(self.length, self.length + new)
                positions = slots.expand(self.batch_size, new)
            return super().append(new, positions=positions, mask=mask)

    return Wrong


def context_padding_seen(state: type) -> type:
    """Forget which tokens of the context are padding."""

    class Wrong(state):
        def __init__(self, caches, *, context_keys_values=None, context_mask=None):
            super().__init__(caches, context_keys_values=context_keys_values)

    return Wrong


def grown_by_concatenation(cache: type) -> type:
    """Copy everything into a new tensor at each call."""

    class Wrong(cache):
        def update(self, k, v):
            new = k.shape[2]
            keys, values = super().update(k, v)
            return (
                torch.cat([keys[:, :, : self.length - new], k], dim=2),
                torch.cat([values[:, :, : self.length - new], v], dim=2),
            )

    return Wrong


def written_then_refused(cache: type) -> type:
    """Count what fits before finding that not all of it does."""

    class Wrong(cache):
        def update(self, k, v):
            try:
                return super().update(k, v)
            except ValueError:
                self.length = min(self.max_len, self.length + k.shape[2])
                raise

    return Wrong


def logits_everywhere(model: type) -> type:
    """Without a state, score after every token, whatever is asked for."""

    class Wrong(model):
        def forward(self, tokens, *, state=None, last_only=False, **options):
            last_only = last_only and state is not None
            return super().forward(tokens, state=state, last_only=last_only, **options)

    return Wrong


def read_again(model: type) -> type:
    """With a state, read as many tokens as it holds once more, and throw the result away."""

    class Wrong(model):
        def forward(self, tokens, *, state=None, **options):
            if state is not None and state.length and state.context_keys_values is None:
                super().forward(tokens[:, :1].expand(-1, state.length))
            return super().forward(tokens, state=state, **options)

    return Wrong


def twice_for_one(feed_forward: type) -> type:
    """Run the feed-forward twice on a single token."""

    class Wrong(feed_forward):
        def forward(self, x):
            if x.shape[-2] == 1:
                super().forward(x)
            return super().forward(x)

    return Wrong


def heads_in_turn(attend: Callable) -> Callable:
    """Repeat the list of KV heads, in place of each head: query head h asks h mod H_kv."""

    def attend_wrongly(query, key, value, **options):
        group = query.shape[-3] // key.shape[-3]
        repeats = (1, group, 1, 1)
        return attend(query, key.repeat(repeats), value.repeat(repeats), **options)

    return attend_wrongly


def values_forgotten(count: Callable) -> Callable:
    """Count the keys alone."""

    def count_wrongly(length, *, value_dim=None, **options):
        return count(length, value_dim=0, **options)

    return count_wrongly


PERTURBATIONS = {
    "thm-cache-rows": Perturbation(
        "the causal mask is forgotten", patch={"lib.attention.causal_mask": sees_everything}
    ),
    "prp-queries": Perturbation(
        "the last query takes from the one before",
        replace=("scores = q @ k.T", "scores = (q + q.roll(1, dims=0)) @ k.T"),
    ),
    "thm-cached-decode": Perturbation(
        "ALiBi counts the queries of each piece from 0",
        patch={"lib.schemes.AlibiPosition": queries_from_zero},
    ),
    "prp-margin": Perturbation(
        "errors up to the whole margin", replace=("0.999 * (margin / 2)", "0.999 * margin")
    ),
    "prp-rounding": Perturbation(
        "sums are rounded once, at the end",
        replace=(
            "total = torch.zeros(x.shape[0], dtype=x.dtype)",
            "total = 0.0 * x.double()[:, 0]",
        ),
    ),
    "prp-cached-keys": Perturbation(
        "each piece begins at position 0",
        patch={
            "lib.rope.RotaryPosition": unaffected,
            "lib.schemes.RotaryPosition": unaffected,
            "lib.rope.rope_tables": pieces_from_zero,
        },
    ),
    "prp-dynamic-ntk": Perturbation(
        "the length is ignored", patch={"lib.rope.rope_frequencies": length_ignored}
    ),
    "prp-left-padding": Perturbation(
        "padding is counted", patch={"lib.transformer.DecodeState": padding_counted}
    ),
    "prp-cross-cache": Perturbation(
        "padding of the source is seen",
        patch={"lib.transformer.DecodeState": context_padding_seen},
    ),
    "prp-concat": Perturbation(
        "the cache grows by concatenation", patch={"lib.kv_cache.KVCache": grown_by_concatenation}
    ),
    "prp-refused": Perturbation(
        "what fits is counted before the rest is refused",
        patch={"lib.kv_cache.KVCache": written_then_refused},
    ),
    "eq-cost-full": Perturbation(
        "logits after every token", patch={"lib.transformer.LanguageModel": logits_everywhere}
    ),
    "eq-cost-cached": Perturbation(
        "the earlier tokens are read again", patch={"lib.transformer.LanguageModel": read_again}
    ),
    "prp-parts": Perturbation(
        "the feed-forward runs twice on one token", patch={"lib.block.FeedForward": twice_for_one}
    ),
    "eq-gqa": Perturbation(
        "query heads take the KV heads in turn",
        patch={"lib.attention.grouped_query_attention": heads_in_turn},
    ),
    "eq-kv-cache-bytes": Perturbation(
        "the values are forgotten", patch={"lib.kv_cache.kv_cache_bytes": values_forgotten}
    ),
    "prp-intensity": Perturbation(
        "texts share keys and values as they share the weights",
        replace=("2 * texts * L * d * t / group", "2 * L * d * t / group"),
    ),
    "prp-roofline": Perturbation(
        "the two times are added",
        replace=(
            "max(operations / peak, moved / bandwidth)",
            "operations / peak + moved / bandwidth",
        ),
    ),
    "thm-payoff": Perturbation(
        "each text reads the weights for itself",
        replace=("moved = b * (n_weights + 2", "moved = b * (texts * n_weights + 2"),
    ),
}
