"""Code runs again only where what is run has changed, and every score that moved says why."""

import datetime
import json
import platform
import re
import shutil
from dataclasses import asdict, replace

import pytest
from course_folder import NAME, RIGHT, Folder, answers, source
from nbformat.v4 import new_markdown_cell
from nbgrader.api import Gradebook
from sqlalchemy import event
from sqlalchemy.engine import Engine
from test_commands import formgrader

from grading import __main__ as main_module
from grading import changes, course, plugins, storage, submission
from grading.batch import Options, grade_all
from grading.gradebook import Book
from grading.runner.job import Limits

LATE = """
from nbgrader.plugins import LateSubmissionPlugin

class Rule(LateSubmissionPlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return score / 2

c.AssignLatePenalties.plugin_class = Rule
"""


@pytest.fixture(scope="module")
def graded_once(tmp_path_factory, empty_gradebook):
    """Ada has 2 of 5 points and bob has 3; both handed in at noon."""
    folder = Folder(tmp_path_factory.mktemp("regrade"))
    shutil.copy(empty_gradebook, folder.root)
    folder.publish(source())
    for learner, task in {"ada": "double", "bob": "shout"}.items():
        folder.hand_in(learner, answers(**{task: RIGHT[task]}))
        _at(folder, learner, "12:00")
    assert folder.grade() == 0
    assert folder.scores() == {"ada": ("2.0", "graded"), "bob": ("3.0", "graded")}
    return folder


@pytest.fixture
def graded(graded_once, tmp_path):
    shutil.copytree(graded_once.root, tmp_path / "course")
    folder = Folder.__new__(Folder)
    folder.root, folder.assignment = tmp_path / "course", NAME
    return folder


def _at(folder: Folder, learner: str, time: str) -> None:
    stamp = folder.path(learner).with_name("timestamp.txt")
    stamp.write_text(f"2026-03-01 {time}:00 UTC\n")


def _again(folder: Folder, capsys, *options: str) -> tuple[int, int, str]:
    """Grade: how many were run, how many of the two were left as they are, and what is printed."""
    capsys.readouterr()
    assert folder.grade(*options) == 0
    out = capsys.readouterr().out
    summary = json.loads((folder.root / "reports" / f"grades-{NAME}.json").read_text())
    return summary["run"], out.count("unchanged"), out


def _book(folder: Folder) -> Gradebook:
    return Gradebook(f"sqlite:///{folder.root}/gradebook.db", "attention-position-cache")


def _settings(folder: Folder, text: str) -> None:
    config = folder.root / "nbgrader_config.py"
    config.write_text(config.read_text() + text)


def _due(folder: Folder, date: str | None) -> None:
    with _book(folder) as gradebook:
        gradebook.update_or_create_assignment(NAME, duedate=date)


# --- what decides


def _other_points(folder):
    changed = source()
    changed.cells[2].metadata["nbgrader"]["points"] = 7
    folder.publish(changed)


def _a_name(folder):
    with _book(folder) as gradebook:
        gradebook.update_or_create_student("ada", first_name="Ada", email="ada@example.org")


def _other_text(folder):
    changed = source()
    changed.cells[0].source = "# Warm-up, second edition"
    folder.publish(changed)


def _saved(notebook) -> bytes:
    """As an editor saves it: outputs, counters, metadata, another order of keys, other spaces."""
    notebook = json.loads(json.dumps(notebook))
    notebook["metadata"] = {"kernelspec": {"name": "py", "display_name": "Python"}, "zoom": 1}
    for number, cell in enumerate(notebook["cells"]):
        cell["metadata"] |= {"tags": ["mine"], "collapsed": True, "trusted": True}
        cell["source"] = cell["source"].splitlines(keepends=True)
        if cell["cell_type"] == "code":
            cell["execution_count"] = number
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x"}]
    turned = [dict(reversed(cell.items())) for cell in notebook["cells"]]
    return json.dumps(dict(reversed((notebook | {"cells": turned}).items())), indent=3).encode()


def _save_the_assignment(folder):
    path = folder.root / "solutions" / NAME / f"{NAME}.ipynb"
    path.write_bytes(_saved(source()))


def _save_what_was_handed_in(folder):
    folder.hand_in("ada", _saved(answers(double=RIGHT["double"])))


def _cell_ids_where_there_were_none(folder):
    notebook = json.loads(folder.path("ada").read_text())
    notebook["cells"][0]["id"] = "drawn-by-the-editor"
    folder.hand_in("ada", notebook)


def _a_comment_in_the_settings(folder):
    _settings(folder, "\n# a comment\n")


