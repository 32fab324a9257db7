"""One causal mask of 1024 rows, made in advance and cut to size: longer targets do not fit.

Loses: decoder
"""

# %% decoder-answer
import torch

MAX_LEN = 1024
CAUSAL = torch.ones(MAX_LEN, MAX_LEN, dtype=torch.bool).tril()


def decoder_layer(
    x: torch.Tensor,
    context: torch.Tensor,
    context_real: torch.Tensor,
    self_weights: tuple[torch.Tensor, ...],
    cross_weights: tuple[torch.Tensor, ...],
    feed_forward_weights: tuple[torch.Tensor, ...],
    norms: tuple[tuple[torch.Tensor, torch.Tensor], ...],
) -> torch.Tensor:
    q_len = x.shape[1]
    n = layer_norm(x, norms[0])
    x = x + attend(n, n, self_weights, CAUSAL[:q_len, :q_len])
    seen = context_real[:, None, None, :]
    x = x + attend(layer_norm(x, norms[1]), context, cross_weights, seen)
    return x + feed_forward(layer_norm(x, norms[2]), feed_forward_weights)
