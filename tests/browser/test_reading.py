"""How the built pages are read: by keyboard, by a screen reader, printed, from a folder."""

import gzip
import re
import time
from itertools import pairwise
from urllib.parse import unquote, urlsplit

import pytest

from tests.browser.conftest import SIZES, listed_pages, quick_view
from tests.browser.test_pages import CHAPTERS
from tests.halves import some_now
from tests.test_figures import luminance

BUDGET = 600_000  # bytes of a chapter's own HTML and images, compressed
SOME = ("book/index", "book/12-pretrained")  # the other pages have the same parts: long
READ = [name for name in listed_pages() if name != "index"]  # a redirect, gone at once
# A third of them, for what opens a page anew, which takes seconds.
THIRD = sorted({*SOME, "book/05-rope", *READ[::3]})


# --- by keyboard


@pytest.fixture
def fresh(browser, base):
    """Open an address in a context of its own, on a laptop."""
    contexts = []

    def open_page(name: str, **options):
        width, height = SIZES["laptop"]
        size = {"width": width, "height": height}
        contexts.append(browser.new_context(**{"viewport": size, **options}))
        page = contexts[-1].new_page()
        page.goto(f"{base}/{name}", wait_until="load")
        return page

    yield open_page
    for context in contexts:
        context.close()


# What has the focus: which of all elements, whether it can be seen, and how it shows.
FOCUSED = """() => {
    const node = document.activeElement;
    if (node === document.body) return null;
    const style = getComputedStyle(node), box = node.getBoundingClientRect();
    return {
        place: [...document.querySelectorAll('*')].indexOf(node),
        html: node.outerHTML.slice(0, 120),
        outline: style.outlineStyle != 'none' && parseFloat(style.outlineWidth) >= 2,
        inside: box.width > 0 && box.bottom > 0 && box.top < innerHeight
            && box.right > 0 && box.left < innerWidth,
    };
}"""


def stops(page, most: int = 3000) -> list[dict]:
    """Where Tab leads, from the top of the page until it leaves the page or comes round."""
    reached = []
    while page.evaluate(FOCUSED):  # the search page starts in its field: first out of the page
        page.keyboard.press("Tab")
    while len(reached) < most:
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUSED)
        if not reached:  # the skip link glides in
            page.wait_for_function(f"({FOCUSED})().inside")
            focused = page.evaluate(FOCUSED)
        elif focused and not focused["inside"]:  # a formula above was typeset at this moment
            page.keyboard.press("Shift+Tab")
            page.keyboard.press("Tab")
            focused = page.evaluate(FOCUSED)
        if focused is None or (reached and focused["place"] == reached[0]["place"]):
            return reached
        caught = focused["place"] in {stop["place"] for stop in reached}
        assert not caught, f"Tab comes back to {focused['html']} and does not leave the page"
        reached.append(focused)
    raise AssertionError(f"after {most} stops Tab is still on the page, at {reached[-1]['html']}")


@pytest.mark.parametrize("name", some_now(THIRD, SOME))
def test_tab_goes_through_the_page_in_order_and_shows_where_it_is(name, fresh):
    page = fresh(f"{name}.html")
    page.evaluate("window.MathJax?.startup?.promise.then(() => 0)")
    reached = stops(page)
    assert "Skip to main content" in reached[0]["html"]
    places = [stop["place"] for stop in reached]
    # Where the focus goes is where the eye goes: no positive tabindex, no jumping back.
    assert [(a, b) for a, b in pairwise(places) if b <= a] == []
    assert [stop["html"] for stop in reached if not stop["outline"]] == []
    assert [stop["html"] for stop in reached if not stop["inside"]] == []
    reachable = page.evaluate(
        """() => [...document.querySelectorAll('a[href], button, input, select, summary')]
            .filter(node => node.checkVisibility({checkVisibilityCSS: true}))
            .filter(node => node.tabIndex >= 0 && !node.disabled)
            .filter((node, place, all) => node.type !== 'radio' // arrows go on within a group
                || all.findIndex(({name}) => name === node.name) === place).length"""
    )
    assert len(reached) >= reachable > 5
    # What can be pressed can be reached.
    beyond = page.evaluate(
        """() => [...document.querySelectorAll(
                'a[href], button, input, select, summary, [onclick]')]
            .filter(node => node.checkVisibility({checkVisibilityCSS: true}))
            .filter(node => node.tabIndex < 0 && !node.disabled)
            .map(node => node.outerHTML.slice(0, 120))"""
    )
    assert beyond == []


