"""Capstone 2 with the exercises' solutions in `work/`, and with mistakes that it must name."""

import json
import re
from functools import cache

import pytest
import torch

from lib import generation, smollm
from tests.course.claims import BOOK, read
from tools import answers

CELLS = [
    cell for cell in read(BOOK / "capstone-2.ipynb").notebook.cells if cell.cell_type == "code"
]
PIECES = {
    "softmax": "01-attention",
    "masked_attention": "01-attention",
    "causal_mask": "01-attention",
    "split_heads": "02-multi-head",
    "merge_heads": "02-multi-head",
    "rope_frequencies": "05-rope",
    "rope_tables": "05-rope",
    "apply_rope": "05-rope",
    "rms_norm": "08-norms",
    "KVCache": "10-kv-cache",
    "generate": "10-kv-cache",
}
SLUGS = sorted(set(PIECES.values()))


@cache
def cell_of(name):
    """The id of the cell in which the exercise has this function."""
    cells = answers.notebook(PIECES[name]).cells
    pattern = rf"^(def|class) {name}\b"
    (source,) = (
        cell.id
        for cell in cells
        if cell.metadata.get("nbgrader", {}).get("solution")
        and re.search(pattern, cell.source, re.MULTILINE)
    )
    return source


@cache
def solutions(slug):
    """The sources of the exercise's solutions, by cell."""
    cells = answers.notebook(slug).cells
    return {c.id: c.source for c in cells if c.metadata.get("nbgrader", {}).get("solution")}


def solved(slug, changes=()):
    """The learner's notebook, as a file has it, with the solutions, some of them replaced."""
    answer = answers.Answer("learner", "Solved.", {**solutions(slug), **dict(changes)})
    return json.dumps(answers.put_in(answer, slug, "exercises"))


everything_solved = cache(solved)


def save(work, slug, text):
    """Write the learner's notebook of an exercise."""
    (work / slug / f"{slug}.ipynb").write_text(text)


@pytest.fixture
def work(tmp_path):
    """The learner's folder with everything solved."""
    for slug in SLUGS:
        (tmp_path / slug).mkdir()
        save(tmp_path, slug, everything_solved(slug))
    (tmp_path / "chapters").mkdir()
    return tmp_path


def put(work, name, old, new):
    """Change one place of the learner's function."""
    slug, cell = PIECES[name], cell_of(name)
    source = solutions(slug)[cell]
    assert source.count(old) == 1, f"{old!r} is not once in {name}"
    save(work, slug, solved(slug, {cell: source.replace(old, new)}))


@pytest.fixture
def run(work, monkeypatch, capsys):
    """Run the page beside the learner's folder; return what each cell printed, by its id."""
    monkeypatch.chdir(work / "chapters")

    def run_cells(loaded=None, cell=None, old="", new=""):
        """With the loaded model, or with the small one in its place."""
        monkeypatch.setattr(smollm, "find", lambda: loaded)
        monkeypatch.setattr(smollm, "load", lambda: loaded)
        namespace, printed = {"__name__": "capstone"}, {}
        for each in CELLS:
            source = each.source
            if each.id == cell:
                assert source.count(old) == 1, f"{old!r} is not once in {cell}"
                source = source.replace(old, new)
            capsys.readouterr()
            exec(compile(source, f"capstone-2:{each.id}", "exec"), namespace)
            printed[each.id] = capsys.readouterr().out
        return printed

    return run_cells


def wrong(printed):
    return re.findall(r"^(\w+) +WRONG", printed["alone"], re.MULTILINE)


def test_with_all_pieces_the_small_model_says_the_same(run):
    printed = run()
    assert "`make lab WEIGHTS=1`" in printed["setup"]
    assert len(re.findall(r" yours$", printed["pieces"], re.MULTILINE)) == len(PIECES)
    assert wrong(printed) == []
    assert printed["alone"].count("right") == len(PIECES) + 1
    assert "The same logits" in printed["together"]
    assert "8 tokens" in printed["write"]
    assert "The model of lib writes" not in printed["write"]
    assert "random weights know no language" in printed["write"]
    assert "Yours: 11 of 11 pieces." in printed["write"]


