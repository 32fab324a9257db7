"""What the site offers for download, and the first page's list of it.

========================  =======================================================================
in ``_build/take-away``   what it is
========================  =======================================================================
``*.whl``                 `lib` with its recorded runs: a downloaded chapter needs no more of this
                          course
``exercises/*.ipynb``     the released exercises, one by one
``*-exercises.zip``       the same as one file; equal contents give equal bytes
``*.pdf``, ``*.epub``     the book, made from the built pages (`tools.paper`)
========================  =======================================================================

The first three take seconds and are part of every build of the site (`tools.book`). PDF and EPUB
take minutes and need Chromium: ``make take-away`` makes them (`tools.take_away`), and the site
offers them for as long as its pages are those they were made from. So no link of the first page is
dead.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "_build/take-away"
DOWNLOADS = "_downloads"  # where the site keeps them
NAME = "attention-position-cache"
ZIP, PDF, EPUB = f"{NAME}-exercises.zip", f"{NAME}.pdf", f"{NAME}.epub"
LONG = (PDF, EPUB)  # made only on request
OPENING, CLOSING = "<!-- take-away -->", "<!-- /take-away -->"  # see book/_ext/course_site.py
BLOCK = re.compile(f"{OPENING}.*?{CLOSING}", re.DOTALL)
EARLIEST = (1980, 1, 1, 0, 0, 0)  # the time of every file in an archive
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
README = """\
The exercises of the course "Attention, Position, Cache"

Each folder holds one notebook. It needs Python 3.11 or newer with numpy, torch, matplotlib and
Jupyter, and nothing else of this course. In this folder, say:

    python3 -m venv env
    . env/bin/activate                 (on Windows: env\\Scripts\\activate)
    python -m pip install numpy torch matplotlib jupyterlab
    jupyter lab

This takes some minutes, and on Linux 6 GB, most of it for PyTorch. The next time, the second and
the last line are enough.

Open a notebook and run its first two cells. Then write the missing parts; the test below each one
tells you what is not right yet. The "Validate" button that the notebooks mention is not there:
"Restart Kernel and Run All Cells" in the menu "Kernel" shows the same. If you want the button,
add nbgrader to the list above.
"""


# --- the wheel


def wheel_name(root: Path) -> str:
    """The file name of the wheel, which pip insists on."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return f"{project['name'].replace('-', '_')}-{project['version']}-py3-none-any.whl"


def write_wheel(root: Path, folder: Path) -> Path:
    """Build the wheel of `lib` into a folder, without the network.

    The sources are copied first: setuptools would leave its own folders among them, and would put
    what an earlier build left there into the wheel.
    """
    with tempfile.TemporaryDirectory() as scratch:
        stage, built = Path(scratch) / "source", Path(scratch) / "built"
        stage.mkdir()
        for name in ("pyproject.toml", "README.md", "LICENSE", "LICENSE-TEXT"):
            shutil.copy(root / name, stage)
        for name in ("lib", "benchmarks/results"):
            without = shutil.ignore_patterns("__pycache__", ".*")
            shutil.copytree(root / name, stage / name, ignore=without)
        command = [sys.executable, "-c", BUILD, str(built)]
        instant = str(int(time.mktime((*EARLIEST, 0, 0, 0)) - time.timezone))
        environment = {**os.environ, "SOURCE_DATE_EPOCH": instant}
        done = subprocess.run(command, cwd=stage, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the wheel of lib does not build:\n{done.stdout}\n{done.stderr}")
        (wheel,) = built.glob("*.whl")
        if wheel.name != wheel_name(root):
            raise RuntimeError(f"expected {wheel_name(root)}, setuptools made {wheel.name}")
        return Path(shutil.copy(wheel, folder))


def wheel_key(root: Path) -> str:
    """A hash of everything the wheel is made from."""
    files = [root / name for name in ("pyproject.toml", "README.md", "LICENSE", "LICENSE-TEXT")]
    for kind in ("*.py", "*.css", "*.js"):
        files += sorted((root / "lib").rglob(kind))
    files += sorted(root.glob("benchmarks/results/*.json"))
    return digest({path.relative_to(root).as_posix(): path.read_bytes() for path in files})


def digest(contents: dict[str, bytes]) -> str:
    """A hash of named contents."""
    sha256 = hashlib.sha256()
    for name, content in contents.items():
        sha256.update(f"\0{name}\0{len(content)}\0".encode() + content)
    return sha256.hexdigest()


# --- the exercises


def released(root: Path) -> dict[str, bytes]:
    """The released exercises by slug.

    Somebody may have worked in `exercises/`, and their work does not belong on the site: unless
    ``make exercises`` wrote the notebook as it is now, the committed version is taken.
    """
    try:
        written = json.loads((root / "_build" / "exercises.json").read_text())
    except (OSError, ValueError):
        written = {}
    releases = {}
    for path in sorted((root / "exercises").glob("*/*.ipynb")):
        slug = path.stem
        if path.parent.name != slug:
            continue
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != written.get(f"{slug}/{slug}.ipynb"):
            content = committed(root, path) or content
        releases[slug] = content
    return releases


def committed(root: Path, path: Path) -> bytes | None:
    """A file as the last commit has it; ``None`` outside git, or if it is not in it."""
    command = ["git", "show", f"HEAD:./{path.relative_to(root).as_posix()}"]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True)
    except OSError:  # no git
        return None
    return None if done.returncode else done.stdout


