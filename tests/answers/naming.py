"""How often a wrong answer's mistake gets a name, and how often the right one.

``make naming`` measures :mod:`grading.mistakes` in two ways, writes the counts to ``naming.json``
and quotes them in the instructors' page about the report.

*Leave one out*: each wrong answer of a bank is hidden and then judged by the others. A name is
right if it is the hidden answer's own mistake, in the words of its header or of ``shared`` in
``chapters.json``.

*Mutants*: a sample of changes that a program made, in the solutions and in the right answers. They
come without a description, so another question is asked: does the mutant still behave like the
answer that it is named after, when both meet inputs that had no part in the naming? It does if all
checks report the same under two further draws.
"""

import dataclasses
import hashlib
import json
import sys
import zlib
from concurrent.futures import Executor
from itertools import islice

import mutants

from grading import mistakes
from grading.course import Course
from grading.mistakes import Answer, Bank
from grading.runner import pool
from grading.runner.job import Limits
from tools import answers, exercises

RECORD = answers.BANKS / "naming.json"
PAGE = answers.ROOT / "book" / "instructors" / "report.md"
MARK = "<!-- naming: written by `make naming` -->"
END = "<!-- naming -->"
EACH = 40  # mutants of each assignment
OTHER = ("another draw", "one more draw")
LIMITS = Limits()


def sample(slug: str, number: int) -> list[Answer]:
    """Mutants of an assignment, the same at every call; the module they import is put into them."""
    made = [*mutants.mutants(slug), *mutants.mutants_of_right_answers(slug)]
    made.sort(key=lambda each: (zlib.crc32(each.name.encode()), each.name))
    given = (answers.BANKS / "tampering.py").read_text()
    return [
        dataclasses.replace(
            each,
            cells={
                name: text.replace("from tampering import *", given)
                for name, text in each.cells.items()
            },
        )
        for each in islice(made, number)
    ]


def measure(slug: str, workers: Executor) -> dict:
    """The counts of one assignment."""
    source = answers.notebook(slug)
    bank = mistakes.bank(Course.open(answers.ROOT), slug, source, workers, LIMITS)
    record = {"hash": hash_of(slug)}
    record |= {"left out": 0, "of these named": 0, "of these right": 0, "wrong names": []}
    for (number, pattern), same in bank.patterns.items():
        for answer in same if any(pattern) else []:
            name = bank.name(number, pattern, without=answer.name)
            right = name is not None and name.about == bank.kind(answer)
            record["left out"] += 1
            record["of these named"] += name is not None
            record["of these right"] += right
            if name and not right:
                record["wrong names"].append([answer.name, name.answers[0]])
    record |= {"mutants": 0, "mutants named": 0, "mutants right": 0, "named": []}
    tried = sample(slug, EACH)
    for mutant, results in zip(tried, workers.map(_Diagnosis(slug), tried), strict=True):
        number, pattern = results
        if not any(pattern):
            continue
        record["mutants"] += 1
        if name := bank.name(number, pattern):
            right = _agree(mutant, name.answers, slug, bank, workers)
            record["mutants named"] += 1
            record["mutants right"] += right
            record["named"].append([mutant.name, name.about, right])
    return record


class _Diagnosis:
    """Called with an answer, its task and what the task's checks report."""

    def __init__(self, slug: str, salt: str = mistakes.SALT):
        self.source, self.salt = answers.notebook(slug), salt

    def __call__(self, answer: Answer) -> tuple[int, tuple[str, ...]]:
        job, wanted = mistakes.answer_job(answer, self.source, LIMITS)
        reports = mistakes.diagnose(dataclasses.replace(job, salt=self.salt))
        return wanted[0].task, tuple(reports)


def _agree(mutant: Answer, names: tuple[str, ...], slug: str, bank: Bank, workers) -> bool:
    """Whether a mutant and banked answers report the same under draws that named nobody."""
    banked = {each.name: each for same in bank.patterns.values() for each in same}
    for salt in OTHER:
        number, pattern = _Diagnosis(slug, salt)(mutant)
        for name in names:
            job, wanted = mistakes.answer_job(banked[name], answers.notebook(slug), LIMITS)
            reports = mistakes.diagnose(dataclasses.replace(job, salt=salt))
            pairs = zip(wanted, reports, strict=True)
            if tuple(text for check, text in pairs if check.task == number) != pattern:
                return False
    return True


def hash_of(slug: str) -> str:
    """A short text that stands for an assignment's tests and wrong answers."""
    digest = hashlib.sha256()
    for check in mistakes.checks(answers.notebook(slug)):
        digest.update(check.source.encode())
    for answer in answers.bank(slug, "wrong"):
        digest.update(repr((answer.name, answer.about, sorted(answer.cells.items()))).encode())
    return digest.hexdigest()[:16]


def total(record: dict[str, dict], name: str) -> int:
    return sum(each[name] for each in record.values())


def quote(record: dict[str, dict], page: str) -> str:
    """The page with the record's numbers between its marks."""
    kinds = ("left out", "of these named", "of these right")
    kinds += ("mutants", "mutants named", "mutants right")
    head = ["exercise", "answers left out", "named", "right"]
    head += ["mutants", "mutants named", "mutants right"]
    rows = [head, ["---", *["--:"] * 6]]
    rows += [[slug[:2], *(f"{each[kind]}" for kind in kinds)] for slug, each in record.items()]
    rows.append(["all", *(f"{total(record, kind)}" for kind in kinds)])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    before, _, rest = page.partition(MARK)
    return f"{before}{MARK}\n\n{table}\n\n{END}{rest.partition(END)[2]}"


def main(slugs: list[str]) -> None:
    """Measure, and write the record and the page."""
    record = json.loads(RECORD.read_text()) if RECORD.is_file() else {}
    with pool.executor("local", 2) as workers:
        for slug in slugs or exercises.slugs():
            record[slug] = measure(slug, workers)
            print(slug, json.dumps(record[slug], indent=1), flush=True)
            RECORD.write_text(json.dumps(dict(sorted(record.items())), indent=1) + "\n")
    PAGE.write_text(quote(record, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
