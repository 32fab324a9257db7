r"""Speculative decoding: guess several tokens, check them in one pass (chapter 15).

A **draft** guesses the next tokens. The model reads all of them in one pass, which gives the
logits after each (``thm-cached-decode``, chapter 10), and a rule decides how many are accepted:

- greedily, as many as are the argmax (:func:`accept_greedy`): the tokens of the one-token loop;
- when sampling, each with a certain probability (:func:`accept_sampled`): the tokens have the
  model's own distribution, whatever the draft (``thm-speculative``, chapter 15), as long as the
  random numbers of the two are independent.

Each pass gives at least one token, and one more for each token accepted. :func:`prompt_lookup`
needs no second model; :class:`ModelDraft` asks a small one. Texts are decoded one at a time.

Sources: Leviathan et al., *Fast Inference from Transformers via Speculative Decoding*, 2022,
arXiv:2211.17192, sections 2 and 3; Chen et al., *Accelerating LLM Decoding with Speculative
Sampling*, 2023, arXiv:2302.01318, section 2; Stern et al., *Blockwise Parallel Decoding*, 2018,
arXiv:1811.03115, section 3.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from lib import sampling
from lib.generation import check_temperature
from lib.kv_cache import KVCache
from lib.shapes import check_sizes
from lib.transformer import LanguageModel

__all__ = [
    "Draft",
    "ModelDraft",
    "Speculated",
    "accept_greedy",
    "accept_sampled",
    "acceptance",
    "common_prefix",
    "expected_tokens",
    "prompt_lookup",
    "residual",
    "speculate",
]


class Draft(NamedTuple):
    """Guessed tokens, and the distributions that they were drawn from.

    Attributes:
        tokens: int64 ``(n_draft,)``; ``n_draft`` may be 0.
        probabilities: ``(n_draft, vocab_size)``; ``None`` if each token was chosen for certain.
    """

    tokens: Tensor
    probabilities: Tensor | None = None


class Speculated(NamedTuple):
    """What :func:`speculate` wrote, and how.

    Attributes:
        tokens: the new tokens, int64 ``(new,)``.
        passes: passes through the model, the prompt's included.
        drafted: tokens that were guessed.
        accepted: guessed tokens that were accepted, those after an end token included.
    """

    tokens: Tensor
    passes: int
    drafted: int
    accepted: int


def accept_greedy(logits: Tensor, draft: Tensor) -> Tensor:
    """Accept the draft as far as the model would have chosen the same; add the model's next token.

    Args:
        logits: ``(n_draft + 1, vocab_size)``: before each token of the draft, and after the last.
        draft: int64 ``(n_draft,)``.

    Returns:
        The tokens gained, int64 ``(accepted + 1,)``.

    Raises:
        ValueError: if there is not one row of logits more than tokens.

    Example:
        The model's own choices are 1, 0, 2; the draft's second token is another one.

        >>> logits = torch.tensor([[0.0, 9.0, 0.0], [9.0, 0.0, 0.0], [0.0, 0.0, 9.0]])
        >>> accept_greedy(logits, torch.tensor([1, 2]))
        tensor([1, 0])
    """
    _check_rows("logits", logits, draft)
    chosen = logits.argmax(dim=-1)  # (n_draft + 1,)
    accepted = int((chosen[:-1] == draft).cumprod(dim=0).sum())
    return chosen[: accepted + 1]


def acceptance(target: Tensor, draft: Tensor) -> Tensor:
    r"""The probability with which each token is accepted, if it is drafted.

    .. math:: a_i = \min(1, p_i / q_i)

    Args:
        target: p, the model's distribution, ``(..., vocab_size)``.
        draft: q, the draft's, likewise.

    Returns:
        ``(..., vocab_size)``; 1 for a token that is never drafted. A drafted token is accepted
        with probability :math:`\sum_i q_i a_i = \sum_i \min(p_i, q_i)` in all.
    """
    return torch.where(target >= draft, 1.0, target / draft)


def residual(target: Tensor, draft: Tensor) -> Tensor:
    r"""The distribution of the token that replaces one that was not accepted.

    .. math:: r_i = \frac{\max(p_i - q_i, 0)}{\sum_j \max(p_j - q_j, 0)}

    Args:
        target: p, ``(..., vocab_size)``.
        draft: q, likewise.

    Returns:
        ``(..., vocab_size)``; p itself where p = q, when nothing is ever rejected.
    """
    rest = (target - draft).clamp_min(0.0)
    total = rest.sum(dim=-1, keepdim=True)
    return torch.where(total > 0, rest / total.clamp_min(torch.finfo(rest.dtype).tiny), target)


def accept_sampled(
    target: Tensor,
    draft: Tensor,
    probabilities: Tensor | None = None,
    *,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Accept a drafted token by chance, so that the result is distributed as the model's own.

    Token after token: :func:`acceptance` decides. The first one that is rejected is replaced by
    one from :func:`residual`, and the rest of the draft is dropped. If none is rejected, the
    model's next token is drawn.

    This holds if the draws here are independent of those that made the draft. Give both one
    ``torch.Generator``, or two with different seeds: two of the same seed repeat their numbers.

    Args:
        target: the model's distributions, ``(n_draft + 1, vocab_size)``.
        draft: int64 ``(n_draft,)``.
        probabilities: those that the draft was drawn from, ``(n_draft, vocab_size)``; when not
            given, each token was certain.
        generator: torch's default when not given.

    Returns:
        The tokens gained, int64 ``(accepted + 1,)``.

    Raises:
        ValueError: if there is not one row of ``target`` more than tokens, or not one row of
            ``probabilities`` for each.
    """
    _check_rows("target", target, draft)
    if probabilities is None:
        probabilities = F.one_hot(draft, target.shape[-1]).to(target.dtype)
    if probabilities.shape != target[1:].shape:
        raise ValueError(
            f"probabilities have shape {tuple(probabilities.shape)}, need "
            f"{tuple(target[1:].shape)}: one row for each token of the draft"
        )
    chance = torch.rand(draft.shape, generator=generator, dtype=target.dtype, device=target.device)
    accepts = acceptance(target[:-1], probabilities).gather(1, draft[:, None])[:, 0]
    accepted = int((chance < accepts).cumprod(dim=0).sum())
    last = target[accepted]  # (vocab_size,)
    if accepted < len(draft):
        last = residual(last, probabilities[accepted])
    return torch.cat([draft[:accepted], sampling.sample(last.log(), generator=generator)[None]])


