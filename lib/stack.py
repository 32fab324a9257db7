r"""What an encoder and a decoder share: embeddings, blocks, and checks of the input (chapter 09).

A model's input is checked here, once, and never in a layer. The checks do not wait for a GPU
unless positions are given or may exceed the scheme's limit.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from lib.attention import LayerState
from lib.block import NORMS, Block, LayerWeights, choose, unchanged
from lib.kv_cache import KVCache
from lib.position import NoPosition, Position, check_positions
from lib.shapes import check_sizes

__all__ = ["AttentionWeights", "Stack"]


class AttentionWeights(NamedTuple):
    """Weights of every layer, each ``(batch, heads, q_len, k_len)``; no layers, no weights."""

    self_attention: list[Tensor]
    cross_attention: list[Tensor]


class Stack(nn.Module):
    """Embeddings, blocks and the last norm.

    Weights start as in the first Transformer's code: linear maps Xavier-uniform with biases 0,
    embeddings normal with variance ``1 / d_model``; the embedding is then multiplied by
    ``sqrt(d_model)`` (Vaswani et al. 2017, section 3.4), so that a token's features have
    variance 1 when position is added.

    Args:
        vocab_size: number of different tokens.
        d_model: width of a token.
        n_layers: number of blocks.
        n_heads: number of query heads.
        position: the position scheme; none when not given.
        n_token_types: number of token types (BERT's segments); 0 for none.
        embedding_scale: what the embedding is multiplied by; ``sqrt(d_model)`` when not given.
        embedding_norm: whether a norm follows the embeddings (BERT).
        norm: as in :class:`lib.block.Block`.
        norm_eps: likewise.
        dropout: likewise; after the embeddings too.
        **block: everything else that :class:`lib.block.Block` takes.

    Raises:
        ValueError: if a size is below 1, an option is unknown, or the position scheme was made
            for another size.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        n_layers: int,
        n_heads: int,
        *,
        position: Position | None = None,
        n_token_types: int = 0,
        embedding_scale: float | None = None,
        embedding_norm: bool = False,
        norm: str = "layer",
        norm_eps: float = 1e-5,
        dropout: float = 0.0,
        **block,
    ) -> None:
        super().__init__()
        check_sizes(vocab_size=vocab_size, d_model=d_model, n_layers=n_layers, n_heads=n_heads)
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.embedding_scale = d_model**0.5 if embedding_scale is None else embedding_scale
        self.type_embedding = nn.Embedding(n_token_types, d_model) if n_token_types else None
        self.position = NoPosition() if position is None else position
        self.dropout = nn.Dropout(dropout) if dropout else unchanged
        self.blocks = nn.ModuleList(
            Block(d_model, n_heads, norm=norm, norm_eps=norm_eps, dropout=dropout, **block)
            for _ in range(n_layers)
        )
        head_dim = self.blocks[0].self_attention.head_dim
        sizes = {"d_model": d_model, "n_heads": n_heads, "head_dim": head_dim}
        for name, size in sizes.items():
            made_for = getattr(self.position, name, size)
            if made_for != size:  # one head's bias would be spread over all heads
                raise ValueError(
                    f"{type(position).__name__} was made for {name}={made_for}, but the model has "
                    f"{name}={size}"
                )
        make_norm = choose("norm", norm, NORMS)
        self.embedding_norm = make_norm(d_model, eps=norm_eps) if embedding_norm else None
        # Post-norm blocks end with a norm already.
        self.final_norm = make_norm(d_model, eps=norm_eps) if self.blocks[0].pre_norm else None
        for module in (self.embedding, self.type_embedding, *self.blocks.modules()):
            if isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=d_model**-0.5)
            elif isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def _embed(self, tokens: Tensor, positions: Tensor, types: Tensor | None = None) -> Tensor:
        x = self.embedding(tokens) * self.embedding_scale  # (batch, length, d_model)
        if self.type_embedding is not None:
            types = torch.zeros_like(tokens) if types is None else types
            x = x + self.type_embedding(types)
        x = self.position.embed(x, positions)
        if self.embedding_norm is not None:
            x = self.embedding_norm(x)
        return self.dropout(x)

    def _layers(
        self,
        tokens: Tensor,
        positions: Tensor,
        k_positions: Tensor,
        *,
        types: Tensor | None = None,
        mask: Tensor | None = None,
        causal: bool = False,
        caches: Sequence[KVCache] | None = None,
        context: Tensor | None = None,
        context_keys_values: Sequence[tuple[Tensor, Tensor]] | None = None,
        context_mask: Tensor | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, AttentionWeights]:
        """Embed the tokens and pass them through all blocks; caches and contexts are per layer."""
        none = [None] * len(self.blocks)
        if context_mask is not None:
            context_mask = context_mask[:, None, None, :]  # (batch, 1, 1, context_len)
        x = self._embed(tokens, positions, types)  # (batch, length, d_model)
        prepared = self.position.prepare(positions, k_positions)
        weights: list[LayerWeights] = []
        for block, cache, keys_values in zip(
            self.blocks, caches or none, context_keys_values or none, strict=True
        ):
            result = block(
                x,
                mask=mask,
                state=LayerState(self.position, prepared, cache, causal),
                context=context,
                context_keys_values=keys_values,
                context_mask=context_mask,
                return_weights=return_weights,
            )
            x, *layer = result if return_weights else (result,)  # (batch, length, d_model)
            weights += layer
        if self.final_norm is not None:
            x = self.final_norm(x)
        if not return_weights:
            return x
        crossing = [w.cross_attention for w in weights if w.cross_attention is not None]
        return x, AttentionWeights([w.self_attention for w in weights], crossing)

    def _check(
        self,
        tokens: Tensor,
        positions: Tensor | None,
        mask: Tensor | None,
        types: Tensor | None = None,
    ) -> None:
        """Check the input, once."""
        device = self.embedding.weight.device
        check_ids("tokens", tokens, self.embedding.num_embeddings, device)
        if types is not None:
            if self.type_embedding is None:
                raise ValueError("token_types are given but the model has none: n_token_types=0")
            check_ids("token_types", types, self.type_embedding.num_embeddings, device)
            if types.shape != tokens.shape:
                raise ValueError(
                    f"token_types have shape {tuple(types.shape)} but tokens {tuple(tokens.shape)}"
                )
        if mask is not None:
            check_mask("mask", mask, tokens.shape, device)
        if positions is not None:
            if positions.device != device:
                raise ValueError(
                    f"positions are on {positions.device} but the model is on {device}"
                )
            check_positions(
                positions,
                batch=tokens.shape[0],
                length=tokens.shape[1],
                max_len=self.position.max_len,
            )

    def _check_reach(self, positions: Tensor, largest: int | None) -> None:
        """Check positions counted here against the scheme's reach, if they may exceed it."""
        reach = self.position.max_len
        if reach is not None and (largest is None or largest >= reach):
            check_positions(
                positions, batch=positions.shape[0], length=positions.shape[1], max_len=reach
            )


