"""Right, with a deprecation warning and words on stderr, which must cost nothing."""

import math
import sys
import warnings

import torch


# %% absorbed-answer
def absorbed_attention(query, w_uk, w_uv, attend):
    warnings.warn("absorbed_attention is slow", UserWarning, stacklevel=1)
    print("absorbed_attention was called", file=sys.stderr)
    q, p = query[..., : w_uk.shape[-1]], query[..., w_uk.shape[-1] :]
    return attend(torch.cat((q @ w_uk.mT, p), dim=-1), 1 / math.sqrt(query.shape[-1])) @ w_uv
