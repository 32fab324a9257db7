r"""Scaled dot-product attention and the masks that go with it (chapters 01 and 02).

Shapes, with ``...`` for any leading dimensions (usually ``batch, heads``):

=========  ==========================  =============================================
name       shape                       meaning
=========  ==========================  =============================================
query      ``(..., q_len, head_dim)``  what position m asks for
key        ``(..., k_len, head_dim)``  what position n offers to be matched with
value      ``(..., k_len, value_dim)`` what position n hands over
scores     ``(..., q_len, k_len)``     query · key, before the softmax
weights    ``(..., q_len, k_len)``     after the softmax; each row sums to 1
=========  ==========================  =============================================

Conventions:

- A mask is boolean and ``True`` means **may attend**, as in
  :func:`torch.nn.functional.scaled_dot_product_attention`
  (:class:`torch.nn.MultiheadAttention` uses the opposite).
- A bias is floating point and is added to the scores after they are scaled.
- A query that may attend to no key at all has weights 0 and output 0.
- The softmax is computed in float32 or wider, and the result cast back.

Source: Vaswani et al., *Attention Is All You Need*, 2017, arXiv:1706.03762, section 3.2.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["causal_mask", "merge_heads", "scaled_dot_product_attention", "split_heads"]


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    scale: float | None = None,
    return_weights: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    r"""Let each query take a weighted mean of the values.

    .. math::

        \operatorname{Attention}(Q, K, V)
        = \operatorname{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}} + B\right) V

    This is ``eq-attention`` of chapter 01. Without ``return_weights`` the work is handed to
    torch's fused kernel, which never stores the weights; with it, the lines below do the same
    in the open.

    Args:
        query: ``(..., q_len, head_dim)``.
        key: ``(..., k_len, head_dim)``.
        value: ``(..., k_len, value_dim)``.
        mask: boolean, broadcastable to ``(..., q_len, k_len)``; ``True`` = may attend.
        bias: floating point, broadcastable to ``(..., q_len, k_len)``; added to the scaled
            scores (chapters 04 and 06).
        scale: what the scores are multiplied by; ``1 / sqrt(head_dim)`` when not given.
        return_weights: also return the weights.

    Returns:
        The output ``(..., q_len, value_dim)``; with ``return_weights`` the pair
        ``(output, weights)``, weights ``(..., q_len, k_len)``. A row whose mask is ``False``
        everywhere has weights 0 and output 0.

    Raises:
        ValueError: if shapes, dtypes or devices do not fit together.

    Example:
        >>> q = torch.tensor([[1.0, 0.0]])
        >>> k = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> v = torch.tensor([[10.0], [20.0]])
        >>> scaled_dot_product_attention(q, k, v, mask=torch.tensor([[True, False]]))
        tensor([[10.]])
    """
    leading = _check_qkv(query, key, value)
    q_len, k_len = query.shape[-2], key.shape[-2]
    if scale is None:
        scale = 1.0 / math.sqrt(query.shape[-1])
    _check_added("mask", mask, query, (*leading, q_len, k_len))
    _check_added("bias", bias, query, (*leading, q_len, k_len))

    if not return_weights:
        return _fused(query, key, value, mask, bias, scale, leading)

    wide = torch.promote_types(query.dtype, torch.float32)
    scores = query.to(wide) @ key.to(wide).transpose(-2, -1) * scale  # (..., q_len, k_len)
    if bias is not None:
        scores = scores + bias.to(wide)
    if mask is None:
        weights = torch.softmax(scores, dim=-1)
    else:
        # A row of -inf alone would be 0/0 in the softmax, and NaN in its gradient: such a row
        # is computed from zeros, then set to zero.
        nothing = ~mask.any(dim=-1, keepdim=True)
        scores = scores.masked_fill(~mask, -torch.inf).masked_fill(nothing, 0.0)
        weights = torch.softmax(scores, dim=-1).masked_fill(nothing, 0.0)
    output = weights @ value.to(wide)  # (..., q_len, value_dim)
    return output.to(query.dtype), weights.to(query.dtype)


def causal_mask(
    q_len: int,
    k_len: int,
    *,
    offset: int | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    r"""Which keys each query may see when nobody may look ahead (``eq-causal-mask``, chapter 01).

    Query ``i`` may attend to key ``j`` when :math:`j \le i + \text{offset}`. The offset is the
    number of keys that stood before the first query. By default it is ``k_len - q_len``: the
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


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    r"""Cut the last dimension into heads and move the heads in front of the tokens.

    ``(..., length, n_heads * head_dim)`` → ``(..., n_heads, length, head_dim)``. Both steps are
    needed: a single ``view`` to the final shape would mix tokens (chapter 02).

    Args:
        x: ``(..., length, n_heads * head_dim)``.
        n_heads: number of heads, at least 1.

    Returns:
        A view ``(..., n_heads, length, head_dim)``; head h holds columns
        ``h * head_dim`` to ``(h + 1) * head_dim - 1``.

    Raises:
        ValueError: if the last dimension cannot be divided by ``n_heads``.
    """
    if n_heads < 1 or x.dim() < 2 or x.shape[-1] % n_heads:
        raise ValueError(
            f"cannot split a tensor of shape {tuple(x.shape)} into n_heads={n_heads}: it needs "
            "shape (..., length, width) with the width a multiple of n_heads"
        )
    return x.unflatten(-1, (n_heads, -1)).transpose(-3, -2)


