r"""Training: teacher forcing, the loss, warm-up, and one plain loop (chapters 06 to 09).

Conventions:

- Targets are the inputs one step later; a mask says which targets count, ``True`` = counts.
- Steps are counted from 1: at step 1 the rate is already above 0.
- Random functions take a generator, so that a run can be repeated.

Sources: Vaswani et al., *Attention Is All You Need*, 2017, arXiv:1706.03762, section 5.3;
Loshchilov and Hutter, *SGDR*, 2017, arXiv:1608.03983 (the cosine).
"""

import math
from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib.shapes import check_sizes

__all__ = [
    "inverse_sqrt_rate",
    "sequence_loss",
    "shuffled_batches",
    "teacher_forcing",
    "train",
    "warmup_cosine",
]


def teacher_forcing(tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Split sequences into what the model reads and what it is to predict.

    Position m reads token m and predicts token m + 1: the earlier targets are visible, never the
    one to predict (``prp-seen-tokens``). Under a causal mask one pass then gives the losses
    of all targets (``thm-teacher-forcing``, chapter 09).

    Args:
        tokens: integers ``(batch, length)``, at least 2 long.

    Returns:
        ``(inputs, targets)``, each ``(batch, length - 1)``, views.

    Raises:
        ValueError: if there is nothing to predict.

    Example:
        >>> inputs, targets = teacher_forcing(torch.tensor([[7, 8, 9]]))
        >>> inputs.tolist(), targets.tolist()
        ([[7, 8]], [[8, 9]])
    """
    if tokens.dim() != 2 or tokens.shape[1] < 2:
        raise ValueError(
            f"tokens must be (batch, length) with length at least 2, got {tuple(tokens.shape)}"
        )
    return tokens[:, :-1], tokens[:, 1:]


def sequence_loss(logits: Tensor, targets: Tensor, *, mask: Tensor | None = None) -> Tensor:
    r"""Mean cross-entropy per target, in nats (``eq-cross-entropy``, chapter 09).

    .. math::

        -\frac{1}{|\mathcal M|} \sum_{(b, m) \in \mathcal M}
        \log \operatorname{softmax}(\text{logits}_{b,m})_{\text{target}_{b,m}}

    with :math:`\mathcal M` the pairs of a row b and a position m that count. Averaging over tokens,
    not over rows, gives each token the same weight whatever the length of its row.

    Args:
        logits: ``(batch, length, vocab_size)``.
        targets: integers ``(batch, length)``.
        mask: ``(batch, length)``, ``True`` = counts; all do when not given.

    Returns:
        A scalar in nats, computed in float32 or wider; ``nan`` if no target counts.

    Raises:
        ValueError: if shapes or dtypes do not fit.
    """
    if logits.dim() != 3 or targets.shape != logits.shape[:2]:
        raise ValueError(
            f"logits {tuple(logits.shape)} and targets {tuple(targets.shape)} do not fit: need "
            "(batch, length, vocab_size) and (batch, length)"
        )
    if targets.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"targets must be int32 or int64, got {targets.dtype}")
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    losses = F.cross_entropy(wide.flatten(0, 1), targets.flatten().long(), reduction="none")
    if mask is None:
        return losses.mean()
    if mask.dtype != torch.bool or mask.shape != targets.shape:
        raise ValueError(
            f"mask must be torch.bool of shape {tuple(targets.shape)}, got {mask.dtype} of shape "
            f"{tuple(mask.shape)}"
        )
    counts = mask.flatten()  # (batch * length,)
    return losses.masked_fill(~counts, 0.0).sum() / counts.sum()


def inverse_sqrt_rate(step: int, *, d_model: int, warmup: int) -> float:
    r"""The first Transformer's learning rate (``eq-warmup``, chapter 08).

    .. math:: d_\text{model}^{-1/2} \min(s^{-1/2},\; s \cdot w^{-3/2})

    It rises linearly for w steps, then falls like :math:`1/\sqrt{s}`.

    Args:
        step: s, from 1.
        d_model: width of the model.
        warmup: w, at least 1, in steps.

    Returns:
        The learning rate; at step w it is largest, :math:`(d_\text{model}\, w)^{-1/2}`.

    Raises:
        ValueError: if a number is below 1.
    """
    check_sizes(step=step, d_model=d_model, warmup=warmup)
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def warmup_cosine(step: int, *, warmup: int, total: int, floor: float = 0.0) -> float:
    r"""A factor on the rate: a straight rise to 1, then half a cosine down to ``floor``.

    .. math::

        \begin{cases}
        s / w & s \le w \\
        f + \tfrac{1}{2} (1 - f) \Bigl(1 + \cos \pi \dfrac{s - w}{S - w}\Bigr) & w < s \le S
        \end{cases}

    with s the step, w the warm-up, S the total and f the floor.

    Args:
        step: from 1 to ``total``; later steps stay at ``floor``.
        warmup: steps of the rise; 0 for none.
        total: steps of the whole run.
        floor: where the factor ends.

    Returns:
        The factor, a number without a unit.

    Raises:
        ValueError: if ``step`` is below 1 or ``warmup`` not below ``total``.

    Example:
        >>> [round(warmup_cosine(s, warmup=2, total=6), 2) for s in range(1, 7)]
        [0.5, 1.0, 0.85, 0.5, 0.15, 0.0]
    """
    if step < 1 or not 0 <= warmup < total:
        raise ValueError(
            f"need step >= 1 and 0 <= warmup < total, got step={step}, warmup={warmup}, "
            f"total={total}"
        )
    if step <= warmup:
        return step / warmup
    done = min(1.0, (step - warmup) / (total - warmup))
    return floor + (1.0 - floor) * 0.5 * (1.0 + math.cos(math.pi * done))


def shuffled_batches(
    n_items: int, batch_size: int, *, generator: torch.Generator
) -> Iterator[Tensor]:
    """Yield batches of indices without end: each epoch in a new order.

    Args:
        n_items: number of items; the last few of an epoch that fill no batch are left out.
        batch_size: items per batch.
        generator: decides the order.

    Returns:
        An endless iterator over integers ``(batch_size,)``.

    Raises:
        ValueError: if the items fill no batch.
    """
    if not 1 <= batch_size <= n_items:
        raise ValueError(f"batch_size={batch_size} must be 1 or more, and at most {n_items} items")

    def deal() -> Iterator[Tensor]:  # a function of its own: a generator would raise too late
        while True:
            order = torch.randperm(n_items, generator=generator)
            for start in range(0, n_items - batch_size + 1, batch_size):
                yield order[start : start + batch_size]

    return deal()


def train(
    model: nn.Module,
    batches: Iterable,
    loss_fn: Callable[[nn.Module, object], Tensor],
    optimizer: torch.optim.Optimizer,
    *,
    n_steps: int,
    rate: Callable[[int], float] | None = None,
    clip: float | None = None,
) -> list[float]:
    """Take ``n_steps`` steps with the optimizer.

    Args:
        model: trained in place; left in evaluation mode.
        batches: gives at least ``n_steps`` batches.
        loss_fn: ``loss_fn(model, batch)`` → scalar.
        optimizer: over the model's parameters.
        n_steps: number of steps.
        rate: step (from 1) → learning rate; the optimizer's own when not given.
        clip: largest norm of the whole gradient; no limit when not given.

    Returns:
        The loss before each step, ``n_steps`` numbers in the unit of ``loss_fn``.

    Raises:
        ValueError: if ``n_steps`` is below 1 or the batches run out; the steps up to there have
            been taken then.
    """
    if n_steps < 1:
        raise ValueError(f"n_steps must be at least 1, got {n_steps}")
    model.train()
    losses = []  # stay on the device: reading one would wait for it
    for step, batch in zip(range(1, n_steps + 1), batches, strict=False):
        if rate is not None:
            for group in optimizer.param_groups:
                group["lr"] = rate(step)
        loss = loss_fn(model, batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        losses.append(loss.detach())
    model.eval()
    if len(losses) < n_steps:
        raise ValueError(f"the batches ran out after {len(losses)} of n_steps={n_steps}")
    return torch.stack(losses).tolist()
