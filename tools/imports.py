"""Which files of a package some code imports, and a hash of their behaviour."""

import ast
import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path


def module_files(name: str, package: Path) -> list[Path]:
    """The files that importing ``lib.a.b`` runs: the module and the packages above it."""
    files, place = [], package.parent
    for part in name.split("."):
        place = place / part
        for candidate in (place.with_suffix(".py"), place / "__init__.py"):
            if candidate.is_file():
                files.append(candidate)
    return files


@functools.cache
def _names(source: str, inside: str) -> frozenset[str]:
    """What the source imports, by full names; every chapter asks for the same modules of `lib`."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = inside.split(".")[: len(inside.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            # `from lib import attention` names a module, `from lib.attention import x` does not
            names.update([base, *(f"{base}.{alias.name}" for alias in node.names)])
    return frozenset(names)


def imported(source: str, package: Path, inside: str = "") -> set[Path]:
    """The files of ``package`` that the source imports directly, at any level of its code.

    ``inside`` is the package that the source belongs to, for relative imports.
    """
    names = _names(source, inside)
    inside_package = {name for name in names if name.split(".")[0] == package.name}
    return {path for name in inside_package for path in module_files(name, package)}


def closure(source: str, package: Path) -> set[Path]:
    """Every file of ``package`` that runs when the source runs."""
    reached: set[Path] = set()
    waiting = imported(source, package)
    while waiting:
        path = waiting.pop()
        reached.add(path)
        inside = ".".join(path.parent.relative_to(package.parent).parts)
        waiting |= imported(path.read_text(encoding="utf-8"), package, inside) - reached
    return reached


def behaviour(files: Iterable[Path]) -> str:
    """A hash of Python files that ignores docstrings, comment lines and empty lines.

    It is the same under every version of Python.
    """
    digest = hashlib.sha256()
    for path in sorted(files):
        text = path.read_text(encoding="utf-8")
        docstring_lines = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                if ast.get_docstring(node, clean=False) is not None:
                    docstring_lines.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
        code_lines = [
            line
            for number, line in enumerate(text.splitlines(), 1)
            if number not in docstring_lines and line.strip() and not line.strip().startswith("#")
        ]
        digest.update(f"\0{path.name}\0".encode() + "\n".join(code_lines).encode())
    return digest.hexdigest()