def _a_date(folder):
    _due(folder, "2026-03-01 13:00:00 UTC")


def _another_time(folder):
    _at(folder, "ada", "11:00")


def _other_test(folder):
    changed = source()
    changed.cells[2].source = changed.cells[2].source.replace("double(7)", "double(8)")
    folder.publish(changed)


def _other_limits(folder):
    _settings(folder, "\nc.RunCells.timeout = 29.0\n")


# What is done, how many are run, how many stay as they are.
CASES = [
    (_a_name, 0, 1),
    (_other_text, 0, 0),
    (_save_the_assignment, 0, 2),
    (_save_what_was_handed_in, 0, 2),
    (_cell_ids_where_there_were_none, 0, 2),
    (_other_points, 0, 0),
    (_a_comment_in_the_settings, 0, 0),
    (_a_date, 0, 0),
    (_another_time, 0, 1),
    (_other_test, 2, 0),
    (_other_limits, 2, 0),
]


@pytest.mark.parametrize(
    ("change", "run", "unchanged"), CASES, ids=[each[0].__name__[1:] for each in CASES]
)
def test_code_runs_again_only_where_it_is_another(graded, capsys, change, run, unchanged):
    change(graded)
    assert _again(graded, capsys)[:2] == (run, unchanged)
    assert _again(graded, capsys)[:2] == (0, 2)


def test_a_version_counts_for_what_it_executes(graded, capsys, monkeypatch):
    version = course.importlib.metadata.version

    def other(name):
        return lambda package: "0.0" if package == name else version(package)

    with monkeypatch.context() as patch:
        patch.setattr(course.importlib.metadata, "version", other("nbgrader"))
        assert _again(graded, capsys)[:2] == (0, 0)
    for name in ("numpy", "torch"):
        with monkeypatch.context() as patch:
            patch.setattr(course.importlib.metadata, "version", other(name))
            assert _again(graded, capsys)[:2] == (2, 0)
    with monkeypatch.context() as patch:
        patch.setattr(platform, "python_version", lambda: "3.11.99")
        assert _again(graded, capsys)[:2] == (2, 0)


def test_of_our_own_code_what_runs_submissions_counts(graded, capsys, monkeypatch, tmp_path):
    copy = tmp_path / "grading"
    shutil.copytree(course.GRADING, copy)
    monkeypatch.setattr(course, "GRADING", copy)
    assert _again(graded, capsys)[:2] == (0, 2)
    with (copy / "report.py").open("a") as file:
        file.write("# changed\n")
    assert _again(graded, capsys)[:2] == (0, 0)
    with (copy / "runner" / "judge.py").open("a") as file:
        file.write("# changed\n")
    assert _again(graded, capsys)[:2] == (2, 0)


def test_new_text_around_the_same_code_is_a_new_page_and_no_run(graded, capsys):
    notebook = answers(double=RIGHT["double"])
    notebook.cells.insert(1, new_markdown_cell("My thoughts on doubling"))
    graded.hand_in("ada", notebook)
    run, unchanged, out = _again(graded, capsys)
    assert (run, unchanged) == (0, 1)
    assert "ada  graded, not run again\n" in out
    assert "My thoughts on doubling" in graded.page("ada")
    assert "Scores that changed" not in out


def test_the_same_code_under_another_name_is_not_run(graded, capsys):
    (graded.root / "submitted" / "ada").rename(graded.root / "submitted" / "adele")
    assert _again(graded, capsys)[:2] == (0, 1)
    assert graded.scores()["adele"] == ("2.0", "graded")


def test_the_settings_turn_the_gpu_on_for_every_way(graded, monkeypatch):
    _settings(graded, "\nc.RunCells.gpu = True\n")
    seen = []
    for module in (main_module, plugins):
        monkeypatch.setattr(module, "grade_all", lambda *words: seen.append(words[3]) or True)
    assert graded.grade() == 0
    assert formgrader(graded).autograde(NAME, "ada")["success"]
    assert [options.gpu for options in seen] == [True, True]
    assert seen[0].limits == seen[1].limits


def test_what_is_only_scored_again_costs_the_writer_few_statements(graded, capsys):
    """Processor time of the process that writes is mostly the gradebook's."""
    outputs = []

    def count(connection, cursor, statement, *_):
        outputs.append(statement.split()[0])

    _a_comment_in_the_settings(graded)
    event.listen(Engine, "before_cursor_execute", count)
    try:
        assert _again(graded, capsys, "--learner", "ada")[0] == 0
        one = len(outputs)
        _settings(graded, "# another\n")
        assert _again(graded, capsys)[0] == 0
    finally:
        event.remove(Engine, "before_cursor_execute", count)
    assert 0 < len(outputs) - 2 * one <= 20


