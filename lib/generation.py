r"""Decoding: one token after another, greedily or by drawing (chapters 09 and 10).

With a cache the prompt is read once (**prefill**) and each step reads the one new token
(**decode**); without, each step reads everything again. Both give the same tokens
(``thm-cached-decode``, chapter 10).

Conventions:

- Prompts of different lengths are padded on the **left**, so that each row's next token stands
  in the same column (``prp-left-padding``, chapter 10).
- A row that has produced ``end_token`` goes on producing it.
- The loop never waits for a GPU, except every 16 steps to see whether all rows have ended.
"""

import torch
from torch import Tensor

from lib.transformer import LanguageModel, Seq2Seq

__all__ = ["generate", "pick_token"]

LOOK_EVERY = {"cpu": 1}  # steps between two looks whether all rows have ended; elsewhere 16


@torch.no_grad()
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
) -> Tensor:
    """Continue each row of a batch, one pass through the decoder for each new token.

    The passes of this loop cannot run at the same time. The same greedy tokens can be had in fewer
    passes where a draft of them is checked in one: ``prp-greedy``, chapter 09.

    Args:
        model: a :class:`lib.transformer.LanguageModel` or :class:`lib.transformer.Seq2Seq`; it
            decodes in evaluation mode and is left in the mode it was in.
        prompt: integers ``(batch, prompt_len)``, at least one per row.
        max_new_tokens: most tokens to add.
        prompt_mask: ``(batch, prompt_len)``, ``True`` = a real token; padding on the left.
        encoder_input: source tokens ``(batch, source_len)`` of a ``Seq2Seq``.
        encoder_mask: ``(batch, source_len)``, ``True`` = a real token.
        end_token: the token that ends a row; rows never end when not given.
        use_cache: keep keys and values between steps.
        temperature: 0 takes the likeliest token; above, tokens are drawn from
            ``softmax(logits / temperature)``.
        generator: for drawing; torch's own when not given.

    Returns:
        The new tokens, integers ``(batch, new)``, ``new <= max_new_tokens``. There are as many
        columns as the row that ended last has, its ``end_token`` included. Shorter rows are filled
        with it.

    Raises:
        ValueError: if an argument does not fit the model, or the positions do not reach.
    """
    _check(
        model,
        prompt,
        max_new_tokens,
        prompt_mask,
        encoder_input,
        encoder_mask,
        end_token,
        temperature,
    )
    modes = {module: module.training for module in model.modules()}  # parts may differ
    model.eval()
    try:
        context = {}
        decoder = model
        if isinstance(model, Seq2Seq):
            decoder = model.decoder
            context["context"] = model.encoder(encoder_input, mask=encoder_mask)
            context["context_mask"] = encoder_mask
        new = _loop(
            decoder,
            prompt,
            max_new_tokens,
            prompt_mask,
            context,
            end_token,
            use_cache,
            temperature,
            generator,
        )
        return new.clone()  # an ordinary tensor: what inference mode makes cannot be changed later
    finally:
        for module, training in modes.items():
            module.training = training


