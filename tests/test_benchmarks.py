"""The benchmarks' machinery on tiny sizes. Nothing here looks at a time; copies are counted."""

import subprocess
import sys

import pytest
import torch
import transformers

from benchmarks import decoding, decoding_smollm, growth, operators
from benchmarks.llama import alone, from_transformers
from benchmarks.machine import ROOT, Table, describe, in_turn, ratio
from benchmarks.memory import largest_allocation, step_after
from lib import results, smollm
from lib.alibi import AlibiPosition
from lib.kv_cache import KVCache, kv_cache_bytes

# --- machine


def test_a_table_is_markdown_row_by_row(capsys):
    table = Table("a", "a name of some length")
    table.row("1", "2")
    assert capsys.readouterr().out.splitlines() == [
        "| a            | a name of some length |",
        "| ------------ | --------------------- |",
        "| 1            | 2                     |",
    ]
    with pytest.raises(ValueError, match="zip"):
        table.row("1", "2", "3")


def test_ways_are_timed_in_turn():
    order = []
    seconds = in_turn({name: lambda name=name: order.append(name) for name in "ab"}, 3)
    assert order == ["a", "b"] * 3
    assert [len(seconds[name]) for name in "ab"] == [3, 3]


def test_ratios_are_taken_round_by_round():
    # 2, 3, 4, 5, 10: a busy round in both changes nothing
    above, below = [2.0, 300.0, 4.0, 5.0, 10.0], [1.0, 100.0, 1.0, 1.0, 1.0]
    assert ratio(above, below) == "4.00 (3.00 to 5.00)"
    assert ratio(below, [2 * b for b in below], percent=True) == "50% (50% to 50%)"


def test_what_ran_is_said():
    line = describe()
    assert f"torch {torch.__version__}" in line
    assert f"{torch.get_num_threads()} threads" in line
    assert "commit " in line


# --- growth


def test_exponents_by_hand():
    lengths = [1, 2, 4, 8]
    assert growth.exponent(lengths, [3.0] * 4) == pytest.approx(0.0)
    assert growth.exponent(lengths, [5.0 * t for t in lengths]) == pytest.approx(1.0)
    assert growth.exponent(lengths, [t**1.5 for t in lengths]) == pytest.approx(1.5)
    # least squares in the logarithms, base 2: x = 0, 1, 2 and y = 0, 0, 3 have slope 3/2
    assert growth.exponent([1, 2, 4], [1.0, 1.0, 8.0]) == pytest.approx(1.5)


def test_operations_by_hand():
    # 2·100·3 + 4·5·7·9 without the cache, 2·100 + 4·5·7·3 with it
    assert growth.operations(3, 100, 7, 5) == (1860, 620)


def test_predicted_exponents():
    """Of the two sizes: about 1.25 and 0.25, 1.04 and 0.04."""
    for width, n_layers, expected in [(128, 4, 0.25), (1536, 12, 0.04)]:
        n_weights = sum(p.numel() for p in alone(width, 1).blocks.parameters()) * n_layers
        counts = zip(
            *(growth.operations(t, n_weights, width, n_layers) for t in growth.LENGTHS),
            strict=True,
        )
        without, with_cache = (growth.exponent(growth.LENGTHS, list(c)) for c in counts)
        assert without == pytest.approx(1 + expected, abs=0.01)
        assert with_cache == pytest.approx(expected, abs=0.01)


def test_curves_have_a_point_per_length():
    full, cached, n_weights = growth.curves(64, 1, [2, 5])
    assert len(full) == len(cached) == 2
    assert min(full + cached) > 0
    # four square matrices, three of the feed-forward, two norms
    assert n_weights == 4 * 64 * 64 + 3 * 64 * 170 + 2 * 64


# --- decoding and operators


def test_the_three_ways_choose_the_same_tokens():
    ways, n_bytes = decoding.make_ways(64, 2, 4)  # it raises where they differ
    assert set(ways) == {"lib", "generate", "bare", "first"}
    assert ways["bare"]().shape == (1, 4)
    layer = 4 * 64 * 64 + 3 * 64 * 170 + 2 * 64
    assert n_bytes == 4 * (2 * layer + 64 + 1_000 * 64)