def test_limits_count_wherever_they_are_set(graded):
    """As by `nbgrader autograde --RunCells.timeout=29`, which changes no file."""
    opened = course.Course.open(graded.root)
    limits = Limits(cell_seconds=29.0)
    assert grade_all(opened, NAME, options=Options(limits=limits))
    summary = graded.root / "reports" / f"grades-{NAME}.json"
    assert json.loads(summary.read_text())["run"] == 2


def test_force_runs_everything(graded, capsys):
    assert _again(graded, capsys, "--force")[:2] == (2, 0)


# --- what is said of a score that moved


def _change(folder, learner="ada"):
    return folder.table()[learner]["change"]


def test_other_points_say_so_on_the_terminal_and_in_the_table(graded, capsys):
    _other_points(graded)
    out = _again(graded, capsys)[2]
    why = "points of double-test 2 to 7"
    assert _change(graded) == f"2 to 7: {why}"
    assert _change(graded, "bob") == ""
    assert re.search(rf"Scores that changed\nlearner +before +after +reason\nada +2 +7 +{why}", out)
    assert "bob" not in out.split("Scores that changed")[1]
    assert "Scores that changed" not in _again(graded, capsys)[2]
    assert _change(graded) == f"2 to 7: {why}"  # until it is graded again


def test_a_mended_test_and_a_new_file_say_so(graded, capsys):
    changed = source()
    changed.cells[2].source = "assert double(1) == 3"
    graded.publish(changed)
    graded.hand_in("bob", answers(**RIGHT))
    assert _again(graded, capsys)[0] == 2
    assert _change(graded) == "2 to 0: test of double-test changed"
    assert _change(graded, "bob") == ""  # one more answer, one more test that fails
    graded.hand_in("bob", answers())
    _again(graded, capsys)
    assert _change(graded, "bob") == "3 to 0: new file"
    graded.hand_in("bob", b"{")
    _again(graded, capsys)
    assert (graded.scores()["bob"], _change(graded, "bob")) == (("0.0", "zero"), "")


def test_a_penalty_is_a_column_and_says_what_moved_it(graded, capsys):
    _settings(graded, LATE)
    _due(graded, "2026-03-01 11:30:00 UTC")
    _again(graded, capsys)
    row = graded.table()["ada"]
    assert (row["score"], row["penalty"], row["late"]) == ("1.0", "1.0", "yes")
    assert row["change"] == "2 to 1: late penalty 0 to 1 (due date)"

    rule = graded.root / "nbgrader_config.py"
    rule.write_text(rule.read_text().replace("score / 2", "score"))
    assert _again(graded, capsys)[0] == 0
    assert _change(graded) == "1 to 0: late penalty 1 to 2 (the rule for late submissions)"

    _at(graded, "ada", "11:00")
    assert _again(graded, capsys)[:2] == (0, 1)
    row = graded.table()["ada"]
    assert (row["score"], row["penalty"], row["late"]) == ("2.0", "0.0", "no")
    assert row["change"] == "0 to 2: late penalty 2 to 0 (time of submission)"
    assert "Score: 2 / 5" in graded.words("ada")


def test_a_penalty_follows_a_score_by_hand(graded, capsys):
    _settings(graded, LATE)
    _due(graded, "2026-03-01 11:30:00 UTC")
    _again(graded, capsys)
    _by_hand(graded, 1.0, "")
    _again(graded, capsys)
    row = graded.table()["ada"]
    assert (row["score"], row["penalty"]) == ("1.5", "1.5")
    assert row["change"] == "1 to 1.5: score by hand in shout-test; late penalty 1 to 1.5"


def test_a_rule_in_a_file_of_its_own_counts(graded, capsys, monkeypatch):
    module = graded.root / "regrade_rule.py"
    module.write_text(LATE.split("c.Assign")[0])
    _settings(graded, f"\nimport sys; sys.path.insert(0, {str(graded.root)!r})\n")
    _settings(graded, "\nc.AssignLatePenalties.plugin_class = 'regrade_rule.Rule'\n")
    _again(graded, capsys)
    assert _again(graded, capsys)[:2] == (0, 2)
    module.write_text(module.read_text() + "# another rule\n")
    assert _again(graded, capsys)[:2] == (0, 0)


