"""The instructors' course plans: minutes from the chapters, and no chapter before what it needs."""

import json
import re
import sys

import pytest
import yaml

from tests.course.test_site import course_map
from tools import start

ROOT = start.BOOK.parent
PAGE = (start.BOOK / "instructors" / "plans.md").read_text(encoding="utf-8")
PLANS = [
    yaml.safe_load(text) for text in re.findall(r"```\{course-plan\}\n(.*?)```", PAGE, re.DOTALL)
]


@pytest.fixture(scope="module")
def course_plan():
    sys.path.insert(0, str(start.BOOK / "_ext"))
    try:
        import course_plan
    finally:
        sys.path.pop(0)
    return course_plan


def write(path, *texts):
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = [{"cell_type": "markdown", "source": [text]} for text in texts]
    path.write_text(json.dumps({"cells": cells}))


@pytest.fixture
def course(tmp_path):
    """Two chapters, two exercises, one further page."""
    sections = (
        "# One\n\nIt takes 99 minutes.",
        "## A\n\n*5 minutes · easy*\n",
        "*1 minute · hard*",
    )
    write(tmp_path / "book" / "01-one.ipynb", *sections)
    write(tmp_path / "book" / "02-two.ipynb", "# Two", "## B\n\n*30 minutes · moderate*")
    write(tmp_path / "book" / "end.ipynb", "# The end", "**Time:** about 10 minutes.")
    for slug, time in (("01-one", "60 to 90 minutes"), ("02-two", "about 20 minutes")):
        write(tmp_path / "exercises" / slug / f"{slug}.ipynb", f"**Time:** {time}.")
    return tmp_path


def test_minutes_are_added_up_by_week_and_in_all(course_plan, course):
    weeks = [
        {"read": {"01-one": "all"}, "build": ["01-one"], "ask": "Why?"},
        {"read": {"01-one": "easy", "02-two": "all"}, "build": ["01-one", "02-two"]},
        {"read": {"02-two": "easy moderate"}, "pages": ["end"]},
    ]
    table, files = course_plan.plan(course, weeks)
    one, two = "[1. One](/book/01-one.ipynb)", "[2. Two](/book/02-two.ipynb)"
    assert table.splitlines()[2:] == [
        f"| 1 | {one} | 6 | exercise 01 | 60 to 90 | Why? |",
        f"| 2 | {one} (easy sections), {two} | 35 | exercise 01, exercise 02 | 80 to 110 |  |",
        f"| 3 | {two} (easy and moderate sections) | 30 | [The end](/book/end.ipynb) | 10 |  |",
        "| | **All weeks** | **71** | | **150 to 210** | 4 to 5 hours in all |",
    ]
    assert {path.name for path in files} == {"01-one.ipynb", "02-two.ipynb", "end.ipynb"}


@pytest.mark.parametrize(
    ("week", "problem"),
    [
        ({"read": {"03-three": "all"}}, "there is no book/03-three.ipynb"),
        ({"read": {"02-two": "easy"}}, "no section is marked 'easy'"),
        ({"build": ["03-three"]}, "there is no 03-three/03-three.ipynb"),
        ({"pages": ["beginning"]}, "there is no book/beginning.ipynb"),
    ],
)
def test_what_is_missing_is_named(course_plan, course, week, problem):
    with pytest.raises(ValueError, match=problem):
        course_plan.plan(course, [week])


def test_an_exercise_without_a_time_is_refused(course_plan):
    with pytest.raises(ValueError, match="does not say how long"):
        course_plan.building("It takes an hour.")


def test_the_plans_have_the_weeks_that_their_headings_promise(course_plan):
    headings = re.findall(r"^## (\w+) weeks$", PAGE, re.MULTILINE)
    assert [(heading, len(weeks)) for heading, weeks in zip(headings, PLANS, strict=True)] == [
        ("Twelve", 12),
        ("Four", 4),
    ]
    for weeks in PLANS:
        table, _ = course_plan.plan(ROOT, weeks)
        assert len(table.splitlines()) == 3 + len(weeks)
        assert all(week["ask"] for week in weeks)


@pytest.mark.parametrize("weeks", PLANS, ids=len)
def test_no_chapter_comes_before_one_that_it_needs(weeks):
    chapters, done = course_map(), set()
    for week in weeks:
        done |= week["read"].keys()
        for slug in week["read"]:
            assert set(chapters[slug].get("needs", [])) <= done, slug
        assert set(week.get("build", [])) <= done


def test_the_exercises_use_only_what_was_built_before():
    """An exercise says which others it needs: as "exercises 01, 02 and 05"."""
    for weeks in PLANS:
        built = set()
        for week in weeks:
            built |= {slug[:2] for slug in week.get("build", [])}
            for slug in week.get("build", []):
                path = start.EXERCISES / slug / f"{slug}.ipynb"
                cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
                (text,) = (
                    "".join(c["source"]) for c in cells if "**Time:**" in "".join(c["source"])
                )
                needs = re.search(r"\bexercises? (\d\d(?:(?:, | and )\d\d)*)", text)
                assert set(re.findall(r"\d\d", needs[1] if needs else "")) <= built, slug
