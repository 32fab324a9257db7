r"""Data that needs no download.

- :func:`text_corpus`: the topics of Python's own ``help()``, real English prose and code
  (chapters 03, 04, 06 and 07).
- :func:`numeral_pairs`: Chinese numerals and the same number in English words, made by rule
  (chapters 08 and 09).

Both are deterministic. The topics differ a little from one Python version to the next.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = [
    "NumeralPairs",
    "TextCorpus",
    "Vocabulary",
    "chinese_numeral",
    "english_number",
    "numeral_pairs",
    "pad",
    "random_windows",
    "text_corpus",
]


class Vocabulary:
    """Symbols and their numbers.

    Args:
        symbols: in the order of their numbers, all different.
        unknown: number given to symbols that are not listed; they are refused when not given.

    Attributes:
        symbols: as given; symbol i has the number i.
        unknown: as given.

    Raises:
        ValueError: if a symbol is listed twice.
    """

    def __init__(self, symbols: Iterable[str], *, unknown: int | None = None) -> None:
        self.symbols = tuple(symbols)
        self.unknown = unknown
        self._number = {symbol: number for number, symbol in enumerate(self.symbols)}
        if len(self._number) < len(self.symbols):
            twice = [symbol for symbol, n in Counter(self.symbols).items() if n > 1]
            raise ValueError(f"symbols must differ, these are listed twice: {twice}")

    def __len__(self) -> int:
        return len(self.symbols)

    def encode(self, symbols: Iterable[str]) -> list[int]:
        """Symbols to numbers.

        Raises:
            ValueError: if a symbol is not listed and there is no ``unknown``.
        """
        if self.unknown is not None:
            return [self._number.get(symbol, self.unknown) for symbol in symbols]
        try:
            return [self._number[symbol] for symbol in symbols]
        except KeyError as error:
            raise ValueError(
                f"{error.args[0]!r} is none of the {len(self)} symbols of the vocabulary"
            ) from None

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """Numbers to symbols.

        Raises:
            ValueError: if a number is below 0 or not below the number of symbols.
        """
        # A list is much faster than a tensor, element by element.
        numbers = numbers.tolist() if isinstance(numbers, Tensor) else list(numbers)
        outside = [number for number in numbers if not 0 <= number < len(self)]
        if outside:
            raise ValueError(f"symbols have the numbers 0 to {len(self) - 1}, got {outside[0]}")
        return [self.symbols[number] for number in numbers]


def pad(
    rows: Sequence[Sequence[int]], *, side: str = "right", value: int = 0
) -> tuple[Tensor, Tensor]:
    """Make one tensor of rows of different lengths.

    Args:
        rows: lists of token numbers, none empty.
        side: where the padding goes: ``"right"`` for training (``prp-padded``, chapter 09),
            ``"left"`` for prompts (``prp-left-padding``, chapter 10).
        value: token number of the padding.

    Returns:
        Tokens ``(batch, longest)``, int64, and their mask of the same shape, ``True`` = a real
        token.

    Raises:
        ValueError: if there is no row, a row is empty or not of whole numbers, the padding is
            no whole number, or the side unknown.

    Example:
        >>> tokens, mask = pad([[5, 6], [7]], side="left")
        >>> tokens.tolist(), mask.int().tolist()
        ([[5, 6], [0, 7]], [[1, 1], [0, 1]])
    """
    if side not in ("left", "right"):
        raise ValueError(f"side must be left or right, got {side!r}")
    lengths = [len(row) for row in rows]
    if min(lengths, default=0) < 1:
        raise ValueError(f"need at least one row and no empty one, got lengths {lengths}")
    if value != int(value):
        raise ValueError(f"the padding must be a whole number, got value={value}")
    tokens = torch.full((len(rows), max(lengths)), int(value))
    mask = torch.zeros(tokens.shape, dtype=torch.bool)
    for i, row in enumerate(rows):
        where = slice(0, len(row)) if side == "right" else slice(-len(row), None)
        numbers = torch.tensor(row)
        if numbers.is_floating_point():
            raise ValueError(f"row {i} is {row}, need whole numbers: the rest would be cut off")
        tokens[i, where] = numbers
        mask[i, where] = True
    return tokens, mask


# --- text


class TextCorpus(NamedTuple):
    """A text as token numbers.

    Attributes:
        train: ``(n,)``, integers.
        valid: ``(m,)``, from other topics than ``train``.
        vocabulary: the symbols of the numbers.
    """

    train: Tensor
    valid: Tensor
    vocabulary: Vocabulary


def text_corpus(*, unit: str = "character", n_words: int = 2000) -> TextCorpus:
    """Read Python's help topics, a tenth of them for validation.

    Topics are dealt out whole, in alphabetical order: one is for validation if validation then
    still has at most a tenth of the text so far.

    Args:
        unit: ``"character"``, or ``"word"``: runs of letters and digits, runs of spaces, and
            single signs; joined they are the text again.
        n_words: size of the vocabulary of words, the unknown word (number 0) included. The most
            frequent of the training topics are kept.

    Returns:
        A :class:`TextCorpus`. Characters that the training topics lack are unknown too.

    Raises:
        ValueError: if the unit is unknown or the vocabulary has no room for a word.
    """
    from pydoc_data.topics import topics  # 0.5 MB, read only on demand

    if unit not in ("character", "word"):
        raise ValueError(f"unit must be character or word, got {unit!r}")
    if n_words < 2:
        raise ValueError(f"n_words must be at least 2, the unknown word and another: got {n_words}")
    parts: dict[bool, list[str]] = {True: [], False: []}
    length = {True: 0, False: 0}
    for name in sorted(topics):
        text = topics[name].strip() + "\n\n"
        total = length[True] + length[False] + len(text)
        is_valid = 10 * (length[True] + len(text)) <= total
        length[is_valid] += len(text)
        parts[is_valid] += list(text) if unit == "character" else re.findall(r"\w+|\s+|.", text)
    counts = Counter(parts[False])
    if unit == "character":
        known = sorted(counts)
    else:  # equally frequent words in alphabetical order, so that the choice does not vary
        known = sorted(counts, key=lambda word: (-counts[word], word))[: n_words - 1]
    vocabulary = Vocabulary(["<unknown>", *known], unknown=0)
    train, valid = (torch.tensor(vocabulary.encode(parts[key])) for key in (False, True))
    return TextCorpus(train, valid, vocabulary)


def random_windows(
    tokens: Tensor, batch_size: int, length: int, *, generator: torch.Generator
) -> Tensor:
    """Cut windows out of a text at random places.

    Args:
        tokens: ``(n,)``.
        batch_size: number of windows.
        length: tokens per window.
        generator: decides the places.

    Returns:
        ``(batch_size, length)``.

    Raises:
        ValueError: if the text is shorter than a window, or a length or batch size is below 1.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    if not 1 <= length <= len(tokens):
        raise ValueError(f"cannot cut windows of length={length} from {len(tokens)} tokens")
    places = torch.randint(len(tokens) - length + 1, (batch_size, 1), generator=generator)
    return tokens[places + torch.arange(length)]


