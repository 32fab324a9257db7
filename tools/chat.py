"""Ask a published language model that runs on ``lib`` (``make chat``).

The answer appears token by token, as :class:`lib.transformer.LanguageModel` computes it with its
KV cache. A line below it says what a token cost, and what the next one would cost without the
cache. Questions and answers form one conversation, until no more fits into the cache.

Ctrl-C ends an answer; at the prompt Ctrl-C or Ctrl-D ends the command. ``make chat
QUESTION="Why is the sky blue?"`` answers once. The question comes in the environment, where the
shell leaves it as it was typed.
"""

import os
import resource
import select
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import torch

from lib import sampling, smollm
from lib.bpe import Tokenizer
from lib.kv_cache import kv_cache_bytes
from lib.transformer import LanguageModel

with suppress(ImportError):  # some Pythons lack it
    # input() then edits the line, knows the earlier ones, and takes more than the 4,095 bytes at
    # which the terminal would cut a line without a word.
    import readline  # noqa: F401

CONTEXT = 2048  # tokens that fit into the cache: 94 MB
LONGEST = 400  # tokens of an answer
CTRL_C = b"\x03"


class Conversation:
    """Questions and answers in one cache.

    Args:
        model: as from :func:`lib.smollm.load`.
        tokenizer: likewise.

    Attributes:
        tokens: all tokens so far; the cache holds the first ``state.length`` of them.
        seconds: how long each token of the last answer took. The first one waits for the question
            to be read.
        forgotten: whether the last question found the cache full, so that the conversation began
            again with it.
    """

    def __init__(self, model: LanguageModel, tokenizer: Tokenizer) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.end = tokenizer.special["<|im_end|>"]
        self.generator = torch.Generator().manual_seed(0)
        self.state = model.decode_state(1, CONTEXT)
        self.tokens: list[int] = []
        self.seconds: list[float] = []
        self.forgotten = False

    def ask(self, question: str) -> Iterator[int]:
        """Yield the tokens of the answer, without the one that ends it.

        Raises:
            ValueError: if the question alone is too long for the cache.
        """
        asked = [{"role": "user", "content": question}]
        self.forgotten = False
        new = smollm.chat(self.tokenizer, asked)
        if len(new) + LONGEST > CONTEXT:
            raise ValueError(
                f"the question has {len(new)} tokens, {CONTEXT - LONGEST} are the most"
            )
        if self.tokens:
            ended = [] if self.tokens[-1] == self.end else [self.end]
            follow_up = smollm.chat(self.tokenizer, asked, system=None)
            added = [*ended, *self.tokenizer.encode("\n"), *follow_up]
            if len(self.tokens) + len(added) + LONGEST > CONTEXT:
                self.tokens, self.forgotten = [], True
                self.state.reset()
            else:
                new = added
        self.tokens += new
        self.seconds = []
        for _ in range(LONGEST):
            begun = time.perf_counter()
            token = self.next_token()
            self.seconds.append(time.perf_counter() - begun)
            self.tokens.append(token)
            if token == self.end:
                return
            yield token

    @torch.inference_mode()
    def next_token(self) -> int:
        """Read the tokens that the cache does not hold yet, and draw the next one."""
        unread = torch.tensor([self.tokens[self.state.length :]])  # (1, new)
        logits = self.model(unread, state=self.state, last_only=True)[0, -1]  # (vocab_size,)
        # Cold, and without the unlikely tenth: almost always the likeliest token.
        logits = sampling.top_p(sampling.temperature(logits, 0.2), 0.9)
        return int(sampling.sample(logits, generator=self.generator))

    @torch.inference_mode()
    def seconds_without_cache(self) -> float:
        """How long one pass over all tokens takes, which each token would cost without a cache."""
        tokens = torch.tensor([self.tokens])
        begun = time.perf_counter()
        self.model(tokens, last_only=True)
        return time.perf_counter() - begun

    def cache_bytes(self) -> int:
        """Bytes of the keys and values that the cache holds."""
        attention = self.model.blocks[0].self_attention
        return kv_cache_bytes(
            self.state.length,
            n_layers=len(self.model.blocks),
            n_kv_heads=attention.n_kv_heads,
            head_dim=attention.head_dim,
            dtype=self.model.embedding.weight.dtype,
        )

    def costs(self) -> str:
        """What the last answer cost, in one line."""
        first, *others = self.seconds
        text = f"{len(self.seconds)} tokens; the first took {1000 * first:.0f} ms"
        if others:
            text += f", the others {1000 * sum(others) / len(others):.0f} ms each"
        length, without = len(self.tokens), self.seconds_without_cache()
        forgotten = " It was full: what came before is forgotten." if self.forgotten else ""
        return (
            f"{text} with the cache. Without it, the next would take {1000 * without:.0f} ms: one "
            f"pass over all {length} tokens, measured once. "
            f"The cache holds {self.cache_bytes() / 1e6:.1f} MB.{forgotten}"
        )


@contextmanager
def ctrl_c_as_a_key() -> Iterator[Callable[[], bool]]:
    """Make Ctrl-C a key, which sends no signal, to this process or to ``make``.

    Yields:
        A function that returns whether it was pressed. Other keys are forgotten.
    """
    terminal = sys.stdin.fileno()
    if not os.isatty(terminal) or os.tcgetpgrp(terminal) != os.getpgrp():
        yield lambda: False
        return
    before, quiet = termios.tcgetattr(terminal), termios.tcgetattr(terminal)
    quiet[3] &= ~(termios.ISIG | termios.ICANON | termios.ECHO)

    def pressed() -> bool:
        keys = b""
        while select.select([terminal], [], [], 0)[0]:
            keys = os.read(terminal, 1024)
            if CTRL_C in keys or not keys:  # or there is nobody left
                return True
        return False

    termios.tcsetattr(terminal, termios.TCSANOW, quiet)
    try:
        yield pressed
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)


def answer(conversation: Conversation, question: str) -> None:
    """Write an answer as it is computed, and what it cost."""
    with ctrl_c_as_a_key() as pressed:
        pieces = conversation.tokenizer.stream(conversation.ask(question))
        for piece in pieces:
            print(piece, end="", flush=True)
            if pressed():
                print(" …", end="")
                break
        print(f"\n[{conversation.costs()}]\n", flush=True)


def main() -> int:
    """Load the model and answer; return 1 if there is no model."""
    begun = time.perf_counter()
    try:
        model, tokenizer = smollm.load()
    except ValueError as problem:
        print(problem, file=sys.stderr)
        return 1
    weights = sum(parameter.nbytes for parameter in model.parameters())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak *= 1 if sys.platform == "darwin" else 1024
    print(
        f"{smollm.FILE} loaded in {time.perf_counter() - begun:.1f} s: {weights / 1e6:.0f} MB of "
        f"weights, {peak / 1e6:.0f} MB with everything else.",
        flush=True,
    )
    conversation = Conversation(model, tokenizer)
    # Bytes that are no text become "�", here and at the prompt.
    if question := os.environb.get(b"QUESTION", b"").decode(errors="replace").strip():
        try:
            answer(conversation, question)
        except ValueError as problem:
            print(problem, file=sys.stderr)
            return 1
        return 0
    sys.stdin.reconfigure(errors="replace")
    print("Ask it something. Ctrl-C ends an answer, Ctrl-D the conversation.\n")
    while True:
        try:
            question = input("> ").strip()
        except EOFError:
            print()
            return 0
        if question:
            try:
                answer(conversation, question)
            except ValueError as problem:
                print(problem)


if __name__ == "__main__":
    sys.exit(main())
