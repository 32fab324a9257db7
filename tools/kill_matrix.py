"""Which wrong answer loses which points: the table that shows that the tests discriminate.

``python -m tools.kill_matrix [NN-slug ...]`` scores every answer of the banks, prints a table for
each assignment and writes all of them to ``reports/kill-matrix.md``.
"""

import sys

from tools import answers, exercises

REPORT = answers.ROOT / "reports" / "kill-matrix.md"


def table(slug: str) -> tuple[str, list[str]]:
    """The table of one assignment as Markdown, and what is not as it should be."""
    points = answers.graded(answers.notebook(slug))
    lines = [
        f"## {slug}",
        "",
        f"A cross: the answer gets none of the cell's points. Points: {sum(points.values()):g}.",
        "",
        "| answer | " + " | ".join(f"{name} ({worth:g})" for name, worth in points.items()) + " |",
        "| --- |" + " :-: |" * len(points),
    ]
    surprises = []
    right = answers.bank(slug, "right")
    groups = {"wrong": answers.bank(slug, "wrong"), "right": right, "": [answers.blank(slug)]}
    flat = [(kind, answer) for kind, group in groups.items() for answer in group]
    outcomes = answers.score(slug, (answer for _, answer in flat))
    for (kind, answer), outcome in zip(flat, outcomes, strict=True):
        marks = []
        for name, worth in points.items():
            lost = outcome.scores[name] < worth
            marks.append("×" if outcome.scores[name] == 0 else f"{outcome.scores[name]:g}")
            marks[-1] = marks[-1] if lost else "·"
            if lost != (name in answer.loses):
                verb = "loses" if lost else "keeps"
                surprises.append(
                    f"{slug}: {kind} answer {answer.name} {verb} {name} against its header: "
                    f"{outcome.messages[name] or 'no message'}"
                )
        lines.append(f"| {f'{kind}/' if kind else ''}{answer.name} | " + " | ".join(marks) + " |")
    return "\n".join(lines) + "\n", surprises


def main(slugs: list[str]) -> int:
    tables, surprises = [], []
    for slug in slugs or exercises.slugs():
        text, wrong = table(slug)
        print(text)
        tables.append(text)
        surprises += wrong
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text("# Kill matrix\n\n" + "\n".join(tables))
    print("\n".join(surprises) or "Every answer is scored as its header says.")
    print(f"written to {REPORT.relative_to(answers.ROOT)}")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
