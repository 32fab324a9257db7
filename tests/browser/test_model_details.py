"""The language models on the pages: what goes wrong, what is said then, and how it looks."""

import re

import numpy as np
import pytest

from lib import extrapolation
from tests.browser.conftest import ROOT, SIZES
from tests.browser.live_model import PAGES, RUNNING, STATIC, extension, preset, settle

pytestmark = pytest.mark.long


# --- what goes wrong, and what is said then


def test_no_text_is_refused_and_counts_nothing(bare, opened_at):
    with pytest.raises(Exception, match="there are no tokens"):
        bare.evaluate("() => lm.forward(made.rope, [], { lastOnly: true })")
    page = opened_at("10-kv-cache")
    area, write = page.locator(".language-model textarea"), page.locator("button.main")
    area.fill("")
    write.click()
    settle(page)
    assert area.input_value() == ""
    assert page.locator(".model-summary").inner_text().startswith("There is no text")
    assert page.locator(".model-next li").count() == 0
    area.fill("The value")
    write.click()
    settle(page)
    write.click()
    settle(page)
    assert page.locator(".model-counter").inner_text().startswith("Character ")
    assert "NaN" not in page.locator(".language-model").inner_text()
    page.goto("about:blank")


def test_without_text_nothing_is_said_of_an_earlier_one(opened_at):
    page = opened_at("07-extrapolation")
    assert page.locator(".loss tbody tr").count() == 1
    page.locator(".language-model textarea").fill("")
    settle(page)
    assert page.locator(".loss tbody tr").count() == 0
    assert page.locator(".model-summary").inner_text().startswith("There is no text")


def test_the_first_draw_of_a_seed_is_not_a_rare_one(bare):
    firsts = bare.evaluate("() => Array.from({ length: 60 }, (_, seed) => lm.chances(seed)())")
    assert 0.35 < np.mean(firsts) < 0.65
    assert sum(first < 0.01 for first in firsts) <= 3
    assert sum(first > 0.5 for first in firsts) >= 15


def test_the_first_character_that_is_written_is_a_probable_one(opened_at):
    page = opened_at()
    before = page.locator("textarea").input_value()
    probable = page.locator(".model-next b").all_inner_texts()[:2]
    page.locator("button.main").click()
    page.wait_for_function(
        "n => document.querySelector('textarea').value.length > n", arg=len(before)
    )
    assert page.locator("textarea").input_value()[len(before)] in probable


def test_another_scheme_ends_a_measurement_and_forgets_it(opened_at):
    page = opened_at("10-kv-cache")
    measure = page.get_by_role("button", name="Measure both")
    save = page.get_by_role("button", name="Download the record")
    scheme, verdict = page.get_by_label("Position scheme"), page.locator(".model-verdict")
    measure.focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Stop measuring").wait_for()
    assert page.evaluate("document.activeElement.textContent") == "Stop measuring"
    scheme.select_option("alibi")
    settle(page)
    assert verdict.inner_text() == ""
    assert measure.count() == 1
    measure.click()
    page.wait_for_function(
        "document.querySelector('.model-verdict').textContent.startsWith('Here')", timeout=120_000
    )
    assert save.is_enabled()
    scheme.select_option("none")
    settle(page)
    assert save.is_disabled()
    assert verdict.inner_text() == ""
    assert page.locator(".cache tbody tr").count() == 0
    assert page.trouble == []


def test_a_table_of_positions_is_measured_to_its_end(opened_at):
    page = opened_at("10-kv-cache")
    page.get_by_label("Position scheme").select_option("learned")
    page.get_by_role("button", name="Measure both").click()
    page.get_by_role("button", name="Stop measuring").wait_for()
    page.get_by_role("button", name="Measure both").wait_for(timeout=120_000)
    assert page.locator(".model-verdict").inner_text().startswith("Here")
    lengths = page.locator(".cache tbody th").all_text_contents()
    assert lengths == ["4", "8", "16", "32", "64"]
    assert page.trouble == []


