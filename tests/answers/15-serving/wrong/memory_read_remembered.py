"""Keeps what `read` gathered under the text's number and length, also after a release.

Loses: memory
"""

import torch


# %% memory-answer
class BlockMemory:
    def __init__(self, n_blocks: int, block_size: int, width: int, dtype: torch.dtype) -> None:
        self.slots = torch.empty(n_blocks * block_size, width, dtype=dtype)
        self.block_size = block_size
        self.free = list(range(n_blocks))
        self.users = dict.fromkeys(range(n_blocks), 0)
        self.texts = {}  # number: [table, length]
        self.gathered = {}  # reading again and again should not copy again and again

    def free_blocks(self) -> int:
        return len(self.free)

    def _allocate(self) -> int:
        block = self.free.pop()
        self.users[block] = 1
        return block

    def append(self, text: int, rows: torch.Tensor) -> None:
        if rows.dtype != self.slots.dtype or rows.shape[1] != self.slots.shape[1]:
            raise ValueError("the rows do not fit the memory")
        table, length = self.texts.get(text, ([], 0))
        s, new = self.block_size, rows.shape[0]
        must_copy = new > 0 and length % s != 0 and self.users[table[-1]] > 1
        more = -(-(length + new) // s) - len(table)
        if more + must_copy > len(self.free):
            raise ValueError("the memory is full")
        if must_copy:
            old, block = table[-1], self._allocate()
            self.slots[block * s : (block + 1) * s] = self.slots[old * s : (old + 1) * s]
            self.users[old] -= 1
            table = table[:-1] + [block]
        table = table + [self._allocate() for _ in range(more)]
        for i, row in enumerate(rows):
            j = length + i
            self.slots[table[j // s] * s + j % s] = row
        self.texts[text] = (table, length + new)

    def read(self, text: int) -> torch.Tensor:
        if text not in self.texts:
            raise ValueError(f"text {text} is not held")
        table, length = self.texts[text]
        if (text, length) not in self.gathered:
            s = self.block_size
            index = [table[j // s] * s + j % s for j in range(length)]
            self.gathered[text, length] = self.slots[torch.tensor(index, dtype=torch.int64)]
        return self.gathered[text, length]

    def fork(self, text: int, other: int) -> None:
        if text not in self.texts:
            raise ValueError(f"text {text} is not held")
        if other in self.texts:
            raise ValueError(f"text {other} is held already")
        table, length = self.texts[text]
        for block in table:
            self.users[block] += 1
        self.texts[other] = (list(table), length)

    def release(self, text: int) -> None:
        if text not in self.texts:
            raise ValueError(f"text {text} is not held")
        table, _ = self.texts.pop(text)
        for block in table:
            self.users[block] -= 1
            if self.users[block] == 0:
                self.free.append(block)