def write_zip(root: Path, path: Path) -> None:
    """All released exercises as one file, with a README and the licences."""
    contents = {f"{slug}/{slug}.ipynb": content for slug, content in released(root).items()}
    contents["README.txt"] = README.encode()
    for name in ("LICENSE", "LICENSE-TEXT"):
        contents[name] = (root / name).read_bytes()
    write_archive(path, {f"{path.stem}/{name}": contents[name] for name in sorted(contents)})


def write_archive(path: Path, contents: dict[str, bytes], stored: tuple[str, ...] = ()) -> None:
    """A zip file of named contents in the order given, the same bytes whenever it is made."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name, EARLIEST)
            entry.create_system = 3  # Unix, whatever this is
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)


# --- the site


def prepare(root: Path) -> None:
    """Before the pages: the wheel, the exercises and their zip, in ``_build/take-away``."""
    folder = root / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    recorded = record(root)
    if (root / "pyproject.toml").is_file():
        name, key = wheel_name(root), wheel_key(root)
        for other in set(folder.glob("*.whl")) - {folder / name}:
            other.unlink()
        if recorded.get(name) != key or not (folder / name).is_file():
            write_wheel(root, folder)
            remember(root, name, key)
    shutil.rmtree(folder / "exercises", ignore_errors=True)
    if contents := released(root):
        (folder / "exercises").mkdir()
        for slug, content in contents.items():
            (folder / "exercises" / f"{slug}.ipynb").write_bytes(content)
        write_zip(root, folder / ZIP)


def record(root: Path) -> dict[str, str]:
    """The files made so far, each with a hash of its sources."""
    try:
        return json.loads((root / FOLDER / "made.json").read_text())
    except (OSError, ValueError):
        return {}


def remember(root: Path, name: str, key: str) -> None:
    (root / FOLDER / "made.json").write_text(json.dumps({**record(root), name: key}, indent=1))


def pages_key(root: Path) -> str:
    """A hash of the built pages and their images, without the list on the first page."""
    site = root / "_build" / "html"
    contents = {}
    for path in sorted(site.rglob("*")):
        name = path.relative_to(site).as_posix()
        if path.is_file() and name.startswith(("book/", "_images/", "_static/")):
            content = path.read_bytes()
            if path.suffix == ".html":
                content = BLOCK.sub(OPENING + CLOSING, content.decode()).encode()
            contents[name] = content
    contents["code"] = b"".join((ROOT / "tools" / name).read_bytes() for name in PAPER)
    return digest(contents)


PAPER = (
    "paper.py",
    "paper.css",
    "paper.js",
    "epub.css",
)  # the code that makes PDF and EPUB from the pages


def place(root: Path) -> None:
    """After the pages: copy everything into the site, and list it on the first page."""
    folder, site = root / FOLDER, root / "_build" / "html"
    downloads = site / DOWNLOADS
    shutil.rmtree(downloads, ignore_errors=True)
    shutil.copytree(folder, downloads, ignore=shutil.ignore_patterns("made.json", *LONG))
    recorded = record(root)
    long = [name for name in LONG if (folder / name).is_file()]
    if long:
        key = pages_key(root)
        for name in long:
            if recorded.get(name) == key:
                shutil.copy(folder / name, downloads)
    for page in (site / "book").glob("index.html"):
        text = page.read_text(encoding="utf-8")
        page.write_text(BLOCK.sub(block(downloads), text), encoding="utf-8")


def block(downloads: Path) -> str:
    """The list on the first page: each download with its size."""
    count = len(list((downloads / "exercises").glob("*.ipynb")))
    names = {
        ZIP: f"All {count} exercises in one zip file",
        PDF: "The book as PDF, to print",
        EPUB: "The book as EPUB, for e-readers",
    }
    items = [
        f'<li><a href="../{DOWNLOADS}/{name}">{words}</a> ({size(downloads / name)})</li>'
        for name, words in names.items()
        if (downloads / name).is_file()
    ]
    listed = f'<ul class="take-away">{"".join(items)}</ul>' if items else ""
    return f"{OPENING}{listed}{CLOSING}"


def size(path: Path) -> str:
    """The size of a file, readable."""
    n_bytes = path.stat().st_size
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes >= 1e6 else f"{n_bytes / 1e3:.0f} kB"
