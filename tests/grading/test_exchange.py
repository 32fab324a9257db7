"""Collecting from an exchange whose learners put into it what `nbgrader submit` never would.

Where root runs this, ``ada`` and ``ben`` are accounts of their own: what they do, child processes
do under other user ids, in an exchange with nbgrader's permissions. Otherwise ``ben`` is whoever
runs it, and what needs a second account is skipped, with that reason.
"""

import json
import mmap
import os
import shutil
import socket
import subprocess
import tempfile
import time
import traceback
import zipfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from course_folder import NAME, RIGHT, Folder, answers, source
from nbgrader.api import Gradebook
from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import ExchangeSubmit
from test_commands import formgrader, nbgrader
from traitlets.config import Config

from grading import exchange, submission

ROOT = os.geteuid() == 0
ACCOUNTS = {"ada": 61001, "ben": 61002, "grader": 61003} if ROOT else {"ben": os.geteuid()}
COURSE, NOTEBOOK = "attention-position-cache", f"{NAME}.ipynb"
LONG_AGO, TO_COME = "2020-02-02 20:02:02.000000 UTC", "2099-01-01 00:00:00.000000 UTC"
separate = pytest.mark.skipif(not ROOT, reason="only root can act under two accounts")


def act(who: str, what, *arguments) -> None:
    """Do something under an account of its own, in a child process."""
    if not ROOT:
        assert who == "ben"
        what(*arguments)
        return
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(ACCOUNTS[who])
            os.setuid(ACCOUNTS[who])
            what(*arguments)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


class Hub:
    """A course, its exchange, and learners with accounts and homes."""

    def __init__(self, root: Path, gradebook: Path):
        (root / "course").mkdir(mode=0o700)
        self.course = Folder(root / "course")
        self.course.publish(source())
        shutil.copy(gradebook, self.course.root)
        self.shared, self.homes = root / "exchange", root / "homes"
        (root / "disk").mkdir()
        self.shared.symlink_to("disk")  # an administrator may do so
        self.inbound = self.shared / COURSE / "inbound"
        release = self.shared / COURSE / "outbound" / NAME
        release.mkdir(parents=True)
        shutil.copy(self.course.root / "solutions" / NAME / NOTEBOOK, release)
        self.inbound.mkdir()
        self.shared.chmod(0o1777)
        self.inbound.chmod(0o2733)  # both as nbgrader and docs/hub.md have them
        for name, uid in ACCOUNTS.items():
            (self.homes / name).mkdir(parents=True)
            os.chown(self.homes / name, uid, uid if ROOT else -1)
        config = self.course.root / "nbgrader_config.py"
        config.write_text(f"{config.read_text()}\nc.Exchange.root = {str(self.shared)!r}\n")

    def work(self, who: str, double: str = RIGHT["double"]) -> None:
        """A learner's own copy of the exercise, with an answer."""

        def write():
            (self.homes / who / NAME).mkdir(exist_ok=True)
            (self.homes / who / NAME / NOTEBOOK).write_text(json.dumps(answers(double=double)))

        act(who, write)

    def submit(self, who: str, double: str = RIGHT["double"]) -> None:
        """Hand in by nbgrader's own submit."""
        self.work(who, double)
        config = Config()
        config.Exchange.root, config.Exchange.cache = str(self.shared), str(self.homes / who / "c")
        config.Exchange.assignment_dir = str(self.homes / who)
        config.CourseDirectory.root = str(self.homes / who)
        config.CourseDirectory.course_id, config.CourseDirectory.student_id = COURSE, who
        config.CourseDirectory.assignment_id = NAME
        directory = CourseDirectory(config=config)
        authenticator = Authenticator(config=config)
        submit = ExchangeSubmit(coursedir=directory, authenticator=authenticator, config=config)
        act(who, submit.start)

    def plant(self, who: str, made, name: str = "ben", at: str = LONG_AGO) -> Path:
        """A folder made by hand: ``made`` is called with its path, in a learner's process."""
        path = self.inbound / f"{name}+{NAME}+{at}+handmade"

        def write():
            path.mkdir()
            (path / NOTEBOOK).write_text(json.dumps(answers(**RIGHT)))
            (path / "timestamp.txt").write_text(LONG_AGO)
            (path / "submission_secret.txt").write_text("ab" * 64)
            made(path)

        act(who, write)
        return path

    def collect(self, *, update: bool = True) -> str:
        """The formgrader's way; the log."""
        done = formgrader(self.course).collect(NAME, update=update)
        assert done["success"], done
        return done["log"]

    def collected(self) -> dict[str, str]:
        """The first answer of everybody that was collected."""
        submitted = self.course.root / "submitted"
        copied = {}
        for who in submission.learners(submitted, NAME):
            path = submitted / who / NAME / NOTEBOOK
            assert not path.is_symlink()
            copied[who] = json.loads(path.read_text())["cells"][1]["source"]
        return copied

    def time(self, who: str = "ben") -> datetime:
        path = self.course.root / "submitted" / who / NAME
        return submission.collect(path, who, NAME).timestamp


