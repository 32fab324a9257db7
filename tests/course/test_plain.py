"""Chapters in JupyterLab: nothing of the site's own markup is left, references lead somewhere."""

import json
import re

import pytest

from tools import plain, start

CHAPTERS = sorted(start.BOOK.glob("*.ipynb"))
TEXT = """(sec-here)=
## A heading

See {eq}`eq-sum` and {prf:ref}`thm-one`, {ref}`above
and beyond <sec-here>`, {numref}`Figure %s <fig-a>`;
{cite:t}`su2024` says so {cite:p}`su2024,sun2023`.

```{math}
:label: eq-sum
a + b
```

````{prf:theorem} The first
:label: thm-one
It holds by {eq}`eq-sum`:

```{math}
c
```
````

```{prf:proof}
Clear.
```

```{admonition} A box
:class: note
Read {ref}`above <sec-here>`.
```

```python
x = "{eq}`eq-sum`"  # code
```
"""
PLAIN = """## A heading

See (sum) and `thm-one`, above
and beyond, `fig-a`;
su2024 says so [su2024,sun2023].

$$
a + b
\\tag{sum}
$$

**Theorem `thm-one` (The first).**

It holds by (sum):

$$
c
$$

*Proof.* Clear. ∎

**A box.**

Read above.

```python
x = "{eq}`eq-sum`"  # code
```
"""


def test_each_kind_of_markup_by_hand():
    assert plain.markdown(TEXT) == PLAIN


def test_plain_markdown_stays_as_it_is():
    assert plain.markdown(PLAIN) == PLAIN


def test_a_link_to_a_heading_is_one_that_jupyterlab_follows():
    texts = ["## What repeats, and when\n", "See [there](#what-repeats-and-when), [else](#else)."]
    cells = [{"cell_type": "markdown", "source": [text]} for text in texts]
    made = plain.notebook({"cells": cells})
    assert made["cells"][1]["source"] == ["See [there](#What-repeats,-and-when), [else](#else)."]


def test_what_make_lab_installs_is_not_asked_for_again():
    source = (
        "The cells import `lib`. On the site, the download\nmenu of this page has its wheel.\n"
        "Put it here:\n`python -m pip install a-1.0-py3-none-any.whl`\nMore text."
    )
    made = plain.notebook({"cells": [{"cell_type": "markdown", "source": [source]}]})
    text = "".join(made["cells"][0]["source"])
    assert text == "The cells import `lib`. Here it is installed.\nMore text."


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_keeps_its_code_and_loses_the_markup(path):
    book = json.loads(path.read_text())
    made = plain.notebook(book)
    assert [cell["id"] for cell in made["cells"]] == [cell["id"] for cell in book["cells"]]
    referred, tagged = set(), set()
    whole = "\n".join("".join(c["source"]) for c in made["cells"] if c["cell_type"] == "markdown")
    assert ".whl" not in whole
    assert "download menu" not in " ".join(whole.split())
    named = {line.lstrip("# ").replace(" ", "-") for line in re.findall(r"^#+ .*", whole, re.M)}
    assert set(re.findall(r"\]\(#([^\n]+?)\)", whole)) <= named
    for cell, before in zip(made["cells"], book["cells"], strict=True):
        if cell["cell_type"] != "markdown":
            assert cell == before
            continue
        text, old = "".join(cell["source"]), "".join(before["source"])
        left = re.findall(r"^[`:]{3,}\{.*|\{[\w:]+\}`|^\([\w-]+\)=$|^:\w+: ", text, re.MULTILINE)
        assert not left, (cell["id"], left)
        assert text.count("$$") % 2 == 0, cell["id"]
        referred |= set(re.findall(r"\{eq\}`eq-([^`]+)`", old))
        tagged |= set(re.findall(r"\\tag\{([^}]+)\}", text))
    dangling = referred - tagged
    others = {
        label
        for other in CHAPTERS
        for label in re.findall(r":label: eq-([\w-]+)", other.read_text())
    }
    assert dangling <= others, dangling


def test_code_stays_as_it_is():
    cells = [{"cell_type": "code", "source": ["said = '{eq}`eq-sum`, [there](#else)'"]}]
    assert plain.notebook({"cells": cells})["cells"] == cells
