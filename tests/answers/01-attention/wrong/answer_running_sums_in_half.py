"""Goes from key to key with running sums in float16, where 2048 + 1 is 2048.

Loses: answer-precision
"""

# %% answer-at-answer
import math

import torch


def answer_at(
    m: int,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    k_positions: torch.Tensor,
) -> torch.Tensor:
    scores = key @ query / math.sqrt(query.shape[-1])
    largest = torch.tensor(-math.inf, dtype=value.dtype)
    total = torch.zeros((), dtype=value.dtype)
    result = torch.zeros(value.shape[-1], dtype=value.dtype)
    for row in (k_positions <= m).nonzero().flatten().tolist():
        new = torch.maximum(largest, scores[row])
        old, now = torch.exp(largest - new), torch.exp(scores[row] - new)
        total = total * old + now
        result = result * old + now * value[row]
        largest = new
    return result / total if total > 0 else result
