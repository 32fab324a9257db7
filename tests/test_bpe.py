"""Tests of :mod:`lib.bpe`, against the package ``tokenizers``."""

import pydoc_data.topics
import random
import unicodedata

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers, trainers

from lib import gguf, smollm
from lib.bpe import Tokenizer, byte_alphabet, split

TOPICS = "\n".join(pydoc_data.topics.topics.values())
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEXTS = [
    "",
    " ",
    "   ",
    "\n\n\t \r\n",
    "Hello, world!",
    " I'll say we've done what they'd do, isn't it? 'sure' I'LL",
    "naïve café, Straße, ΑΒΓ, привет, 日本語の文、中文。 العربية ไทย हिन्दी",
    "👩‍👩‍👧 🏳️‍🌈 👍🏽 e\u0301",
    "1234567890 3.14159 ٣٤ Ⅷ ½ x²",
    "def f(x):\n    return x**2  # comment\n\n\tif a_b != c: pass\n",
    "".join(map(chr, range(256))),
    "a\u0085b\u00a0c\u2003d\u3000e\u200bf\x1cg\x1f  h",
    "\U000f0000\U0010ffff\U00040000",
    "<|im_start|>user\nHi<|im_end|> <|im_end|><|im_sta <|endoftext|>",
    "=" * 200 + " " * 100 + "x" * 100,
]


def by_tokenizers(vocabulary, merges, n_special):
    """The same tokenizer, made of the parts of the package."""
    numbers = {token: number for number, token in enumerate(vocabulary)}
    model = models.BPE(vocab=numbers, merges=[tuple(merge.split(" ")) for merge in merges])
    tokenizer = tokenizers.Tokenizer(model)
    digits = pre_tokenizers.Digits(individual_digits=True)
    words = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, words])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(vocabulary[:n_special]))
    return tokenizer


