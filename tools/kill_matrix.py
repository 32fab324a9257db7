"""Which wrong answer loses which points: the table that shows that the tests discriminate.

``python -m tools.kill_matrix [NN-slug ...]`` scores every answer of the banks, prints a table for
each assignment and writes all of them to ``reports/kill-matrix.md``.
"""

import sys
from collections.abc import Mapping

from tools import answers, exercises
from tools.answers import Answer, Outcome

REPORT = answers.ROOT / "reports" / "kill-matrix.md"


def entries(slug: str) -> dict[str, Answer]:
    """Every answer of an assignment, by `wrong/name` or `right/name`; then blank, reference."""
    bank = {
        f"{kind}/{answer.name}": answer
        for kind in ("wrong", "right")
        for answer in answers.bank(slug, kind)
    }
    return bank | {"blank": answers.blank(slug), "reference": Answer("reference", "As is.", {})}


def surprises(answer: Answer, outcome: Outcome, points: Mapping[str, float]) -> list[str]:
    """Where an outcome differs from the answer's header; empty if it does not."""
    differences = []
    for name, worth in points.items():
        expected = 0.0 if name in answer.loses else worth
        if outcome.scores[name] != expected:
            message = outcome.messages[name] or "no message"
            differences.append(
                f"{name}: {outcome.scores[name]:g} points, expected {expected:g}: {message}"
            )
    return differences


def table(slug: str, outcomes: Mapping[str, Outcome]) -> str:
    """The outcomes of one assignment as a Markdown table."""
    points = answers.graded(answers.notebook(slug))
    lines = [
        f"## {slug}",
        "",
        f"{sum(points.values()):g} points. A cross: none of the cell's points. A dot: all of them.",
        "",
        "| answer | " + " | ".join(f"{name} ({worth:g})" for name, worth in points.items()) + " |",
        "| --- |" + " :-: |" * len(points),
    ]
    for entry, outcome in outcomes.items():
        marks = [
            {0.0: "×", worth: "·"}.get(outcome.scores[name], f"{outcome.scores[name]:g}")
            for name, worth in points.items()
        ]
        lines.append(f"| {entry} | " + " | ".join(marks) + " |")
    return "\n".join(lines) + "\n"


def write(tables: list[str]) -> None:
    """Write the tables to the report."""
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text("# Kill matrix\n\n" + "\n".join(tables))


def main(slugs: list[str]) -> int:
    tables, wrong = [], []
    for slug in slugs or exercises.slugs():
        bank = entries(slug)
        outcomes = dict(zip(bank, answers.score(slug, bank.values()), strict=True))
        tables.append(table(slug, outcomes))
        print(tables[-1])
        points = answers.graded(answers.notebook(slug))
        for entry, answer in bank.items():
            differences = surprises(answer, outcomes[entry], points)
            wrong += [f"{slug} {entry}, {line}" for line in differences]
    write(tables)
    print("\n".join(wrong) or "Every answer is scored as its header expects.")
    print(f"written to {REPORT.relative_to(answers.ROOT)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
