"""Right, with one dictionary of small tensors as memory, normalized residuals and numpy's codes."""

import numpy as np
import torch


# %% memory-answer
class BlockMemory:
    def __init__(self, n_blocks, block_size, width, dtype):
        self.width, self.dtype, self.size = width, dtype, block_size
        self.free = set(range(n_blocks))
        self.content = {}  # of each block the rows in it
        self.texts = {}

    def free_blocks(self):
        return len(self.free)

    def users(self, block):
        return sum(block in blocks for blocks in self.texts.values())

    def append(self, text, rows):
        if rows.shape[1] != self.width or rows.dtype != self.dtype:
            raise ValueError("rows do not fit")
        blocks = list(self.texts.get(text, ()))
        changed, rows = {}, rows.clone()
        if blocks and len(rows) and len(self.content[blocks[-1]]) < self.size:
            last = blocks.pop()
            rows = torch.cat([self.content[last], rows])
            if self.users(last) == 1:
                changed[last] = rows[: self.size]
                blocks.append(last)
                rows = rows[self.size :]
        pieces = rows.split(self.size) if len(rows) else ()
        if len(pieces) > len(self.free):
            raise ValueError("no blocks left")
        for piece in pieces:
            block = self.free.pop()
            changed[block] = piece
            blocks.append(block)
        self.content.update(changed)
        self.texts[text] = blocks

    def read(self, text):
        parts = [self.content[block] for block in self.held(text)]
        return torch.cat([torch.empty(0, self.width, dtype=self.dtype), *parts])

    def held(self, text):
        if text not in self.texts:
            raise ValueError("unknown text")
        return self.texts[text]

    def fork(self, text, other):
        blocks = self.held(text)
        if other in self.texts:
            raise ValueError("known text")
        self.texts[other] = list(blocks)

    def release(self, text):
        for block in self.held(text):
            if self.users(block) == 1:
                self.free.add(block)
        del self.texts[text]


# %% prefix-answer
def reuse_prefix(held, prompt, block_size):
    if not held:
        return None, 0
    padded = torch.full((len(held), max(len(prompt) - 1, 1)), -1)
    for row, text in zip(padded, held, strict=True):
        part = text[: len(prompt) - 1]
        row[: len(part)] = part
    ends = torch.tensor([len(text) for text in held]).unsqueeze(1)
    wrong = (padded != prompt[: padded.shape[1]]) | (torch.arange(padded.shape[1]) >= ends)
    wrong = torch.cat([wrong, torch.ones(len(held), 1)], dim=1)
    common = wrong.to(torch.uint8).argmax(dim=1).clamp_max(len(prompt) - 1)
    saved = (common // block_size * block_size).tolist()
    best = max(saved)
    return (saved.index(best), best) if best else (None, 0)


# %% greedy-answer
def verify_greedy(logits, drafts, lengths):
    chosen = logits.max(dim=2).indices
    right = (chosen[:, : drafts.shape[1]] == drafts).cumprod(dim=1).sum(dim=1)
    accepted = torch.minimum(right, lengths)
    return accepted, chosen[torch.arange(len(chosen)), accepted]


# %% sampled-answer
def verify_sampled(target, proposal, draft, uniforms):
    p, q, n = target.double().numpy(), proposal.double().numpy(), len(draft)
    u, places = uniforms.numpy(), np.arange(len(draft))
    chances = p[:n][places, draft.numpy()] / q[places, draft.numpy()]
    refused = np.flatnonzero(u[:n] >= chances)
    end = int(refused[0]) if len(refused) else n
    rest = np.maximum(p[end] - q[end], 0) if end < n else p[n]
    possible = np.flatnonzero(rest)
    sums = np.cumsum(rest[possible] / rest.sum())
    added = possible[min(np.searchsorted(sums, u[-1], side="right"), len(possible) - 1)]
    return torch.cat([draft[:end], torch.tensor([int(added)])])


# %% keys-answer
def coded(x, bits, axis):
    x = x.double().numpy()
    low, high = x.min(axis=axis, keepdims=True), x.max(axis=axis, keepdims=True)
    step = (high - low) / (2**bits - 1)
    with np.errstate(invalid="ignore"):
        codes = np.nan_to_num(np.floor((x - low) / step + 0.5))
    low, step = (torch.from_numpy(part).float() for part in (low, step))
    return torch.from_numpy(codes.astype(np.uint8)), low, step


def quantize_keys(k, bits, group):
    n_groups = k.shape[2] // group
    batch, n_heads, _, d_k = k.shape
    groups = k[:, :, : n_groups * group].reshape(batch, n_heads, n_groups, group, d_k)
    return *coded(groups, bits, 3), k[:, :, n_groups * group :]


# %% values-answer
def quantize_values(v, bits):
    return coded(v, bits, 3)