def merge_heads(x: Tensor) -> Tensor:
    r"""Undo :func:`split_heads`.

    Args:
        x: ``(..., n_heads, length, head_dim)``.

    Returns:
        ``(..., length, n_heads * head_dim)``.

    Raises:
        ValueError: if ``x`` has fewer than three dimensions.
    """
    if x.dim() < 3:
        raise ValueError(
            f"cannot merge the heads of a tensor of shape {tuple(x.shape)}: it needs at least "
            "3 dimensions, (..., n_heads, length, head_dim)"
        )
    return x.transpose(-3, -2).flatten(-2)


def _fused(query, key, value, mask, bias, scale, leading):
    """The same result from torch's kernel, which wants one added mask and equal leading sizes."""
    if bias is None:
        added = mask
    else:
        added = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
        added = added.to(query.dtype)
    return F.scaled_dot_product_attention(
        query.expand(*leading, *query.shape[-2:]),
        key.expand(*leading, *key.shape[-2:]),
        value.expand(*leading, *value.shape[-2:]),
        attn_mask=added,
        scale=scale,
    )


def _check_qkv(query: Tensor, key: Tensor, value: Tensor) -> torch.Size:
    """Check that the three fit together; return the broadcast leading dimensions."""
    named = {"query": query, "key": key, "value": value}
    for name, tensor in named.items():
        if tensor.dim() < 2:
            raise ValueError(
                f"{name} needs at least 2 dimensions (..., length, dim), got shape "
                f"{tuple(tensor.shape)}"
            )
        if not tensor.is_floating_point():
            raise ValueError(f"{name} must be floating point, got {tensor.dtype}")
        if tensor.dtype != query.dtype:
            raise ValueError(f"{name} is {tensor.dtype} but query is {query.dtype}")
        if tensor.device != query.device:
            raise ValueError(f"{name} is on {tensor.device} but query is on {query.device}")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"query has head_dim {query.shape[-1]} but key has {key.shape[-1]}: "
            "their dot product needs the same number of components"
        )
    if query.shape[-1] == 0:
        raise ValueError(
            "query and key have head_dim 0: there is nothing to compare, need 1 or more"
        )
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"key has {key.shape[-2]} positions but value has {value.shape[-2]}: "
            "each key needs its value"
        )
    if key.shape[-2] == 0:
        raise ValueError(
            "key and value have 0 positions: a query needs at least 1 key to attend to"
        )
    try:
        return torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    except RuntimeError:
        raise ValueError(
            f"leading dimensions do not broadcast: query {tuple(query.shape)}, "
            f"key {tuple(key.shape)}, value {tuple(value.shape)}"
        ) from None


def _check_added(name: str, added: Tensor | None, query: Tensor, shape: tuple[int, ...]) -> None:
    """Check a mask or a bias against the shape of the scores."""
    if added is None:
        return
    if name == "mask" and added.dtype != torch.bool:
        raise ValueError(
            f"mask must be torch.bool with True = may attend, got {added.dtype}: "
            "pass numbers that are to be added to the scores as bias"
        )
    if name == "bias" and not added.is_floating_point():
        raise ValueError(
            f"bias must be floating point, got {added.dtype}: pass a boolean tensor as mask"
        )
    if added.device != query.device:
        raise ValueError(f"{name} is on {added.device} but query is on {query.device}")
    try:
        fits = torch.broadcast_shapes(added.shape, shape) == torch.Size(shape)
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(
            f"{name} of shape {tuple(added.shape)} does not broadcast to the scores' shape "
            f"{tuple(shape)}, which is (..., q_len, k_len)"
        )
