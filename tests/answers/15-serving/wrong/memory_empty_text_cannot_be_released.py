"""Takes a text without rows for one that is not held, when it is to be released.

Loses: memory-limits
"""

import torch


# %% memory-answer
class BlockMemory:
    def __init__(self, n_blocks, block_size, width, dtype):
        self.memory = torch.zeros(n_blocks, block_size, width, dtype=dtype)
        self.size = block_size
        self.users = [0] * n_blocks
        self.tables = {}
        self.lengths = {}

    def free_blocks(self):
        return self.users.count(0)

    def append(self, text, rows):
        if (
            rows.dim() != 2
            or rows.shape[1] != self.memory.shape[2]
            or rows.dtype != self.memory.dtype
        ):
            raise ValueError("rows")
        table = self.tables.get(text, [])
        length = self.lengths.get(text, 0)
        end = length + len(rows)
        copy = len(rows) > 0 and length % self.size > 0 and self.users[table[-1]] > 1
        needed = -(-end // self.size) - len(table)
        if needed + copy > self.free_blocks():
            raise ValueError("no room")
        table = list(table)
        if copy:
            block = self.take()
            self.memory[block] = self.memory[table[-1]]
            self.users[table[-1]] -= 1
            table[-1] = block
        for _ in range(needed):
            table.append(self.take())
        for j in range(length, end):
            self.memory[table[j // self.size], j % self.size] = rows[j - length]
        self.tables[text] = table
        self.lengths[text] = end

    def take(self):
        block = self.users.index(0)
        self.users[block] = 1
        return block

    def read(self, text):
        if text not in self.tables:
            raise ValueError("not held")
        return self.memory[self.tables[text]].flatten(0, 1)[: self.lengths[text]].clone()

    def fork(self, text, other):
        if text not in self.tables or other in self.tables:
            raise ValueError("fork")
        self.tables[other] = list(self.tables[text])
        self.lengths[other] = self.lengths[text]
        for block in self.tables[other]:
            self.users[block] += 1

    def release(self, text):
        if not self.tables.get(text):
            raise ValueError("not held")
        for block in self.tables.pop(text):
            self.users[block] -= 1
        del self.lengths[text]
