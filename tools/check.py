"""Run the stages of `make test` or `make test-long`, and summarize the results.

``python -m tools.check [--long] STAGE ...`` runs the named stages in order. A stage that fails
does not stop the others; the exit status is 1 if any failed. If a system program that a
stage needs is missing, the stage is reported as LEFT OUT, with how to install the program; under
``CI=true`` that is a failure.
"""

import os
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from tools import ask, start

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable


@dataclass(frozen=True)
class Stage:
    """One check: its description, the commands it runs, and the system program it needs."""

    about: str
    commands: tuple[tuple[str, ...], ...]
    program: str | None = None


QUICK, LONG = ("-m", "not long"), ("-m", "long")
TWO = ("--numprocesses=2", "--dist=loadfile")  # two test processes, which share files of tests
# One more where tests often wait for a limit that is to be reached.
THREE = ("--numprocesses=3", "--dist=loadfile")
EVENLY = ("--numprocesses=2", "--dist=worksteal")  # the same; they share single tests


def pytest(*arguments: str) -> tuple[str, ...]:
    """A pytest command without the tests marked long; :func:`long_half` gives it those instead."""
    return (PYTHON, "-m", "pytest", "-q", *arguments, *QUICK)


def long_half(stage: Stage) -> Stage:
    """What `make test-long` runs of a stage: its pytest commands, with the tests marked long."""
    commands = tuple(c[:-2] + LONG for c in stage.commands if c[-2:] in (QUICK, LONG))
    return replace(stage, commands=commands)


# folders with a stage of their own
ELSEWHERE = ("answers", "browser", "course", "grading", "house")
STAGES = {
    "lint": Stage(
        "style, spelling, and what a tracked file may not contain",
        (
            (PYTHON, "-m", "ruff", "check", "."),
            (PYTHON, "-m", "ruff", "format", "--check", "."),
            (PYTHON, "-m", "codespell_lib"),
            pytest("tests/house"),
        ),
    ),
    "library": Stage(
        "lib/ by hand, against independent implementations, and its docstrings",
        (
            pytest(
                *EVENLY,
                "tests",
                *(f"--ignore=tests/{name}" for name in ELSEWHERE),
                "--doctest-modules",
                "lib",
            ),
        ),
    ),
    "book": Stage("the book, built strictly", ((PYTHON, "-m", "tools.book"),)),
    "course": Stage(
        "chapters, claims, exercises, contents",
        (pytest(*TWO, "tests/course"),),
    ),
    "nbval": Stage(
        "every solution executed with its hidden tests",
        (
            (
                *(PYTHON, "-m", "pytest", "-q", *TWO),
                *("--nbval", "--nbval-cell-timeout=120", "solutions"),
            ),
        ),
    ),
    "answers": Stage("wrong answers lose, right answers keep", (pytest(*TWO, "tests/answers"),)),
    "grading": Stage("from release to feedback, on fixtures", (pytest(*THREE, "tests/grading"),)),
    "browser": Stage(
        "the built site in Chromium",
        (pytest(*TWO, "tests/browser"),),
        program="chromium",
    ),
}


def environment(command: tuple[str, ...]) -> dict[str, str]:
    """Two threads per process, or one if there are several: more would wait for each other.

    A fixed number makes timings and memory comparable between machines.
    """
    threads = "1" if any("--numprocesses" in word for word in command) else "2"
    return {"OMP_NUM_THREADS": threads, "PYTHONHASHSEED": "0", **os.environ}


def run(stage: Stage) -> tuple[str, float]:
    """Run a stage's commands until one fails; return the verdict and the seconds it took."""
    try:
        if stage.program:
            ask.program(stage.program)
    except start.Problem as problem:
        return f"{'FAILED' if os.environ.get('CI') else 'LEFT OUT'} ({problem})", 0.0
    begun = time.monotonic()
    for command in stage.commands:
        print("$ " + " ".join(command).replace(PYTHON, "python"), flush=True)
        code = subprocess.run(command, cwd=ROOT, env=environment(command)).returncode
        if code:
            return f"FAILED (exit {code})", time.monotonic() - begun
    return "passed", time.monotonic() - begun


def main(arguments: list[str]) -> int:
    long = "--long" in arguments
    names = [name for name in arguments if name != "--long"]
    unknown = [name for name in names if name not in STAGES]
    if unknown or not names:
        print(f"unknown stage {unknown}, known are {', '.join(STAGES)}", file=sys.stderr)
        return 2
    stages = {name: long_half(STAGES[name]) if long else STAGES[name] for name in names}
    if empty := [name for name, stage in stages.items() if not stage.commands]:
        print(f"{', '.join(empty)} has no long half", file=sys.stderr)
        return 2
    results = {}
    for index, (name, stage) in enumerate(stages.items(), 1):
        print(f"\n=== {index}/{len(names)} {name}: {stage.about}", flush=True)
        results[name] = run(stage)
        print(f"=== {name}: {results[name][0]} in {results[name][1]:.0f} s", flush=True)
    return summarize(results)


def summarize(results: dict[str, tuple[str, float]]) -> int:
    """Print a line per stage and the closing count; return the exit status."""
    width = max(map(len, results))
    print("\nSummary")
    for name, (verdict, seconds) in results.items():
        print(f"  {name:<{width}}  {seconds:6.0f} s  {verdict}")
    print(f"  {'total':<{width}}  {sum(seconds for _, seconds in results.values()):6.0f} s")
    verdicts = [verdict.split()[0] for verdict, _ in results.values()]
    failed, passed = verdicts.count("FAILED"), verdicts.count("passed")
    print(f"{passed} passed, {failed} failed, {len(verdicts) - passed - failed} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
