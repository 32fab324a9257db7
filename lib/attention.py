r"""Scaled dot-product attention: heads, shared KV heads, sinks (chapters 01, 02, 10 and 14).

Shapes, with ``...`` for any leading dimensions (usually ``batch, heads``):

=========  ===========================  =============================================
name       shape                        meaning
=========  ===========================  =============================================
query      ``(..., q_len, head_dim)``   what position m looks for
key        ``(..., k_len, head_dim)``   what position n is matched by
value      ``(..., k_len, value_dim)``  what position n contributes
scores     ``(..., q_len, k_len)``      query · key, before the softmax
weights    ``(..., q_len, k_len)``      after the softmax; a row sums to 1
=========  ===========================  =============================================

Conventions:

- A mask is boolean and ``True`` means **may attend**, as in
  :func:`torch.nn.functional.scaled_dot_product_attention`
  (:class:`torch.nn.MultiheadAttention` uses the opposite).
- A bias is floating point and is added to the scores after they are scaled.
- A query that may attend to no key at all has weights 0 and output 0.
- The softmax is computed in float32 or wider, and the result cast back.
- With fewer KV heads than query heads, query head h uses KV head ``h // group``.

Sources: Vaswani et al., *Attention Is All You Need*, 2017, arXiv:1706.03762, section 3.2;
Shazeer, *Fast Transformer Decoding*, 2019, arXiv:1911.02150, section 3 (one KV head for all);
Ainslie et al., *GQA*, 2023, arXiv:2305.13245, section 2.2 (one per group).
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib.kv_cache import KVCache
from lib.masks import causal_mask, hide_future
from lib.norms import RMSNorm
from lib.position import NoPosition, Position
from lib.shapes import broadcasts_to, check_sizes

__all__ = [
    "LayerState",
    "MultiHeadAttention",
    "attention_with_sinks",
    "causal_mask",
    "grouped_query_attention",
    "merge_heads",
    "scaled_dot_product_attention",
    "split_heads",
]


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    causal: bool = False,
    scale: float | None = None,
    softcap: float | None = None,
    return_weights: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    r"""Give each query a weighted mean of the values.

    .. math::

        \begin{aligned}
        &\operatorname{Attention}(Q, K, V) \\
        &\quad = \operatorname{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}} + B\right) V
        \end{aligned}

    This is ``eq-attention`` of chapter 01, with a bias B added (0 when not given). Without
    ``return_weights`` torch's fused kernel computes it and never stores the weights; with it, the
    lines of this function compute the same, readably. In half precision the kernel rounds the bias
    to the query's dtype first.

    Args:
        query: ``(..., q_len, head_dim)``.
        key: ``(..., k_len, head_dim)``.
        value: ``(..., k_len, value_dim)``.
        mask: boolean, broadcastable to ``(..., q_len, k_len)``; ``True`` = may attend. Hidden keys
            and values have no influence as long as they are finite: a hidden NaN or infinity
            makes the output NaN, because 0 · NaN is NaN (``prp-mask``, chapter 01).
        bias: floating point, broadcastable to ``(..., q_len, k_len)``; added to the scaled
            scores (chapters 04 and 06).
        causal: also hide every later key, as :func:`lib.masks.causal_mask` does; the last query is
            at the last key. With as many queries as keys, and neither mask nor bias, the kernel
            leaves the hidden half of the scores out.
        scale: what the scores are multiplied by; ``1 / sqrt(head_dim)`` when not given.
        softcap: c; a scaled score s becomes :math:`c \tanh(s/c)`, before bias and mask
            (``eq-softcap``, chapter 14). The fused kernel cannot do this and is not used.
        return_weights: also return the weights.

    Returns:
        The output ``(..., q_len, value_dim)``; with ``return_weights`` the pair
        ``(output, weights)``, weights ``(..., q_len, k_len)``. A row whose mask is ``False``
        everywhere (or whose bias is ``-inf`` everywhere) has weights 0 and output 0.

    Raises:
        ValueError: if shapes, dtypes or devices do not fit together, or the cap is not positive.

    Example:
        >>> q = torch.tensor([[1.0, 0.0]])
        >>> k = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> v = torch.tensor([[10.0], [20.0]])
        >>> scaled_dot_product_attention(q, k, v, mask=torch.tensor([[True, False]]))
        tensor([[10.]])
    """
    leading = check_qkv(query, key, value)
    q_len, k_len = query.shape[-2], key.shape[-2]
    if scale is None:
        scale = 1.0 / math.sqrt(query.shape[-1])
    shape = (*leading, q_len, k_len)
    check_added("mask", mask, query, shape)
    check_added("bias", bias, query, shape)
    _check_softcap(softcap)
    in_the_open = return_weights or softcap is not None
    skip_future = causal and _can_skip_future(q_len, k_len, mask, bias, in_the_open)
    if causal and not skip_future:
        mask = hide_future(mask, q_len, k_len, query.device)

    if not in_the_open:
        return _fused(query, key, value, mask, bias, skip_future, scale, leading)

    wide = torch.promote_types(query.dtype, torch.float32)
    scores = query.to(wide) @ key.to(wide).transpose(-2, -1) * scale  # (..., q_len, k_len)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias.to(wide)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    # A row of -inf alone would be 0/0 in the softmax, and NaN in its gradient: such a row is
    # computed from zeros, then set to zero.
    nothing = scores.isneginf().all(dim=-1, keepdim=True)  # (..., q_len, 1)
    weights = torch.softmax(scores.masked_fill(nothing, 0.0), dim=-1).masked_fill(nothing, 0.0)
    output = (weights @ value.to(wide)).to(query.dtype)  # (..., q_len, value_dim)
    return (output, weights.to(query.dtype)) if return_weights else output


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


def grouped_query_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    causal: bool = False,
    scale: float | None = None,
    softcap: float | None = None,
    return_weights: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    r"""Attention in which several query heads share one key and value head.

    A KV head serves ``group = n_heads / n_kv_heads`` query heads (``eq-gqa`` of chapter 10).
    Their queries are concatenated, as ``group * q_len`` queries of one head: then
    there are as many query heads as KV heads, and no key and no value is ever repeated. The
    output is then split into heads again. With ``n_kv_heads == n_heads`` this is
    :func:`scaled_dot_product_attention`, with ``n_kv_heads == 1`` multi-query attention.

    The exception is a whole text that is read with ``causal``, where repeated keys and values are
    worth their memory: the kernel leaves out half of the scores, which it does with no other mask.

    Args:
        query: ``(..., n_heads, q_len, head_dim)``.
        key: ``(..., n_kv_heads, k_len, head_dim)``.
        value: ``(..., n_kv_heads, k_len, value_dim)``.
        mask: boolean, broadcastable to ``(..., n_heads, q_len, k_len)``; ``True`` = may attend.
        bias: floating point, broadcastable to the same shape.
        causal: as in :func:`scaled_dot_product_attention`.
        scale: likewise.
        softcap: likewise.
        return_weights: also return the weights.

    Returns:
        The output ``(..., n_heads, q_len, value_dim)``; with ``return_weights`` the pair
        ``(output, weights)``, weights ``(..., n_heads, q_len, k_len)``.

    Raises:
        ValueError: if ``n_heads`` is no multiple of ``n_kv_heads``, or shapes do not fit.
    """
    group = _check_heads(query, key, value)
    n_heads, q_len = query.shape[-3:-1]
    n_kv_heads, k_len = key.shape[-3:-1]
    same = {"scale": scale, "softcap": softcap, "return_weights": return_weights}
    if group == 1:
        return scaled_dot_product_attention(
            query, key, value, mask=mask, bias=bias, causal=causal, **same
        )
    in_the_open = return_weights or softcap is not None
    if causal and _can_skip_future(q_len, k_len, mask, bias, in_the_open):
        key, value = (x.repeat_interleave(group, dim=-3) for x in (key, value))
        return scaled_dot_product_attention(query, key, value, causal=True, scale=scale)
    if causal:
        mask = hide_future(mask, q_len, k_len, query.device)

    def fold(x: Tensor) -> Tensor:
        """``(..., n_heads, q_len, n)`` → ``(..., n_kv_heads, group * q_len, n)``."""
        return x.unflatten(-3, (n_kv_heads, group)).flatten(-3, -2)

    def fold_added(x: Tensor | None) -> Tensor | None:
        """Fold a mask or bias like the queries; where it broadcasts it stays small."""
        if x is None or x.dim() < 2:
            return x  # the same for all queries of all heads
        if x.dim() == 2 or x.shape[-3] == 1:  # the same for all heads
            return x if x.shape[-2] == 1 else torch.cat([x] * group, dim=-2)
        return fold(x.expand(*x.shape[:-2], q_len, x.shape[-1]))

    folded = fold(query)
    if mask is not None or bias is not None:  # checked before they are folded
        # (..., n_kv_heads), any of the three may have batch dimensions
        leading = check_qkv(folded, key, value)
        shape = (*leading[:-1], n_heads, q_len, k_len)
        check_added("mask", mask, query, shape)
        check_added("bias", bias, query, shape)
    result = scaled_dot_product_attention(
        folded, key, value, mask=fold_added(mask), bias=fold_added(bias), **same
    )

    def unfold(x: Tensor) -> Tensor:
        """``(..., n_kv_heads, group * q_len, n)`` → ``(..., n_heads, q_len, n)``."""
        return x.unflatten(-2, (group, q_len)).flatten(-4, -3)

    return tuple(unfold(x) for x in result) if return_weights else unfold(result)


def attention_with_sinks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    sinks: Tensor,
    *,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    causal: bool = False,
    scale: float | None = None,
    softcap: float | None = None,
    return_weights: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    r"""Attention in which a learned logit per head takes weight and gives nothing (``eq-sink``).

    With z for the sink's logit, chapter 14:

    .. math:: w_{mn} = \frac{e^{s_{mn}}}{e^{z} + \sum_j e^{s_{mj}}}

    A row of weights sums to less than 1, so a head can attend to almost nothing. The sink is one
    more key whose score is z for every query and whose value is 0, and is computed as one.

    Args:
        query: ``(..., n_heads, q_len, head_dim)``.
        key: ``(..., n_kv_heads, k_len, head_dim)``.
        value: ``(..., n_kv_heads, k_len, value_dim)``.
        sinks: z, ``(n_heads,)``. It is neither scaled nor capped.
        mask: as in :func:`grouped_query_attention`; the sink is never hidden.
        bias: likewise; it is not added to the sink.
        causal: likewise.
        scale: likewise.
        softcap: likewise.
        return_weights: also return the weights, without the sink's.

    Returns:
        As :func:`grouped_query_attention`.

    Raises:
        ValueError: if ``sinks`` is not one number per query head, or as
            :func:`grouped_query_attention`.

    Example:
        Two keys of score 0 and a sink of logit 0 take a third of the weight each.

        >>> q, kv, z = torch.zeros(1, 1, 4), torch.zeros(1, 2, 4), torch.zeros(1)
        >>> attention_with_sinks(q, kv, kv, z, return_weights=True)[1]
        tensor([[[0.3333, 0.3333]]])
    """
    _check_heads(query, key, value)
    (n_heads, q_len), k_len = query.shape[-3:-1], key.shape[-2]
    if sinks.shape != (n_heads,):
        raise ValueError(
            f"sinks have shape {tuple(sinks.shape)}, need one number for each of {n_heads} heads"
        )
    batch = check_qkv(*(x.select(-3, 0) for x in (query, key, value)))  # without the heads
    shape = (*batch, n_heads, q_len, k_len)
    check_added("mask", mask, query, shape)
    check_added("bias", bias, query, shape)
    if causal:
        mask = hide_future(mask, q_len, k_len, query.device)
    if mask is not None:
        mask = F.pad(mask.expand(*mask.shape[:-1], k_len), (0, 1), value=True)
    no_bias = sinks.new_zeros(n_heads, 1, k_len)
    bias = no_bias if bias is None else no_bias + bias  # (..., n_heads, 1 or q_len, k_len)
    sink_column = sinks[:, None, None].expand(*bias.shape[:-1], 1)
    result = grouped_query_attention(
        query,
        F.pad(key, (0, 0, 0, 1)),  # one more key and value, of zeros
        F.pad(value, (0, 0, 0, 1)),
        mask=mask,
        bias=torch.cat((bias, sink_column), dim=-1),  # (..., n_heads, 1 or q_len, k_len + 1)
        scale=scale,
        softcap=softcap,
        return_weights=return_weights,
    )
    if not return_weights:
        return result
    output, weights = result
    return output, weights[..., :-1]


class LayerState(NamedTuple):
    """What self-attention in one layer needs besides the tokens.

    Attributes:
        position: the position scheme, which all layers share.
        prepared: what its ``prepare`` returned for this forward pass, shared too.
        cache: this layer's keys and values of earlier tokens; ``None`` without a cache.
        causal: whether a token attends to no later one, besides what a mask hides.

    Example:
        >>> from lib.alibi import AlibiPosition
        >>> scheme, positions = AlibiPosition(2), torch.arange(3)[None]
        >>> state = LayerState(scheme, scheme.prepare(positions, positions))
        >>> MultiHeadAttention(4, 2)(torch.ones(1, 3, 4), state=state).shape
        torch.Size([1, 3, 4])
    """

    position: Position = NoPosition()
    prepared: Any = None
    cache: KVCache | None = None
    causal: bool = False


class MultiHeadAttention(nn.Module):
    r"""Several attentions in parallel, each in its own subspace (``eq-multi-head``, chapter 02).

    .. math::

        \begin{aligned}
        \operatorname{head}_h
        &= \operatorname{Attention}(XW_q^{(h)}, \\
        &\qquad CW_k^{(h)}, CW_v^{(h)}), \\
        Y &= [\operatorname{head}_0, \dots, \operatorname{head}_{H-1}]\,W_o
        \end{aligned}

    with the context C = X in self-attention. The matrices of all heads are stored side by side:
    rows ``h * head_dim`` to ``(h + 1) * head_dim - 1`` of ``w_q.weight`` belong to head h (a
    :class:`torch.nn.Linear` stores the transpose of W). The last four options are those of
    current models (chapter 14).

    Args:
        d_model: width of the input and of the output.
        n_heads: number of query heads.
        n_kv_heads: number of key and value heads; ``n_heads`` when not given. 1 is multi-query
            attention, anything between is grouped-query attention (chapter 10).
        head_dim: width of a query and of a key; ``d_model / n_heads`` when not given.
        value_dim: width of a value; ``head_dim`` when not given.
        context_dim: width of the context in cross-attention; ``d_model`` when not given.
        bias: whether the four linear maps have a bias.
        scale: what the scores are multiplied by. When not given, the scheme of position
            decides; without one it is ``1 / sqrt(head_dim)``.
        qk_norm: whether each head's queries and keys pass an RMS norm, with gains that the heads
            share, before position is applied (Henry et al. 2020, arXiv:2010.04245, has an L2 norm).
        softcap: as in :func:`scaled_dot_product_attention`.
        sinks: whether each head has a sink (:func:`attention_with_sinks`), with logit 0 at first.
        gated: whether the heads' outputs are multiplied by :math:`\sigma(XW_g)`, number by number,
            before :math:`W_o` (Qiu et al. 2025, arXiv:2505.06708).

    Raises:
        ValueError: if a size is below 1, or the heads do not divide.

    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.2.2.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        head_dim: int | None = None,
        value_dim: int | None = None,
        context_dim: int | None = None,
        bias: bool = False,
        scale: float | None = None,
        qk_norm: bool = False,
        softcap: float | None = None,
        sinks: bool = False,
        gated: bool = False,
    ) -> None:
        super().__init__()
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        if n_heads < 1 or n_kv_heads < 1 or n_heads % n_kv_heads:
            raise ValueError(
                f"n_heads={n_heads} must be a multiple of n_kv_heads={n_kv_heads}, both at least "
                "1: each key head serves the same number of query heads"
            )
        if head_dim is None:
            if d_model < 1 or d_model % n_heads:
                raise ValueError(
                    f"d_model={d_model} does not divide into n_heads={n_heads}: choose another "
                    "number of heads, or give head_dim"
                )
            head_dim = d_model // n_heads
        value_dim = head_dim if value_dim is None else value_dim
        context_dim = d_model if context_dim is None else context_dim
        _check_softcap(softcap)
        check_sizes(
            d_model=d_model, head_dim=head_dim, value_dim=value_dim, context_dim=context_dim
        )
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        self.head_dim, self.value_dim = head_dim, value_dim
        self.scale = scale
        self.w_q = nn.Linear(d_model, n_heads * head_dim, bias=bias)
        self.w_k = nn.Linear(context_dim, n_kv_heads * head_dim, bias=bias)
        self.w_v = nn.Linear(context_dim, n_kv_heads * value_dim, bias=bias)
        self.w_o = nn.Linear(n_heads * value_dim, d_model, bias=bias)
        self.q_norm = RMSNorm(head_dim) if qk_norm else None
        self.k_norm = RMSNorm(head_dim) if qk_norm else None
        self.softcap = softcap
        self.sinks = nn.Parameter(torch.zeros(n_heads)) if sinks else None
        self.w_g = nn.Linear(d_model, n_heads * value_dim, bias=bias) if gated else None

    @property
    def cache_sizes(self) -> tuple[int, int, int]:
        """The number of heads and the widths of a key and a value that a cache holds of a token."""
        return self.n_kv_heads, self.head_dim, self.value_dim

    def keys_values(self, context: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of a context ``(batch, k_len, context_dim)``.

        Returns:
            Keys ``(batch, n_kv_heads, k_len, head_dim)`` and values
            ``(batch, n_kv_heads, k_len, value_dim)``. In cross-attention they stay the same
            while decoding, so they are computed once and passed to :meth:`forward`.
        """
        _check_width("context", context, self.w_k.in_features)
        key = split_heads(self.w_k(context), self.n_kv_heads)  # (batch, kv_heads, k_len, head_dim)
        value = split_heads(self.w_v(context), self.n_kv_heads)  # (batch, kv_heads, k_len, v_dim)
        return key if self.k_norm is None else self.k_norm(key), value

    def forward(
        self,
        x: Tensor,
        context: Tensor | None = None,
        *,
        keys_values: tuple[Tensor, Tensor] | None = None,
        mask: Tensor | None = None,
        state: LayerState | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Let every token of ``x`` attend to the context, or to ``x`` itself without one.

        Args:
            x: ``(batch, q_len, d_model)``.
            context: ``(batch, k_len, context_dim)``: cross-attention.
            keys_values: keys and values of a context, computed before by :meth:`keys_values`.
            mask: boolean, broadcastable to ``(batch, n_heads, q_len, k_len)``; ``k_len`` counts
                the cached keys too.
            state: position scheme and cache; self-attention only. The new keys and values are
                added to the cache, and the queries attend to everything in it.
            return_weights: also return the weights.

        Returns:
            ``(batch, q_len, d_model)``; with ``return_weights`` the pair with the weights
            ``(batch, n_heads, q_len, k_len)``.

        Raises:
            ValueError: if shapes or devices do not fit, a state is given in cross-attention, or
                the context in two ways; the cache is then as it was.
        """
        if state is not None and (context is not None or keys_values is not None):
            raise ValueError(
                "cross-attention takes no position and no cache, got "
                f"position={type(state.position).__name__} and cache={type(state.cache).__name__}: "
                "the context is another sequence than the queries'"
            )
        if context is not None and keys_values is not None:
            raise ValueError("give the context or its keys_values, got both")
        _check_width("x", x, self.w_q.in_features)
        query = split_heads(self.w_q(x), self.n_heads)  # (batch, heads, q_len, head_dim)
        if self.q_norm is not None:
            query = self.q_norm(query)
        if keys_values is None:
            keys_values = self.keys_values(x if context is None else context)
        key, value = keys_values  # (batch, kv_heads, k_len, head_dim or value_dim)
        position, prepared, cache, causal = LayerState() if state is None else state
        query, key = position.transform(query, key, prepared)  # the new ones
        if cache is not None:
            if mask is not None:  # checked before anything is written
                k_len = cache.k_len(key.shape[-2])
                check_added("mask", mask, query, (*query.shape[:-1], k_len))
            key, value = cache.update(key, value)  # k_len of them: cached and new
        bias = position.bias(query, key, prepared)  # (batch or 1, heads, q_len, k_len) or None
        scale = position.scale(self.head_dim) if self.scale is None else self.scale
        options = {
            "mask": mask,
            "bias": bias,
            "causal": causal,
            "scale": scale,
            "softcap": self.softcap,
            "return_weights": return_weights,
        }
        if self.sinks is None:
            result = grouped_query_attention(query, key, value, **options)
        else:
            result = attention_with_sinks(query, key, value, self.sinks, **options)
        heads, *weights = result if return_weights else (result,)  # (batch, heads, q_len, v_dim)
        merged = merge_heads(heads)  # (batch, q_len, n_heads * value_dim)
        if self.w_g is not None:
            merged = merged * torch.sigmoid(self.w_g(x))
        output = self.w_o(merged)  # (batch, q_len, d_model)
        return (output, *weights) if return_weights else output


def _can_skip_future(q_len, k_len, mask, bias, return_weights) -> bool:
    """Whether torch's kernel can do it; its own causal mask lets the first query see one key."""
    return q_len == k_len and mask is None and bias is None and not return_weights


def _fused(query, key, value, mask, bias, causal, scale, leading):
    """The same result from torch's kernel, which needs one added mask and equal leading sizes.

    Its fast paths take exactly four dimensions, and a mask of two or four: with another number it
    silently takes a slow path (4 to 10 times slower on a CPU).
    """
    alike = len(leading) == 2 and query.shape[:-2] == key.shape[:-2] == value.shape[:-2]
    if alike and mask is None and bias is None:  # as when one token is decoded
        return F.scaled_dot_product_attention(query, key, value, is_causal=causal, scale=scale)
    two = (1, 1, *leading)[-max(2, len(leading)) :]  # leading dimensions, at least two of them

    def four_dims(x: Tensor) -> Tensor:
        return x.expand(*two, *x.shape[-2:]).flatten(0, -4)

    if bias is None:
        added = mask
    else:
        added = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
        added = added.to(query.dtype)
    if added is not None and (len(two) > 2 or added.dim() != 2):
        added = added[(None,) * (4 - added.dim())]  # broadcast, not expanded
        if len(two) > 2:
            added = four_dims(added)
    if not alike:
        query, key, value = four_dims(query), four_dims(key), four_dims(value)
    output = F.scaled_dot_product_attention(
        query, key, value, attn_mask=added, is_causal=causal, scale=scale
    )
    return output if len(leading) == 2 else output.reshape(*leading, *output.shape[-2:])


def _check_width(name: str, x: Tensor, width: int) -> None:
    if x.dim() < 2 or x.shape[-1] != width:
        raise ValueError(f"{name} has shape {tuple(x.shape)}, need (batch, length, {width})")


def _check_softcap(softcap: float | None) -> None:
    if softcap is not None and not softcap > 0:
        raise ValueError(f"softcap must be positive, got softcap={softcap}")


def _check_heads(query: Tensor, key: Tensor, value: Tensor) -> int:
    """Check that query heads can share the KV heads; return how many share one."""
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.dim() < 3:
            raise ValueError(
                f"{name} needs at least 3 dimensions (..., heads, length, dim), got shape "
                f"{tuple(tensor.shape)}"
            )
    n_heads, n_kv_heads = query.shape[-3], key.shape[-3]
    if n_kv_heads == 0 or n_heads % n_kv_heads or value.shape[-3] != n_kv_heads:
        raise ValueError(
            f"{n_heads} query heads cannot share {n_kv_heads} key heads and {value.shape[-3]} "
            "value heads: each key head serves the same number of query heads"
        )
    return n_heads // n_kv_heads


def check_qkv(query: Tensor, key: Tensor, value: Tensor) -> torch.Size:
    """Check that the three fit together; return the broadcast leading dimensions."""
    for name, tensor in (("query", query), ("key", key), ("value", value)):
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
    q_shape, k_shape, v_shape = query.shape, key.shape, value.shape
    if q_shape[-1] != k_shape[-1]:
        raise ValueError(
            f"query has head_dim {q_shape[-1]} but key has {k_shape[-1]}: "
            "their dot product needs the same number of components"
        )
    if q_shape[-1] == 0:
        raise ValueError(
            "query and key have head_dim 0: there is nothing to compare, need 1 or more"
        )
    if k_shape[-2] != v_shape[-2]:
        raise ValueError(
            f"key has {k_shape[-2]} positions but value has {v_shape[-2]}: each key needs its value"
        )
    if k_shape[-2] == 0:
        raise ValueError(
            "key and value have 0 positions: a query needs at least 1 key to attend to"
        )
    leading = q_shape[:-2]
    if leading == k_shape[:-2] == v_shape[:-2]:
        return leading
    try:
        return torch.broadcast_shapes(leading, k_shape[:-2], v_shape[:-2])
    except RuntimeError:
        raise ValueError(
            f"leading dimensions do not broadcast: query {tuple(q_shape)}, key {tuple(k_shape)}, "
            f"value {tuple(v_shape)}"
        ) from None


def check_added(name: str, added: Tensor | None, query: Tensor, shape: tuple[int, ...]) -> None:
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
    if not broadcasts_to(added.shape, shape):
        raise ValueError(
            f"{name} of shape {tuple(added.shape)} does not broadcast to the scores' shape "
            f"{tuple(shape)}, which is (..., q_len, k_len)"
        )
