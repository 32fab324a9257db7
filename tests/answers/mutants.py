"""Answers made by a program: the reference solutions with one small change each.

Operators, comparisons, constants, signs, methods, arguments, statements and returned tuples are
changed one at a time. Then the mistakes of `tampering.py`, which know tensors, are put around every
expression, parameter, result and function. A mutant that keeps all its points is either right
(`NN-slug/equivalent.py` says why) or shows that a test is missing.

The right answers of the banks are changed in the same way. That makes 50,000, so only a sample of
these is read; ``python tests/answers/mutants.py --right`` tries all of them, and prints the share.
"""

import ast
import copy
import dataclasses
import hashlib
import itertools
import json
import pickle
import re
import runpy
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import tampering

from tools import answers, exercises
from tools.answers import Answer

RECORD = answers.BANKS / "mutants.json"
PAGE = answers.ROOT / "book" / "instructors" / "tests.md"
MARK = "<!-- mutants: written by `make mutants` -->"
END = "<!-- mutants -->"

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


# Around every expression, and around every parameter where a function begins.
ANYWHERE = [
    'rounded(HERE, "float32")',
    'rounded(HERE, "bfloat16")',
    'rounded(HERE, "int32")',
    "detached(HERE)",
    "widened(HERE)",
    "kept(HERE, STORE)",
]
# Around what a delicate method gets and gives, and at both ends of a function.
RANGES = [
    "with_epsilon(HERE, 1e-9)",
    "clamped(HERE, -1e4, 1e4)",
    "clamped(HERE, 1e-9, None)",
]
DELICATE = {"exp", "log", "logsumexp", "masked_fill", "rsqrt", "softmax", "sqrt", "sum", "where"}
# Around what these get, and around what is divided by. Elsewhere 1e-12 is rounding.
NEAR_ZERO = [
    f"{mistake}(HERE, {size}{rest}"
    for size in ("1e-12", "1e-6")
    for mistake, rest in (("with_epsilon", ")"), ("clamped", ", None)"))
]
SINGULAR = {"log", "rsqrt", "sqrt"}
# Around what these get.
FAR = ["clamped(HERE, -65504.0, 65504.0)", "clamped(HERE, -1e9, 1e9)"]
EXPONENTIAL = {"exp", "logsumexp", "softmax"}
# At both ends of a function.
SHAPES = [
    'rounded(HERE, "float16")',
    "truncated(HERE)",
    "first_for_all(HERE, 0)",
    "first_for_all(HERE, 1)",
    "first_for_all(HERE, -2)",
    "flipped(HERE, 0)",
    "flipped(HERE, 1)",
    "flipped(HERE, -2)",
    "ordered(HERE)",
    "squeezed(HERE)",
    "unsqueezed(HERE)",
    "transposed_if_square(HERE, -2, -1)",
    "transposed_if_square(HERE, 0, 1)",
]
STARTS = ["flat_at_zero(HERE)"]  # where a function begins
FINITE = ["-1e4", "-65504.0", "-1e9", "torch.finfo(torch.float32).min"]  # in place of -inf
# What takes one dimension, and could be taken over all.
REDUCING = {"all", "amax", "any", "argmax", "cumsum", "logsumexp", "mean", "softmax", "sum", "var"}
COUNTING = {"arange", "empty", "narrow", "ones", "range", "tril", "triu", "zeros"}
INFINITY = {"-math.inf", "-torch.inf", "-float('inf')", "float('-inf')"}
FACTS = {"device", "dtype", "ndim", "shape"}  # attributes that are no tensors
MODULES = {"math", "np", "torch"}

GIVEN = "from tampering import *\nbegin()\nSTORE = {}\n"

SAMPLE = 250  # of so many mutants of right answers one is read

Change = Callable[[ast.AST], None]  # changes a node of a copy of the tree where it stands


def explained(slug: str, survivors: set[str]) -> dict[str, str]:
    """Which mutants of an assignment rightly keep all points, and why.

    `EQUIVALENT` in its ``equivalent.py`` names mutants, and `RIGHT` has kinds of them: a regular
    expression for the whole name, and the reason.
    """
    reasons = explanations(slug)
    known = {name: why for name, why in reasons.get("EQUIVALENT", {}).items() if name in survivors}
    for pattern, why in reasons.get("RIGHT", {}).items():
        known |= {name: why for name in survivors if re.fullmatch(pattern, name)}
    return known


