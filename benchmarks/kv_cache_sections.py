"""The sections of :mod:`benchmarks.kv_cache`, in the order they run.

A section is a function of a :class:`benchmarks.kv_cache_run.Run`. It checks logits, then measures:
it writes what it finds into ``run.section``, asks ``run.late`` before each point, and raises if
there is nothing to show.
"""

from collections.abc import Callable

from benchmarks.kv_cache_beside import exercise, transformers
from benchmarks.kv_cache_memory import memory
from benchmarks.kv_cache_run import Run
from benchmarks.kv_cache_speed import (
    ceilings,
    compiled,
    correctness,
    growth,
    roofline,
    steps,
    tuned,
)

SECTIONS: dict[str, Callable[[Run], None]] = {
    "ceilings": ceilings,
    "correctness": correctness,
    "growth": growth,
    "steps": steps,
    "roofline": roofline,
    "memory": memory,
    "exercise": exercise,
    "transformers": transformers,
    "compiled": compiled,
    "tuned": tuned,
}
