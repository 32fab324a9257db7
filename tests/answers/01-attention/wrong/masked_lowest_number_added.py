"""Adds the lowest number of the dtype to hidden scores: in float16 a large score stays in view.

Loses: masked-edges
"""


# %% masked-attention
def masked_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    bias = torch.zeros(mask.shape, dtype=scores.dtype)
    bias = bias.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores + bias, dim=-1)
    weights = weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
    return weights @ value, weights