def outdated(slug: str, survivors: set[str]) -> list[str]:
    """What ``equivalent.py`` explains, by name or pattern, of which nothing survives."""
    reasons = explanations(slug)
    patterns = reasons.get("RIGHT", {}).keys()
    return [
        *(reasons.get("EQUIVALENT", {}).keys() - survivors),
        *(p for p in patterns if not any(re.fullmatch(p, name) for name in survivors)),
    ]


def explanations(slug: str) -> dict[str, dict[str, str]]:
    """What an assignment's ``equivalent.py`` says.

    `EQUIVALENT` and `RIGHT`: see :func:`explained`. `OF_RIGHT_ANSWERS`: survivors that are made of
    right answers. `MORE`: which values, rounded to float32, cost more than a cell of precision, by
    regular expressions, and why.
    """
    return runpy.run_path(str(answers.BANKS / slug / "equivalent.py"))


def counts(kinds: dict[str, str], fates: dict[str, str]) -> dict[str, list[int]]:
    """For each kind of change: how many mutants did something, and how many of them were caught."""
    by_kind: dict[str, list[int]] = {}
    for name, fate in fates.items():
        if fate != "idle":
            made, caught = by_kind.get(kinds[name], [0, 0])
            by_kind[kinds[name]] = [made + 1, caught + (fate == "caught")]
    return dict(sorted(by_kind.items()))


def recorded() -> dict[str, dict]:
    """What ``make mutants`` wrote last, for each assignment.

    ``made`` is a hash of the names of all mutants, and ``counts`` are their :func:`counts`.
    """
    return json.loads(RECORD.read_text())


def hash_of(names: Iterable[str]) -> str:
    """A short text that stands for the names of mutants."""
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:16]


def quote(record: dict[str, dict], page: str) -> str:
    """The page about tests, with the record's table between its marks."""
    rows = [["change", *(slug[:2] for slug in record)], ["---", *("--:" for _ in record)]]
    counted = [entry["counts"] for entry in record.values()]
    for kind in sorted(set().union(*counted)):
        cells = [each.get(kind) for each in counted]
        rows.append([kind, *(f"{100 * c[1] / c[0]:.0f}% ({c[0]})" if c else "" for c in cells)])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    before, _, rest = page.partition(MARK)
    return f"{before}{MARK}\n\n{table}\n\n{END}{rest.partition(END)[2]}"


def right_answers(slugs: list[str]) -> None:
    """Try all mutants of right answers, and print those that are kept, and how many."""
    for slug in slugs or exercises.slugs():
        fates = answers.fates(slug, mutants_of_right_answers(slug))
        print("".join(f"  {name}\n" for name, fate in fates.items() if fate == "kept"), end="")
        print(f"{slug}: {Counter(fates.values())}", flush=True)


