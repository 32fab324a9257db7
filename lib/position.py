r"""One idea for every position scheme: three places where position can enter (chapters 03 to 07).

========================  ====================================  ==============================
hook of ``Position``      where position enters                 schemes
========================  ====================================  ==============================
``embed``                 added to the input                    learned, sinusoidal
``transform``             applied to new queries and keys       rotary (RoPE)
``bias``                  added to the scaled scores            Shaw, Transformer-XL, T5,
                                                                ALiBi, KERPLE
========================  ====================================  ==============================

Conventions:

- Positions are integer tensors ``(batch, length)``, or ``(1, length)`` where all rows share
  them. Nothing assumes ``0, 1, 2, …``: cached decoding, chunked prefill and left padding pass
  the positions they have. Padding gets position 0 and is masked.
- Positions are checked **once**, by :func:`check_positions`, where they enter a model. The
  hooks trust them: a check reads values, and reading values makes the program wait for the GPU.
- ``prepare`` runs once per forward pass, and what it returns is passed to every layer.
- Keys are cached after ``transform``, so ``transform`` sees new queries and keys only, and
  ``bias`` sees the new queries with all keys.
- A bias is final: it is added after the scores were scaled.
- One instance serves every layer of a stack; its parameters, if it has any, are shared by them.

Each scheme has a module of its own, which imports this one. This module imports none of them, so
that attention, blocks and the cache depend on no scheme; it finds their classes by name, in
:mod:`lib.schemes`, on demand: ``from lib.position import RotaryPosition`` works too.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["NoPosition", "Position", "check_positions"]


def check_positions(
    positions: Tensor, *, batch: int, length: int, max_len: int | None = None
) -> None:
    """Check positions where they enter a model, once.

    Args:
        positions: the positions to check.
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
    """A position scheme. By default each hook does nothing; a scheme overrides those it needs.

    Attributes:
        max_len: how many positions the scheme has; ``None`` if there is no limit. Pass it to
            :func:`check_positions`.

    A scheme that is made for one ``d_model``, ``n_heads`` or ``head_dim`` stores it under that
    name, and a model of another size raises an error when it is built with the scheme.

    Example:
        What a model does in each forward, here by hand, with ALiBi and two tokens of one head:

        >>> from lib.alibi import AlibiPosition
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
        """The dtype of prepared tables, which is the model's, or float32 where that is narrower."""
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
            What ``transform`` and ``bias`` of this scheme take as ``prepared``.
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
        """Return what is added to the scaled scores.

        Args:
            q: ``(batch, heads, q_len, head_dim)``: the new queries, after ``transform``.
            k: ``(batch, kv_heads, k_len, head_dim)``: all keys, cached and new.
            prepared: what ``prepare`` returned.

        Returns:
            ``(batch or 1, heads, q_len, k_len)``, or ``None`` for no bias.
        """
        return None

    def scale(self, head_dim: int) -> float:
        """The factor on query · key: ``1 / sqrt(head_dim)``; T5 has 1."""
        return 1.0 / math.sqrt(head_dim)


class NoPosition(Position):
    """No position at all: attention cannot tell orders apart, except by a causal mask."""


def __getattr__(name: str) -> type[Position]:
    """Find a scheme's class: ``lib.position.RotaryPosition`` is ``lib.rope.RotaryPosition``."""
    if name.endswith("Position"):  # every import of this module looks up __path__ too
        from lib import schemes  # not at the top: every scheme imports this module

        if name in vars(schemes):
            return getattr(schemes, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
