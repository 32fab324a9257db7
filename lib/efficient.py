r"""Attention for less than q_len × k_len: windows, projections, random features (chapter 11).

=====================================  =============================  ============================
function                               what it changes                operations, about
=====================================  =============================  ============================
:func:`lib.masks.sliding_window_mask`  pairs that may attend (exact)  q_len · window · head_dim
:func:`linformer_attention`            a few mixtures for all keys    q_len · rank · head_dim
:func:`performer_attention`            softmax's kernel, estimated    length · features · head_dim
=====================================  =============================  ============================

The mask alone saves nothing: a kernel has to skip the pairs that it rules out. The other two
save operations but approximate, so chapter 11 measures their error along with their cost.

Conventions: shapes as in :mod:`lib.attention`; masks as in :mod:`lib.masks`.
"""

import math

import torch
from torch import Tensor

from lib.attention import scaled_dot_product_attention
from lib.masks import sliding_window_mask
from lib.shapes import check_sizes

__all__ = [
    "linformer_attention",
    "performer_attention",
    "performer_projection",
    "sliding_window_mask",
]


def linformer_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_projection: Tensor,
    value_projection: Tensor,
    *,
    scale: float | None = None,
) -> Tensor:
    r"""Attend to ``rank`` mixtures of the keys in place of k_len keys (``eq-linformer``).

    .. math:: \operatorname{softmax}\!\left(\frac{Q (E K)^\top}{\sqrt{d_k}}\right) F V

    E and F are learned, for one fixed k_len. Each mixture holds keys of all positions, so there
    is no causal form. Wang et al., *Linformer*, 2020, arXiv:2006.04768, section 4.

    Args:
        query: ``(..., q_len, head_dim)``.
        key: ``(..., k_len, head_dim)``.
        value: ``(..., k_len, value_dim)``.
        key_projection: E, ``(rank, k_len)``, or ``(..., rank, k_len)`` for one per head.
        value_projection: F, like E.
        scale: what the scores are multiplied by; ``1 / sqrt(head_dim)`` when not given.

    Returns:
        ``(..., q_len, value_dim)``.

    Raises:
        ValueError: if a projection does not have k_len columns or the keys' dtype and device, the
            two differ in rank, or as :func:`lib.attention.scaled_dot_product_attention`.
    """
    _check_dimensions(
        key=key, value=value, key_projection=key_projection, value_projection=value_projection
    )
    if not key_projection.dtype == value_projection.dtype == key.dtype == value.dtype:
        raise ValueError(
            f"key_projection is {key_projection.dtype} and value_projection "
            f"{value_projection.dtype}, but key is {key.dtype} and value {value.dtype}"
        )
    if not key_projection.shape[-1] == value_projection.shape[-1] == key.shape[-2]:
        raise ValueError(
            f"key_projection {tuple(key_projection.shape)} and value_projection "
            f"{tuple(value_projection.shape)} need {key.shape[-2]} columns, one per key"
        )
    if key_projection.shape[-2] != value_projection.shape[-2]:
        raise ValueError(
            f"key_projection has rank {key_projection.shape[-2]} but value_projection has rank "
            f"{value_projection.shape[-2]}: each mixed key needs its mixed value"
        )
    mixed_key = key_projection @ key  # (..., rank, head_dim)
    mixed_value = value_projection @ value  # (..., rank, value_dim)
    return scaled_dot_product_attention(query, mixed_key, mixed_value, scale=scale)


