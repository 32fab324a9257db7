"""Trained weights in the course's encoder: small files by `transformers`, and the real one.

What needs the real weights fails, and is not left out, where they have to be: under ``CI=true``.
"""

import json
import math
import os

import pytest
import tokenizers
import torch
import transformers
from safetensors.torch import load_file, save_file

from benchmarks import pretrained as measuring
from lib import pretrained, results
from lib.pretrained import (
    Measured,
    Tokenizer,
    build_encoder,
    find,
    load_encoder,
    mean_pool,
    sentence_vectors,
    tensor_names,
)

F64 = torch.float64
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "##s", "mat", "dog", "on"]
SIZES = {
    "vocab_size": len(WORDS),
    "hidden_size": 20,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 36,
    "max_position_embeddings": 17,
    "type_vocab_size": 3,
    "layer_norm_eps": 1e-3,
}


@pytest.fixture(scope="module")
def reference():
    """BERT of `transformers` with random weights, in float64."""
    config = transformers.BertConfig(**SIZES, attn_implementation="eager")
    model = transformers.BertModel(config).to(F64).eval()
    generator = torch.Generator().manual_seed(5)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator, dtype=F64)
        parameter.data = 0.3 * noise + float("LayerNorm.weight" in name)
    return model


@pytest.fixture
def folder(reference, tmp_path):
    """The same as files: configuration, weights, and a tokenizer of eleven tokens."""
    reference.save_pretrained(tmp_path)
    model = tokenizers.models.WordPiece({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.enable_truncation(5)  # as the real file has it: the loader must undo both
    tokenizer.enable_padding(length=12)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def config_of(folder):
    return json.loads((folder / "config.json").read_text())


# --- small files


@torch.no_grad()
def test_small_bert_is_the_same_function(reference, folder):
    encoder, _ = load_encoder(folder)
    assert not encoder.training
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(len(WORDS), (3, 9), generator=generator)
    types = torch.randint(3, (3, 9), generator=generator)
    mask = torch.arange(9) < torch.tensor([[9], [6], [1]])
    expected = reference(
        tokens, attention_mask=mask.long(), token_type_ids=types, output_attentions=True
    )
    actual, weights = encoder(tokens, mask=mask, token_types=types, return_weights=True)
    close = {"rtol": 0, "atol": 1e-10}
    torch.testing.assert_close(actual[mask], expected.last_hidden_state[mask], **close)
    for ours, theirs in zip(weights.self_attention, expected.attentions, strict=True):
        real = mask[:, None, :, None].expand_as(ours)
        torch.testing.assert_close(ours[real], theirs[real], **close)


def test_loading_draws_nothing_from_the_common_generator(folder):
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    load_encoder(folder)
    assert torch.equal(torch.rand(2), expected)


def test_the_encoder_holds_a_copy(folder):
    tensors = load_file(folder / "model.safetensors")
    encoder = build_encoder(config_of(folder), tensors)
    tensors["embeddings.word_embeddings.weight"].zero_()
    assert encoder.embedding.weight.abs().min() > 0


def test_every_parameter_has_a_tensor_and_every_tensor_one_parameter(folder):
    encoder, _ = load_encoder(folder)
    names = tensor_names(3)
    assert set(names) == {name for name, _ in encoder.named_parameters()}
    assert len(set(names.values())) == len(names)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_act": "gelu_new"}, "hidden_act='gelu_new', only 'gelu' is supported"),
        ({"model_type": "roberta"}, "model_type='roberta', only 'bert' is supported"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type='relative_key'"),
        ({"is_decoder": True}, "is_decoder=True, only False"),
        ({"hidden_size": None}, "the configuration lacks hidden_size"),
        ({"num_attention_heads": 3}, "d_model=20 does not divide into n_heads=3"),
        ({"intermediate_size": 35}, r"intermediate.dense.weight has shape \(36, 20\), the .*35"),
        (
            {"num_hidden_layers": 4},
            r"the weights lack encoder.layer.3.attention.output.LayerNorm.bias, ",
        ),
        (
            {"num_hidden_layers": 2},
            r"has no place for: encoder.layer.2.attention.output.LayerNorm.bias, ",
        ),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(folder, change, message):
    config = {k: v for k, v in {**config_of(folder), **change}.items() if v is not None}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=message):
        load_encoder(folder)


def test_missing_and_extra_tensors_are_named(folder):
    config, file = config_of(folder), folder / "model.safetensors"
    tensors = load_file(file)
    bias = tensors.pop("encoder.layer.1.attention.self.key.bias")
    with pytest.raises(ValueError, match=r"lack encoder\.layer\.1\.attention\.self\.key\.bias$"):
        build_encoder(config, tensors)
    tensors["encoder.layer.1.attention.self.key.bias"] = bias
    with pytest.raises(ValueError, match=r"no place for: final\.weight$"):
        build_encoder(config, {**tensors, "final.weight": bias})
    half = {**tensors, "encoder.layer.1.attention.self.key.bias": bias.float()}
    with pytest.raises(ValueError, match=r"key.bias is torch.float32, but .* torch.float64"):
        build_encoder(config, half)


def test_missing_files_are_named(folder):
    (folder / "tokenizer.json").unlink()
    (folder / "config.json").unlink()
    with pytest.raises(ValueError, match=r"has no config.json, tokenizer.json"):
        load_encoder(folder)


def test_a_tokenizer_of_another_model_is_refused(folder):
    tensors = load_file(folder / "model.safetensors")
    table = tensors["embeddings.word_embeddings.weight"]
    tensors["embeddings.word_embeddings.weight"] = table[:-1].clone()
    save_file(tensors, folder / "model.safetensors")
    config = {**config_of(folder), "vocab_size": len(WORDS) - 1}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="the tokenizer has 11 tokens, the model 10"):
        load_encoder(folder)


# --- texts to tokens


def test_tokens_and_mask_by_hand(folder):
    tokenizer = Tokenizer(folder / "tokenizer.json")
    tokens, mask = tokenizer(["The cats sat on the mat", "zebra"])
    assert tokens.tolist() == [[2, 4, 5, 7, 6, 10, 4, 8, 3], [2, 1, 3, 0, 0, 0, 0, 0, 0]]
    assert mask.tolist() == [[True] * 9, [True] * 3 + [False] * 6]
    assert tokenizer.pieces("Cats") == ["[CLS]", "cat", "##s", "[SEP]"]


@pytest.mark.parametrize("texts", ["a text", []])
def test_texts_must_be_a_list(folder, texts):
    with pytest.raises(ValueError, match="texts must be a list with at least one text, got"):
        Tokenizer(folder / "tokenizer.json")(texts)


def test_a_tokenizer_without_padding_is_refused(tmp_path):
    model = tokenizers.models.WordPiece({"a": 0, "[UNK]": 1}, unk_token="[UNK]")
    tokenizers.Tokenizer(model).save(str(tmp_path / "t.json"))
    with pytest.raises(ValueError, match=r"t.json has no token \[PAD\]"):
        Tokenizer(tmp_path / "t.json")


def test_a_text_that_is_too_long_is_refused(folder):
    encoder, tokenizer = load_encoder(folder)
    assert sentence_vectors(encoder, tokenizer, ["cat " * 15]).shape == (1, 20)
    with pytest.raises(ValueError, match="position 17 is out of reach: this scheme has max_len=17"):
        sentence_vectors(encoder, tokenizer, ["cat " * 16])


# --- one vector for a text


def test_mean_pool_by_hand():
    x = torch.tensor([[[1.0, 2.0], [3.0, 6.0], [7.0, math.nan]], [[5.0, 5.0], [0.0, 1.0], [4, 3]]])
    mask = torch.tensor([[True, True, False], [True, True, True]])
    assert mean_pool(x, mask).tolist() == [[2.0, 4.0], [3.0, 3.0]]


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (torch.ones(2, 3), "mask must be torch.bool"),
        (torch.ones(2, 4, dtype=torch.bool), r"mask has shape \(2, 4\) but x \(2, 3, 5\)"),
        (torch.tensor([[True] * 3, [False] * 3]), "text 1 has no real token"),
    ],
)
def test_mean_pool_refuses_a_mask_that_does_not_fit(mask, message):
    with pytest.raises(ValueError, match=message):
        mean_pool(torch.ones(2, 3, 5), mask)


