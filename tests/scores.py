"""Queries, keys and positions for the tests of relative schemes, pair by pair."""

import torch

from lib.relative import relative_positions

BATCH, HEADS, Q_LEN, K_LEN, HEAD_DIM, D_MODEL = 2, 3, 4, 5, 6, 7
ENCODING_DIM, VALUE_DIM = 10, 9
# Queries stand before, among and behind the keys, and no row is in order.
Q_POSITIONS = torch.tensor([[7, 0, 31, 2], [4, 4, 12, 90]])
K_POSITIONS = torch.tensor([[3, 7, 0, 40, 6], [11, 4, 5, 80, 0]])
OFFSETS = relative_positions(Q_POSITIONS, K_POSITIONS).unsqueeze(1)  # (batch, 1, q_len, k_len)
EXACT = {"rtol": 0, "atol": 1e-12}


def make(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def dot(a, b):
    return sum(x * y for x, y in zip(a.tolist(), b.tolist(), strict=True))


def per_pair(score):
    """Call score(b, h, i, j) for every query and key: the expected scores, one at a time."""
    return torch.tensor(
        [
            [
                [[score(b, h, i, j) for j in range(K_LEN)] for i in range(Q_LEN)]
                for h in range(HEADS)
            ]
            for b in range(BATCH)
        ],
        dtype=torch.float64,
    )


def at(b, i, j):
    """The positions m of query i and n of key j."""
    return Q_POSITIONS[b, i].item(), K_POSITIONS[b, j].item()


Q = make(BATCH, HEADS, Q_LEN, HEAD_DIM, seed=1)
K = make(BATCH, HEADS, K_LEN, HEAD_DIM, seed=2)