def expected_tokens(rate: float, n_draft: int) -> float:
    r"""Tokens per pass, if each drafted token is accepted with the same probability.

    .. math:: 1 + a + a^2 + \dots + a^n = \frac{1 - a^{n + 1}}{1 - a}

    Args:
        rate: a, the probability that a token is accepted, given that those before it are.
        n_draft: n, tokens in a draft.

    Raises:
        ValueError: if the rate is no probability or ``n_draft`` is negative.

    Example:
        >>> expected_tokens(0.5, 3)
        1.875
    """
    if not 0 <= rate <= 1 or n_draft < 0:
        raise ValueError(f"need a rate from 0 to 1 and n_draft >= 0, got {rate} and {n_draft}")
    return float(sum(rate**j for j in range(n_draft + 1)))


def prompt_lookup(tokens: Tensor, n_draft: int, *, longest: int = 3) -> Draft:
    """Guess that the text repeats itself: copy what followed its last tokens before.

    The last ``longest`` tokens are looked for, then fewer. Of several places the latest is taken.

    Args:
        tokens: the text so far, ``(length,)``.
        n_draft: most tokens to guess.
        longest: most last tokens to look for.

    Returns:
        A draft of ``n_draft`` tokens or fewer, chosen for certain; empty if the last token did
        not occur before.

    Raises:
        ValueError: if ``longest`` is below 1.

    Example:
        >>> prompt_lookup(torch.tensor([7, 8, 9, 5, 7, 8]), 2).tokens
        tensor([9, 5])
    """
    check_sizes(longest=longest)
    for size in range(min(longest, len(tokens) - 1), 0, -1):
        places = tokens[:-1].unfold(0, size, 1)  # (len - size, size), without the last one
        matches = (places == tokens[-size:]).all(dim=1).nonzero()[:, 0]
        if len(matches):
            start = int(matches[-1]) + size
            return Draft(tokens[start : start + n_draft])
    return Draft(tokens[:0])