@pytest.fixture
def hub(empty_gradebook, monkeypatch):
    """In a folder of its own: pytest's are closed to other accounts."""
    names = {uid: name for name, uid in ACCOUNTS.items()}
    monkeypatch.setattr(exchange, "account", lambda uid: names.get(uid, f"user {uid}"))
    root = Path(tempfile.mkdtemp())
    root.chmod(0o755)
    yield Hub(root, empty_gradebook)
    shutil.rmtree(root)


def now() -> datetime:
    """By the clock that the kernel stamps files with, which may be a few milliseconds behind."""
    return datetime.utcnow() - timedelta(milliseconds=20)


def test_what_nbgrader_submit_hands_in_is_collected_with_its_time(hub):
    hub.submit("ben")
    (made,) = hub.inbound.iterdir()
    assert "Collecting submission: ben warmup" in hub.collect()
    target = hub.course.root / "submitted" / "ben" / NAME
    for name in (NOTEBOOK, "submission_secret.txt"):
        assert (target / name).read_bytes() == (made / name).read_bytes()
    assert (target / "timestamp.txt").read_text().strip() == made.name.split("+")[2]
    assert "No newer submission to collect: ben" in hub.collect()
    assert "use --update to update: ben" in hub.collect(update=False)
    hub.submit("ben", "def double(x):\n    return 2")
    assert "Updating submission: ben" in hub.collect()
    assert hub.collected() == {"ben": "def double(x):\n    return 2"}


def _replace(path: Path, made) -> None:
    path.unlink()
    made(path)


def _socket(path: Path) -> None:
    os.chdir(path.parent)  # a socket's whole path may have 107 bytes
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)
    os.chdir("/")


def _away(path: Path, back: str) -> None:
    """Move the folder away and leave a link to it, or something else, in its place."""
    other = path.with_name(back)
    path.rename(other)
    path.symlink_to(other)


HANDMADE = {
    "a link to the solution": (
        lambda path: _replace(path / NOTEBOOK, lambda it: it.symlink_to(solution(path))),
        "warmup.ipynb is a link",
    ),
    "a link to one's own file": (
        lambda path: _away(path / NOTEBOOK, "mine"),
        "warmup.ipynb is a link",
    ),
    "a link for the secret": (
        lambda path: _away(path / "submission_secret.txt", "mine"),
        "submission_secret.txt is a link",
    ),
    "a link beside a notebook": (
        lambda path: (path / "a.ipynb").symlink_to(solution(path)),
        "a.ipynb is a link",
    ),
    "a link for the folder": (lambda path: _away(path, "mine"), "it is a link or a file"),
    "a hard link": (
        lambda path: os.link(path / NOTEBOOK, path / "mine"),
        "warmup.ipynb has a second name",
    ),
    "a pipe": (lambda path: _replace(path / NOTEBOOK, os.mkfifo), "warmup.ipynb is not a file"),
    "a socket": (lambda path: _replace(path / NOTEBOOK, _socket), "warmup.ipynb cannot be opened"),
    "a folder": (lambda path: _replace(path / NOTEBOOK, os.mkdir), "warmup.ipynb is not a file"),
    "a file for the folder": (
        lambda path: (shutil.rmtree(path), path.write_text("{}")),
        "it is a link or a file",
    ),
}


def solution(path: Path) -> Path:
    return path.parents[3] / "course" / "solutions" / NAME / NOTEBOOK


@pytest.mark.parametrize("kind", HANDMADE)
def test_what_nbgrader_submit_cannot_have_made_is_left_out_by_name_and_path(hub, kind):
    hub.submit("ben")
    hub.collect()
    before = hub.collected()
    made, reason = HANDMADE[kind]
    path = hub.plant("ben", made, at=TO_COME)
    log = hub.collect()
    assert hub.collected() == before
    assert f"ben: not collected: {path}: {reason}" in log


