"""Grading through a real scheduler and two workers, one of which is killed in the middle.

They speak TLS with certificates, as grading/README.md says that a cluster has to.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from certipy import Certipy
from course_folder import RIGHT, ROOT, Folder, answers, source

from grading.runner import pool

SLOW = "import time\ntime.sleep(0.4)\n" + RIGHT["double"]


def _start(words: list[str], root: Path) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "distributed.cli." + words[0], *words[1:]],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.fixture
def certificates(tmp_path):
    """A key and a certificate for everybody, in dask's own environment variables."""
    store = Certipy(store_dir=str(tmp_path))
    authority = store.create_ca("authority")["files"]
    files = store.create_signed_pair("dask", "authority")["files"]
    names = {"REQUIRE_ENCRYPTION": "True", "TLS__CA_FILE": authority["cert"]}
    for part in ("SCHEDULER", "WORKER", "CLIENT"):
        names |= {f"TLS__{part}__KEY": files["key"], f"TLS__{part}__CERT": files["cert"]}
    config = pytest.importorskip("dask", reason="the extra `cluster` is not installed").config
    with pytest.MonkeyPatch.context() as patched:
        for name, value in names.items():
            patched.setenv(f"DASK_DISTRIBUTED__COMM__{name}", str(value))
        config.refresh()
        yield
    config.refresh()


@pytest.fixture
def cluster(certificates, tmp_path_factory):
    """A scheduler's address, and two workers' processes."""
    root = tmp_path_factory.mktemp("cluster")
    scheduler_file = root / "scheduler.json"
    words = ["dask_scheduler", "--port", "0", "--no-dashboard", "--host", "127.0.0.1"]
    words += ["--protocol", "tls"]
    started = [_start([*words, "--scheduler-file", str(scheduler_file)], root)]
    end = time.monotonic() + 120
    while not scheduler_file.exists() or not scheduler_file.read_text():
        assert started[0].poll() is None, "the scheduler ended"
        assert time.monotonic() < end, "no scheduler after 120 s"
        time.sleep(0.1)
    address = json.loads(scheduler_file.read_text())["address"]
    for number in range(2):
        folder = root / f"worker-{number}"
        words = ["dask_worker", address, "--no-nanny", "--nthreads", "1", "--no-dashboard"]
        started.append(_start([*words, "--local-directory", str(folder)], root))
    yield address, started[1:]
    for process in reversed(started):
        process.kill()
        process.wait()


@pytest.mark.long
def test_a_worker_dies_and_the_gradebook_is_the_same(cluster, tmp_path):
    address, workers = cluster
    # Without a certificate nobody reaches the scheduler, where they could run what they like.
    assert address.startswith("tls://")
    plain = {name: text for name, text in os.environ.items() if not name.startswith("DASK_")}
    for tried in (address, address.replace("tls:", "tcp:")):
        code = f"import distributed; distributed.Client({tried!r}, timeout=5)"
        words = [sys.executable, "-c", code]
        assert subprocess.run(words, env=plain, stderr=subprocess.DEVNULL).returncode != 0, tried
    folder = Folder(tmp_path)
    folder.publish(source())
    for number in range(12):
        folder.hand_in(f"slow-{number:02d}", answers(double=SLOW, shout=RIGHT["shout"]))
    folder.hand_in("partial", answers(double=RIGHT["double"]))
    folder.hand_in("exits", answers(double="import os\nos._exit(0)", shout=RIGHT["shout"]))
    folder.hand_in("cut", b"{")
    expected = {f"slow-{number:02d}": 5.0 for number in range(12)}
    expected |= {"partial": 2.0, "exits": 3.0, "cut": 0.0}
    killed = []

    def kill_one():
        end = time.monotonic() + 200
        while time.monotonic() < end:
            if len(list((tmp_path / "feedback").glob("slow-*"))) >= 2:
                os.kill(workers[0].pid, signal.SIGKILL)
                killed.append(len(list((tmp_path / "feedback").glob("slow-*"))))
                return
            time.sleep(0.02)

    watcher = threading.Thread(target=kill_one)
    watcher.start()
    code = folder.grade("--engine", "dask", "--scheduler", address, "--jobs", "2")
    watcher.join()
    assert killed, "no worker was killed"
    assert killed[0] < 12, "the batch was over before"
    assert code == 0
    assert folder.gradebook() == expected
    # The same, here, without a cluster.
    assert folder.grade("--force") == 0
    assert folder.gradebook() == expected


def test_dask_without_an_address_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(pool, "CONNECT_SECONDS", 1)
    folder = Folder(tmp_path)
    folder.publish(source())
    folder.hand_in("cut", b"{")
    assert folder.grade("--engine", "dask") == 2
    assert "--engine dask needs --scheduler ADDRESS" in capsys.readouterr().err
    assert folder.grade("--engine", "dask", "--scheduler", "tcp://127.0.0.1:1") == 2
    assert "refused: " in capsys.readouterr().err
