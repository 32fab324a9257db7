"""A JupyterHub with an exchange: released, fetched, handed in, collected, graded, returned.

It is started as ``make hub`` starts it, from `deploy/hub`: a hub with its proxy, the formgrader as
a service, and a server for each of two learners. People log in with a browser, and everything goes
through the servers that they get. Only the grading itself is a command, as on a real hub.
"""

import contextlib
import csv
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import nbformat
import psutil
import pytest
from certipy import Certipy

from tools import answers, hub, start

pytest.importorskip("jupyterhub", reason="the extra `hub` is not installed")
sync_api = pytest.importorskip("playwright.sync_api")

NAME = "06-alibi"
COURSE = hub.SERVICE
pytestmark = pytest.mark.long


def address(settings, path: str) -> str:
    """Where a page is: each server and the formgrader have a domain of their own."""
    scheme, domain = settings["domain"].split("://")
    _, kind, *rest = path.split("/")
    owner = {"user": f"{rest[0]}.", "services": f"{rest[0]}--service."}.get(kind, "")
    return f"{scheme}://{owner}{domain}{path}"


def asked(settings, path: str, **headers):
    """The answer to a request that no browser makes; only browsers find the trial's domains."""
    host = urllib.parse.urlsplit(address(settings, path)).netloc
    request = urllib.request.Request(
        f"https://127.0.0.1:{settings['port']}{path}", headers={"Host": host, **headers}
    )
    trusting = ssl._create_unverified_context()
    return urllib.request.urlopen(request, timeout=30, context=trusting)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hub")


