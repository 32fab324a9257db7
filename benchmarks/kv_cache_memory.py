"""The section of :mod:`benchmarks.kv_cache` that counts bytes and tries the longest context."""

from dataclasses import replace

import torch

from benchmarks.kv_cache_plan import Shape
from benchmarks.kv_cache_run import Run
from lib.kv_cache import KVCache


@torch.inference_mode()
def memory(run: Run) -> None:
    """Bytes of a cache against the formula, and the longest context that fits."""
    plan, device, section = run.plan, run.device, run.section
    section["caches"] = []
    for shape in plan.shapes:
        model = shape.make(device.device, run.dtype)
        for batch, length in ((1, plan.lengths[-1]), (3, plan.lengths[-1] // 2)):
            device.clear()
            before = device.allocated()
            state = model.decode_state(batch, length)
            after = device.allocated()
            section["caches"].append(
                {
                    "model": shape.described(model),
                    "batch_size": batch,
                    "length": length,
                    "formula": shape.cache_bytes(length, batch, run.dtype),
                    "keys_and_values": state.nbytes,
                    "allocated": None if before is None else after - before,
                }
            )
            del state
        del model
    wrong = [c for c in section["caches"] if c["formula"] != c["keys_and_values"]]
    if wrong:
        raise RuntimeError(f"not the formula's bytes: {wrong}")
    device.clear()
    section["longest"] = []
    for kv in plan.kv_heads:
        shape = replace(plan.whole, n_kv_heads=kv)
        with run.attempt(f"longest context, {kv} key heads"):
            section["longest"].append(longest(run, shape))


def longest(run: Run, shape: Shape) -> dict:
    """The longest context beside the whole model's weights: by the formula, and by trying."""
    device = run.device
    width = shape.d_model
    heads = 2 * shape.n_heads + 2 * shape.kv_heads
    layer = width * heads * shape.head_dim + 3 * width * shape.d_ff
    weights = run.dtype.itemsize * (shape.n_layers * layer + 2 * shape.vocab_size * width)
    per_token = shape.cache_bytes(1, 1, run.dtype)
    device.clear()
    free = device.free()
    found = {
        "n_kv_heads": shape.kv_heads,
        "n_layers": shape.n_layers,
        "bytes_per_token": per_token,
        "weight_bytes": weights,
        "free_bytes": free,
        "by_formula": None,
        "by_allocation": None,
    }
    if free is None:  # a CPU's memory is promised, not given, when it is asked for
        return found
    if free <= weights:
        return {**found, "by_formula": 0, "by_allocation": 0}
    found["by_formula"] = (free - weights) // per_token
    held = torch.empty(weights, dtype=torch.uint8, device=device.device)

    def fits(length: int) -> bool:
        """Whether caches of all layers can be had, and their last slots written and read."""
        try:
            caches = []
            for _ in range(shape.n_layers):
                caches.append(
                    KVCache(1, shape.kv_heads, length, shape.head_dim, dtype=run.dtype,
                            device=device.device)
                )  # fmt: skip
                keys, values = caches[-1]._keys, caches[-1]._values
                keys[:, :, -1] = 1
                values[:, :, -1] = 1
            device.wait()
            return True
        except torch.OutOfMemoryError:
            return False
        finally:
            caches = keys = values = None
            device.clear()

    low, high = 0, found["by_formula"] + 1  # fits, does not
    tried = max(1, int(0.99 * found["by_formula"]))
    while high - low > max(1, found["by_formula"] // 500):
        low, high = (tried, high) if fits(tried) else (low, tried)
        tried = (low + high) // 2
    del held
    device.clear()
    return {**found, "by_allocation": low}
