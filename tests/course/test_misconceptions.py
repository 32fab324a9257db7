"""The page of claims: all are there, each verdict is computed, and each could be another."""

import ast
import re
from functools import cache

import pytest

from tests.course.claims import BOOK, read
from tests.course.execution import (
    Perturbation,
    patched,
    perturbations,
    perturbed_source,
    run,
    set_up_cells,
    undone_later,
)
from tests.halves import some_now

PAGE = read(BOOK / "misconceptions.ipynb")
CELLS = {cell.id: cell for cell in PAGE.notebook.cells}
# A claim that was split keeps its number for the first part, so that links to it stay valid; the
# others get a letter, as an article that is inserted into a law.
INSERTED = {7: "a", 14: "a", 22: "a", 23: "a", 30: "a", 31: "a", 38: "ab", 52: "a"}
NUMBERS = [f"{n}{letter}" for n in range(1, 54) for letter in ("", *INSERTED.get(n, ""))]
# Which tests hold, in their order, where some do and some do not; every other claim is wrong.
HALF_TRUE = "11:-++ 18:+- 25:+- 32:+-- 44:+-"
DEPENDS = """
    1:-+- 3:+-- 6:+- 7:+-- 7a:+--+ 8:+--- 9:--+ 10:--+ 16:-++-- 19:-+ 20:-+ 27:+-- 28:+--+ 29:+--
    30a:+- 31a:++-- 33:--++ 34:+- 37:--+++ 38b:+- 39:++-- 41:+- 43:-+ 46:+- 48:+- 50:+- 52:+- 52a:-+
    53:+-+-
"""
OUTCOMES = dict(each.split(":") for each in f"{HALF_TRUE} {DEPENDS}".split())
EXPECTED = (
    dict.fromkeys(NUMBERS, "wrong")
    | {each.split(":")[0]: "half true" for each in HALF_TRUE.split()}
    | {each.split(":")[0]: "depends" for each in DEPENDS.split()}
)
WORDS = {"wrong", "half true", "depends", "true here"}


def results_of(
    number: str | None = None, perturbation: Perturbation | None = None, shift: int = 0
) -> dict:
    """Run the set-up cells and the cell of this claim, or all of them: what they found.

    Args:
        number: the claim; all of them when not given.
        perturbation: what is different meanwhile.
        shift: added to every seed of the page.
    """
    with undone_later(), patched(perturbation):
        base = {"__name__": "page", "display": lambda *objects: None}
        for cell in set_up_cells(PAGE):
            source = cell.source.replace("SHIFT = 0 ", f"SHIFT = {shift} ")
            run(source, base, f"misconceptions:{cell.id}")
        for each in NUMBERS if number is None else [number]:
            name, source = f"claim-{each}", CELLS[f"claim-{each}"].source
            if perturbation and perturbation.replace:
                source = perturbed_source(source, perturbation, name)
            run(source, dict(base), f"misconceptions:{name}")
        return {str(number): entry for number, entry in base["FOUND"].items()}


@cache
def undisturbed() -> dict:
    return results_of()


def test_all_claims_are_there_in_order():
    headings = re.findall(r"^\(claim-(\w+)\)=\n### (\w+)\. “.+”$", PAGE.text, re.MULTILINE)
    assert headings == [(number, number) for number in NUMBERS]
    ids = [cell.id for cell in PAGE.notebook.cells if re.fullmatch(r"claim-\d+[a-z]?", cell.id)]
    assert ids == [f"claim-{number}" for number in NUMBERS]
    assert list(undisturbed()) == NUMBERS


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("book/misconceptions.ipynb", r"This page takes (\d+) sentences"),
        ("README.md", r"(\d+) claims"),
    ],
)
def test_the_claims_are_counted_right(path, words):
    text = (BOOK.parent / path).read_text(encoding="utf-8")
    assert re.findall(words, text) == [str(len(NUMBERS))]


@pytest.mark.parametrize("number", NUMBERS)
def test_verdict(number):
    word, _, tests, instead, on = undisturbed()[number]
    assert word == EXPECTED[number], tests
    outcomes = "".join("+" if came_out else "-" for _, came_out, _ in tests)
    assert outcomes == OUTCOMES.get(number, "-" * len(tests)), tests
    assert bool(on) == (word == "depends"), on
    assert instead is None or instead[1], instead


@pytest.mark.parametrize("shift", some_now(range(1000, 5000, 1000), [1000]))
def test_no_verdict_rests_on_its_seeds(shift):
    """With other random numbers each test of each claim comes out as it did."""
    other = results_of(shift=shift)
    for number, (word, _, tests, instead, _) in undisturbed().items():
        outcomes = [bool(came_out) for _, came_out, _ in tests]
        assert other[number][0] == word, number
        assert [bool(came_out) for _, came_out, _ in other[number][2]] == outcomes, number
        assert not instead or other[number][3][1], number


def test_every_seed_is_shifted():
    """A seed that the test above could not change would be believed without it."""
    code = "\n".join(c.source for c in PAGE.notebook.cells if c.cell_type == "code")
    seeds = re.findall(r"manual_seed\(([^)]*)\)", code)
    assert seeds
    assert [seed for seed in seeds if not seed.endswith(" + SHIFT")] == []
    assert not re.findall(r"torch\.(?:randn?|randint|randperm)\((?![^()]*generator)", code)


