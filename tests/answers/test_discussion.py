"""The discussion guide: its mistakes are the bank's, and it gives no code away."""

import html
import re

import pytest
from bs4 import BeautifulSoup

from tools import answers, discussion, exercises, leaks

EVERY = pytest.mark.parametrize("slug", exercises.slugs())


@EVERY
def test_each_exercise_has_a_few_questions_about_mistakes_of_its_bank(slug):
    asked = discussion.questions(slug)
    assert 3 <= len(asked) <= 6
    named = [name for question in asked for name in question.mistakes.split()]
    assert len(set(named)) == len(named)
    for name in named:
        assert discussion.mistake(slug, name).about.endswith(".")


@EVERY
def test_each_question_asks_and_its_answer_has_text_and_no_placeholder(slug):
    for question in discussion.questions(slug):
        assert "?" in question.ask, question.ask
        assert len(question.answer) > 80
        assert not re.search(r"[{}]|\bnan\b", question.ask + question.answer), question.answer


def test_a_mistake_that_the_bank_does_not_have_is_named():
    with pytest.raises(ValueError, match=r"the bank of 01-attention has no wrong answer 'a_typo'"):
        discussion.mistake("01-attention", "a_typo")


def test_a_mistake_is_shown_with_the_cells_and_points_that_it_costs():
    wrong = discussion.mistake("01-attention", "mask_after_softmax")
    worth = answers.graded(answers.notebook("01-attention"))
    lost = ", ".join(f"{cell} ({worth[cell]:g})" for cell in worth if cell in wrong.loses)
    page = BeautifulSoup(discussion.page(["01-attention"]), "html.parser")
    items = [item.get_text() for item in page.select("li")]
    assert f"{wrong.about} Costs: {lost}." in items


def test_the_page_folds_its_answers_and_holds_no_hidden_test_and_no_solution(tmp_path, capsys):
    target = tmp_path / "guide" / "discussion.html"
    assert discussion.main([], target) == 0
    assert leaks.search(tmp_path) == []
    page = BeautifulSoup(target.read_text(encoding="utf-8"), "html.parser")
    asked = [question for slug in exercises.slugs() for question in discussion.questions(slug)]
    sections = page.select("section")
    assert len(sections) == len(asked)
    for section, question in zip(sections, asked, strict=True):
        (folded,) = section.select("details")
        assert not folded.has_attr("open")
        assert folded.extract().select("li")
        assert html.unescape(discussion.printed(question.ask)) in section.get_text()
    assert (
        f"{len(asked)} questions on {len(exercises.slugs())} exercises" in capsys.readouterr().out
    )


def test_an_unknown_exercise_is_refused_and_leaves_the_page_as_it_is(tmp_path, capsys):
    target = tmp_path / "discussion.html"
    target.write_text("before")
    assert discussion.main(["05-rope", "05-rop"], target) == 2
    assert "no questions for 05-rop; there are: 01-attention" in capsys.readouterr().err
    assert target.read_text() == "before"
    assert discussion.main(["05-rope"], target) == 0
    assert re.findall(r"<h2>Exercise (.*?)</h2>", target.read_text()) == ["05-rope"]


def test_rows_and_minus_signs():
    assert discussion.row((1, 0.5, -0.004, -2)) == "(1, 0.5, 0, -2)"
    assert discussion.printed("(1, -2) and 05-rope, a < b") == "(1, −2) and 05-rope, a &lt; b"
    assert discussion.softmax((0, float("-inf"))) == [1, 0]
