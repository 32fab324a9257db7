"""A JupyterLab for tests: started as ``tools/lab.py`` does, in a home of its own."""

import secrets
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tools import hub, lab


@contextmanager
def running(
    command: Callable[[list[str]], list[str]], who: str, home: Path, cwd: Path, **variables: str
) -> Iterator[tuple[str, str]]:
    """The address and the token of a JupyterLab that answers.

    Args:
        command: from JupyterLab's options for a test to the whole command.
        who: ``learner`` or ``instructor``.
        home: an empty folder for Jupyter's own files and the log.
        cwd: where it is started.
        variables: further variables of its environment.
    """
    (port,) = hub.free_ports(1)
    token = secrets.token_hex(16)
    options = ["--no-browser", f"--port={port}", "--ServerApp.port_retries=0", "--allow-root"]
    places = {f"JUPYTER_{what}_DIR": str(home / what) for what in ("CONFIG", "DATA", "RUNTIME")}
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            command(options),
            cwd=cwd,
            env={**lab.environment(who), **places, "JUPYTER_TOKEN": token, **variables},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait(f"{address}/api?token={token}", process, home / "log")
        yield address, token
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(address: str, process: subprocess.Popen, log: Path) -> None:
    for _ in range(240):
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            assert process.poll() is None, log.read_text()
            time.sleep(0.25)
    pytest.fail(f"JupyterLab did not answer in a minute:\n{log.read_text()}")