def cut_short(route) -> None:
    """Answer with a file that runs, but in which half of the weights are missing."""
    text = extension().weights_script("alibi")
    begin = text.index('"halves":"') + len('"halves":"')
    route.fulfill(body=text[: begin + 40_000] + '"});', content_type="text/javascript")


def not_numbers(route) -> None:
    """Answer with a file of the right length, in which some weights are not numbers."""
    text = extension().weights_script("alibi")
    begin = text.index('"halves":"') + len('"halves":"')
    text = text[:begin] + "/" * 400 + text[begin + 400 :]
    route.fulfill(body=text, content_type="text/javascript")


BROKEN = {
    "garbage": (lambda r: r.fulfill(body="<html>", content_type="text/javascript"), "damaged"),
    "empty": (lambda r: r.fulfill(body="", content_type="text/javascript"), "damaged"),
    "cut": (cut_short, "damaged: 30000 bytes instead of"),
    "not numbers": (not_numbers, "damaged: embedding.weight has values that are not numbers"),
    "missing": (lambda r: r.fulfill(status=404), "could not be loaded"),
    "never": (lambda r: None, "have not arrived after 20 seconds"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_weights_that_do_not_arrive_are_asked_for_again(kind, opened_at):
    answer, message = BROKEN[kind]
    page = opened_at()
    scheme, alert = page.get_by_label("Position scheme"), page.get_by_role("alert")
    shades = "[...document.querySelectorAll('.model-strip span')]"
    shades += ".filter(cell => +cell.style.getPropertyValue('--depth')).length"
    page.route("**/alibi.js*", answer)
    if kind == "never":
        page.clock.install()
    scheme.select_option("alibi")
    if kind == "never":
        page.clock.run_for(1_000)
        scheme.select_option("none")  # others are not held up
        page.clock.run_for(2_000)
        page.wait_for_function("document.querySelector('.model-next li')")
        scheme.select_option("alibi")
        page.clock.run_for(21_000)
    page.get_by_role("button", name="Try again").wait_for(timeout=10_000)
    assert message in alert.inner_text()
    assert page.evaluate(shades) == 0  # no picture of another scheme under this name
    assert page.locator(".model-next li").count() == 0
    assert page.locator("button.main").inner_text() == "Write on"
    page.unroute("**/alibi.js*")
    page.get_by_role("button", name="Try again").click()
    page.wait_for_function(f"{shades} > 0", timeout=20_000)
    assert alert.inner_text() == ""
    assert page.evaluate("document.activeElement.tagName") == "TEXTAREA"


def test_a_worker_that_stops_is_said(opened_at):
    """The question that waits is answered, and so is the next one."""
    page = opened_at()
    alert = page.get_by_role("alert")
    page.evaluate("""() => {
        const post = Worker.prototype.postMessage;
        Worker.prototype.postMessage = function (message) {
            Worker.prototype.postMessage = post;
            this.dispatchEvent(new ErrorEvent("error"));
        };
    }""")
    page.get_by_label("Position scheme").select_option("none")
    for _ in range(2):
        page.get_by_role("button", name="Try again").wait_for(timeout=10_000)
        assert "The model has stopped working. Please reload the page." in alert.inner_text()
        page.get_by_role("button", name="Try again").click()


def test_an_answer_that_comes_too_late_is_not_shown(opened_at):
    """While RoPE is being asked, *no scheme* is chosen: the answer has the wrong name by then."""
    page = opened_at()
    scheme = page.get_by_label("Position scheme")
    for each in ("none", "rope"):
        scheme.select_option(each)
        settle(page)
    page.evaluate("""() => {
        const post = Worker.prototype.postMessage;
        Worker.prototype.postMessage = function (message) {
            setTimeout(() => post.call(this, message), 400);
        };
        const list = document.querySelector(".model-next");
        window.shown = [];
        new MutationObserver(() => shown.push(list.innerText))
            .observe(list, { subtree: true, childList: true, characterData: true });
        const area = document.querySelector(".language-model textarea");
        area.value += "r";
        area.dispatchEvent(new Event("input"));
        const menu = document.querySelector(".language-model select");
        setTimeout(() => {
            menu.value = "none";
            menu.dispatchEvent(new Event("change"));
        }, 100);
    }""")
    page.wait_for_function("shown.length > 0", timeout=20_000)
    page.wait_for_timeout(1000)
    assert set(page.evaluate("shown")) == {page.locator(".model-next").inner_text()}


SLOW_WORKER = """() => {
    const post = Worker.prototype.postMessage;
    window.posted = [];
    Worker.prototype.postMessage = function (message) {
        posted.push([message.what, message.length, message.scheme]);
        setTimeout(() => post.call(this, message), 400);
    };
}"""


@pytest.mark.parametrize("menu", ["Layer", "Head"])
def test_weights_of_an_earlier_head_are_not_shown(menu, opened_at):
    """An answer that arrives when another head is chosen would have the name of that one."""
    page = opened_at("01-attention")
    control = page.get_by_role("combobox", name=menu)
    many = {"Layer": extrapolation.N_LAYERS, "Head": extrapolation.N_HEADS}[menu]
    assert control.locator("option").all_inner_texts() == [str(i + 1) for i in range(many)]
    shades = """() => [...document.querySelectorAll('.model-strip span')]
        .map(cell => cell.style.getPropertyValue('--depth')).join()"""
    wanted = {}
    for label in ("1", "2"):
        control.select_option(label=label)
        settle(page)
        wanted[label] = page.evaluate(shades)
    assert wanted["1"] != wanted["2"]
    page.evaluate(SLOW_WORKER)
    page.evaluate(
        """() => { window.shown = [];
        const strip = document.querySelector('.model-strip');
        new MutationObserver(() => shown.push([...strip.children]
            .map(cell => cell.style.getPropertyValue('--depth')).join()))
            .observe(strip, { subtree: true, attributes: true }); }"""
    )
    control.select_option(label="1")
    page.wait_for_timeout(100)
    control.select_option(label="2")
    page.wait_for_function("posted.length === 2", timeout=20_000)
    page.wait_for_timeout(1000)
    assert wanted["1"] not in page.evaluate("shown")
    assert page.evaluate(shades) == wanted["2"]
    assert page.trouble == []


def test_a_dragged_slider_does_not_wait_for_the_worker(opened_at):
    """All weights of a head come at once: another query is drawn from them, however busy it is."""
    page = opened_at("01-attention")
    page.evaluate(SLOW_WORKER)
    seen = page.evaluate(
        """async () => {
            const slider = document.querySelector('.model-row [type=range][max="48"]');
            const seen = [];
            for (let m = 40; m >= 20; m--) {
                slider.value = m;
                slider.dispatchEvent(new Event('input'));
                await new Promise(requestAnimationFrame);
                const cells = [...document.querySelectorAll('.model-strip span')];
                seen.push([+slider.value, cells.findIndex(each => each.classList.contains('query')),
                    cells.findLastIndex(each => +each.style.getPropertyValue('--depth') > 0)]);
            }
            return seen;
        }"""
    )
    assert [m for m, *_ in seen] == [framed for _, framed, _ in seen] == list(range(40, 19, -1))
    assert all(last <= m for m, _, last in seen)
    assert page.evaluate("posted") == []


def test_an_edit_ends_a_comparison(opened_at):
    page = opened_at("07-extrapolation")
    for name in ("sinusoidal", "none"):  # so that the weights are there
        page.get_by_label("Position scheme").select_option(name)
        settle(page)
    page.evaluate(SLOW_WORKER)
    page.get_by_role("button", name="Compare all six").click()
    page.wait_for_timeout(200)
    page.locator(".language-model textarea").fill("Another text.")
    page.wait_for_timeout(4000)
    compared = [scheme for what, _, scheme in page.evaluate("posted") if what == "losses"]
    assert compared == ["none"]
    assert page.locator(".loss tbody tr").count() == 1
    page.get_by_role("button", name="Compare all six").click()
    page.wait_for_function("document.querySelectorAll('.loss tbody tr').length === 6")


def test_the_first_length_is_measured_twice_and_recorded_once(opened_at):
    """The first calls are those that the browser has not compiled yet."""
    page = opened_at("10-kv-cache")
    page.evaluate(SLOW_WORKER)
    page.get_by_role("button", name="Measure both").click()
    page.wait_for_function("document.querySelectorAll('.cache tbody tr').length === 2")
    lengths = [length for what, length, _ in page.evaluate("posted") if what == "measure"]
    assert lengths[:3] == [4, 4, 8]
    assert page.locator(".cache tbody th").all_text_contents() == ["4", "8"]


def test_a_browser_without_workers_is_told_so(browser, base):
    page = browser.new_page()
    trouble = []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.add_init_script("window.Worker = class { constructor() { throw new Error('no'); } };")
    page.goto(f"{base}/book/index.html", wait_until="load")
    words = "This browser does not let a page start a worker, so the model cannot run."
    page.get_by_role("button", name="Write on").click()
    page.get_by_role("button", name="Try again").wait_for(timeout=10_000)
    assert words in page.get_by_role("alert").inner_text()
    assert page.get_by_role("button", name="Write on").count() == 1
    assert page.locator(".language-model").get_attribute("aria-busy") == "false"
    assert trouble == []
    page.close()


def test_a_comparison_names_the_scheme_that_is_missing(opened_at):
    page = opened_at("07-extrapolation")
    page.route("**/t5.js*", lambda route: route.abort())
    page.get_by_role("button", name="Compare").click()
    page.get_by_text("T5 is missing. The weights").wait_for(timeout=60_000)
    assert page.locator(".loss tbody tr").count() == 5


@pytest.mark.parametrize(
    ("name", "button", "shown"),
    [
        ("07-extrapolation", "Compare all six", ".loss tbody tr:nth-child(6)"),
        ("10-kv-cache", "Measure both", ".cache tbody tr:nth-child(2)"),
    ],
)
def test_buttons_work_before_the_page_is_complete(name, button, shown, browser, base):
    """A picture is still on its way, so the model has not started."""
    page = browser.new_page()
    trouble, held = [], []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.route("**/logo.svg*", lambda route: held.append(route))
    page.goto(f"{base}/book/{name}.html", wait_until="domcontentloaded")
    page.get_by_role("button", name=button).click()
    page.wait_for_timeout(500)
    assert held
    assert page.evaluate("document.readyState") != "complete"
    assert "Cannot" not in page.locator(".language-model").inner_text()
    for route in held:
        route.continue_()
    page.locator(shown).wait_for(state="attached", timeout=60_000)
    assert trouble == []
    page.close()


def test_temperature_0_leaves_one_character_and_says_so(opened_at):
    page = opened_at()
    page.get_by_text("Temperature and top k").click()
    page.get_by_role("slider", name="Temperature").focus()
    page.keyboard.press("Home")
    settle(page)
    assert page.locator(".model-next li").all_inner_texts() == ["r\n100%"]
    assert page.locator(".model-summary").inner_text().endswith("Next: “r” 100%.")


def test_a_text_is_counted_in_characters_and_a_cut_is_said(opened_at):
    page = opened_at()
    area = page.locator(".language-model textarea")
    area.fill("🐈" * 520)
    settle(page)
    assert page.locator(".model-strip span").count() == 512
    assert (
        "The last 8 characters of yours were left out."
        in page.locator(".model-summary").inner_text()
    )


def test_typing_inside_a_full_text_keeps_the_caret(opened_at):
    page = opened_at()
    area = page.locator(".language-model textarea")
    area.fill("abcd" * 128)
    area.evaluate("each => each.setSelectionRange(10, 10)")
    page.keyboard.type("XYZ")
    settle(page)
    assert area.input_value() == ("abcd" * 128)[:10] + "XYZ" + ("abcd" * 128)[10:-3]
    assert area.evaluate("each => [each.selectionStart, each.selectionEnd]") == [13, 13]


def test_what_the_model_wrote_is_marked_and_undone_as_one(opened_at):
    page = opened_at()
    area, write = page.locator(".language-model textarea"), page.locator("button.main")
    marked = page.locator(".model-strip span.written")
    before = area.input_value()
    assert marked.count() == 0
    write.click()
    page.get_by_role("button", name="Write on").wait_for(timeout=30_000)
    assert marked.count() == 48
    area.focus()
    page.keyboard.press("Control+Home")
    page.keyboard.type("So ")
    settle(page)
    assert marked.count() == 48
    assert page.locator(".model-strip span").first.get_attribute("class") in (None, "")
    area.fill(before)
    settle(page)
    write.click()
    settle(page)
    write.click()
    settle(page)
    assert area.input_value() != before
    area.focus()
    page.keyboard.press("Control+z")
    settle(page)
    assert area.input_value() == before
    assert marked.count() == 0


def test_each_press_of_write_on_is_undone_in_turn(opened_at):
    page = opened_at()
    area, write = page.locator(".language-model textarea"), page.locator("button.main")
    area.focus()
    page.keyboard.press("Control+End")
    page.keyboard.type("ribute")
    seen = [area.input_value()]
    for _ in range(2):
        write.click()
        settle(page)
        write.click()  # stop
        settle(page)
        seen.append(area.input_value())
    assert len(set(seen)) == 3
    area.focus()
    for before in reversed(seen[:-1]):
        page.keyboard.press("Control+z")
        settle(page)
        assert area.input_value() == before


# --- how it is written


def test_a_name_in_the_scripts_is_what_a_value_is():
    """Not what happened to it."""
    verbs = r"(?:const |let |this\.|[({,]\s*)((?:said|says|kept|found|told|stands)\b\s*[=,:;.)}])"
    scripts = [*(ROOT / "book" / "_static").glob("*.js"), *STATIC.glob("*.js")]
    scripts += (ROOT / "lib").glob("*.js")
    assert len(scripts) >= 13
    named = {path.name: re.findall(verbs, path.read_text("utf-8")) for path in scripts}
    assert not any(named.values()), named


# --- how it looks


@pytest.mark.parametrize("size", ["phone", "laptop"])
def test_the_first_screen_shows_the_model_and_nothing_moves(size, browser, base):
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height})
    page = context.new_page()
    page.add_init_script(
        """window.shift = 0;
        new PerformanceObserver(list => {
            for (const each of list.getEntries()) window.shift += each.value;
        }).observe({ type: 'layout-shift', buffered: true });"""
    )
    page.goto(f"{base}/book/index.html", wait_until="load")
    page.wait_for_function(RUNNING, timeout=60_000)
    page.wait_for_timeout(300)
    shift = page.evaluate("window.shift")
    print(f"{size}: layout shift {shift:.4f}")
    assert shift < 0.02
    parts = ("button.main", "select", "textarea", ".model-strip", ".model-next li:nth-child(3)")
    for part in parts:
        box = page.locator(".language-model").locator(part).first.bounding_box()
        assert box["y"] + box["height"] < height, part
    context.close()