# --- numbers

_DIGITS = "零一二三四五六七八九"
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
).split()
_TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()
LARGEST = 99_999_999


def chinese_numeral(n: int) -> str:
    """Write a number in Chinese numerals, as it is read aloud.

    - Four digits make a group, with 千, 百, 十; the upper group ends in 万.
    - A run of zeros between other digits is read 零, once; zeros at the end of a group are not
      read, but 零 follows 万 when the lower group has no thousands: 一万零五百.
    - At the very beginning 一十 is 十: 十二, 十二万; elsewhere it stays: 一百一十二.
    - 2 is 两 before 千, and before 万 when it is alone there: 两千, 两万; it is 二 before
      百 and 十 and at the end: 二百二十二, 二十二万. (两百 is correct too; one form is used here.)

    Args:
        n: 0 to 99,999,999.

    Returns:
        The numeral.

    Raises:
        ValueError: if ``n`` is out of range.

    Example:
        >>> [chinese_numeral(n) for n in (12, 321, 2002, 10500)]
        ['十二', '三百二十一', '两千零二', '一万零五百']
    """
    _check_range(n)
    if n == 0:
        return _DIGITS[0]
    upper, lower = divmod(n, 10_000)
    text = ""
    if upper:
        text = ("两" if upper == 2 else _chinese_group(upper)) + "万"
        if 0 < lower < 1000:
            text += "零"
    text += _chinese_group(lower)
    return text[1:] if text.startswith("一十") else text


