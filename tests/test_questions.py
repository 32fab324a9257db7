import json
import re

import pytest

from lib.questions import METADATA, Choice, Questions

CHOICES = (
    Choice("two", 1 + 1 == 2, "One and one."),
    Choice("`3 < 4`", 1 + 1 == 3, "That is `1 + 2`, not 1 < 2."),
    Choice("four", 1 + 1 == 4, "That is two times two."),
)


def asked(*choices, prompt="How much is 1 + 1?", **more):
    questions = Questions("sum")
    questions.ask(prompt, *choices, **more)
    return questions


def test_the_data_holds_all_choices_and_which_one_is_right():
    _, metadata = asked(*CHOICES, code="x = 1")._repr_mimebundle_()
    (question,) = json.loads(json.dumps(metadata[METADATA]))
    assert (question["prompt"], question["code"]) == ("How much is 1 + 1?", "x = 1")
    assert {choice["text"]: choice["holds"] for choice in question["choices"]} == {
        "two": True,
        "`3 < 4`": False,
        "four": False,
    }


def test_the_order_of_the_choices_does_not_depend_on_the_order_in_the_source():
    orders = {
        tuple(choice.text for choice in asked(*choices).questions[0].choices)
        for choices in (CHOICES, CHOICES[::-1], CHOICES[1:] + CHOICES[:1])
    }
    assert len(orders) == 1


def test_html_is_escaped_and_backticks_are_code():
    html = asked(*CHOICES, code="a < b").html
    assert "<code>3 &lt; 4</code>" in html
    assert "<pre>a &lt; b</pre>" in html
    assert 'data-why="✗ No. That is &lt;code&gt;1 + 2&lt;/code&gt;, not 1 &amp;lt; 2."' in html
    assert html.count('name="sum-0"') == 3


def test_all_answers_stand_at_the_end_for_those_without_a_script():
    answers = re.search(r"<details>(.*)</details>", asked(*CHOICES).html, re.DOTALL)[1]
    assert "<strong>two</strong> One and one." in answers
    assert "four" not in answers


def test_a_tensor_can_say_whether_a_choice_holds():
    torch = pytest.importorskip("torch")
    choices = (Choice("two", torch.tensor(2) == 2, "One and one."), *CHOICES[1:])
    (question,) = asked(*choices).data
    assert {choice["holds"] for choice in question["choices"]} == {True, False}


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        (CHOICES[:2], "three different choices"),
        ((*CHOICES[:2], CHOICES[1]), "three different choices"),
        ((*CHOICES, Choice("2", True, "Also right.")), r"these do: \['two', '2'\]"),
        ((*CHOICES[1:], Choice("five", False, "No.")), r"these do: \[\]"),
        ((*CHOICES[:2], Choice("five", False, " ")), r"not explained: \['five'\]"),
    ],
)
def test_a_question_that_is_none(choices, message):
    with pytest.raises(ValueError, match=message):
        asked(*choices)


def test_a_name_that_is_no_id():
    with pytest.raises(ValueError, match="it becomes an id"):
        Questions("a b")
