"""Recorded runs: reading them, bringing them up to date, and whether they are."""

import json
import re
import sys
import types

import pytest
import torch

from benchmarks import compression, record
from lib import extrapolation, results
from tests.halves import some_now
from tools import imports

NAMES = sorted(record.EXPERIMENTS)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    return tmp_path


@pytest.fixture
def toy(folder, monkeypatch):
    """An experiment of two arms whose result is made by `toy.rule`."""
    module = types.ModuleType("toy_experiment")
    module.rule = lambda arm, n_steps: {"loss": arm["seed"] + 1.0 / (n_steps or 100)}
    module.arms = lambda: [{"seed": 0}, {"seed": 1}]
    module.ran = []

    def run(arm, n_steps=None):
        module.ran.append((arm["seed"], n_steps))
        return module.rule(arm, n_steps)

    module.run = run
    monkeypatch.setitem(sys.modules, "toy_experiment", module)
    monkeypatch.setitem(record.EXPERIMENTS, "toy", "toy_experiment")
    monkeypatch.setattr(record, "code_hash", lambda name: module.code)
    module.code = "first"

    class Here:  # in place of processes
        def __init__(self, *args, **options):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *args):
            pass

        map = staticmethod(map)

        def submit(self, call, *args):
            future = record.concurrent.futures.Future()
            future.set_result(call(*args))
            return future

    monkeypatch.setattr(record.concurrent.futures, "ProcessPoolExecutor", Here)
    return module


def test_a_record_is_read_by_its_name(folder):
    (folder / "kv_cache_a.json").write_text(json.dumps(decoding_record()))
    (folder / "other.json").write_text("{}")
    assert results.load("kv_cache_a") == decoding_record()
    assert results.names("kv_cache*") == ["kv_cache_a"]
    with pytest.raises(ValueError, match=r"no record 'gone' .* \['kv_cache_a', 'other'\]"):
        results.load("gone")


ARM = {"arm": {"seed": 0}, "result": {"loss": 1.0}, "opening": {"loss": 2.0}, "seconds": 3}
ARM |= dict.fromkeys(("processor", "python", "torch", "date", "commit"), "some")
GRID = {"experiment": "lib.warmup", "code": "0123", "confirmed": "2001-02-03", "arms": [ARM]}


