"""Right, with a warning and words on stderr, which must cost nothing."""

import sys
import warnings

import torch


# %% greedy-answer
def verify_greedy(logits, drafts, lengths):
    warnings.warn("drafts are checked one by one", UserWarning, stacklevel=1)
    print("verify_greedy was called", file=sys.stderr)
    chosen = logits.argmax(dim=-1)
    accepted = torch.zeros_like(lengths)
    for place in range(drafts.shape[1]):
        going_on = (accepted == place) & (lengths > place)
        accepted = accepted + (going_on & (chosen[:, place] == drafts[:, place]))
    return accepted, chosen.gather(1, accepted[:, None])[:, 0]
