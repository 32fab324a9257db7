"""Takes a block of text -1 for a free one.

Loses: memory, memory-fork
"""

import torch


# %% memory-answer
class BlockMemory:
    def __init__(self, n_blocks: int, block_size: int, width: int, dtype: torch.dtype) -> None:
        self.memory = torch.empty(n_blocks, block_size, width, dtype=dtype)
        self.users = [0] * n_blocks  # how many tables list the block
        self.owner = [-1] * n_blocks  # the text that took the block
        self.tables: dict[int, list[int]] = {}
        self.lengths: dict[int, int] = {}

    def free_blocks(self) -> int:
        return self.owner.count(-1)

    def append(self, text: int, rows: torch.Tensor) -> None:
        _, size, width = self.memory.shape
        if rows.shape[1] != width or rows.dtype != self.memory.dtype:
            raise ValueError(f"rows of {rows.shape[1]} {rows.dtype} do not fit the memory")
        table, length = self.tables.get(text, []), self.lengths.get(text, 0)
        end = length + len(rows)
        missing = -(-end // size) - len(table)
        copies = len(rows) > 0 and length % size > 0 and self.users[table[-1]] > 1
        if missing + copies > self.free_blocks():
            raise ValueError(f"text {text} needs {missing + copies} more blocks")
        if copies:
            own, shared = self._take(text), table[-1]
            self.memory[own] = self.memory[shared]
            self.users[shared] -= 1
            table[-1] = own
        table = table + [self._take(text) for _ in range(missing)]
        for slot, row in enumerate(rows, start=length):
            self.memory[table[slot // size], slot % size] = row
        self.tables[text], self.lengths[text] = table, end

    def _take(self, text: int) -> int:
        block = self.owner.index(-1)
        self.owner[block], self.users[block] = text, 1
        return block

    def read(self, text: int) -> torch.Tensor:
        if text not in self.tables:
            raise ValueError(f"text {text} is not held")
        return self.memory[self.tables[text]].flatten(0, 1)[: self.lengths[text]]

    def fork(self, text: int, other: int) -> None:
        if text not in self.tables or other in self.tables:
            raise ValueError(f"cannot fork {text} to {other}")
        self.tables[other] = list(self.tables[text])
        self.lengths[other] = self.lengths[text]
        for block in self.tables[other]:
            self.users[block] += 1

    def release(self, text: int) -> None:
        if text not in self.tables:
            raise ValueError(f"text {text} is not held")
        for block in self.tables.pop(text):
            self.users[block] -= 1
            if self.users[block] == 0:
                self.owner[block] = -1
        del self.lengths[text]