@pytest.mark.parametrize(
    ("name", "record", "message"),
    [
        ("warmup", {**GRID, "arms": None}, "warmup.json: arms must be list, got None"),
        ("warmup", {**GRID, "code": 7}, "warmup.json: code must be str, got 7"),
        ("warmup", {**GRID, "arms": [ARM, {}]}, "warmup.json: arms[1].arm is missing"),
        ("warmup", {**GRID, "arms": [ARM | {"seconds": True}]}, "arms[0].seconds must be float"),
        ("warmup", [], "warmup.json: all of it must be GridRecord, got []"),
        ("pretrained", {"made": {"date": 1}}, "pretrained.json: results is missing"),
        ("pretrained", {"made": {"date": 1}, "results": {}}, "made.date must be str, got 1"),
        (
            "heads",
            {"made": {}, "texts": [{"tokens": []}]},
            "heads.json: texts[0].weights is missing",
        ),
    ],
)
def test_a_record_that_does_not_fit_its_schema_is_refused(folder, name, record, message):
    (folder / f"{name}.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match=re.escape(message)):
        results.load(name)


def test_every_arm_is_trained_once_and_written(toy):
    record.update("toy")
    assert record.problems("toy") == []
    arms = results.load("toy")["arms"]
    assert [arm["arm"]["seed"] for arm in arms] == [0, 1]
    assert arms[1]["result"] == {"loss": 1.01}
    assert arms[1]["opening"] == {"loss": 1.0 + 1.0 / record.OPENING}
    toy.ran.clear()
    record.update("toy")
    assert toy.ran == []


def test_changed_code_with_the_same_opening_keeps_the_result(toy):
    record.update("toy")
    toy.code = "second"
    assert record.problems("toy") == ["the code has changed since: run `make results`"]
    toy.ran.clear()
    record.update("toy")
    assert toy.ran == [(0, record.OPENING), (1, record.OPENING)]
    assert record.problems("toy") == []


def test_changed_code_with_another_opening_trains_anew(toy, capsys):
    record.update("toy")
    toy.code = "second"
    toy.rule = lambda arm, n_steps: {
        "loss": 1.1 if arm["seed"] == 0 else 1.0 + 1.0 / (n_steps or 100)
    }
    toy.ran.clear()
    record.update("toy")
    assert toy.ran == [(0, 10), (1, 10), (0, 10), (0, None)]
    assert results.load("toy")["arms"][0]["result"] == {"loss": 1.1}


def test_a_quantity_measured_since_then_comes_with_the_next_training(toy):
    record.update("toy")
    toy.code = "second"
    rule = toy.rule
    toy.rule = lambda arm, n_steps: rule(arm, n_steps) | {"entropy": 0.5}
    toy.ran.clear()
    record.update("toy")
    assert toy.ran == [(0, record.OPENING), (1, record.OPENING)]
    assert [entry["result"] for entry in results.load("toy")["arms"]] == [
        {"loss": 0.01},
        {"loss": 1.01},
    ]
    toy.ran.clear()
    record.update("toy", force=True, only='"seed": 1')
    assert toy.ran == [(1, record.OPENING), (1, None)]
    assert [entry["result"] for entry in results.load("toy")["arms"]] == [
        {"loss": 0.01},
        {"loss": 1.01, "entropy": 0.5},
    ]
    toy.rule = lambda arm, n_steps: {"entropy": 0.5}
    (_, entry) = results.load("toy")["arms"]
    (difference,) = record.replay("toy", entry)  # what is no longer measured is a difference
    assert "loss" in difference


def test_the_grid_decides_which_arms_there_are(toy):
    record.update("toy")
    toy.arms = lambda: [{"seed": 1}, {"seed": 2}]
    assert record.problems("toy") == [
        "no result for {'seed': 2}: run `make results`",
        "left the grid: {'seed': 0}: run `make results`",
    ]
    record.update("toy")
    assert [entry["arm"]["seed"] for entry in results.load("toy")["arms"]] == [1, 2]


def test_arms_on_another_text_are_neither_replayed_nor_mixed(toy, monkeypatch):
    text = ["old"]
    toy.rule = lambda arm, n_steps: {"corpus": text[0]}
    toy.corpus_hash = lambda: text[0]
    record.update("toy")
    (entry, _) = results.load("toy")["arms"]
    assert record.other_text("toy", entry) == ""
    text[0] = "new"
    reason = "toy was trained on the help topics of Python .* are another text"
    assert re.match(reason, record.other_text("toy", entry))
    record.update("toy")  # there is nothing to do
    toy.arms = lambda: [{"seed": 0}, {"seed": 1}, {"seed": 2}]
    with pytest.raises(ValueError, match=reason):
        record.update("toy")
    toy.arms, toy.code = lambda: [{"seed": 0}, {"seed": 1}], "second"
    with pytest.raises(ValueError, match=reason):
        record.update("toy")
    record.update("toy", force=True)
    assert {entry["result"]["corpus"] for entry in results.load("toy")["arms"]} == {"new"}


# --- saved weights


@pytest.fixture
def with_weights(toy):
    """The toy experiment with a model, whose one weight is its loss."""

    def fit(arm, n_steps=None):
        model = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.constant_(model.weight, arm["seed"] + 0.1)
        return model, toy.run(arm, n_steps)

    toy.rule = lambda arm, n_steps: {"loss": [arm["seed"] + (0.1 if n_steps is None else 1), None]}
    toy.fit, toy.block_losses = fit, lambda model: [model.weight.item(), None]
    return toy


def test_arms_of_one_seed_save_their_weights_in_float16(with_weights, folder):
    record.update("toy")
    first, second = results.load("toy")["arms"]
    half = torch.tensor(0.1).half().item()
    assert first["result"]["loss"] == [0.1, None]
    assert "weights" not in second
    weights = results.load_weights("toy", seed=0)
    assert weights["weight"].dtype == "float16"
    assert weights["weight"].tolist() == [[half]]


def test_missing_weights_are_trained_and_results_stay(with_weights, folder):
    fit = with_weights.__dict__.pop("fit")
    record.update("toy")
    before = results.load("toy")["arms"]
    with_weights.fit = fit
    with_weights.ran.clear()
    record.add_weights("toy")
    assert with_weights.ran == [(0, None)]
    after = results.load("toy")["arms"]
    assert after[0].pop("weights")
    assert after == before
    with_weights.code = "second"
    with pytest.raises(ValueError, match="the code has changed since: run `make results`"):
        record.add_weights("toy")


def test_weights_of_another_training_are_not_recorded(with_weights):
    fit = with_weights.__dict__.pop("fit")
    record.update("toy")
    with_weights.fit = lambda arm, n_steps=None: fit({"seed": arm["seed"] + 0.02})
    with pytest.raises(ValueError, match=r"loss\[0\]: 0\.1 in the record, 0\.1\d+ now"):
        record.add_weights("toy")
    with pytest.raises(ValueError, match=r"0 arms with {'seed': 0} have saved weights"):
        results.load_weights("toy", seed=0)


def test_a_file_of_weights_must_be_the_recorded_one(with_weights, folder):
    record.update("toy")
    (path,) = (folder / "weights").iterdir()
    path.write_bytes(path.read_bytes().replace(b"weight", b"height"))
    with pytest.raises(ValueError, match=r"npz is not the file of toy\.json"):
        results.load_weights("toy", seed=0)
    path.unlink()
    with pytest.raises(ValueError, match=r"npz is missing, the file of toy\.json"):
        results.load_weights("toy", seed=0)


def test_what_is_rounded_may_differ_more():
    old = {"loss": {"4 bits": 2.0, "full": 2.0}}
    new = {"loss": {"4 bits": 2.04, "full": 2.04}}
    (difference,) = record.differences(old, new, rounded=["4 bits"])
    assert "full" in difference
    assert len(list(record.differences(old, new))) == 2
    assert list(record.differences(old, {"loss": {"4 bits": 2.1, "full": 2.0}}, rounded=["4 bits"]))


def test_differences_name_the_place_and_both_values():
    old = {"a": [1.0, 2.0, float("nan")], "b": "x"}
    assert list(record.differences(old, {"a": [1.0005, 2.0, float("nan")], "b": "x"})) == []
    differences = list(record.differences(old, {"a": [1.0, 2.1, 0.0], "b": "y"}))
    assert differences == [
        "opening.a[1]: 2.0 in the record, 2.1 now",
        "opening.a[2]: nan in the record, 0.0 now",
        "opening.b: 'x' in the record, 'y' now",
    ]
    assert list(record.differences([1.0], [1.0, 2.0]))


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ('"""Other."""\n\n\ndef f(x):\n    return x + 1\n', True),
        ('def f(x):\n    """Two,\n    changed."""\n    # why\n    return x + 1\n', True),
        ("def f(x):\n    return x + 2\n", False),
        ("def f(y):\n    return x + 1\n", False),
    ],
)
def test_the_hash_sees_what_code_does_and_not_what_it_says(tmp_path, text, same):
    path = tmp_path / "part.py"
    path.write_text('"""One."""\n\ndef f(x):\n    """Two."""\n    return x + 1\n')
    first = imports.behaviour([path])
    path.write_text(text)
    assert (first == imports.behaviour([path])) is same


