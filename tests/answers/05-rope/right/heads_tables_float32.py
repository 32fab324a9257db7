"""Cosines and sines of rotate_queries_and_keys are float32 where the query is not float64."""

import torch


# %% heads-answer
def rotate_queries_and_keys(query, key, q_positions, k_positions, frequencies):
    r = frequencies.shape[0]

    def turn(x, positions):
        angles = positions[:, None, :, None].double() * frequencies
        wide = torch.float64 if x.dtype == torch.float64 else torch.float32
        cos, sin = angles.cos().to(wide), angles.sin().to(wide)
        a, b, rest = x[..., :r].to(wide), x[..., r : 2 * r].to(wide), x[..., 2 * r :]
        turned = torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).to(x.dtype)
        return torch.cat((turned, rest), dim=-1)

    return turn(query, q_positions), turn(key, k_positions)
