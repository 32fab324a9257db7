"""Tests of `make chat`: what it writes, and how an answer is stopped."""

import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lib import smollm
from tools import chat

ROOT = Path(__file__).resolve().parents[1]
COSTS = (
    r"\[(\d+) tokens; the first took \d+ ms, the others \d+ ms each with the cache\. "
    r"Without it, the next would take \d+ ms: one pass over all (\d+) tokens, measured once\. "
    r"The cache holds (\d+\.\d) MB\.\]"
)


@pytest.fixture
def conversation(language_model):
    return chat.Conversation(*language_model)


def test_a_question_is_answered_once_and_its_cost_named(language_model, monkeypatch, capsys):
    monkeypatch.setattr(smollm, "load", lambda: language_model)
    monkeypatch.setenv("QUESTION", "What is the capital of France?")
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert chat.main() == 0
    loaded, answer, costs = capsys.readouterr().out.splitlines()[:3]
    assert re.match(r"SmolLM2.* loaded in \d+\.\d s: 538 MB of weights, \d+ MB with every", loaded)
    assert answer == "The capital of France is Paris."
    new, length, cached = re.fullmatch(COSTS, costs).groups()
    assert int(new) == 8  # with the one that ends it
    # 30 layers, 3 heads, keys and values of 64 float32; the last token has not been read
    assert float(cached) == round((int(length) - 1) * 30 * 3 * 2 * 64 * 4 / 1e6, 1)


def test_a_question_that_is_too_long_is_refused_in_one_line(language_model, monkeypatch, capsys):
    monkeypatch.setattr(smollm, "load", lambda: language_model)
    monkeypatch.setenv("QUESTION", "word " * 2000)
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert chat.main() == 1
    errors = capsys.readouterr().err
    assert re.fullmatch(r"the question has \d+ tokens, 1648 are the most\n", errors)


def test_a_question_of_spaces_is_no_question(language_model, monkeypatch, capsys):
    monkeypatch.setattr(smollm, "load", lambda: language_model)
    monkeypatch.setenv("QUESTION", "  \n ")
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert chat.main() == 0
    assert "Ask it something" in capsys.readouterr().out


def test_bytes_that_are_no_text_are_replaced(language_model, monkeypatch, tmp_path, capsys):
    """In the environment and at the prompt."""
    asked = []
    monkeypatch.setattr(smollm, "load", lambda: language_model)
    monkeypatch.setattr(chat, "answer", lambda conversation, question: asked.append(question))
    monkeypatch.setitem(os.environb, b"QUESTION", b"Why \xe9?")
    assert chat.main() == 0
    monkeypatch.setitem(os.environb, b"QUESTION", b"")
    (tmp_path / "typed").write_bytes(b"\xff\xfe\n\n \nWhy?\n")
    with open(tmp_path / "typed", encoding="utf-8") as typed:
        monkeypatch.setattr(sys, "stdin", typed)
        assert chat.main() == 0
    assert asked == ["Why �?", "��", "Why?"]


def test_a_conversation_is_what_the_template_makes_of_it(conversation, monkeypatch):
    monkeypatch.setattr(chat, "LONGEST", 12)
    tokenizer = conversation.tokenizer
    asked = [{"role": "user", "content": "What is the capital of France?"}]
    reply = tokenizer.decode(conversation.ask(asked[0]["content"]))
    first = len(conversation.tokens)
    asked += [{"role": "assistant", "content": reply}, {"role": "user", "content": "And Italy?"}]
    answered = len(list(conversation.ask("And Italy?")))
    ended = conversation.tokens[-1] == conversation.end
    expected = smollm.chat(tokenizer, asked)
    assert conversation.tokens[: -answered - ended] == expected
    # each token was read once: the cache holds all but the last
    assert conversation.state.length == len(conversation.tokens) - 1 > first
    assert conversation.cache_bytes() == conversation.state.length * 46_080


def test_an_answer_that_was_stopped_is_closed(conversation):
    answer = conversation.ask("Count to ten.")
    stopped = [next(answer), next(answer)]
    answer.close()
    before = len(conversation.tokens)
    next(conversation.ask("Why?"))
    follow_up = smollm.chat(
        conversation.tokenizer, [{"role": "user", "content": "Why?"}], system=None
    )
    newline = conversation.tokenizer.encode("\n")
    assert conversation.tokens[before - 2 : before] == stopped
    assert conversation.tokens[before:-1] == [conversation.end, *newline, *follow_up]


