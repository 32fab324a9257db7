"""Open JupyterLab on the learner's own folder ``work/``, with nbgrader's Validate (``make lab``).

The folder holds the exercises that were started (tools/start.py) and a copy of each chapter, so
that neither running nor changing one touches what git keeps; the copy's text is plain Markdown
(tools/plain.py). ``make lab EXERCISE=05-rope`` starts that exercise, if it was not yet, and opens
it; an instructor gets its source in ``solutions/``.

A learner gets the button and nothing else of nbgrader's: the lists of assignments and courses need
an exchange folder, which a single machine does not have (docs/hub.md has a set-up that does). An
instructor (``--instructor``, ``make lab INSTRUCTOR=1``) gets the whole course folder, the
formgrader, and the panel that marks cells as answers and tests. Neither JupyterLab asks another
site for news. Which tabs were open is kept for this course alone (``_build/lab``): JupyterLab by
itself would open those of the last course again. Kernels get one thread, as in
:func:`lib.timing.one_thread`; ``OMP_NUM_THREADS=4 make lab`` gives them four.

Further arguments go to JupyterLab: ``make lab OPTIONS="--no-browser --port=8890"``.
"""

import argparse
import os
import sys
from pathlib import Path

from tools import ask, plain, start

SETTINGS = Path(__file__).resolve().parent / "jupyter"
RUN = str(start.ROOT / "tools" / "run.py")
WORKSPACES = start.ROOT / "_build" / "lab"

WELCOME = """\
Your folder is work/: nothing overwrites what you write there, and git leaves it alone.
  exercises: {started}
  chapters:  copies to read, run and change, in work/chapters/
The Validate button above an exercise runs the tests that you see; `make check EXERCISE=NAME` says
in words how far you are. JupyterLab runs until you press Ctrl-C here, twice.
"""
NONE_YET = (
    "none yet; `make start EXERCISE=01-attention` in another terminal puts the first one there"
)


def environment(role: str) -> dict[str, str]:
    """The environment with our settings for JupyterLab in front of the user's own.

    The number of threads and the place for workspaces are those that the user has set, if any.

    Args:
        role: ``learner`` or ``instructor``.
    """
    others = os.environ.get("JUPYTER_CONFIG_PATH")
    ours = str(SETTINGS / role)
    return {
        "OMP_NUM_THREADS": "1",
        "JUPYTERLAB_WORKSPACES_DIR": str(WORKSPACES / role),
        **os.environ,
        "JUPYTER_CONFIG_PATH": f"{ours}{os.pathsep}{others}" if others else ours,
    }


def command(folder: Path, arguments: list[str]) -> list[str]:
    """JupyterLab on a folder, with further arguments passed on; until it is up, Ctrl-C ends it."""
    return [sys.executable, RUN, "jupyterlab", f"--ServerApp.root_dir={folder}", *arguments]


def prepare(arguments: list[str]) -> list[str]:
    """Make everything ready, and return the command that starts JupyterLab.

    Args:
        arguments: those of the command line. ``--instructor`` opens the course folder and not the
            learner's, ``--exercise NAME`` opens an exercise there, and starts it for a learner. All
            others are JupyterLab's.

    Raises:
        start.Problem: if there is no such exercise, or none at all.
    """
    parser = argparse.ArgumentParser(prog="tools.lab", add_help=False, allow_abbrev=False)
    parser.add_argument("--instructor", action="store_true")
    parser.add_argument("--exercise", default="")
    options, rest = parser.parse_known_args(arguments)
    slug = ask.lab(options.exercise)
    folder, notebooks = (start.ROOT, "solutions/") if options.instructor else (start.WORK, "")
    if slug:
        rest.append(f"--LabApp.default_url=/lab/tree/{notebooks}{slug}/{slug}.ipynb")
    if not options.instructor:
        prepare_work(slug)
    return command(folder, rest)


def prepare_work(slug: str | None) -> None:
    """Make the learner's folder ready, with an exercise if one is named, and say what is in it."""
    if slug:
        start.start(slug)
    start.WORK.mkdir(exist_ok=True)
    changed = start.chapters(plain.notebook)
    print(WELCOME.format(started=", ".join(start.started()) or NONE_YET), flush=True)
    for name in changed:
        print(
            f"work/chapters/{name} has your changes and was kept; the book has a newer one.\n"
            "To get that, delete or rename yours, and say `make lab` again.",
            flush=True,
        )


def main(arguments: list[str]) -> int:
    """Start JupyterLab in place of this process; return 2 if there is nothing to open."""
    try:
        jupyterlab = prepare(arguments)
    except (start.Problem, OSError) as problem:
        print(problem, file=sys.stderr)
        return 2
    # nbgrader's extensions look for nbgrader_config.py in the current folder.
    os.chdir(start.ROOT)
    role = "instructor" if "--instructor" in arguments else "learner"
    os.execve(sys.executable, jupyterlab, environment(role))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