def performer_projection(
    n_features: int,
    head_dim: int,
    *,
    orthogonal: bool = True,
    generator: torch.Generator | None = None,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Tensor:
    r"""Draw the random directions of :func:`performer_attention`.

    Each row is distributed as a standard normal vector. Orthogonal rows, in blocks of head_dim,
    give the estimate a smaller variance (arXiv:2009.14794, section 2.4).

    Args:
        n_features: number of rows.
        head_dim: length of a row.
        orthogonal: make the rows of a block orthogonal; otherwise all are independent.
        generator: the source of randomness; on ``device``.
        dtype: dtype of the result; drawn in float64.
        device: where the result is made.

    Returns:
        ``(n_features, head_dim)``.

    Raises:
        ValueError: if a size is below 1.
    """
    check_sizes(n_features=n_features, head_dim=head_dim)
    options = {"generator": generator, "dtype": torch.float64, "device": device}
    if not orthogonal:
        return torch.randn(n_features, head_dim, **options).to(dtype)
    n_blocks = math.ceil(n_features / head_dim)
    directions, upper = torch.linalg.qr(torch.randn(n_blocks, head_dim, head_dim, **options))
    # Without the signs the factor of a QR decomposition is not uniformly distributed.
    directions = directions * upper.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)
    lengths = torch.randn(n_blocks, head_dim, head_dim, **options).norm(dim=-1, keepdim=True)
    rows = directions.transpose(-2, -1) * lengths
    return rows.flatten(0, 1)[:n_features].to(dtype)


def performer_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    projection: Tensor,
    causal: bool = False,
    scale: float | None = None,
    chunk: int = 64,
) -> Tensor:
    r"""Estimate softmax attention in time linear in the length, FAVOR+ (``eq-performer``).

    For a standard normal vector ω, :math:`e^{q^\top k}` is the mean of
    :math:`e^{\omega^\top q - |q|^2/2} \, e^{\omega^\top k - |k|^2/2}`: a product of a function of
    q and a function of k. With features φ from ``n_features`` draws,

    .. math::

        \begin{aligned}
        \phi(x)_r &= e^{\omega_r^\top x - |x|^2 / 2}, \\
        \text{output}_m
        &= \frac{\phi(q_m)^\top \sum_n \phi(k_n) v_n^\top}{\phi(q_m)^\top \sum_n \phi(k_n)},
        \end{aligned}

    and the sums over n are made once (``causal``: carried along), not once per query. Features
    are positive, and so is the denominator. Choromanski et al., 2021, arXiv:2009.14794, section 2.

    The exponentials stay in range without changing the ratio. For any numbers
    :math:`c_r`, one per feature, and :math:`b_m`, one per query,

    .. math::

        \begin{aligned}
        \phi(q_m)_r \, \phi(k_n)_r
        &= e^{b_m} \cdot e^{\log \phi(q_m)_r + c_r - b_m} \\
        &\quad \cdot e^{\log \phi(k_n)_r - c_r},
        \end{aligned}

    and :math:`e^{b_m}` is a factor of numerator and denominator alike. With :math:`c_r` the largest
    :math:`\log \phi(k_n)_r` over the keys, and :math:`b_m` the largest
    :math:`\log \phi(q_m)_r + c_r` over the features, no exponent is above 0.

    Args:
        query: ``(..., q_len, head_dim)``.
        key: ``(..., k_len, head_dim)``.
        value: ``(..., k_len, value_dim)``.
        projection: :math:`\omega`, ``(n_features, head_dim)``, from :func:`performer_projection`.
        causal: sum only over keys up to the query's own; needs q_len = k_len.
        scale: what q · k is multiplied by; ``1 / sqrt(head_dim)`` when not given.
        chunk: keys taken in one step when causal. Memory grows with the chunk, not with the
            square of the length.

    Returns:
        ``(..., q_len, value_dim)``, computed in float32 or wider. A causal query gets 0 if all
        features of its keys are smaller than those of a later key in its chunk by more than
        float32 can hold, about :math:`e^{-87}`; a smaller chunk helps.

    Raises:
        ValueError: if shapes or devices do not fit, the scale is not positive, or ``causal`` comes
            with q_len ≠ k_len.
    """
    _check_performer(query, key, value, projection, causal=causal, chunk=chunk)
    scale = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    if not scale > 0:
        raise ValueError(f"scale must be positive, to be split between q and k, got scale={scale}")
    wide = torch.promote_types(query.dtype, torch.float32)
    log_q = _log_features(query.to(wide), projection.to(wide), scale)  # (..., q_len, n_features)
    log_k = _log_features(key.to(wide), projection.to(wide), scale)  # (..., k_len, n_features)
    # A column of ones appended to the values sums the denominator.
    value_and_one = torch.nn.functional.pad(value.to(wide), (0, 1), value=1.0)
    if causal:
        sums = _causal_sums(log_q, log_k, value_and_one, chunk)
    else:
        level = log_k.detach().amax(dim=-2, keepdim=True)
        state = (log_k - level).exp().transpose(-2, -1) @ value_and_one
        sums = _query_features(log_q, level) @ state
    # Where all of a query's products are too small to be held, the output is 0 and not NaN.
    total = sums[..., -1:].clamp_min(torch.finfo(wide).tiny)
    return (sums[..., :-1] / total).to(query.dtype)


