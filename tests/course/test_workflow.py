"""The workflow of a learner's repository: what it may do, and its commands, which are run."""

import os
import shutil
import subprocess
import sys

import pytest
import yaml

from tools import learner_tree

ROOT = learner_tree.ROOT
SLUG = "01-attention"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The folder that learners get, with this environment."""
    target = tmp_path_factory.mktemp("learner") / "tree"
    assert learner_tree.build(target) == []
    (target / ".venv").symlink_to(sys.prefix)
    return target


@pytest.fixture(scope="module")
def workflow(tree):
    text = (tree / learner_tree.WORKFLOW).read_text(encoding="utf-8")
    # YAML 1.1 reads the key `on` as a truth value.
    return yaml.load(text, yaml.BaseLoader)


def steps(workflow) -> list[dict]:
    (job,) = workflow["jobs"].values()
    return job["steps"]


def test_it_may_read_and_nothing_else_and_runs_when_work_is_pushed(workflow):
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["on"]["push"] == {"paths": ["work/**"]}
    assert set(workflow["on"]) == {"push", "workflow_dispatch"}
    (job,) = workflow["jobs"].values()
    assert int(job["timeout-minutes"]) <= 60
    assert "permissions" not in job
    assert "secrets" not in str(workflow)


def test_its_actions_and_its_python_are_those_of_this_repository(workflow):
    ours = yaml.load((ROOT / ".github/workflows/test.yml").read_text(), yaml.BaseLoader)
    used = [step for step in steps(workflow) if "uses" in step]
    assert used
    assert all(step in steps(ours) for step in used)


def test_it_runs_the_public_tests_alone(workflow):
    commands = [step["run"] for step in steps(workflow) if "run" in step]
    assert commands == ["make check"]


@pytest.mark.parametrize(
    ("notebook", "code", "message"),
    [("solutions", 0, "done"), ("exercises", 2, "not yet")],
)
def test_its_commands_say_how_far_the_work_is(tree, workflow, notebook, code, message):
    folder = tree / "work" / SLUG
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(ROOT / notebook / SLUG / f"{SLUG}.ipynb", folder)
    for command in (step["run"] for step in steps(workflow) if "run" in step):
        done = subprocess.run(
            ["bash", "-e", "-c", command],
            cwd=tree,
            # PYTHON: the environment is made already, and must not be made anew for the copy.
            env={**os.environ, "PYTHON": "true", "PYTHONPATH": str(tree)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert message in done.stdout
