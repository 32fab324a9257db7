"""Functions out of notebooks: what is executed for one, what is not, and what is said."""

import json

import pytest
import torch

from lib.pieces import Piece, PieceError, difference, find_work, load, take

STUB = 'def f(x):\n    """Add."""\n    raise NotImplementedError()'


@pytest.fixture
def notebook(tmp_path):
    """Write a learner's notebook; a cell is its source, or the pair with its nbgrader metadata."""

    def write(*cells, name="05-rope"):
        path = tmp_path / name / f"{name}.ipynb"
        path.parent.mkdir(exist_ok=True)
        cells = [each if isinstance(each, tuple) else (each, {}) for each in cells]
        entries = [
            {
                "cell_type": "code",
                "metadata": {"nbgrader": marks} if marks else {},
                "source": source.splitlines(keepends=True),
            }
            for source, marks in cells
        ]
        path.write_text(json.dumps({"cells": entries}))
        return path

    return write


# --- what is executed


def test_a_function_comes_with_what_it_uses_and_nothing_else(notebook):
    path = notebook(
        "import math\nimport not_installed\nSCALE = 2\nTWICE = SCALE * 2\nprint(undefined)",
        "def helper(y):\n    return math.sqrt(y) * TWICE",
        "x = undefined  # an experiment, with the name of the function's own variable",
        "def f(x):\n    y = helper(x)\n    return y",
        "1 / 0",
    )
    assert take(path, "f")(9.0) == 12.0


def test_a_class_comes_with_what_its_methods_use(notebook):
    path = notebook(
        "from math import inf\nROOM: int = 3",
        "class C:\n    n = ROOM\n    def __init__(self, *a: inf):\n        self.n += limit_of()",
        "def limit_of():\n    return 1",
    )
    assert take(path, "C")().n == 4


def test_the_last_definition_counts(notebook):
    path = notebook("def f(x):\n    return 1", "def f(x):\n    return 2", "f = lambda x: f_(x)")
    with pytest.raises(NameError):
        take(path, "f")(0)
    assert take(notebook("def f(x):\n    return 1", "def f(x):\n    return 2"), "f")(0) == 2


def test_names_from_a_loop_a_condition_and_a_star_are_found(notebook):
    path = notebook(
        "from math import *",
        "if True:\n    import cmath as c\nfor n in range(4):\n    m = n",
        "def f(x):\n    return sqrt(x) + m + c.sqrt(1).real",
    )
    assert take(path, "f")(4.0) == 6.0


def test_test_cells_are_left_out_and_answers_are_not(notebook):
    path = notebook(
        ("def f(x):\n    return 1", {"grade": False, "solution": True}),
        ("def f(x):\n    return 'the test'", {"grade": True, "solution": False}),
    )
    assert take(path, "f")(0) == 1


def test_lines_for_ipython_are_no_obstacle(notebook):
    path = notebook("%timeit 1\n!ls\ndef f(x):\n    return x", "%%time\nprint(")
    assert take(path, "f")(3) == 3


# --- what is missing or broken


@pytest.mark.parametrize(
    "cells",
    [
        (),
        (STUB,),
        ("def f(x):\n    raise NotImplementedError",),
        ("def f(x):\n    return x", STUB),
        ("class f:\n    def __init__(self):\n        raise NotImplementedError()",),
        ("class f:\n    def update(self):\n        'Add.'\n        raise NotImplementedError()",),
    ],
)
def test_what_is_not_written_yet(notebook, cells):
    with pytest.raises(NotImplementedError, match="not written yet"):
        take(notebook(*cells), "f")


def test_a_class_may_lack_a_method_that_the_model_does_not_need(notebook):
    path = notebook(
        "class f:\n    def update(self):\n        return 1\n"
        "    def truncate(self):\n        raise NotImplementedError()"
    )
    assert take(path, "f")().update() == 1


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (("def f(x:\n    return x",), r"its cell is not Python: .*, line 1"),
        (("import not_there_at_all as t\ndef f(x):\n    return t",), "No module named 'not_there"),
        (("HALF = 1 / 0\ndef f(x):\n    return HALF",), "ZeroDivisionError: .* in the line: HALF"),
    ],
)
def test_what_cannot_be_run(notebook, cells, message):
    with pytest.raises(ValueError, match=message):
        take(notebook(*cells), "f")