@pytest.mark.parametrize("size", ["phone", "laptop"])
@pytest.mark.parametrize("name", PAGES[1:])
def test_the_text_below_stays_when_a_model_starts(name, size, browser, base):
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height})
    page = context.new_page()
    page.goto(f"{base}/book/{name}.html", wait_until="load")
    model = page.locator(".language-model.running")
    assert model.get_attribute("data-length") is None  # it is far below
    before = model.bounding_box()["height"]
    model.scroll_into_view_if_needed()
    page.wait_for_function(RUNNING, timeout=60_000)
    page.wait_for_timeout(300)
    after = model.bounding_box()["height"]
    print(f"{name} {size}: {before:.0f} → {after:.0f} px")
    assert abs(after - before) < 80
    context.close()


@pytest.mark.parametrize("name", ["index", "07-extrapolation"])
def test_a_menu_shows_each_of_its_entries_whole(name, opened_at):
    page = opened_at(name, "phone")
    room, widths = page.get_by_label("Position scheme").evaluate(
        """menu => { const style = getComputedStyle(menu);
        const context = new OffscreenCanvas(1, 1).getContext('2d');
        context.font = style.font;
        const room = menu.clientWidth - parseFloat(style.paddingLeft)
            - parseFloat(style.paddingRight) - 20;  // the arrow
        return [room, [...menu.options].map(each => context.measureText(each.text).width)]; }"""
    )
    print(f"{room:.0f} px for {max(widths):.0f}")
    assert max(widths) <= room


