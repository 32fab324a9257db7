"""Each call of append begins a new block, and the empty slots of the last one stay empty.

Loses: memory, memory-fork, memory-limits
"""

import torch


# %% memory-answer
class BlockMemory:
    def __init__(self, n_blocks, block_size, width, dtype):
        self.memory = torch.empty(n_blocks, block_size, width, dtype=dtype)
        self.users = [0] * n_blocks
        self.pieces = {}  # of each text (block, rows in it)

    def free_blocks(self):
        return self.users.count(0)

    def append(self, text, rows):
        _, size, width = self.memory.shape
        if rows.shape[1] != width or rows.dtype != self.memory.dtype:
            raise ValueError("rows do not fit")
        parts = rows.split(size) if len(rows) else ()
        if len(parts) > self.free_blocks():
            raise ValueError("too few blocks")
        pieces = self.pieces.setdefault(text, [])
        for part in parts:
            block = self.users.index(0)
            self.users[block] = 1
            self.memory[block, : len(part)] = part
            pieces.append((block, len(part)))

    def read(self, text):
        if text not in self.pieces:
            raise ValueError(f"text {text} is not held")
        parts = [self.memory[block, :number] for block, number in self.pieces[text]]
        return torch.cat([self.memory[0, :0], *parts])

    def fork(self, text, other):
        if text not in self.pieces or other in self.pieces:
            raise ValueError(f"cannot fork {text} to {other}")
        self.pieces[other] = list(self.pieces[text])
        for block, _ in self.pieces[other]:
            self.users[block] += 1

    def release(self, text):
        if text not in self.pieces:
            raise ValueError(f"text {text} is not held")
        for block, _ in self.pieces.pop(text):
            self.users[block] -= 1
