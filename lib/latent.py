r"""Multi-head latent attention: one vector per token in the cache, for all heads (chapter 14).

The keys and values of all heads are linear maps of a *latent* :math:`c_n`, and the latent is what
the cache holds. A rotation cannot be part of those maps, so position has a few components of its
own, with one rotated key for all heads (*decoupled* RoPE):

.. math::

    \begin{aligned}
    c_n &= \operatorname{norm}(x_n W_{dkv}), & r_n &= R_n (x_n W_{kr}), \\
    k_n^{(h)} &= [\,c_n W_{uk}^{(h)},\ r_n\,], & v_n^{(h)} &= c_n W_{uv}^{(h)}
    \end{aligned}

Shapes: ``latent`` :math:`c_n` is ``(batch, 1, length, latent_dim)`` and ``rotated``
:math:`r_n` is ``(batch, 1, length, rope_dim)``; the 1 is the one head that all query heads share,
and that :class:`lib.kv_cache.KVCache` holds.

Source: DeepSeek-AI, *DeepSeek-V2*, 2024, arXiv:2405.04434, section 2.1 and appendix C.
"""

import torch
from torch import Tensor, nn

from lib.attention import (
    LayerState,
    check_added,
    grouped_query_attention,
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)
from lib.kv_cache import KVCache
from lib.norms import RMSNorm
from lib.shapes import check_sizes

__all__ = ["LatentAttention"]


