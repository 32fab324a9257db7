"""How a folder's tests are shared out between two test processes."""

from collections.abc import Callable

import pytest


def shared_by(part: Callable[[str], str]) -> Callable:
    """pytest-xdist's hook for a conftest.py: tests of which `part` says the same run together.

    The mark `xdist_group` would say it too; under pytest 9.2, pytest-xdist 3.8 does not see it.

    Args:
        part: what a test belongs to, from its id (``tests/answers/test_answers.py::test_x[a]``).
    """

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(config: pytest.Config, log):
        from xdist.scheduler import LoadScopeScheduling

        class ByPart(LoadScopeScheduling):
            def _split_scope(self, nodeid: str) -> str:
                return part(nodeid)

        return ByPart(config, log)

    return pytest_xdist_make_scheduler
