"""Ctrl-C and SIGTERM: everything ends soon, nothing is left running, and one line says so."""

import ast
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.course.test_book_build import TinyBook, alive
from tools import stop

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "tools" / "run.py"
NOTE = "import os, pathlib, time; pathlib.Path({folder!r}, str(os.getpid())).touch()"


class Command:
    """A command in a process group of its own, as a shell starts it."""

    def __init__(self, *arguments: object, program: Path = RUN, cwd: Path = ROOT, **variables):
        self.process = subprocess.Popen(
            [sys.executable, str(program), *map(str, arguments)],
            cwd=cwd,
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def until(self, ready) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + 120
        while not ready():
            assert self.process.poll() is None, self.process.stdout.read()
            assert time.monotonic() < deadline, "it did not start"
            time.sleep(0.05)

    def stop(self, number: int = signal.SIGINT, *, group: bool = True) -> str:
        """Send the signal, and return what the command said until it ended."""
        self.below = stop.descendants(self.process.pid)
        start = time.monotonic()
        (os.killpg if group else os.kill)(self.process.pid, number)
        try:
            output = self.process.communicate(timeout=30)[0]
        except subprocess.TimeoutExpired:
            stop.end({**self.below, **stop.descendants(os.getpid())})
            raise
        self.seconds = time.monotonic() - start
        return output


def ids(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.iterdir()]


def ended(command: Command, output: str, number: int) -> None:
    """Insist on a good end."""
    assert command.process.returncode == 128 + number, output
    assert output.count("stopped") == 1
    assert output.endswith("stopped\n")
    assert "Traceback" not in output
    assert "Error" not in output
    assert "FAILED" not in output
    assert command.seconds < 5
    assert not [each for each in command.below if alive(each)]


@pytest.mark.parametrize(
    ("number", "group"),
    [(signal.SIGINT, True), (signal.SIGTERM, True), (signal.SIGTERM, False)],
    ids=["ctrl-c", "group", "one"],
)
def test_a_build_stops_while_chapters_run(tmp_path, number, group):
    """Both kernels end, and the third chapter does not start."""
    tiny, notes = TinyBook(tmp_path), tmp_path / "notes"
    notes.mkdir()
    (tmp_path / "_build").mkdir()
    toc = (tmp_path / "_toc.yml").read_text()
    tiny.write("_toc.yml", toc + "      - file: book/three\n")
    for name in ("one", "two", "three"):
        tiny.chapter(name, NOTE.format(folder=str(notes)), "time.sleep(60)")
    command = Command("tools.book", "--root", tmp_path)
    command.until(lambda: len(ids(notes)) == 2)
    kernels = ids(notes)
    output = command.stop(number, group=group)
    ended(command, output, number)
    assert not [each for each in kernels if alive(each)]
    assert ids(notes) == kernels


def test_a_build_stops_while_pages_are_built(tmp_path):
    tiny = TinyBook(tmp_path)
    (tmp_path / "_build").mkdir()
    for name in ("one", "two"):
        tiny.chapter(name, "x = 1")
    extension = tmp_path / "book" / "_ext" / "course_site.py"
    wait = NOTE.format(folder=str(tmp_path / "runs")) + "; time.sleep(60)\n"
    tiny.ran()
    extension.write_text(extension.read_text() + wait)
    command = Command("tools.book", "--root", tmp_path)
    command.until(lambda: [path for path in tiny.runs.iterdir() if path.name.isdigit()])
    output = command.stop()
    ended(command, output, signal.SIGINT)
    assert "build: all pages" in output
    assert not (tmp_path / "_build" / ".book.json").exists()


@pytest.fixture
def scripts(tmp_path):
    """A folder of modules that are started as commands; each notes the processes it has."""
    (tmp_path / "notes").mkdir()

    def write(name: str, text: str) -> Path:
        (tmp_path / f"{name}.py").write_text(
            f"{NOTE.format(folder=str(tmp_path / 'notes'))}\n{text}"
        )
        return tmp_path / "notes"

    return write


# The child is killed before what it started, which is then nobody's child.
GRANDCHILD = """
import subprocess, sys
child = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" if {deaf} else ""
last = deaf + {note!r} + "; time.sleep(60)"
made = subprocess.Popen([sys.executable, "-c", child, last])
try:
    made.wait()
except KeyboardInterrupt:
    made.kill()
    made.wait()
    raise
"""
LOUD = """
import subprocess, sys
subprocess.run([sys.executable, "-c", {note!r} + "; time.sleep(60)"])
"""
FORKS = """
import multiprocessing
def work(_):
    {note}
    time.sleep(60)
with multiprocessing.get_context("fork").Pool(3) as pool:  # the third has nothing to do
    try:
        list(pool.imap(work, range(2)))
    except KeyboardInterrupt:
        time.sleep(60 if {deaf} else 0)  # meanwhile the pool replaces the workers that are ended
        raise
"""
WRONG = """
try:
    time.sleep(60)
except KeyboardInterrupt as interrupt:
    raise RuntimeError("something was interrupted") from interrupt
"""


@pytest.mark.parametrize(
    ("text", "processes", "deaf"),
    [
        (GRANDCHILD, 2, False),
        (GRANDCHILD, 2, True),
        (FORKS, 3, False),
        (FORKS, 3, True),
        (LOUD, 2, False),
        (WRONG, 1, False),
    ],
    ids=["grandchild", "deaf", "forks", "replaced", "loud", "other-error"],
)
def test_whatever_a_command_started_is_ended(scripts, monkeypatch, text, processes, deaf):
    notes = scripts("command", "")
    note = NOTE.format(folder=str(notes))
    scripts("command", text.format(note=note, deaf=deaf) if "{" in text else text)
    command = Command("command", PYTHONPATH=str(notes.parent))
    command.until(lambda: len(ids(notes)) >= processes)
    time.sleep(0.2)  # into the sleep
    ended(command, command.stop(), signal.SIGINT)
    assert not [each for each in ids(notes) if alive(each)]


def test_a_command_that_ends_by_itself_keeps_its_status_and_its_name(scripts):
    notes = scripts("command", "import sys; print(__name__, sys.argv[1:]); sys.exit(7)")
    command = Command("command", "a", "--b", PYTHONPATH=str(notes.parent))
    assert command.process.communicate()[0] == "__main__ ['a', '--b']\n"
    assert command.process.returncode == 7


def test_a_server_says_stopped_and_has_succeeded(scripts, tmp_path):
    (tmp_path / "index.html").write_text("hello")
    text = (
        "from pathlib import Path\nfrom tools import book\n"
        f"book.serve(Path({str(tmp_path)!r}), 8950)"
    )
    notes = scripts("command", text)
    command = Command("command", PYTHONPATH=str(notes.parent))
    lines = iter(command.process.stdout.readline, "")
    assert any("serving http" in line for line in lines)
    assert command.stop() == "[book] stopped\n"
    assert command.process.returncode == 0


def test_installing_stops_without_a_word_of_pip(scripts, tmp_path):
    """pip is asked to read from a pipe that nobody writes: it waits, as for a slow network."""
    os.mkfifo(tmp_path / "wanted.txt")
    text = (
        "import sys\nfrom pathlib import Path\nfrom tools import env\n"
        f"env.pip(Path(sys.executable), '--requirement', {str(tmp_path / 'wanted.txt')!r})"
    )
    notes = scripts("command", text)
    command = Command("command", PYTHONPATH=str(notes.parent))
    command.until(lambda: len(stop.descendants(command.process.pid)) > 0)
    time.sleep(1)
    ended(command, command.stop(), signal.SIGINT)


def test_every_command_of_the_makefile_is_started_so():
    """A recipe that calls Python itself would show a traceback on Ctrl-C."""
    makefile = (ROOT / "Makefile").read_text()
    recipes = re.findall(r"^\t(.*)$", makefile, re.MULTILINE)
    assert len([line for line in recipes if "$(RUN)" in line or "$(PLAIN)" in line]) > 20
    assert not [line for line in recipes if re.search(r"\$\(PY|python|-m ", line)]
    assert "tools/run.py" in re.search(r"^RUN := (.*)$", makefile, re.MULTILINE)[1]
    assert "tools/run.py" in re.search(r"^PLAIN = (.*)$", makefile, re.MULTILINE)[1]


# --- an old Python

# What the grammar of Python 2.7 and of every Python 3 has; a node of another kind is newer, or not
# worth the thought.
ANCIENT = {
    *(ast.Module, ast.Expr, ast.Assign, ast.If, ast.FunctionDef, ast.Return),
    *(ast.Import, ast.ImportFrom, ast.alias, ast.arguments, ast.arg),
    *(ast.Call, ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Constant, ast.List),
    *(ast.Tuple, ast.ListComp, ast.comprehension, ast.BinOp, ast.Add, ast.UnaryOp, ast.USub),
    *(ast.Compare, ast.Lt, ast.Eq, ast.NotEq, ast.Load, ast.Store),
}


def too_new(source: str) -> list[str]:
    """What an old Python could not read, or would not find, before it is told that it is old."""
    problems = [] if source.isascii() else ["a letter that Python 2 wants an encoding for"]
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if type(node) not in ANCIENT:
            problems.append(type(node).__name__)
        if isinstance(node, ast.FunctionDef):
            given = node.args
            if given.posonlyargs or given.kwonlyargs or given.vararg or node.returns:
                problems.append("arguments")
            problems += [f"{each.arg}: ..." for each in given.args if each.annotation]
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print":
            problems.append("print")
        if isinstance(node, ast.Constant) and not isinstance(node.value, (str, int)):
            problems.append(repr(node.value))
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {alias.name for node in imports for alias in node.names}
    return problems + sorted(names - {"os", "sys"})


def test_the_first_file_can_be_read_by_any_python():
    assert too_new(RUN.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        "x = f'{1}'",
        "x: int = 1",
        "def f(x: int): pass",
        "def f() -> int: return 1",
        "def f(*, x): return 1",
        "print('x', file=1)",
        "x = 'ï'",
        "if (x := 1): x = 2",
        "from __future__ import annotations",
        "import pathlib",
        "try:\n    x = 1\nexcept ValueError:\n    raise KeyError from None",
        "async def f(): return 1",
        "with open('x') as x, open('y') as y: x = 1",
        "x = [*y]",
    ],
)
def test_what_is_too_new_is_seen(line):
    assert too_new(line)