def count_positions(tokens: Tensor, mask: Tensor | None) -> Tensor:
    """Count the real tokens of each row from 0; padding gets 0."""
    if mask is None:
        return torch.arange(tokens.shape[1], device=tokens.device).unsqueeze(0)  # (1, length)
    return (mask.cumsum(dim=1) - 1) * mask  # (batch, length)


def check_ids(name: str, ids: Tensor, size: int, device: torch.device) -> None:
    """Check tokens or token types."""
    if ids.dim() != 2 or 0 in ids.shape:
        raise ValueError(f"{name} must be (batch, length), both at least 1, got {tuple(ids.shape)}")
    if ids.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"{name} must be int32 or int64, got {ids.dtype}")
    if ids.device != device:
        raise ValueError(f"{name} are on {ids.device} but the model is on {device}")
    if device.type == "cpu":  # a GPU would have to be waited for; there the kernel itself stops
        low, high = (int(bound) for bound in torch.aminmax(ids))
        if low < 0 or high >= size:
            raise ValueError(f"{name} go from {low} to {high}, the model has 0 to {size - 1}")


def check_mask(name: str, mask: Tensor, shape: torch.Size, device: torch.device) -> None:
    """Check a mask of tokens."""
    if mask.dtype != torch.bool:
        raise ValueError(f"{name} must be torch.bool with True = a real token, got {mask.dtype}")
    if mask.shape != shape:
        raise ValueError(f"{name} has shape {tuple(mask.shape)}, need {tuple(shape)}")
    if mask.device != device:
        raise ValueError(f"{name} is on {mask.device} but the model is on {device}")