@separate
def test_a_classmates_name_gives_nothing_and_takes_nothing(hub):
    hub.submit("ada", "def double(x):\n    return 2")
    path = hub.plant("ben", lambda path: None, "ada", TO_COME)
    log = hub.collect()
    assert hub.collected() == {"ada": "def double(x):\n    return 2"}
    assert hub.time("ada") < datetime(2099, 1, 1)
    assert f"ada: not collected: {path}: it belongs to ben" in log
    # Nor is it where the two are exchanged after the owner was looked at.
    place = os.open(hub.inbound, os.O_RDONLY)
    with pytest.raises(exchange.Refused, match="it belongs to ben"):
        exchange.take(place, path.name, "ada", NOTEBOOK)
    os.close(place)


@separate
def test_the_graders_account_collects_with_no_rights_of_roots(hub):
    hub.submit("ada")
    hub.submit("ben")
    path = hub.plant("ben", lambda path: (path / NOTEBOOK).chmod(0o600), at=TO_COME)
    course = hub.course.root
    for each in (course, *course.rglob("*"), hub.inbound.parent, hub.inbound):
        os.chown(each, ACCOUNTS["grader"], ACCOUNTS["grader"])
    act("grader", lambda: (course / "log").write_text(hub.collect()))
    log = (course / "log").read_text()
    assert f"{path}: warmup.ipynb cannot be opened (Permission denied)" in log
    assert hub.collected() == {"ada": RIGHT["double"], "ben": RIGHT["double"]}


@separate
def test_a_file_in_ones_folder_that_another_account_owns_is_left_out(hub):
    hub.submit("ada")
    path = hub.plant("ben", lambda path: (path.chmod(0o777), (path / NOTEBOOK).unlink()))
    act("ada", shutil.copy, hub.homes / "ada" / NAME / NOTEBOOK, path)
    assert f"{path}: warmup.ipynb belongs to ada" in hub.collect()
    assert hub.collected() == {"ada": RIGHT["double"]}


@separate
def test_a_hard_link_to_the_solution_is_left_out_where_the_kernel_allows_it(hub):
    path = hub.plant("ben", lambda path: (path / NOTEBOOK).unlink())
    os.link(hub.course.root / "solutions" / NAME / NOTEBOOK, path / NOTEBOOK)
    assert f"{path}: warmup.ipynb belongs to " in hub.collect()
    assert hub.collected() == {}


@separate
@pytest.mark.parametrize("where", [".", NOTEBOOK])
def test_another_disk_may_have_any_times_and_owners_so_it_is_left_out(hub, where):
    path = hub.plant("ben", lambda path: None)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
        shutil.copy(path / NOTEBOOK, other)
        for each in (Path(other), Path(other, NOTEBOOK)):
            os.chown(each, ACCOUNTS["ben"], -1)
        words = ["mount", "--bind", str(Path(other, where)), str(path / where)]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"this machine lets nobody mount: {done.stderr.strip()}")
        try:
            log = hub.collect()
        finally:
            subprocess.run(["umount", str(path / where)], check=True)
    assert f"{path}: {'it' if where == '.' else where} is on another disk" in log
    assert hub.collected() == {}


@separate
def test_all_of_it_at_once_costs_the_others_nothing(hub):
    hub.submit("ada")
    for number, (made, _) in enumerate(HANDMADE.values()):
        hub.plant("ben", made, at=f"2020-02-02 20:02:{number:02}.000000 UTC")
    names = ("..", "ada", "a\nb\x1b[2J", "", "no such person", "ben", "x" * 150)
    for name in names:
        hub.plant("ben", lambda path: None, name, at="soon")
    done = nbgrader(hub.course, "collect", NAME, "--ExchangeCollect.check_owner=False")
    assert "\x1b" not in done.stderr
    assert done.returncode == 0, done.stderr
    log = hub.collect()
    assert hub.collected()["ada"] == RIGHT["double"]
    assert log.count("not collected") <= 2 * exchange.MAX_LOGGED + 2
    assert "more folders of ben are not collected" in log
    course = {path.name for path in hub.course.root.iterdir()}
    assert course == {"nbgrader_config.py", "solutions", "submitted", "gradebook.db"}
    assert {path.name for path in (hub.course.root / "submitted").iterdir()} == {"ada", "ben"}


@pytest.mark.parametrize("name", [f"ben+{NAME}", f"ben+{NAME}+", f"ben+{NAME}+x+y+z", "ben", "+++"])
def test_no_name_stops_the_others(hub, name):
    hub.submit("ben")
    act("ben", (hub.inbound / name).mkdir)
    hub.collect()
    assert hub.course.root.joinpath("submitted", "ben").exists()