@pytest.mark.parametrize("name", some_now(CHAPTERS[2::3], SOME))
def test_questions_are_answered_by_keyboard(name, fresh):
    """Each choice gets its own verdict, one of them is right, and the page sends nothing."""
    page = fresh(f"{name}.html")
    sent = []
    page.on("request", lambda request: sent.append(request.url))
    groups = page.locator(".questions fieldset").all()
    assert len(groups) >= 8
    for group in groups:
        choices = group.get_by_role("radio").all()
        assert group.get_by_role("status").inner_text() == ""
        choices[0].focus()
        page.keyboard.press("Space")
        verdicts = []
        for choice in choices:
            assert choice.is_checked()
            verdicts.append(group.get_by_role("status").inner_text())
            page.keyboard.press("ArrowDown")
        assert sorted(verdict[0] for verdict in verdicts) == ["✓", *"✗" * (len(choices) - 1)]
        assert len(set(verdicts)) == len(verdicts)
        assert min(map(len, verdicts)) > len("✓ Right. ")
    assert {urlsplit(address).path.split("/")[1] for address in sent} <= {"_static"}


def test_the_skip_link_leads_past_the_contents(fresh):
    page = fresh("book/12-pretrained.html")
    page.keyboard.press("Tab")
    link = page.get_by_role("link", name="Skip to main content")
    assert link.bounding_box()["y"] >= 0
    page.keyboard.press("Enter")
    assert urlsplit(page.url).fragment == "main-content"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


@pytest.mark.parametrize("way", ["shortcut", "button"])
def test_the_search_box_opens_and_closes_by_keyboard(fresh, way):
    page = fresh("book/for-readers.html")
    dialog = page.locator("#pst-search-dialog")
    button = page.locator(".search-button-field:visible, .search-button:visible").first
    button.focus()
    before = page.evaluate(FOCUSED)
    assert not dialog.is_visible()
    page.keyboard.press("Control+k" if way == "shortcut" else "Enter")
    assert dialog.is_visible()
    assert page.evaluate("document.activeElement.name") == "q"
    for inside in (False, True):  # Tab goes to the browser's own bar and back, past the page
        page.keyboard.press("Tab")
        focused = "document.activeElement.closest('dialog') !== null"
        assert page.evaluate(focused) == inside
        assert inside or page.evaluate("document.activeElement === document.body")
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert page.evaluate(FOCUSED) == before
    page.keyboard.press("Control+k")
    page.keyboard.type("rotary")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=rotary*")


# --- where one is


# The section that the contents mark, as the list shows it and as it is announced, and the one that
# is being read: its heading is the last above a line in the upper part of the window.
MARKED = """() => {
    const links = [...document.querySelectorAll('nav.page-toc a')];
    const heading = link => document.querySelector(`${link.hash} :is(h1, h2, h3)`);
    return {
        shown: links.filter(link => link.classList.contains('active')).map(link => link.hash),
        announced: links.filter(link => link.ariaCurrent).map(link => link.hash),
        entries: document.querySelectorAll('nav.page-toc li.active').length,
        read: links.filter(link => heading(link).getBoundingClientRect().top < 0.3 * innerHeight)
            .map(link => link.hash).slice(-1),
        inside: links.filter(link => link.classList.contains('active')).every(link => {
            const box = link.getBoundingClientRect();
            return box.top >= 0 && box.bottom <= innerHeight;
        }),
    };
}"""


def contents_follow(page, section: str | None = None) -> dict:
    """Wait until the contents mark the section that is read, or another one.

    The page tells its scripts of a scroll with the next frame that it draws; a long page that was
    just laid out anew may take a second for that.
    """
    deadline = time.monotonic() + 5
    while True:
        marked = page.evaluate(MARKED)
        wanted = marked["read"] if section is None else [section]
        if marked["shown"] == marked["announced"] == wanted:
            return marked
        assert time.monotonic() < deadline, marked
        page.wait_for_timeout(50)