def test_with_all_pieces_the_published_model_writes_paris(run, language_model):
    printed = run(language_model)
    assert "SmolLM2-135M-Instruct was loaded" in printed["setup"]
    assert wrong(printed) == []
    assert "The same logits" in printed["together"]
    assert re.search(r"7\d\.\d%  ' Paris'", printed["write"])
    model, tokenizer = language_model
    prompt = torch.tensor([tokenizer.encode("The capital of France is")])
    expected = tokenizer.decode(generation.generate(model, prompt, 8)[0].tolist())
    assert expected.startswith(" Paris")
    assert f"\nThe capital of France is{expected}" in printed["write"]
    assert "The model of lib writes" not in printed["write"]
    assert "538 MB for weights" in printed["write"]


MISTAKES = [
    ("softmax", "powers.sum(dim, keepdim=True)", "powers.sum()", "scores of layer 0"),
    ("softmax", "scores - largest", "(scores - largest).clamp(min=-9)", "scores of layer 0"),
    ("masked_attention", " / math.sqrt(query.shape[-1])", "", "layer 0"),
    ("masked_attention", ".masked_fill(~mask, -math.inf)", "", "layer 0"),
    ("causal_mask", "<= query_index", "< query_index", "differs in"),
    ("split_heads", "(n_heads, -1)).transpose(-3, -2)", "(-1, n_heads)).movedim(-1, -3)", "0, q"),
    ("merge_heads", ".transpose(-3, -2).flatten(-2)", ".flatten(-2)", "shape"),
    ("rope_frequencies", "-2 * pair", "-pair", "differs by up to"),
    ("rope_tables", "angles.cos().to(dtype), angles.sin()", "angles.sin().to(dtype), angles.cos()",
     "result 1"),
    ("rope_tables", "return angles.cos().to(dtype), angles.sin().to(dtype)",
     "memory = globals().setdefault('memory', {})\n"
     "    return memory.setdefault(angles.shape, (angles.cos().to(dtype), angles.sin().to(dtype)))",
     "positions 6 to 6: result 1"),
    ("apply_rope", 'layout == "interleaved"', 'layout == "half"', "layer 0, q: differs"),
    ("rms_norm", "mean_square + eps", "mean_square", "blocks.0.self_norm: differs"),
    ("rms_norm", "wide.square()", "(wide - wide.mean(dim=-1, keepdim=True)).square()",
     "blocks.0.self_norm: differs"),
    ("rms_norm", " * gain", "", "blocks.0.self_norm: differs"),
    ("KVCache", "return self.keys[:, :, :end], self.values[:, :, :end]",
     "return self.keys[:, :, start:end], self.values[:, :, start:end]", "tokens so far: result 1"),
    ("KVCache", "start, end = self.length, self.length + k.shape[2]", "start, end = 0, k.shape[2]",
     "tokens so far: result 1"),
    ("generate", "start = done if use_cache else 0", "start = 0", "called with start=0"),
    ("generate", "argmax", "argmin", "the new tokens"),
]  # fmt: skip
HARD = [MISTAKES[place] for place in (2, 5, 10, 11, 12, 14)]


@pytest.mark.parametrize(("name", "old", "new", "words"), MISTAKES)
def test_a_mistake_is_named(run, work, name, old, new, words):
    put(work, name, old, new)
    printed = run()
    assert wrong(printed) == [name]
    assert re.search(rf"^{name} +WRONG .*{re.escape(words)}", printed["alone"], re.MULTILINE)
    assert f"Look at {name} ({PIECES[name]})." in printed["alone"]


@pytest.mark.long
@pytest.mark.parametrize(("name", "old", "new", "words"), HARD)
def test_a_mistake_is_named_in_the_real_model(run, work, language_model, name, old, new, words):
    put(work, name, old, new)
    printed = run(language_model)
    assert wrong(printed) == [name]
    assert words in printed["alone"]
    assert "may not be what the model says" in printed["write"]


