"""What readers ask for, and where the search leads them: to the section, not to the page."""

import re

import pytest

from tests.browser.conftest import SIZES, quick_view

# What somebody types, the term of the glossary that comes first (or none), the section after it.
ASKED = [
    ("rope base 10000", "RoPE", "05-rope#which-frequencies"),
    ("pre norm vs post norm", "pre-norm", "08-norms#before-or-after"),
    ("why multiple heads", "head", "02-multi-head#several-heads-side-by-side"),
    ("kv cache memory", "KV-cache", "10-kv-cache#fewer-heads-to-keep"),
    ("why sqrt d_k", "", "01-attention#why-divide-by-sqrt-d-k"),
    ("why divide by sqrt dk", "", "01-attention#why-divide-by-sqrt-d-k"),
    ("rotary embedding interleaved half", "embedding", "05-rope#two-layouts"),
    ("alibi slopes", "ALiBi", "06-alibi#the-slopes"),
    ("teacher forcing", "teacher-forcing", "09-transformer#teacher-forcing-and-the-shift"),
    ("layer norm vs rms norm", "layer-normalization", "08-norms#rmsnorm-leave-the-mean-alone"),
    ("t5 bucket", "bucket", "04-relative#t5-2020"),
    ("deberta", "", "04-relative#deberta-2021"),
    ("grouped query attention", "grouped-query-attention", "10-kv-cache#fewer-heads-to-keep"),
    ("multi-query attention", "", "10-kv-cache#fewer-heads-to-keep"),
    ("linformer", "", "11-efficient#sum-the-keys-up-first-linformer"),
    ("performer", "", "11-efficient#estimate-the-softmax-performer"),
    (
        "sliding window attention",
        "sliding-window",
        "11-efficient#look-at-near-keys-only-the-sliding-window",
    ),
    ("perplexity", "perplexity", "13-language-model#perplexity-is-a-measurement"),
    (
        "byte-pair encoding",
        "byte-pair-encoding",
        "13-language-model#from-text-to-tokens-bytes-and-merges",
    ),
    ("padding mask", "padding", "02-multi-head#masks-and-their-shapes"),
    ("causal mask", "causal-mask", "01-attention#masks-what-a-query-may-not-see"),
    ("permutation equivariant", "", "02-multi-head#what-attention-knows-about-order"),
    ("learning rate warm-up", "warm-up", "08-norms#warm-up"),
    (
        "batch norm padding",
        "batch-normalization",
        "08-norms#batchnorm-and-texts-of-unequal-lengths",
    ),
    (
        "attention sink",
        "attention-sink",
        "14-modern-attention#what-can-a-head-do-when-no-key-matches",
    ),
    ("position interpolation yarn", "position-interpolation", "05-rope#slowing-the-pairs-down"),
    ("greedy decoding", "greedy-decoding", "09-transformer#greedy-decoding"),
    ("arithmetic intensity", "arithmetic-intensity", "10-kv-cache#why-decoding-waits-for-memory"),
    ("transformer-xl relative positions", "relative-position", "04-relative#transformer-xl-2019"),
    ("why are values not rotated", "value", "05-rope#what-is-not-rotated-the-values"),
    (
        "softmax gradient saturation",
        "softmax",
        "01-attention#what-goes-wrong-when-scores-are-large",
    ),
    (
        "sinusoidal encoding shift is a rotation",
        "sinusoidal-encoding",
        "03-sinusoidal#a-shift-is-a-rotation",
    ),
    ("what does the output matrix do", "", "02-multi-head#what-the-output-matrix-does"),
    (
        "moodle grading worksheet",
        "",
        "instructors/collect-and-return#what-to-download-and-what-to-take-back",
    ),
    (
        "gradescope autograder",
        "",
        "instructors/gradescope-and-github#gradescope-an-autograder-for-each-exercise",
    ),
    ("delete a learner's data", "", "instructors/regrading#delete-a-learner-s-data"),
    # misspelt, in one word, and as the library writes it
    ("layernrom jacobian", "", "08-norms#layernorm-s-jacobian"),
    ("prenorm", "", "08-norms#before-or-after"),
    ("LayerNorm jacobian", "", "08-norms#layernorm-s-jacobian"),
]
RESULTS = """query => search(query).results.map(({kind, address}) => ({kind, address}))"""


@pytest.fixture(scope="module")
def asking(visit):
    """The page of the search, open."""
    return visit("search", *quick_view("search")).page