def _large(path: Path) -> None:
    with (path / NOTEBOOK).open("wb") as file:
        file.truncate(2**40)


def _many(path: Path) -> None:
    for number in range(3 * exchange.LISTED):
        (path / f"{number}.ipynb").touch()


def test_size_and_number_have_bounds_and_grading_says_so(hub):
    hub.plant("ben", lambda path: (_large(path), _many(path)))
    hub.collect()
    target = hub.course.root / "submitted" / "ben" / NAME
    assert sum(path.stat().st_size for path in target.iterdir()) < submission.MAX_BYTES + 1000
    assert len([*target.iterdir()]) == 3 + exchange.OTHERS
    assert "larger than 10 MB" in submission.collect(target, "ben", NAME).problem


def test_a_notebook_of_another_name_is_collected_so_that_the_reason_can_name_it(hub):
    hub.plant("ben", lambda path: (path / NOTEBOOK).rename(path / "my answers.ipynb"))
    hub.collect()
    target = hub.course.root / "submitted" / "ben" / NAME
    assert "holds: my answers.ipynb" in submission.collect(target, "ben", NAME).problem


def test_swapped_between_check_and_copy_it_is_what_was_checked(hub, monkeypatch):
    path = hub.plant("ben", lambda path: None)
    opened, swapped = exchange.opened, []

    def slow(stack, name, parent, flags=0):
        handle = opened(stack, name, parent, flags)
        if name in (path.name, NOTEBOOK):
            target = path if name == path.name else path.with_name("old") / NOTEBOOK
            target.rename(target.with_name("old"))
            target.symlink_to(solution(path).parent if name == path.name else solution(path))
            swapped.append(name)
        return handle

    monkeypatch.setattr(exchange, "opened", slow)
    hub.collect()
    assert swapped == [path.name, NOTEBOOK]
    assert "SOLUTION" not in (hub.course.root / "submitted" / "ben" / NAME / NOTEBOOK).read_text()


def _touch(path: Path) -> None:
    for each in (path / NOTEBOOK, path):
        os.utime(each, (0, 0))


def _map(path: Path) -> None:
    with (path / NOTEBOOK).open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[0:1] = b" "
        memory.flush()


LATER = {
    "nothing but a name and a timestamp.txt": lambda path: None,
    "touched": _touch,
    "renamed": lambda path: path.rename(path.with_name(f"{path.name}2")),
    "written through a mapping": _map,
    "another file put in its place": lambda path: (
        shutil.copy(path / NOTEBOOK, path / "new"),
        (path / "new").rename(path / NOTEBOOK),
    ),
    "a file from before put in its place": lambda path: (
        (path / "submission_secret.txt").rename(path / "x"),
        (path / "x").rename(path / "submission_secret.txt"),
    ),
    "modes changed": lambda path: (path / NOTEBOOK).chmod(0o600 if ROOT else 0o644),
}


@pytest.mark.parametrize("trick", LATER)
def test_no_trick_makes_a_late_submission_early(hub, trick):
    path = hub.plant("ben", lambda path: None)
    time.sleep(0.1)
    with Gradebook(f"sqlite:///{hub.course.root}/gradebook.db", COURSE) as gradebook:
        gradebook.update_or_create_assignment(NAME, duedate=now())
    due = now()
    act("ben", LATER[trick], path)
    if trick == "nothing but a name and a timestamp.txt":
        due = datetime(2026, 1, 1)
    log = hub.collect()
    assert hub.time() >= due
    assert "by the exchange's clock; the name says 2020-02-02" in log


def test_a_flood_of_folders_costs_a_bounded_number_of_looks(hub, monkeypatch):
    def flood():
        for number in range(3 * exchange.FOLDERS):
            (hub.inbound / f"ben+{NAME}+{LONG_AGO}+{number}").mkdir()

    act("ben", flood)
    hub.submit("ben")
    looks, take = [], exchange.take
    monkeypatch.setattr(exchange, "take", lambda *what: looks.append(what) or take(*what))
    monkeypatch.setattr(exchange.Collect, "before_duedate", True)
    with Gradebook(f"sqlite:///{hub.course.root}/gradebook.db", COURSE) as gradebook:
        gradebook.update_or_create_assignment(NAME, duedate="2020-01-01 00:00:00 UTC")
    hub.collect()
    assert hub.collected() == {"ben": RIGHT["double"]}
    assert len(looks) == exchange.FOLDERS


