"""The hub's settings without a hub: who may do what, and what a real one must not have."""

import os
import sys
import tomllib
from pathlib import Path

import pytest
from traitlets.config import Config

from tools import hub, start

EXAMPLE = tomllib.loads((hub.DEPLOY / "hub.example.toml").read_text(encoding="utf-8"))
DOCUMENT = (hub.ROOT / "docs" / "hub.md").read_text(encoding="utf-8")
GRADERS, LEARNERS = f"formgrade-{hub.SERVICE}", f"nbgrader-{hub.SERVICE}"


def configured(folder: Path, monkeypatch, **more) -> Config:
    """What JupyterHub gets from the example's settings, with others in their place."""
    settings = {**EXAMPLE, "state": str(folder / "state"), **more}
    (folder / "hub.toml").write_text(hub.toml(settings))
    monkeypatch.setenv("COURSE_HUB", str(folder / "hub.toml"))
    path = hub.DEPLOY / "jupyterhub_config.py"
    config = Config()
    code = compile(path.read_text(encoding="utf-8"), str(path), "exec")
    exec(code, {"get_config": lambda: config, "__file__": str(path)})
    return config


def test_only_instructors_reach_the_formgrader(tmp_path, monkeypatch):
    config = configured(tmp_path, monkeypatch)
    hubs = config.JupyterHub
    assert hubs.load_groups[GRADERS] == {"users": EXAMPLE["instructors"]}
    assert hubs.load_groups[LEARNERS] == {"users": EXAMPLE["learners"]}
    reach = [role for role in hubs.load_roles if "service" in str(role["scopes"])]
    assert [role["groups"] for role in reach] == [[GRADERS]]
    # A server may do what its owner may, and nothing is granted to learners besides.
    others = [role for role in hubs.load_roles if role not in reach]
    assert others == [{"name": "server", "scopes": ["inherit"]}]
    people = {*EXAMPLE["instructors"], *EXAMPLE["learners"]}
    assert config.Authenticator.allowed_users == people
    assert config.Authenticator.admin_users == set()
    (service,) = hubs.services
    assert service["user"] == EXAMPLE["grader"]


def test_nobody_is_instructor_and_learner_at_once(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="ben: instructor and learner at once"):
        configured(tmp_path, monkeypatch, instructors=["ada", "ben"])


def test_a_real_hub_has_nothing_of_the_trial(tmp_path, monkeypatch):
    config = configured(tmp_path, monkeypatch)
    assert "spawner_class" not in config.JupyterHub
    assert "authenticator_class" not in config.JupyterHub
    assert "DummyAuthenticator" not in config
    assert config.JupyterHub.bind_url.startswith("http://127.0.0.1:")
    (service,) = config.JupyterHub.services
    for started in (config.Spawner.args, service["command"]):
        assert "--allow-root" not in started
    assert "COURSE_LEARNER" not in config.Spawner.environment


def test_a_slow_machine_is_waited_for(tmp_path, monkeypatch):
    """As JupyterHub itself reads the settings: a name that it does not know would be no setting."""
    config = configured(tmp_path, monkeypatch)
    (service,) = config.JupyterHub.services
    waits = [service["timeout"], config.Spawner.start_timeout, config.Spawner.http_timeout]
    assert min(waits) >= 120
    app = pytest.importorskip("jupyterhub.services.service", reason="the extra `hub` is missing")
    assert "timeout" in app.Service.class_trait_names()


def test_what_is_secret_stands_where_the_hub_alone_may_look(tmp_path, monkeypatch):
    config = configured(tmp_path, monkeypatch)
    state = tmp_path / "state"
    private = state / "private"
    assert private.stat().st_mode & 0o077 == 0
    assert Path(config.JupyterHub.cookie_secret_file).parent == private
    assert config.JupyterHub.db_url == f"sqlite:///{private}/hub.sqlite"
    assert {path.name for path in state.iterdir()} == {"private", "settings"}


def test_in_the_exchange_nobody_renames_what_the_grader_made(tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "proxy", lambda folder: folder / "proxy")
    settings = hub.prepare(tmp_path, course=tmp_path / "course")
    assert Path(settings["exchange"]).stat().st_mode & 0o7777 == 0o1777
    assert f"chmod 1777 {EXAMPLE['exchange']}\n" in DOCUMENT
    assert (tmp_path / "hub.toml").stat().st_mode & 0o077 == 0


def test_root_runs_nothing_that_the_grader_may_write():
    (start,) = [line for line in DOCUMENT.splitlines() if line.startswith("COURSE_HUB=")]
    home = str(Path(EXAMPLE["course"]).parent)
    assert home not in start
    # Copies of the course that others could read would show them the solutions.
    copies = [line for line in DOCUMENT.splitlines() if line.startswith("cp -r") and home in line]
    assert copies == [f'cp -r {EXAMPLE["course"]}/. "$course"']
    assert "course=$(mktemp -d)\n" in DOCUMENT


def test_make_hub_takes_a_folder_however_it_is_named(tmp_path, monkeypatch, capsys):
    started = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hub, "proxy", lambda folder: folder / "proxy")
    monkeypatch.setattr(os, "execve", lambda *what: started.append(what))
    (tmp_path / "trial").mkdir()
    hub.main(["--folder", "trial"])
    ((program, _, environment),) = started
    assert program == sys.executable
    file = Path(environment["COURSE_HUB"])
    assert file == tmp_path / "trial" / "hub.toml"
    settings = tomllib.loads(file.read_text())
    for name in ("course", "exchange", "state", "proxy"):
        assert Path(settings[name]).is_absolute(), name
    assert str(tmp_path / "trial") in capsys.readouterr().out


def test_a_proxy_that_did_not_install_is_tried_again(tmp_path, monkeypatch):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("node", "npm"):
        (programs / name).write_text("#!/bin/sh\necho no network >&2\nexit 1\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    old = tmp_path / "proxy" / "node_modules" / ".bin" / "configurable-http-proxy"
    old.parent.mkdir(parents=True)
    old.touch()  # of another version
    for _ in range(2):
        with pytest.raises(start.Problem, match="npm could not install the proxy:\nno network"):
            hub.proxy(tmp_path / "proxy")
