"""Two test processes share exercises: an answer that is scored for one test serves the others."""

from tests.processes import shared_by
from tools import exercises


def exercise_or_file(nodeid: str) -> str:
    """The exercise in a test's name; the file of a test that is about none."""
    path, _, name = nodeid.partition("::")
    return next((slug for slug in exercises.slugs() if slug in name), path)


pytest_xdist_make_scheduler = shared_by(exercise_or_file)