def test_the_contents_mark_the_section_that_is_read(visit):
    """After jumps, as with the scrollbar: no heading passes the upper part of the window."""
    page = visit("book/12-pretrained", *quick_view("book/12-pretrained")).look("laptop")
    seen = set()
    for share in (0, 0.5, 0.1, 0.85, 0.35, 0.7):
        page.evaluate(f"scrollTo(0, {share} * document.documentElement.scrollHeight)")
        contents = contents_follow(page)
        assert contents["entries"] == len(contents["shown"])
        assert contents["inside"]  # the list may be longer than the window
        seen.update(contents["shown"])
    assert len(seen) == 5  # none at the top
    # Text above that shrinks, as when an answer is folded away. At the top, since elsewhere
    # Chromium may move the window along with the text.
    page.evaluate("scrollTo(0, 0)")
    assert contents_follow(page)["read"] == []
    page.evaluate("document.querySelector('article').style.marginTop = '-9000px'")
    assert contents_follow(page)["read"] != []
    page.evaluate("document.querySelector('article').style.marginTop = ''")


def test_at_the_end_of_a_page_the_contents_mark_its_last_section(visit):
    """Though its heading cannot come to the upper part of the window."""
    page = visit("book/for-instructors", *quick_view("book/for-instructors")).look("laptop")
    last = page.locator("nav.page-toc a").last.evaluate("link => link.hash")
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    assert contents_follow(page, last)["read"] != [last]


def test_the_drawer_of_contents_closes_over_the_section_that_was_chosen(visit):
    page = visit("book/12-pretrained", *quick_view("book/12-pretrained")).look("phone")
    drawer = page.locator("#pst-secondary-sidebar-modal")
    page.evaluate("scrollTo(0, 0.6 * document.documentElement.scrollHeight)")
    page.locator(".secondary-toggle").click()
    contents = contents_follow(page)
    assert contents["read"] != []
    assert contents["inside"]
    drawer.get_by_role("link", name="What do the heads attend to?").click()
    drawer.wait_for(state="hidden", timeout=5000)
    heading = page.get_by_role("heading", name="What do the heads attend to?")
    bar = page.locator(".bd-header-article")
    assert box(bar)["bottom"] <= box(heading)["top"] < 200
    page.keyboard.press("Tab")  # the keyboard goes on from there
    ahead = "document.activeElement.getBoundingClientRect().top"
    assert page.evaluate(ahead) >= box(heading)["top"]
    assert page.evaluate("document.activeElement.closest('article') !== null")


# --- what lies over something else


def box(locator, inner: str = "") -> dict:
    """Left, top, right and bottom; with ``inner``, of the part that the padding leaves for text."""
    return locator.evaluate(
        """(node, inner) => {
            const {left, top, right, bottom} = node.getBoundingClientRect();
            const padding = inner ? parseFloat(getComputedStyle(node).paddingLeft) : 0;
            return {left: left + padding, top, right, bottom};
        }""",
        inner,
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["book/12-pretrained", "search"])
def test_the_magnifier_covers_no_letter(name, size, visit):
    page = visit(name, *quick_view(name)).look(size)
    form = page.locator("#pst-search-dialog form, main form.bd-search").last
    page.keyboard.press("Control+k")
    icon, text = box(form.locator(".fa-magnifying-glass")), box(form.locator("input"), "inner")
    page.keyboard.press("Escape")
    assert icon["right"] > icon["left"]  # it is shown
    assert text["left"] >= icon["right"] + 4


