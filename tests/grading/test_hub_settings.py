"""The hub's settings without a hub: who may do what, and what a real one must not have."""

import json
import os
import subprocess
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


def roles(config: Config) -> dict[str, dict]:
    return {role["name"]: role for role in config.JupyterHub.load_roles}


def test_only_instructors_reach_the_formgrader(tmp_path, monkeypatch):
    config = configured(tmp_path, monkeypatch)
    hubs = config.JupyterHub
    assert hubs.load_groups[GRADERS] == {"users": EXAMPLE["instructors"]}
    assert hubs.load_groups[LEARNERS] == {"users": EXAMPLE["learners"]}
    reach = [role for role in hubs.load_roles if "service" in str(role.get("scopes"))]
    # Lists in a role are exact. A group keeps those who were in it once, so no group has a role.
    assert [(role["users"], role["groups"]) for role in reach] == [(EXAMPLE["instructors"], [])]
    assert not any(role.get("groups") for role in hubs.load_roles)
    assert set(roles(config)) == {"admin", "server", GRADERS}
    assert roles(config)["admin"] == {"name": "admin", "users": EXAMPLE["admins"]}
    assert config.Authenticator.allowed_users == {*EXAMPLE["instructors"], *EXAMPLE["learners"]}
    assert config.Authenticator.allow_existing_users is False
    (service,) = hubs.services
    assert service["user"] == EXAMPLE["grader"]


ASK = """
import asyncio, json, sys
from jupyterhub import orm, scopes
from jupyterhub.app import JupyterHub

hub = JupyterHub()
asyncio.run(hub.initialize(["--config", sys.argv[1], "--log-level=40"]))
print(json.dumps({
    user.name: [*scopes.get_scopes_for(user)] * (user.name in hub.authenticator.allowed_users)
    for user in hub.db.query(orm.User)
}))
"""


def test_a_name_that_leaves_the_settings_loses_its_rights(tmp_path, monkeypatch):
    """JupyterHub itself reads the settings twice, and remembers in between."""
    pytest.importorskip("jupyterhub", reason="the extra `hub` is not installed")
    monkeypatch.setattr(hub, "proxy", lambda folder: folder / "proxy")
    settings = hub.prepare(tmp_path, course=tmp_path)
    rights = []
    for more in (
        {"admins": ["ada"]},
        {"instructors": [], "learners": ["ada", "ben"]},  # cleo left, and ada teaches no more
    ):
        (tmp_path / "hub.toml").write_text(hub.toml({**settings, **more}))
        words = [sys.executable, "-c", ASK, str(hub.DEPLOY / "jupyterhub_config.py")]
        path = hub.environment(tmp_path)
        done = subprocess.run(words, cwd=tmp_path, env=path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        rights.append({name: set(held) for name, held in json.loads(done.stdout).items()})
    before, after = rights
    formgrader = f"access:services!service={hub.SERVICE}"
    assert "admin:users" in before["ada"]
    assert "access:services" in before["ada"]
    assert "admin:users" not in after["ada"] | before["ben"]
    for held in (before["ben"], after["ada"], after["ben"]):
        assert held
        assert not {formgrader, "access:services", "access:servers"} & held
    assert before["cleo"]
    assert after["cleo"] == set()


def test_a_server_has_its_owners_name_and_groups_and_no_other_right(tmp_path, monkeypatch):
    """Whatever runs on a server has its token: a notebook that an admin opens, for instance."""
    scopes = set(roles(configured(tmp_path, monkeypatch))["server"]["scopes"])
    known = pytest.importorskip("jupyterhub.roles", reason="the extra `hub` is missing")
    (default,) = [role for role in known.get_default_roles() if role["name"] == "server"]
    added = scopes - set(default["scopes"])
    assert added == {"read:users:name!user", "read:users:groups!user"}


def test_each_server_has_a_domain_of_its_own(tmp_path, monkeypatch):
    config = configured(tmp_path, monkeypatch)
    assert config.JupyterHub.subdomain_host == EXAMPLE["domain"]
    assert config.JupyterHub.cookie_host_prefix_enabled is True
    app = pytest.importorskip("jupyterhub.app", reason="the extra `hub` is missing")
    assert {"subdomain_host", "cookie_host_prefix_enabled"} <= {*app.JupyterHub.class_trait_names()}
    for domain in ("", "http://hub.example.edu", "hub.example.edu"):
        with pytest.raises(ValueError, match="domain of its own"):
            configured(tmp_path, monkeypatch, domain=domain)


def test_what_listens_on_the_machine_is_out_of_learners_reach(tmp_path, monkeypatch):
    """Ports that root uses cannot be taken by others, and kernels use none."""
    config = configured(tmp_path, monkeypatch)
    ports = [config.JupyterHub.bind_url, config.ConfigurableHTTPProxy.api_url]
    ports = [int(url.rpartition(":")[2]) for url in ports] + [config.JupyterHub.hub_port]
    assert max(ports) < 1024
    assert len(set(ports)) == 3
    (service,) = config.JupyterHub.services
    for words in (config.Spawner.args, service["command"]):
        assert "--ConnectionFileMixin.transport=ipc" in words
    for kind in ("grader", "learner"):
        page = json.loads((hub.DEPLOY / kind / "labconfig" / "page_config.json").read_text())
        # While a notebook is debugged, debugpy waits at a TCP port for whoever connects.
        assert page["disabledExtensions"]["@jupyterlab/debugger-extension"] is True


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
    for names in (config.Spawner.environment, service["environment"]):
        assert not {"COURSE_LEARNER", "COURSE_TRIAL", "JUPYTER_RUNTIME_DIR"} & {*names}


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
    # The course's folder is there before anybody else can make it.
    grader = EXAMPLE["grader"]
    made = f"install -d -o {grader} -g {grader} -m 755 {EXAMPLE['exchange']}/{hub.SERVICE}\n"
    assert made in DOCUMENT
    assert "useradd --create-home -K HOME_MODE=0700 ben" in DOCUMENT
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
    output = capsys.readouterr().out
    assert str(tmp_path / "trial") in output
    port = settings["port"]
    assert f"http://hub.localhost:{port}\n" in output
    assert f"http://{hub.SERVICE}--service.hub.localhost:{port}/services/{hub.SERVICE}/\n" in output


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
