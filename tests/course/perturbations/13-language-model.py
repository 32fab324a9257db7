"""What breaks each claim of chapter 13, and nothing else in it."""

import torch

from tests.course.execution import Perturbation


def halves_swapped(dequantize):
    """Take the upper four bits of each byte first."""

    def swapped(blocks):
        low, high = dequantize(blocks).split(16, dim=-1)
        return torch.cat([high, low], dim=-1)

    return swapped


def leftmost_first(tokenizer):
    """Merge the first known pair of the word, not the one learned first."""

    class Leftmost(tokenizer):
        def merge(self, piece):
            parts = [bytes([byte]) for byte in piece.encode()]
            parts = [part for part in parts if part in self._numbers]
            at = 0
            while at + 1 < len(parts):
                if (parts[at], parts[at + 1]) in self._ranks:
                    parts[at : at + 2] = [parts[at] + parts[at + 1]]
                    at = 0
                else:
                    at += 1
            return parts

    return Leftmost


def no_extra_space(split):
    """Leave out a space that no word takes."""
    return lambda text: [piece for piece in split(text) if piece != " "]


def not_permuted(permutation):
    """The identity."""
    return lambda dim, **options: permutation(dim, **options).sort().values


def multiplied(_):
    """Multiply by the temperature."""
    return lambda logits, t: logits * t


def one_too_few(top_p):
    """Leave out the token that reaches p, unless it is the only one."""

    def short(logits, p):
        values = top_p(logits, p)
        last = values.masked_fill(values.isneginf(), torch.inf).argmin(dim=-1, keepdim=True)
        several = (values > -torch.inf).sum(dim=-1, keepdim=True) > 1
        return torch.where(several, values.scatter(-1, last, -torch.inf), values)

    return short


def absolute(_):
    """Compare with p itself, not with p times the largest probability."""
    return lambda logits, p: logits.masked_fill(logits.softmax(dim=-1) < p, -torch.inf)


def trusting(_):
    """Read special tokens in a message's text."""

    def message(tokenizer, role, content):
        start, end = tokenizer.special["<|im_start|>"], tokenizer.special["<|im_end|>"]
        text = tokenizer.encode(f"{role}\n{content}", special=True)
        return [start, *text, end, *tokenizer.encode("\n")]

    return message


def one_way_for_all(load):
    """Take the first reading of each text for all of them."""

    def same(name):
        record = load(name)
        if name == "length":
            for readings in record["results"]["surprise"].values():
                readings.update(dict.fromkeys(readings, next(iter(readings.values()))))
        return record

    return same


PERTURBATIONS = {
    "eq-llama-parameters": Perturbation(
        "each query head has keys of its own", replace=("8 * n_kv_heads", "24")
    ),
    "prp-block-rounding": Perturbation(
        "the two halves of a block change places",
        patch={"lib.gguf.dequantize_q4_1": halves_swapped},
    ),
    "prp-merge-order": Perturbation(
        "pairs are merged from the left", patch={"lib.bpe.Tokenizer": leftmost_first}
    ),
    "prp-lossless": Perturbation(
        "extra spaces are dropped", patch={"lib.bpe.split": no_extra_space}
    ),
    "prp-silent-layout": Perturbation(
        "the rows are not permuted", patch={"lib.rope.layout_permutation": not_permuted}
    ),
    "prp-temperature": Perturbation(
        "logits are multiplied by the temperature",
        patch={"lib.sampling.temperature": multiplied},
    ),
    "prp-top-p": Perturbation(
        "the token that reaches p is left out", patch={"lib.sampling.top_p": one_too_few}
    ),
    "prp-min-p": Perturbation(
        "the threshold is not relative", patch={"lib.sampling.min_p": absolute}
    ),
    "prp-perplexity": Perturbation(
        "the arithmetic mean", replace=("(each**weights).prod()", "(each * weights).sum()")
    ),
    "obs-length": Perturbation(
        "every way reads as RoPE does", patch={"lib.results.load": one_way_for_all}
    ),
    "prp-turns": Perturbation(
        "texts are read with special tokens", patch={"lib.smollm.message": trusting}
    ),
}
