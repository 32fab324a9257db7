"""docs/scale.md says what the record says, and works its numbers out of it rightly."""

import copy
import json

import pytest

from benchmarks import grading

RECORD = json.loads(grading.RECORD.read_text(encoding="utf-8"))


def test_the_page_is_that_of_the_record():
    page = grading.PAGE.read_text(encoding="utf-8")
    assert page == grading.quote(RECORD, page), "python -m benchmarks.grading --quote"


def test_the_record_is_of_a_whole_run():
    assert RECORD["same_scores"] is True
    assert RECORD["submissions"] >= 40
    sizes = [row["submissions"] for row in RECORD["growth"]]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (10, 800)
    assert set(RECORD["ways"]) == {"1 at a time", "2 at a time", "2 dask workers"}
    for row in RECORD["growth"]:
        assert 0 < row["peak"]["command"] <= row["peak"]["tree"]


@pytest.mark.parametrize(
    ("run", "write", "balance", "minutes"), [(1.2, 0.3, 4, "50"), (0.1, 0.3, 1, "50")]
)
def test_ten_thousand_take_as_long_as_the_slower_of_running_and_writing(
    run, write, balance, minutes
):
    record = copy.deepcopy(RECORD) | {"writer": write}
    record["run"]["all"] = run
    output = "\n".join(grading.lines(record))
    assert f"| {balance} | {1e4 * run / balance / 60:.0f} | {minutes} | {minutes} |" in output
    assert f"The writer keeps {balance} core" in output
    running = f"{1e4 * run / 60:.0f}"
    assert f"| 1 | {running} | 50 | {max(running, '50', key=float)} |" in output


def test_submissions_differ_and_some_are_right():
    made = grading.submissions("05-rope", 12)
    texts = {"".join(cell.source for cell in notebook.cells) for notebook in made}
    assert len(texts) == 12
