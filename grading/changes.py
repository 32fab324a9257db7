"""Whose score changed, and why: what a score was made of, then and now.

The facts of a grading are kept with its record (:class:`grading.storage.Record`), as plain JSON.
The next grading compares its own with them, so that an instructor who changed a test, a date or a
rule sees which scores moved. An earlier edition's records have no facts and say nothing.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from nbformat import NotebookNode

from grading.evaluate import Standing, graded
from grading.notebook import name_of
from grading.storage import Record

# How to name the rules of :meth:`grading.course.Course.rules` that have changed.
RULES = {
    "assignment": "the assignment",
    "settings": "nbgrader_config.py",
    "limits": "the limits",
    "running": "the code that runs submissions, or the version of a package",
    "grading": "the grading code",
}


@dataclass(frozen=True)
class Change:
    """A changed score.

    Attributes:
        learner: whose.
        before: points, with the late penalty deducted.
        after: the same, now.
        reason: why.
    """

    learner: str
    before: float
    after: float
    reason: str

    def __str__(self) -> str:
        return f"{self.before:g} to {self.after:g}: {self.reason}"


def tests(source: NotebookNode) -> dict[str, str]:
    """For each graded cell of an assignment a hash of its text."""
    return {
        name_of(cell): hashlib.sha256(cell.source.encode()).hexdigest()[:12]
        for cell in graded(source)
    }


def standing(given: Standing) -> dict:
    """What a person has decided about a submission, and how late it was, as plain JSON."""
    comments = json.dumps(given.comments, sort_keys=True).encode()
    return {
        "late": given.late,
        "due": "" if given.due is None else str(given.due),
        "name": given.name,
        "manual": given.manual,
        "extra": given.extra,
        "comments": hashlib.sha256(comments).hexdigest()[:12],
    }


def total(facts: Mapping) -> float:
    """The score that these facts make, with the late penalty deducted."""
    return sum(facts["points"].values()) - facts["penalty"]


def compare(learner: str, before: Mapping, now: Mapping) -> Change | None:
    """How a score changed; None if it did not, or if it was not known before.

    Args:
        learner: whose.
        before: the facts of the last grading that came to an end; points and penalty alone where
            an earlier edition did it.
        now: the facts of this one.
    """
    if not before or abs(total(before) - total(now)) < 1e-9:
        return None
    if "rules" not in before:
        return Change(learner, total(before), total(now), "an earlier edition had graded it")
    rules = [name for name in RULES if before["rules"].get(name) != now["rules"].get(name)]
    reasons, unexplained = [], []
    new = before["file"] != now["file"]
    if new:
        by_hand = before["manual"] and not now["manual"]
        reasons.append("new file" + "; scores by hand belonged to the earlier one" * bool(by_hand))
    for cell in sorted({*before["points"], *now["points"]}):
        if before["points"].get(cell) == now["points"].get(cell):
            continue
        worth, worth_now = before["max"].get(cell), now["max"].get(cell)
        if any(before[kind].get(cell) != now[kind].get(cell) for kind in ("manual", "extra")):
            if not new:
                reasons.append(f"score by hand in {cell}")
        elif worth is not None and worth_now is not None and worth != worth_now:
            reasons.append(f"points of {cell} {worth:g} to {worth_now:g}")
        elif before["tests"].get(cell) != now["tests"].get(cell):
            reasons.append(f"test of {cell} changed")
        elif not new:
            unexplained.append(cell)
    if unexplained:
        causes = " or ".join(RULES[name] for name in rules)
        why = f"{causes} changed" if rules else "the same code, run again"
        reasons.append(f"{', '.join(unexplained)}: {why}")
    if before["penalty"] != now["penalty"]:
        reasons.append(_late(before, now, rules))
    return Change(learner, total(before), total(now), "; ".join(reasons))


def _late(before: Mapping, now: Mapping, rules: list[str]) -> str:
    why = ""
    if before["due"] != now["due"]:
        why = " (due date)"
    elif before["late"] != now["late"]:
        why = " (time of submission)"
    elif "settings" in rules:
        why = " (the rule for late submissions)"
    return f"late penalty {before['penalty']:g} to {now['penalty']:g}{why}"


def outdated(record: Record, rules: Mapping[str, str], given: Standing) -> str:
    """Why a row was not computed by the current rules; empty if it was.

    Args:
        record: how the submission was graded.
        rules: the current ones.
        given: what a person has decided so far.
    """
    if not record.facts:
        return "older rules (an earlier edition): grade again"
    causes = [RULES[name] for name in RULES if record.facts["rules"].get(name) != rules.get(name)]
    before, now = record.facts, standing(given)
    if before["due"] != now["due"]:
        causes.append("the due date")
    if any(before[kind] != now[kind] for kind in ("manual", "extra", "comments")):
        causes.append("a score or comment by hand")
    return f"older rules ({', '.join(causes)} changed since): grade again" if causes else ""
