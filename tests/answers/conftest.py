"""Two test processes share exercises: an answer that is scored for one test serves the others."""

import pytest

from tools import exercises


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    """Share out the tests by the exercise in their names.

    The mark `xdist_group` would say it too; under pytest 9.2, pytest-xdist 3.8 does not see it.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByExercise(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path, _, name = nodeid.partition("::")
            return next((slug for slug in exercises.slugs() if slug in name), path)

    return ByExercise(config, log)
