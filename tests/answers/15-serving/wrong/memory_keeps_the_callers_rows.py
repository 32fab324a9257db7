"""Keeps views of the rows that the caller added, and no numbers of its own.

Loses: memory
"""

import torch


# %% memory-answer
class BlockMemory:
    def __init__(self, n_blocks, block_size, width, dtype):
        self.memory = [[None] * block_size for _ in range(n_blocks)]
        self.empty = torch.empty(0, width, dtype=dtype)
        self.users = [0] * n_blocks  # how many tables list the block
        self.tables = {}
        self.lengths = {}

    def free_blocks(self):
        return self.users.count(0)

    def append(self, text, rows):
        size = len(self.memory[0])
        if rows.shape[1] != self.empty.shape[1] or rows.dtype != self.empty.dtype:
            raise ValueError(f"rows of {rows.shape[1]} {rows.dtype} do not fit the memory")
        table, length = self.tables.get(text, []), self.lengths.get(text, 0)
        end = length + len(rows)
        missing = -(-end // size) - len(table)
        copies = len(rows) > 0 and length % size > 0 and self.users[table[-1]] > 1
        if missing + copies > self.free_blocks():
            raise ValueError(f"text {text} needs {missing + copies} more blocks")
        if copies:
            own, shared = self._take(), table[-1]
            self.memory[own] = list(self.memory[shared])
            self.users[shared] -= 1
            table[-1] = own
        table = table + [self._take() for _ in range(missing)]
        for slot, row in enumerate(rows, start=length):
            self.memory[table[slot // size]][slot % size] = row
        self.tables[text], self.lengths[text] = table, end

    def _take(self):
        block = self.users.index(0)
        self.users[block] = 1
        return block

    def read(self, text):
        if text not in self.tables:
            raise ValueError(f"text {text} is not held")
        rows = [row for block in self.tables[text] for row in self.memory[block]]
        rows = rows[: self.lengths[text]]
        return torch.stack(rows) if rows else self.empty.clone()

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
