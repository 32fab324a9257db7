"""Every notebook computes on one thread, wherever it is opened."""

import json
import subprocess
import sys

import pytest

from tools import start

LINE = "torch.set_num_threads(1)"
NOTEBOOKS = sorted([*start.BOOK.glob("*.ipynb"), *start.EXERCISES.glob("*/*.ipynb")])
PROGRAM = """
import torch
torch.set_num_threads(4)
from lib.figures import use_style
use_style()
print(torch.get_num_threads())
"""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_first_code_cell_sets_it(path):
    """A chapter through the library, and a notebook that does without it by itself."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    first = next("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    lines = [line.partition("  #")[0] for line in first.splitlines()]
    allowed = {"use_style()", "one_thread()"} if "from lib" in first else {LINE}
    assert allowed & set(lines)


@pytest.mark.parametrize(("variable", "threads"), [({}, "1"), ({"OMP_NUM_THREADS": "2"}, "4")])
def test_the_library_sets_it_unless_the_user_has(variable, threads):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=start.ROOT,
        env={"PATH": "/usr/bin:/bin", **variable},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == threads