@pytest.fixture(scope="module")
def settings(folder):
    try:
        made = hub.prepare(folder)
    except start.Problem as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing))
        pytest.skip(str(missing))
    # With TLS, as a real one: cookies are others there.
    made["domain"] = made["domain"].replace("http:", "https:")
    made["admins"] = ["ada"]  # and yet her server has no such rights
    (folder / "hub.toml").write_text(hub.toml(made))
    store = Certipy(store_dir=str(folder))
    store.create_ca("authority")  # whose own certificate a browser does not take for a server's
    files = store.create_signed_pair("hub", "authority")["files"]
    tls = [f"--JupyterHub.ssl_key={files['key']}", f"--JupyterHub.ssl_cert={files['cert']}"]
    log = folder / "hub.log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [*hub.command(), *tls],
            cwd=folder,
            env=hub.environment(folder),
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        for _ in range(240):
            with contextlib.suppress(OSError):
                asked(made, "/hub/login").close()
                break
            assert process.poll() is None, log.read_text()
            time.sleep(0.5)
        else:
            pytest.fail(f"the hub did not answer in two minutes:\n{log.read_text()}")
        yield made
    finally:
        process.send_signal(signal.SIGTERM)  # it ends its proxy and its servers
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="module")
def chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if program := shutil.which(name):
            with sync_api.sync_playwright() as playwright:
                opened = playwright.chromium.launch(
                    executable_path=program, args=["--no-sandbox", "--disable-gpu"]
                )
                yield opened
                opened.close()
            return
    reason = "there is no Chromium: install it (Debian, Ubuntu: apt-get install chromium)"
    (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


class Person:
    """Somebody in front of a browser, logged in."""

    def __init__(self, browser, settings: dict, name: str):
        self.page = browser.new_context(
            viewport={"width": 1300, "height": 900}, ignore_https_errors=True
        ).new_page()
        self.settings, self.name = settings, name
        self.page.goto(address(settings, "/hub/login?next=/hub/home"))
        self.page.get_by_label("Username").fill(name)
        self.page.get_by_label("Password").fill(settings["password"])
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url("**/hub/home")

    def open(self, path: str) -> int:
        """Go to a page, and return the status with which it was answered."""
        return self.page.goto(address(self.settings, path), timeout=120_000).status

    def ask(self, path: str, body: dict | None = None, method: str = "GET") -> dict:
        """Ask the server of the page that is open, with the browser's own rights."""
        status, text = self.page.evaluate(
            """async ([path, body, method]) => {
                const token = document.cookie.match(/\\b_xsrf=([^;]*)/);
                const headers = {"Content-Type": "application/json", "X-XSRFToken": token?.[1]};
                const data = body && JSON.stringify(body);
                const answer = await fetch(path, {method, headers, body: data});
                return [answer.status, await answer.text()];
            }""",
            [path, body, method],
        )
        assert status < 400, f"{self.name}: {method} {path} gave {status}: {text[:2000]}"
        return json.loads(text) if text else {}


@pytest.fixture(scope="module")
def ben(chromium, settings):
    return Person(chromium, settings, "ben")


@pytest.fixture(scope="module")
def cleo(chromium, settings):
    return Person(chromium, settings, "cleo")


@pytest.fixture(scope="module")
def ada(chromium, settings):
    return Person(chromium, settings, "ada")


def home(settings, name: str) -> Path:
    return Path(settings["state"]) / "homes" / name


def answer(notebook: Path, solution: Path, cells: set[str] | None = None) -> None:
    """Fill in the answers, or some of them, as a learner would."""
    theirs, ours = (nbformat.read(path, as_version=4) for path in (notebook, solution))
    solved = {cell.id: cell.source for cell in ours.cells if cell.id.endswith("-answer")}
    assert solved
    for cell in theirs.cells:
        if cell.id in solved and (cells is None or cell.id in cells):
            cell.source = solved[cell.id]
    nbformat.write(theirs, notebook)


def formgrader(person: Person, call: str, assignment: str = NAME) -> None:
    path = f"/services/{COURSE}/formgrader/api/assignment/{assignment}/{call}"
    done = person.ask(path, {}, "POST")
    assert done["success"], f"{call}: {done}"


def listed(person: Person, status: str) -> list[dict]:
    response = person.ask(f"/user/{person.name}/assignments?course_id={COURSE}")
    assert response["success"], response["value"]
    return [each for each in response["value"] if each["status"] == status]


def act(person: Person, action: str) -> None:
    body = {"course_id": COURSE, "assignment_id": NAME}
    done = person.ask(f"/user/{person.name}/assignments/{action}", body, "POST")
    assert done["success"], done["value"]


def test_from_release_to_feedback_with_two_learners(settings, ada, ben, cleo):
    course = Path(settings["course"])
    solution = course / "solutions" / NAME / f"{NAME}.ipynb"

    # The instructor releases.
    assert ada.open(f"/services/{COURSE}/formgrader") == 200
    formgrader(ada, "assign")
    formgrader(ada, "release")

    # The learners fetch, work, submit.
    for person in (ben, cleo):
        assert person.open(f"/hub/spawn/{person.name}") == 200
        person.page.wait_for_url(f"**/user/{person.name}/lab**", timeout=120_000)
        assert [each["assignment_id"] for each in listed(person, "released")] == [NAME]
        act(person, "fetch")
        fetched = home(settings, person.name) / NAME / f"{NAME}.ipynb"
        assert "BEGIN SOLUTION" not in fetched.read_text()
    notebooks = [home(settings, name) / NAME / f"{NAME}.ipynb" for name in hub.LEARNERS]
    answer(notebooks[0], solution)
    answer(notebooks[1], solution, {"bias-answer"})
    for person in (ben, cleo):
        act(person, "submit")
        assert len(listed(person, "submitted")) == 1

    # The instructor collects and grades, in the sandbox.
    formgrader(ada, "collect")
    assert sorted(path.name for path in (course / "submitted").iterdir()) == ["ben", "cleo"]
    command = [sys.executable, "-m", "grading", NAME]
    done = subprocess.run(command, cwd=course, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    with (course / "reports" / f"grades-{NAME}.csv").open(newline="") as file:
        score = {row["learner"]: float(row["score"]) for row in csv.DictReader(file)}
    full = sum(answers.graded(nbformat.read(solution, as_version=4)).values())
    assert score["ben"] == full
    assert 0 < score["cleo"] < full

    # In the exchange, what was handed in can be put in, and not looked through.
    shared = Path(settings["exchange"]) / COURSE
    assert shared.parent.stat().st_mode & 0o1777 == 0o1777
    assert shared.stat().st_mode & 0o022 == 0
    assert shared.joinpath("inbound").stat().st_mode & 0o044 == 0

    # Feedback goes back to each, and to nobody else.
    formgrader(ada, "release_feedback")
    assert shared.joinpath("feedback").stat().st_mode & 0o066 == 0
    returned = list((Path(settings["exchange"]) / COURSE / "feedback").iterdir())
    assert [path.stat().st_mode & 0o777 for path in returned] == [0o644, 0o644]
    pages = {}
    for person in (ben, cleo):
        act(person, "fetch_feedback")
        (page,) = (home(settings, person.name) / NAME / "feedback").glob(f"*/{NAME}.html")
        pages[person.name] = page.read_text()
        (submitted,) = listed(person, "submitted")
        (submission,) = submitted["submissions"]
        assert submission["has_local_feedback"]
    given = course / "feedback"
    assert pages == {
        name: (given / name / NAME / f"{NAME}.html").read_text() for name in hub.LEARNERS
    }
    for name, points in score.items():
        assert f"Score: {points:g} / {full:g}" in re.sub("<[^>]*>", "", pages[name])


def at_work(person: Person) -> None:
    """Start the person's own server, and wait until it is there."""
    person.open(f"/hub/spawn/{person.name}")
    person.page.wait_for_url(f"**/user/{person.name}/lab**", timeout=120_000)


@pytest.mark.usefixtures("ada")
def test_a_learner_gets_no_formgrader(ben):
    at_work(ben)
    for path in ("formgrader", "lab", f"tree/solutions/{NAME}/{NAME}.ipynb", "api/contents"):
        assert ben.open(f"/services/{COURSE}/{path}") == 403, path
    assert ben.open(f"/user/{ben.name}/formgrader") == 404


def test_a_learner_gets_into_nobody_elses_server(ben, cleo, ada):
    for person in (ben, cleo, ada):
        at_work(person)
    for other in ("cleo", "ada"):
        for path in ("lab", "api/contents", f"files/{NAME}/{NAME}.ipynb"):
            assert ben.open(f"/user/{other}/{path}") in (403, 404), (other, path)
    assert ben.open("/hub/admin") == 403


def token_of(settings, name: str) -> str:
    """The token that the hub gave to somebody's server: their terminals and notebooks have it."""
    for process in psutil.process_iter(["environ"]):
        words = process.info["environ"] or {}
        theirs = words.get("JUPYTERHUB_USER") == name and words.get("JUPYTERHUB_API_TOKEN")
        if theirs and f":{settings['hub_port']}/" in words.get("JUPYTERHUB_API_URL", ""):
            return words["JUPYTERHUB_API_TOKEN"]
    raise AssertionError(f"{name} has no server")


def test_the_token_of_a_server_opens_no_more_doors(settings, ada, ben, cleo):
    """Everything that runs on a server has it; an instructor's opens the formgrader no more."""
    for person in (ada, ben, cleo):
        at_work(person)

    def status(path: str, token: str) -> int:
        try:
            with asked(settings, path, Authorization=f"token {token}") as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    for name, closed in {"ben": ("ada", "cleo"), "ada": ("ben",)}.items():
        token = token_of(settings, name)
        assert status("/hub/api/user", token) == 200
        assert status(f"/user/{name}/api/contents", token) == 200
        paths = ["/hub/api/users", f"/hub/api/users/{name}/tokens", "/hub/api/groups"]
        paths += [f"/hub/api/users/{other}" for other in closed]
        paths += [f"/user/{other}/api/contents" for other in closed]
        paths += [f"/services/{COURSE}/api/contents"]
        opened = {path: status(path, token) for path in paths}
        assert {path: code for path, code in opened.items() if code not in (403, 404)} == {}


OPEN = """url => new Promise(done => {
    const socket = new WebSocket(url);
    socket.onopen = () => done(true);
    socket.onerror = () => done(false);
})"""


def test_a_page_of_one_server_reaches_no_other(settings, ada):
    """As a page from a learner's server, or a notebook's output, would try in her browser."""
    assert ada.open(f"/services/{COURSE}/formgrader") == 200
    at_work(ada)
    for path in (f"/services/{COURSE}/api/contents", "/hub/api/user", "/hub/home"):
        reached = ada.page.evaluate(
            'url => fetch(url, {credentials: "include"}).then(answer => answer.status, () => 0)',
            address(settings, path),
        )
        assert reached == 0, path
    # A request without an answer, and a web socket, would need neither the browser's consent.
    course = Path(settings["course"])
    there = {path.name for path in course.iterdir()}
    ada.page.evaluate(
        'url => fetch(url, {method: "POST", mode: "no-cors", credentials: "include", body: "{}"})',
        address(settings, f"/services/{COURSE}/api/contents"),
    )
    assert {path.name for path in course.iterdir()} == there
    for place, opens in {"/user/ada": True, f"/services/{COURSE}": False}.items():
        url = address(settings, f"{place}/api/events/subscribe").replace("https:", "wss:")
        assert ada.page.evaluate(OPEN, url) is opens, place
    cookies = {cookie["name"]: cookie for cookie in ada.page.context.cookies()}
    logins = {name for name in cookies if "jupyterhub-user" in name or "service" in name}
    assert len(logins) == 2, cookies
    for name in (*logins, "__Host-jupyterhub-hub-login"):
        assert name.startswith("__Host-")
        assert cookies[name]["httpOnly"]
        assert cookies[name]["secure"]
    # One cookie of the hub's goes to all domains. It logs nobody in.
    (everywhere,) = [name for name in cookies if cookies[name]["domain"].startswith(".")]
    with pytest.raises(urllib.error.HTTPError, match="403"):
        asked(settings, "/hub/api/user", Cookie=f"{everywhere}={cookies[everywhere]['value']}")


RUN = """([path]) => new Promise(done => {
    const socket = new WebSocket(new URL(path, location.href).href.replace("http", "ws"));
    const content = {code: "print(6 * 7)", silent: false, store_history: false};
    const header = {msg_id: "1", msg_type: "execute_request", session: "s", version: "5.3"};
    const message = {channel: "shell", header, content, parent_header: {}, metadata: {}};
    socket.onopen = () => socket.send(JSON.stringify(message));
    socket.onmessage = each => {
        const {msg_type, content} = JSON.parse(each.data);
        if (msg_type === "stream") done(content.text);
    };
})"""


def test_a_kernel_listens_to_its_owner_alone(settings, ben):
    """From a TCP port, every account of the machine could read what a kernel is given."""
    at_work(ben)
    kernel = ben.ask(f"/user/{ben.name}/api/kernels", {"name": "python3"}, "POST")
    printed = ben.page.evaluate(RUN, [f"/user/{ben.name}/api/kernels/{kernel['id']}/channels"])
    assert printed == "42\n"
    words = [
        word for each in psutil.process_iter(["cmdline"]) for word in each.info["cmdline"] or ()
    ]
    (connection,) = [Path(word) for word in words if word.endswith(f"kernel-{kernel['id']}.json")]
    assert json.loads(connection.read_text())["transport"] == "ipc"
    assert connection.parent.stat().st_mode & 0o077 == 0
    sockets = [path for path in connection.parent.iterdir() if path.is_socket()]
    assert len(sockets) == 5  # shell, iopub, stdin, control, heartbeat
    ben.ask(f"/user/{ben.name}/api/kernels/{kernel['id']}", method="DELETE")


def test_a_learner_does_it_all_in_the_list_of_assignments(settings, ben):
    """What the guide says: menu Nbgrader, Assignment List; what was submitted is listed there."""
    ben.open(f"/user/{ben.name}/lab")
    ben.page.get_by_role("menuitem", name="Nbgrader").click(timeout=60_000)
    # While a notebook is debugged, debugpy answers every account that connects to its port.
    assert ben.page.locator('[data-id="table-of-contents"]').count() == 1
    assert ben.page.locator('[data-id="jp-debugger-sidebar"]').count() == 0
    entries = ben.page.locator(".lm-Menu-itemLabel")
    assert "Assignment List" in entries.all_inner_texts()
    assert "Formgrader" not in entries.all_inner_texts()
    ben.page.get_by_role("menuitem", name="Assignment List").click()
    ben.page.get_by_text(NAME).first.wait_for(timeout=30_000)


@pytest.mark.usefixtures("ada")
def test_tokens_and_cookies_are_for_the_hub_alone(settings):
    private = Path(settings["state"]) / "private"
    assert private.stat().st_mode & 0o077 == 0
    assert (private / "hub.sqlite").exists()
    assert (private / "cookie_secret").exists()
    public = [path for path in Path(settings["state"]).iterdir() if path.is_file()]
    assert public == []


def test_whoever_is_not_in_the_settings_is_not_let_in(settings, chromium):
    page = chromium.new_context(ignore_https_errors=True).new_page()
    page.goto(address(settings, "/hub/login"))
    page.get_by_label("Username").fill("mallory")
    page.get_by_label("Password").fill(settings["password"])
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_load_state()
    assert "Invalid username or password" in page.content()
