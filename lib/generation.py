r"""Decoding: one token after another, greedily or by sampling (chapters 09 and 10).

With a cache the prompt is read once (**prefill**) and each step reads the one new token
(**decode**); without, each step reads everything again. Both give the same tokens
(``thm-cached-decode``, chapter 10).

Conventions:

- Prompts of different lengths are padded on the **left**, so that each row's next token is in
  the same column (``prp-left-padding``, chapter 10).
- A row that has produced ``end_token`` keeps producing it.
- The loop never waits for a GPU, except every 16 steps to see whether all rows have ended.
"""

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor

from lib import sampling
from lib.transformer import LanguageModel, Seq2Seq

__all__ = ["generate", "pick_token"]

CHECK_EVERY = {"cpu": 1}  # steps between two checks whether all rows have ended; elsewhere 16


def generate(
    model: LanguageModel | Seq2Seq,
    prompt: Tensor,
    max_new_tokens: int,
    *,
    prompt_mask: Tensor | None = None,
    encoder_input: Tensor | None = None,
    encoder_mask: Tensor | None = None,
    end_token: int | None = None,
    use_cache: bool = True,
    temperature: float = 0.0,
    generator: torch.Generator | None = None,
    choose: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Continue each row of a batch, one pass through the decoder for each new token.

    The passes of this loop cannot run at the same time. The same greedy tokens can be had in fewer
    passes where a draft of them is checked in one: ``prp-greedy``, chapter 09, and
    :mod:`lib.speculation`.

    Args:
        model: a :class:`lib.transformer.LanguageModel` or :class:`lib.transformer.Seq2Seq`; it
            decodes in evaluation mode and is left in the mode it was in.
        prompt: integers ``(batch, prompt_len)``, at least one per row.
        max_new_tokens: most tokens to add.
        prompt_mask: ``(batch, prompt_len)``, ``True`` = a real token; padding on the left.
        encoder_input: source tokens ``(batch, source_len)`` of a ``Seq2Seq``.
        encoder_mask: ``(batch, source_len)``, ``True`` = a real token.
        end_token: the token that ends a row; rows never end when not given.
        use_cache: whether to cache keys and values between steps.
        temperature: 0 takes the likeliest token; above 0, tokens are sampled from
            ``softmax(logits / temperature)``.
        generator: for sampling; torch's default when not given.
        choose: picks the next tokens, int64 ``(batch,)``, from logits ``(batch, vocab_size)``, in
            place of temperature and generator; :mod:`lib.sampling` has what it can be made of.

    Returns:
        The new tokens, integers ``(batch, new)``, ``new <= max_new_tokens``. There are as many
        columns as the row that ended last has, its ``end_token`` included. Shorter rows are filled
        with it.

    Raises:
        ValueError: if an argument does not fit the model, or the positions do not reach.
    """
    decoder = model.decoder if isinstance(model, Seq2Seq) else model
    longest = _check_prompt(prompt, prompt_mask)
    _check_source(model, prompt, encoder_input, encoder_mask)
    check_temperature(temperature)
    if choose is not None and (temperature or generator is not None):
        raise ValueError(
            f"give choose or temperature={temperature} and its generator, got both: choose decides"
        )
    if max_new_tokens < 1:
        raise ValueError(f"max_new_tokens must be at least 1, got {max_new_tokens}")
    vocab_size, max_len = decoder.output.out_features, decoder.position.max_len
    if end_token is not None and not 0 <= end_token < vocab_size:
        raise ValueError(
            f"end_token={end_token} is not among the {vocab_size} tokens of the model: "
            "no row would ever end"
        )
    needed = longest + max_new_tokens - 1
    if max_len is not None and needed > max_len:
        raise ValueError(
            f"{longest} prompt tokens and max_new_tokens={max_new_tokens} need {needed} positions, "
            f"the model has {max_len}"
        )
    modes = {module: module.training for module in model.modules()}  # parts may differ
    model.eval()
    try:
        with torch.inference_mode():  # a tenth faster than no_grad: torch tracks no changes
            context = {}
            if isinstance(model, Seq2Seq):
                encoded = model.encoder(encoder_input, mask=encoder_mask)
                context = {"context": encoded, "context_mask": encoder_mask}
            length = prompt.shape[1] + max_new_tokens
            new = _extend(
                prompt,
                length,
                mask=prompt_mask,
                # the last token is never read
                score=_scorer(decoder, prompt.shape[0], length - 1, context, use_cache),
                pick=choose or partial(pick_token, temperature=temperature, generator=generator),
                end_token=end_token,
            )
        return new.clone()  # an ordinary tensor: what inference mode makes cannot be changed later
    finally:
        for module, training in modes.items():
            module.training = training


def pick_token(
    logits: Tensor, *, temperature: float = 0.0, generator: torch.Generator | None = None
) -> Tensor:
    """Choose a token from each row of logits: the likeliest, or one by :func:`lib.sampling.sample`.

    Args:
        logits: ``(batch, vocab_size)``.
        temperature: 0 takes the largest (the first of equals); above, :math:`p` is
            ``softmax(logits / temperature)``.
        generator: for sampling; torch's default when not given.

    Returns:
        Token numbers, int64 ``(batch,)``.

    Raises:
        ValueError: if the temperature is negative or no number, or logits are not one row for
            each text.

    Example:
        >>> pick_token(torch.tensor([[0.1, 2.0, -1.0]]))
        tensor([1])
    """
    check_temperature(temperature)
    if logits.dim() != 2 or logits.shape[-1] == 0:
        raise ValueError(f"logits must be (batch, vocab_size), got {tuple(logits.shape)}")
    if temperature == 0:
        return logits.argmax(dim=-1)
    return sampling.sample(sampling.temperature(logits, temperature), generator=generator)


def _scorer(
    decoder: LanguageModel,
    batch: int,
    max_len: int,
    context: Mapping[str, Tensor | None],
    use_cache: bool,
) -> Callable[[Tensor, Tensor | None], Tensor]:
    """A function from all tokens so far, and their mask, to the logits ``(batch, vocab_size)``."""
    if not use_cache:
        return lambda tokens, mask: decoder(tokens, mask=mask, last_only=True, **context)[:, -1]
    state = decoder.decode_state(batch, max_len, **context)

    def score(tokens: Tensor, mask: Tensor | None) -> Tensor:
        start = state.length  # the first column that has not been read yet
        mask = None if mask is None else mask[:, start:]
        return decoder(tokens[:, start:], mask=mask, state=state, last_only=True)[:, -1]

    return score


def _extend(
    prompt: Tensor,
    length: int,
    *,
    mask: Tensor | None,
    score: Callable[[Tensor, Tensor | None], Tensor],
    pick: Callable[[Tensor], Tensor],
    end_token: int | None,
) -> Tensor:
    """Extend each row to ``length`` tokens, or until all rows have ended; return the new ones."""
    batch, prompt_len = prompt.shape
    tokens = prompt.new_zeros(batch, length)  # allocated once
    tokens[:, :prompt_len] = prompt
    if mask is not None:
        mask = torch.cat((mask, mask.new_ones(batch, length - prompt_len)), dim=1)
    ended = torch.zeros(batch, dtype=torch.bool, device=tokens.device)
    check_every = CHECK_EVERY.get(tokens.device.type, 16)

    for end in range(prompt_len, length):
        chosen = pick(score(tokens[:, :end], None if mask is None else mask[:, :end]))  # (batch,)
        if end_token is not None:
            chosen = chosen.masked_fill(ended, end_token)
            ended = ended | (chosen == end_token)
        tokens[:, end] = chosen
        if end_token is not None and (end - prompt_len + 1) % check_every == 0 and ended.all():
            break
    new = tokens[:, prompt_len : end + 1]  # (batch, new)
    if end_token is None:
        return new
    # Everything after the first end_token is end_token: the longest row sets the width.
    return new[:, : min(new.shape[1], int((new != end_token).sum(dim=1).max()) + 1)]


def check_temperature(temperature: float) -> None:
    """Refuse a temperature that is negative or no number, with a ``ValueError``."""
    if not temperature >= 0:  # a NaN, too
        raise ValueError(f"temperature must be 0 or more, got {temperature}")


def _check_prompt(prompt: Tensor, mask: Tensor | None) -> int:
    """Check the prompt and its mask; return the length of the longest row without padding."""
    if prompt.dim() != 2 or 0 in prompt.shape:
        raise ValueError(
            f"prompt must be (batch, prompt_len), both at least 1, got {tuple(prompt.shape)}"
        )
    if mask is None:
        return prompt.shape[1]
    if mask.dtype != torch.bool or mask.shape != prompt.shape:
        raise ValueError(
            f"prompt_mask must be torch.bool of shape {tuple(prompt.shape)}, got "
            f"{mask.dtype} of shape {tuple(mask.shape)}"
        )
    real = mask.int()
    if not bool((real.diff(dim=1) >= 0).all() and real[:, -1].all()):
        raise ValueError(
            "prompt_mask must be False on the left and True on the right of each row, "
            f"got {real.tolist()}: move the padding to the left"
        )
    return int(real.sum(dim=1).max())


def _check_source(
    model: LanguageModel | Seq2Seq, prompt: Tensor, source: Tensor | None, mask: Tensor | None
) -> None:
    """Check that there is an encoder's input exactly where there is an encoder."""
    has_encoder = isinstance(model, Seq2Seq)
    if has_encoder != (source is not None):
        raise ValueError(
            f"{type(model).__name__} {'needs' if has_encoder else 'takes no'} encoder_input"
        )
    if source is not None and source.shape[0] != prompt.shape[0]:
        raise ValueError(f"encoder_input has {source.shape[0]} rows but prompt {prompt.shape[0]}")
    if mask is not None and source is None:
        raise ValueError("encoder_mask is given, but no encoder_input")
