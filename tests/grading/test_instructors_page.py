"""The pages for instructors: their commands, run in a fresh clone, the main page's first."""

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from course_folder import ROOT

MAIN = "book/for-instructors"


def pages() -> dict[str, str]:
    """The main page and those below it in the table of contents, in its order: their texts."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    entries = [entry for part in toc["parts"] for entry in part["chapters"]]
    (sections,) = (entry["sections"] for entry in entries if entry["file"] == MAIN)
    names = [MAIN, *(page["file"] for page in sections)]
    return {name: (ROOT / f"{name}.md").read_text(encoding="utf-8") for name in names}


def blocks(language: str) -> list[tuple[str, str]]:
    """The blocks of code marked so, each with its page, in the order in which they are run."""
    fence = rf"^```{language}\n(.*?)^```$"
    return [
        (name, block)
        for name, text in pages().items()
        for block in re.findall(fence, text, re.MULTILINE | re.DOTALL)
    ]


PAGE = "\n".join(pages().values())
BLOCKS = blocks("bash")
ASSIGNMENT = "01-attention"
WRITTEN = [
    "downloads",
    "submitted",
    "autograded",
    "feedback",
    "reports",
    "progress",
    "gradebook.db",
]


def clone(target: Path) -> Path:
    """A clone of the repository as it stands here, committed or not, with this environment."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "--all"), (*who, "commit", "-qm", "The course")):
        subprocess.run(["git", *words], cwd=target, check=True)
    (target / ".venv").symlink_to(sys.prefix)
    return target


def follow(blocks: list[str], course: Path, home: Path) -> str:
    """Run a page's commands in a course folder, up to the first that fails; what they print."""
    done = subprocess.run(
        ["bash", "-e"],
        input="\n".join(blocks),
        cwd=course,
        # PYTHON: the environment is made already, and must not be made anew for the clone.
        env={**os.environ, "PYTHON": "true", "PYTHONPATH": str(course), "HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """The course folder after every command of the pages, and what they printed, block by block."""
    folder, home = clone(tmp_path_factory.mktemp("course")), tmp_path_factory.mktemp("home")
    parts = [f"echo '=== block {name}'\n{block}" for name, block in BLOCKS]
    return folder, follow(parts, folder, home)


def test_the_main_page_comes_first_and_every_page_of_the_folder_is_read():
    names = [path.stem for path in (ROOT / "book" / "instructors").glob("*.md")]
    first, *others = pages()
    assert first == MAIN
    assert sorted(others) == sorted(f"book/instructors/{name}" for name in names)
    assert BLOCKS[0][0] == MAIN


def test_the_rule_for_late_submissions_runs():
    (rule,) = (block for _, block in blocks("python") if "late_submission_penalty" in block)
    config = type("Config", (), {})()
    config.AssignLatePenalties = type("Section", (), {})()
    exec(rule, {"c": config})
    plugin = config.AssignLatePenalties.plugin_class()
    assert plugin.late_submission_penalty("ada", 20.0, 1) == pytest.approx(2.0)
    assert plugin.late_submission_penalty("ada", 20.0, 86_401) == pytest.approx(4.0)
    assert plugin.late_submission_penalty("ada", 20.0, 50 * 86_400) == 20.0


def test_files_and_messages_that_the_page_names_are_there():
    sources = "".join(path.read_text() for path in (ROOT / "grading").rglob("*.py"))
    sources = re.sub(r'"\s*\n?\s*f?"', "", sources)
    for message in ("bwrap was not found", "nobody handed in", "another run is grading"):
        assert message in PAGE
        assert message in sources
    for message in ("left out: rename the folder", "timestamp.txt is no date"):
        assert message in PAGE
        assert message in sources
    limits = re.findall(r"`(?:c\.RunCells\.)?(\w+)` \((\d+)", PAGE)
    assert len(limits) == 5
    for name, value in limits:
        assert re.search(rf"{name} = (?:Float|Int)\({value}(?:\.0)?,", sources), name
    for path in ("CONTRIBUTING.md", "grading/README.md", "nbgrader_config.py"):
        assert path in PAGE
        assert (ROOT / path).is_file()


@pytest.mark.long
def test_every_command_works(followed):
    folder, output = followed
    assert all((folder / name).exists() for name in WRITTEN)
    with (folder / "reports" / f"grades-{ASSIGNMENT}.csv").open(newline="") as file:
        table = {row["learner"]: row for row in csv.DictReader(file)}
    best = table["ada"]["max_score"]
    assert {name: (row["score"], row["status"]) for name, row in table.items()} == {
        "ada": (best, "graded"),
        "bob": ("0.0", "graded"),
        "eve": ("0.0", "zero"),
    }
    late = {name: row["late"] for name, row in table.items()}
    assert late == {"ada": "yes", "bob": "no", "eve": "yes"}
    for learner in table:
        page = folder / "reports" / f"{ASSIGNMENT}-{learner}.html"
        assert page.read_bytes()
    assert "its JSON is broken" in (folder / "reports" / f"{ASSIGNMENT}-eve.html").read_text()
    assert "| wrong/" in (folder / "reports" / "kill-matrix.md").read_text()
    assert "Every answer is scored as its header expects." in output
    assert "no hidden test and no solution in _build/learner, exercises" in output


@pytest.mark.long
def test_what_one_way_graded_the_others_leave_alone(followed):
    _, output = followed
    _, *texts = output.split("=== block ")
    (autograde,) = (
        text
        for text, (_, block) in zip(texts, BLOCKS, strict=True)
        if block.startswith("nbgrader autograde")
    )
    assert autograde.count("unchanged") == 3


@pytest.mark.long
def test_nothing_of_it_would_be_committed(followed):
    folder, _ = followed
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=folder, capture_output=True, text=True, check=True
    )
    # The link to this environment is the test's own.
    assert [line for line in status.stdout.splitlines() if line != "?? .venv"] == []