@pytest.fixture(scope="module")
def learned():
    """A vocabulary of 600 tokens: special ones, all bytes, and merges learned from topics."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TOPICS[:50_000]], trainer)
    vocabulary = sorted(tokenizer.get_vocab(), key=tokenizer.token_to_id)
    # The order of learning is that of the numbers; what a token is made of has to be found.
    alphabet, merges = set(byte_alphabet().values()), []
    known = {token: number for number, token in enumerate(vocabulary)}
    for token in vocabulary[len(SPECIAL) + 256 :]:
        parts = list(token)
        while len(parts) > 2:
            at = min(range(len(parts) - 1), key=lambda i: known.get(parts[i] + parts[i + 1], 999))
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        merges.append(" ".join(parts))
    assert alphabet <= set(vocabulary)
    return vocabulary, merges


@pytest.fixture(scope="module")
def small(learned):
    return Tokenizer(*learned, special=range(3)), by_tokenizers(*learned, 3)


@pytest.fixture(scope="module")
def real(smollm_file):
    metadata, _ = gguf.read(smollm_file)
    names = (metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.merges"])
    return smollm.build_tokenizer(metadata), by_tokenizers(*names, 17)


def same(pair, text):
    """Equal tokens with special ones and without, equal text of them; the tokens."""
    ours, theirs = pair
    tokens = ours.encode(text, special=True)
    assert tokens == theirs.encode(text).ids, text
    theirs.encode_special_tokens = True  # as text
    plain = theirs.encode(text).ids
    theirs.encode_special_tokens = False
    assert ours.encode(text) == plain, text
    written = ours.decode(tokens)
    assert written == theirs.decode(tokens, skip_special_tokens=False)
    assert "".join(ours.stream(tokens)) == written
    return plain


# --- by hand


def test_the_alphabet():
    alphabet = byte_alphabet()
    assert set(alphabet) == set(range(256))
    assert set(alphabet.values()) == set(pre_tokenizers.ByteLevel.alphabet())
    assert (alphabet[ord("A")], alphabet[ord(" ")], alphabet[ord("\n")]) == ("A", "Ġ", "Ċ")


def test_merges_by_hand():
    vocabulary = ["<end>", "a", "b", "Ġ", "ab", "aba", "Ġab"]
    tokenizer = Tokenizer(vocabulary, ["a b", "ab a", "Ġ ab"], special={0})
    assert tokenizer.merge("abab") == [b"ab", b"ab"]  # no longer aba + b
    assert tokenizer.merge("aba") == [b"aba"]
    assert tokenizer.merge(" aba") == [b" ", b"aba"]  # aba was learned before
    assert tokenizer.merge("aab") == [b"a", b"ab"]
    assert tokenizer.encode("ab ab<end>") == [4, 6]  # of <end> no byte is in the vocabulary
    assert tokenizer.encode("ab ab<end>", special=True) == [4, 6, 0]
    assert tokenizer.decode([4, 6, 0]) == "ab ab<end>"
    assert (tokenizer.vocab_size, tokenizer.special) == (7, {"<end>": 0})


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("in  2024, a", ["in", "  ", "2", "0", "2", "4", ",", " a"]),
        ("it's  x_1", ["it", "'s", " ", " x", "_", "1"]),
        ("a\n\n b", ["a", "\n\n", " b"]),
        ("at 7 x", ["at", " ", "7", " x"]),
        ("\x1c\x1cb", ["\x1c\x1c", "b"]),  # no white space
        (" 日本!", [" 日本", "!"]),
    ],
)
def test_pieces_by_hand(text, pieces):
    assert split(text) == pieces


def test_text_appears_when_its_characters_are_whole():
    vocabulary = list(byte_alphabet().values())
    tokenizer = Tokenizer(vocabulary, [])
    number = {token: i for i, token in enumerate(vocabulary)}
    tokens = [number[byte_alphabet()[byte]] for byte in "é€!".encode()]
    assert list(tokenizer.stream(tokens)) == ["", "é", "", "", "€", "!"]
    assert list(tokenizer.stream(tokens[:4])) == ["", "é", "", "", "�"]
    assert tokenizer.decode(tokens[:4]) == "é�"


def test_text_is_given_out_before_the_next_token_is_asked_for():
    tokenizer = Tokenizer(["a", "b"], [])
    asked = []

    def tokens():
        for token in (0, 1):
            asked.append(token)
            yield token

    pieces = tokenizer.stream(tokens())
    assert (next(pieces), asked) == ("a", [0])


# --- against `tokenizers`


@pytest.mark.parametrize("text", TEXTS)
def test_the_small_tokenizer_is_the_same_function(small, text):
    assert small[0].decode(same(small, text)) == text


def test_both_split_the_topics_alike(small):
    assert small[0].decode(same(small, TOPICS[:100_000])) == TOPICS[:100_000]


@given(st.text(max_size=30))
def test_any_text_comes_back(small, text):
    assert small[0].decode(same(small, text)) == text


@given(st.text(alphabet=" \t\n\x0b\x1c\x85\u3000'sdtrevml9½_-é日\U0001f600\u0301<|>", max_size=20))
def test_spaces_quotes_and_digits_in_any_order(small, text):
    same(small, text)


@pytest.mark.parametrize("text", TEXTS)
def test_the_real_tokenizer_is_the_same_function(real, text):
    same(real, text)


def test_the_real_tokenizer_on_the_topics(real):
    assert real[0].decode(same(real, TOPICS)) == TOPICS


def test_the_real_tokenizer_on_each_of_its_tokens(real):
    """Texts that use every merge; those above need only some of them."""
    ours, theirs = real
    tokens = [ours.token_bytes(number) for number in range(17, ours.vocab_size)]
    texts = [token.decode() for token in tokens if token.decode(errors="ignore").encode() == token]
    assert len(texts) > 0.99 * len(tokens)  # the others are no whole characters
    expected = [each.ids for each in theirs.encode_batch(texts)]
    different = [
        text for text, ids in zip(texts, expected, strict=True) if ours.encode(text) != ids
    ]
    assert different == []


def test_the_real_tokenizer_on_random_text(real):
    draw = random.Random(0)
    letters = " \n\t\x0b\x1c\x85\u3000'''sdtrevmlaé中9٣½ⅷ😀_-.\u0301\u200d\x00\x04"
    for _ in range(2000):
        same(real, "".join(draw.choice(letters) for _ in range(draw.randint(0, 14))))


@pytest.mark.long
def test_every_character_that_this_python_knows(real):
    ours, theirs = real
    different = []
    for number in range(0x110000):
        character = chr(number)
        if unicodedata.category(character) in ("Cs", "Cn"):  # surrogates; not assigned yet
            continue
        text = f"a {character}b {character}{character}"
        if ours.encode(text) != theirs.encode(text).ids:
            different.append(hex(number))
    assert different == []


def test_bytes_without_a_token_are_left_out(real):
    assert real[0].decode(same(real, "a\x04b\x1dc\x13")) == "abc"
    lacking = [b for b in range(256) if not real[0].merge(chr(b)) and b < 128]
    assert lacking == [0x04, 0x06, 0x13, 0x14, 0x16, 0x1D]


# --- errors


def test_a_merge_without_its_token_is_named():
    with pytest.raises(ValueError, match=r"\(b'a', b'b'\) are merged, but not in the vocabulary"):
        Tokenizer(["a", "b"], ["a b"])


@pytest.mark.parametrize("token", [-1, 2])
def test_a_token_that_is_not_there_is_refused(token):
    tokenizer = Tokenizer(["a", "b"], [])
    for call in (tokenizer.decode, lambda tokens: list(tokenizer.stream(tokens))):
        with pytest.raises(ValueError, match=f"there is no token {token}: they go from 0 to 1"):
            call([0, token])


def test_half_a_surrogate_pair_is_refused(small):
    with pytest.raises(ValueError, match="surrogates not allowed"):
        small[0].encode("a\ud800")
