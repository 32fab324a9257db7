r"""Serving: many texts at once, through one model and one memory (chapter 15).

Three corollaries of ``thm-cached-decode`` (chapter 10), each a few lines on a decoder's state:

- :func:`read_in_chunks` reads a prompt in pieces (**chunked prefill**);
- :func:`continue_from` reads what a state does not hold yet (**prefix reuse**);
- :class:`RaggedBatch` joins texts of different lengths for one pass, without padding in memory.

And a simulator: :func:`serve` runs requests through a scheduler and adds up the times of its
passes, which :func:`pass_seconds` takes from the roofline of chapter 10. It computes no token.

Sources: Yu et al., *Orca*, OSDI 2022 (a scheduler that decides before each pass); Kwon et al.,
*PagedAttention*, 2023, arXiv:2309.06180, sections 4.3 and 4.5 (blocks, preemption); Agrawal et al.,
*Sarathi-Serve*, 2024, arXiv:2403.02310, section 4 (a budget of tokens per pass).
"""

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from lib.caches import WindowCache
from lib.kv_cache import DecodeState, KVCache
from lib.shapes import check_sizes
from lib.speculation import common_prefix
from lib.transformer import LanguageModel

__all__ = [
    "Machine",
    "ModelShape",
    "RaggedBatch",
    "Request",
    "Served",
    "continue_from",
    "pass_seconds",
    "read_in_chunks",
    "serve",
]


def read_in_chunks(model: LanguageModel, tokens: Tensor, state: DecodeState, chunk: int) -> Tensor:
    """Read tokens in pieces of at most ``chunk``: the logits after the last, as from one pass.

    Args:
        model: in evaluation mode, like everywhere here.
        tokens: integers ``(batch, length)``, those that the state does not hold yet.
        state: from ``model.decode_state``; updated in place.
        chunk: most tokens per pass.

    Returns:
        Logits ``(batch, vocab_size)``.

    Raises:
        ValueError: if ``chunk`` is below 1, there is no state, or as the model.
    """
    check_sizes(chunk=chunk)
    if state is None:
        raise ValueError("chunks need a state: without one, each would be read alone")
    for piece in tokens.split(chunk, dim=1):
        logits = model(piece, state=state, last_only=True)
    return logits[:, -1]


def continue_from(
    model: LanguageModel, tokens: Tensor, state: DecodeState, held: Tensor
) -> tuple[Tensor, int]:
    """Read a text with a state that holds another one: what both begin with is not read again.

    With a :class:`lib.caches.QuantizedCache` the logits are not quite those of reading the text
    anew: a group of keys that is cut is rounded twice.

    Args:
        model: the model that filled the state.
        tokens: integers ``(1, length)``, the whole text.
        state: updated in place; afterwards it holds ``tokens``.
        held: integers ``(1, state.length)``, the text that the state holds, from position 0 on
            and without padding.

    Returns:
        Logits after the last token, ``(1, vocab_size)``, and the number of tokens reused. The
        last token is always read, since its logits are wanted.

    Raises:
        ValueError: if ``held`` is not as long as the state, or the text has no token or does not
            fit; the state is then as it was. If reading the rest fails, for example because a
            pool has no free block, the state holds the common prefix.
    """
    if held.shape != (1, state.length) or tokens.dim() != 2 or 0 in tokens.shape:
        raise ValueError(
            f"need tokens (1, length) and held (1, {state.length}), as long as the state, got "
            f"{tuple(tokens.shape)} and {tuple(held.shape)}"
        )
    if tokens.shape[1] > state.max_len:  # checked before anything is discarded
        raise ValueError(
            f"the state has max_len={state.max_len} slots, and the text has "
            f"{tokens.shape[1]} tokens"
        )
    reused = min(common_prefix(tokens[0], held[0]), tokens.shape[1] - 1)
    state.truncate(reused)
    return model(tokens[:, reused:], state=state, last_only=True)[:, -1], reused