def _chinese_group(n: int) -> str:
    """One to four digits, without leading zeros; nothing for 0."""
    text, gap = "", False
    for unit, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = n // unit % 10
        if digit == 0:
            gap = bool(text)
            continue
        text += ("零" if gap else "") + ("两" if digit == 2 and unit == 1000 else _DIGITS[digit])
        text += name
        gap = False
    return text


def english_number(n: int) -> str:
    """Write a number in English words, as in the United States: no "and".

    Args:
        n: 0 to 99,999,999.

    Returns:
        Lower-case words; tens and ones are joined by a hyphen.

    Raises:
        ValueError: if ``n`` is out of range.

    Example:
        >>> english_number(20_321)
        'twenty thousand three hundred twenty-one'
    """
    _check_range(n)
    if n == 0:
        return _ONES[0]
    words = []
    for unit, name in ((1_000_000, "million"), (1000, "thousand"), (1, "")):
        group = n // unit % 1000
        if group >= 100:
            words += [_ONES[group // 100], "hundred"]
        tens, ones = divmod(group % 100, 10)
        if tens >= 2:
            words.append(_TENS[tens] + (f"-{_ONES[ones]}" if ones else ""))
        elif group % 100:
            words.append(_ONES[group % 100])
        if group and name:
            words.append(name)
    return " ".join(words)


@dataclass(frozen=True)
class NumeralPairs:
    """Numbers to translate.

    Sources are the characters of the Chinese numeral; targets are :attr:`start`, the English
    words (a hyphen is a word of its own), :attr:`end`. Number 0 is padding in both vocabularies.

    Attributes:
        train: numbers, ``(n,)``.
        valid: numbers, ``(m,)``; none is in ``train``.
        source: the vocabulary of sources.
        target: the vocabulary of targets.
        start: number of the token that begins each target.
        end: number of the token that ends it.
    """

    train: Tensor
    valid: Tensor
    source: Vocabulary
    target: Vocabulary
    start: int = 1
    end: int = 2

    def encode_source(self, n: int) -> list[int]:
        """The source tokens of a number, such as an element of ``train``."""
        return self.source.encode(chinese_numeral(int(n)))

    def encode_target(self, n: int) -> list[int]:
        """The target tokens of a number, with start and end."""
        words = english_number(int(n)).replace("-", " - ").split()
        return [self.start, *self.target.encode(words), self.end]

    def decode_target(self, tokens: Iterable[int]) -> str:
        """The words of target tokens, up to the first end; start is skipped."""
        words = []
        for token in tokens:
            if int(token) == self.end:
                break
            if int(token) != self.start:
                words += self.target.decode([int(token)])
        return " ".join(words).replace(" - ", "-")


def numeral_pairs(largest: int = 9999, *, valid_share: float = 0.1, seed: int = 0) -> NumeralPairs:
    """Split the numbers from 0 to ``largest`` into training and validation, at random.

    Args:
        largest: the largest number, 1 to 99,999,999.
        valid_share: share for validation; at least one number is left on each side.
        seed: decides the split.

    Returns:
        :class:`NumeralPairs`.

    Raises:
        ValueError: if ``largest`` or ``valid_share`` is out of range.
    """
    _check_range(largest)
    if largest < 1 or not 0.0 < valid_share < 1.0:
        raise ValueError(
            f"need largest >= 1 and 0 < valid_share < 1, got {largest} and {valid_share}"
        )
    order = torch.randperm(largest + 1, generator=torch.Generator().manual_seed(seed))
    n_valid = min(max(round(valid_share * len(order)), 1), largest)
    words = [*_ONES, *_TENS[2:], "hundred", "thousand", "million", "-"]
    return NumeralPairs(
        train=order[n_valid:],
        valid=order[:n_valid],
        source=Vocabulary(["<pad>", *_DIGITS, *"两十百千万"]),
        target=Vocabulary(["<pad>", "<start>", "<end>", *words]),
    )


def _check_range(n: int) -> None:
    if not 0 <= n <= LARGEST:
        raise ValueError(f"numbers go from 0 to {LARGEST}, got {n}")