class LatentAttention(nn.Module):
    r"""Self-attention whose keys and values are made of a cached latent (``eq-mla``, chapter 14).

    There are two ways to compute it, with the same result apart from rounding
    (``thm-mla-absorbed``). *Expanded*, the latents are multiplied by :math:`W_{uk}` and
    :math:`W_{uv}`, and attention has n_heads keys and values. *Absorbed*, the queries are
    multiplied by :math:`W_{uk}` and the outputs by :math:`W_{uv}`, and attention has one key and
    value for all heads: the latents as cached.

    Args:
        d_model: width of the input and of the output.
        n_heads: number of heads.
        head_dim: components of a head's query and key that carry no position.
        rope_dim: components that the position scheme rotates; even, for RoPE.
        value_dim: width of a head's value; ``head_dim`` when not given.
        latent_dim: width of the latent of keys and values.
        q_latent_dim: width of a latent of the queries, which saves weights; none when not given.
        absorbed: which of the two ways to compute it; an attribute that can be changed.

    Raises:
        ValueError: if a size is below 1.

    Example:
        Bytes of 100 tokens in bfloat16, with a latent of 32 and 8 rotated components:

        >>> attention = LatentAttention(64, 4, head_dim=16, rope_dim=8, latent_dim=32)
        >>> attention.make_cache(1, 100, dtype=torch.bfloat16).nbytes
        8000
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        head_dim: int,
        rope_dim: int,
        latent_dim: int,
        value_dim: int | None = None,
        q_latent_dim: int | None = None,
        absorbed: bool = False,
    ) -> None:
        super().__init__()
        value_dim = head_dim if value_dim is None else value_dim
        q_input_dim = d_model if q_latent_dim is None else q_latent_dim
        check_sizes(d_model=d_model, n_heads=n_heads, head_dim=head_dim, rope_dim=rope_dim)
        check_sizes(value_dim=value_dim, latent_dim=latent_dim, q_latent_dim=q_input_dim)
        self.n_heads, self.head_dim, self.rope_dim = n_heads, head_dim, rope_dim
        self.value_dim, self.latent_dim, self.absorbed = value_dim, latent_dim, absorbed
        down = q_latent_dim is not None
        self.w_dq = nn.Linear(d_model, q_latent_dim, bias=False) if down else None
        self.q_latent_norm = RMSNorm(q_latent_dim) if down else None
        self.w_uq = nn.Linear(q_input_dim, n_heads * (head_dim + rope_dim), bias=False)
        self.w_dkv = nn.Linear(d_model, latent_dim, bias=False)
        self.latent_norm = RMSNorm(latent_dim)
        self.w_kr = nn.Linear(d_model, rope_dim, bias=False)
        self.w_uk = nn.Linear(latent_dim, n_heads * head_dim, bias=False)
        self.w_uv = nn.Linear(latent_dim, n_heads * value_dim, bias=False)
        self.w_o = nn.Linear(n_heads * value_dim, d_model, bias=False)

    @property
    def cache_sizes(self) -> tuple[int, int, int]:
        """The sizes in a cache, where a latent is one head's key and a rotated key its value."""
        return 1, self.latent_dim, self.rope_dim

    def make_cache(
        self,
        batch_size: int,
        max_len: int,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> KVCache:
        """An empty cache: a latent and a rotated key per token, whatever the number of heads."""
        heads, key_dim, value_dim = self.cache_sizes
        return KVCache(
            batch_size, heads, max_len, key_dim, value_dim=value_dim, dtype=dtype, device=device
        )

    def forward(
        self,
        x: Tensor,
        *,
        mask: Tensor | None = None,
        state: LayerState | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Let every token of ``x`` attend to ``x``, and to what the cache holds.

        Args:
            x: ``(batch, q_len, d_model)``.
            mask: boolean, broadcastable to ``(batch, n_heads, q_len, k_len)``; ``k_len`` counts
                the cached keys too.
            state: the position scheme, made for ``rope_dim``, and a cache of :meth:`make_cache`.
            return_weights: also return the weights.

        Returns:
            ``(batch, q_len, d_model)``; with ``return_weights`` the pair with the weights
            ``(batch, n_heads, q_len, k_len)``.

        Raises:
            ValueError: if shapes do not fit; the cache is then as it was.
        """
        if x.dim() != 3 or x.shape[-1] != self.w_dkv.in_features:
            need = ("batch", "length", self.w_dkv.in_features)
            raise ValueError(f"x has shape {tuple(x.shape)}, need {need}")
        q_input = x if self.w_dq is None else self.q_latent_norm(self.w_dq(x))
        query = split_heads(self.w_uq(q_input), self.n_heads)  # (batch, heads, q_len, both)
        plain, turned = query.split([self.head_dim, self.rope_dim], dim=-1)
        latent = self.latent_norm(self.w_dkv(x)).unsqueeze(1)  # (batch, 1, q_len, latent_dim)
        rotated = self.w_kr(x).unsqueeze(1)  # (batch, 1, q_len, rope_dim)

        position, prepared, cache, causal = LayerState() if state is None else state
        turned, rotated = position.transform(turned, rotated, prepared)
        if cache is not None:
            if mask is not None:  # checked before anything is written
                k_len = cache.k_len(x.shape[1])
                check_added("mask", mask, query, (*query.shape[:-1], k_len))
            latent, rotated = cache.update(latent, rotated)  # all of them
        options = {
            "mask": mask,
            "bias": position.bias(turned, rotated, prepared),
            "causal": causal,
            "scale": position.scale(self.head_dim + self.rope_dim),
            "return_weights": return_weights,
        }
        attend = self._absorbed if self.absorbed else self._expanded
        result = attend(plain, turned, latent, rotated, options)
        heads, *weights = result if return_weights else (result,)
        output = self.w_o(merge_heads(heads))  # (batch, q_len, d_model)
        return (output, *weights) if return_weights else output

    def _expanded(self, plain, turned, latent, rotated, options):
        """Keys and values of every head from the latents; then attention as in chapter 02."""
        key = split_heads(self.w_uk(latent.squeeze(1)), self.n_heads)  # (batch, heads, k_len, ...)
        value = split_heads(self.w_uv(latent.squeeze(1)), self.n_heads)
        key = torch.cat((key, rotated.expand(-1, self.n_heads, -1, -1)), dim=-1)
        query = torch.cat((plain, turned), dim=-1)
        return scaled_dot_product_attention(query, key, value, **options)

    def _absorbed(self, plain, turned, latent, rotated, options):
        """Queries into the latents' space; attention with one KV head; outputs out of it."""
        w_uk = self.w_uk.weight.unflatten(0, (self.n_heads, -1))  # (heads, head_dim, latent_dim)
        w_uv = self.w_uv.weight.unflatten(0, (self.n_heads, -1))  # (heads, value_dim, latent_dim)
        query = torch.cat((plain @ w_uk, turned), dim=-1)  # (batch, heads, q_len, latent + rope)
        key = torch.cat((latent, rotated), dim=-1)  # a kernel would read both where they lie
        result = grouped_query_attention(query, key, latent, **options)
        heads, *weights = result if options["return_weights"] else (result,)
        output = heads @ w_uv.mT  # (batch, heads, q_len, value_dim)
        return (output, *weights) if options["return_weights"] else output
