"""What several files of these tests share."""

import pytest
from nbgrader.api import Gradebook


@pytest.fixture(scope="session")
def empty_gradebook(tmp_path_factory):
    """nbgrader takes two seconds to make one, so most tests start from a copy."""
    path = tmp_path_factory.mktemp("gradebook") / "gradebook.db"
    Gradebook(f"sqlite:///{path}", "attention-position-cache").close()
    return path
