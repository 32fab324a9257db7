"""The learner's metadata never reaches nbgrader."""

import pytest
from course_folder import answers, source
from nbgrader.nbgraderformat import MetadataValidator

from grading.notebook import Cell, rebuild


def cells(notebook=None, **changes):
    """The cells of a submission, some replaced (by a list of cells, or by none)."""
    result = []
    for cell in (notebook or answers()).cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        read = Cell(cell.cell_type, cell.source, name, cell.id)
        result += changes.get((name or "title").replace("-", "_"), [read])
    return result


def names(notebook):
    return [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells]


ALL = [None, "double", "double-test", "shout", "shout-test"]


def test_an_untouched_notebook_gets_our_metadata_and_our_tests():
    result = rebuild(cells(), source())
    assert names(result) == ALL
    for cell, released, original in zip(result.cells, answers().cells, source().cells, strict=True):
        locked = cell.metadata.get("nbgrader", {}).get("locked", False)
        assert cell.source == (original if locked else released).source
    for ours, theirs in zip(source().cells, result.cells, strict=True):
        # What nbgrader does not know, and is as it was given, is marked for the feedback page.
        given = {} if ours.metadata.get("nbgrader") else {"given": True}
        assert theirs.metadata == {**ours.metadata, **given}
    assert result.metadata.kernelspec.name == "python3"
    MetadataValidator().validate_nb(result)


def test_rebuilding_twice_changes_nothing():
    once = rebuild(cells(), source())
    assert rebuild(cells(once), source()) == once


def test_of_two_copies_the_last_counts_and_both_run():
    copies = [Cell("code", "first", "double", "a"), Cell("code", "second", "double", "b")]
    result = rebuild(cells(double=copies), source())
    assert names(result) == [None, None, *ALL[1:]]
    assert [cell.source for cell in result.cells[1:3]] == ["first", "second"]
    MetadataValidator().validate_nb(result)


def test_a_cell_without_its_nbgrader_name_is_known_by_its_id():
    plain = [Cell("code", "def double(x): ...", None, "double")]
    assert names(rebuild(cells(double=plain), source())) == ALL


def test_an_unknown_name_is_an_ordinary_cell():
    strange = [Cell("code", "1", "no-such-cell", "x"), Cell("raw", "2", None, "not an id!")]
    result = rebuild(cells(title=strange), source())
    assert names(result) == [None, *ALL]
    assert all(cell.metadata == {} for cell in result.cells[:2])


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        (["double_test"], ALL),
        (["shout_test"], ALL),
        (["double_test", "shout_test"], ALL),
        # Its answer may stand in any cell without a mark, so the test comes last.
        (["title", "double", "double_test"], ["shout", "shout-test", "double-test"]),
        (["double"], [None, "double-test", "shout", "shout-test"]),
    ],
)
def test_a_deleted_test_comes_back_where_it_was_and_a_deleted_answer_does_not(gone, expected):
    assert names(rebuild(cells(**{name: [] for name in gone}), source())) == expected


def test_an_empty_notebook_gets_the_tests():
    assert names(rebuild([], source())) == ["double-test", "shout-test"]


def test_a_cell_turned_into_text_is_code_again():
    text = [Cell("markdown", "def double(x): ...", "double", "double")]
    result = rebuild(cells(double=text), source())
    assert result.cells[1].cell_type == "code"