@pytest.mark.parametrize("size", ["phone", "laptop"])
def test_the_words_of_a_chart_are_legible(size, opened_at):
    """They lie inside the picture, do not cover each other, and are not tiny on a phone."""
    page = opened_at("10-kv-cache", size)
    page.get_by_role("button", name="Measure both").click()
    page.wait_for_function(
        "document.querySelector('.model-verdict').textContent.startsWith('Here')", timeout=120_000
    )
    page.get_by_label("Draw").select_option("operations")
    drawn = page.locator(".cache svg[role=img]").evaluate(
        """svg => { const frame = svg.getBoundingClientRect();
        const words = [...svg.querySelectorAll('text')];
        const boxes = words.map(each => each.getBoundingClientRect());
        const apart = (a, b) => a.right <= b.left || b.right <= a.left
            || a.bottom <= b.top + 4 || b.bottom <= a.top + 4;
        return {
            outside: words.filter((_, i) => boxes[i].left < frame.left - 1
                || boxes[i].right > frame.right + 1).map(each => each.textContent),
            covered: words.filter((_, i) => boxes.some((box, j) => i < j && !apart(box, boxes[i])))
                .map(each => each.textContent),
            pixels: 15 * frame.width / svg.viewBox.baseVal.width,
        }; }"""
    )
    assert drawn["outside"] == drawn["covered"] == []
    assert drawn["pixels"] > 12
    page.get_by_text("The numbers", exact=True).click()
    box = page.locator(".cache .model-table")
    assert size == "phone" or box.evaluate("each => each.scrollWidth <= each.clientWidth")