class RaggedBatch:
    """Texts of different lengths, joined for one pass.

    Each text has a state of its own, of one row, with caches of any kind. The batch takes the
    place of a state in ``model(tokens, state=batch)``: it lines the texts up at their last
    tokens, and hides the empty columns before shorter ones. They exist during a pass only. A
    text joins or leaves when the next batch is made of other states. In a pass all texts have the
    same number of new tokens, since they are rows of one tensor: a chunk of one text beside single
    tokens of others, which :func:`serve` counts, needs a kernel made for it.

    Args:
        states: one per text, all different, of one model, each with batch size 1 and without
            context.

    Attributes:
        caches: per layer, the caches of all texts.

    Raises:
        ValueError: if there is no state, or one of them has several rows, a context or another
            number of layers, or is there twice.
    """

    context_keys_values = context_mask = None

    def __init__(self, states: Sequence[DecodeState]) -> None:
        layers = {len(state.caches) for state in states}
        one_row = all(state.batch_size == 1 for state in states)
        if len(layers) != 1 or not one_row:
            raise ValueError(
                "need states of one row each and of one model, got (batch_size, layers) of "
                f"{[(state.batch_size, len(state.caches)) for state in states]}"
            )
        if any(state.context_keys_values is not None for state in states):
            raise ValueError("texts with a context cannot be joined: their contexts differ")
        if len({id(state) for state in states}) < len(states):
            raise ValueError("a state is given twice: each text needs one of its own")
        self._states = list(states)
        self.caches = [
            _JoinedCaches(caches)
            for caches in zip(*(state.caches for state in states), strict=True)
        ]

    @property
    def batch_size(self) -> int:
        """Texts in the batch."""
        return len(self._states)

    @property
    def length(self) -> int:
        """Slots of the longest text."""
        return max(state.length for state in self._states)

    @property
    def in_order(self) -> bool:
        """Whether the keys are those of all slots; texts of different lengths leave some out."""
        return False

    @property
    def largest_position(self) -> int | None:
        """A bound on all positions held; ``None`` if not known for each text."""
        bounds = [state.largest_position for state in self._states]
        return None if None in bounds else max(bounds)

    def append(
        self, new: int, *, positions: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Register ``new`` tokens of every text; return their positions, ``(batch_size, new)``.

        Raises:
            ValueError: if there is no room, or positions or a mask are given; no text is changed.
        """
        if positions is not None or mask is not None:
            raise ValueError("a ragged batch counts positions itself, and needs no mask")
        for state in self._states:
            if state.length + new > state.max_len:
                raise ValueError(
                    f"a text has max_len={state.max_len} slots and holds {state.length}: "
                    f"{new} more do not fit"
                )
        return torch.cat([state.append(new) for state in self._states])

    @property
    def k_positions(self) -> Tensor:
        """``(batch_size, k_len)``; empty columns have 0."""
        return _line_up([state.k_positions for state in self._states], dim=1)

    def mask(self, q_len: int) -> Tensor:
        """Each text's own mask, ``(batch_size, 1, q_len, k_len)``, without an empty column."""
        rows = []
        for state in self._states:
            mask = state.mask(q_len)
            if mask is None:
                k_len = state.k_positions.shape[1]
                mask = torch.ones(q_len, k_len, dtype=torch.bool, device=state.valid.device)
            rows.append(mask.reshape(1, 1, q_len, -1))
        return _line_up(rows, dim=3)

    def truncate(self, length: int) -> None:
        """Take so many tokens from every text that the longest keeps ``length``.

        Raises:
            ValueError: if a text is too short for it, or a window has overwritten what it would
                need; no text is changed.
        """
        surplus = self.length - length
        if not 0 <= surplus <= min(state.length for state in self._states):
            raise ValueError(
                f"cannot truncate to {length}: the texts hold "
                f"{[state.length for state in self._states]}"
            )
        for state in self._states:
            for cache in state.caches:
                if isinstance(cache, WindowCache):
                    cache.check_truncate(min(state.length - surplus, cache.length))
        for state in self._states:
            state.truncate(state.length - surplus)


class _JoinedCaches:
    """One layer's caches of several texts, as far as attention uses a cache."""

    def __init__(self, caches: Sequence[KVCache]) -> None:
        self._caches = caches

    def k_len(self, new: int) -> int:
        return max(cache.k_len(new) for cache in self._caches)

    def update(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        pairs = [
            cache.update(k[row : row + 1], v[row : row + 1])
            for row, cache in enumerate(self._caches)
        ]
        keys, values = zip(*pairs, strict=True)
        return _line_up(keys, dim=2), _line_up(values, dim=2)


def _line_up(rows: Sequence[Tensor], *, dim: int) -> Tensor:
    """Join tensors in dimension 0, after filling their ``dim`` on the left with 0 or False."""
    longest = max(row.shape[dim] for row in rows)
    after = rows[0].dim() - 1 - dim  # F.pad counts dimensions from the last one
    return torch.cat([F.pad(row, (0, 0) * after + (longest - row.shape[dim], 0)) for row in rows])


class ModelShape(NamedTuple):
    """The sizes that decide a pass's time.

    Attributes:
        n_weights: weights in the matrices of all layers; N in chapter 10.
        n_layers: number of layers; L.
        n_heads: query heads; H.
        n_kv_heads: key and value heads; H_kv.
        head_dim: width of a key and of a value; d_k.
        bytes_per_number: of weights and caches; b.
    """

    n_weights: float
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    bytes_per_number: float = 2


class Machine(NamedTuple):
    """A processor, as the roofline sees it.

    Attributes:
        throughput: operations per second.
        bandwidth: bytes per second.
        overhead: seconds that every pass takes besides.
    """

    throughput: float
    bandwidth: float
    overhead: float = 0.0


class Request(NamedTuple):
    """One text to be written.

    Attributes:
        arrival: when it is asked for, in seconds.
        prompt_len: tokens to be read.
        new_tokens: tokens to be written; the scheduler does not know it before.
    """

    arrival: float
    prompt_len: int
    new_tokens: int


class Served(NamedTuple):
    """How requests were served; one number per request where it is a list.

    Attributes:
        first_token: seconds from arrival to the first token.
        per_token: mean seconds from one token to the next; 0 for a single token.
        longest_gap: the longest time between two tokens, seconds; 0 for a single token.
        throughput: tokens written per second, from the first arrival to the last token.
        passes: passes through the model.
        mean_batch: texts per pass, on average.
        unused: share of the slots taken that held no token, over all passes.
        preempted: how many times a text lost its memory and had to be read again.
    """

    first_token: list[float]
    per_token: list[float]
    longest_gap: list[float]
    throughput: float
    passes: int
    mean_batch: float
    unused: float
    preempted: int


def pass_seconds(model: ModelShape, machine: Machine, pieces: Sequence[tuple[int, int]]) -> float:
    r"""Time of one pass over pieces of several texts, in the roofline model (``eq-pass-time``).

    A piece of n tokens, after t that are in the cache, takes
    :math:`2Nn + 4LHd_k\,(nt + n(n+1)/2)` operations. The pass reads the weights once, and the keys
    and values of each text once: :math:`b\,(N + \sum 2LH_\text{kv}d_k\,(t + n))` bytes. The slower
    of the two decides.

    Args:
        model: sizes of the model.
        machine: speeds of the processor.
        pieces: for each text, the tokens that it has in the cache and those that are new.

    Returns:
        Seconds.

    Example:
        One token of one text, on a machine that reads 100 bytes in a second:

        >>> pass_seconds(ModelShape(1000, 1, 1, 1, 2), Machine(1e9, 100), [(9, 1)])
        20.8
    """
    L, H, kv, dim = model[1:5]
    operations = sum(
        2 * model.n_weights * new + 4 * L * H * dim * (new * held + new * (new + 1) / 2)
        for held, new in pieces
    )
    numbers = model.n_weights + sum(2 * L * kv * dim * (held + new) for held, new in pieces)
    moved = model.bytes_per_number * numbers
    return machine.overhead + max(operations / machine.throughput, moved / machine.bandwidth)


@dataclass
class _Text:
    """A request on its way."""

    request: Request
    number: int
    held: int = 0  # tokens in the cache
    written: int = 0
    times: list[float] = field(default_factory=list)  # when each token was written

    @property
    def known(self) -> int:
        """Tokens of the prompt and written ones."""
        return self.request.prompt_len + self.written

    @property
    def unread(self) -> int:
        """Known tokens that are not in the cache; 1 while the text decodes."""
        return self.known - self.held

    @property
    def done(self) -> bool:
        return self.written == self.request.new_tokens


def serve(
    requests: Sequence[Request],
    model: ModelShape,
    machine: Machine,
    *,
    policy: str = "continuous",
    max_batch: int = 32,
    budget: int | None = None,
    slots: int | None = None,
    block_size: int | None = None,
    reserve: int | None = None,
    n_draft: int = 0,
    acceptance_rate: float = 0.0,
    common: int = 0,
) -> Served:
    """Serve requests, in the order in which they arrive, and measure what each has to wait.

    - ``"static"``: a batch is formed of what is waiting, its prompts are padded to the longest, and
      it runs until the last of its texts has ended; texts that have ended are computed on.
    - ``"continuous"``: before each pass texts that have ended leave and waiting ones join.

    A text takes either ``reserve`` slots for all of its time, or the blocks that its tokens need.
    If the blocks run out, the text that came last is preempted: it gives its blocks back, waits
    in front of the queue, and is read again, with what it had written.

    Args:
        requests: in any order.
        model: sizes of the model.
        machine: speeds of the processor.
        policy: ``"static"`` or ``"continuous"``.
        max_batch: most texts in a pass.
        budget: most tokens in a pass; decoding texts come first, and prompts are read in chunks
            of what is left. No limit when not given; continuous only.
        slots: slots of memory, in tokens; no limit when not given.
        block_size: slots per block; continuous only.
        reserve: slots per text, where no ``block_size`` is given; when not given, what the
            longest text needs, in a static batch with its padding.
        n_draft: tokens guessed for each decoding text in each pass, at no cost, as by prompt
            lookup; continuous only.
        acceptance_rate: probability that a guessed token is accepted, if those before it are;
            drawn from a generator of its own, the same in every run.
        common: tokens that all prompts begin with, a shorter prompt with as many as it has. Once a
            text has read them, those that join later do not read them again (``cor-prefix``).
            Continuous only, and without a limit of ``slots``: shared memory is not counted.

    Returns:
        :class:`Served`, in the order of ``requests``.

    Raises:
        ValueError: if an argument does not fit the others, or a text is too long for the memory.
    """
    longest = _check_serve(requests, policy, max_batch, budget, slots, block_size, reserve)
    _check_draft(policy, n_draft, acceptance_rate, max_batch, budget)
    _check_common(policy, slots, common)
    draw = random.Random(0)
    reserve = longest if reserve is None else reserve

    def room(tokens: int) -> int:
        """Slots that a text takes, if it has so many tokens."""
        return reserve if block_size is None else -(-tokens // block_size) * block_size

    texts = [_Text(request, number) for number, request in enumerate(requests)]
    waiting = deque(sorted(texts, key=lambda text: text.request.arrival))
    start = now = waiting[0].request.arrival
    running: list[_Text] = []
    passes = pieces_total = preempted = taken_total = used_total = 0
    prefix_held = 0  # tokens of the common beginning that are in memory

    while waiting or running:
        if policy == "continuous" or not running:
            while waiting and waiting[0].request.arrival <= now and len(running) < max_batch:
                needed = sum(room(text.known) for text in (*running, waiting[0]))
                if slots is not None and running and needed > slots:
                    break
                running.append(waiting.popleft())
                # At least the last token of a prompt is read, for its logits.
                running[-1].held = min(prefix_held, running[-1].request.prompt_len - 1)
        if not running:
            now = waiting[0].request.arrival
            continue

        new = _share(running, policy, budget, n_draft)
        while slots is not None and block_size is not None and len(running) > 1:
            if sum(room(t.held + n) for t, n in zip(running, new, strict=True)) <= slots:
                break
            last = running.pop()  # came last, and has waited least
            last.held, preempted = 0, preempted + 1
            waiting.appendleft(last)
            new = _share(running, policy, budget, n_draft)

        now += pass_seconds(
            model, machine, [(t.held, n) for t, n in zip(running, new, strict=True) if n]
        )
        passes, pieces_total = passes + 1, pieces_total + sum(n > 0 for n in new)
        for text, n in zip(running, new, strict=True):
            # More than there is to read is a draft; in a static batch, padding.
            n_guessed = max(0, n - text.unread) if policy == "continuous" else 0
            n_accepted = 0
            while n_accepted < n_guessed and draw.random() < acceptance_rate:
                n_accepted += 1
            text.held += n - n_guessed  # what was rejected leaves the cache
            prefix_held = max(prefix_held, min(common, text.held, text.request.prompt_len))
            if not text.done and (policy == "static" or text.unread == 0):
                text.held += n_accepted
                text.written += 1 + n_accepted
                text.times += [now] * (1 + n_accepted)
            taken_total += room(text.held)
            used_total += min(text.held, text.known)
        if policy == "continuous" or all(text.done for text in running):
            running = [text for text in running if not text.done]

    arrivals = [text.request.arrival for text in texts]
    gaps = [[b - a for a, b in zip(t.times, t.times[1:], strict=False)] or [0.0] for t in texts]
    return Served(
        first_token=[t.times[0] - arrival for t, arrival in zip(texts, arrivals, strict=True)],
        per_token=[sum(each) / len(each) for each in gaps],
        longest_gap=[max(each) for each in gaps],
        throughput=sum(text.written for text in texts) / (now - start),
        passes=passes,
        mean_batch=pieces_total / passes,
        unused=1 - used_total / taken_total,
        preempted=preempted,
    )


def _share(running: Sequence[_Text], policy: str, budget: int | None, n_draft: int) -> list[int]:
    """How many tokens of each text the next pass reads, a draft's included."""
    if policy == "static":  # all rows alike: padded prompts, then one token each
        longest = max(text.request.prompt_len for text in running)
        return [1 if text.held else longest for text in running]
    drafts = [min(n_draft, text.request.new_tokens - text.written - 1) for text in running]
    decoding = sum(1 + n for text, n in zip(running, drafts, strict=True) if text.unread == 1)
    left = float("inf") if budget is None else budget - decoding
    shares = []
    for text, n in zip(running, drafts, strict=True):
        if text.unread == 1:
            shares.append(1 + n)
        else:
            shares.append(int(min(text.unread, max(left, 0))))
            left -= shares[-1]
    return shares


def _check_draft(policy, n_draft, acceptance_rate, max_batch, budget) -> None:
    if n_draft < 0 or not 0 <= acceptance_rate <= 1:
        raise ValueError(
            f"need n_draft >= 0 and acceptance_rate from 0 to 1, got {n_draft} and "
            f"{acceptance_rate}"
        )
    if n_draft and policy == "static":
        raise ValueError(f"n_draft={n_draft} is for policy='continuous'")
    if budget is not None and budget <= max_batch * (1 + n_draft):
        raise ValueError(
            f"budget={budget} must be above {max_batch * (1 + n_draft)}: max_batch={max_batch} "
            f"texts with n_draft={n_draft}, and prompts need some"
        )


def _check_common(policy, slots, common) -> None:
    if common < 0:
        raise ValueError(f"common={common} cannot be negative")
    if common and (policy == "static" or slots is not None):
        raise ValueError(
            f"common={common} is for policy='continuous' without slots, got {policy!r} and "
            f"slots={slots}"
        )


def _check_serve(requests, policy, max_batch, budget, slots, block_size, reserve) -> int:
    """Check the arguments of :func:`serve`; return the length of the longest text."""
    check_sizes(requests=len(requests), max_batch=max_batch)
    if block_size is not None:
        check_sizes(block_size=block_size)
    for request in requests:
        check_sizes(prompt_len=request.prompt_len, new_tokens=request.new_tokens)
    if policy not in ("static", "continuous"):
        raise ValueError(f"policy must be 'static' or 'continuous', got {policy!r}")
    if policy == "static" and (budget is not None or block_size is not None):
        raise ValueError("budget and block_size are for policy='continuous'")
    if block_size is not None and reserve is not None:
        raise ValueError(f"give block_size={block_size} or reserve={reserve}, not both")
    longest = max(request.prompt_len + request.new_tokens for request in requests)
    if policy == "static":  # the shortest prompt is padded, and may have the longest continuation
        longest = max(r.prompt_len for r in requests) + max(r.new_tokens for r in requests)
    needed = longest if block_size is None else -(-longest // block_size) * block_size
    needed = max(needed, reserve or 0)
    if slots is not None and needed > slots:
        raise ValueError(f"a text takes {needed} slots, but there are slots={slots}")
    if reserve is not None and reserve < longest:
        raise ValueError(f"the longest text has {longest} tokens, but reserve={reserve}")
    return longest
