"""The tools of the tests: what they find equal, what they find different, and what they say."""

import linecache
import math
import sys

import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell

from grading.runner.probe import Probe, probe


def test_a_generator_repeats_itself_and_differs_by_cell_and_by_salt():
    def draw(tools, cell):
        return torch.rand(4, generator=tools.generator(cell)).tolist()

    salted = Probe()
    salted.salt = "secret/submission"
    assert draw(probe, "a") == draw(Probe(), "a")
    assert draw(salted, "a") == draw(salted, "a")
    assert len({tuple(draw(tools, cell)) for tools in (probe, salted) for cell in "ab"}) == 4


# --- comparison


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (torch.tensor([1.0, math.inf]), torch.tensor([1.0 + 1e-11, math.inf])),
        (torch.nn.Parameter(torch.ones(2)), torch.ones(2)),
        (torch.ones(2, requires_grad=True), torch.ones(2)),
        (torch.empty(0, 3), torch.empty(0, 3)),
        (1e9, 1e9 + 1e-3),
        (None, None),
        ("word", "word"),
        ([torch.tensor(True), 3], (torch.tensor(True), 3)),
    ],
)
def test_close_accepts(actual, expected):
    probe.close(actual, expected)


@pytest.mark.parametrize(
    ("actual", "expected", "message"),
    [
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0]), r"\[1\]: got 2, expected 3; 1 of 2"),
        (torch.tensor([math.nan]), torch.tensor([1.0]), r"at \[0\]: got nan, expected 1"),
        (torch.tensor([1.0]), torch.tensor([math.inf]), "got 1, expected inf"),
        (torch.ones(2, 1), torch.ones(2), r"got shape \(2, 1\), expected shape \(2,\)"),
        (torch.ones(2), torch.ones(2, dtype=torch.float64), "expected dtype torch.float64"),
        (None, torch.ones(2), "is a `return` missing"),
        (None, 0, r"got None \(is a `return` missing\?\), expected 0 of type int"),
        ((0, 0), (None, 0), r"part 0 of the result: got 0 of type int, expected None$"),
        ([1.0, 1.0], torch.ones(2), "a list of 2, expected a tensor"),
        (torch.ones(()), 1.0, "a tensor of shape"),
        (True, 1, "True of type bool, expected 1 of type int"),
        ("word", "words", "'word', expected 'words'"),
        ((1, 2), (1, 3), "part 1 of the result: got 2, expected 3"),
        ((1,), (1, 3), "a tuple of 1, expected a tuple of 2"),
        (1.0, 1.0 + 1e-8, "they differ by 1.0e-08: has a float32 number come in"),
    ],
)
def test_close_refuses_and_says_why(actual, expected, message):
    with pytest.raises(AssertionError, match=message):
        probe.close(actual, expected)


def test_a_tensor_that_claims_to_equal_everything_is_refused():
    class Agreeable(torch.Tensor):
        def __eq__(self, other):
            return True

    with pytest.raises(AssertionError, match="expected a tensor"):
        probe.close(torch.ones(2).as_subclass(Agreeable), torch.zeros(2))


def test_replaced_comparisons_of_torch_change_nothing(monkeypatch):
    monkeypatch.setattr(torch, "allclose", lambda *args, **kwargs: True)
    monkeypatch.setattr(torch.Tensor, "tolist", lambda self: [0.0, 0.0], raising=False)
    with pytest.raises(AssertionError, match="got 1, expected 0"):
        probe.close(torch.ones(2), torch.zeros(2))


def test_equal_allows_no_tolerance():
    probe.equal(torch.tensor([True, False]), torch.tensor([True, False]))
    with pytest.raises(AssertionError, match=r"\(they differ by 1.1e-15\)$"):
        probe.equal(1.0, 1.0 + 1e-15)


def test_hint_and_name_stand_in_the_message():
    with pytest.raises(AssertionError, match="the sum: got 1, expected 2\nCount again"):
        probe.close(1, 2, "Count again.", name="the sum")