def pick_token(
    logits: Tensor, *, temperature: float = 0.0, generator: torch.Generator | None = None
) -> Tensor:
    r"""Choose a token from each row of logits.

    Drawing uses that :math:`\arg\max_i p_i / e_i`, with :math:`e_i` independent exponential
    variables, is i with probability :math:`p_i`: :math:`e_i / p_i` is exponential with rate
    :math:`p_i`, and the smallest of such variables is the i-th with a probability in proportion
    to its rate. Unlike :func:`torch.multinomial` it never waits for a GPU.

    Args:
        logits: ``(batch, vocab_size)``.
        temperature: 0 takes the largest (the first of equals); above, :math:`p` is
            ``softmax(logits / temperature)``.
        generator: for drawing; torch's own when not given.

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
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    weights = torch.softmax(wide / temperature, dim=-1)  # (batch, vocab_size)
    noise = torch.empty_like(weights).exponential_(generator=generator)
    return (weights / noise).argmax(dim=-1)


@torch.inference_mode()  # a tenth faster than no_grad: torch keeps no record of changes
def _loop(
    decoder, prompt, max_new_tokens, prompt_mask, context, end_token, use_cache, temperature, draw
) -> Tensor:
    batch, prompt_len = prompt.shape
    tokens = prompt.new_zeros(batch, prompt_len + max_new_tokens)  # allocated once
    tokens[:, :prompt_len] = prompt
    mask = None
    if prompt_mask is not None:
        mask = torch.ones_like(tokens, dtype=torch.bool)
        mask[:, :prompt_len] = prompt_mask
    if use_cache:  # the last token is never read
        state = decoder.decode_state(batch, prompt_len + max_new_tokens - 1, **context)
    ended = torch.zeros(batch, dtype=torch.bool, device=tokens.device)
    look = LOOK_EVERY.get(tokens.device.type, 16)

    start = 0  # the first column that has not been read yet
    for end in range(prompt_len, prompt_len + max_new_tokens):
        seen = None if mask is None else mask[:, start:end]
        if use_cache:
            logits = decoder(tokens[:, start:end], mask=seen, state=state, last_only=True)
            start = end
        else:
            logits = decoder(tokens[:, :end], mask=seen, last_only=True, **context)
        chosen = pick_token(logits[:, -1], temperature=temperature, generator=draw)  # (batch,)
        if end_token is not None:
            chosen = chosen.masked_fill(ended, end_token)
            ended = ended | (chosen == end_token)
        tokens[:, end] = chosen
        if end_token is not None and (end - prompt_len + 1) % look == 0 and bool(ended.all()):
            break
    new = tokens[:, prompt_len : end + 1]  # (batch, new)
    if end_token is None:
        return new
    # Everything after the first end_token is end_token: the longest row decides what to keep.
    return new[:, : min(new.shape[1], int((new != end_token).sum(dim=1).max()) + 1)]


def check_temperature(temperature: float) -> None:
    """Refuse a temperature that is negative or no number, with a ``ValueError``."""
    if not temperature >= 0:  # a NaN, too
        raise ValueError(f"temperature must be 0 or more, got {temperature}")


def _check(
    model, prompt, max_new_tokens, prompt_mask, encoder_input, encoder_mask, end_token, temperature
) -> None:
    if prompt.dim() != 2 or 0 in prompt.shape:
        raise ValueError(
            f"prompt must be (batch, prompt_len), both at least 1, got {tuple(prompt.shape)}"
        )
    if max_new_tokens < 1:
        raise ValueError(f"max_new_tokens must be at least 1, got {max_new_tokens}")
    check_temperature(temperature)
    is_seq2seq = isinstance(model, Seq2Seq)
    decoder = model.decoder if is_seq2seq else model
    vocab_size = decoder.output.out_features
    if end_token is not None and not 0 <= end_token < vocab_size:
        raise ValueError(
            f"end_token={end_token} is not among the {vocab_size} tokens of the model: "
            "no row would ever end"
        )
    if is_seq2seq != (encoder_input is not None):
        raise ValueError(
            f"{type(model).__name__} {'needs' if is_seq2seq else 'takes no'} encoder_input"
        )
    if encoder_input is not None and encoder_input.shape[0] != prompt.shape[0]:
        raise ValueError(
            f"encoder_input has {encoder_input.shape[0]} rows but prompt {prompt.shape[0]}"
        )
    if encoder_mask is not None and encoder_input is None:
        raise ValueError("encoder_mask is given, but no encoder_input")
    longest = prompt.shape[1]
    if prompt_mask is not None:
        if prompt_mask.dtype != torch.bool or prompt_mask.shape != prompt.shape:
            raise ValueError(
                f"prompt_mask must be torch.bool of shape {tuple(prompt.shape)}, got "
                f"{prompt_mask.dtype} of shape {tuple(prompt_mask.shape)}"
            )
        real = prompt_mask.int()
        if not bool((real.diff(dim=1) >= 0).all() and real[:, -1].all()):
            raise ValueError(
                "prompt_mask must be False on the left and True on the right of each row, "
                f"got {prompt_mask.int().tolist()}: move the padding to the left"
            )
        longest = int(real.sum(dim=1).max())
    position = decoder.position
    if position.max_len is not None and longest + max_new_tokens - 1 > position.max_len:
        raise ValueError(
            f"{longest} prompt tokens and max_new_tokens={max_new_tokens} need "
            f"{longest + max_new_tokens - 1} positions, the model has {position.max_len}"
        )
