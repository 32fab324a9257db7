r"""Sampling the next token: which tokens may be drawn, and how often (chapters 09, 10 and 13).

Each function takes logits ``(..., vocab_size)`` and returns changed ones; a token that may no
longer be drawn has −∞. So they can be applied one after another, and :func:`sample` draws from the
softmax of the result. With :math:`p = \operatorname{softmax}(\text{logits})`:

====================  ==============================================================================
function              what it does to the distribution
====================  ==============================================================================
:func:`temperature`   replaces p by something proportional to :math:`p^{1/T}`
:func:`top_k`         keeps the k likeliest tokens
:func:`top_p`         keeps the likeliest tokens, no more than needed for probability p
:func:`min_p`         keeps the tokens at least p times as likely as the likeliest
====================  ==============================================================================

Sources: top-k: Fan et al. 2018, arXiv:1805.04833, section 5.2; top-p: Holtzman et al. 2020,
arXiv:1904.09751, section 3.1; min-p: Nguyen et al. 2024, arXiv:2407.01082, section 3.
"""

import math

import torch
from torch import Tensor

__all__ = ["min_p", "sample", "temperature", "top_k", "top_p"]


def temperature(logits: Tensor, t: float) -> Tensor:
    """Divide logits by a temperature: below 1 likely tokens become likelier, above 1 less likely.

    Args:
        logits: ``(..., vocab_size)``.
        t: T, above 0. Towards 0 only the largest logit is left.

    Returns:
        ``(..., vocab_size)``, in float32 or wider.

    Raises:
        ValueError: if ``t`` is not above 0, or logits have no token.

    Example:
        >>> temperature(torch.tensor([1.0, 2.0]), 0.5)
        tensor([2., 4.])
    """
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    _check(wide)
    if not t > 0:  # a NaN, too
        raise ValueError(f"the temperature must be above 0, got {t}")
    return wide / t


def top_k(logits: Tensor, k: int) -> Tensor:
    """Keep the k largest logits, and what equals the smallest of them.

    Args:
        logits: ``(..., vocab_size)``.
        k: 1 or more; from the size of the vocabulary on, all are kept.

    Raises:
        ValueError: if ``k`` is below 1, or logits have no token or are not floating point.

    Example:
        >>> top_k(torch.tensor([0.5, 2.0, 1.0]), 2)
        tensor([-inf, 2., 1.])
    """
    _check(logits)
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}: no token would be left")
    smallest = logits.topk(min(k, logits.shape[-1]), dim=-1).values[..., -1:]  # (..., 1)
    return logits.masked_fill(logits < smallest, -torch.inf)


def top_p(logits: Tensor, p: float) -> Tensor:
    """Keep the likeliest tokens, as few as have a total probability of p or more.

    Args:
        logits: ``(..., vocab_size)``.
        p: above 0, at most 1. At 1 all are kept.

    Raises:
        ValueError: if ``p`` is out of range, or logits have no token or are not floating point.

    Example:
        Probabilities 0.5, 0.3 and 0.2: the first alone falls short of 0.6.

        >>> top_p(torch.tensor([0.3, 0.5, 0.2]).log(), 0.6).exp()
        tensor([0.3000, 0.5000, 0.0000])
    """
    _check(logits)
    if not 0 < p <= 1:
        raise ValueError(f"p must be above 0 and at most 1, got {p}")
    if p == 1:  # sums of rounded probabilities may get there too early
        return logits
    values, order = logits.sort(dim=-1, descending=True, stable=True)
    wide = torch.softmax(values, dim=-1, dtype=torch.promote_types(values.dtype, torch.float32))
    before = wide.cumsum(dim=-1) - wide  # of the likelier ones together; 0 for the likeliest
    kept = values.masked_fill(before >= p, -torch.inf)
    return torch.empty_like(logits).scatter_(-1, order, kept)


def min_p(logits: Tensor, p: float) -> Tensor:
    """Keep the tokens whose probability is at least p times the largest.

    Args:
        logits: ``(..., vocab_size)``. Their differences are all that is needed: a token is kept
            if its logit is at least the largest one plus ln p.
        p: 0 to 1. At 0 all are kept, at 1 the likeliest alone.

    Raises:
        ValueError: if ``p`` is out of range, or logits have no token or are not floating point.

    Example:
        >>> min_p(torch.tensor([0.3, 0.5, 0.2]).log(), 0.5).exp()
        tensor([0.3000, 0.5000, 0.0000])
    """
    _check(logits)
    if not 0 <= p <= 1:
        raise ValueError(f"p must be from 0 to 1, got {p}")
    least = logits.amax(dim=-1, keepdim=True) + (math.log(p) if p else -math.inf)  # (..., 1)
    return logits.masked_fill(logits < least, -torch.inf)


def sample(logits: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    r"""Draw a token from the softmax of each row of logits.

    It uses that :math:`\arg\max_i p_i / e_i`, with :math:`e_i` independent exponential
    variables, is i with probability :math:`p_i`: :math:`e_i / p_i` is exponential with rate
    :math:`p_i`, and the smallest of such variables is the i-th with a probability in proportion
    to its rate. Unlike :func:`torch.multinomial` it never waits for a GPU.

    Args:
        logits: ``(..., vocab_size)``.
        generator: torch's default when not given.

    Returns:
        Token numbers, int64 ``(...)``.

    Raises:
        ValueError: if logits have no token or are not floating point.
    """
    _check(logits)
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    weights = torch.softmax(wide, dim=-1)  # (..., vocab_size)
    noise = torch.empty_like(weights).exponential_(generator=generator)
    return (weights / noise).argmax(dim=-1)


def _check(logits: Tensor) -> None:
    if not logits.is_floating_point() or logits.dim() < 1 or logits.shape[-1] == 0:
        raise ValueError(
            "logits must be floating point of shape (..., vocab_size), got "
            f"{logits.dtype} of shape {tuple(logits.shape)}"
        )
