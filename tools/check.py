"""Run the stages of `make test` or `make test-long`, and say at the end how each one went.

``python -m tools.check STAGE ...`` runs the named stages in order. A stage that fails does not
stop the others; the exit status is 1 if any failed. A stage that wants a system program which is
missing is reported as LEFT OUT, with the way to get it; under ``CI=true`` that is a failure.
"""

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable


@dataclass(frozen=True)
class Stage:
    """One check: what it is called, what it runs, which system program it cannot do without."""

    about: str
    commands: tuple[tuple[str, ...], ...]
    program: str | None = None


def pytest(*arguments: str, long: bool = False) -> tuple[str, ...]:
    return (PYTHON, "-m", "pytest", "-q", "-m", "long" if long else "not long", *arguments)


ELSEWHERE = (
    "answers",
    "browser",
    "course",
    "grading",
    "house",
)  # folders with a stage of their own
STAGES = {
    "lint": Stage(
        "style, spelling, and what a tracked file may not contain",
        (
            (PYTHON, "-m", "ruff", "check", "."),
            (PYTHON, "-m", "ruff", "format", "--check", "."),
            ("codespell",),
            pytest("tests/house"),
        ),
    ),
    "library": Stage(
        "lib/ by hand, against independent implementations, and its docstrings",
        (
            pytest(
                "tests",
                *(f"--ignore=tests/{name}" for name in ELSEWHERE),
                "--doctest-modules",
                "lib",
            ),
        ),
    ),
    "book": Stage("the book, built strictly", ((PYTHON, "-m", "tools.book"),)),
    "course": Stage("chapters, claims, exercises, contents", (pytest("tests/course"),)),
    "nbval": Stage(
        "every solution executed with its hidden tests",
        ((PYTHON, "-m", "pytest", "-q", "--nbval", "--nbval-cell-timeout=120", "solutions"),),
    ),
    "answers": Stage("wrong answers lose, right answers keep", (pytest("tests/answers"),)),
    "grading": Stage("from release to feedback, on fixtures", (pytest("tests/grading"),)),
    "browser": Stage("the built site in Chromium", (pytest("tests/browser"),), program="chromium"),
}
REMEDY = {
    "chromium": "install Chromium (Debian, Ubuntu: apt-get install chromium)",
    "bwrap": "install bubblewrap (Debian, Ubuntu: apt-get install bubblewrap)",
}


def environment() -> dict[str, str]:
    """Two threads at most per process, so that timings and memory stay what they are elsewhere."""
    return {"OMP_NUM_THREADS": "2", "PYTHONHASHSEED": "0", **os.environ}


def run(name: str) -> tuple[str, float]:
    stage = STAGES[name]
    if stage.program and not shutil.which(stage.program):
        verdict = "FAILED" if os.environ.get("CI") else "LEFT OUT"
        print(f"{stage.program} is missing: {REMEDY[stage.program]}", flush=True)
        return f"{verdict} (no {stage.program}: {REMEDY[stage.program]})", 0.0
    start = time.monotonic()
    for command in stage.commands:
        print("$ " + " ".join(command).replace(PYTHON, "python"), flush=True)
        code = subprocess.run(command, cwd=ROOT, env=environment()).returncode
        if code:
            return f"FAILED (exit {code})", time.monotonic() - start
    return "passed", time.monotonic() - start


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in STAGES]
    if unknown or not names:
        print(f"unknown stage {unknown}, known are {', '.join(STAGES)}", file=sys.stderr)
        return 2
    results = {}
    for index, name in enumerate(names, 1):
        print(f"\n=== {index}/{len(names)} {name}: {STAGES[name].about}", flush=True)
        results[name] = run(name)
        print(f"=== {name}: {results[name][0]} in {results[name][1]:.0f} s", flush=True)
    width = max(map(len, names))
    print("\nSummary")
    for name, (verdict, seconds) in results.items():
        print(f"  {name:<{width}}  {seconds:6.0f} s  {verdict}")
    total = sum(seconds for _, seconds in results.values())
    failed = [name for name, (verdict, _) in results.items() if verdict.startswith("FAILED")]
    passed = sum(verdict == "passed" for verdict, _ in results.values())
    print(f"  {'total':<{width}}  {total:6.0f} s")
    if failed:
        print("failed: " + ", ".join(failed))
    print(f"{passed} passed, {len(failed)} failed, {len(results) - passed - len(failed)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