# --- records of decoding


def decoding_record(**changes) -> dict:
    """A made-up record of decoding, as chapter 10 reads it."""
    run = {
        "model": {
            "n_layers": 3,
            "d_model": 20,
            "n_heads": 4,
            "n_kv_heads": 2,
            "head_dim": 5,
            "vocab_size": 17,
            "n_weights": 9_000,
        },
        "batch_size": 2,
        "lengths": [1, 16, 256],
        "uncached": [[1.0e-3, 1.1e-3, 1.2e-3], [1.5e-3, 1.4e-3, 1.6e-3], [2.0e-2, 2.1e-2, 1.9e-2]],
        "cached": [[1.0e-3, 1.0e-3, 1.1e-3], [1.0e-3, 1.0e-3, 1.1e-3], [1.2e-3, 1.1e-3, 1.1e-3]],
    }
    record = {
        "device": "Made-up 9000",
        "device_type": "cuda",
        "versions": {"python": "3.99", "torch": "9.9", "cuda": "99.0"},
        "date": "2001-02-03",
        "commit": "abcdef0",
        "dtype": "bfloat16",
        "bandwidth": 2.0e12,
        "throughput": 6.0e14,
        "runs": [{**run, **changes.pop("run", {})}],
    }
    return {**record, **changes}


