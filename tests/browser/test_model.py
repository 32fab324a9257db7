"""The language models on the pages: the same logits as `lib`, and what a reader sees and presses."""

import importlib.util
import json
import math
import random
from functools import cache
from pydoc_data.topics import topics

import numpy as np
import pytest
import torch

from lib import extrapolation, results
from lib.crossover import crossover, ratio_spread
from tests.browser.conftest import ROOT

STATIC = ROOT / "book" / "_static" / "model"
SCHEMES = ("none", "sinusoidal", "learned", "rope", "alibi", "t5")
TOLERANCE = 1e-4
LONG = 200  # characters; the models were trained on 64


@cache
def extension():
    path = ROOT / "book" / "_ext" / "language_model.py"
    spec = importlib.util.spec_from_file_location("language_model", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def lib_model(scheme: str):
    """The model with the stored weights, in float32."""
    model = extrapolation.build(scheme, 0)
    stored = results.load_weights("extrapolation", scheme=scheme, seed=0)
    model.load_state_dict({name: torch.tensor(array).float() for name, array in stored.items()})
    return model.eval()


@cache
def texts() -> list[str]:
    """A hundred texts: pieces of Python's help topics, and what a reader may type besides."""
    generator = random.Random(5)
    nasty = [
        *("a", " ", "\n", "\n\n\n", "\t", "é", "🐈", "👩‍👩‍👧", "漢字", "0" * 70, "A" * 200),
        *("The cat 🐈 sat.", "tab\there", "“quotes” – and — dashes…", "‮right to left", "\u0000"),
        *("<script>alert(1)</script>", "x" * 63, "x" * 64, "x" * 65, "{}[]()\\/", "ÄÖÜäöüß°", "~"),
    ]
    whole = "\n".join(topics[name] for name in sorted(topics))
    lengths = [generator.choice((9, 40, 63, 64, 65, 100, LONG)) for _ in range(100 - len(nasty))]
    starts = [generator.randrange(len(whole) - LONG) for _ in lengths]
    return nasty + [whole[a : a + n] for a, n in zip(starts, lengths, strict=True)]


def readable(scheme: str, text: str) -> str:
    """As much of a text as the model has positions for."""
    return text[: lib_model(scheme).position.max_len]


@pytest.fixture(scope="module")
def bare(browser):
    """A page with the models alone, all of them made: ``made.rope``, with ``lm``'s functions."""
    page = browser.new_page()
    page.set_content("<title>models</title>")
    page.add_script_tag(path=STATIC / "model.js")
    page.evaluate("""() => {
        window.lm = languageModels();
        window.made = {};
        window.registerLanguageModel = stored => { made[stored.scheme] = lm.build(stored); };
    }""")
    for scheme in SCHEMES:
        page.add_script_tag(content=extension().weights_script(scheme))
    yield page
    page.close()


# --- the model


def test_there_are_a_hundred_texts():
    assert len(texts()) == len(set(texts())) == 100
    assert sum(len(text) > extrapolation.TRAIN_LENGTH for text in texts()) >= 20


@pytest.mark.parametrize("scheme", SCHEMES)
def test_logits_are_those_of_lib(scheme, bare):
    """A hundred texts, at every position, within 1e-4; the tokens are the same too."""
    given = [readable(scheme, text) for text in texts()]
    answers = bare.evaluate(
        """([scheme, texts]) => texts.map(text => {
            const tokens = lm.encode(made[scheme], text);
            return [tokens, Array.from(lm.forward(made[scheme], tokens))];
        })""",
        [scheme, given],
    )
    model, vocabulary = lib_model(scheme), extrapolation.corpus().vocabulary
    furthest = 0.0
    for text, (tokens, logits) in zip(given, answers, strict=True):
        assert tokens == vocabulary.encode(text)
        with torch.no_grad():
            wanted = model(torch.tensor([tokens]))[0].flatten()
        furthest = max(furthest, float((torch.tensor(logits) - wanted).abs().max()))
    print(f"{scheme}: {furthest:.2e}")
    assert 0 < furthest <= TOLERANCE


@pytest.mark.parametrize("scheme", SCHEMES)
def test_with_the_cache_the_logits_are_the_same(scheme, bare):
    """In pieces of 1, 2, 3, ... tokens, and only the last of each piece."""
    far = bare.evaluate(
        """([scheme, text]) => {
            const model = made[scheme], tokens = lm.encode(model, text);
            const whole = lm.forward(model, tokens), n = model.symbols.length;
            const cache = lm.newCache(model, tokens.length);
            let far = 0, pieces = 0;
            for (let at = 0, size = 1; at < tokens.length; at += size++) {
                const piece = tokens.slice(at, at + size);
                const last = lm.forward(model, piece, { cache, lastOnly: true });
                pieces++;
                last.forEach((logit, i) => {
                    far = Math.max(far, Math.abs(logit - whole[(cache.length - 1) * n + i]));
                });
            }
            return [far, pieces, cache.length, lm.cacheBytes(model, cache.length)];
        }""",
        [scheme, readable(scheme, texts()[-1] + texts()[-2])],
    )
    n = len(readable(scheme, texts()[-1] + texts()[-2]))
    sizes = (2, extrapolation.N_LAYERS, extrapolation.D_MODEL, 4, n)
    assert far[0] <= TOLERANCE
    assert far[1] > 5
    assert far[2:] == [n, math.prod(sizes)]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_attention_weights_are_those_of_lib(scheme, bare):
    text = readable(scheme, texts()[-1])
    seen = bare.evaluate(
        """([scheme, text]) => {
            const model = made[scheme], seen = [];
            lm.forward(model, lm.encode(model, text), {
                watch: (layer, m, head, weights) =>
                    seen.push([layer, m, head, Array.from(weights.subarray(0, m + 1))]),
            });
            return seen;
        }""",
        [scheme, text],
    )
    tokens = extrapolation.corpus().vocabulary.encode(text)
    with torch.no_grad():
        _, weights = lib_model(scheme)(torch.tensor([tokens]), return_weights=True)
    assert len(seen) == extrapolation.N_LAYERS * extrapolation.N_HEADS * len(text)
    for layer, m, head, row in seen:
        wanted = weights.self_attention[layer][0, head, m, : m + 1]
        assert float((torch.tensor(row) - wanted).abs().max()) <= TOLERANCE


def test_a_position_that_the_learned_table_lacks_is_refused(bare):
    says = bare.evaluate(
        """() => { try { lm.forward(made.learned, Array(65).fill(3)); } catch (e) { return e.message; } }"""
    )
    assert says == "position 64 is out of reach: learned has 64 positions"


def test_operations_are_counted_as_they_are_done(bare):
    """Those of eq-cost-full and eq-cost-cached, without the half of the scores that is hidden."""
    d, layers, vocab = extrapolation.D_MODEL, extrapolation.N_LAYERS, 104
    n_weights = layers * (4 * d * d + 2 * d * 4 * d)
    full, step = bare.evaluate(
        """t => {
            const model = made.rope, tokens = Array(t).fill(5), cache = lm.newCache(model, t);
            const counted = f => { const n = lm.count.operations; f(); return lm.count.operations - n; };
            lm.forward(model, tokens.slice(1), { cache });
            return [
                counted(() => lm.forward(model, tokens, { lastOnly: true })),
                counted(() => lm.forward(model, [5], { cache, lastOnly: true })),
            ];
        }""",
        t := 37,
    )
    output = 2 * d * vocab
    assert full == 2 * n_weights * t + 4 * layers * d * t * (t + 1) // 2 + output
    assert step == 2 * n_weights + 4 * layers * d * t + output


def test_halves_are_read_exactly(bare):
    read = bare.evaluate("() => Array.from({length: 65536}, (_, i) => String(lm.fromHalf(i)))")
    wanted = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(float)
    np.testing.assert_array_equal(np.array(read, dtype=float), wanted)


def test_the_models_know_the_symbols_that_they_were_trained_on():
    assert ("<unknown>", *extension().SYMBOLS) == extrapolation.corpus().vocabulary.symbols


def test_a_distribution_is_that_of_lib(bare):
    from lib.sampling import top_k

    logits = torch.randn(104, generator=torch.Generator().manual_seed(3))
    for temperature, k in [(1.0, 104), (0.5, 7), (2.0, 1), (1.3, 20)]:
        answer = bare.evaluate(
            "([logits, temperature, topK]) =>"
            " Array.from(lm.distribution(Float32Array.from(logits), { temperature, topK }))",
            [logits.tolist(), temperature, k],
        )
        wanted = torch.softmax(top_k(logits / temperature, k), dim=-1)
        assert answer == pytest.approx(wanted.tolist(), abs=1e-6)
    greedy = bare.evaluate(
        "logits => Array.from(lm.distribution(Float32Array.from(logits), { temperature: 0 }))",
        logits.tolist(),
    )
    assert greedy == torch.nn.functional.one_hot(logits.argmax(), 104).tolist()
