"""RoPE, norms and attention against torch's and ``transformers``' versions.

``python -m benchmarks.operators``: each pair of calls in turn, many times in one run; the ratio is
our time over theirs, round by round (below 1: ours is faster). Results must agree first. Of the
norms, the modules are measured, which models use; the functions are the book's formulas.
"""

import statistics

import torch
from torch.nn import functional as F
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as gptj_rope
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as llama_rope

from benchmarks.machine import Table, describe, in_turn, ratio
from lib.attention import scaled_dot_product_attention
from lib.norms import LayerNorm, RMSNorm
from lib.rope import apply_rope, rope_frequencies, rope_tables

SHAPES = [(1, 4, 128, 64), (2, 12, 512, 64), (1, 16, 1024, 128)]  # batch, heads, length, head_dim
ROUNDS = 101


def cases(batch: int, heads: int, length: int, head_dim: int):
    """Name, ours, theirs. Queries and keys have the memory layout that a projection gives them."""
    generator = torch.Generator().manual_seed(0)
    projected = torch.randn(3, batch, length, heads, head_dim, generator=generator)
    q, k, v = (x.transpose(1, 2) for x in projected)
    cos, sin = rope_tables(torch.arange(length)[None], rope_frequencies(head_dim))
    doubled = (torch.cat((cos, cos), -1), torch.cat((sin, sin), -1))
    of_heads = (cos[:, None], sin[:, None])
    yield (
        "RoPE, half layout: Llama",
        lambda: [apply_rope(x, *of_heads, layout="half") for x in (q, k)],
        lambda: llama_rope(q, k, *doubled),
    )
    yield (
        "RoPE, interleaved: GPT-J",
        lambda: [apply_rope(x, *of_heads) for x in (q, k)],
        lambda: [gptj_rope(x, sin, cos).transpose(1, 2) for x in (projected[0], projected[1])],
    )
    mask = torch.ones(length, length, dtype=torch.bool).tril()
    yield (
        "attention, causal mask: torch",
        lambda: scaled_dot_product_attention(q, k, v, mask=mask),
        lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=mask),
    )
    yield (
        "attention, one query: torch",
        lambda: scaled_dot_product_attention(q[:, :, -1:], k, v),
        lambda: F.scaled_dot_product_attention(q[:, :, -1:], k, v),
    )
    d_model = heads * head_dim
    x = torch.randn(batch, length, d_model, generator=generator)
    for name, ours, theirs in [
        ("LayerNorm: torch", LayerNorm(d_model), torch.nn.LayerNorm(d_model)),
        ("RMSNorm: torch", RMSNorm(d_model), torch.nn.RMSNorm(d_model, eps=1e-6)),
        ("RMSNorm: Llama", RMSNorm(d_model), LlamaRMSNorm(d_model, eps=1e-6)),
    ]:
        for parameter in ours.parameters():
            torch.nn.init.normal_(parameter, generator=generator)
        theirs.load_state_dict(ours.state_dict())
        yield name, lambda ours=ours: ours(x), lambda theirs=theirs: theirs(x)


@torch.no_grad()
def compare(shape: tuple[int, int, int, int], rounds: int) -> None:
    """Print the table of one shape."""
    table = Table(f"{'ours: theirs':29}", "ours us", "theirs us", f"{'ours / theirs':19}")
    for name, ours, theirs in cases(*shape):
        for a, b in zip(ours(), theirs(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
        seconds = in_turn({"ours": ours, "theirs": theirs}, rounds)
        mine, other = (statistics.median(seconds[key]) * 1e6 for key in ("ours", "theirs"))
        table.row(name, f"{mine:.0f}", f"{other:.0f}", ratio(seconds["ours"], seconds["theirs"]))


def main() -> None:
    print(f"operators, float32, {ROUNDS} rounds in turn; {describe()}")
    for shape in SHAPES:
        print(f"\nbatch, heads, length, head_dim = {shape}\n")
        compare(shape, ROUNDS)


if __name__ == "__main__":
    main()
