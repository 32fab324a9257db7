"""What a GPU is needed for runs where there is no more than torch, numpy and pytest."""

import importlib.metadata
import os
import re
import subprocess
import sys

from benchmarks.machine import ROOT

BARE = ("torch", "numpy", "pytest")
# Everything else that is installed is hidden, then `pytest tests -m cuda` is collected.
HIDE = """
import importlib.abc, sys
hidden = set(sys.argv.pop(1).split(","))
class Hide(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hide())
"""


def needed_by(names):
    """These packages and all that they cannot do without."""
    modules, waiting = set(), list(names)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in modules:
            continue
        try:
            required = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # for another system or Python
        modules.add(name)
        waiting += [re.match(r"[\w.-]+", line)[0] for line in required if "extra ==" not in line]
    return modules


def hidden_modules():
    needed = needed_by(BARE)
    return {
        module
        for module, owners in importlib.metadata.packages_distributions().items()
        if not needed & {re.sub(r"[-_.]+", "-", owner).lower() for owner in owners}
    } - {"lib", "benchmarks", "tests"}


def python(code, *arguments):
    command = [sys.executable, "-c", HIDE + code, ",".join(sorted(hidden_modules())), *arguments]
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": os.environ["PATH"]}
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)


def test_what_is_hidden():
    hidden = hidden_modules()
    assert {"hypothesis", "transformers", "nbformat", "matplotlib", "yaml"} <= hidden
    assert not {"torch", "numpy", "pytest", "sympy", "typing_extensions"} & hidden


def test_the_tests_for_a_gpu_are_collected_on_a_bare_machine():
    code = "import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    done = python(code, "tests", "-m", "cuda", "-q", "--collect-only", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout + done.stderr
    marked = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("test_*.py")
        if re.search(r"^@pytest\.mark\.cuda", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert {line.split("::")[0] for line in done.stdout.splitlines() if "::" in line} == marked
    assert len(marked) > 10
    assert "error" not in done.stdout.lower()


def test_the_benchmark_begins_on_a_bare_machine():
    code = "from benchmarks import kv_cache, kv_cache_beside\n"
    code += "print(len(kv_cache_beside.exercise_names(kv_cache.Cpu())['turn'].__doc__))"
    done = python(code)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) > 10