@pytest.mark.parametrize(("asked", "term", "section"), ASKED, ids=[each[0] for each in ASKED])
def test_search_leads_to_the_section(asked, term, section, asking):
    """A term of the glossary that is asked for comes first, then chapters, then the reference."""
    results = asking.evaluate(RESULTS, asked)
    if term:
        assert results[0]["address"] == f"book/glossary.html#term-{term}"
    others = [entry for entry in results if entry["kind"] != "glossary"]
    assert others[0]["address"] == "book/{}.html#{}".format(*section.split("#"))
    assert "reference" not in [entry["kind"] for entry in others[:3]]


def test_a_name_of_the_library_leads_to_its_reference(asking):
    for asked in ("apply_rope", "lib.rope.apply_rope()"):
        first = asking.evaluate(RESULTS, asked)[0]
        assert first["address"] == "book/api/rope.html#lib.rope.apply_rope"
    # `generate` is a word, and a chapter says more about it than the reference
    assert asking.evaluate(RESULTS, "generate")[0]["kind"] == "chapter"


def test_words_that_say_nothing_change_nothing(asking):
    plain = asking.evaluate(RESULTS, "softmax saturation")
    assert len(plain) > 3
    assert asking.evaluate(RESULTS, "Why does the softmax have a saturation?")[:2] == plain[:2]
    assert asking.evaluate(RESULTS, "what is the softmax saturation") == plain
    assert asking.evaluate(RESULTS, "xyzzyq") == []


def test_everything_is_found_and_every_result_leads_somewhere(asking, html):
    addresses = asking.evaluate("entries.map(({address}) => address)")
    anchors = {}
    for address in addresses:
        name, _, anchor = address.partition("#")
        if name not in anchors:
            anchors[name] = set(re.findall(r' id="([^"]+)"', (html / name).read_text("utf-8")))
        assert not anchor or anchor in anchors[name], address
    assert len(addresses) > 500
    # The contents beside the text of a chapter name its sections: each has an entry.
    for page in sorted((html / "book").glob("[01]*.html")):
        contents = page.read_text(encoding="utf-8").partition('id="on-this-page"')[2]
        sections = re.findall(r'href="(#[^"]+)"', contents.partition("</nav>")[0])
        assert len(sections) > 8
        assert {f"book/{page.name}{each}" for each in sections} <= set(addresses)


@pytest.mark.parametrize(
    "served", [pytest.param(True, marks=pytest.mark.long), False], ids=["served", "from a folder"]
)
def test_search_by_keyboard(served, browser, base, html):
    """From any page to the section: the shortcut, the words, Enter, Tab, Enter."""
    width, height = SIZES["laptop"]
    context = browser.new_context(offline=not served, viewport={"width": width, "height": height})
    page = context.new_page()
    trouble, asked = [], []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{base if served else html.as_uri()}/book/for-readers.html")
    assert [url for url in asked if "search-index" in url] == []  # no page loads the index
    page.keyboard.press("Control+k")
    page.keyboard.type("rope base 10000")
    page.keyboard.press("Enter")
    page.locator("ul.search li a").first.wait_for(timeout=10_000)
    status = page.get_by_role("status")
    assert "results for “rope base 10000”" in status.inner_text()
    assert page.evaluate("document.activeElement.value") == "rope base 10000"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    focused = page.evaluate("document.activeElement.textContent")
    assert focused == "Which frequencies?"
    item = page.locator("ul.search li").nth(1)
    assert item.locator(".where").inner_text() == "5. Rotary position"
    assert {"base", "10000"} <= set(item.locator("mark").all_inner_texts())
    page.keyboard.press("Enter")
    page.wait_for_url("**/05-rope.html#which-frequencies")
    heading = page.get_by_role("heading", name="Which frequencies").bounding_box()
    assert 40 < heading["y"] < 200  # below the bar, not the top of a long page
    assert trouble == []
    context.close()


def test_results_can_be_read_by_everybody(asking, axe, visit):
    seen = visit("search", *quick_view("search"))
    asking.evaluate("show('why sqrt d_k')")
    assert asking.locator("ul.search li").count() > 10
    text = asking.locator("ul.search li").first.inner_text()
    assert "√d_k" in text
    assert "\\" not in asking.locator("ul.search").inner_text()
    assert axe(seen) == []
    asking.evaluate("show('xyzzyq')")
    assert asking.get_by_role("status").inner_text().startswith("Nothing found")
