r"""The Transformer: blocks, and the encoder, decoder and models built of them (chapters 08, 09).

===============================  ============================================================
class                            what it is
===============================  ============================================================
:class:`~lib.block.FeedForward`  the same small network at every token
:class:`~lib.block.Block`        attention, cross-attention if wanted, feed-forward; residuals
:class:`Encoder`                 tokens → vectors, every token sees every other (BERT)
:class:`Decoder`                 tokens → vectors, no token sees a later one
:class:`LanguageModel`           a decoder that predicts the next token (GPT, Llama)
:class:`Seq2Seq`                 an encoder, and a language model that attends to it (T5)
===============================  ============================================================

Conventions:

- A stack has one :class:`lib.position.Position`, shared by its layers; cross-attention has none.
- Token masks are boolean ``(batch, length)``, ``True`` = a real token, ``False`` = padding.
- Positions are integers, 0 or more. When not given they count the real tokens, padding gets 0.
- The parts are in :mod:`lib.block` and :mod:`lib.stack`; ``Block`` and ``FeedForward`` can be
  imported from here too.

Source: Vaswani et al., *Attention Is All You Need*, 2017, arXiv:1706.03762, section 3.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from lib.block import Block, FeedForward
from lib.kv_cache import DecodeState, KVCache
from lib.masks import hide_future
from lib.position import Position
from lib.stack import AttentionWeights, Stack, check_mask, count_positions

__all__ = [
    "AttentionWeights",
    "Block",
    "Decoder",
    "Encoder",
    "FeedForward",
    "LanguageModel",
    "Seq2Seq",
]


class Encoder(Stack):
    """Tokens to vectors; every token sees every other.

    Args:
        vocab_size: number of different tokens.
        d_model: width of a token.
        n_layers: number of blocks.
        n_heads: number of query heads.
        position: the position scheme; none when not given.
        **block: everything else that :class:`lib.stack.Stack` (embeddings, last norm) and
            :class:`lib.block.Block` (each layer) take.
    """

    def forward(
        self,
        tokens: Tensor,
        *,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        token_types: Tensor | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, AttentionWeights]:
        """Encode a batch.

        Args:
            tokens: integers ``(batch, length)``.
            positions: ``(batch or 1, length)``.
            mask: ``(batch, length)``, ``True`` = a real token.
            token_types: integers ``(batch, length)``; all 0 when not given.
            return_weights: also return the attention weights.

        Returns:
            ``(batch, length, d_model)``; with ``return_weights`` the pair with
            :class:`lib.stack.AttentionWeights`.

        Raises:
            ValueError: if a shape, dtype, device or value does not fit.
        """
        self._check(tokens, positions, mask, token_types)
        if positions is None:
            positions = count_positions(tokens, mask)  # (batch or 1, length)
            self._check_reach(positions, tokens.shape[1] - 1)
        seen = None if mask is None else mask[:, None, None, :]  # (batch, 1, 1, length)
        return self._layers(
            tokens,
            positions,
            positions,
            types=token_types,
            mask=seen,
            return_weights=return_weights,
        )


class Decoder(Stack):
    """Tokens to vectors; no token sees a later one.

    Args:
        vocab_size: as in :class:`Encoder`.
        d_model: likewise.
        n_layers: likewise.
        n_heads: likewise.
        **block: as in :class:`Encoder`, ``position`` among them, and ``cross_attention``: whether
            to attend to a context as well, such as an encoder's output.
    """

    def forward(
        self,
        tokens: Tensor,
        *,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        context: Tensor | None = None,
        context_mask: Tensor | None = None,
        state: DecodeState | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, AttentionWeights]:
        """Decode a batch, or, with a state, the tokens that follow those it holds.

        Args:
            tokens: integers ``(batch, length)``; with a state the new ones only.
            positions: ``(batch or 1, length)``.
            mask: ``(batch, length)``, ``True`` = a real token; padding may be anywhere.
            context: ``(batch, context_len, d_model)``, what cross-attention attends to.
            context_mask: ``(batch, context_len)``, ``True`` = a real token.
            state: from :meth:`decode_state`, updated in place. It holds the context.
            return_weights: also return the attention weights.

        Returns:
            ``(batch, length, d_model)``; with ``return_weights`` the pair with
            :class:`lib.stack.AttentionWeights`.

        Raises:
            ValueError: if a shape, dtype, device or value does not fit, or the state is too
                small; the state is then as it was.
        """
        self._check(tokens, positions, mask)
        self._check_context(tokens.shape[0], context, context_mask, state)
        new = tokens.shape[1]
        if state is None:
            if positions is None:
                positions = count_positions(tokens, mask)  # (batch or 1, length)
                self._check_reach(positions, new - 1)
            seen = None
            if mask is not None:  # made once for all layers: (batch, 1, length, length)
                seen = hide_future(mask[:, None, None, :], new, new, tokens.device)
            return self._layers(
                tokens,
                positions,
                positions,
                mask=seen,
                causal=mask is None,
                context=context,
                context_mask=context_mask,
                return_weights=return_weights,
            )
        before = state.length
        try:
            positions = state.append(new, positions=positions, mask=mask)
            # No earlier tokens, no padding, and every key in its place: a causal mask is enough.
            plain = before == 0 and mask is None and state.in_order
            self._check_reach(positions, state.largest_position)
            return self._layers(
                tokens,
                positions,
                state.k_positions,
                mask=None if plain else state.mask(new),  # (batch or 1, 1, length, k_len) or None
                causal=plain,
                caches=state.caches,
                context_keys_values=state.context_keys_values,
                context_mask=state.context_mask,
                return_weights=return_weights,
            )
        except BaseException:  # an interrupted cell, too, must not leave half a token
            state.truncate(before)
            raise

    def decode_state(
        self,
        batch_size: int,
        max_len: int,
        *,
        context: Tensor | None = None,
        context_mask: Tensor | None = None,
        make_cache: Callable[..., KVCache] | None = None,
    ) -> DecodeState:
        """An empty state for this decoder, with the keys and values of the context.

        Under autocast it has autocast's dtype, and is used under autocast too.

        Args:
            batch_size: rows decoded together.
            max_len: most tokens per row, padding included.
            context: ``(batch_size, context_len, d_model)``.
            context_mask: ``(batch_size, context_len)``, ``True`` = a real token.
            make_cache: makes one layer's cache from the arguments of
                :class:`lib.kv_cache.KVCache`, which is used when not given; :mod:`lib.caches` has
                others.

        Raises:
            ValueError: if a size is below 1 or the context does not fit.
        """
        dtype, device = self.embedding.weight.dtype, self.embedding.weight.device
        if torch.is_autocast_enabled(device.type):
            dtype = torch.get_autocast_dtype(device.type)
        sizes = [block.self_attention.cache_sizes for block in self.blocks]
        caches = [
            (make_cache or KVCache)(
                batch_size, heads, max_len, key_dim, value_dim=value_dim, dtype=dtype, device=device
            )
            for heads, key_dim, value_dim in sizes
        ]
        self._check_context(batch_size, context, context_mask, None)
        if context is None:
            return DecodeState(caches)
        with torch.no_grad():
            pairs = [block.cross_attention.keys_values(context) for block in self.blocks]
        return DecodeState(caches, context_keys_values=pairs, context_mask=context_mask)

    def _check_context(self, batch, context, context_mask, state) -> None:
        has = context is not None
        if state is not None:
            if (state.batch_size, len(state.caches)) != (batch, len(self.blocks)):
                raise ValueError(
                    f"the state is for {state.batch_size} rows and {len(state.caches)} layers, "
                    f"but there are {batch} rows and {len(self.blocks)} layers"
                )
            if has or context_mask is not None:
                raise ValueError("give the context to decode_state or to forward, not to both")
            has = state.context_keys_values is not None
        crosses = self.blocks[0].cross_attention is not None
        if crosses != has:
            raise ValueError(
                f"the decoder was made with cross_attention={crosses}, but "
                f"{'a' if has else 'no'} context is given"
            )
        if context is not None:
            width = self.embedding.embedding_dim
            if context.dim() != 3 or context.shape[::2] != (batch, width):
                raise ValueError(
                    f"context has shape {tuple(context.shape)}, need "
                    f"{(batch, 'context_len', width)}"
                )
        if context_mask is not None:
            if context is None:
                raise ValueError("context_mask is given, but no context")
            check_mask("context_mask", context_mask, context.shape[:2], context.device)


class LanguageModel(Decoder):
    r"""A decoder that computes, at each position, a logit for every possible next token.

    Logits are the dot products of the last hidden state with one row per token of the vocabulary
    (``eq-logits``, chapter 09).

    Args:
        vocab_size: as in :class:`lib.stack.Stack`, like all that is not listed here.
        d_model: likewise.
        n_layers: likewise.
        n_heads: likewise.
        tie_output: use the embedding's rows for the output too (Press and Wolf 2017,
            arXiv:1608.05859).
        output_scale: factor on the last hidden states; T5 has ``1 / sqrt(d_model)``.
        **stack: everything else that :class:`lib.stack.Stack` and :class:`lib.block.Block` take.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        n_layers: int,
        n_heads: int,
        *,
        tie_output: bool = False,
        output_scale: float = 1.0,
        **stack,
    ) -> None:
        super().__init__(vocab_size, d_model, n_layers, n_heads, **stack)
        self.output_scale = output_scale
        self.output = nn.Linear(d_model, vocab_size, bias=False)
        if tie_output:
            self.output.weight = self.embedding.weight
        else:
            nn.init.xavier_uniform_(self.output.weight)

    def forward(
        self,
        tokens: Tensor,
        *,
        last_only: bool = False,
        return_weights: bool = False,
        **inputs,
    ) -> Tensor | tuple[Tensor, AttentionWeights]:
        """Compute the logits of the next token at each position.

        Args:
            tokens: integers ``(batch, length)``.
            last_only: return the last token's logits only, which is all that decoding needs.
            return_weights: also return the attention weights.
            **inputs: everything else that :meth:`Decoder.forward` takes, ``state`` among them.

        Returns:
            Logits ``(batch, length or 1, vocab_size)``; with ``return_weights`` the pair with
            :class:`lib.stack.AttentionWeights`.

        Raises:
            ValueError: as :meth:`Decoder.forward`.
        """
        result = super().forward(tokens, return_weights=return_weights, **inputs)
        x, *weights = result if return_weights else (result,)
        x = x[:, -1:] if last_only else x  # (batch, length or 1, d_model)
        logits = self.output(self.output_scale * x)  # (batch, length or 1, vocab_size)
        return (logits, *weights) if return_weights else logits


