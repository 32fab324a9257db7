"""Run a chapter as somebody who downloaded it would: in an empty folder, after its one step."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat

from tools.book import OPTIONAL

# The optional packages that bring trained weights are hidden: the step does not install them.
HIDE = f"""
from importlib.machinery import PathFinder
find = PathFinder.find_spec
def find_spec(cls, name, path=None, target=None):
    return None if name in {OPTIONAL} else find(name, path, target)
PathFinder.find_spec = classmethod(find_spec)
"""
RUN = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
notebook.cells.append(nbformat.v4.new_code_cell(sys.argv[2], id="where"))
NotebookClient(notebook, timeout=300, shutdown_kernel="immediate").execute()
print("".join(output.text for output in notebook.cells[-1].outputs))
"""
WHERE = """
import json, sys
print(json.dumps({name: getattr(module, "__file__", None) for name, module in sys.modules.items()
                  if name.split(".")[0] in ("lib", "benchmarks", "tools")}))
"""
OFFLINE = ("bwrap", "--dev-bind", "/", "/", "--unshare-net")  # a namespace without a network


def step(notebook: nbformat.NotebookNode) -> str | None:
    """The wheel that a notebook asks pip to install, ``None`` if it asks for none."""
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    wheels = set(re.findall(r"python -m pip install (\S+\.whl)`", text))
    assert len(wheels) < 2, wheels
    return wheels.pop() if wheels else None


def run_downloaded(notebook: Path, wheel: Path, folder: Path) -> dict[str, Path]:
    """Run a downloaded notebook offline, beside a downloaded wheel and nothing else.

    Args:
        notebook: the file that the site serves.
        wheel: likewise; pip installs it alone, into a folder of its own.
        folder: empty.

    Returns:
        By name, the files that the modules of `lib` (and of the repository's other packages) were
        loaded from; below ``folder / "installed"`` if all is well.

    Raises:
        AssertionError: if a step or a cell fails; the message holds what it said.
    """
    assert not list(folder.iterdir())
    shutil.copy(notebook, folder)
    installed = folder / "installed"
    installed.mkdir()
    (installed / "sitecustomize.py").write_text(HIDE)
    if asked := step(nbformat.read(notebook, as_version=4)):
        assert asked == wheel.name, f"{notebook.name} asks for {asked}, the site has {wheel.name}"
        shutil.copy(wheel, folder)
        pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index"]
        _run([*pip, "--target", str(installed), asked], folder, {})
    offline = OFFLINE if shutil.which(OFFLINE[0]) else ()
    command = [*offline, sys.executable, "-c", RUN, notebook.name, WHERE]
    output = _run(command, folder, {"PYTHONPATH": str(installed), "OMP_NUM_THREADS": "1"})
    places = json.loads(output.strip().splitlines()[-1])
    return {name: Path(place) for name, place in places.items() if place}


def _run(command: list[str], folder: Path, more: dict[str, str]) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=folder, env={**environment, **more}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout
