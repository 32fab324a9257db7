"""lib.heads: the measures by hand, the record, and the HTML of the head browser (tests/browser)."""

import base64
import gzip
import hashlib
import json
import re
from itertools import product

import pytest
import torch

from lib import heads, results, smollm
from lib.figures import set_words
from lib.heads import KINDS, HeadBrowser, Observed, equal_shares, observe, scores, targets
from lib.transformer import LanguageModel
from tests.test_interactive import NASTY, Reader


def made_up(*, texts=2, layers=3, heads=2, length=5, seed=0):
    """Causal weights in percent, of key 2 zero, else all different; a token occurs twice."""
    generator = torch.Generator().manual_seed(seed)
    raw = torch.rand(texts, layers, heads, length, length, generator=generator).tril()
    raw[..., 2] = 0
    percent = (100 * raw / raw.sum(-1, keepdim=True)).round().to(torch.uint8)
    words = ["a", " b", " c<d>", " b", " e", " longer", " b", " c<d>"][:length]
    tokens = tuple(tuple(words[t:] + words[:t]) for t in range(texts))
    return Observed(tokens, percent)


def make(observed=None, **options):
    return HeadBrowser(
        made_up() if observed is None else observed, name="heads", title="t", **options
    )


def data_of(figure):
    """What the script gets."""
    return json.loads(
        re.search(r"document\.currentScript,(.*)\)</script>", figure.html, re.DOTALL)[1]
    )


# --- measures


def test_targets_by_hand():
    """Queries 2 to 5 of a b a b c a; each kind as pairs (query, key)."""
    pairs = [set(map(tuple, kind.nonzero().tolist())) for kind in targets(list("ababca"))]
    assert pairs == [
        {(2, 1), (3, 2), (4, 3), (5, 4)},
        {(2, 0), (3, 0), (4, 0), (5, 0)},
        {(2, 2), (3, 3), (4, 4), (5, 5)},
        {(2, 0), (3, 1), (5, 0), (5, 2)},
        {(2, 1), (3, 2), (5, 1), (5, 3)},
    ]


def test_a_token_that_repeats_at_once_is_not_its_own_successor():
    pairs = targets(["a", "a", "a"])[4].nonzero().tolist()
    assert pairs == [[2, 1]]  # after the copy at 0; what follows the copy at 1 is the query itself


def test_scores_by_hand():
    """Two texts, one head that looks only at the previous token and one that looks at all."""
    tokens = (tuple("ababa"), tuple("vwxyz"))
    percent = torch.zeros(2, 1, 2, 5, 5, dtype=torch.uint8)
    for m in range(5):
        percent[:, 0, 0, m, max(m - 1, 0)] = 100
        percent[:, 0, 1, m, : m + 1] = 60 // (m + 1)
    measured = scores(Observed(tokens, percent))
    assert measured.shape == (5, 1, 2)
    torch.testing.assert_close(measured[:, 0, 0], torch.tensor([1.0, 0.0, 0.0, 0.0, 1.0]))
    one = (0.20 + 0.15 + 0.12) / 3  # a share of 60 percent, at the queries 2, 3 and 4
    copies = (0.20 + 0.15 + 2 * 0.12) / 3  # of the first text alone; its last query has two
    torch.testing.assert_close(measured[:, 0, 1], torch.tensor([one] * 3 + [copies] * 2))


def test_equal_shares():
    shares = equal_shares(Observed((tuple("abcd"), tuple("abab")), torch.zeros(2, 1, 1, 4, 4)))
    torch.testing.assert_close(shares, torch.tensor([7 / 24] * 5))  # the mean of 1/3 and 1/4


def test_a_kind_that_no_query_has_is_zero():
    assert scores(Observed((tuple("abc"),), torch.ones(1, 1, 1, 3, 3)))[3:].tolist() == [[[0]]] * 2


# --- observing


class Letters:
    """A tokenizer of eight letters."""

    def encode(self, text):
        return ["abcdefgh".index(letter) for letter in text]

    def decode(self, tokens):
        return "".join("abcdefgh"[token] for token in tokens)


def test_observe_keeps_every_weight_in_percent():
    torch.manual_seed(0)
    model = LanguageModel(8, 12, 3, 2).eval()
    observed = observe(model, Letters(), ["abcd", "hgga"])
    assert observed.tokens == (tuple("abcd"), tuple("hgga"))
    assert observed.percent.shape == (2, 3, 2, 4, 4)
    with torch.no_grad():
        _, weights = model(torch.tensor([[7, 6, 6, 0]]), return_weights=True)
    for layer, layer_weights in enumerate(weights.self_attention):
        gap = (observed.percent[1, layer] / 100 - layer_weights[0]).abs().max()
        assert gap <= 0.005 + 1e-6
    assert not observed.percent.triu(1).any()


def test_texts_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match=r"need equal numbers of tokens, got \[2, 3\]"):
        observe(LanguageModel(8, 12, 1, 2), Letters(), ["ab", "abc"])


def test_a_record_gives_back_what_was_observed():
    observed = made_up()
    back = Observed.from_record(json.loads(json.dumps(observed.to_record())))
    assert back.tokens == observed.tokens
    assert torch.equal(back.percent, observed.percent)


def test_the_record_is_what_the_model_gives(language_model):
    record = results.load("heads")
    sha256 = hashlib.sha256(smollm.find().read_bytes()).hexdigest()
    assert record["made"]["sha256"] == sha256
    recorded, now = Observed.from_record(record["texts"]), observe(*language_model)
    assert recorded.tokens == now.tokens
    assert ["".join(tokens) for tokens in now.tokens] == list(heads.TEXTS)
    assert recorded.percent.shape == (4, 30, 9, 16, 16)
    gap = (recorded.percent.int() - now.percent.int()).abs()
    assert gap.max() <= 1  # of another machine's last bit, where a percent is nearly a half
    assert gap.float().mean() < 0.01


# --- the figure


def test_what_is_shown_first():
    observed = made_up()
    for text, (k, kind) in product(range(2), enumerate(KINDS)):
        figure = make(observed, text=text, kind=kind)
        layer, head = divmod(int(scores(observed)[k].argmax()), 2)
        percent, tokens = observed.percent[text, layer, head], observed.tokens[text]
        page = Reader(figure.html)
        label = page.all("svg")[0]["aria-label"]
        assert label == figure.alt
        assert f"weight on {kind}; layer {layer}, head {head} is marked" in label
        row = ", ".join(
            f"{n} “{token.strip()}” {p}%"
            for n, (token, p) in enumerate(zip(tokens, percent[4].tolist(), strict=True))
        )
        assert label.endswith(f"query 4 “{tokens[4].strip()}” attends to {row}.")
        sliders = [each["value"] for each in page.all("input")]
        assert sliders == ["0", str(layer), str(head), "4"]
        numbers = re.search(r'<g data-group="numbers">(.*?)</g>', figure.html)[1]
        assert re.findall(r">(\d*)</text>", numbers) == [str(p) for p in percent[4].tolist()]


def test_cells_are_drawn_by_layer_and_by_row():
    observed = made_up()
    page = make(observed).html
    measured = scores(observed)[0].flatten()
    cells = re.search(r'<g data-group="map">(.*?)</g>', page)[1]
    depths = [float(each) for each in re.findall(r'fill-opacity="([^"]*)"', cells)]
    assert depths == pytest.approx(measured.tolist(), abs=0.005)
    places = re.findall(r'<rect x="([^"]*)" y="([^"]*)"', cells)
    assert len(set(places)) == 6
    assert [places[0][0] == x for x, _ in places] == [True, True, False, False, False, False]
    assert [places[0][1] == y for _, y in places] == [True, False] * 3
    layer, head = divmod(int(measured.argmax()), 2)
    lower = observed.percent[0, layer, head].tolist()
    cells = re.search(r'<g data-group="weights">(.*?)</g>', page)[1]
    depths = [float(each) for each in re.findall(r'fill-opacity="([^"]*)"', cells)]
    wanted = [0.6 * (lower[m][n] / 100) ** 0.5 for m in range(5) for n in range(m + 1)]
    assert depths == pytest.approx(wanted, abs=0.005)
    framed = ["counted" in each for each in re.findall(r'class="(cell[^"]*)"', cells)]
    assert framed == [m >= 2 and n == m - 1 for m in range(5) for n in range(m + 1)]


def test_the_script_gets_every_weight():
    observed = made_up()
    data = data_of(make(observed))
    assert data["tokens"] == [[token.strip() for token in one] for one in observed.tokens]
    for text, layer, head in product(range(2), range(3), range(2)):
        stored = base64.b64decode(data["weights"][text])[15 * (2 * layer + head) :][:15]
        rows = observed.percent[text, layer, head].tolist()
        assert list(stored) == [p for m, row in enumerate(rows) for p in row[: m + 1]]
    for k in range(5):
        assert sorted(data["order"][k]) == list(range(6))
        ranked = [scores(observed)[k].flatten()[i].item() for i in data["order"][k]]
        assert ranked == sorted(ranked, reverse=True)


def test_without_a_script_it_has_dead_controls_and_a_note():
    page = Reader(make().html)
    assert len(page.all("select")) == 2
    assert len(page.all("label")) == 6
    assert all("disabled" in each for each in page.all("input") + page.all("select"))
    (note,) = [each for each in page.all("p") if each.get("class") == "note"]
    assert "hidden" not in note


def test_nothing_of_the_author_becomes_markup():
    observed, token = made_up(), "</script><b x='\">&amp;"
    hostile = Observed(((*observed.tokens[0][:4], token), observed.tokens[1]), observed.percent)
    figure = HeadBrowser(hostile, name="heads", title=NASTY)
    page = Reader(figure.html)
    tags = [tag for tag, _ in page.elements]
    assert (tags.count("script"), tags.count("img"), tags.count("b")) == (1, 0, 4)
    assert figure.html.count("</script>") == 1
    assert f"4 “{token}”" in page.all("svg")[0]["aria-label"]  # escaped once, not twice
    assert data_of(figure)["tokens"][0][4] == token


def test_words_of_another_language():
    table = {heads.WORDS["head"]: "Schicht {layer}, Kopf {head}: {kind}, {score} Prozent.",
             KINDS[0]: "das Token davor", heads.LEGEND: "In Prozent."}  # fmt: skip
    set_words(table)
    try:
        html = make().html
    finally:
        set_words({})
    assert re.search(r"Schicht \d, Kopf \d: das Token davor, \d+ Prozent\.", html)
    assert "In Prozent." in html
    assert KINDS[0] not in html


def test_it_asks_nobody_for_anything():
    assert not re.search(
        r"https?:|//[a-z]|src=|href=|url\(|@import|fetch|eval|innerHTML", make().html
    )


def test_weight():
    """What chapter 13 pays: the record of 146,880 weights, beside a budget of 600,000 bytes."""
    observed = Observed.from_record(results.load("heads")["texts"])
    html = make(observed).html.encode()
    assert len(html) < 300_000
    assert len(gzip.compress(html)) < 120_000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"text": 2}, "there is no text 2: they go from 0 to 1"),
        ({"kind": "a verb"}, "kind must be one of .* got 'a verb'"),
        ({"max_bytes": 100}, r"weighs \d+ bytes, more than max_bytes=100"),
    ],
)
def test_errors(options, words):
    with pytest.raises(ValueError, match=words):
        make(**options)
    with pytest.raises(ValueError, match="'A B' must match"):
        HeadBrowser(made_up(), name="A B", title="t")