def test_sentence_vectors_have_length_1_whatever_stands_beside_them(folder):
    encoder, tokenizer = load_encoder(folder)
    texts = ["the cat", "the dogs sat on the mat", "mat"]
    together = sentence_vectors(encoder, tokenizer, texts)
    torch.testing.assert_close(together.norm(dim=-1), torch.ones(3, dtype=F64))
    alone = torch.cat([sentence_vectors(encoder, tokenizer, [text]) for text in texts])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-12)


# --- measured or from the record


@pytest.fixture
def record(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    made = {"date": "2026-01-02", "torch": "2.13.0", "transformers": "5.0"}
    record = {"numbers": {"a": [[1, 2], [3, 4]], "b": 0.5, "c": "words", "d": ["x", "y"]}}
    (tmp_path / "pretrained.json").write_text(json.dumps({"made": made, "results": record}))


def test_measured_and_recorded_results_have_the_same_types(record):
    def numbers():
        return {"a": torch.tensor([[1, 2], [3, 4]]), "b": 0.5, "c": "words", "d": ("x", "y")}

    live, stored = Measured(live=True), Measured(live=False)
    for measured in (live, stored):
        result = measured(numbers)
        assert torch.equal(result["a"], torch.tensor([[1, 2], [3, 4]]))
        assert (result["b"], result["c"]) == (0.5, "words")
        assert result["d"] == ["x", "y"]
    assert live.results["numbers"]["a"] == [[1, 2], [3, 4]]
    assert "the numbers below are measured in this run" in str(live)
    assert "not installed" in str(stored)
    assert "record of 2026-01-02, made with torch 2.13.0 and transformers 5.0." in str(stored)


def test_without_weights_nothing_is_run(record):
    def numbers():
        raise AssertionError("it ran")

    Measured(live=False)(numbers)


def test_what_the_record_lacks_is_named(record):
    def other():
        raise AssertionError("it ran")

    with pytest.raises(ValueError, match=r"no 'other', only \['numbers'\]: `make results`"):
        Measured(live=False)(other)


def test_find_says_none_where_the_package_is_missing(monkeypatch):
    monkeypatch.setattr(pretrained, "PACKAGE", "no_such_package_here")
    assert find() is None


# --- the real weights


@pytest.fixture(scope="module")
def real():
    if find() is None:
        reason = "the trained weights are not installed: they come with the extra `pretrained`"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    return load_encoder(find())


TEXTS = [
    "A cat sleeps on the sofa.",
    "Water boils at a lower temperature on a high mountain.",
    "Ünïcode, 数字 and unfathomablenesses!",
    "word " * 400,
]


@torch.no_grad()
def test_real_weights_match_transformers(real):
    encoder, tokenizer = real
    transformers.utils.logging.disable_progress_bar()
    theirs = transformers.BertModel.from_pretrained(find(), attn_implementation="eager").eval()
    tokens, mask = tokenizer(TEXTS)
    cut = transformers.AutoTokenizer.from_pretrained(find())
    expected_tokens = cut(TEXTS, padding=True, return_tensors="pt")
    assert torch.equal(tokens, expected_tokens["input_ids"])
    assert torch.equal(mask.long(), expected_tokens["attention_mask"])
    expected = theirs(tokens, attention_mask=mask.long()).last_hidden_state
    actual = encoder(tokens, mask=mask)
    torch.testing.assert_close(actual[mask], expected[mask], rtol=0, atol=1e-5)


def test_real_sentence_vectors_match_the_package_that_was_made_for_them(real):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(find()), device="cpu")
    expected = torch.tensor(model.encode(TEXTS[:3]))
    torch.testing.assert_close(sentence_vectors(*real, TEXTS[:3]), expected, rtol=0, atol=1e-5)


