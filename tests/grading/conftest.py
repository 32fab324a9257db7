"""What several files of these tests share."""

import os
import sys
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

# nbgrader starts `alembic` by its name: as in nbgrader_config.py.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


@pytest.fixture(scope="session")
def empty_gradebook(tmp_path_factory):
    """nbgrader takes two seconds to make one, so most tests start from a copy."""
    path = tmp_path_factory.mktemp("gradebook") / "gradebook.db"
    Gradebook(f"sqlite:///{path}", "attention-position-cache").close()
    return path


@pytest.fixture(scope="session")
def graded(tmp_path_factory):
    """A batch with every kind of submission, graded once; its exit code."""
    from test_grading import hand_in_all, new_course

    folder = new_course(tmp_path_factory.mktemp("course"))
    hand_in_all(folder)
    folder.code = folder.grade()
    return folder