def test_rows_that_were_not_graded_again_are_marked(graded, capsys):
    _other_points(graded)
    out = _again(graded, capsys, "--learner", "ada")[2]
    assert _change(graded) == "2 to 7: points of double-test 2 to 7"
    assert _change(graded, "bob") == "older rules (the assignment changed since): grade again"
    assert "Not graded again since something changed (see the column `change`): bob\n" in out
    assert "Not graded again" not in _again(graded, capsys)[2]
    assert _change(graded, "bob") == ""


def test_what_a_row_says_of_lateness_is_what_its_penalty_was_decided_by(graded, capsys):
    _settings(graded, LATE)
    _due(graded, "2026-03-01 11:30:00 UTC")
    _again(graded, capsys)
    with _book(graded) as gradebook:
        gradebook.grant_extension(NAME, "bob", days=1)
    _again(graded, capsys, "--learner", "ada")
    row = graded.table()["bob"]
    assert (row["late"], row["penalty"], row["score"]) == ("yes", "1.5", "1.5")
    assert row["change"].startswith("older rules (the due date changed since): grade again; 3 to")
    _again(graded, capsys)
    row = graded.table()["bob"]
    assert (row["late"], row["penalty"], row["score"]) == ("no", "0.0", "3.0")
    assert row["change"] == "1.5 to 3: late penalty 1.5 to 0 (due date)"


def test_an_interrupted_run_forgets_no_change(graded, capsys, monkeypatch):
    _other_points(graded)
    with monkeypatch.context() as patch:
        patch.setattr(Book, "write", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        assert graded.grade() == 1
    assert graded.scores()["ada"] == ("", "retry")
    assert _again(graded, capsys)[0] == 0
    assert _change(graded) == "2 to 7: points of double-test 2 to 7"


def test_the_other_ways_say_the_same(graded):
    _other_points(graded)
    done = formgrader(graded).autograde(NAME, "ada", force=False)  # as `nbgrader autograde` does
    assert done["success"], done
    assert "ada: score changed from 2 to 7: points of double-test 2 to 7" in done["log"]
    assert "Not graded again since something changed" in done["log"]
    summary = graded.root / "reports" / f"grades-{NAME}.json"
    summary_json = json.loads(summary.read_text())
    assert (summary_json["run"], summary_json["changed"]) == (0, 1)
    assert _change(graded) == "2 to 7: points of double-test 2 to 7"
    done = formgrader(graded).autograde(NAME, "bob")  # the button runs it in any case
    assert done["success"], done
    assert "changed" not in done["log"]
    assert json.loads(summary.read_text())["run"] == 1
    assert graded.scores() == {"ada": ("7.0", "graded"), "bob": ("3.0", "graded")}


def test_what_moved_a_score_without_a_cause_of_ours_is_said_too():
    facts = {"points": {"a": 1.0}, "max": {"a": 2.0}, "penalty": 0.0, "file": "x", "due": ""}
    facts |= {"tests": {"a": "t"}, "rules": {"running": "1"}, "manual": {}, "extra": {}, "late": 0}
    now = facts | {"points": {"a": 2.0}}
    assert changes.compare("ada", facts, now).reason == "a: the same code, run again"
    now |= {"rules": {"running": "2"}}
    assert changes.compare("ada", facts, now).reason == (
        "a: the code that runs submissions, or the version of a package changed"
    )
    assert changes.compare("ada", {}, now) is None


# --- what a person decided


def _by_hand(folder: Folder, score: float, comment: str) -> None:
    """As the formgrader writes it down."""
    with _book(folder) as gradebook:
        grade = gradebook.find_grade("shout-test", NAME, NAME, "ada")
        grade.manual_score, grade.needs_manual_grade = score, False
        if comment:
            gradebook.find_comment("shout", NAME, NAME, "ada").manual_comment = comment
        gradebook.db.commit()


def test_a_score_and_a_comment_by_hand_reach_the_page_and_are_looked_at_once(graded, capsys):
    _by_hand(graded, 1.0, "Nearly a shout.")
    assert _again(graded, capsys)[:2] == (0, 1)
    row = graded.table()["ada"]
    assert (row["score"], row["reason"]) == ("3.0", "")
    assert row["change"] == "2 to 3: score by hand in shout-test"
    assert "Nearly a shout." in graded.page("ada")
    assert "Score: 3 / 5" in graded.words("ada")
    _other_points(graded)  # of another test
    _again(graded, capsys)
    assert graded.table()["ada"]["reason"] == ""
    _again(graded, capsys, "--force")
    assert graded.table()["ada"]["reason"] == "to be looked at by hand: shout-test"


def test_correcting_a_time_erases_nothing(graded, capsys):
    _by_hand(graded, 1.0, "Nearly a shout.")
    with _book(graded) as gradebook:
        gradebook.grant_extension(NAME, "ada", days=2)
    for text in ("2026-03-01 10:00:00 UTC", "soon"):
        graded.path("ada").with_name("timestamp.txt").write_text(text)
        _again(graded, capsys)
        assert graded.scores()["ada"] == ("3.0", "graded")
        assert "Nearly a shout." in graded.page("ada")
    graded.path("ada").with_name("timestamp.txt").unlink()
    graded.hand_in("ada", _saved(answers(double=RIGHT["double"])))
    _again(graded, capsys)
    assert graded.scores()["ada"] == ("3.0", "graded")


def test_another_file_takes_scores_by_hand_away_and_leaves_the_extension(graded, capsys):
    _by_hand(graded, 1.0, "Nearly a shout.")
    _again(graded, capsys)
    _due(graded, "2026-03-01 11:30:00 UTC")
    _settings(graded, LATE)
    with _book(graded) as gradebook:
        gradebook.grant_extension(NAME, "ada", days=2)
    graded.hand_in("ada", answers())
    _again(graded, capsys)
    row = graded.table()["ada"]
    assert (row["score"], row["late"], row["penalty"]) == ("0.0", "no", "0.0")
    assert row["change"] == "3 to 0: new file; scores by hand belonged to the earlier one"
    assert "Nearly a shout." not in graded.page("ada")
    with _book(graded) as gradebook:
        entry = gradebook.find_submission(NAME, "ada")
        assert entry.extension == datetime.timedelta(days=2)
        assert {grade.manual_score for n in entry.notebooks for grade in n.grades} == {None}
    assert _again(graded, capsys)[:2] == (0, 2)


def test_a_run_that_ends_before_scores_by_hand_are_gone_leaves_none_to_the_next(
    graded, capsys, monkeypatch
):
    _by_hand(graded, 1.0, "")
    graded.hand_in("ada", answers())

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Book, "withdraw", killed)
        graded.grade()
    _again(graded, capsys)
    assert graded.scores()["ada"] == ("0.0", "graded")


