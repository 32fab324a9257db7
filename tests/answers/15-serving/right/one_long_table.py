"""Right, with all slots in one long tensor, a matrix of comparisons and codes found by search."""

import torch


# %% memory-answer
class BlockMemory:
    def __init__(self, n_blocks, block_size, width, dtype):
        self.slots = torch.zeros(n_blocks * block_size, width, dtype=dtype)
        self.size = block_size
        self.places = {}  # of each text the slots of its rows

    def used(self, *, without=None):
        texts = (places for text, places in self.places.items() if text != without)
        return {int(place) // self.size for places in texts for place in places}

    def free_blocks(self):
        return len(self.slots) // self.size - len(self.used())

    def append(self, text, rows):
        if rows.shape[1:] != self.slots.shape[1:] or rows.dtype != self.slots.dtype:
            raise ValueError(f"{tuple(rows.shape)} {rows.dtype}")
        places = list(self.places.get(text, []))
        others, everything = self.used(without=text), self.used()
        free = [b for b in range(len(self.slots) // self.size) if b not in everything]
        moved, filled = [], len(places) % self.size
        if len(rows) and filled and places[-1] // self.size in others:
            places, moved = places[:-filled], places[-filled:]
        for _ in range(len(moved) + len(rows)):
            if len(places) % self.size:
                places.append(places[-1] + 1)
            elif free:
                places.append(self.size * free.pop(0))
            else:
                raise ValueError("all blocks are in use")
        start = len(places) - len(moved) - len(rows)
        self.slots[places[start:]] = torch.cat([self.slots[moved], rows])
        self.places[text] = places

    def read(self, text):
        if text not in self.places:
            raise ValueError("no such text")
        return self.slots[torch.tensor(self.places[text], dtype=torch.int64)]

    def fork(self, text, other):
        if other in self.places or text not in self.places:
            raise ValueError("no such text, or one too many")
        self.places[other] = list(self.places[text])

    def release(self, text):
        if self.places.pop(text, None) is None:
            raise ValueError("no such text")


# %% prefix-answer
def reuse_prefix(held, prompt, block_size):
    best, saved = None, 0
    for place in reversed(range(len(held))):
        text = held[place]
        longest = min(len(text), len(prompt) - 1) // block_size * block_size
        while not torch.equal(text[:longest], prompt[:longest]):
            longest -= block_size
        if longest >= max(saved, 1):
            best, saved = place, longest
    return best, saved


# %% greedy-answer
def verify_greedy(logits, drafts, lengths):
    chosen = torch.argmax(logits, 2)
    n = drafts.shape[1]
    agree = torch.arange(n).expand(len(drafts), n) < lengths[:, None]
    agree &= chosen[:, :n] == drafts
    # Row i of the triangle has the places up to i: all of them must agree.
    up_to = torch.tril(torch.ones(n, n, dtype=torch.bool))
    accepted = (agree[:, None] | ~up_to).all(dim=2).sum(dim=1)
    return accepted, torch.take_along_dim(chosen, accepted[:, None], 1)[:, 0]


# %% sampled-answer
def verify_sampled(target, proposal, draft, uniforms):
    p, q = target.to(torch.float64), proposal.to(torch.float64)
    ratio = p[:-1].gather(1, draft[:, None]) / q.gather(1, draft[:, None])
    accepted = int((uniforms[:-1] < ratio[:, 0]).long().cumprod(0).sum())
    none = torch.zeros(1, p.shape[1], dtype=torch.float64)
    rest = (p[accepted] - torch.cat([q, none])[accepted]).clamp(min=0)
    sums = torch.cumsum(rest, 0)
    token = (sums <= uniforms[-1] * sums[-1]).sum()
    return torch.cat([draft[:accepted], token[None]])


# %% keys-answer
def coded(x, bits, dim):
    x = x.double()
    low, high = x.amin(dim, keepdim=True), x.amax(dim, keepdim=True)
    step = (high - low) / (2**bits - 1)
    codes = torch.zeros(x.shape, dtype=torch.int64)
    for level in range(1, 2**bits):  # above how many midpoints between two steps is it?
        codes += x > low + (level - 0.5) * step
    return codes.to(torch.uint8), low.float(), step.float()


def quantize_keys(k, bits, group):
    left = k.shape[2] % group
    rest = k[:, :, k.shape[2] - left :]
    batch, n_heads, length, d_k = k.shape
    groups = k[:, :, : length - left].reshape(batch, n_heads, length // group, group, d_k)
    codes, low, step = coded(groups, bits, 3)
    return codes, low, step, rest


# %% values-answer
def quantize_values(v, bits):
    return coded(v, bits, 3)