def test_another_choice_of_tokens_is_not_timed(monkeypatch):
    real = decoding.bare_loop
    monkeypatch.setattr(decoding, "bare_loop", lambda *args: real(*args) + 1)
    with pytest.raises(SystemExit, match="bare chose other tokens"):
        decoding.make_ways(64, 1, 2)


def test_a_row_of_decoding_fits_the_table():
    row = decoding.measure(64, 1, 3, 2, 4 * 4096)
    assert row[:2] == ["64 x 1", "0 MB"]
    assert len(row) == 7


# --- decoding: SmolLM2, with random weights


TINY = smollm.Config(
    vocab_size=50,
    d_model=192,
    n_layers=2,
    n_heads=3,
    n_kv_heads=1,
    d_ff=40,
    context_length=30,
    rope_base=500.0,
    norm_eps=1e-5,
)


@pytest.fixture
def tiny():
    ours = decoding_smollm.random_model(TINY)
    return ours, decoding_smollm.counterpart(TINY, ours)


@torch.no_grad()
def test_the_counterpart_is_the_same_function_and_shares_weights(tiny):
    ours, theirs = tiny
    tokens = torch.randint(50, (2, 9), generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(theirs(tokens).logits, ours(tokens), rtol=0, atol=1e-4)
    assert ours(tokens).std() > 0.5
    shared = {weight.data_ptr() for weight in ours.parameters()}
    own = [name for name, each in theirs.named_parameters() if each.data_ptr() not in shared]
    parts = ("self_attn.q_proj", "self_attn.k_proj")
    assert own == [f"model.layers.{i}.{part}.weight" for i in (0, 1) for part in parts]


def test_every_way_says_when_it_has_a_token(tiny):
    ways = decoding_smollm.make_ways(*tiny)
    assert list(ways) == ["lib", "dynamic", "static", "lib, no cache", "no cache"]
    prompt = torch.tensor([[7, 3, 1]])
    for way in ways.values():
        tokens, seconds = decoding_smollm.time_tokens(way, prompt, 4)
        assert tokens.shape == (1, 4)
        assert len(seconds) == 4
        assert min(seconds) > 0


def test_only_ways_with_a_cache_read_one_token_at_a_time(tiny):
    ours, theirs = tiny
    lengths = []
    for embedding in (ours.embedding, theirs.model.embed_tokens):
        embedding.register_forward_pre_hook(lambda _, inputs: lengths.append(inputs[0].shape[1]))
    for name, way in decoding_smollm.make_ways(ours, theirs).items():
        lengths.clear()
        decoding_smollm.time_tokens(way, torch.tensor([[7, 3, 1]]), 3)
        assert lengths == ([3, 1, 1] if name in decoding_smollm.CACHED else [3, 4, 5]), name


def test_what_a_step_reads_and_a_prefill_computes_by_hand(tiny):
    layer = 2 * 192 * 192 + 2 * 64 * 192 + 3 * 40 * 192  # q and o, k and v, feed-forward
    weights = 2 * layer + 5 * 192 + 50 * 192  # the table counts once
    keys = 2 * 2 * 7 * 64  # of two layers, with the values, seven tokens
    assert decoding_smollm.bytes_of_a_step(TINY, tiny[0], 7) == 4 * (weights + keys)
    # query i sees i + 1 keys, at 2 · 192 operations each for the score and for the value
    pairs = 1 + 2 + 3
    expected = 2 * 3 * 2 * layer + 2 * 50 * 192 + 2 * 4 * 192 * pairs
    assert decoding_smollm.operations_of_a_prefill(TINY, tiny[0], 3) == expected


def test_ratios_and_shares_by_hand():
    entry = decoding_smollm.summary(
        9,
        {
            "lib": [2.0, 2.0],
            "dynamic": [4.0, 8.0],
            "lib, no cache": [6.0, 6.0],
            "no cache": [3.0, 3.0],
            "matrices": [0.25, 0.125],
        },
        {"lib": [0.5, 0.25], "dynamic": [1.0, 1.0]},
        n_bytes=10,
        n_operations=30,
        bandwidth=[40.0, 40.0],
        throughput=[20.0, 20.0],
    )
    decode, prefill, without = (entry[name] for name in ("decode", "prefill", "without_cache"))
    assert decode["ratio"] == {"dynamic": [2.5, 3.0, 3.5]}  # 2 and 4
    assert decode["share_of_bandwidth"] == [0.625, 0.75, 0.875]  # 0.25 s over 0.5 s, over 0.25 s
    assert decode["share_of_matrices"] == [0.5] * 3
    assert prefill["ratio"] == {"dynamic": [2.5, 3.0, 3.5]}  # 2 and 4
    assert prefill["share_of_throughput"] == [0.75] * 3  # 1.5 s over 2 s
    assert without["ratio"] == {"no cache": [0.5] * 3}
    assert without["over_cached"] == [15.0, 18.0, 21.0]  # 12 and 24
    assert prefill["seconds"] == {"lib": [2.0, 2.0], "dynamic": [4.0, 8.0]}
    assert (entry["bandwidth"], entry["throughput"]) == (40.0, 20.0)


def test_the_real_model_chooses_the_same_tokens_or_is_not_timed(tiny, monkeypatch):
    real = decoding_smollm.make_ways

    def wrong(*models):
        ways = real(*models)
        return {**ways, "static": lambda *args: ways["static"](*args) + 1}

    monkeypatch.setattr(decoding_smollm, "make_ways", wrong)
    with pytest.raises(SystemExit, match="5 tokens: static chose other tokens than lib"):
        decoding_smollm.measure(TINY, *tiny, 5, rounds=2, new=3, read_bytes=16384, product=8)


@pytest.fixture
def small(monkeypatch):
    """The script's model at a tiny size."""
    monkeypatch.setattr(decoding_smollm, "SIZES", TINY)
    monkeypatch.setattr(decoding_smollm, "READ_BYTES", {"cpu": 16384})
    monkeypatch.setattr(decoding_smollm, "PRODUCT", {"cpu": 8})
    return ["--random", "--rounds", "2", "--lengths", "3", "6"]


def test_the_script_prints_tables_and_writes_a_record(small, tmp_path, monkeypatch, capsys):
    decoding.main([*small, "--out", str(tmp_path / "decoding.json")])
    printed = capsys.readouterr().out
    assert sum(line.startswith(("| 3 ", "| 6 ")) for line in printed.splitlines()) == 3 * 2
    assert "weights: random, float32" in printed
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    record = results.load("decoding")
    assert record["made"]["weights"] == "random"
    assert record["results"]["model"]["d_ff"] == 40
    shortest, longest = record["results"]["lengths"]
    assert (shortest["length"], longest["length"]) == (3, 6)
    assert list(longest["decode"]["ratio"]) == ["dynamic", "static"]
    for part in ("decode", "prefill"):
        assert all(len(each) == 2 for each in longest[part]["seconds"].values())


def test_the_tables_in_the_readme_are_those_of_the_record(capsys):
    """And what is said of the run and of the aims is so."""
    record = results.load("decoding")
    entries = record["results"]["lengths"]
    decoding_smollm.report(entries)
    readme = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    assert [line for line in capsys.readouterr().out.splitlines() if line not in readme] == []
    made, ratios = record["made"], [entry["decode"]["ratio"] for entry in entries]
    text = " ".join(readme.split())
    assert f"commit {made['commit']}, {made['date']}" in text
    assert f"load {made['load']} when it began" in text
    assert [entry["length"] for entry in entries] == [16, 128, 512, 1024, 2048]
    assert all(low > 1 for each in ratios for low, *_ in each.values())  # ours is ahead
    shares = [entry["decode"]["share_of_bandwidth"][1] for entry in entries]
    assert max(shares) < 0.75  # not reached
    assert all(entry["decode"]["share_of_matrices"][1] < 0.75 for entry in entries)


def test_without_transformers_ours_is_timed_alone(small, monkeypatch, capsys):
    monkeypatch.setattr(decoding_smollm.util, "find_spec", lambda name: None)
    decoding.main([*small, "--dtype", "bfloat16"])
    printed = capsys.readouterr().out
    assert "transformers is not installed" in printed
    assert "weights: random, bfloat16" in printed
    assert sum(line.startswith(("| 3 ", "| 6 ")) for line in printed.splitlines()) == 3 * 2


def test_without_the_weights_the_script_says_where_they_are(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(smollm, "PACKAGE", "no_such_package_here")
    monkeypatch.setattr(decoding, "SIZES", [])
    decoding.main([])
    assert "not installed: it comes with the extra `pretrained`" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="--random measures random weights"):
        decoding.main(["--out", str(tmp_path / "decoding.json")])
    assert not list(tmp_path.iterdir())


def test_a_weight_without_a_counterpart_is_refused():
    config = transformers.LlamaConfig(
        vocab_size=11,
        hidden_size=12,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        attention_bias=True,
    )
    with pytest.raises(RuntimeError, match=r"no counterpart for .*self_attn.k_proj.bias"):
        from_transformers(transformers.LlamaForCausalLM(config))


@torch.no_grad()
def test_operators_agree_with_what_they_are_compared_with(capsys):
    operators.compare((2, 3, 5, 8), rounds=2)
    assert len(capsys.readouterr().out.splitlines()) == 2 + 7


# --- memory: exact, so that a copy of the cache is a failure and not a slow run


def test_the_largest_allocation_is_found():
    x = torch.ones(1000)
    assert largest_allocation(lambda: (x[:10] + 1, torch.cat((x, x, x)), x.sum())) == 12_000
    query = torch.ones(1, 1, 1, 8)  # inside a kernel too: the sum's two partial results
    assert largest_allocation(lambda: torch.softmax(query @ query.mT, -1)) > 0


SCHEMES = {
    "rotary": {},
    "grouped": {"n_kv_heads": 1},
    "alibi": {"position": AlibiPosition(2)},
}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("padded", [False, True])
def test_a_step_asks_for_no_memory_of_the_size_of_the_keys(scheme, padded):
    model, held = alone(128, 2, vocab_size=11, **SCHEMES[scheme]), 700
    prefill = {"mask": torch.arange(held).unsqueeze(0) >= 9} if padded else {}
    total, keys, largest = step_after(model, held, **prefill)
    kv_heads = 1 if scheme == "grouped" else 2
    assert keys == kv_heads * (held + 2) * 64 * 4
    assert total == 2 * 2 * keys  # keys and values of two layers
    assert total == kv_cache_bytes(
        held + 2, n_layers=2, n_kv_heads=kv_heads, head_dim=64, dtype=torch.float32
    )
    # Positions and scores grow with the length too, by a few numbers per token and not by 64.
    assert largest < keys / 5


def test_a_cache_that_grows_by_concatenation_is_found_out(monkeypatch):
    def update(self, k, v):
        if self.length:
            k, v = torch.cat((self.k, k), dim=2), torch.cat((self.v, v), dim=2)
        self.k, self.v, self.length = k, v, k.shape[2]
        return k, v

    monkeypatch.setattr(KVCache, "update", update)
    _, keys, largest = step_after(alone(128, 2, vocab_size=11), 700)
    assert largest >= keys


# --- what an import brings along


def test_importing_lib_brings_little_beside_torch():
    code = (
        "import importlib, pkgutil, sys\n"
        "import torch\n"
        "before = set(sys.modules)\n"
        "import lib\n"
        "for module in pkgutil.iter_modules(lib.__path__):\n"
        "    importlib.import_module('lib.' + module.name)\n"
        "print(*(set(sys.modules) - before))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    added = [name for name in done.stdout.split() if name.split(".")[0] != "lib"]
    heavy = {"IPython", "matplotlib", "nbformat", "pandas", "scipy", "sklearn", "transformers"}
    assert not heavy & {name.split(".")[0] for name in added}
    assert len(added) < 20, sorted(added)  # nearly all of it in Python's standard library