def test_a_conversation_that_no_longer_fits_begins_again(conversation, monkeypatch):
    monkeypatch.setattr(chat, "LONGEST", 2)
    monkeypatch.setattr(chat, "CONTEXT", 60)
    list(conversation.ask("One?"))
    list(conversation.ask("Two?"))
    asked = smollm.chat(conversation.tokenizer, [{"role": "user", "content": "Three?"}])
    list(conversation.ask("Three?"))
    assert conversation.tokens[: len(asked)] == asked
    assert conversation.state.length == len(asked) + 1
    assert conversation.costs().endswith("It was full: what came before is forgotten.")
    monkeypatch.setattr(chat, "CONTEXT", 600)
    list(conversation.ask("Four?"))
    assert conversation.costs().endswith(" MB.")
    monkeypatch.setattr(chat, "CONTEXT", 60)
    before = list(conversation.tokens)
    with pytest.raises(ValueError, match=r"the question has \d+ tokens, 58 are the most"):
        next(conversation.ask("word " * 60))
    assert conversation.tokens == before  # nothing is forgotten for a question that is refused


def test_without_the_weights_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(smollm, "PACKAGE", "no_such_package_here")
    assert chat.main() == 1
    assert "no_such_package_here is not installed" in capsys.readouterr().err


def test_the_shell_never_sees_the_question():
    """`make` gives it to the command in the environment."""
    command = ["make", "--dry-run", "chat", 'QUESTION=What does `ls` "do"? It\'s $$5']
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "tools.chat" in shown
    assert "What does" not in shown


# --- in a terminal


class Terminal:
    """The command in a terminal of its own."""

    def __init__(self):
        self.process, self.keys = pty.fork()
        if self.process == 0:
            # A dumb terminal gets no sequences that move the cursor or mark what is pasted.
            plain = {"QUESTION": "", "OMP_NUM_THREADS": "1", "TERM": "dumb"}
            environment = {**os.environ, **plain}
            os.chdir(ROOT)
            command = [sys.executable, "tools/run.py", "tools.chat"]
            os.execve(sys.executable, command, environment)
        self.text = ""

    def wait_for(self, pattern, seconds=120):
        """Read until the text since the last call has it; return what was read."""
        deadline = time.monotonic() + seconds
        while not (match := re.search(pattern, self.text, re.DOTALL)):
            assert time.monotonic() < deadline, self.text
            try:
                self.text += os.read(self.keys, 4096).decode(errors="replace").replace("\r", "")
            except OSError:  # it has ended
                raise AssertionError(self.text) from None
        read, self.text = self.text[: match.end()], self.text[match.end() :]
        return read

    def press(self, keys):
        os.write(self.keys, keys)

    def leave(self):
        _, status = os.waitpid(self.process, 0)
        os.close(self.keys)
        return os.waitstatus_to_exitcode(status)


@pytest.mark.long
def test_ctrl_c_ends_an_answer_and_at_the_prompt_the_command(smollm_file):
    terminal = Terminal()
    terminal.wait_for(r"Ask it something.*> ")
    terminal.press(b"Write a long story about the sea.\n")
    terminal.wait_for(r"sea\.\n.{20}")  # it is being written
    terminal.press(b"\x03")
    stopped = terminal.wait_for(r" …\n\[\d+ tokens.*MB\.\]\n\n> ")
    assert "^C" not in stopped
    terminal.press(b"What is the capital of France?\n")
    assert "Paris" in terminal.wait_for(r"\[\d+ tokens.*MB\.\]\n\n> ")
    terminal.press(b"\x03")
    terminal.wait_for("stopped")
    assert terminal.leave() == 130


@pytest.mark.long
def test_a_long_line_is_read_whole(smollm_file):
    """Without readline a terminal cuts a line after 4,095 bytes."""
    pytest.importorskip("readline")
    terminal = Terminal()
    terminal.wait_for("> ")
    for _ in range(20):
        terminal.press(b"word " * 100)
        time.sleep(0.05)
    terminal.press(b"\n")
    terminal.wait_for(r"the question has 20\d\d tokens, 1648 are the most\n> ")
    terminal.press(b"\x04")
    assert terminal.leave() == 0


@pytest.mark.long
def test_ctrl_d_leaves(smollm_file):
    terminal = Terminal()
    terminal.wait_for("> ")
    terminal.press(b"\x04")
    assert terminal.leave() == 0
