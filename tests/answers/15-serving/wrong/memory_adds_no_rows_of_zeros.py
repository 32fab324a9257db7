"""Asks by `any` whether there are rows, and so does not add rows of zeros.

Loses: memory
"""

import torch


# %% memory-answer
class BlockMemory:
    def __init__(self, n_blocks, block_size, width, dtype):
        self.memory = torch.empty(n_blocks, block_size, width, dtype=dtype)
        self.users = [0] * n_blocks  # how many tables list the block
        self.tables = {}
        self.lengths = {}

    def free_blocks(self):
        return self.users.count(0)

    def append(self, text, rows):
        _, size, width = self.memory.shape
        if rows.shape[1] != width or rows.dtype != self.memory.dtype:
            raise ValueError(f"rows of {rows.shape[1]} {rows.dtype} do not fit the memory")
        if not rows.any():
            rows = rows[:0]
        table, length = self.tables.get(text, []), self.lengths.get(text, 0)
        end = length + len(rows)
        missing = -(-end // size) - len(table)
        copies = len(rows) > 0 and length % size > 0 and self.users[table[-1]] > 1
        if missing + copies > self.free_blocks():
            raise ValueError(f"text {text} needs {missing + copies} more blocks")
        if copies:
            own, shared = self._take(), table[-1]
            self.memory[own] = self.memory[shared]
            self.users[shared] -= 1
            table[-1] = own
        table = table + [self._take() for _ in range(missing)]
        for slot, row in enumerate(rows, start=length):
            self.memory[table[slot // size], slot % size] = row
        self.tables[text], self.lengths[text] = table, end

    def _take(self):
        block = self.users.index(0)
        self.users[block] = 1
        return block

    def read(self, text):
        if text not in self.tables:
            raise ValueError(f"text {text} is not held")
        return self.memory[self.tables[text]].flatten(0, 1)[: self.lengths[text]]

    def fork(self, text, other):
        if text not in self.tables or other in self.tables:
            raise ValueError(f"cannot fork {text} to {other}")
        self.tables[other] = list(self.tables[text])
        self.lengths[other] = self.lengths[text]
        for block in self.tables[other]:
            self.users[block] += 1

    def release(self, text):
        if text not in self.tables:
            raise ValueError(f"text {text} is not held")
        for block in self.tables.pop(text):
            self.users[block] -= 1
        del self.lengths[text]