def test_unpack_wants_that_many_parts():
    assert probe.unpack((1, 2), "output", "weights") == (1, 2)
    for wrong in (torch.ones(2, 3), (1, 2, 3), None):
        with pytest.raises(AssertionError, match=r"a tuple \(output, weights\), but"):
            probe.unpack(wrong, "output", "weights")


# --- running a test


def test_check_says_what_was_tried():
    with pytest.raises(AssertionError, match=r"^Tried: one and one.\nthe result: got 1"):
        probe.check("one and one")(lambda: probe.close(1, 2))
    with pytest.raises(AssertionError, match=r"^Tried: zero.\nIt raised ZeroDivisionError: "):
        probe.check("zero")(lambda: 1 / 0)


def test_check_leaves_what_is_not_written_as_it_is():
    def stub():
        raise NotImplementedError

    with pytest.raises(NotImplementedError, match=r"^$"):
        probe.check("a blank")(stub)

    def unknown():
        raise NotImplementedError("no such kernel")

    with pytest.raises(AssertionError, match=r"Tried: half.\nIt raised NotImpl.*no such kernel"):
        probe.check("half")(unknown)


def cell(source):
    """The functions of a cell that IPython has run: lines of it can be found by its file name."""
    name = "cell-1.py"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), globals(), space := {})
    return space


def test_check_names_the_line_of_the_answer_that_failed():
    answer = cell("def answer(x):\n    return x @ x  # here\n")["answer"]
    with pytest.raises(AssertionError) as error:
        probe.check("a product")(lambda: answer(torch.ones(2, 3)))
    first, second, third, fourth = str(error.value).splitlines()
    assert first == "Tried: a product."
    assert second.startswith("It raised RuntimeError: mat1 and mat2 shapes")
    assert third == "in line 2 of the cell, in `answer`: return x @ x  # here"
    assert fourth.startswith("Print the .shape of each tensor")


def test_advice_is_given_where_it_helps_and_nowhere_else():
    def exponential_in_place(x):
        y = x.exp()
        y += 1  # the gradient of exp needs what it gave
        return y

    ones = torch.ones(2)
    changed = "was changed in place: work on a new tensor"
    with pytest.raises(AssertionError, match=changed):
        probe.check("e")(lambda: probe.gradients(exponential_in_place, ones, upstream=ones))
    with pytest.raises(AssertionError) as error:
        probe.check("none")(lambda: torch.ones(size=2, shape=3))
    assert "TypeError" in str(error.value)
    assert "Print the .shape" not in str(error.value)


def test_a_gradient_that_does_not_arrive_is_no_missing_return():
    (gradient,) = probe.gradients(lambda x: x.detach() * 2, torch.ones(2), upstream=torch.ones(2))
    with pytest.raises(AssertionError, match=r"^the gradient for x: none arrives"):
        probe.close(gradient, torch.ones(2), name="the gradient for x")
    probe.close(None, None, name="the gradient for x")


def test_check_takes_an_assertion_of_the_answer_for_an_error_of_the_answer():
    answer = cell("def answer(x):\n    assert x > 2\n")["answer"]
    with pytest.raises(AssertionError, match=r"raised AssertionError\nin line 2 .*: assert x > 2$"):
        probe.check("one")(lambda: answer(1))


def test_a_notebook_shows_the_message_alone():
    shell = InteractiveShell()
    shell.user_ns["probe"] = probe
    shown = []
    shell._showtraceback = lambda kind, problem, lines: shown.append((kind, lines))
    blank = "def blank():\n    raise NotImplementedError()\n"
    shell.run_cell("@probe.check('one')\ndef test():\n    probe.close(1, 2)\n")
    shell.run_cell(f"{blank}\n@probe.check('one')\ndef test():\n    blank()\n")
    assert shown == [
        (AssertionError, ["AssertionError: Tried: one.\nthe result: got 1, expected 2"]),
        (NotImplementedError, ["Nothing filled in yet in `blank`."]),
    ]


