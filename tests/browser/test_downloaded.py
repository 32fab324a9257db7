"""What a notebook of the built site is worth to somebody who takes it and its wheel away.

In a file of its own: two test processes share the files, and this one is as long as all others.
"""

import pytest

from tests.browser.test_take_away import NOTEBOOKS, soup, target
from tests.course.downloaded import run_downloaded


@pytest.mark.long
@pytest.mark.parametrize("name", NOTEBOOKS[::3])  # each takes as long as its chapter
def test_a_downloaded_notebook_runs_in_an_empty_folder(name, html, tmp_path):
    page = soup(html, name)
    links = [
        target(html, name, link)
        for kind in ("source", "wheel")
        for link in page.select(f"a.btn-download-{kind}-button")
    ]
    outcome = run_downloaded(links[0], links[-1], tmp_path)
    assert ("lib" in outcome) == (len(links) == 2)
    assert all(path.is_relative_to(tmp_path) for path in outcome.values()), outcome
