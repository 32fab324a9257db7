"""Open JupyterLab on ``exercises/``, with nbgrader's Validate button (``make lab``).

A learner gets that button and nothing else of nbgrader's: the lists of assignments and courses need
an exchange folder, which this course does not have. An instructor (``--instructor``, ``make lab
INSTRUCTOR=1``) gets the whole course folder, the formgrader, and the panel that marks cells as
answers and tests. Neither JupyterLab asks another site for news.

Further arguments go to JupyterLab: ``python -m tools.lab --no-browser --port 8890``.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = Path(__file__).resolve().parent / "jupyter"

WELCOME = """\
Your work is saved in exercises/, in the notebooks themselves. The Validate button runs a notebook's
tests as they stand in it; hidden tests run when it is graded. To start one over: git restore
exercises/NAME. This page stays open until you press Ctrl-C here, twice.
"""


def environment(who: str) -> dict[str, str]:
    """The environment with our settings for JupyterLab in front of the user's own.

    Args:
        who: ``learner`` or ``instructor``.
    """
    others = os.environ.get("JUPYTER_CONFIG_PATH")
    ours = str(SETTINGS / who)
    return {**os.environ, "JUPYTER_CONFIG_PATH": f"{ours}{os.pathsep}{others}" if others else ours}


def command(folder: Path, arguments: list[str]) -> list[str]:
    """JupyterLab on a folder, with further arguments passed on."""
    return [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder}", *arguments]


def main(arguments: list[str]) -> int:
    """Start JupyterLab in place of this process; return 2 if there is nothing to open."""
    instructor = "--instructor" in arguments
    rest = [argument for argument in arguments if argument != "--instructor"]
    folder = ROOT if instructor else ROOT / "exercises"
    if not folder.is_dir():
        print(f"there is no {folder.name}/ yet: run `make exercises`", file=sys.stderr)
        return 2
    print(WELCOME, flush=True)
    # nbgrader's extensions look for nbgrader_config.py in the current folder.
    os.chdir(ROOT)
    who = "instructor" if instructor else "learner"
    os.execve(sys.executable, command(folder, rest), environment(who))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