@pytest.mark.parametrize("number", NUMBERS)
def test_every_entry_is_whole(number):
    """Claim, reason, check, what is right, what would change it, source: in this order."""
    order = list(CELLS)
    start = order.index(f"claim-{number}")
    assert order[start - 1 : start + 2] == [f"says-{number}", f"claim-{number}", f"right-{number}"]
    before, after = CELLS[f"says-{number}"].source, CELLS[f"right-{number}"].source
    assert "**Why it is believed.** " in before
    assert after.startswith("**What is right.** ")
    assert re.findall(r"^\*\*(.+?)\*\*", after, re.MULTILINE) == [
        "What is right.",
        "What would change it.",
        "Source.",
    ]
    assert re.search(r"\{(prf:ref|eq|ref|doc)\}`|\.ipynb\)", after), "no link to a chapter"


@pytest.mark.parametrize("number", NUMBERS)
def test_no_verdict_is_typed(number):
    """Whether a test came out is an expression; and only `verdict` knows the words."""
    tree = ast.parse(CELLS[f"claim-{number}"].source)
    constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    assert not WORDS & {c for c in constants if isinstance(c, str)}
    (call,) = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "verdict"
    )
    assert str(call.args[0].value) == number
    tests = [node.elts for node in ast.walk(tree) if isinstance(node, ast.Tuple)]
    for says, came_out, _ in (test for test in tests if len(test) == 3):
        if isinstance(getattr(says, "value", ""), str):
            assert not isinstance(came_out, ast.Constant), ast.unparse(came_out)


CODE = {  # model of claim 47: its folder in transformers, and what its code must say
    "GPT": ("openai", r"self\.positions_embed = nn\.Embedding\("),
    "BERT": ("bert", r"self\.position_embeddings = nn\.Embedding\("),
    "GPT-2": ("gpt2", r"self\.wpe = nn\.Embedding\("),
    "T5": ("t5", r"self\.relative_attention_bias = nn\.Embedding\("),
    "GPT-J": ("gptj", r"= apply_rotary_pos_emb\("),
    "GPT-NeoX": ("gpt_neox", r"= apply_rotary_pos_emb\("),
    "OPT": ("opt", r"self\.embed_positions = OPTLearnedPositionalEmbedding\("),
    "BLOOM": ("bloom", r"= self\.build_alibi_tensor\("),
    "LLaMA": ("llama", r"= apply_rotary_pos_emb\("),
    "Mistral": ("mistral", r"= apply_rotary_pos_emb\("),
    "Llama 3": ("llama", r"= apply_rotary_pos_emb\("),
    "OLMo 2": ("olmo2", r"= apply_rotary_pos_emb\("),
}
SAYS = {  # a scheme, and what stands in such a line
    "learned": r"(positions_embed|position_embeddings|wpe|embed_positions) = .*Embedding",
    "bias": "relative_attention_bias",
    "rotary": "rotary",
    "linear bias": "alibi",
}


def test_position_schemes_are_those_of_the_code(models):
    """The table of claim 47, looked up in the package transformers."""
    (table,) = (
        node.value
        for node in ast.parse(CELLS["claim-47"].source).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SCHEMES"
    )
    schemes = {name: scheme for (name, _), scheme in ast.literal_eval(table).items()}
    assert list(schemes) == list(CODE)
    for name, (folder, line) in CODE.items():
        assert re.search(SAYS[schemes[name]], line), name
        source = (models / folder / f"modeling_{folder}.py").read_text(encoding="utf-8")
        assert re.search(line, source), f"{name}: {line} is not in its code"


@pytest.mark.parametrize(
    ("folder", "norm", "is_before"),
    [
        ("qwen3", "q_norm", True),
        ("olmo2", "q_norm", True),
        ("hunyuan_v1_dense", "query_layernorm", False),
    ],
)
def test_norms_of_queries_are_where_the_code_has_them(models, folder, norm, is_before):
    """What claim 53 says of three models: an RMS norm with a gain, before RoPE or after."""
    source = (models / folder / f"modeling_{folder}.py").read_text(encoding="utf-8")
    forward = source[source.index(f"self.{norm} = ") :]
    assert re.search(rf"self\.{norm} = \w+RMSNorm\(", forward)
    assert re.search(r"class \w+RMSNorm.+?self\.weight = nn\.Parameter\(", source, re.DOTALL)
    turned = forward.index("apply_rotary_pos_emb(query_states")
    assert (forward.index(f"self.{norm}(") < turned) == is_before


def test_each_verdict_has_another_world():
    assert list(perturbations("misconceptions")) == NUMBERS


@pytest.mark.parametrize("number", NUMBERS)
def test_the_verdict_can_be_another(number):
    perturbation, expected = perturbations("misconceptions")[number]
    assert expected in WORDS - {EXPECTED[number]}
    word, _, _, instead, _ = results_of(number, perturbation)[number]
    assert word == expected
    # A change that the page suggests must not break its last cell, which asserts this too.
    assert not (perturbation.replace and instead) or instead[1], instead


def test_the_rule_of_the_verdicts():
    """All tests hold: true here. Some: half true, or it depends. None: wrong."""
    with undone_later():
        base = {"__name__": "page", "display": lambda *objects: None}
        for cell in set_up_cells(PAGE):
            run(cell.source, base, cell.id)
    yes, no = ("says", True, "seen"), ("says", False, "seen")
    for tests, word in [([yes, yes], "true here"), ([no, yes], "half true"), ([no], "wrong")]:
        base["verdict"](0, "claim", *tests)
        assert base["FOUND"][0][0] == word
        base["verdict"](0, "claim", *tests, depends="the day")
        now = ("depends", " on the day") if word == "half true" else (word, "")
        assert (base["FOUND"][0][0], base["FOUND"][0][-1]) == now
