"""A JupyterHub with this course: learners fetch, submit and read feedback; instructors grade.

What differs from place to place stands in one file, ``hub.toml``, whose path is in the environment
variable ``COURSE_HUB`` (deploy/hub/hub.example.toml says what is in it). ``docs/hub.md`` is the way
from an empty machine to a running hub; ``make hub`` tries it on this machine with people that do
not exist.

- Learners have a server of their own each, with *Validate* and the list of assignments.
- The formgrader runs as a service of the hub, in the course folder, under the account that owns
  it. Instructors are let in, nobody else. Its name is the course's, as nbgrader wants it.
- Both reach the exchange, a folder with nbgrader's own permissions.

A learner runs what they like on their own server, and sends pages from it to other people's
browsers. So each server and the formgrader have a domain of their own, and what one of them
may do at the hub is listed here.
"""

import atexit
import os
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

c = get_config()  # noqa: F821 - JupyterHub provides it

COURSE = "attention-position-cache"
PATIENCE = 180  # seconds that a server has to start
HERE = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent
settings = tomllib.loads(Path(os.environ["COURSE_HUB"]).read_text(encoding="utf-8"))
trial = settings.get("trial", False)
state = Path(settings["state"])
people = sorted({*settings["instructors"], *settings["learners"]})
domain = settings.get("domain", "")
secure = domain.startswith("https://")
if not (secure or (trial and domain)):
    raise ValueError(
        'hub.toml needs the hub\'s public address, as in domain = "https://hub.example.edu": '
        'every server gets a domain of its own below it (docs/hub.md, "The domains")'
    )
if both := sorted({*settings["instructors"]} & {*settings["learners"]}):
    raise ValueError(f"{', '.join(both)}: instructor and learner at once; name each person once")

# --- the hub itself
private = state / "private"  # tokens and cookies: for the hub's own eyes
private.mkdir(parents=True, exist_ok=True)
private.chmod(0o700)
c.JupyterHub.db_url = f"sqlite:///{private / 'hub.sqlite'}"
c.JupyterHub.cookie_secret_file = str(private / "cookie_secret")
c.JupyterHub.bind_url = f"http://{settings.get('ip', '127.0.0.1')}:{settings['port']}"
c.JupyterHub.hub_port = settings.get("hub_port", 801)
c.JupyterHub.cleanup_servers = True
# To a browser, pages of one domain are one site: a script in one can act in all others.
c.JupyterHub.subdomain_host = domain
c.JupyterHub.cookie_host_prefix_enabled = secure  # no domain can set another's cookies
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{settings.get('proxy_port', 802)}"
c.ConfigurableHTTPProxy.pid_file = str(private / "proxy.pid")
c.ConfigurableHTTPProxy.command = [settings["proxy"]]

# --- who may do what. Lists in a role replace those that the hub remembers, so that a name that is
# taken out of hub.toml loses its rights; groups only grow, and grant nothing.
admins = settings.get("admins", [])
c.Authenticator.allowed_users = {*people, *admins}
c.Authenticator.allow_existing_users = False
c.JupyterHub.load_groups = {
    f"formgrade-{COURSE}": {"users": settings["instructors"]},
    f"nbgrader-{COURSE}": {"users": settings["learners"]},
}
c.JupyterHub.load_roles = [
    {"name": "admin", "users": admins},
    {
        "name": f"formgrade-{COURSE}",
        "users": settings["instructors"],
        "groups": [],
        "scopes": [
            f"access:services!service={COURSE}",
            "list:services",
            f"read:services!service={COURSE}",
        ],
    },
    # Whatever runs on a server has its token. Besides JupyterHub's own two scopes, nbgrader asks
    # which groups its owner is in; an instructor's or an admin's rights do not come with it.
    {
        "name": "server",
        "scopes": [
            "users:activity!user",
            "access:servers!server",
            "read:users:name!user",
            "read:users:groups!user",
        ],
    },
]


# --- the servers' settings: copied to where their owners can read them
def public(name: str) -> str:
    """The folder with the settings of one kind of server, for ``JUPYTER_CONFIG_PATH``."""
    target = state / "settings" / name
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(HERE / name, target)
    for path in (state, target.parent, target, *target.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return str(target)


shared = public("shared")
path = os.pathsep.join([str(BIN), os.environ.get("PATH", os.defpath)])
exchange = {"COURSE_EXCHANGE": settings["exchange"], "PATH": path}
if trial:
    exchange["COURSE_TRIAL"] = "1"
arguments = [
    "--ConnectionFileMixin.transport=ipc",  # all accounts of a machine can read from its TCP ports
    f"--HubOAuth.cookie_host_prefix_enabled={secure}",  # the hub tells servers, but not services
    *(["--allow-root"] if trial and os.geteuid() == 0 else []),
]

# --- learners' servers
c.Spawner.cmd = [str(BIN / "jupyterhub-singleuser")]
c.Spawner.default_url = "/lab"
c.Spawner.args = arguments
# Where a whole class begins at once, a server is slow; JupyterHub would wait for half a minute.
c.Spawner.start_timeout = c.Spawner.http_timeout = PATIENCE
c.Spawner.environment = {
    **exchange,
    "JUPYTER_CONFIG_PATH": os.pathsep.join([public("learner"), shared]),
}
if trial:
    # Everybody is you, with a folder each; so nbgrader is told who it is working for.
    c.JupyterHub.spawner_class = "simple"
    c.SimpleLocalProcessSpawner.home_dir_template = str(state / "homes" / "{username}")
    c.JupyterHub.authenticator_class = "dummy"
    c.DummyAuthenticator.password = settings["password"]
    c.Spawner.environment["COURSE_LEARNER"] = lambda spawner: spawner.user.name
    # The path of a socket may have 107 bytes, and that of a trial's folder is longer.
    runtime = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, runtime, ignore_errors=True)
    c.Spawner.environment["JUPYTER_RUNTIME_DIR"] = lambda spawner: f"{runtime}/{spawner.user.name}"

# --- the formgrader, a service that all instructors share
service = {
    "name": COURSE,
    "url": f"http://127.0.0.1:{settings.get('service_port', 9999)}",
    "command": [
        str(BIN / "jupyterhub-singleuser"),
        f"--ServerApp.root_dir={settings['course']}",
        *arguments,
    ],
    "cwd": settings["course"],
    "timeout": PATIENCE,  # the hub ends itself where the service is later than that
    "oauth_no_confirm": True,  # the hub's own: nobody need be asked whether it may know their name
    "environment": {
        **exchange,
        "JUPYTER_CONFIG_PATH": os.pathsep.join([public("grader"), shared]),
        "JUPYTERHUB_DEFAULT_URL": "/lab",
    },
}
if trial:
    service["environment"]["HOME"] = str(state / "homes" / "grader")
    service["environment"]["JUPYTER_RUNTIME_DIR"] = f"{runtime}/grader"
    (state / "homes" / "grader").mkdir(parents=True, exist_ok=True)
if settings.get("grader"):
    service["user"] = settings["grader"]
c.JupyterHub.services = [service]