@pytest.mark.parametrize(
    ("end", "status"),
    [("pass", 0), ("sys.exit(2)", 2), ("time.sleep(0.2); print('more', flush=True)", 141)],
)
def test_a_reader_who_has_seen_enough_gets_no_traceback(tmp_path, end, status):
    """As in ``make return | head -1``; work that was done keeps its status."""
    code = f"import sys, time\nprint('one', flush=True)\nsys.stdin.read()\nprint('two')\n{end}\n"
    (tmp_path / "talks.py").write_text(code)
    process = subprocess.Popen(
        [sys.executable, str(RUN), "talks"],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONUNBUFFERED": ""},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"one\n"
    process.stdout.close()
    assert process.communicate(timeout=30)[1] == b""
    assert process.returncode == status


def test_a_pipe_that_breaks_elsewhere_is_an_error(tmp_path):
    (tmp_path / "talks.py").write_text("raise BrokenPipeError('of another program')")
    words = [sys.executable, str(RUN), "talks"]
    done = subprocess.run(
        words, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "BrokenPipeError: of another program" in done.stderr


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 4, 10), (3, 9, 6), (3, 10, 1)])
def test_an_old_python_is_told_so_before_anything_newer_is_read(version, monkeypatch, capsys):
    release = ".".join(map(str, version))
    monkeypatch.setattr(sys, "version_info", version)
    monkeypatch.setattr(sys, "version", f"{release} (default)")
    monkeypatch.setitem(sys.modules, "tools.stop", None)  # importing it would fail
    names = {"__name__": "run", "__file__": str(RUN)}
    exec(compile(RUN.read_text(), RUN, "exec"), names)
    assert names["main"](["tools.env", "book"]) == 2
    assert capsys.readouterr().err == (
        f"Python 3.11 or newer is needed, this is {release}: install it, or say "
        "`make PYTHON=/path/to/python3.11 ...`\n"
    )


@pytest.mark.parametrize("target", ["start", "serve", "check"])
def test_make_without_any_python_says_so(target, tmp_path):
    (tmp_path / "make").symlink_to(Path(os.environ.get("MAKE", "/usr/bin/make")).resolve())
    done = subprocess.run(
        [str(tmp_path / "make"), target],
        cwd=ROOT,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "Python 3.11 or newer is needed, and there is no python3.11" in done.stderr
    assert "make PYTHON=/path/to/python3.11" in done.stderr
