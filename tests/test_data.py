"""Tests of :mod:`lib.data`."""

import re

import pytest
import torch

from lib.data import (
    LARGEST,
    Vocabulary,
    chinese_numeral,
    english_number,
    numeral_pairs,
    pad,
    random_windows,
    text_corpus,
)

# --- numbers


@pytest.mark.parametrize(
    ("n", "numeral"),
    [
        (0, "零"),
        (2, "二"),
        (10, "十"),
        (12, "十二"),
        (20, "二十"),
        (100, "一百"),
        (101, "一百零一"),
        (110, "一百一十"),
        (111, "一百一十一"),
        (222, "二百二十二"),
        (321, "三百二十一"),
        (1000, "一千"),
        (1001, "一千零一"),
        (1010, "一千零一十"),
        (1100, "一千一百"),
        (2002, "两千零二"),
        (2020, "两千零二十"),
        (2222, "两千二百二十二"),
        (9999, "九千九百九十九"),
        (10_000, "一万"),
        (10_001, "一万零一"),
        (10_012, "一万零一十二"),
        (10_500, "一万零五百"),
        (12_000, "一万两千"),
        (20_000, "两万"),
        (22_222, "两万两千二百二十二"),
        (100_000, "十万"),
        (120_010, "十二万零一十"),
        (200_500, "二十万零五百"),
        (220_000, "二十二万"),
        (10_100_010, "一千零一十万零一十"),
        (20_000_000, "两千万"),
        (99_999_999, "九千九百九十九万九千九百九十九"),
    ],
)
def test_chinese_numerals(n, numeral):
    assert chinese_numeral(n) == numeral


@pytest.mark.parametrize(
    ("n", "words"),
    [
        (0, "zero"),
        (7, "seven"),
        (13, "thirteen"),
        (20, "twenty"),
        (21, "twenty-one"),
        (99, "ninety-nine"),
        (100, "one hundred"),
        (110, "one hundred ten"),
        (321, "three hundred twenty-one"),
        (1000, "one thousand"),
        (1001, "one thousand one"),
        (20_040, "twenty thousand forty"),
        (115_012, "one hundred fifteen thousand twelve"),
        (1_000_000, "one million"),
        (2_000_300, "two million three hundred"),
        (
            99_999_999,
            "ninety-nine million nine hundred ninety-nine thousand nine hundred ninety-nine",
        ),
    ],
)
def test_english_numbers(n, words):
    assert english_number(n) == words


def read_chinese(text):
    """Digits times units, summed; knows nothing of 零 or of where 两 belongs."""
    total = group = digit = 0
    for sign in text:
        if sign in "千百十":
            group += max(digit, 1) * {"千": 1000, "百": 100, "十": 10}[sign]
            digit = 0
        elif sign == "万":
            total, group, digit = 10_000 * (group + digit), 0, 0
        else:
            digit = 2 if sign == "两" else "零一二三四五六七八九".index(sign)
    return total + group + digit


def read_english(text):
    ones = (
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen"
    ).split()
    tens = "twenty thirty forty fifty sixty seventy eighty ninety".split()
    total = group = 0
    for word in re.split("[ -]", text):
        if word in ones:
            group += ones.index(word)
        elif word in tens:
            group += 10 * tens.index(word) + 20
        elif word == "hundred":
            group *= 100
        else:
            total, group = total + group * {"thousand": 1000, "million": 1_000_000}[word], 0
    return total + group


def numbers():
    generator = torch.Generator().manual_seed(0)
    return [*range(10_000), *torch.randint(LARGEST + 1, (5000,), generator=generator).tolist()]


def test_numbers_read_back():
    for n in numbers():
        assert read_chinese(chinese_numeral(n)) == n
        assert read_english(english_number(n)) == n


def test_rules_of_zero_and_two_hold_everywhere():
    for n in numbers():
        text = chinese_numeral(n)
        assert "零零" not in text
        assert n == 0 or not re.search("零$|零万|零千|零百|^零", text)
        assert not re.search("两(?![千万])|二千|^二万|^一十", text)
        # every gap between digits of a group is read: 千 with no 百 after it, 百 with no 十
        assert not re.search(
            "千[一二三四五六七八九](?!百)|百[一二三四五六七八九](?!十|$|万)", text
        ) or ("零" in text)


def test_pairs_are_split_without_overlap_and_repeatably():
    pairs = numeral_pairs(999, valid_share=0.2)
    assert (len(pairs.train), len(pairs.valid)) == (800, 200)
    assert sorted([*pairs.train.tolist(), *pairs.valid.tolist()]) == list(range(1000))
    assert torch.equal(pairs.train, numeral_pairs(999, valid_share=0.2).train)
    assert not torch.equal(pairs.train, numeral_pairs(999, valid_share=0.2, seed=1).train)
    assert [len(x) for x in (numeral_pairs(1).train, numeral_pairs(1).valid)] == [1, 1]


def test_an_element_of_the_split_is_a_number():
    pairs = numeral_pairs(99)
    for n in pairs.train[:5]:
        assert pairs.encode_source(n) == pairs.encode_source(n.item())
        assert pairs.encode_target(n) == pairs.encode_target(n.item())


