"""Which of many cases alike `make test` runs, while `make test-long` has the rest."""

from collections.abc import Callable, Container, Iterable
from typing import Any

import pytest

# A test with this parameter is made in both halves, with what a fixture prepared for each.
HALVES = pytest.mark.parametrize("half", ["now", pytest.param("long", marks=pytest.mark.long)])


def some_now(
    cases: Iterable,
    now: Container | Callable[[Any], bool],
    name: Callable[[Any], str] | None = None,
) -> list:
    """Parameters for a test: the cases of `now` as they are, the others marked long.

    Args:
        cases: a value, or a tuple of several, for each case.
        now: the cases for `make test`, or a function that tells them.
        name: what a case is called in the test's name; as pytest does when not given.
    """
    chosen = now if callable(now) else now.__contains__
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            id=name and name(case),
            marks=() if chosen(case) else pytest.mark.long,
        )
        for case in cases
    ]


def asked_for(request: pytest.FixtureRequest, parameter: str) -> list:
    """The values of a parameter in those tests of a file that this run is going to make.

    For a fixture that prepares all of its file's cases at once.
    """
    tests = (test for test in request.session.items if test.path == request.path)
    given = (test.callspec.params for test in tests if hasattr(test, "callspec"))
    return list(dict.fromkeys(each[parameter] for each in given if parameter in each))