def test_key_heads_repeated_in_the_wrong_order_are_named(run):
    right = "x.repeat_interleave(group, dim=1)"
    printed = run(None, "share", right, "x.repeat(1, group, 1, 1)")
    assert wrong(printed) == ["share_heads"]
    assert "Look at share_heads (this page)." in printed["alone"]
    assert "Not the same logits" in printed["together"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise RuntimeError('no idea')", "stops with RuntimeError: no idea, in the line: raise"),
        ("return None", "is None, not a tensor"),
        ("return x[:, :1]", "has shape (1, 1, 48), not (1, 7, 48)"),
        ("return x * float('nan')", "not finite"),
        ("return x.double()", "dtype"),
        ("x += 1\n    return x", "changes one of its arguments in place"),
        ("return undefined", "NameError"),
        ("return (", "is not Python"),
    ],
)
def test_a_piece_that_breaks_is_named_and_the_page_goes_on(run, work, body, words):
    changed = {cell_of("rms_norm"): f"def rms_norm(x, gain, eps=1e-6):\n    {body}\n"}
    save(work, "08-norms", solved("08-norms", changed))
    printed = run()
    assert wrong(printed) == ["rms_norm"]
    assert words in printed["alone"]
    assert "Not the same logits" in printed["together"]
    assert "write" in printed


def test_a_pair_that_is_missing_is_named(run, work):
    put(work, "masked_attention", "return weights @ value, weights", "return weights @ value")
    printed = run()
    assert wrong(printed) == ["masked_attention"]
    assert "its result cannot be used" in printed["alone"]
    assert "stopped by" in printed["together"]
    assert "The model cannot write, stopped by ValueError" in printed["write"]


def test_a_mistake_that_shows_after_the_prompt_is_seen_in_the_text(run, work):
    right = "return weights @ value, weights"
    put(work, "masked_attention", right, f"value = value * (key.shape[-2] < 9)\n    {right}")
    printed = run()
    assert wrong(printed) == []
    assert "The same logits" in printed["together"]
    assert "The model of lib writes:" in printed["write"]
    assert "right at the prompt, but not after it" in printed["write"]


def test_a_loop_that_changes_the_prompt_is_named(run, work):
    put(work, "generate", "tokens, done = prompt, 0", "tokens, done = prompt, 0\n    prompt[0] = 1")
    printed = run()
    assert wrong(printed) == ["generate"]
    assert "changes one of its arguments in place" in printed["alone"]
    assert "cannot go on, stopped by generate (10-kv-cache)" in printed["write"]


def test_what_is_missing_is_said_and_stood_in_for(run, work):
    for slug in ("05-rope", "10-kv-cache"):
        save(work, slug, json.dumps(answers.notebook(slug, "exercises")))
    (work / "02-multi-head" / "02-multi-head.ipynb").unlink()
    printed = run()
    listed = printed["pieces"]
    assert re.search(r"split_heads +02-multi-head +lib's +the exercise is not started", listed)
    assert re.search(r"apply_rope +05-rope +lib's +not written yet", listed)
    assert re.search(r"generate +10-kv-cache +nobody's +not written yet", listed)
    assert re.search(r"softmax +01-attention +yours\n", listed)
    assert "Yours: 4 of 11 pieces." in listed
    assert wrong(printed) == []
    assert "The same logits" in printed["together"]
    assert "needs your `generate`" in printed["write"]


def test_without_any_exercise_others_stand_in_and_the_next_token_is_paris(
    run, work, language_model
):
    for slug in SLUGS:
        (work / slug / f"{slug}.ipynb").unlink()
    printed = run(language_model)
    assert "There are no exercises beside this page" in printed["pieces"]
    assert "Yours: 0 of 11 pieces." in printed["pieces"]
    assert wrong(printed) == []
    assert "\nThe capital of France is Paris\n" in printed["write"]
    assert "needs your `generate`" in printed["write"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("slug", "answer"),
    [(slug, answer) for slug in SLUGS for answer in answers.bank(slug, "right")],
    ids=lambda each: each if isinstance(each, str) else each.name,
)
def test_no_right_answer_is_called_wrong(run, work, slug, answer):
    save(work, slug, solved(slug, answer.cells))
    printed = run()
    assert wrong(printed) == []
    assert "The same logits" in printed["together"]
    assert "8 tokens" in printed["write"]


def test_the_pieces_are_those_of_the_page_and_each_is_an_exercises_answer():
    (source,) = (cell.source for cell in CELLS if cell.id == "pieces")
    named = json.loads(re.sub(r",\s*}", "}", re.search(r"WANTED = (\{.*?\})", source, re.S)[1]))
    assert named == PIECES
    for name in PIECES:
        assert cell_of(name)