def test_pairs_encode_and_decode():
    pairs = numeral_pairs()
    assert pairs.source.decode(pairs.encode_source(321)) == list("三百二十一")
    tokens = pairs.encode_target(321)
    assert pairs.target.decode(tokens) == [
        *("<start>", "three", "hundred", "twenty", "-", "one", "<end>")
    ]
    assert (tokens[0], tokens[-1]) == (pairs.start, pairs.end)
    assert pairs.decode_target(torch.tensor([*tokens[1:], 5, 6])) == "three hundred twenty-one"
    for n in numbers()[::7]:
        assert pairs.decode_target(pairs.encode_target(n)) == english_number(n)
        assert 0 not in (*pairs.encode_source(n), *pairs.encode_target(n))  # 0 is padding


# --- text


def read(corpus):
    return ["".join(corpus.vocabulary.decode(part)) for part in (corpus.train, corpus.valid)]


def test_corpus_is_the_text_of_the_topics():
    from pydoc_data.topics import topics

    corpus = text_corpus()
    train, valid = read(corpus)
    for topic in topics.values():
        assert (topic.strip() in train) != (topic.strip() in valid)
    assert len(train) + len(valid) == sum(len(topic.strip()) + 2 for topic in topics.values())
    assert 0.05 < len(valid) / (len(train) + len(valid)) <= 0.1
    assert not (corpus.train == 0).any()


def test_words_are_the_same_text():
    train, valid = read(text_corpus())
    corpus = text_corpus(unit="word", n_words=100_000)
    assert read(corpus)[0] == train
    known, words = set(corpus.vocabulary.symbols), re.findall(r"\w+|\s+|[^\w\s]", valid)
    expected = [word if word in known else "<unknown>" for word in words]
    assert corpus.vocabulary.decode(corpus.valid) == expected


def test_corpus_is_the_same_every_time_and_small_vocabularies_keep_the_frequent():
    first, again = text_corpus(unit="word", n_words=50), text_corpus(unit="word", n_words=50)
    assert torch.equal(first.train, again.train)
    assert first.vocabulary.symbols == again.vocabulary.symbols
    assert len(first.vocabulary) == 50
    counts = torch.bincount(first.train, minlength=50)[1:]  # 0 is the unknown word
    assert (counts.diff() <= 0).all()
    assert {" ", "the", ","} < set(first.vocabulary.symbols)


def test_windows_are_cut_everywhere_and_repeatably():
    text = 100 + torch.arange(10)
    windows = random_windows(text, 500, 4, generator=torch.Generator().manual_seed(0))
    assert windows.shape == (500, 4)
    assert (windows.diff(dim=1) == 1).all()
    assert set(windows[:, 0].tolist()) == set(range(100, 107))  # the last window too
    again = random_windows(text, 500, 4, generator=torch.Generator().manual_seed(0))
    assert torch.equal(windows, again)
    assert random_windows(text, 2, 10, generator=torch.Generator()).tolist() == [text.tolist()] * 2


# --- small parts


def test_vocabulary():
    vocabulary = Vocabulary("abc")
    assert len(vocabulary) == 3
    assert vocabulary.encode("cab") == [2, 0, 1]
    assert vocabulary.decode(torch.tensor([2, 0])) == ["c", "a"]
    assert Vocabulary("?ab", unknown=0).encode("axb") == [1, 0, 2]


def test_padding_on_both_sides():
    tokens, mask = pad([[5], [6, 7, 8]], value=9)
    assert tokens.tolist() == [[5, 9, 9], [6, 7, 8]]
    assert mask.tolist() == [[True, False, False], [True, True, True]]
    tokens, mask = pad([[5], [6, 7, 8]], side="left")
    assert tokens.tolist() == [[0, 0, 5], [6, 7, 8]]
    assert mask.tolist() == [[False, False, True], [True, True, True]]
    assert tokens.dtype == torch.int64


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: chinese_numeral(-1), "0 to 99999999, got -1"),
        (lambda: english_number(LARGEST + 1), "0 to 99999999, got 100000000"),
        (lambda: numeral_pairs(0), "got 0 and 0.1"),
        (lambda: numeral_pairs(9, valid_share=1.0), "got 9 and 1.0"),
        (lambda: Vocabulary("aba"), r"listed twice: \['a'\]"),
        (lambda: Vocabulary("ab").encode("ac"), "'c' is none of the 2 symbols"),
        (lambda: Vocabulary("ab").decode([0, 2]), "the numbers 0 to 1, got 2"),
        (lambda: Vocabulary("ab").decode([-1]), "the numbers 0 to 1, got -1"),
        (lambda: pad([]), r"got lengths \[\]"),
        (lambda: pad([[1], []]), r"got lengths \[1, 0\]"),
        (lambda: pad([[1]], side="top"), "left or right, got 'top'"),
        (lambda: pad([[1], [2, 3.5]]), r"row 1 is \[2, 3\.5\], .* whole numbers"),
        (lambda: pad([[1], [2, 3]], value=0.5), r"value=0\.5"),
        (lambda: text_corpus(unit="byte"), "character or word, got 'byte'"),
        (lambda: text_corpus(unit="word", n_words=1), "got 1"),
        (
            lambda: random_windows(torch.ones(3), 1, 4, generator=torch.Generator()),
            "length=4 from 3 tokens",
        ),
        (
            lambda: random_windows(torch.ones(3), 0, 2, generator=torch.Generator()),
            "batch_size must be at least 1, got 0",
        ),
    ],
)
def test_bad_calls_are_refused(call, match):
    with pytest.raises(ValueError, match=match):
        call()