def main(slugs: list[str]) -> None:
    """Try all mutants, print those that are not explained, and write the record and the page."""
    record = recorded() if RECORD.is_file() else {}
    for slug in slugs or exercises.slugs():
        made = {mutant.name: mutant for mutant in mutants(slug)}
        fates = answers.fates(slug, made.values())
        surviving = {name for name, fate in fates.items() if fate == "kept"}
        unexplained = sorted(surviving - explained(slug, surviving).keys())
        print(f"{slug}: {len(surviving)} of {len(made)} kept, {len(unexplained)} unexplained")
        print("".join(f"  {name}\n" for name in unexplained), end="", flush=True)
        for name in outdated(slug, surviving):
            print(f"  no longer kept, but explained: {name}", flush=True)
        totals = counts({name: made[name].about for name in made}, fates)
        record[slug] = {"made": hash_of(made), "counts": totals}
    RECORD.write_text(json.dumps(dict(sorted(record.items())), indent=1) + "\n")
    PAGE.write_text(quote(record, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def mutants(slug: str) -> Iterator[Answer]:
    """Every mutant of every solution cell of an assignment, each with a name of its own.

    `Answer.about` is the kind of the change.
    """
    for cell in answers.notebook(slug).cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            yield from mutants_of(cell.id, cell.source)


def mutants_of_right_answers(slug: str) -> Iterator[Answer]:
    """The same of every cell of every right answer in an assignment's bank."""
    for answer in answers.bank(slug, "right"):
        for cell, source in answer.cells.items():
            for mutant in mutants_of(cell, source):
                yield dataclasses.replace(mutant, name=f"{answer.name}, {mutant.name}")


def mutants_of(cell: str, source: str) -> Iterator[Answer]:
    """Every mutant of one cell."""
    seen: Counter[str] = Counter()
    for kind, name, changed in mutated(source):
        seen[name] += 1
        again = f" ({seen[name]})" if seen[name] > 1 else ""
        yield Answer(f"{cell}: {name}{again}", kind, {cell: changed})


def sampled(mutant: Answer) -> bool:
    """Whether a mutant is one of the few that stand for all; other mutants change nothing here."""
    return zlib.crc32(mutant.name.encode()) % SAMPLE == 0


def is_a_slip(mutant: Answer) -> bool:
    """Whether a mutant only rounds a value to float32 on its way."""
    return mutant.about == "rounded" and "'float32')" in mutant.name


def mutated(source: str) -> Iterator[tuple[str, str, str]]:
    """Every mutant of a cell: the kind of the change, the line that changed, the source."""
    tree = ast.parse(source)
    reference, inside = ast.unparse(tree), _parameters(tree)
    pickled = pickle.dumps(tree)  # a copy from it takes a fraction of a deep copy's time
    above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for number, node in enumerate(ast.walk(tree)):
        changes = list(_around_functions(node))
        if node in inside:
            changes += [("other", change) for change in _changes(node, inside[node])]
            changes += _statements(node, inside[node])
            changes += _around_results(node, above)
            changes += _around_values(node, above)
            changes += _around_branches(node, inside[node])
        for kind, change in changes:
            mutant = pickle.loads(pickled)
            change(next(itertools.islice(ast.walk(mutant), number, None)))
            text = ast.unparse(mutant)
            if text != reference:
                old, new = _first_difference(reference, text)
                if hasattr(tampering, kind):
                    yield kind, new, GIVEN + text
                else:
                    yield kind, f"{old} -> {new}", text


def _parameters(tree: ast.Module) -> dict[ast.AST, list[str]]:
    """For each node in a function's body the parameters it can name; signatures are left out."""
    explained = {}
    for function in ast.walk(tree):  # outer functions first, so that inner ones have the last word
        if isinstance(function, ast.FunctionDef):
            named = [*function.args.args, *function.args.kwonlyargs]
            names = [argument.arg for argument in named if argument.arg != "self"]
            for part in function.body:
                for node in ast.walk(part):
                    explained[node] = explained.get(node, []) + names
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for part in (function.args, function.returns, *function.decorator_list):
                for node in ast.walk(part) if part else []:
                    explained.pop(node, None)
    return explained


def _first_difference(old: str, new: str) -> tuple[str, str]:
    lines = itertools.zip_longest(old.splitlines(), new.splitlines(), fillvalue="nothing")
    return next((a.strip(), b.strip()) for a, b in lines if a != b)


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


def _around_functions(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """What is done to a function as a whole, where it stands in a module or class."""
    if isinstance(node, (ast.Module, ast.ClassDef)):
        for place, part in enumerate(node.body):
            for call in _calls_around(part) if isinstance(part, ast.FunctionDef) else []:
                yield _kind(call), _inserted(place + 1, f"{part.name} = {call}")
    if isinstance(node, ast.FunctionDef):
        for name, hint in _parameters_of(node).items():
            for template in (*ANYWHERE, *RANGES, *SHAPES, *STARTS) if hint != "int" else ():
                yield _kind(template), _inserted(1, f"{name} = {template.replace('HERE', name)}")
        if {"hiding", "softmax"} <= {_step(part) for part in ast.walk(node)}:
            yield "hidden", _hide_later


def _calls_around(function: ast.FunctionDef) -> Iterator[str]:
    yield f"cached({function.name})"
    yield f"cached({function.name}, last=True)"
    parameters = _parameters_of(function)
    for first, second in itertools.combinations(parameters, 2):
        for relation in tampering.RELATIONS:
            yield f'wrong_between({function.name}, "{first}", "{relation}", "{second}")'
    flows = "gradient" in (ast.get_docstring(function) or "").lower()
    for name, hint in _parameters_of(function, ("Callable",)).items():
        if function.name != "__init__":  # which makes another object at each call
            yield f'blind_to({function.name}, "{name}")'
        for condition in tampering.BRANCHES if "Tensor" in hint else ():
            yield f'writes_if({function.name}, "{name}", "{condition}")'
        for condition in tampering.FLOWING if flows and "Tensor" in hint else ():
            yield f'detached_if({function.name}, "{name}", "{condition}")'
    for name, hint in parameters.items():
        for condition in tampering.NUMBERS if hint.startswith("int") else tampering.TENSORS:
            yield f'wrong_if({function.name}, "{name}", "{condition}")'


def _around_results(node: ast.AST, above: dict[ast.AST, ast.AST]) -> Iterator[tuple[str, Change]]:
    if isinstance(node, ast.Return) and node.value:
        function = above[node]
        while not isinstance(function, ast.FunctionDef):
            function = above[function]
        for name in _parameters_of(function):
            yield "writing", _replaced(f"writing(HERE, {name})", "value")
        for template in (*RANGES, *SHAPES):
            yield _kind(template), _replaced(template, "value")


def _around_branches(node: ast.AST, parameters: list[str]) -> Iterator[tuple[str, Change]]:
    """An argument that is written into on one branch, from which the function goes on."""
    for branch in ("body", "orelse"):
        for name in parameters:
            if isinstance(node, ast.IfExp):
                yield "written", _replaced(f"({name} := written({name}), HERE)[1]", branch)
            elif isinstance(node, ast.If) and getattr(node, branch):
                line = ast.parse(f"{name} = written({name})").body[0]
                yield "written", lambda target, b=branch, n=line: getattr(target, b).insert(0, n)


def _step(node: ast.AST) -> str | None:
    """Whether a call hides scores, or is a softmax."""
    infinite = isinstance(node, ast.Call) and bool(node.args)
    infinite = infinite and ast.unparse(node.args[-1]) in INFINITY
    if infinite and _called(node) in ("masked_fill", "where"):
        return "hiding"
    return "softmax" if _called(node) == "softmax" else None


def _hide_later(function: ast.FunctionDef) -> None:
    """Leave the hiding out, and do it after the softmax."""
    for node in reversed(list(ast.walk(function))):  # what stands inside another comes first
        if _step(node) == "hiding":
            if _called(node) == "where":
                seen, scores, _ = map(ast.unparse, node.args)
                call = f"shown({scores}, ~({seen}))"
            else:
                call = f"shown({ast.unparse(node.func.value)}, {ast.unparse(node.args[0])})"
            _become(node, ast.parse(call, mode="eval").body)
        elif _step(node) == "softmax":
            _become(node, ast.parse(f"hidden({ast.unparse(node)})", mode="eval").body)


def _around_values(node: ast.AST, above: dict[ast.AST, ast.AST]) -> Iterator[tuple[str, Change]]:
    """What is put around an expression: a mistake that knows tensors, another boundary."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
        for name in ("near", "identical"):
            yield name, _compared_by(name)
    for place, counts in _counts(node):
        for template in ("HERE + 1", "HERE - 1"):
            yield "boundary", _replaced(template, place, counts)
    if ast.unparse(node) in INFINITY:
        for number in FINITE:
            yield "finite", _replaced(number)
    elif _is_value(node, above):
        for template in ANYWHERE:
            yield _kind(template), _replaced(template)
        if _called(node) in REDUCING and isinstance(node.func, ast.Attribute):
            given = [ast.unparse(each) for each in (node.func.value, *node.args, *node.keywords)]
            value, *dims = given[1:] if given[0] in MODULES else given
            if dims:
                yield "over_all", _replaced(f'over_all(HERE, {value}, "{node.func.attr}")')
        parent = above[node]
        quotient = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div)
        divides = quotient and parent.right is node
        around = {_called(node), _called(parent), _called(above.get(parent))}
        for templates, there in (
            (RANGES, divides or around & DELICATE),
            (NEAR_ZERO, divides or _goes_into(node, above, SINGULAR)),
            (FAR, _goes_into(node, above, EXPONENTIAL)),
        ):
            for template in templates if there else ():
                yield _kind(template), _replaced(template)


def _goes_into(node: ast.AST, above: dict[ast.AST, ast.AST], names: set[str]) -> bool:
    """Whether one of these methods, or of torch's functions, gets a value."""
    parent = above[node]
    if isinstance(parent, ast.Attribute):
        return _called(above[parent]) in names
    return _called(parent) in names and node in parent.args[:1]


def _statements(node: ast.AST, parameters: list[str]) -> Iterator[tuple[str, Change]]:
    """A statement left out, a condition that always or never holds, an argument by its name."""
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr, ast.Raise, ast.Break)) and not text:
        yield "statement", lambda target: _become(target, ast.Pass())
    if isinstance(node, ast.If):
        for value in (True, False):
            test = ast.Constant(value)
            yield "statement", lambda target, test=test: setattr(target, "test", test)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
        if node.func.id in parameters and isinstance(node.args[-1], ast.Name):
            yield "keyword", _name_last_argument


def _name_last_argument(target: ast.Call) -> None:
    last = target.args.pop()
    target.keywords.append(ast.keyword(last.id, last))


def _compared_by(name: str) -> Change:
    def change(target):
        call = ast.Call(ast.Name(name), [target.left, target.comparators[0]], [])
        negated = isinstance(target.ops[0], ast.NotEq)
        _become(target, ast.UnaryOp(ast.Not(), call) if negated else call)

    return change


def _counts(node: ast.AST) -> Iterator[tuple[str, int | None]]:
    """Where a boundary stands in a slice, or in a call that counts, unless it is a constant."""
    plain = (ast.Constant, ast.UnaryOp, ast.Starred, ast.Tuple, type(None))
    if isinstance(node, ast.Slice):
        yield from (
            (side, None)
            for side in ("lower", "upper")
            if not isinstance(getattr(node, side), plain)
        )
    if _called(node) in COUNTING:
        yield from (
            ("args", place) for place, each in enumerate(node.args) if not isinstance(each, plain)
        )


def _replaced(template: str, field: str = "", place: int | None = None) -> Change:
    """Put a template, with the old expression for `HERE`, in place of a node or of a part of it."""

    def change(target):
        part = getattr(target, field) if field else target
        part = part if place is None else part[place]
        old = copy.copy(part)
        new = ast.parse(template, mode="eval").body
        for node in ast.walk(new):
            if isinstance(node, ast.Name) and node.id == "HERE":
                _become(node, old)
                break
        _become(part, new)

    return change


def _inserted(place: int, line: str) -> Change:
    return lambda target: target.body.insert(place, ast.parse(line).body[0])


def _parameters_of(
    function: ast.FunctionDef, plain: tuple[str, ...] = ("bool", "str", "float", "Callable")
) -> dict[str, str]:
    """The parameters that may be, or hold, tensors or whole numbers; each with its type."""
    arguments = [*function.args.args, *function.args.kwonlyargs]
    hints = {each.arg: ast.unparse(each.annotation) for each in arguments if each.annotation}
    return {name: hint for name, hint in hints.items() if not hint.startswith(plain)}


def _called(node: ast.AST | None) -> str | None:
    """The last name of what a call calls."""
    called = node.func if isinstance(node, ast.Call) else None
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", None)


def _is_value(node: ast.AST, above: dict[ast.AST, ast.AST]) -> bool:
    """Whether an expression stands for a value that may be, or hold, tensors or numbers."""
    parent = above[node]
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float)
    if isinstance(node, ast.Attribute) and node.attr in FACTS:
        return False
    if isinstance(node, ast.Name) and node.id in {*MODULES, "self"}:
        return False
    if isinstance(parent, ast.keyword) or getattr(parent, "func", None) is node:
        return False
    if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return False
    if isinstance(parent, ast.Attribute) and parent.attr in FACTS:
        return False
    known = (ast.Attribute, ast.BinOp, ast.Call, ast.Compare, ast.Name, ast.Subscript, ast.UnaryOp)
    while not isinstance(parent, (ast.FunctionDef, ast.Raise)):
        parent = above[parent]
    return isinstance(node, known) and not isinstance(parent, ast.Raise)


def _kind(call: str) -> str:
    return call.partition("(")[0]


if __name__ == "__main__":
    (right_answers if "--right" in sys.argv else main)([a for a in sys.argv[1:] if a != "--right"])
