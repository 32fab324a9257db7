"""A learner's own functions, taken from the exercises' notebooks: the pieces of Capstone 2.

An exercise is a notebook ``NAME/NAME.ipynb``, such as ``05-rope/05-rope.ipynb``. To get one
function out of it, the notebook is not run: of its statements only those are executed that define
the function or something that it uses. So neither tests nor pictures run, nor what the learner
tried on the way. Where several cells define a name, the last one counts, as when all are run.

A piece that fails says which one it is: :class:`PieceError` has its name and its exercise.
"""

import ast
import contextlib
import io
import json
import linecache
import re
import symtable
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

__all__ = ["Piece", "PieceError", "difference", "find_work", "load", "take"]

MAGIC = re.compile(r"^(\s*)[%!].*$", re.MULTILINE)  # a line for IPython, which is no Python
REQUIRED = ("__init__", "update")  # the methods without which a class counts as not yet written


class PieceError(Exception):
    """A piece cannot be loaded, stops with an error, or changes its arguments.

    Attributes:
        piece: which one.
        text: what went wrong, in one line.
    """

    def __init__(self, piece: "Piece", text: str) -> None:
        super().__init__(f"{piece.name} ({piece.where}): {text}")
        self.piece, self.text = piece, text


@dataclass(frozen=True)
class Piece:
    """A function or a class by its author's name, which can be called like it.

    Attributes:
        name: its name in the exercise.
        where: the exercise that asks for it.
        function: what is called.
        yours: whether the learner wrote it; otherwise something else stands in for it.
        note: why something else stands in, or why the learner's cannot be loaded.
    """

    name: str
    where: str
    function: Callable[..., Any] | None
    yours: bool = False
    note: str = ""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call it; errors as :meth:`run`."""
        return self.run(self.function, *args, **options)

    def run(self, function: Callable[..., Any] | None, *args: Any, **options: Any) -> Any:
        """Call a function that belongs to this piece, such as a method of what it returned.

        What it prints and its warnings are not shown: a model calls it hundreds of times.

        Raises:
            PieceError: if there is no such function, it raises, or it changes an argument in place.
                An error of another piece, called on the way, passes through.
        """
        if function is None:
            raise PieceError(self, self.note)
        tensors = [each for each in (*args, *options.values()) if isinstance(each, Tensor)]
        before = [tensor._version for tensor in tensors]  # torch counts changes in place
        try:
            with (
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("ignore")
                result = function(*args, **options)
        except PieceError:
            raise
        except Exception as error:
            raise PieceError(self, _reason(error)) from error
        if [tensor._version for tensor in tensors] != before:
            raise PieceError(self, "changes one of its arguments in place")
        return result


def _reason(error: Exception) -> str:
    """The error and, where it comes from the learner's own code, the line."""
    text = f"stops with {type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame.line for frame in frames if frame.filename.startswith("<piece ") and frame.line]
    return f"{text[:200]}, in the line: {own[-1]}" if own else text[:200]


# --- finding them


def find_work(start: str | Path = ".") -> Path | None:
    """The folder with the learner's exercises: this one or the one above it; None if neither is.

    In JupyterLab the chapters are in ``work/chapters``, and the exercises in the folder above.
    """
    for folder in (Path(start).resolve(), Path(start).resolve().parent):
        notebooks = folder.glob("[0-9][0-9]-*/*.ipynb")
        if any(path.stem == path.parent.name for path in notebooks):
            return folder
    return None


def load(
    wanted: Mapping[str, str],
    stand_ins: Mapping[str, Callable[..., Any]],
    work: str | Path | None,
) -> dict[str, Piece]:
    """Take pieces from the learner's notebooks; where one is missing, its stand-in.

    Args:
        wanted: for each piece the exercise that asks for it, as ``{"apply_rope": "05-rope"}``.
        stand_ins: what does a piece's work where it is not written yet. Where there is nothing for
            it either, the piece cannot be called.
        work: the folder with the exercises; None if there is none.

    Returns:
        The pieces by name. One that is there and cannot be loaded raises :class:`PieceError` when
        it is called; nothing stands in for it.
    """
    pieces = {}
    for name, slug in wanted.items():
        path = Path(work) / slug / f"{slug}.ipynb" if work is not None else None
        if path is None or not path.is_file():
            note = "the exercise is not started"
        else:
            try:
                pieces[name] = Piece(name, slug, take(path, name), yours=True)
                continue
            except NotImplementedError as missing:
                note = str(missing)
            except ValueError as problem:
                pieces[name] = Piece(name, slug, None, yours=True, note=str(problem))
                continue
        pieces[name] = Piece(name, slug, stand_ins.get(name), note=note)
    return pieces