def test_a_whole_record_of_decoding_is_accepted():
    record = decoding_record()
    assert results.check_decoding(record) is record
    assert set(record) == results.DecodingRecord.__required_keys__
    assert set(record["runs"][0]["model"]) == results.DecodingModel.__required_keys__


@pytest.mark.parametrize("name", sorted(results.DecodingRecord.__required_keys__))
def test_a_record_of_decoding_lacks_nothing(name):
    record = decoding_record()
    del record[name]
    with pytest.raises(ValueError, match=f"the record: {name} is missing"):
        results.check_decoding(record)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"versions": {"python": "3"}}, "versions.torch is missing"),
        ({"bandwidth": 0.0}, "bandwidth must be positive, got 0.0"),
        ({"throughput": float("nan")}, "throughput must be positive, got nan"),
        ({"runs": []}, "there are no runs"),
        ({"runs": [{"model": {}}]}, r"runs\[0\].batch_size is missing"),
        ({"run": {"model": {"n_layers": 3}}}, r"runs\[0\].model.d_model is missing"),
        ({"run": {"cached": [[1.0, "1"]]}}, r"runs\[0\].cached\[0\]\[1\] must be float, got '1'"),
        ({"run": {"lengths": [1, 16]}}, "2 lengths need as many lists of times, got 3"),
        ({"run": {"cached": [[1.0], [1.0], [1.0]]}}, "at least 2, .* got 3 and 1"),
    ],
)
def test_a_record_of_decoding_that_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        results.check_decoding(decoding_record(**changes))


# --- the records of this repository


def test_the_records_of_decoding_have_what_the_chapter_reads():
    for name in results.names("kv_cache*"):
        results.load(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_record_belongs_to_the_code_as_it_stands(name):
    assert record.problems(name) == []


def skip_on_another_text(name):
    if reason := record.other_text(name, results.load(name)["arms"][0]):
        pytest.skip(reason)


def needs_language_model(entry):
    return entry["arm"].get("model") == compression.REAL


@pytest.mark.parametrize("name", NAMES)
def test_an_arm_begins_as_it_did(name):
    skip_on_another_text(name)
    arms = [entry for entry in results.load(name)["arms"] if not needs_language_model(entry)]
    entry = min(arms, key=lambda entry: entry["seconds"])
    assert record.replay(name, entry) == []


def saved_weights():
    return [arm for arm in results.load("extrapolation")["arms"] if "weights" in arm]


@pytest.mark.parametrize(
    "entry", some_now(saved_weights(), saved_weights()[:1], lambda entry: entry["arm"]["scheme"])
)
def test_saved_weights_have_the_recorded_losses(entry):
    skip_on_another_text("extrapolation")
    arm = entry["arm"]
    weights = results.load_weights("extrapolation", **arm)
    model = extrapolation.build(arm["scheme"], arm["seed"])
    model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    losses = extrapolation.block_losses(model.eval())
    assert list(record.differences(entry["result"]["loss"], losses)) == []


def test_every_scheme_of_the_length_grid_has_saved_weights():
    assert [entry["arm"]["scheme"] for entry in saved_weights()] == list(extrapolation.SCHEMES)
    files = {path.name for path in (results.FOLDER / "weights").iterdir()}
    assert files == {entry["weights"]["file"] for entry in saved_weights()}


# The two that take minutes are first and last, so that two test processes take one each.
@pytest.mark.long
@pytest.mark.parametrize("name", [NAMES[0], *NAMES[2:], NAMES[1]])
def test_arms_begin_as_they_did(name, request):
    """Every third, with one of its seeds; the code is that of the record anyway, by its hash."""
    skip_on_another_text(name)
    arms = results.load(name)["arms"]
    arms = list({json.dumps(entry["arm"] | {"seed": 0}): entry for entry in arms}.values())[::3]
    if any(map(needs_language_model, arms)):
        request.getfixturevalue("smollm_file")
    differences = {json.dumps(entry["arm"]): record.replay(name, entry) for entry in arms}
    assert not any(differences.values()), differences