class Seq2Seq(nn.Module):
    """An encoder, and a language model that attends to its output (chapter 09).

    Args:
        source_vocab_size: number of different source tokens.
        target_vocab_size: number of different target tokens.
        d_model: width of a token.
        n_layers: number of blocks in each of the two.
        n_heads: number of query heads.
        encoder_position: the encoder's position scheme; none when not given.
        decoder_position: the decoder's own.
        tie_output: as in :class:`LanguageModel`.
        output_scale: likewise.
        **stack: everything else that :class:`lib.stack.Stack` and :class:`lib.block.Block` take.
    """

    def __init__(
        self,
        source_vocab_size: int,
        target_vocab_size: int,
        d_model: int,
        n_layers: int,
        n_heads: int,
        *,
        encoder_position: Position | None = None,
        decoder_position: Position | None = None,
        tie_output: bool = False,
        output_scale: float = 1.0,
        **stack,
    ) -> None:
        super().__init__()
        sizes = (d_model, n_layers, n_heads)
        self.encoder = Encoder(source_vocab_size, *sizes, position=encoder_position, **stack)
        self.decoder = LanguageModel(
            target_vocab_size,
            *sizes,
            position=decoder_position,
            cross_attention=True,
            tie_output=tie_output,
            output_scale=output_scale,
            **stack,
        )

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        *,
        source_mask: Tensor | None = None,
        target_mask: Tensor | None = None,
        source_positions: Tensor | None = None,
        target_positions: Tensor | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, AttentionWeights]:
        """Compute the next target token's logits at each target position, given the source.

        Args:
            source: integers ``(batch, source_len)``.
            target: integers ``(batch, target_len)``.
            source_mask: ``(batch, source_len)``, ``True`` = a real token.
            target_mask: ``(batch, target_len)``, ``True`` = a real token.
            source_positions: ``(batch or 1, source_len)``.
            target_positions: ``(batch or 1, target_len)``.
            return_weights: also return the decoder's attention weights.

        Returns:
            Logits ``(batch, target_len, target_vocab_size)``; with ``return_weights`` the pair
            with :class:`lib.stack.AttentionWeights`.

        Raises:
            ValueError: as :meth:`Encoder.forward` and :meth:`Decoder.forward`.
        """
        context = self.encoder(source, positions=source_positions, mask=source_mask)
        return self.decoder(
            target,
            positions=target_positions,
            mask=target_mask,
            context=context,  # (batch, source_len, d_model)
            context_mask=source_mask,
            return_weights=return_weights,
        )
