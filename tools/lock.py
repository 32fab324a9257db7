"""Write ``requirements.lock`` anew: the newest versions that ``pyproject.toml`` admits.

``python -m tools.lock`` installs every extra into a fresh temporary environment, without the old
lock, and records what it got. ``--keep`` holds the versions already locked and adds or removes
only what ``pyproject.toml`` asks for.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.env import EXTRAS, LOCK, ROOT

TORCH = "torch==2.13.0"  # newer builds are not CPU-only everywhere; raise it by hand
HEADER = """\
# Every version that `make` installs. Written by `make lock`; used as constraints, so that a target
# installs only the extras it needs (tools/env.py). No hashes: the same version of torch is another
# file on another platform.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", action="store_true", help="keep the versions already locked")
    constraints = ["--constraint", str(LOCK)] if parser.parse_args().keep else []
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "venv" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", python.parent.parent], check=True)
        pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--upgrade", "pip", "setuptools"], check=True)
        target = f"{ROOT}[{','.join(EXTRAS)}]"
        command = [*pip, "install", *constraints, "--no-build-isolation", TORCH, target]
        subprocess.run(command, check=True)
        freeze = subprocess.run(
            [*pip, "freeze", "--all", "--exclude", "attention-position-cache"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    # A local version such as 2.13.0+cpu names one platform's file.
    lines = [line.split("+")[0] for line in freeze.splitlines() if "==" in line]
    LOCK.write_text(HEADER + "\n".join(sorted(lines, key=str.lower)) + "\n")
    print(f"{LOCK.name}: {len(lines)} packages")


if __name__ == "__main__":
    main()