def test_a_comparison_keeps_its_length_with_a_short_table(opened_at):
    """The learned table reads 64 characters, and what the others read stays on the chart."""
    page = opened_at("07-extrapolation")
    page.get_by_role("button", name="Compare all six").click()
    page.wait_for_function(
        "document.querySelectorAll('.loss tbody tr').length === 6", timeout=60_000
    )
    page.get_by_label("Position scheme").select_option("learned")
    settle(page)
    assert page.locator(".loss .model-chart").inner_text().count("300") == 1  # a tick
    words = page.locator(".next .none")
    assert "No prediction" in words.inner_text()
    assert words.bounding_box()["height"] < 80


def test_losses_above_the_chart_are_marked(opened_at):
    page = opened_at("07-extrapolation")
    assert page.locator(".loss path.above").count() == 1
    assert page.get_by_text("A triangle is a loss above 8.").count() == 1


def test_forced_colours_keep_shades_and_bars(opened_at):
    page = opened_at(forced_colors="active")
    shades, bars = page.evaluate(
        """['.model-strip span', '.model-next i'].map(name => [...document.querySelectorAll(name)]
            .map(each => getComputedStyle(each).backgroundColor))"""
    )
    assert len(set(shades)) >= 4
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert set(bars).isdisjoint({paper, "rgba(0, 0, 0, 0)"})


def test_on_paper_there_is_one_sentence(opened_at):
    page = opened_at()
    page.emulate_media(media="print")
    shown = page.locator(".language-model > *").evaluate_all(
        "all => all.filter(each => each.offsetHeight).map(each => each.className)"
    )
    assert shown == ["model-instead"]


@pytest.mark.parametrize("name", ["index", "10-kv-cache"])
def test_a_model_has_a_name_and_a_heading(name, opened_at):
    page = opened_at(name)
    title = preset(name)["title"]
    assert page.get_by_role("region", name=title, exact=True).count() == 1
    level = 2 if name == "index" else 3
    assert page.get_by_role("heading", name=title, exact=True, level=level).count() == 1
