"""Right, with rows in lists, blocks counted from the tables, and loops in place of tensors."""

import itertools

import torch


# %% memory-answer
class BlockMemory:
    def __init__(self, n_blocks, block_size, width, dtype):
        self.sizes = n_blocks, block_size
        self.none = torch.zeros(0, width, dtype=dtype)
        self.rows, self.blocks, self.names = {}, {}, itertools.count()

    def free_blocks(self):
        return self.sizes[0] - len({name for names in self.blocks.values() for name in names})

    def append(self, text, rows):
        if (rows.shape[-1], rows.dtype) != (self.none.shape[-1], self.none.dtype):
            raise ValueError("other rows than these")
        kept = [*self.rows.get(text, []), *rows.clone()]
        blocks = list(self.blocks.get(text, []))
        old = len(kept) - len(rows)
        if len(kept) > old and old % self.sizes[1]:
            others = [names for name, names in self.blocks.items() if name != text]
            if any(blocks[-1] in names for names in others):
                blocks.pop()
        needed = (len(kept) + self.sizes[1] - 1) // self.sizes[1] - len(blocks)
        if needed > self.free_blocks():
            raise ValueError("too few blocks")
        blocks += [next(self.names) for _ in range(needed)]
        self.rows[text], self.blocks[text] = kept, blocks

    def read(self, text):
        if text not in self.rows:
            raise ValueError("not held")
        return torch.stack(self.rows[text]) if self.rows[text] else self.none.clone()

    def fork(self, text, other):
        if text not in self.rows or other in self.rows:
            raise ValueError("not held, or held already")
        self.rows[other], self.blocks[other] = self.rows[text], self.blocks[text]

    def release(self, text):
        if text not in self.rows:
            raise ValueError("not held")
        del self.rows[text], self.blocks[text]


# %% prefix-answer
def reuse_prefix(held, prompt, block_size):
    best = (None, 0)
    words = prompt.tolist()[:-1]
    for place, text in enumerate(held):
        pairs = zip(words, text.tolist(), strict=False)
        common = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        saved = common - common % block_size
        if saved > best[1]:
            best = (place, saved)
    return list(best)


# %% greedy-answer
def verify_greedy(logits, drafts, lengths):
    accepted, following = [], []
    for rows, draft, length in zip(logits, drafts.tolist(), lengths.tolist(), strict=True):
        count = 0
        while count < length and int(rows[count].argmax()) == draft[count]:
            count += 1
        accepted.append(count)
        following.append(int(rows[count].argmax()))
    return torch.tensor(accepted), torch.tensor(following)


# %% sampled-answer
def verify_sampled(target, proposal, draft, uniforms):
    *chances, last = uniforms.tolist()
    tokens, rest = [], target[-1].tolist()
    for p, q, token, chance in zip(
        target.tolist(), proposal.tolist(), draft.tolist(), chances, strict=False
    ):
        if chance * q[token] >= p[token]:
            rest = [max(a - b, 0.0) for a, b in zip(p, q, strict=True)]
            break
        tokens.append(token)
    sums = list(itertools.accumulate(rest))
    tokens.append(next(token for token, total in enumerate(sums) if total > last * sums[-1]))
    return torch.tensor(tokens)


# %% keys-answer
def code(numbers, bits):
    low, high = min(numbers), max(numbers)
    step = (high - low) / (2**bits - 1)
    return [round((x - low) / step) if step else 0 for x in numbers], low, step


def coded(rows, bits):
    """Of a tensor with one group in each row."""
    found = [code(row, bits) for row in rows.double().flatten(0, -2).tolist()]
    codes = torch.tensor([codes for codes, _, _ in found], dtype=torch.uint8)
    low = torch.tensor([low for _, low, _ in found], dtype=torch.float32)
    step = torch.tensor([step for _, _, step in found], dtype=torch.float32)
    one = (*rows.shape[:-1], 1)
    return codes.view(rows.shape), low.view(one), step.view(one)


def quantize_keys(k, bits, group):
    n_groups, left = divmod(k.shape[2], group)
    full = k.shape[2] - left
    sizes = (*k.shape[:2], n_groups, group, k.shape[3])
    groups = k[:, :, :full].reshape(sizes).transpose(-2, -1)
    parts = (part.transpose(-2, -1) for part in coded(groups, bits))
    return (*parts, k[:, :, full:].clone())


# %% values-answer
def quantize_values(v, bits):
    return coded(v, bits)