def differences(old, new, at=""):
    """Where a record and a new run differ, by more than what rounding explains."""
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        return [line for key in old for line in differences(old[key], new[key], f"{at}.{key}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [line for i, pair in pairs for line in differences(*pair, f"{at}[{i}]")]
    if isinstance(old, float | int) and isinstance(new, float | int):
        same = math.isclose(old, new, rel_tol=1e-3, abs_tol=2e-3)
    else:
        same = old == new
    return [] if same else [f"{at}: {old!r} in the record, {new!r} now"]


@pytest.mark.parametrize(
    ("name", "installed"),
    [
        ("pretrained", "real"),
        pytest.param("language_model", "smollm_file", marks=pytest.mark.long),
    ],
)
def test_the_record_is_what_the_chapter_measures_now(name, installed, request, capsys):
    request.getfixturevalue(installed)
    record = results.load(name)
    assert record["made"]["sha256"] == measuring.weights_hash(name)
    assert differences(record["results"], measuring.measure(name)) == []


def test_a_record_that_differs_is_noticed():
    old = {"a": [0.5, 0.25], "b": "x", "c": 3}
    assert differences(old, {"a": [0.5004, 0.25], "b": "x", "c": 3}) == []
    assert differences(old, {"a": [0.51, 0.25], "b": "y", "c": 4}) == [
        ".a[0]: 0.5 in the record, 0.51 now",
        ".b: 'x' in the record, 'y' now",
        ".c: 3 in the record, 4 now",
    ]
    assert differences([0.5], [0.5, 0.5]) != []


def test_rounding_keeps_a_small_number_and_shortens_lists():
    value = {"eps": 1e-12, "cosines": [[0.123456]], "name": "x", "n": 512}
    expected = {"eps": 1e-12, "cosines": [[0.1235]], "name": "x", "n": 512}
    assert measuring.rounded(value) == expected


def test_nothing_is_measured_without_the_weights(monkeypatch):
    monkeypatch.setattr(pretrained, "PACKAGE", "no_such_package_here")
    with pytest.raises(ValueError, match="not installed: it comes with the extra `pretrained`"):
        measuring.measure("pretrained")


@pytest.mark.parametrize("name", measuring.PAGES)
def test_the_record_has_what_the_page_asks_for(name):
    """Without the weights, the chapter's cells find everything in the record."""
    recorded = results.load(name)["results"]
    source = measuring.PAGES[name].chapter.read_text(encoding="utf-8")
    names = {
        line.split("(")[0].removeprefix("def ")
        for cell in json.loads(source)["cells"]
        if cell["cell_type"] == "code" and "@measured" in "".join(cell["source"])
        for block in "".join(cell["source"]).split("@measured\n")[1:]
        for line in block.splitlines()[:1]
    }
    assert names == set(recorded)
