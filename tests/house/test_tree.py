"""What stands where, and what a tracked file may not contain."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIXED = [
    "_config.yml",
    "_toc.yml",
    "book",
    "exercises",
    "solutions",
    "lib",
    "tests",
    "environment.yml",
]
LARGEST = 1_500_000  # bytes

# Written in two parts each, so that this file does not contain what it forbids.
FORBIDDEN = {
    "a path of one machine": "|".join(
        re.escape("/" + name)
        for name in ("work" + "/", "farm" + "/", "opt/" + "wheels", "opt/" + "pypi", "root/" + ".")
    ),
    "a package registry's host": "|".join(
        re.escape(host)
        for host in (
            "pypi" + ".org",
            "pythonhosted" + ".org",
            "registry." + "npmjs",
            "deb." + "debian.org",
        )
    ),
    "a mark of unfinished work": r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3)) + r")\b",
}
# Third-party files that are kept as they came.
VENDORED = ("book/_static/mathjax/", "tests/browser/vendor/")


def tracked() -> list[Path]:
    """Every file git tracks, or would track if it were added now."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]


def test_the_fixed_tree_is_there():
    missing = [name for name in FIXED if not (ROOT / name).exists()]
    assert not missing, f"missing at the top level: {missing}"


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_tracked_file_contains(what):
    matches = []
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(VENDORED):
            continue
        text = path.read_text(encoding="utf-8", errors="ignore")
        for number, line in enumerate(text.splitlines(), 1):
            if match := re.search(FORBIDDEN[what], line):
                matches.append(f"{name}:{number}: {match[0]}")
    assert not matches, f"{what}:\n" + "\n".join(matches)


def test_no_tracked_file_is_large():
    large = {
        path.relative_to(ROOT).as_posix(): path.stat().st_size
        for path in tracked()
        if path.stat().st_size > LARGEST
    }
    assert not large, f"over {LARGEST} bytes: {large}"


def test_no_tracked_file_is_a_link():
    """A link to an environment would come with the clone, and point nowhere."""
    command = ["git", "ls-files", "--stage"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert [line for line in listed.splitlines() if line.startswith("120000")] == []


def test_lib_is_not_ignored_by_git():
    """Common .gitignore templates ignore ``lib/``; a new module would silently stay behind."""
    result = subprocess.run(
        ["git", "check-ignore", "lib/new_module.py"], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode == 1, f"git ignores lib/: {result.stdout}{result.stderr}"
