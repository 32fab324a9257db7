"""The cache's bytes against the formula, and the largest allocation of a step.

``python -m benchmarks.memory``: nothing is timed, so that the numbers are exact. A step that
copied all keys or all values of a layer would have to allocate as much memory.
"""

import os
from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.llama import alone
from benchmarks.machine import Table, describe
from lib.kv_cache import kv_cache_bytes

HELD = 1_000
os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else the profiler writes into the table


def largest_allocation(call: Callable[[], object]) -> int:
    """Bytes of the largest allocation of a call on the CPU, kernels included."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        call()
    events = record.profiler.kineto_results.events()
    return max(event.nbytes() for event in events if event.name() == "[memory]")


@torch.no_grad()
def step_after(model: torch.nn.Module, held: int, **prefill) -> tuple[int, int, int]:
    """Decode one token after ``held`` others.

    Args:
        model: a :class:`lib.transformer.LanguageModel`.
        held: tokens that the cache holds, one row.
        **prefill: passed on to the model when it reads them.

    Returns:
        Bytes of the whole cache; bytes of the keys of one layer; bytes of the largest
        allocation of the step.
    """
    state = model.decode_state(1, held + 2)
    tokens = torch.arange(held).unsqueeze(0) % model.embedding.num_embeddings
    model(tokens, state=state, last_only=True, **prefill)
    one = tokens[:, :1]
    model(one, state=state)
    largest = largest_allocation(lambda: model(one, state=state))
    attention = model.blocks[0].self_attention
    keys = kv_cache_bytes(
        held + 2,
        n_layers=1,
        n_kv_heads=attention.n_kv_heads,
        head_dim=attention.head_dim,
        value_dim=0,
        dtype=model.embedding.weight.dtype,
    )
    return state.nbytes, keys, largest


def main() -> None:
    print(f"memory of a step after {HELD} tokens, float32; {describe()}\n")
    table = Table(
        "width x layers, kv heads",
        "cache, bytes",
        "by the formula",
        "keys of a layer",
        "largest of a step",
        "of these keys",
    )
    for width, n_layers, n_kv_heads in [(128, 4, 2), (512, 8, 8), (512, 8, 2), (1536, 12, 24)]:
        model = alone(width, n_layers, n_kv_heads=n_kv_heads)
        cache, keys, largest = step_after(model, HELD)
        formula = kv_cache_bytes(
            HELD + 2, n_layers=n_layers, n_kv_heads=n_kv_heads, head_dim=64, dtype=torch.float32
        )
        table.row(
            f"{width} x {n_layers}, {n_kv_heads}",
            str(cache),
            str(formula),
            str(keys),
            str(largest),
            f"{largest / keys:.1%}",
        )


if __name__ == "__main__":
    main()