def _log_features(x: Tensor, projection: Tensor, scale: float) -> Tensor:
    """log φ(x √scale), so that a maximum can be subtracted before the exponential."""
    x = x * math.sqrt(scale)
    return x @ projection.T - 0.5 * x.square().sum(dim=-1, keepdim=True)


def _query_features(log_q: Tensor, level: Tensor) -> Tensor:
    """φ(q) with the keys' level c added and the query's own b subtracted."""
    raised = log_q + level
    return (raised - raised.detach().amax(dim=-1, keepdim=True)).exp()


def _causal_sums(log_q: Tensor, log_k: Tensor, value: Tensor, chunk: int) -> Tensor:
    """Sums over the keys up to each query: within its chunk as a matrix, before it as a state."""
    level, state, sums = None, None, []
    parts = (tensor.split(chunk, dim=-2) for tensor in (log_q, log_k, value))
    for part_q, part_k, part_value in zip(*parts, strict=True):
        # The largest logarithm so far, per feature; the state is rescaled when it rises.
        highest = part_k.detach().amax(dim=-2, keepdim=True)  # (..., 1, n_features)
        if level is not None:
            highest = torch.maximum(level, highest)
            state = state * (level - highest).exp().transpose(-2, -1)
        level = highest
        phi_q, phi_k = _query_features(part_q, level), (part_k - level).exp()
        within = (phi_q @ phi_k.transpose(-2, -1)).tril() @ part_value
        added = phi_k.transpose(-2, -1) @ part_value  # (..., n_features, value_dim + 1)
        sums.append(within if state is None else within + phi_q @ state)
        state = added if state is None else state + added
    return torch.cat(sums, dim=-2)


def _check_dimensions(**tensors: Tensor) -> None:
    """Check that all have two dimensions, and are where the first one is."""
    first, *_ = tensors
    for name, tensor in tensors.items():
        if tensor.dim() < 2:
            raise ValueError(f"{name} needs at least 2 dimensions, got shape {tuple(tensor.shape)}")
        if tensor.device != tensors[first].device:
            raise ValueError(
                f"{name} is on {tensor.device} but {first} is on {tensors[first].device}"
            )


def _check_performer(
    query: Tensor, key: Tensor, value: Tensor, projection: Tensor, *, causal: bool, chunk: int
) -> None:
    _check_dimensions(query=query, key=key, value=value, projection=projection)
    head_dim = query.shape[-1]
    if projection.dim() != 2 or not projection.shape[1] == head_dim == key.shape[-1]:
        raise ValueError(
            f"projection {tuple(projection.shape)} needs shape (n_features, head_dim), with the "
            f"head_dim of query {tuple(query.shape)} and key {tuple(key.shape)}"
        )
    if key.shape[-2] != value.shape[-2] or key.shape[-2] == 0:
        raise ValueError(
            f"key has {key.shape[-2]} positions and value {value.shape[-2]}: each key needs its "
            "value, and there must be at least 1"
        )
    if causal and query.shape[-2] != key.shape[-2]:
        raise ValueError(
            f"causal needs as many queries as keys, got q_len={query.shape[-2]} and "
            f"k_len={key.shape[-2]}"
        )
    if chunk < 1:
        raise ValueError(f"chunk must be 1 or more, got chunk={chunk}")
