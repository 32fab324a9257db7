r"""Byte-pair encoding: from a text to the tokens of a language model, and back.

A text becomes tokens in three steps:

1. The text is split into **pieces**: a word with the space before it, a run of punctuation, a
   single digit. No token extends beyond its piece.
2. A piece becomes its bytes in UTF-8, so that every text in every script can be written.
3. Adjacent tokens are merged, always the pair that was learned first, until no learned pair is
   left. A token is then a string of bytes, and not always whole characters.

A vocabulary's file is text, so it writes each byte as a visible character (GPT-2's alphabet,
:func:`byte_alphabet`): ``Ġ`` for a space, ``Ċ`` for a new line. **Special tokens** such as
``<|im_end|>`` are not made by merging, and a user's text should not be able to contain one. So they
are read as ordinary text unless the caller asks for them.

Sources: Sennrich et al., *Neural Machine Translation of Rare Words with Subword Units*, 2016,
arXiv:1508.07909, section 3.2; on bytes: Radford et al., *Language Models are Unsupervised Multitask
Learners*, 2019, section 2.2.
"""

import codecs
import re
import sys
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import groupby, pairwise

__all__ = ["Tokenizer", "byte_alphabet", "split"]

# What Unicode calls white space. In Python's \s the separators 0x1C to 0x1F are spaces too.
SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


def byte_alphabet() -> dict[int, str]:
    """The character that stands for each byte in a vocabulary's file.

    A byte that is a visible character of Latin-1 is that character. The 68 others are the
    characters from number 256 on, in order.

    >>> alphabet = byte_alphabet()
    >>> "".join(alphabet[byte] for byte in "Ä cat\\n".encode())
    'ÃĦĠcatĊ'
    """
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in visible]
    return {byte: chr(byte) for byte in visible} | {b: chr(256 + i) for i, b in enumerate(others)}


@cache
def pieces_pattern() -> re.Pattern:
    """The pattern of one piece, as GPT-2 has it, but with every digit a piece of its own."""
    letter, number = _characters("L"), _characters("N")
    return re.compile(
        r"'(?:s|t|re|ve|m|ll|d)"  # the ends of English words like don't
        rf"|[{number}]"
        rf"| ?[{letter}]+"
        rf"| ?[^{SPACE}{letter}{number}]+"
        # A word takes the space before it; a digit takes none.
        rf"|[{SPACE}]+(?![^{SPACE}{number}])"
        rf"|[{SPACE}]+"
    )


def split(text: str) -> list[str]:
    """Split a text into pieces; put together again, they are the text.

    >>> split("We don't  know 42 cats.")
    ['We', ' don', "'t", ' ', ' know', ' ', '4', '2', ' cats', '.']
    """
    return pieces_pattern().findall(text)


class Tokenizer:
    """Texts to numbers and back, by a vocabulary and the merges that it was learned with.

    Args:
        vocabulary: the tokens in :func:`byte_alphabet`; a token's number is its place.
        merges: pairs such as ``"Ġ t"``, the first one learned first.
        special: the numbers of the special tokens, which are plain text in the vocabulary.

    Attributes:
        special: the numbers of the special tokens, by their text.

    Raises:
        ValueError: if a merge makes a token that is not in the vocabulary.
    """

    def __init__(
        self, vocabulary: Sequence[str], merges: Iterable[str], special: Collection[int] = ()
    ) -> None:
        byte_of = {character: byte for byte, character in byte_alphabet().items()}

        def as_bytes(token: str) -> bytes:
            return bytes(byte_of[character] for character in token)

        self.special = {vocabulary[number]: number for number in special}
        self._tokens = [
            token.encode() if token in self.special else as_bytes(token) for token in vocabulary
        ]
        self._numbers = {
            token: number for number, token in enumerate(self._tokens) if number not in special
        }
        pairs = (merge.split(" ") for merge in merges)
        self._ranks = {
            (as_bytes(left), as_bytes(right)): rank for rank, (left, right) in enumerate(pairs)
        }
        if lacking := [pair for pair in self._ranks if b"".join(pair) not in self._numbers]:
            raise ValueError(f"{lacking[0]} are merged, but not in the vocabulary together")
        self._special_pattern = re.compile(f"({'|'.join(map(re.escape, self.special)) or '(?!)'})")
        self._piece = lru_cache(2**16)(self._encode_piece)  # most words come more than once

    @property
    def vocab_size(self) -> int:
        """Number of different tokens."""
        return len(self._tokens)

    def merge(self, piece: str) -> list[bytes]:
        """Merge the bytes of one piece into tokens.

        Each round merges the pair learned first, wherever it occurs, and the time grows with the
        square of the piece's length.

        Args:
            piece: from :func:`split`. A byte that the vocabulary lacks is left out.

        Returns:
            The tokens' bytes.
        """
        parts = [bytes([byte]) for byte in piece.encode()]
        parts = [part for part in parts if part in self._numbers]
        while pairs := {pair for pair in pairwise(parts) if pair in self._ranks}:
            first = min(pairs, key=self._ranks.__getitem__)
            merged: list[bytes] = []
            for part in parts:
                if merged and (merged[-1], part) == first:
                    merged[-1] += part
                else:
                    merged.append(part)
            parts = merged
        return parts

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Split a text into tokens.

        Args:
            text: any text. Of SmolLM2's vocabulary it may lose a character, because 21 of the 256
                bytes have no token: six control characters and what no assigned character needs.
            special: read special tokens that the text contains as such, and not as text.

        Returns:
            The tokens' numbers.

        Raises:
            ValueError: if a character cannot be written in UTF-8, such as half a surrogate pair.
        """
        if not special:
            return [token for piece in split(text) for token in self._piece(piece)]
        tokens: list[int] = []
        for part in self._special_pattern.split(text):
            tokens += [self.special[part]] if part in self.special else self.encode(part)
        return tokens

    def decode(self, tokens: Iterable[int]) -> str:
        """Write tokens as text, special ones too; bytes that are no character become ``�``.

        Args:
            tokens: their numbers.

        Raises:
            ValueError: if there is no such token.
        """
        return b"".join(map(self.token_bytes, tokens)).decode(errors="replace")

    def stream(self, tokens: Iterable[int]) -> Iterator[str]:
        """Write tokens as text while they arrive.

        Args:
            tokens: their numbers; each is asked for when the text before it was taken.

        Yields:
            For each token, the characters that it completes, and at the end what never became
            one; together the same as :meth:`decode`.

        Raises:
            ValueError: if there is no such token.
        """
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        for token in tokens:
            yield decoder.decode(self.token_bytes(token))
        if rest := decoder.decode(b"", final=True):
            yield rest

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one token.

        Raises:
            ValueError: if there is no such token.
        """
        if not 0 <= token < self.vocab_size:
            raise ValueError(f"there is no token {token}: they go from 0 to {self.vocab_size - 1}")
        return self._tokens[token]

    def _encode_piece(self, piece: str) -> list[int]:
        return [self._numbers[part] for part in self.merge(piece)]


def _characters(category: str) -> str:
    """All characters of a category of Unicode (L: letters, N: numbers), for use inside ``[...]``.

    They are those of the Unicode that this Python knows; ``re`` has no shorter way to say it.
    """
    ranges = []
    numbers = range(sys.maxunicode + 1)
    for initial, run in groupby(numbers, lambda n: unicodedata.category(chr(n))[0]):
        if initial == category:
            first, *rest = run
            ranges.append(rf"\U{first:08x}-\U{[first, *rest][-1]:08x}")
    return "".join(ranges)