def test_check_shows_stderr_as_ordinary_output(capsys):
    def noisy():
        print("careful", file=sys.stderr)

    probe.check("noise")(noisy)
    assert capsys.readouterr() == ("careful\nPassed: noise.\n", "")


# --- reaching the answer


def test_unchanged_returns_the_result_and_names_the_argument():
    x, y = torch.ones(2), torch.ones(2)
    assert probe.unchanged(lambda a, b, n: n, x, y, 5) == 5
    with pytest.raises(AssertionError, match="argument 2 of the call was changed in place"):
        probe.unchanged(lambda a, b: b.add_(a), x, y)
    with pytest.raises(AssertionError, match="argument 1 of the call was changed in place"):
        probe.unchanged(lambda pairs: pairs[0][1].add_(1), [(x, y)])


def test_gradients_by_hand():
    x = torch.tensor([2.0, 3.0], dtype=torch.float64)
    upstream = torch.tensor([1.0, 10.0], dtype=torch.float64)
    square, flag, unused = probe.gradients(
        lambda a, n, b, c: (a**n * b, a), x, 2, x, x, upstream=upstream, part=0
    )
    assert square.tolist() == [8.0, 180.0]
    assert flag.tolist() == [4.0, 90.0]
    assert unused is None
    assert not x.requires_grad


def test_gradients_survive_a_change_in_place_and_show_a_detached_result():
    x = torch.ones(2)
    (gradient,) = probe.gradients(lambda a: a.mul_(3), x, upstream=x)
    assert gradient.tolist() == [3.0, 3.0]
    assert probe.gradients(lambda a: a.detach(), x, upstream=x) == [None]


def test_each_gradient_is_asked_for_where_no_other_is_needed():
    def follows_the_first(a, b):
        with torch.set_grad_enabled(a.requires_grad):
            return a * b

    x, y = torch.tensor([2.0]), torch.tensor([3.0])
    first, second = probe.gradients(follows_the_first, x, y, upstream=torch.ones(1))
    assert first.tolist() == [3.0]
    assert second is None


def test_gradients_refuse_a_result_of_another_shape():
    with pytest.raises(AssertionError, match=r"shape \(2,\), but got a tensor of shape \(\)"):
        probe.gradients(torch.sum, torch.ones(2), upstream=torch.ones(2))
    with pytest.raises(AssertionError, match="got None"):
        probe.gradients(lambda a: None, torch.ones(2), upstream=torch.ones(2))


def test_varied_changes_one_argument_at_a_time():
    assert probe.varied((1, 2, 3), (4, 5, 6)) == [(1, 2, 3), (4, 2, 3), (1, 5, 3), (1, 2, 6)]


def test_filled_fills_one_tensor_at_a_time():
    x, y, n = torch.tensor([0.5, 2.0]), torch.tensor([3.0]), torch.tensor([7])
    calls = probe.filled((x, n, y))
    values = [[part.tolist() for part in call] for call in calls]
    x_filled = [[[0.0, 0.0], [7], [3.0]], [[1.0, 1.0], [7], [3.0]]]
    y_filled = [[[0.5, 2.0], [7], [0.0]], [[0.5, 2.0], [7], [1.0]]]
    assert values == x_filled + y_filled
    assert [[part.tolist() for part in call] for call in probe.filled((x, n, y), [2])] == y_filled


def test_counted_keeps_the_arguments_as_they_were():
    step = probe.counted(lambda a: a.add_(1))
    x = torch.zeros(1)
    step(x)
    step(x)
    assert [call[0].tolist() for call in step.calls] == [[0.0], [1.0]]


def test_new_gives_a_handle():
    class Counter:
        def __init__(self, start):
            self.count = start

        def add(self, n):
            self.count += n
            return self.count

    handle = probe.new(Counter, 3)
    assert handle.add(2) == 5
    assert handle.count == 5
