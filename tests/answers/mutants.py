"""Answers made by a program: the reference solutions with one small change each.

Operators, comparisons, constants, signs, methods, arguments and returned tuples are changed one
at a time. A mutant that keeps all its points is either the same function written differently
(`NN-slug/equivalent.py` says why) or shows that a test is missing.
"""

import ast
import copy
import runpy
from collections.abc import Iterator

from tools import answers
from tools.answers import Answer

OPERATORS = {
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Div],
    ast.Div: [ast.Mult],
    ast.FloorDiv: [ast.Mult],
    ast.Mod: [ast.FloorDiv],
    ast.Pow: [ast.Mult],
    ast.Lt: [ast.LtE, ast.Gt],
    ast.LtE: [ast.Lt, ast.GtE, ast.Gt, ast.Eq, ast.NotEq],
    ast.Gt: [ast.GtE, ast.Lt],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.And: [ast.Or],
    ast.Or: [ast.And],
    ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd],
}
METHODS = {
    "amax": ["amin", "mean"],
    "any": ["all"],
    "cos": ["sin"],
    "exp": ["exp2", "sigmoid"],
    "log": ["log2"],
    "max": ["min"],
    "maximum": ["minimum"],
    "min": ["max"],
    "minimum": ["maximum"],
    "sin": ["cos"],
    "softmax": ["log_softmax"],
    "sqrt": ["cbrt"],
    "sum": ["amax", "mean"],
    "tril": ["triu"],
    "triu": ["tril"],
}


def equivalent(slug: str) -> dict[str, str]:
    """The mutants of an assignment that no test can tell from the solution, and why not."""
    path = answers.BANKS / slug / "equivalent.py"
    return runpy.run_path(str(path))["EQUIVALENT"] if path.is_file() else {}


def mutants(slug: str) -> Iterator[Answer]:
    """Every mutant of every solution cell of an assignment, each with a name of its own."""
    for cell in answers.notebook(slug).cells:
        if not cell.metadata.get("nbgrader", {}).get("solution"):
            continue
        tree = ast.parse(cell.source)
        reference, known = ast.unparse(tree), _parameters(tree)
        for number, node in enumerate(ast.walk(tree)):
            for change in _changes(node, known[node]) if node in known else []:
                mutant = copy.deepcopy(tree)
                target = list(ast.walk(mutant))[number]
                change(target)
                source = ast.unparse(ast.fix_missing_locations(mutant))
                if source != reference:
                    old, new = _first_difference(reference, source)
                    yield Answer(f"{cell.id}: {old} -> {new}", "a mutant", {cell.id: source})


def _parameters(tree: ast.Module) -> dict[ast.AST, list[str]]:
    """For each node in a function's body the parameters it can name; signatures are left out."""
    found = {}
    for function in ast.walk(tree):  # outer functions first, so that inner ones have the last word
        if isinstance(function, ast.FunctionDef):
            named = [*function.args.args, *function.args.kwonlyargs]
            names = [argument.arg for argument in named if argument.arg != "self"]
            for part in function.body:
                for node in ast.walk(part):
                    found[node] = found.get(node, []) + names
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for part in (function.args, function.returns, *function.decorator_list):
                for node in ast.walk(part) if part else []:
                    found.pop(node, None)
    return found


def _first_difference(old: str, new: str) -> tuple[str, str]:
    for a, b in zip(old.splitlines(), new.splitlines(), strict=False):
        if a != b:
            return a.strip(), b.strip()
    return "the last lines", "nothing"


def _changes(node: ast.AST, parameters: list[str]) -> Iterator:
    """Functions that change a copy of `node` where it stands."""
    if isinstance(node, ast.BinOp):
        for other in OPERATORS.get(type(node.op), []):
            yield lambda target, other=other: setattr(target, "op", other())
        for side in ("left", "right"):
            yield lambda target, side=side: _become(target, getattr(target, side))
    elif isinstance(node, ast.Compare):
        for other in OPERATORS.get(type(node.ops[0]), []):
            yield lambda target, other=other: setattr(target, "ops", [other()])
    elif isinstance(node, ast.BoolOp):
        for other in OPERATORS[type(node.op)]:
            yield lambda target, other=other: setattr(target, "op", other())
        for value in range(len(node.values)):
            yield lambda target, value=value: _become(target, target.values[value])
    elif isinstance(node, ast.AugAssign):
        for other in OPERATORS.get(type(node.op), []):
            yield lambda target, other=other: setattr(target, "op", other())
    elif isinstance(node, ast.UnaryOp):
        yield lambda target: _become(target, target.operand)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield lambda target: setattr(target, "value", not target.value)
        elif isinstance(node.value, (int, float)):
            yield lambda target: setattr(target, "value", target.value + 1)
            yield lambda target: setattr(target, "value", target.value - 1)
    elif isinstance(node, ast.Attribute):
        for other in METHODS.get(node.attr, []):
            yield lambda target, other=other: setattr(target, "attr", other)
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            yield lambda target: _become(target, target.func.value)  # x.method(...) -> x
        for place in range(len(node.keywords)):
            yield lambda target, place=place: target.keywords.pop(place)
    elif isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load) and len(node.elts) == 2:
        yield lambda target: target.elts.reverse()
    elif isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant):
        yield lambda target: _become(target, target.value)  # x[rows] -> x
    elif isinstance(node, ast.Name) and node.id in parameters:
        for other in parameters:
            yield lambda target, other=other: setattr(target, "id", other)


def _become(target: ast.AST, other: ast.AST) -> None:
    """Turn a node, in place, into another one."""
    target.__class__ = other.__class__
    target.__dict__.clear()
    target.__dict__.update(other.__dict__)