@pytest.mark.parametrize("width", [320, 390, 1100])
def test_back_to_top_covers_nothing(width, visit):
    """The theme shows it on windows below 1200 pixels, when the reader scrolls up."""
    page = visit("book/12-pretrained", *quick_view("book/12-pretrained")).page
    page.set_viewport_size({"width": width, "height": 700})
    button, bar, *others = page.evaluate(
        """() => {
            const button = document.getElementById('pst-back-to-top');
            button.style.display = 'block';
            const bar = document.querySelector('.bd-header-article');
            const others = [...bar.querySelectorAll('button')]
                .filter(each => each !== button && each.checkVisibility());
            return [button, bar, ...others].map(each => each.getBoundingClientRect().toJSON());
        }"""
    )
    assert button["width"] > 20
    assert bar["top"] <= button["top"] < button["bottom"] <= bar["bottom"]
    assert len(others) >= 4
    for other in others:
        assert other["right"] <= button["left"] or button["right"] <= other["left"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_link_under_the_pointer_can_be_read(theme, visit):
    """axe looks at a page on which the pointer is nowhere."""
    page = visit("book/index", *quick_view("book/index")).look("laptop", theme)
    link = page.locator(".bd-sidebar-primary a.reference.internal").first
    link.hover()
    page.wait_for_timeout(400)  # colours change gradually
    colours = link.evaluate(
        "link => [getComputedStyle(link).color, getComputedStyle(document.body).backgroundColor]"
    )
    page.mouse.move(640, 2)
    channels = [[int(n) / 255 for n in re.findall(r"\d+", each)[:3]] for each in colours]
    dark, light = sorted(map(luminance, channels))
    assert (light + 0.05) / (dark + 0.05) >= 4.5, colours


# --- by ear


# What a screen reader is given, in the order in which it reads: every node's role, name, level.
def tree(page) -> list[dict]:
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    by_id, waiting, ordered = {node["nodeId"]: node for node in nodes}, [nodes[0]["nodeId"]], []
    while waiting:
        ordered.append(by_id[waiting.pop()])
        waiting += [each for each in reversed(ordered[-1].get("childIds", ())) if each in by_id]
    return [
        {
            "role": node["role"]["value"],
            "name": node.get("name", {}).get("value", "").strip(),
            **{each["name"]: each["value"].get("value") for each in node.get("properties", ())},
        }
        for node in ordered
        if not node["ignored"] and "role" in node
    ]


NAMED = {"button", "checkbox", "combobox", "figure", "image", "img", "link", "searchbox", "slider"}
LANDMARKS = {"banner", "complementary", "contentinfo", "form", "main", "navigation", "region"}


@pytest.mark.parametrize("name", some_now(READ, SOME))
def test_a_screen_reader_finds_its_way(name, visit):
    nodes = tree(visit(name, *quick_view(name)).look("laptop"))
    levels = [node["level"] for node in nodes if node["role"] == "heading"]
    assert levels.count(1) == 1
    levels = levels[levels.index(1) :]  # the parts in the contents stand before the title
    assert [(a, b) for a, b in pairwise(levels) if b > a + 1] == []
    landmarks = [(node["role"], node["name"]) for node in nodes if node["role"] in LANDMARKS]
    assert len(landmarks) == len(set(landmarks)), landmarks  # of one kind, told apart by name
    assert [role for role, _ in landmarks].count("main") == 1
    assert [node for node in nodes if node["role"] in NAMED and not node["name"]] == []
    for node in nodes:
        if node["role"] == "slider":
            assert node.get("valuetext"), node


# --- printed


@pytest.mark.parametrize("name", some_now(THIRD, SOME))
def test_on_paper_there_is_the_text_and_nothing_else(name, visit):
    opened = visit(name, *quick_view(name))
    page = opened.look("laptop", "light")
    page.emulate_media(media="print", color_scheme="light")
    shown = page.evaluate(
        """() => ({
            around: [...document.querySelectorAll(
                '.bd-header, .bd-sidebar-primary, .bd-sidebar-secondary, .prev-next-footer')]
                .filter(node => node.checkVisibility() && node.getBoundingClientRect().height)
                .map(node => node.outerHTML.slice(0, 100)),
            article: (document.querySelector('article') || document.querySelector('main'))
                .getBoundingClientRect().width,
            wide: innerWidth,
        })"""
    )
    opened.look()
    assert shown["around"] == []
    assert shown["article"] > 0.6 * shown["wide"]


# --- from a folder


@pytest.mark.parametrize("name", some_now(THIRD, SOME))
def test_a_page_opens_from_a_folder(name, browser, html):
    context = browser.new_context(offline=True)
    page = context.new_page()
    trouble, requests = [], []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("requestfailed", lambda request: trouble.append(request.url))
    page.on("request", lambda request: requests.append(urlsplit(request.url).scheme))
    page.goto((html / f"{name}.html").as_uri(), wait_until="load")
    page.evaluate("window.MathJax?.startup?.promise.then(() => 0)")
    formulas = page.locator(".math").count()
    assert page.locator(".math mjx-container").count() == formulas
    assert formulas or name not in CHAPTERS
    for slider in page.locator(".slider-figure input[type=range]").all():
        slider.press("Home")
        first = slider.get_attribute("aria-valuetext")
        slider.press("ArrowRight")
        assert slider.get_attribute("aria-valuetext") != first
    unloaded = "[...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.src)"
    assert page.evaluate(unloaded) == []
    assert set(requests) <= {"file", "data", "blob"}
    assert trouble == []
    context.close()


# --- weight


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_is_light_on_the_wire(name, html):
    page = html / f"{name}.html"
    text = page.read_bytes()
    addresses = set(re.findall(r'src="([^"]*_images/[^"]*)"', text.decode()))
    images = [(page.parent / unquote(address)).resolve() for address in addresses]
    assert len(images) > 1
    weight = sum(len(gzip.compress(path.read_bytes())) for path in [page, *images])
    assert 0 < weight <= BUDGET


# --- the first page


def test_the_first_screen_says_what_this_is_and_where_to_start(visit):
    page = visit("book/index", *quick_view("book/index")).look("laptop", "light")
    page.evaluate("scrollTo(0, 0)")
    start = page.get_by_role("link", name=re.compile("^Start with chapter 1"))
    picture = page.locator(".course-picture svg")
    model = page.locator(".language-model").get_by_role("button", name="Write on")
    for part in (page.get_by_role("heading", level=1), start, model):
        assert part.bounding_box()["y"] < SIZES["laptop"][1] - 200
    assert start.evaluate("node => node.pathname").endswith("/book/01-attention.html")
    assert len(picture.get_attribute("aria-label").split()) > 20
    words = page.locator("article p").all_inner_texts()[:3]
    assert sum(len(text.split()) for text in words) < 60  # ten seconds of reading


@pytest.mark.parametrize("size", ["phone", "laptop"])
def test_no_word_of_the_picture_is_cut_off(visit, size):
    page = visit("book/index", *quick_view("book/index")).look(size)
    cut = page.locator(".course-picture svg").evaluate(
        """svg => { const frame = svg.getBoundingClientRect();
        return [...svg.querySelectorAll('text')].filter(text => {
            const box = text.getBoundingClientRect();
            return box.left < frame.left || box.right > frame.right || box.bottom > frame.bottom;
        }).map(text => text.textContent); }"""
    )
    assert cut == []


@pytest.mark.parametrize("size", ["phone", "laptop"])
def test_the_words_of_the_map_fit_their_boxes(visit, size):
    page = visit("book/index", *quick_view("book/index")).look(size)
    beyond = page.locator(".course-map a").evaluate_all(
        """links => links.filter(link => {
            const [box, words] = ['rect', 'text'].map(tag => link.querySelector(tag).getBBox());
            return words.x < box.x + 2 || words.x + words.width > box.x + box.width - 2;
        }).map(link => link.textContent)"""
    )
    assert beyond == []


# --- what a reader waits for

WATCH = """
window.frames_drawn = 0;
window.order = [];  // the place of each formula on the page, as they are typeset, and the frame
const frame = () => { frames_drawn += 1; requestAnimationFrame(frame); };
requestAnimationFrame(frame);
new MutationObserver(changes => {
    for (const { addedNodes } of changes) {
        for (const node of addedNodes) {
            const formula = node.nodeName === 'MJX-CONTAINER' && node.closest('.math');
            if (formula) {
                const box = formula.getBoundingClientRect();
                const place = [...document.querySelectorAll('.math')].indexOf(formula);
                order.push([place, box.bottom > -200 && box.top < innerHeight + 200, frames_drawn]);
            }
        }
    }
}).observe(document, { childList: true, subtree: true });
"""


def test_formulas_in_view_are_typeset_first_and_the_page_goes_on(browser, base):
    """Somebody follows a link into the middle of a long page, and its last script is late."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.add_init_script(WATCH)
    page.route("**/pydata-sphinx-theme.js*", lambda route: (time.sleep(2), route.continue_()))
    page.goto(f"{base}/book/06-alibi.html#summary", wait_until="load")
    page.wait_for_function("window.MathJax?.startup?.promise !== undefined")
    page.evaluate("MathJax.startup.promise.then(() => 0)")
    places, in_view, frames = zip(*page.evaluate("order"), strict=True)
    wanted = page.locator(".math").count()
    page.close()
    assert sorted(places) == list(range(wanted))
    assert places[0] > wanted / 2  # not from the top
    assert in_view[0]
    assert frames[-1] - frames[0] > 3  # drawn in between