@pytest.mark.parametrize("step", ["entries", "withdraw"])
def test_a_fault_leaves_scores_by_hand_to_the_file_that_they_are_about(
    graded, capsys, monkeypatch, step
):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    _by_hand(graded, 1.0, "")
    _again(graded, capsys)
    entries = Book.entries
    for new in (False, True):
        if new:
            graded.hand_in("ada", answers())
        with monkeypatch.context() as patch:
            # The table at the end asks for everybody's.
            fails = (
                full
                if step == "withdraw"
                else lambda self, name=None: full() if name else entries(self)
            )
            patch.setattr(Book, step, fails)
            assert graded.grade("--force") == 1
        assert graded.scores()["ada"] == ("", "retry")
        _again(graded, capsys)
        assert graded.scores()["ada"] == ("0.0" if new else "3.0", "graded")


def test_an_extension_without_a_due_date_stops_nothing(graded, capsys):
    with _book(graded) as gradebook:
        gradebook.grant_extension(NAME, "ada", days=2)
    _again(graded, capsys)
    assert graded.scores()["ada"] == ("2.0", "graded")
    assert graded.table()["ada"]["late"] == ""


# --- records of the edition before


def _as_before(folder: Folder, learner: str) -> None:
    """The record of a learner as the edition before wrote it."""
    place = folder.root / "progress" / NAME
    handed_in = submission.collect(folder.path(learner).parent, learner, NAME)
    record = asdict(replace(storage.load(place, learner), submission=handed_in.digest))
    for name in ("verdict", "change", "facts", "edition"):
        del record[name]
    (place / f"{learner}.json").write_text(json.dumps(record | {"fingerprint": "of other rules"}))


def test_records_of_the_edition_before_go_on(graded, capsys):
    _by_hand(graded, 1.0, "Nearly a shout.")
    for learner in ("ada", "bob"):
        _as_before(graded, learner)
    _again(graded, capsys, "--learner", "bob")
    assert _change(graded) == "older rules (an earlier edition): grade again"
    _at(graded, "ada", "11:00")  # corrected between the two editions
    assert _again(graded, capsys)[1] == 1
    assert graded.scores()["ada"] == ("3.0", "graded")
    assert "Nearly a shout." in graded.page("ada")

    assert _change(graded) == ""  # the same score

    _as_before(graded, "ada")
    graded.hand_in("ada", answers())
    _again(graded, capsys)
    assert graded.scores()["ada"] == ("0.0", "graded")
    assert _change(graded) == "3 to 0: an earlier edition had graded it"
