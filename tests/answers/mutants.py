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
    ast.LtE: [ast.Lt, ast.GtE, ast.Gt, ast.Eq, ast.NotEq],
    ast.Is: [ast.IsNot],
}
METHODS = {
    "amax": ["amin", "mean"],
    "exp": ["exp2", "sigmoid"],
    "sum": ["amax", "mean"],
    "any": ["all"],
    "softmax": ["log_softmax"],
    "sqrt": ["cbrt"],
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
        reference = ast.unparse(tree)
        (function,) = tree.body
        signature = _inside(function.args, function.returns)
        names = [argument.arg for argument in function.args.args]
        for number, node in enumerate(ast.walk(tree)):
            for change in [] if node in signature else _changes(node, names):
                mutant = copy.deepcopy(tree)
                target = list(ast.walk(mutant))[number]
                change(target)
                source = ast.unparse(ast.fix_missing_locations(mutant))
                if source != reference:
                    old, new = _first_difference(reference, source)
                    yield Answer(f"{cell.id}: {old} -> {new}", "a mutant", {cell.id: source})


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


def _inside(*parts: ast.AST) -> set[ast.AST]:
    return {node for part in parts for node in ast.walk(part)}


def _become(target: ast.AST, other: ast.AST) -> None:
    """Turn a node, in place, into another one."""
    target.__class__ = other.__class__
    target.__dict__.clear()
    target.__dict__.update(other.__dict__)
