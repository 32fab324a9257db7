"""Try a JupyterHub with this course on this machine: ``make hub``.

One instructor, ``ada``, and two learners, ``ben`` and ``cleo``, who are all you: each has a folder
of their own below ``_build/hub``, and the course is a copy, so yours is not touched. It
is the hub of ``deploy/hub``, with these people in place of accounts, and listens on this machine
alone; ``docs/hub.md`` is about a real one.

The proxy that JupyterHub needs is a Node program: it is installed below ``_build/hub`` by npm, in
the version of ``deploy/hub/package-lock.json``.
"""

import argparse
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from tools import ask, start

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy" / "hub"
FOLDER = ROOT / "_build" / "hub"
INSTRUCTORS, LEARNERS = ("ada",), ("ben", "cleo")
COURSE = ("nbgrader_config.py", "grading", "solutions", "exercises")
SERVICE = "attention-position-cache"


def proxy(folder: Path) -> Path:
    """Install the proxy below a folder, unless it is there, and return its program.

    Raises:
        start.Problem: if there is no npm, or it cannot install the proxy.
    """
    program = folder / "node_modules" / ".bin" / "configurable-http-proxy"
    lock = (DEPLOY / "package-lock.json").read_bytes()
    copy = folder / "package-lock.json"
    if program.exists() and copy.is_file() and copy.read_bytes() == lock:
        return program
    for name in ("node", "npm"):
        ask.program(name)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(DEPLOY / name, folder / name)
    done = subprocess.run(
        ["npm", "ci", "--no-fund", "--no-audit"], cwd=folder, capture_output=True, text=True
    )
    if done.returncode:
        copy.unlink()  # incomplete: the next call tries again
        raise start.Problem(f"npm could not install the proxy:\n{done.stderr}")
    return program


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def prepare(folder: Path, port: int | None = None, course: Path | None = None) -> dict:
    """Lay out a trial hub below a folder, and write its ``hub.toml``.

    Args:
        folder: where everything of the hub goes.
        port: where it listens; any free port by default.
        course: the course folder; by default a copy of this course.

    Returns:
        The settings that were written.
    """
    program = proxy(folder / "proxy")
    if course is None:
        course = folder / "course"
        for name in COURSE:
            if (ROOT / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
                shutil.copytree(ROOT / name, course / name, ignore=ignored, dirs_exist_ok=True)
            else:
                course.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, course / name)
    exchange = folder / "exchange"
    exchange.mkdir(exist_ok=True)
    exchange.chmod(0o1777)  # everybody may write, but only rename or delete files of their own
    public, hub, inside, service = free_ports(4)
    port = port or public
    settings = {
        "trial": True,
        "password": secrets.token_urlsafe(9),
        "course": str(course),
        "exchange": str(exchange),
        "state": str(folder / "state"),
        "proxy": str(program),
        "domain": f"http://hub.localhost:{port}",  # browsers find all below localhost here
        "port": port,
        "hub_port": hub,
        "proxy_port": inside,
        "service_port": service,
        "instructors": list(INSTRUCTORS),
        "learners": list(LEARNERS),
    }
    for name in (*INSTRUCTORS, *LEARNERS):
        (folder / "state" / "homes" / name).mkdir(parents=True, exist_ok=True)
    file = folder / "hub.toml"
    file.touch(mode=0o600)
    file.write_text(toml(settings))
    return settings


def toml(settings: dict) -> str:
    """Settings as the text of ``hub.toml``."""
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())


def command() -> list[str]:
    """The command that starts the hub; :func:`environment` points it to its settings."""
    program = [sys.executable, str(ROOT / "tools" / "run.py"), "jupyterhub"]
    return [*program, "--config", str(DEPLOY / "jupyterhub_config.py")]


def environment(folder: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    # The hub's users do not inherit this user's Jupyter settings.
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("JUPYTER")}
    return {**inherited, "COURSE_HUB": str(folder / "hub.toml"), "PATH": path}


def main(arguments: list[str] | None = None) -> int:
    """Start the hub in place of this process; return 2 if something is missing."""
    parser = argparse.ArgumentParser(prog="hub", description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where its files go")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args(arguments)
    folder = options.folder.resolve()
    try:
        settings = prepare(folder, options.port)
    except start.Problem as problem:
        print(problem, file=sys.stderr)
        return 2
    # The hub's own link, under Services, leaves out the port.
    course = settings["domain"].replace("//", f"//{SERVICE}--service.") + f"/services/{SERVICE}/"
    print(
        f"The hub: {settings['domain']}\n"
        f"  learners:    {', '.join(LEARNERS)}\n"
        f"  instructor:  {', '.join(INSTRUCTORS)}, with the course at {course}\n"
        f"  password:    {settings['password']}, for all of them\n"
        f"Its files are in {folder}. Press Ctrl-C to end it.",
        flush=True,
    )
    os.chdir(folder)
    os.execve(sys.executable, command(), environment(folder))


if __name__ == "__main__":
    sys.exit(main())
