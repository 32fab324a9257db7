r"""One idea for every position scheme: three places where position can enter (chapters 03 to 07).

========================  ====================================  ==============================
hook of ``Position``      where position enters                 schemes
========================  ====================================  ==============================
``embed``                 added to the input                    learned, sinusoidal
``transform``             applied to new queries and keys       rotary (RoPE)
``bias``                  added to the scaled scores            Shaw, Transformer-XL, T5, ALiBi
========================  ====================================  ==============================

Conventions:

- Positions are integer tensors ``(batch, length)``, or ``(1, length)`` where all rows share
  them. Nothing assumes ``0, 1, 2, …``: cached decoding, chunked prefill and left padding pass
  the positions they have. Padding gets position 0 and is masked.
- Positions are checked **once**, by :func:`check_positions`, where they enter a model. The
  hooks trust them: a check reads values, and reading values makes the program wait for the GPU.
- ``prepare`` runs once per forward pass, and what it returns is handed to every layer.
- Keys are cached after ``transform``, so ``transform`` sees new queries and keys only, and
  ``bias`` sees the new queries with all keys.
- A bias is final: it is added after the scores were scaled.
- One instance serves every layer of a stack; its parameters, if it has any, are shared by them.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from lib.alibi import alibi_bias, alibi_slopes
from lib.relative import (
    TransformerXLTables,
    relative_position_bucket,
    relative_positions,
    shaw_bias,
    transformer_xl_bias,
    transformer_xl_tables,
)
from lib.rope import (
    RopeScaling,
    apply_rope,
    check_layout,
    half_tables,
    rope_frequencies,
    rope_tables,
    turn_halves,
)
from lib.sinusoidal import angular_frequencies, sinusoidal_encoding

__all__ = [
    "AlibiPosition",
    "LearnedPosition",
    "NoPosition",
    "Position",
    "RotaryPosition",
    "ShawPosition",
    "SinusoidalPosition",
    "T5Position",
    "TransformerXLPosition",
    "check_positions",
]


def check_positions(
    positions: Tensor, *, batch: int, length: int, max_len: int | None = None
) -> None:
    """Check positions where they enter a model, once.

    Args:
        positions: what is to be checked.
        batch: number of rows of the input; one shared row of positions is allowed too.
        length: number of tokens per row.
        max_len: positions must be smaller than this; a scheme's ``max_len``.

    Raises:
        ValueError: if the dtype is not int32 or int64, the shape does not fit, a position is
            negative, or a position reaches ``max_len``.
    """
    if positions.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"positions must be int32 or int64, got {positions.dtype}")
    if tuple(positions.shape) not in {(batch, length), (1, length)}:
        raise ValueError(
            f"positions have shape {tuple(positions.shape)} but the input needs "
            f"{(batch, length)} or, shared by all rows, {(1, length)}"
        )
    if positions.numel() == 0:
        return
    low, high = (int(bound) for bound in torch.aminmax(positions))
    if low < 0:
        raise ValueError(f"positions cannot be negative, got {low}; padding gets position 0")
    if max_len is not None and high >= max_len:
        raise ValueError(
            f"position {high} is out of reach: this scheme has max_len={max_len} positions, "
            f"0 to {max_len - 1}"
        )


class Position(nn.Module):
    """A position scheme. Each hook's default does nothing; a scheme overrides what it is.

    Attributes:
        max_len: how many positions the scheme has; ``None`` if there is no limit. Pass it to
            :func:`check_positions`.

    A scheme that is made for one ``d_model``, ``n_heads`` or ``head_dim`` keeps it under that
    name, and a model of another size refuses the scheme when it is made.

    Example:
        What a model does in each forward, here by hand, with ALiBi and two tokens of one head:

        >>> scheme, positions = AlibiPosition(1), torch.tensor([[0, 1]])
        >>> x = scheme.embed(torch.ones(1, 2, 4), positions)  # before the first layer
        >>> prepared = scheme.prepare(positions, positions)  # once, for all layers
        >>> q = k = x.unsqueeze(1)  # in each layer: (batch, heads, length, head_dim)
        >>> q, k = scheme.transform(q, k, prepared)
        >>> scores = scheme.scale(4) * q @ k.mT + scheme.bias(q, k, prepared)
        >>> scores.shape
        torch.Size([1, 1, 2, 2])
    """

    max_len: int | None = None

    def __init__(self) -> None:
        super().__init__()
        # Empty: it is there to follow model.to(dtype), which a module without parameters cannot.
        self.register_buffer("_follower", torch.empty(0), persistent=False)

    @property
    def table_dtype(self) -> torch.dtype:
        """Of what is prepared, which is the model's dtype, or float32 where that is narrower."""
        return torch.promote_types(self._follower.dtype, torch.float32)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add position to the input.

        Args:
            x: ``(batch, length, d_model)``.
            positions: ``(batch or 1, length)``, the tokens' positions.

        Returns:
            ``(batch, length, d_model)``.
        """
        return x

    def prepare(self, q_positions: Tensor, k_positions: Tensor) -> Any:
        """Work out what all layers share: tables, buckets, distances.

        Args:
            q_positions: ``(batch or 1, q_len)``, the new tokens' positions.
            k_positions: ``(batch or 1, k_len)``, the positions of **all** keys, cached and new.

        Returns:
            Whatever ``transform`` and ``bias`` of this scheme want as ``prepared``.
        """
        return None

    def transform(self, q: Tensor, k: Tensor, prepared: Any) -> tuple[Tensor, Tensor]:
        """Change the new queries and keys, both at ``q_positions``.

        Args:
            q: ``(batch, heads, q_len, head_dim)``.
            k: ``(batch, kv_heads, q_len, head_dim)``: the new keys, before they are cached.
            prepared: what ``prepare`` returned.

        Returns:
            The pair ``(q, k)``, same shapes.
        """
        return q, k

    def bias(self, q: Tensor, k: Tensor, prepared: Any) -> Tensor | None:
        """Give what is added to the scaled scores.

        Args:
            q: ``(batch, heads, q_len, head_dim)``: the new queries, after ``transform``.
            k: ``(batch, kv_heads, k_len, head_dim)``: all keys, cached and new.
            prepared: what ``prepare`` returned.

        Returns:
            ``(batch or 1, heads, q_len, k_len)``, or ``None`` for no bias.
        """
        return None

    def scale(self, head_dim: int) -> float:
        """Give the number that multiplies query · key: ``1 / sqrt(head_dim)``; T5 has 1."""
        return 1.0 / math.sqrt(head_dim)


class NoPosition(Position):
    """No position at all: attention cannot tell orders apart, except by a causal mask."""


class LearnedPosition(Position):
    """One learned vector per position, added to the input (chapter 03).

    Args:
        max_len: number of positions; :func:`check_positions` refuses others.
        d_model: width of the input.

    Raises:
        ValueError: if a size is below 1.
    """

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        _check_sizes(max_len=max_len, d_model=d_model)
        self.max_len, self.d_model = max_len, d_model
        self.table = nn.Parameter(torch.empty(max_len, d_model))
        nn.init.normal_(self.table, std=0.02)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + self.table[positions]


class SinusoidalPosition(Position):
    """Sines and cosines added to the input (``eq-sinusoidal``, chapter 03).

    Args:
        d_model: width of the input, even.
        base: as in :func:`lib.sinusoidal.sinusoidal_encoding`.

    Raises:
        ValueError: if ``d_model`` is odd or ``base`` is not above 1.
    """

    def __init__(self, d_model: int, *, base: float = 10000.0) -> None:
        super().__init__()
        angular_frequencies(d_model, base=base)  # raises here, not at the first forward
        self.d_model, self.base = d_model, base

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + sinusoidal_encoding(positions, self.d_model, base=self.base, dtype=x.dtype)


class ShawPosition(Position):
    """A learned vector per clipped offset, compared with the query (``eq-shaw``, chapter 04).

    The term on the scores alone; :func:`lib.relative.shaw_values` shows the one on the values.
    All heads share the table, as in the paper, and all layers too.

    Args:
        head_dim: width of a head.
        max_distance: offsets beyond ± this share a vector.

    Raises:
        ValueError: if a size is below 1.
    """

    def __init__(self, head_dim: int, *, max_distance: int) -> None:
        super().__init__()
        _check_sizes(head_dim=head_dim, max_distance=max_distance)
        self.head_dim = head_dim
        self.key_table = nn.Parameter(torch.empty(2 * max_distance + 1, head_dim))
        nn.init.normal_(self.key_table, std=0.02)

    def prepare(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        return relative_positions(q_positions, k_positions).unsqueeze(1)

    def bias(self, q: Tensor, k: Tensor, prepared: Tensor) -> Tensor:
        return shaw_bias(q, self.key_table, prepared)


class TransformerXLPosition(Position):
    """Sinusoids of m − n seen through a learned map, and two learned queries.

    This is ``eq-transformer-xl`` of chapter 04.

    Args:
        n_heads: number of query heads.
        head_dim: width of a head.
        encoding_dim: width of the sinusoidal encoding, even; ``n_heads * head_dim`` if not given.
        base: as in :func:`lib.sinusoidal.sinusoidal_encoding`.

    Raises:
        ValueError: if a size is below 1, ``encoding_dim`` is odd or ``base`` is not above 1.
    """

    def __init__(
        self,
        n_heads: int,
        head_dim: int,
        *,
        encoding_dim: int | None = None,
        base: float = 10000.0,
    ) -> None:
        super().__init__()
        _check_sizes(n_heads=n_heads, head_dim=head_dim)
        self.n_heads, self.head_dim = n_heads, head_dim
        self.encoding_dim = n_heads * head_dim if encoding_dim is None else encoding_dim
        self.base = base
        angular_frequencies(self.encoding_dim, base=base)  # raises here, not at the first forward
        self.w_r = nn.Parameter(torch.empty(n_heads, head_dim, self.encoding_dim))
        self.u = nn.Parameter(torch.empty(n_heads, head_dim))
        self.v = nn.Parameter(torch.empty(n_heads, head_dim))
        for parameter in (self.w_r, self.u, self.v):
            nn.init.normal_(parameter, std=0.02)

    def prepare(self, q_positions: Tensor, k_positions: Tensor) -> TransformerXLTables:
        return transformer_xl_tables(
            q_positions.unsqueeze(1),
            k_positions.unsqueeze(1),
            self.encoding_dim,
            base=self.base,
            dtype=self.table_dtype,
        )

    def bias(self, q: Tensor, k: Tensor, prepared: TransformerXLTables) -> Tensor:
        return transformer_xl_bias(q, k, self.w_r, self.u, self.v, prepared)


class T5Position(Position):
    """One learned number per bucket of distances and head; scores are not scaled (``eq-t5``).

    Raffel et al., 2020, arXiv:1910.10683, section 2.1; chapter 04.

    Args:
        n_heads: number of query heads.
        bidirectional: ``True`` in an encoder, ``False`` in a decoder.
        num_buckets: number of buckets, of both directions together.
        max_distance: from here on everything shares one bucket.

    Raises:
        ValueError: if ``n_heads`` is below 1, or as
            :func:`lib.relative.relative_position_bucket`.
    """

    def __init__(
        self, n_heads: int, *, bidirectional: bool, num_buckets: int = 32, max_distance: int = 128
    ) -> None:
        super().__init__()
        _check_sizes(n_heads=n_heads)
        self.n_heads = n_heads
        self.buckets = {
            "bidirectional": bidirectional,
            "num_buckets": num_buckets,
            "max_distance": max_distance,
        }
        relative_position_bucket(torch.zeros(1, dtype=torch.int64), **self.buckets)  # raises here
        self.table = nn.Parameter(torch.empty(num_buckets, n_heads))
        nn.init.normal_(self.table, std=0.02)

    def prepare(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        offsets = relative_positions(q_positions, k_positions)
        bucket = relative_position_bucket(offsets, **self.buckets)
        return self.table[bucket].permute(0, 3, 1, 2)  # (batch or 1, heads, q_len, k_len)

    def bias(self, q: Tensor, k: Tensor, prepared: Tensor) -> Tensor:
        return prepared

    def scale(self, head_dim: int) -> float:
        return 1.0


class RotaryPosition(Position):
    """RoPE: queries and keys turned by their positions (``eq-rope-matrix``, chapter 05).

    Args:
        head_dim: width of a head.
        base: as in :func:`lib.rope.rope_frequencies`.
        layout: ``"interleaved"`` or ``"half"``.
        rotary_dim: how many components of a head, from the first on, are turned; all if not
            given.
        scaling: one of the scaling classes of :mod:`lib.rope`.

    Raises:
        ValueError: if ``rotary_dim`` is odd or above ``head_dim``, or an option is not valid.
    """

    def __init__(
        self,
        head_dim: int,
        *,
        base: float = 10000.0,
        layout: str = "interleaved",
        rotary_dim: int | None = None,
        scaling: RopeScaling | None = None,
    ) -> None:
        super().__init__()
        self.rotary_dim = head_dim if rotary_dim is None else rotary_dim
        if self.rotary_dim > head_dim:
            raise ValueError(f"rotary_dim={rotary_dim} is above head_dim={head_dim}")
        self.head_dim, self.base, self.layout, self.scaling = head_dim, base, layout, scaling
        check_layout(layout)
        rope_frequencies(self.rotary_dim, base=base, scaling=scaling)  # raises here

    def prepare(self, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        # Made anew each time: a buffer of frequencies would turn bfloat16 with the model.
        frequencies = rope_frequencies(
            self.rotary_dim, base=self.base, scaling=self.scaling, device=q_positions.device
        )
        factor = 1.0 if self.scaling is None else self.scaling.attention_factor
        cos, sin = rope_tables(
            q_positions.unsqueeze(1), frequencies, attention_factor=factor, dtype=self.table_dtype
        )
        return half_tables(cos, sin) if self.layout == "half" else (cos, sin)

    def transform(self, q: Tensor, k: Tensor, prepared: tuple) -> tuple[Tensor, Tensor]:
        if q.shape[-1] != self.head_dim:  # the rest of a wider head would stay as it is
            raise ValueError(
                f"the scheme was made for head_dim={self.head_dim}, got queries of shape "
                f"{tuple(q.shape)}"
            )
        if q.shape[-2] == 1:  # of one token, a second call costs more than a copy
            turned = self._turn(torch.cat((q, k), dim=1), *prepared)
            return turned.split_with_sizes((q.shape[1], k.shape[1]), dim=1)
        return self._turn(q, *prepared), self._turn(k, *prepared)

    def _turn(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        turn = turn_halves if self.layout == "half" else apply_rope
        if self.rotary_dim == x.shape[-1]:
            return turn(x, cos, sin)
        turned, rest = x[..., : self.rotary_dim], x[..., self.rotary_dim :]
        return torch.cat((turn(turned, cos, sin), rest), dim=-1)


class AlibiPosition(Position):
    """A fixed penalty per token of distance, one slope for each head (``eq-alibi``, chapter 06).

    Args:
        n_heads: number of query heads.
        rule: as in :func:`lib.alibi.alibi_slopes`.

    Raises:
        ValueError: if ``n_heads`` is below 1 or the rule is unknown.
    """

    def __init__(self, n_heads: int, *, rule: str = "official") -> None:
        super().__init__()
        alibi_slopes(n_heads, rule=rule)  # raises here, not at the first forward
        self.n_heads, self.rule = n_heads, rule

    def prepare(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        return alibi_bias(
            self.n_heads, q_positions, k_positions, rule=self.rule, dtype=self.table_dtype
        )

    def bias(self, q: Tensor, k: Tensor, prepared: Tensor) -> Tensor:
        return prepared


def _check_sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be 1 or more, got {name}={size}")