def test_a_cell_that_is_no_python_matters_only_for_its_own_functions(notebook):
    assert take(notebook("def g(:\n", "def f(x):\n    return x"), "f")(1) == 1
    assert take(notebook("def f(:\n", "def f(x):\n    return x"), "f")(1) == 1
    with pytest.raises(ValueError, match="not Python"):
        take(notebook("def f(x):\n    return x", "def f(:\n"), "f")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": [{}]}', "{"])
def test_a_file_that_is_no_notebook(notebook, text):
    path = notebook()
    path.write_text(text)
    with pytest.raises(ValueError, match=r"05-rope\.ipynb cannot be read as a notebook"):
        take(path, "f")


# --- a set of pieces


def test_load_says_whose_each_piece_is(notebook, tmp_path):
    notebook("def f(x):\n    return x", "def g(x:", STUB.replace("f(x)", "h(x)"))
    wanted = dict.fromkeys("fgh", "05-rope") | {"i": "01-attention"}
    stand_ins = {name: lambda x: "stand-in" for name in "fgi"}
    pieces = load(wanted, stand_ins, tmp_path)
    assert list(pieces) == list("fghi")
    assert (pieces["f"].yours, pieces["f"](7), pieces["f"].where) == (True, 7, "05-rope")
    assert pieces["g"].yours
    with pytest.raises(PieceError, match=r"g \(05-rope\): its cell is not Python"):
        pieces["g"](7)
    assert (pieces["h"].yours, pieces["h"].note) == (False, "not written yet")
    with pytest.raises(PieceError, match=r"h \(05-rope\): not written yet"):
        pieces["h"](7)
    assert (pieces["i"].note, pieces["i"](7)) == ("the exercise is not started", "stand-in")
    nowhere = load(wanted, stand_ins, None)
    assert {piece.note for piece in nowhere.values()} == {"the exercise is not started"}


def test_the_folder_is_this_one_or_the_one_above(notebook, tmp_path, monkeypatch):
    (tmp_path / "chapters" / "deep").mkdir(parents=True)
    assert find_work(tmp_path) is None
    path = notebook("1")
    assert find_work(tmp_path) == find_work(tmp_path / "chapters") == tmp_path
    assert find_work(tmp_path / "chapters" / "deep") is None
    monkeypatch.chdir(tmp_path / "chapters")
    assert find_work() == tmp_path
    path.rename(path.with_name("05-rope-new.ipynb"))
    assert find_work(tmp_path) is None


# --- calling them


def test_an_error_names_the_piece_and_the_line(notebook, tmp_path):
    notebook("def f(x):\n    return 1 + inner(x)\n\n\ndef inner(x):\n    return x / 0")
    piece = load({"f": "05-rope"}, {}, tmp_path)["f"]
    with pytest.raises(PieceError) as caught:
        piece(1)
    assert str(caught.value) == (
        "f (05-rope): stops with ZeroDivisionError: division by zero, in the line: return x / 0"
    )
    assert caught.value.piece is piece


def test_an_error_of_another_piece_passes_through():
    inner, outer = (Piece(name, "05-rope", lambda call: call()) for name in ("inner", "outer"))
    with pytest.raises(PieceError, match=r"^inner "):
        outer(lambda: inner(lambda: 1 / 0))


def test_a_method_is_run_like_the_piece():
    piece = Piece("C", "10-kv-cache", list)
    with pytest.raises(PieceError, match=r"^C .*IndexError"):
        piece.run(piece([1]).pop, 5)


@pytest.mark.parametrize("how", [lambda x: x.add_(1), lambda x: x[:, :1].zero_()])
def test_arguments_changed_in_place_are_noticed(how):
    with pytest.raises(PieceError, match="in place"):
        Piece("f", "05-rope", how)(torch.ones(2, 3))
    with pytest.raises(PieceError, match="in place"):
        Piece("f", "05-rope", lambda x: how(x))(x=torch.ones(2, 3))


def test_what_a_piece_prints_is_not_shown(capfd):
    def f(x):
        import sys
        import warnings

        print("out")
        print("error", file=sys.stderr)
        warnings.warn("slow", stacklevel=1)
        return x + 1

    assert Piece("f", "05-rope", f)(1) == 2
    assert capfd.readouterr() == ("", "")


# --- comparing


@pytest.mark.parametrize(
    ("actual", "expected", "text"),
    [
        (torch.ones(2), torch.ones(2), ""),
        (torch.tensor([1.0, 1.00002]), torch.ones(2), ""),
        (torch.tensor([1.0, 1.0001]), torch.ones(2), "differs by up to 0.0001, where"),
        (torch.tensor([1.0, 100.002]), torch.tensor([1.0, 100.0]), ""),
        (torch.ones(2, 1), torch.ones(2), r"has shape (2, 1), not (2,)"),
        (torch.ones(2).double(), torch.ones(2), "dtype torch.float64, not torch.float32"),
        (torch.tensor([1.0, torch.nan]), torch.ones(2), "not finite"),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), "differs in 1 of 2 places"),
        (torch.tensor([1, 3]), torch.tensor([1, 3]), ""),
        (None, torch.ones(2), "is None, not a tensor"),
        ((torch.ones(2),), torch.ones(2), "is a tuple of 1, not a tensor"),
        (torch.ones(2), (torch.ones(2), torch.ones(2)), "is a Tensor, not 2 tensors"),
        ([torch.ones(2), torch.zeros(2)], (torch.ones(2), torch.ones(2)), "result 2 differs"),
        ([torch.ones(2), torch.ones(2)], (torch.ones(2), torch.ones(2)), ""),
    ],
)
def test_a_difference_in_words(actual, expected, text):
    output = difference(actual, expected)
    assert text in output
    assert bool(output) == bool(text)


def test_the_tolerance_is_a_share_of_the_largest():
    assert difference(torch.tensor([9.0]), torch.tensor([10.0]), tolerance=0.2) == ""
    assert difference(torch.tensor([9.0]), torch.tensor([10.0]), tolerance=0.05) != ""
