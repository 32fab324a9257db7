"""The autograder for Gradescope, run as Gradescope runs it, in a folder laid out as it lays it out.

The fields of `results.json` and the folders are those of Gradescope's documentation of autograders
(gradescope-autograders.readthedocs.io, "Autograder Specifications").
"""

import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import nbformat
import pytest
from course_folder import ROOT

from grading import gradescope as there
from grading.runner import sandbox
from tests.halves import some_now
from tools import answers, gradescope, leaks

SLUG, ANSWER = "01-attention", "softmax"  # the cell with the first answer
BEST = answers.graded(answers.notebook(SLUG))
MODES = ("sandbox", "account")
VISIBILITY = {"hidden", "after_due_date", "after_published", "visible"}
FORMATS = {"text", "html", "simple_format", "md", "ansi"}
RESULTS = {  # published names of fields, and the types of their values
    "score": (int, float),
    "execution_time": (int, float),
    "output": str,
    "output_format": str,
    "test_output_format": str,
    "test_name_format": str,
    "visibility": str,
    "stdout_visibility": str,
    "extra_data": dict,
    "tests": list,
    "leaderboard": list,
}
TEST = {
    "score": (int, float),
    "max_score": (int, float),
    "status": str,
    "name": str,
    "name_format": str,
    "number": str,
    "output": str,
    "output_format": str,
    "tags": list,
    "visibility": str,
    "extra_data": dict,
}


def validate(results: dict) -> None:
    """Hold results against the published format, field by field."""
    for entry, fields in ((results, RESULTS), *((test, TEST) for test in results["tests"])):
        for name, value in entry.items():
            assert name in fields, f"no field {name}"
            assert isinstance(value, fields[name]), (name, value)
            assert not isinstance(value, bool)
            if name.endswith("visibility"):
                assert value in VISIBILITY
            if name.endswith("format"):
                assert value in FORMATS
        assert entry.get("status", "passed") in {"passed", "failed"}
        assert 0 <= entry["score"] <= entry.get("max_score", entry["score"])
    assert results["score"] == sum(test["score"] for test in results["tests"])


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course with one assignment."""
    folder = tmp_path_factory.mktemp("course")
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    shutil.copytree(ROOT / "solutions" / SLUG, folder / "solutions" / SLUG)
    return folder


@pytest.fixture(scope="module")
def made(course, tmp_path_factory):
    """The zip."""
    folder = tmp_path_factory.mktemp("zips")
    assert gradescope.main(SLUG, course, folder) == 0
    return folder / f"{SLUG}.zip"


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """A folder for PATH with what the script needs, and without bwrap."""
    folder = tmp_path_factory.mktemp("bin")
    for name in ("bash", "env", "mkdir", "chmod"):
        (folder / name).symlink_to(shutil.which(name))
    return folder


@pytest.fixture
def autograder(made, programs):
    """Lay the folder out, hand a file in, and run the script; the folder and what it printed.

    It is outside pytest's folders, which nobody else may enter: here everybody may, as there.
    """
    folders = []

    def run(data: bytes, mode: str, *, name: str = f"{SLUG}.ipynb", limits: dict | None = None):
        root = Path(tempfile.mkdtemp(prefix="autograder-"))
        folders.append(root)
        for part in ("source", "submission", "results"):
            (root / part).mkdir()
        with zipfile.ZipFile(made) as archive:
            archive.extractall(root / "source")
        (root / "submission_metadata.json").write_text('{"previous_submissions": []}')
        (root / "submission" / name).write_bytes(data)
        if limits:
            path = root / "source" / there.SETTINGS
            settings = json.loads(path.read_text())
            settings["limits"] |= limits
            path.write_text(json.dumps(settings))
        shutil.copy(root / "source" / "run_autograder", root)
        subprocess.run(["chmod", "-R", "a+rX", str(root)], check=True)
        os.chmod(root / "run_autograder", 0o755)
        environment = {"AUTOGRADER_ROOT": str(root), "AUTOGRADER_PYTHON": sys.executable}
        environment["PATH"] = os.environ["PATH"] if mode == "sandbox" else str(programs)
        done = subprocess.run(
            [root / "run_autograder"],
            env=environment,
            cwd=root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return root, done

    yield run
    for folder in folders:
        shutil.rmtree(folder)


def results_of(root: Path) -> dict:
    results = json.loads((root / "results" / "results.json").read_text())
    validate(results)
    return results


def handed_in(name: str | None = None, cells: dict[str, str] | None = None) -> bytes:
    """A notebook with an answer of the bank, or the reference with some cells replaced."""
    if name:
        (answer,) = (each for each in answers.bank(SLUG, "wrong") if each.name == name)
        cells = answer.cells
    book = answers.notebook(SLUG)
    assert set(cells or {}) <= {cell.id for cell in book.cells}
    for cell in book.cells:
        cell.source = (cells or {}).get(cell.id, cell.source)
    return nbformat.writes(book).encode()


def skip_unless_root(mode: str) -> None:
    if mode == "account" and os.geteuid() != 0:
        pytest.skip("only root can run code as another user, as on Gradescope")


ONE_MODE_FIRST = pytest.mark.parametrize("mode", some_now(MODES, MODES[:1]))


@ONE_MODE_FIRST
def test_a_right_answer_gets_all_points(autograder, mode):
    skip_unless_root(mode)
    root, done = autograder(handed_in(), mode)
    assert done.returncode == 0, done.stdout
    results = results_of(root)
    assert {test["name"]: test["score"] for test in results["tests"]} == BEST
    assert {test["name"]: test["max_score"] for test in results["tests"]} == BEST
    assert {test["status"] for test in results["tests"]} == {"passed"}
    assert results["extra_data"] == {"isolation": mode}
    assert ("Not isolated" in results["output"]) == (mode == "account")


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_a_wrong_answer_loses_its_cells_alone_and_shows_no_test(autograder, mode):
    skip_unless_root(mode)
    root, _ = autograder(handed_in("mask_after_softmax"), mode)
    results = results_of(root)
    (wrong,) = (each for each in answers.bank(SLUG, "wrong") if each.name == "mask_after_softmax")
    assert {test["name"] for test in results["tests"] if test["status"] == "failed"} == wrong.loses
    assert results["score"] == sum(BEST.values()) - sum(BEST[name] for name in wrong.loses)
    for test in results["tests"]:
        assert bool(test["output"]) == (test["name"] in wrong.loses)
        assert "Traceback" not in test["output"]
    assert leaks.search(root / "results") == []


HOSTILE = """
import os, socket, subprocess
root, found = {root!r}, []
for folder, _, names in os.walk(root):
    found += [os.path.join(folder, name) for name in names if folder != root]