class ModelDraft:
    """Guess with another model, usually a small one.

    It has a cache of its own and reads only what it has not read yet.

    Args:
        model: with the vocabulary of the model that checks.
        max_len: the longest text.
        temperature: 0 guesses the likeliest token; above 0, tokens are drawn from
            ``softmax(logits / temperature)``.
        generator: for sampling; torch's default when not given.

    Raises:
        ValueError: if the temperature is negative or ``max_len`` is below 1.
    """

    def __init__(
        self,
        model: LanguageModel,
        max_len: int,
        *,
        temperature: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        check_temperature(temperature)
        self.model, self.temperature, self.generator = model, temperature, generator
        self._state = model.decode_state(1, max_len)
        self._read: Tensor | None = None  # begins with the tokens in the state

    def __call__(self, tokens: Tensor, n_draft: int) -> Draft:
        """Guess ``n_draft`` tokens that follow the text ``(length,)``."""
        if n_draft == 0:
            return Draft(tokens[:0])
        if self._read is not None:  # what was rejected is forgotten; the last token is read again
            common = min(common_prefix(self._read, tokens), len(tokens) - 1)
            self._state.truncate(min(common, self._state.length))  # shorter after a failed call
        text, rows = tokens, []
        for _ in range(n_draft):
            unread = text[None, self._state.length :]
            logits = self.model(unread, state=self._state, last_only=True)[0, -1]
            self._read = text
            if self.temperature:
                scaled = sampling.temperature(logits, self.temperature)
                rows.append(scaled.softmax(dim=-1))
                chosen = sampling.sample(scaled, generator=self.generator)
            else:
                chosen = logits.argmax()
            text = torch.cat([text, chosen[None]])
        return Draft(text[len(tokens) :], torch.stack(rows) if rows else None)


def speculate(
    model: LanguageModel,
    prompt: Tensor,
    max_new_tokens: int,
    draft: Callable[[Tensor, int], Draft],
    *,
    n_draft: int = 4,
    end_token: int | None = None,
    temperature: float = 0.0,
    generator: torch.Generator | None = None,
    make_cache: Callable[..., KVCache] | None = None,
) -> Speculated:
    """Continue one text, with a draft checked in each pass.

    At temperature 0 the tokens are those of :func:`lib.generation.generate`, apart from rounding
    (``prp-rounding``, chapter 10); above, they have the same distribution if the draft's random
    numbers are independent of those drawn here (:func:`accept_sampled`). A
    :class:`lib.caches.QuantizedCache` gives other tokens, since it rounds by pieces; with its
    ``undo=n_draft + 1`` a rejected draft at least leaves nothing in it.

    Args:
        model: in evaluation mode.
        prompt: integers ``(1, prompt_len)``, at least one token.
        max_new_tokens: tokens to add.
        draft: guesses at most so many tokens after a text, as :func:`prompt_lookup`.
        n_draft: most tokens to guess for one pass.
        end_token: the token that ends the text; the last one then, also where it was accepted in
            the middle of a draft.
        temperature: as in :func:`lib.generation.generate`.
        generator: for sampling; torch's default when not given. The one of the draft, or one with
            another seed.
        make_cache: as in :meth:`lib.transformer.Decoder.decode_state`.

    Returns:
        :class:`Speculated`, with ``max_new_tokens`` tokens, or fewer if ``end_token`` was written.

    Raises:
        ValueError: if the prompt is not one row, a size is below 1, ``n_draft`` or the temperature
            negative, ``end_token`` no token of the model, or a :class:`ModelDraft` has another
            generator of the same seed.
    """
    if prompt.dim() != 2 or prompt.shape[0] != 1 or prompt.shape[1] == 0:
        raise ValueError(f"prompt must be (1, prompt_len), got {tuple(prompt.shape)}")
    check_sizes(max_new_tokens=max_new_tokens)
    if n_draft < 0:
        raise ValueError(f"n_draft cannot be negative, got {n_draft}")
    check_temperature(temperature)
    if end_token is not None and not 0 <= end_token < (vocab := model.output.out_features):
        raise ValueError(f"end_token={end_token} is not among the {vocab} tokens of the model")
    if temperature > 0:
        _check_independent(draft, generator)
    end = prompt.shape[1] + max_new_tokens
    passes = drafted = accepted = 0
    with torch.no_grad():
        state = model.decode_state(1, end - 1, make_cache=make_cache)
        try:
            tokens, ended = prompt[0], False
            while len(tokens) < end and not ended:
                # A pass gives one token more than it accepts, so the last one needs no draft.
                guess = draft(tokens, min(n_draft, end - len(tokens) - 1))
                piece = torch.cat([tokens[state.length :], guess.tokens])
                first = len(tokens) - state.length - 1  # the row after the last known token
                logits = model(piece[None], state=state)[0, first:]  # (n_draft + 1, vocab_size)
                if temperature == 0:
                    gained = accept_greedy(logits, guess.tokens)
                else:
                    target = sampling.temperature(logits, temperature).softmax(dim=-1)
                    gained = accept_sampled(target, *guess, generator=generator)
                passes, drafted = passes + 1, drafted + len(guess.tokens)
                accepted += len(gained) - 1
                state.truncate(len(tokens) + len(gained) - 1)  # drops what was rejected
                if end_token is not None and end_token in gained:
                    ended = True
                    gained = gained[: int((gained == end_token).nonzero()[0]) + 1]
                tokens = torch.cat([tokens, gained])
        finally:
            state.reset()  # gives blocks back to a pool that is shared
    return Speculated(tokens[prompt.shape[1] :], passes, drafted, accepted)


def _check_independent(draft: Callable, generator: torch.Generator | None) -> None:
    """Refuse a draft model whose draws are those of another generator of the same seed."""
    other = draft.generator if isinstance(draft, ModelDraft) and draft.temperature else None
    if None in (generator, other) or generator is other:
        return
    if generator.initial_seed() == other.initial_seed():
        raise ValueError(
            f"the draft's generator has the same seed, {other.initial_seed()}, so its draws and "
            "those that check it are not independent: give both the same generator, or other seeds"
        )


def common_prefix(a: Tensor, b: Tensor) -> int:
    """How many first tokens two texts, ``(length,)`` each, have in common."""
    shorter = min(len(a), len(b))
    return int((a[:shorter] == b[:shorter]).cumprod(dim=0).sum())


def _check_rows(name: str, rows: Tensor, draft: Tensor) -> None:
    if rows.dim() != 2 or draft.dim() != 1 or rows.shape[0] != len(draft) + 1:
        raise ValueError(
            f"{name} has shape {tuple(rows.shape)} and the draft {tuple(draft.shape)}: need "
            "(n_draft + 1, vocab_size) and (n_draft,)"
        )
