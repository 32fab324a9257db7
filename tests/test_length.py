"""The measurement of how far the language model reads, on a small model."""

import pytest
import torch
from torch.nn import functional as F

from benchmarks import length
from lib.smollm import load
from tests.test_smollm import VOCABULARY, small_file


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.setattr(length, "LENGTH", 12)
    monkeypatch.setattr(length, "WINDOW", 4)
    monkeypatch.setattr(length, "PIECE", 5)
    return load(small_file(tmp_path / "small.gguf"))


@torch.no_grad()
def test_pieces_give_the_surprise_of_one_pass(small):
    model, _ = small
    tokens = torch.randint(len(VOCABULARY), (13,), generator=torch.Generator().manual_seed(2))
    expected = F.cross_entropy(model(tokens[None, :-1])[0], tokens[1:], reduction="none")
    torch.testing.assert_close(length.surprise(model, tokens), expected, rtol=0, atol=1e-4)


def test_a_run_averages_windows_in_one_way_and_leaves_the_model_as_it_was(small):
    model, tokenizer = small
    text = "a b c d e f g h i a b c d"
    tokens = torch.tensor(tokenizer.encode(text)[:13])
    whole = length.surprise(model, tokens)
    windows = {name: length.run(model, tokenizer, text, name) for name in length.SCALINGS}
    assert windows["RoPE as it is"] == pytest.approx(whole.view(3, 4).mean(dim=1).tolist())
    assert model.position.scaling is None
    changed = [torch.tensor(windows[name]) for name in windows if name != "RoPE as it is"]
    for each in changed:
        assert (each - torch.tensor(windows["RoPE as it is"])).abs().max() > 1e-3


def test_a_text_that_is_too_short_is_refused(small):
    with pytest.raises(ValueError, match="the text has 5 tokens, 13 are needed"):
        length.run(*small, "a b c", "YaRN")


def test_the_texts_are_long_enough(language_model):
    _, tokenizer = language_model
    for name, text in length.texts().items():
        assert len(tokenizer.encode(text)) > length.LENGTH, name


def test_the_record_has_every_text_in_every_way():
    surprise = length.read()
    assert list(surprise) == list(length.texts())
    for by_scaling in surprise.values():
        assert list(by_scaling) == list(length.SCALINGS)
        assert {len(windows) for windows in by_scaling.values()} == {length.LENGTH // length.WINDOW}
