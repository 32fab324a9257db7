"""The built site, with all that can be downloaded from it: no hidden test, no solution."""

from tests.browser.conftest import missing
from tools import leaks


def test_the_site_holds_no_hidden_test_and_no_solution(html):
    assert len([*html.rglob("*.html")]) > 30
    try:
        leaked = leaks.search(html)
    except leaks.Missing as gone:  # somebody made the PDF
        missing(str(gone))
    assert leaked == []