for name in ("source/settings.json", "source/assignment.ipynb", "submission_metadata.json"):
    try:
        found.append("read " + open(os.path.join(root, name)).read(9))
    except OSError:
        pass
for name in ("results/results.json", "results/other", "source/settings.json", "run_autograder"):
    try:
        open(os.path.join(root, name), "w").write('{{"score": 1000}}')
        found.append("wrote " + name)
    except OSError:
        pass
for number in map(int, filter(str.isdigit, os.listdir("/proc"))):
    try:
        open(f"/proc/{{number}}/environ").read()
        if number != os.getpid():
            found.append(f"looked into {{number}}")
    except OSError:
        pass
for kind in (socket.AF_INET, socket.AF_INET6):
    try:
        socket.socket(kind).connect(("127.0.0.1" if kind == socket.AF_INET else "::1", {port}))
        found.append("connected")
    except OSError:
        pass
if os.getuid() == 0:
    found.append("root")
subprocess.Popen(["sleep", "{seconds}"])
raise RuntimeError("found: " + "; ".join(found) + ".")
"""


@ONE_MODE_FIRST
def test_hostile_code_reads_no_test_writes_no_score_and_leaves_nothing_behind(
    autograder, mode, monkeypatch
):
    skip_unless_root(mode)
    seconds, place = f"31337.{os.getpid()}", tempfile.mkdtemp(prefix="autograder-known-")
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: place)  # the code has to be told its name
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = HOSTILE.format(root=place, port=port, seconds=seconds)
        root, done = autograder(handed_in(cells={ANSWER: code}), mode)
    assert done.returncode == 0, done.stdout
    results = results_of(root)
    message = re.search(r"RuntimeError: found: (.*)\.", results["output"])
    assert message, results["output"]
    assert message[1] == ""
    assert {test["status"] for test in results["tests"] if "softmax" in test["name"]} == {"failed"}
    assert results["score"] < sum(BEST.values())
    lines = subprocess.run(["ps", "ax"], capture_output=True, text=True, check=True).stdout
    assert seconds not in lines
    assert not Path(sandbox.HOME).exists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("while True: pass", "TimeoutError"),
        ("import torch\nkept = torch.ones(2**27, dtype=torch.float64)", "took more than"),
        ("import os\nwhile True: os.fork()", "Error"),
    ],
)
def test_limits_hold_without_a_sandbox_too(autograder, code, message):
    skip_unless_root("account")
    data = handed_in(cells={ANSWER: code})
    limits = {"cell_seconds": 3.0, "total_seconds": 60.0, "memory": 500 * 2**20}
    root, done = autograder(data, "account", limits=limits)
    assert done.returncode == 0, done.stdout
    results = results_of(root)
    assert message in results["output"]
    # One bad cell costs its own points, and those of what builds on it.
    passed = {test["name"] for test in results["tests"] if test["status"] == "passed"}
    assert "causal-mask" in passed
    assert "softmax-values" not in passed


@pytest.mark.parametrize(
    ("data", "name", "reason"),
    [
        (handed_in()[:3000], f"{SLUG}.ipynb", "its JSON is broken"),
        (handed_in(), "mine.ipynb", f"The file {SLUG}.ipynb is missing. The folder holds: mine"),
        (b"", f"{SLUG}.ipynb", "The file is empty"),
    ],
)
def test_a_file_that_cannot_be_graded_gets_zero_and_a_reason(autograder, data, name, reason):
    root, done = autograder(data, "sandbox", name=name)
    assert done.returncode == 0, done.stdout
    results = results_of(root)
    assert results["score"] == 0
    assert reason in results["output"]
    assert {test["name"]: test["max_score"] for test in results["tests"]} == BEST


def test_without_a_sandbox_and_without_root_nothing_is_written(tmp_path, made, monkeypatch, capsys):
    with zipfile.ZipFile(made) as archive:
        archive.extractall(tmp_path / "source")
    for part in ("submission", "results"):
        (tmp_path / part).mkdir()
    (tmp_path / "submission" / f"{SLUG}.ipynb").write_bytes(handed_in())
    (tmp_path / "results" / "results.json").write_text("{}")

    def check():
        raise sandbox.NoSandbox("bwrap was not found")

    monkeypatch.setattr(sandbox, "check", check)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert there.main(tmp_path) == 1
    assert "no score written: bwrap was not found" in capsys.readouterr().out
    assert os.listdir(tmp_path / "results") == []


def test_messages_are_plain_text():
    assert there.clean("\x1b[31mred\x1b[0m \u202e a\nb\x07") == "red ? a\nb?"
    assert there.clean("x" * 5000) == "x" * there.MAX_MESSAGE + "\n[the rest is left out]"


# --- the zip


def test_the_zip_holds_hidden_tests_and_no_solution(made, tmp_path):
    with zipfile.ZipFile(made) as archive:
        archive.extractall(tmp_path)
        modes = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}
    assert {name for name, mode in modes.items() if mode & stat.S_IXUSR} == {
        "setup.sh",
        "run_autograder",
    }
    assert not any(mode & 0o077 for mode in modes.values())
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    text = "\n".join(answers_text(tmp_path / there.ASSIGNMENT))
    assert "### BEGIN HIDDEN TESTS" in text
    assert "BEGIN SOLUTION" not in text
    hidden, runs = leaks.secrets()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    assert sum(line in hidden for line in lines) > 50
    starts = range(len(lines))
    leaked = {tuple(lines[i : i + n]) for i in starts for n in range(1, leaks.RUN + 1)} & set(runs)
    assert leaked == set()


def answers_text(path: Path) -> list[str]:
    return [cell.source for cell in nbformat.read(path, as_version=4).cells]


def test_the_secret_is_the_zips_own_and_stays_the_same(course, made, tmp_path):
    def settings(path):
        with zipfile.ZipFile(path) as archive:
            return json.loads(archive.read(there.SETTINGS))

    assert gradescope.main(SLUG, course, tmp_path) == 0
    secret = settings(made)["secret"]
    assert settings(tmp_path / f"{SLUG}.zip")["secret"] == secret
    assert bytes.fromhex(secret) != (course / "progress" / ".secret").read_bytes()


def test_every_package_to_install_is_locked_and_the_scripts_are_bash():
    lock = (ROOT / "requirements.lock").read_text().lower()
    names = re.findall(r"^[\w.-]+", gradescope.requirements(), re.MULTILINE)
    assert {"torch", "numpy", "nbgrader"} <= set(names)
    for name in names:
        assert re.search(rf"^{name.lower()}==", lock, re.MULTILINE), name
    for name in gradescope.SCRIPTS:
        path = ROOT / "deploy" / "gradescope" / name
        subprocess.run(["bash", "-n", str(path)], check=True)


def test_what_learners_see_at_once_is_what_they_see_a_test_of():
    release = answers.notebook(SLUG, "exercises")
    assert set(gradescope.visibility(release).values()) == {"visible"}
    (cell,) = (cell for cell in release.cells if cell.id == "softmax-edges")
    cell.source = "# only hidden tests"
    assert gradescope.visibility(release)["softmax-edges"] == "after_published"
    assert gradescope.visibility(release)["softmax-values"] == "visible"


def test_an_unknown_assignment_is_refused_and_no_zip_is_left(course, tmp_path, capsys):
    assert gradescope.main("01-atention", course, tmp_path) == 2
    assert f"there is no assignment '01-atention'; there are: {SLUG}" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


def test_a_part_that_is_graded_by_hand_is_refused(course, tmp_path, capsys):
    other = tmp_path / "course"
    shutil.copytree(course, other)
    path = other / "solutions" / SLUG / f"{SLUG}.ipynb"
    book = nbformat.read(path, as_version=4)
    cell = next(cell for cell in book.cells if cell.metadata.get("nbgrader", {}).get("solution"))
    cell.metadata.nbgrader |= {"grade": True, "points": 1.0}
    nbformat.write(book, path)
    assert gradescope.main(SLUG, other, tmp_path) == 2
    assert "parts that are graded by hand" in capsys.readouterr().err