def test_a_time_in_the_name_that_lies_ahead_hides_no_later_submission(hub):
    hub.plant("ben", lambda path: None, at=TO_COME)
    hub.collect()
    assert hub.time() < datetime(2099, 1, 1)
    time.sleep(0.02)
    hub.submit("ben", "def double(x):\n    return 2")
    hub.collect()
    assert hub.collected() == {"ben": "def double(x):\n    return 2"}


KERNEL = datetime(2026, 3, 1, 12, 0, 0, 250_000)


@pytest.mark.parametrize(
    ("claimed", "seconds"),
    [
        ("2026-03-01 12:00:00.000000 UTC", -0.25),  # as it is without any trick
        ("2026-03-01 11:59:01.000000 UTC", -59.25),  # a slow disk
        ("2026-03-01 12:01:00.000000 UTC", 59.75),  # a server of files with another clock
        ("2026-03-01 11:59:00.000000 UTC", 0),  # more than that is not believed
        ("2026-03-01 12:01:01.000000 UTC", 0),
        ("2026-03-01 12:00:00.000000 +00", 0),
        ("9999-99-99", 0),
        ("", 0),
    ],
)
def test_the_time_in_the_name_counts_where_the_kernels_agrees(claimed, seconds):
    changed = (KERNEL - datetime(1970, 1, 1)) // timedelta(microseconds=1) * 1000
    assert exchange.handed_in(claimed, changed) == KERNEL + timedelta(seconds=seconds)


def test_the_last_before_the_due_date_if_that_is_asked_for(hub):
    hub.submit("ben", "first = 1")
    time.sleep(0.1)
    with Gradebook(f"sqlite:///{hub.course.root}/gradebook.db", COURSE) as gradebook:
        gradebook.update_or_create_assignment(NAME, duedate=datetime.utcnow())
    hub.submit("ben", "second = 2")
    config = hub.course.root / "nbgrader_config.py"
    hub.collect()
    assert hub.collected() == {"ben": "second = 2"}
    config.write_text(f"{config.read_text()}\nc.ExchangeCollect.before_duedate = True\n")
    hub.collect(update=False)
    assert hub.collected() == {"ben": "first = 1"}


@separate
def test_an_exchange_that_a_learner_made_is_not_used(hub):
    shutil.rmtree(hub.shared / COURSE)
    act("ben", os.makedirs, hub.inbound)
    hub.plant("ben", lambda path: None)
    done = formgrader(hub.course).collect(NAME)
    assert not done["success"]
    assert f"{COURSE} belongs to ben" in done["log"]


def test_what_cannot_be_written_here_is_said_and_the_old_one_stays(hub, monkeypatch):
    hub.submit("ben")
    hub.collect()
    before = hub.collected()
    hub.submit("ben", "def double(x):\n    return 2")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(exchange.Path, "write_bytes", full)
        done = formgrader(hub.course).collect(NAME)
    assert not done["success"]
    assert "ben ([Errno 28] No space left on device)" in done["log"]
    assert hub.collected() == before
    hub.collect()
    assert hub.collected() == {"ben": "def double(x):\n    return 2"}


def test_an_account_has_a_name_or_says_that_it_has_none():
    assert exchange.account(0) == "root"
    assert exchange.account(61999) == "user id 61999, which has no account"


def test_zip_collect_takes_files_and_neither_archives_nor_links(hub):
    course = hub.course.root
    downloads = course / "downloaded" / NAME / "archive"
    (downloads / "more").mkdir(parents=True)
    (downloads / f"ada_{NAME}.ipynb").write_text(json.dumps(answers(**RIGHT)))
    (downloads / "more" / f"cy_{NAME}.ipynb").write_text(json.dumps(answers()))
    (downloads / f"ben_{NAME}.ipynb").symlink_to(course / "solutions" / NAME / NOTEBOOK)
    os.mkfifo(downloads / f"dan_{NAME}.ipynb")
    with zipfile.ZipFile(downloads / "ben.zip", "w") as archive:
        archive.writestr(f"x/ada_{NAME}.ipynb", json.dumps(answers()))
    pattern = r".*/(?P<student_id>\w+)_(?P<file_id>\w+)"
    option = f"--FileNameCollectorPlugin.named_regexp={pattern}"
    done = nbgrader(hub.course, "zip_collect", NAME, option)
    assert done.returncode == 0, done.stderr
    blank = answers().cells[1].source
    assert hub.collected() == {"ada": RIGHT["double"], "cy": blank}
    for name, reason in {
        f"ben_{NAME}.ipynb": "is a link",
        f"dan_{NAME}.ipynb": "is no file",
        "ben.zip": "is an archive; unpack it first",
    }.items():
        assert f"left out: {downloads / name} {reason}" in done.stderr
