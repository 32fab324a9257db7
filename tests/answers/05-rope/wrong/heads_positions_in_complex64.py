"""The imaginary unit times whole numbers is complex64: far positions are rounded to float32.

Loses: heads-precision
"""

import torch


# %% heads-answer
def rotate_queries_and_keys(query, key, q_positions, k_positions, frequencies):
    def turned(x, positions):
        r = len(frequencies)
        wide = x.double()
        z = torch.complex(wide[..., :r].contiguous(), wide[..., r : 2 * r].contiguous())
        z = z * torch.exp(1j * positions[:, None, :, None] * frequencies)
        return torch.cat((z.real, z.imag, wide[..., 2 * r :]), dim=-1).to(x.dtype)

    return turned(query, q_positions), turned(key, k_positions)
