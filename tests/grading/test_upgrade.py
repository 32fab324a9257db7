"""A course that the first edition graded goes on under this one, or is refused untouched.

`data/course-0.1.tar.xz` is a course folder as the first edition left it: four submissions, of which
`partial` has a score and a comment given by hand and an extension, and `again` was handed in anew
in a batch that was then interrupted.
"""

import hashlib
import shutil
import tarfile
from pathlib import Path

import pytest
from course_folder import NAME, ROOT, Folder
from nbgrader.api import Gradebook

ARCHIVE = Path(__file__).with_name("data") / "course-0.1.tar.xz"


@pytest.fixture
def course(tmp_path):
    """The folder, with the settings that the first edition came with."""
    folder = Folder(tmp_path)
    (tmp_path / "nbgrader_config.py").unlink()
    with tarfile.open(ARCHIVE) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
        archive.extractall(tmp_path)
    return folder


def _contents(root: Path) -> dict[str, str]:
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_settings_of_the_first_edition_are_refused_and_nothing_is_touched(course, capsys):
    before = _contents(course.root)
    assert course.grade() == 2
    message = capsys.readouterr().err
    assert "nbgrader_config.py names plug-ins that this edition does not have" in message
    assert "put your own lines (limits, dates, plug-ins) at its end" in message
    assert "Traceback" not in message
    assert _contents(course.root) == before


def test_with_new_settings_it_goes_on_and_keeps_what_was_given_by_hand(course):
    shutil.copy(ROOT / "nbgrader_config.py", course.root)
    assert course.grade() == 0
    assert course.scores() == {
        "full": ("5.0", "graded"),
        "partial": ("3.0", "graded"),  # 2 by the tests and 1 by hand
        "cut": ("0.0", "zero"),
        "again": ("5.0", "graded"),
    }
    row = course.table()["partial"]
    assert (row["double-test"], row["shout-test"], row["late"]) == ("2.0", "1.0", "no")
    assert "to be looked at by hand: shout-test" in row["reason"]
    assert "Half of it was said aloud." in course.page("partial")
    assert "Score: 3 / 5" in course.words("partial")
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        assert gradebook.find_submission(NAME, "partial").extension.days == 2


def test_a_release_of_the_first_edition_is_graded(course):
    """What learners were given then and hand in now."""
    shutil.copy(ROOT / "nbgrader_config.py", course.root)
    course.hand_in("late", course.path("full").read_bytes())
    assert course.grade("--learner", "late") == 0
    assert course.scores()["late"] == ("5.0", "graded")