def take(path: str | Path, name: str) -> Callable[..., Any]:
    """Get one function or class out of a notebook, and run as little of it as possible.

    Args:
        path: the notebook.
        name: that of the function or class.

    Raises:
        NotImplementedError: if the notebook does not define it, or has nothing but the
            ``raise NotImplementedError()`` with which the exercise came.
        ValueError: if the file is no notebook, or the code cannot be run; the message says why.
    """
    statements: list[tuple[str, ast.stmt]] = []
    unreadable = ""
    for label, source in _cells(Path(path)):
        try:
            body = _parse(source).body
        except SyntaxError as error:
            if re.search(rf"^(def|class)\s+{name}\b", source, re.MULTILINE):
                unreadable = f"its cell is not Python: {error.msg}, line {error.lineno}"
            continue
        linecache.cache[label] = (len(source), None, source.splitlines(keepends=True), label)
        if any(name in _bound(statement) for statement in body):
            unreadable = ""
        statements += [(label, statement) for statement in body]
    if unreadable:
        raise ValueError(unreadable)
    definitions = [statement for _, statement in statements if name in _bound(statement)]
    if not definitions or _is_stub(definitions[-1]):
        raise NotImplementedError("not written yet")
    namespace: dict[str, Any] = {"__name__": Path(path).stem}
    for label, statement in _needed(statements, name):
        try:
            exec(compile(ast.Module([statement], []), label, "exec"), namespace)
        except Exception as error:
            raise ValueError(f"its definition {_reason(error)}") from error
    return namespace[name]


def _cells(path: Path) -> Iterator[tuple[str, str]]:
    """The code cells without the tests, each with a name that tracebacks can show."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        for place, cell in enumerate(cells):
            marks = cell["metadata"].get("nbgrader", {})
            test = marks.get("grade") and not marks.get("solution")
            if cell["cell_type"] == "code" and not test:
                yield f"<piece {path}, cell {place}>", "".join(cell["source"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path.name} cannot be read as a notebook: {error!r}") from None


def _parse(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.parse(MAGIC.sub(r"\1pass", source))


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement defines in the notebook, those of its inner functions left out."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    names, waiting = set(), [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif not isinstance(node, ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return names


def _needed(statements: list[tuple[str, ast.stmt]], name: str) -> list[tuple[str, ast.stmt]]:
    """The statements that define a name and, one after another, the names that these use."""
    wanted, chosen = {name, "*"}, set()  # a star in an import may bring anything
    while True:
        new = {
            place
            for place, (_, statement) in enumerate(statements)
            if place not in chosen and _bound(statement) & wanted
        }
        if not new:
            return [statements[place] for place in sorted(chosen)]
        chosen |= new
        for place in new:
            wanted |= _used(symtable.symtable(ast.unparse(statements[place][1]), "piece", "exec"))


def _used(table: symtable.SymbolTable) -> set[str]:
    """The names that a statement needs from the notebook: not those local to its functions."""
    top = table.get_type() == "module"
    symbols = table.get_symbols()
    names = {
        symbol.get_name()
        for symbol in symbols
        if (symbol.is_referenced() if top else symbol.is_global())
    }
    return names.union(*map(_used, table.get_children()))


def _is_stub(definition: ast.stmt) -> bool:
    """Whether a function, or a required method of a class, has no body but the exercise's own."""
    if isinstance(definition, ast.ClassDef):
        methods = [each for each in definition.body if isinstance(each, ast.FunctionDef)]
        return any(_is_stub(method) for method in methods if method.name in REQUIRED)
    if not isinstance(definition, ast.FunctionDef):
        return False
    body = definition.body[1:] if ast.get_docstring(definition) is not None else definition.body
    return len(body) == 1 and ast.unparse(body[0]).startswith("raise NotImplementedError")


# --- comparing what they return


def difference(actual: Any, expected: Any, *, tolerance: float = 3e-5) -> str:
    """How a result differs from the expected one, in words; empty if it does not.

    Args:
        actual: what a piece returned.
        expected: a tensor, or a tuple of tensors.
        tolerance: for numbers that are not whole: the largest difference that rounding may make, as
            a share of the largest expected number.

    Example:
        >>> difference(Tensor([1.0, 2.0]), Tensor([1.0, 4.0]))
        'differs by up to 2, where the numbers go up to 4'
    """
    if isinstance(expected, tuple):
        if not isinstance(actual, tuple | list) or len(actual) != len(expected):
            return f"is {_kind(actual)}, not {len(expected)} tensors"
        pairs = zip(actual, expected, strict=True)
        problems = [difference(*pair, tolerance=tolerance) for pair in pairs]
        named = [f"result {i} {text}" for i, text in enumerate(problems, start=1) if text]
        return named[0] if named else ""
    if not isinstance(actual, Tensor):
        return f"is {_kind(actual)}, not a tensor"
    if actual.shape != expected.shape:
        return f"has shape {tuple(actual.shape)}, not {tuple(expected.shape)}"
    if actual.dtype != expected.dtype:
        return f"has dtype {actual.dtype}, not {expected.dtype}"
    if not expected.is_floating_point():
        wrong = int((actual != expected).sum())
        return f"differs in {wrong} of {expected.numel()} places" if wrong else ""
    if not actual.isfinite().all():
        return "has numbers that are not finite (nan or inf)"
    gap, largest = (actual - expected).abs().max().item(), expected.abs().max().item()
    if gap <= tolerance * largest:
        return ""
    return f"differs by up to {gap:.2g}, where the numbers go up to {largest:.2g}"


def _kind(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return "None" if value is None else f"a {type(value).__name__}"
