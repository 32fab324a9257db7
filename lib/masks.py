r"""Masks: which keys each query may attend to (chapters 01 and 11).

Conventions:

- Masks are boolean, ``(q_len, k_len)``, and ``True`` means "may attend".
- The query at index i has index i + offset among the keys. By default the last query is at the last
  key, as in decoding with a cache.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["causal_mask", "sliding_window_mask"]


def causal_mask(
    q_len: int,
    k_len: int,
    *,
    offset: int | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    r"""Let no query attend to a later key (``eq-causal-mask``, chapter 01).

    Query ``i`` may attend to key ``j`` when :math:`j \le i + \text{offset}`. The offset is the
    number of keys before the first query. By default it is ``k_len - q_len``: the
    last query sees the last key, which is what decoding with a cache needs.
    (``torch.nn.functional.scaled_dot_product_attention(..., is_causal=True)`` uses offset 0.)

    Args:
        q_len: number of queries, 0 or more.
        k_len: number of keys, 0 or more.
        offset: index of the last key that query 0 may see; may be negative.
        device: where the mask is made.

    Returns:
        Boolean ``(q_len, k_len)``, ``True`` = may attend.

    Raises:
        ValueError: if a length is negative.

    Example:
        >>> causal_mask(2, 4).int()
        tensor([[1, 1, 1, 0],
                [1, 1, 1, 1]], dtype=torch.int32)
    """
    if q_len < 0 or k_len < 0:
        raise ValueError(f"lengths cannot be negative: got q_len={q_len} and k_len={k_len}")
    if offset is None:
        offset = k_len - q_len
    query_index = torch.arange(q_len, device=device).unsqueeze(-1)  # (q_len, 1)
    key_index = torch.arange(k_len, device=device)  # (k_len,)
    return key_index <= query_index + offset


def sliding_window_mask(
    q_len: int,
    k_len: int,
    *,
    window: int,
    global_tokens: Sequence[int] = (),
    offset: int | None = None,
    causal: bool = True,
    device: torch.device | str | None = None,
) -> Tensor:
    r"""Let a query see keys at most ``window`` away, and the global tokens (``eq-sliding-window``).

    A global token attends to every key, and every query attends to it; with ``causal``, still no
    query looks ahead. Beltagy et al., *Longformer*, 2020, arXiv:2004.05150, section 3.1.

    Args:
        q_len: number of queries, 0 or more.
        k_len: number of keys, 0 or more.
        window: the largest distance; with 0 a query sees itself alone. A causal query sees
            ``window + 1`` keys, another one ``2 * window + 1``.
        global_tokens: indices of global tokens, from 0 to ``k_len - 1``.
        offset: index of query 0 among the keys; ``k_len - q_len`` when not given, so that the
            last query is at the last key.
        causal: whether keys after the query are ruled out.
        device: where the mask is made.

    Returns:
        Boolean ``(q_len, k_len)``, ``True`` = may attend.

    Raises:
        ValueError: if a length or the window is negative, or a global token is not among the keys.

    Example:
        >>> sliding_window_mask(4, 4, window=1, global_tokens=[0]).int()
        tensor([[1, 0, 0, 0],
                [1, 1, 0, 0],
                [1, 1, 1, 0],
                [1, 0, 1, 1]], dtype=torch.int32)
    """
    if q_len < 0 or k_len < 0:
        raise ValueError(f"lengths cannot be negative: got q_len={q_len} and k_len={k_len}")
    if window < 0:
        raise ValueError(f"window cannot be negative, got window={window}")
    outside = [token for token in global_tokens if not 0 <= token < k_len]
    if outside:
        raise ValueError(f"global tokens {outside} are not among the k_len={k_len} keys")
    if offset is None:
        offset = k_len - q_len
    q_place = torch.arange(q_len, device=device).unsqueeze(-1) + offset  # (q_len, 1)
    k_place = torch.arange(k_len, device=device)  # (k_len,)
    special = torch.tensor(global_tokens, dtype=torch.int64, device=device)
    mask = (q_place - k_place).abs() <= window
    mask = mask | torch.isin(q_place, special) | torch.isin(k_place, special)
    return mask & (k_place <= q_place) if causal else mask


def hide_future(mask: Tensor | None, q_len: int, k_len: int, device: torch.device) -> Tensor:
    """Hide every later key, besides what a mask ``(..., q_len, k_len)`` hides already."""
    past = causal_mask(q_len, k_len, device=device)
    return past if mask is None else mask & past
