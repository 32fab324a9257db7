"""The places that name a version agree."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# conda's name → PyPI's
CONDA_NAMES = {"pytorch": "torch", "pytorch-cpu": "torch", "matplotlib-base": "matplotlib"}


def lock() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pins}


def requirements() -> list[Requirement]:
    project = PYPROJECT["project"]
    extras = project["optional-dependencies"].values()
    return [Requirement(text) for group in (project["dependencies"], *extras) for text in group]


def environment() -> tuple[dict[str, str], list[str]]:
    """The pins of environment.yml, and what it hands to pip."""
    listed = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    pins = dict(item.split("=") for item in listed if isinstance(item, str) and "=" in item)
    (through_pip,) = [item["pip"] for item in listed if isinstance(item, dict)]
    return pins, through_pip


def test_the_lock_pins_every_requirement_within_its_bounds():
    pins = lock()
    wrong = [
        f"{requirement}: locked {pins.get(canonicalize_name(requirement.name))}"
        for requirement in requirements()
        if not requirement.specifier.contains(
            pins.get(canonicalize_name(requirement.name), "0"), prereleases=True
        )
    ]
    assert not wrong, wrong


def test_environment_yml_has_the_locked_versions():
    pins, _ = environment()
    python = pins.pop("python")
    expected = {name: lock()[CONDA_NAMES.get(name, name)] for name in pins}
    assert pins == expected
    assert PYPROJECT["project"]["requires-python"] == f">={python}"


def test_environment_yml_installs_every_extra_under_the_lock():
    _, through_pip = environment()
    assert "--constraint requirements.lock" in through_pip
    extras = ",".join(PYPROJECT["project"]["optional-dependencies"])
    assert f"--editable .[{extras}]" in through_pip


def test_binder_has_what_lib_needs_in_the_locked_minor_versions():
    listed = yaml.safe_load((ROOT / "binder" / "environment.yml").read_text())["dependencies"]
    names = [item.split("=")[0] for item in listed]
    pins = {CONDA_NAMES.get(name, name): pin for name, _, pin in (i.partition("=") for i in listed)}
    assert PYPROJECT["project"]["requires-python"] == f">={pins.pop('python')}"
    for name, pin in pins.items():
        assert name in ("pip", "setuptools") or lock()[name].rsplit(".", 1)[0] == pin, name
    assert {Requirement(text).name for text in PYPROJECT["project"]["dependencies"]} <= set(pins)
    assert {"ipykernel", "pytorch-cpu"} <= set(names)  # a kernel, and no CUDA


def test_binder_removes_nothing_outside_binder(tmp_path):
    """The script that hides solutions there must do no harm where somebody runs it by hand."""
    script = (ROOT / "binder" / "postBuild").read_text().replace("python -m pip", "true")
    for name in ("solutions", "tests/answers", ".git", "book"):
        (tmp_path / name).mkdir(parents=True)

    def left(**environment):
        subprocess.run(["sh", "-c", script], cwd=tmp_path, env=environment, check=True)
        return {path.name for path in (*tmp_path.iterdir(), *(tmp_path / "tests").iterdir())}

    assert left() == {"solutions", "tests", "answers", ".git", "book"}
    assert left(REPO_DIR="/elsewhere") == {"solutions", "tests", "answers", ".git", "book"}
    assert left(REPO_DIR=str(tmp_path)) == {"tests", "book"}
    assert os.access(ROOT / "binder" / "postBuild", os.X_OK)


def test_one_version_of_the_course():
    version = PYPROJECT["project"]["version"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    released = re.findall(
        r"^## \[(\d[^\]]*)\] - (\S+)", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE
    )
    assert citation["version"] == version
    assert released[0] == (version, str(citation["date-released"]))
