r"""One layer of a Transformer: attention, feed-forward, residuals and norms (chapters 08, 09).

Source: Vaswani et al., *Attention Is All You Need*, 2017, arXiv:1706.03762, sections 3.1 and 3.3.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.nn import functional as F

from lib.attention import LayerState, MultiHeadAttention
from lib.norms import LayerNorm, RMSNorm

__all__ = ["Block", "FeedForward", "LayerWeights"]

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "swiglu": F.silu}
NORMS = {"layer": LayerNorm, "rms": RMSNorm}


class LayerWeights(NamedTuple):
    """One layer's attention weights, each ``(batch, heads, q_len, k_len)``."""

    self_attention: Tensor
    cross_attention: Tensor | None


class FeedForward(nn.Module):
    r"""Two linear maps with a nonlinearity between them, applied to each token (``eq-ffn``).

    .. math::

        &\operatorname{FFN}(x) = \varphi(xW_1)\,W_2 \\
        &\text{or, gated,} \\
        &\bigl(\operatorname{SiLU}(xW_g) \odot xW_1\bigr)\,W_2

    Args:
        d_model: width of input and output.
        d_ff: width of the hidden layer; ``4 * d_model`` when not given.
        activation: ``"relu"`` (Vaswani et al. 2017, section 3.3), ``"gelu"`` or the gated
            ``"swiglu"`` (Shazeer 2020, arXiv:2002.05202, section 2).
        bias: whether the linear maps have a bias.

    Raises:
        ValueError: if the activation is unknown.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int | None = None,
        *,
        activation: str = "gelu",
        bias: bool = True,
    ) -> None:
        super().__init__()
        d_ff = 4 * d_model if d_ff is None else d_ff
        self.activation = choose("activation", activation, ACTIVATIONS)
        self.w_1 = nn.Linear(d_model, d_ff, bias=bias)
        self.w_gate = nn.Linear(d_model, d_ff, bias=bias) if activation == "swiglu" else None
        self.w_2 = nn.Linear(d_ff, d_model, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """``(..., d_model)`` → ``(..., d_model)``, for each token separately."""
        if self.w_gate is None:
            return self.w_2(self.activation(self.w_1(x)))  # (..., d_ff) inside
        return self.w_2(self.activation(self.w_gate(x)) * self.w_1(x))


class Block(nn.Module):
    r"""One layer: each sublayer F is wrapped in a residual and a norm (chapter 08).

    .. math::

        &\text{pre-norm:}\quad x + F(\operatorname{norm}(x)) \\
        &\text{post-norm:}\quad \operatorname{norm}(x + F(x))

    (``eq-pre-norm``, ``eq-post-norm``). The sublayers are self-attention, cross-attention if
    wanted, and feed-forward.

    Args:
        d_model: width of a token.
        n_heads: number of query heads.
        d_ff: width inside the feed-forward; ``4 * d_model`` when not given.
        cross_attention: whether the block attends to a context too.
        norm_placement: ``"pre"`` (Xiong et al. 2020, arXiv:2002.04745) or ``"post"`` (Vaswani
            et al. 2017, section 3.1).
        norm: ``"layer"`` or ``"rms"``.
        norm_eps: ε of the norms.
        activation: as in :class:`FeedForward`.
        bias: whether the linear maps have a bias.
        dropout: share of each sublayer's output that is dropped in training.
        n_kv_heads: as in :class:`lib.attention.MultiHeadAttention`.
        head_dim: likewise.
        value_dim: likewise.
        scale: likewise; of both attentions.
        qk_norm: likewise.
        softcap: likewise.
        sinks: likewise.
        gated: likewise.

    Raises:
        ValueError: if an option is unknown or sizes do not fit.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        d_ff: int | None = None,
        cross_attention: bool = False,
        norm_placement: str = "pre",
        norm: str = "layer",
        norm_eps: float = 1e-5,
        activation: str = "gelu",
        bias: bool = True,
        dropout: float = 0.0,
        n_kv_heads: int | None = None,
        head_dim: int | None = None,
        value_dim: int | None = None,
        scale: float | None = None,
        qk_norm: bool = False,
        softcap: float | None = None,
        sinks: bool = False,
        gated: bool = False,
    ) -> None:
        super().__init__()
        make_norm = choose("norm", norm, NORMS)
        self.pre_norm = choose("norm_placement", norm_placement, {"pre": True, "post": False})
        attention = {
            "n_kv_heads": n_kv_heads,
            "head_dim": head_dim,
            "value_dim": value_dim,
            "bias": bias,
            "scale": scale,
            "qk_norm": qk_norm,
            "softcap": softcap,
            "sinks": sinks,
            "gated": gated,
        }
        self.self_attention = MultiHeadAttention(d_model, n_heads, **attention)
        self.self_norm = make_norm(d_model, eps=norm_eps)
        self.cross_attention = self.cross_norm = None
        if cross_attention:
            self.cross_attention = MultiHeadAttention(d_model, n_heads, **attention)
            self.cross_norm = make_norm(d_model, eps=norm_eps)
        self.feed_forward = FeedForward(d_model, d_ff, activation=activation, bias=bias)
        self.feed_forward_norm = make_norm(d_model, eps=norm_eps)
        self.dropout = nn.Dropout(dropout) if dropout else unchanged

    def forward(
        self,
        x: Tensor,
        *,
        mask: Tensor | None = None,
        state: LayerState | None = None,
        context: Tensor | None = None,
        context_keys_values: tuple[Tensor, Tensor] | None = None,
        context_mask: Tensor | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, LayerWeights]:
        """Pass tokens through the layer.

        Args:
            x: ``(batch, q_len, d_model)``.
            mask: which keys each token may see, broadcastable to
                ``(batch, heads, q_len, k_len)``.
            state: the stack's position scheme and this layer's cache.
            context: ``(batch, context_len, d_model)``.
            context_keys_values: the context's keys and values, if they are known already.
            context_mask: which of the context may be seen, broadcastable to
                ``(batch, heads, q_len, context_len)``.
            return_weights: also return the attention weights.

        Returns:
            ``(batch, q_len, d_model)``; with ``return_weights`` the pair with
            :class:`LayerWeights`.

        Raises:
            ValueError: if a block with cross-attention gets no context, or another one gets it.
        """
        has = context is not None or context_keys_values is not None
        if has != (self.cross_attention is not None):
            raise ValueError(
                f"the block was made with cross_attention={not has}, but "
                f"{'a' if has else 'no'} context is given"
            )

        def attend(y: Tensor) -> Tensor | tuple[Tensor, Tensor]:
            return self.self_attention(y, mask=mask, state=state, return_weights=return_weights)

        def cross(y: Tensor) -> Tensor | tuple[Tensor, Tensor]:
            return self.cross_attention(
                y,
                context,
                keys_values=context_keys_values,
                mask=context_mask,
                return_weights=return_weights,
            )

        cross_weights = None
        x, self_weights = self._residual(x, attend, self.self_norm)
        if self.cross_attention is not None:
            x, cross_weights = self._residual(x, cross, self.cross_norm)
        x, _ = self._residual(x, self.feed_forward, self.feed_forward_norm)
        return (x, LayerWeights(self_weights, cross_weights)) if return_weights else x

    def _residual(
        self,
        x: Tensor,
        sublayer: Callable[[Tensor], Tensor | tuple[Tensor, Tensor]],
        norm: nn.Module,
    ) -> tuple[Tensor, Tensor | None]:
        """Apply a sublayer; also return its attention weights, if it gave any."""
        y = sublayer(norm(x) if self.pre_norm else x)
        y, weights = y if isinstance(y, tuple) else (y, None)
        x = x + self.dropout(y)  # x itself, not norm(x)
        return x if self.pre_norm else norm(x), weights


def choose(name: str, key: str, options: dict[str, Any]) -> Any:
    """Look an option up; an unknown one raises a ``ValueError`` that lists them."""
    if key not in options:
        raise ValueError(f"{name} must be one of {', '.join(options)}, got {key!r}")
    return options[key]


def unchanged(x: Tensor) -> Tensor:
    """Replace a dropout of 0, because even a module that does nothing costs a call."""
    return x
