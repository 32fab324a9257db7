"""Right, with blocks as objects, fractions, a search among sorted logits, and lists as pairs."""

from fractions import Fraction
from itertools import accumulate, takewhile

import torch


# %% memory-answer
class BlockMemory:
    class _Block:
        def __init__(self, rows):
            self.rows, self.users = rows, 1

    def __init__(self, n_blocks, block_size, width, dtype):
        self._free, self._size, self._width, self._dtype = n_blocks, block_size, width, dtype
        self._texts = {}

    def free_blocks(self):
        return self._free

    def append(self, text, rows):
        if rows.ndim != 2 or rows.shape[1] != self._width or rows.dtype is not self._dtype:
            raise ValueError(f"rows of {rows.shape} and {rows.dtype}")
        blocks = self._texts.get(text, ())
        rest = list(rows.clone().unbind(0))
        taken, last = 0, None
        if rest and blocks and len(blocks[-1].rows) < self._size:
            last = blocks[-1]
            room = self._size - len(last.rows)
            head, rest = rest[:room], rest[room:]
            taken = int(last.users > 1)
        groups = [rest[i : i + self._size] for i in range(0, len(rest), self._size)]
        taken += len(groups)
        if taken > self._free:
            raise ValueError("full")
        self._free -= taken
        if last is not None:
            if last.users > 1:
                last.users -= 1
                blocks = (*blocks[:-1], self._Block([*last.rows, *head]))
            else:
                last.rows.extend(head)
        self._texts[text] = (*blocks, *map(self._Block, groups))

    def read(self, text):
        try:
            blocks = self._texts[text]
        except KeyError as e:
            raise ValueError(text) from e
        rows = [row for block in blocks for row in block.rows]
        return torch.stack(rows) if rows else torch.empty(0, self._width, dtype=self._dtype)

    def fork(self, text, other):
        if text not in self._texts:
            raise ValueError
        if other in self._texts:
            raise ValueError
        self._texts[other] = self._texts[text]
        for block in self._texts[text]:
            block.users += 1

    def release(self, text):
        if text not in self._texts:
            raise ValueError
        for block in self._texts.pop(text):
            block.users -= 1
            self._free += block.users == 0


# %% prefix-answer
def reuse_prefix(held, prompt, block_size):
    usable = prompt.tolist()[:-1]
    pairs = (zip(text.tolist(), usable, strict=False) for text in held)
    common = [len(list(takewhile(lambda pair: pair[0] == pair[1], each))) for each in pairs]
    saved = [number // block_size * block_size for number in common]
    if not any(saved):
        return [None, 0]
    return [saved.index(max(saved)), max(saved)]


# %% greedy-answer
def verify_greedy(logits, drafts, lengths):
    chosen = logits.topk(1, dim=-1).indices.squeeze(-1)
    n = drafts.shape[1]
    right = (chosen[:, :n] == drafts) & (torch.arange(n) < lengths[:, None])
    accepted = right.long().cumprod(dim=1).sum(dim=1)
    return accepted, chosen.gather(1, accepted[:, None]).squeeze(1)


# %% sampled-answer
def verify_sampled(target, proposal, draft, uniforms):
    p = [[Fraction(x) for x in row] for row in target.double().tolist()]
    q = [[Fraction(x) for x in row] for row in proposal.double().tolist()]
    u = uniforms.tolist()
    out, r = [], p[-1]
    for i, t in enumerate(draft.tolist()):
        if u[i] < p[i][t] / q[i][t]:
            out.append(t)
            continue
        r = [max(a - b, 0) for a, b in zip(p[i], q[i], strict=True)]
        break
    level = sum(r) * Fraction(u[-1])
    added = next(j for j, total in enumerate(accumulate(r)) if total > level)
    return torch.tensor([*out, added])


# %% keys-answer
def quantize_keys(k, bits, group):
    n = k.shape[2] // group
    top = 2**bits - 1
    groups = k[:, :, : n * group].double().unflatten(2, (n, group))
    low, high = torch.aminmax(groups, dim=3, keepdim=True)
    fraction = torch.nan_to_num((groups - low) / (high - low), nan=0.0)
    return (
        (fraction * top + 0.5).floor().byte(),
        low.float(),
        ((high - low) / top).float(),
        k[:, :, n * group :],
    )


# %% values-answer
def quantize_values(v, bits):
    v = v.double()
    low, high = v.amin(-1, keepdim=True), v.amax(-1, keepdim=True)
    step = (high - low) / (2**bits - 1)
    low, step = low.float().double(), step.float().double()
    safe = torch.where(step > 0, step, torch.inf)
    codes = ((v - low) / safe).round().clamp(0, 2**bits - 1)
    return codes.to(torch.uint8), low.float(), step.float()
