"""Two test processes share this folder: see the stage `course` in ``tools/check.py``."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file stays in one process with what its fixtures made; perturbations share nothing."""
    for item in items:
        if item.path.name != "test_perturbations.py":
            item.add_marker(pytest.mark.xdist_group(item.path.name))
