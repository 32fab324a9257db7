"""What a sandbox holds when submissions may use a GPU, as far as that shows without one."""

import os
import resource
import stat
from dataclasses import asdict

import pytest

from grading.runner import forkserver, sandbox
from grading.runner.job import Limits

NODES = ["nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "kfd"]
FOLDERS = ["nvidia-caps", "dri"]
OTHERS = ["null", "sda", "mem", "kvm"]


@pytest.fixture
def machine(tmp_path):
    """A /dev with a GPU's nodes in it, and others."""
    for name in [*NODES, *OTHERS]:
        path = tmp_path / name
        if os.geteuid() == 0:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))  # as /dev/null
        else:
            path.touch()
    for name in FOLDERS:
        (tmp_path / name).mkdir()
    return tmp_path


def _binds(words: list[str]) -> list[tuple[str, str]]:
    binds = [(words[at + 1], words[at + 2]) for at, it in enumerate(words) if it == "--dev-bind"]
    return [pair for pair in binds if pair != ("/dev/null", "/dev/zero")]


def test_a_gpus_devices_are_let_in_when_asked_for_and_nothing_else(machine, monkeypatch):
    devices = sandbox.devices(machine)
    assert {path.name for path in devices} == {*NODES, *FOLDERS}
    monkeypatch.setattr(sandbox, "devices", lambda: devices)
    words = sandbox.command(Limits(), info=3, calls=4, root=True, gpu=True)
    assert _binds(words) == [(str(path), str(path)) for path in devices]
    # After the new /dev, which would hide them, and before it is shut.
    assert words.index("--dev") < words.index("--dev-bind") < words.index("--remount-ro")
    assert not _binds(sandbox.command(Limits(), info=3, calls=4, root=True))


@pytest.mark.parametrize("gpu", [False, True])
def test_a_sandbox_has_the_devices_and_they_open(machine, monkeypatch, gpu):
    monkeypatch.setattr(sandbox, "devices", lambda: [machine / "nvidia0"])
    outer = sandbox.Bubblewrap(Limits(), root=os.geteuid() == 0, gpu=gpu)
    try:
        inside = f"/proc/{outer.pid}/root{machine / 'nvidia0'}"
        assert os.path.lexists(inside) is gpu
        if gpu:
            os.close(os.open(inside, os.O_RDWR))  # a mount that bars devices would refuse
    finally:
        outer.end()


def test_the_place_where_nbgrader_puts_an_exchange_is_not_seen(monkeypatch, tmp_path):
    python = tmp_path / "python"
    exchange = python / "share" / "nbgrader"
    (exchange / "exchange").mkdir(parents=True)
    monkeypatch.setattr(sandbox, "EXCHANGE", str(exchange))
    usual = sandbox.python_folders()
    monkeypatch.setattr(sandbox, "python_folders", lambda: [*usual, str(python)])
    outer = sandbox.Bubblewrap(Limits(), root=os.geteuid() == 0)
    try:
        inside = f"/proc/{outer.pid}/root{exchange}"
        assert (os.path.isdir(inside), os.listdir(inside)) == (True, [])
    finally:
        outer.end()


def test_address_space_is_bounded_but_for_a_gpus_driver():
    setting = asdict(Limits()) | {"gpu": False}
    assert resource.RLIMIT_AS in forkserver._spans(setting)
    spans = forkserver._spans(setting | {"gpu": True})
    assert resource.RLIMIT_AS not in spans
    assert resource.RLIMIT_FSIZE in spans
