"""The line between tests and answer: late frames, odd replies, requests left in the middle."""

import contextlib
import json
import socket
import threading
import time
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from grading.runner import judge, proxy
from grading.runner.job import Cell, Ended, Job, Limits, Stopped
from grading.runner.protocol import HEAD, Body, Disconnected, Incoming, Timeout, receive, send
from grading.runner.proxy import Proxy, Session, SplitProbe


def frame(header: dict, body: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return HEAD.pack(len(text), len(body)) + text + body


class Box:
    """A sandbox whose process is a function of the test, in a thread.

    Args:
        play: is given the other end of the line, and this.
    """

    def __init__(self, play):
        self.delay = 0.0
        self.connection, self.other = socket.socketpair()
        self.interrupted = threading.Event()
        threading.Thread(target=self._play, args=[play], daemon=True).start()

    def _play(self, play):
        with self.other, contextlib.suppress(OSError, Disconnected):
            play(self.other, self)

    def interrupt(self):
        self.interrupted.set()

    def waited(self):
        return self.delay

    def end(self):
        self.connection.close()
        return ""


@pytest.fixture
def session():
    """Makes benches, and closes them."""
    with contextlib.ExitStack() as stack:

        def make(play, seconds: float = 0.3) -> Session:
            made = Session(lambda: Box(play), Limits(cell_seconds=seconds))
            stack.callback(made.close)
            made.begin(seconds)
            return made

        yield make


@pytest.fixture
def line():
    """Both ends of a connection."""
    one, two = socket.socketpair()
    with one, two:
        yield one, two


def result(value: object, **more) -> dict:
    return {"result": value, "changed": [], **more}


@pytest.mark.parametrize("part", [3, HEAD.size, HEAD.size + 5, -2])
def test_a_late_frame_is_read_on_from_where_it_stopped(line, part):
    one, two = line
    whole = frame({"first": 1}, b"12345678")
    incoming = Incoming(one)
    two.sendall(whole[:part])
    with pytest.raises(Timeout):
        incoming.receive(time.monotonic() + 0.02)
    two.sendall(whole[part:] + frame({"second": 2}))
    header, body = incoming.receive(time.monotonic() + 5)
    assert (header, bytes(body)) == ({"first": 1}, b"12345678")
    assert incoming.receive()[0] == {"second": 2}


def test_a_reply_that_was_late_in_the_middle_is_not_taken_for_the_next(session):
    def play(line, box):
        receive(line)
        whole = frame(result("late"))
        line.sendall(whole[:20])
        box.interrupted.wait(10)
        line.sendall(whole[20:])
        receive(line)
        line.sendall(frame(result("in time")))

    tests = session(play)
    with pytest.raises(Stopped, match="more than 0 s"):
        tests.ask({"do": "call"})
    tests.begin(5.0)
    assert tests.ask({"do": "call"}) == "in time"
    assert tests.round == 1  # the same sandbox


def test_a_request_that_is_left_in_the_middle_ends_its_sandbox(session):
    class Alarm(Exception):
        pass

    def play(line, box):
        receive(line)
        time.sleep(0.3)
        line.sendall(frame(result("of the request that was left")))
        receive(line)
        line.sendall(frame(result("of the second")))

    tests = session(play, 5.0)

    def ring(deadline):
        raise Alarm

    tests.incoming.receive = ring
    with pytest.raises(Alarm):
        tests.ask({"do": "call"})
    assert tests.sandbox is None
    with pytest.raises(Stopped, match="Python had stopped before"):
        tests.ask({"do": "call"})


def test_the_clock_stands_still_while_there_is_no_processor(session):
    def play(line, box):
        receive(line)
        for _ in range(10):
            time.sleep(0.1)
            box.delay += 0.1
        line.sendall(frame(result("late")))

    tests = session(play, 0.3)
    assert tests.ask({"do": "call"}) == "late"
    assert not tests.sandbox.interrupted.is_set()


def test_who_does_not_take_what_a_test_passes_is_ended(session):
    tests = session(lambda line, box: time.sleep(60))
    begin = time.monotonic()
    with pytest.raises(Ended, match="could not be interrupted"):
        tests.request({"do": "call"}, (["x" * 10**7], {}))
    assert time.monotonic() - begin < 5
    assert tests.sandbox is None


def test_sending_gives_up_at_its_deadline(line):
    one, _ = line
    with pytest.raises(Timeout):
        send(one, {}, [bytes(10**7)], time.monotonic() + 0.05)


def test_what_an_answer_passes_to_functions_of_tests_has_a_bound_for_each_cell(
    session, monkeypatch
):
    monkeypatch.setattr(proxy, "MAX_PASSED", 100_000)

    def play(line, box):
        while True:
            header, _ = receive(line)
            number = header["arguments"]["tuple"][0]["tuple"][0]["reference"]["callback"]
            tree = {"tuple": [{"tuple": [{"bytes": 20_000}]}, {"dict": []}]}
            for _ in range(2):
                line.sendall(frame({"callback": number, "arguments": tree}, bytes(20_000)))
                receive(line)
            line.sendall(frame(result(None)))

    held = []  # as a test does that counts
    tests = session(play, seconds=5)
    for _ in range(2):
        for _ in range(2):
            tests.ask({"do": "call"}, ((held.append,), {}))
        tests.begin(5)  # another cell
    assert len(held) == 8
    for _ in range(2):
        tests.ask({"do": "call"}, ((held.append,), {}))
    with pytest.raises(Stopped, match="it passed more than"):
        tests.ask({"do": "call"}, ((held.append,), {}))
    assert len(held) == 12


def test_a_function_of_a_test_ends_with_the_call_that_it_was_passed_to(session):
    called = []

    def play(line, box):
        number = None
        while True:
            header, _ = receive(line)
            if number is None:
                ((_, (args, _)),) = header["arguments"].items()
                number = args["tuple"][0]["reference"]["callback"]
            line.sendall(
                frame({"callback": number, "arguments": {"tuple": [{"tuple": []}, {"dict": []}]}})
            )
            reply, _ = receive(line)
            line.sendall(frame(result(json.dumps(reply))))

    tests = session(play, 5.0)
    function = Proxy(tests, {"name": "f"}, "f")
    assert json.loads(function(lambda: called.append(1) or 7)) == {"result": 7}
    reply = json.loads(function(lambda: called.append(2)))  # the next call of the same test
    assert "during the call that it was passed to" in reply["raised"]["message"]
    assert called == [1]


# --- whatever the learner's process says

WORDS = st.sampled_from(
    """result names changed raised printed outputs callback arguments type kinds message own place
    reference handle back callable list tuple dict tensor array output_type text data evalue
    traceback ename stream error display_data image/png SystemExit KeyError ExceptionGroup
    StopIteration UnicodeDecodeError float64 , f""".split()
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(),
    lambda part: st.lists(part, max_size=4) | st.dictionaries(WORDS, part, max_size=4),
    max_leaves=12,
)
RAISED = st.fixed_dictionaries(
    {"type": JSON, "kinds": st.lists(WORDS) | JSON, "message": JSON, "own": JSON, "place": JSON}
)
REPLIES = st.dictionaries(WORDS, JSON, max_size=4) | st.builds(
    lambda raised, changed: {"raised": raised, "changed": changed}, RAISED, JSON
)
OUTPUTS = st.lists(
    st.fixed_dictionaries(
        {"output_type": st.sampled_from(["stream", "error", "display_data", "execute_result"])},
        optional=dict.fromkeys(("text", "data", "ename", "evalue", "traceback"), JSON),
    )
)
COMMA = {"array": [",", [1], 8]}


class Nobody:
    """A sandbox in which nothing runs."""

    connection = None

    def end(self):
        return ""


def test_a_test():
    """Stands for a test of an exercise."""


@given(REPLIES, st.binary(max_size=16))
@example({"result": COMMA}, bytes(8))
@example({"result": 1, "changed": {"0": 1}}, b"")
@example({"raised": dict(type="", kinds=["StopIteration"], message="", own=0, place=0)}, b"")
@example({"result": 1, "changed": [[1, 48]]}, b"")
def test_any_reply_is_a_result_or_an_exception_that_can_be_shown(reply, data):
    tests, problem = Session(Nobody, Limits()), None
    try:
        tests._read(reply, Body(memoryview(data)))
    except Exception as error:
        problem = error
    if problem is not None:
        assert hasattr(problem, "shown") or "cannot be looked at" in str(problem)
        assert SplitProbe()._said(problem, test_a_test)
        assert not isinstance(problem, StopIteration)  # a loop of the test would end in silence


FUNCTION = {"names": {"f": {"reference": {"handle": 0, "type": "function"}}}}
CALLED = {"callback": 0, "arguments": {"tuple": [{"tuple": [COMMA]}, {"dict": []}]}}
FRAMES = st.builds(frame, REPLIES | st.just(FUNCTION) | st.just(CALLED), st.binary(max_size=16))
CELLS = (
    Cell("def f(x, g): return g(x)", "answer"),
    Cell("assert f(1, lambda x, **options: x + 1) == 2", "test"),
    Cell("assert f([2], len) == 1", "test"),
)


@given(st.lists(FRAMES, max_size=6))
@example([frame({}), frame({"names": {"f": COMMA}}, bytes(8))])
@example([frame({}), frame(FUNCTION), frame(CALLED, bytes(8)), frame({"result": 2})])
@example([frame({}), frame(FUNCTION), frame({"result": COMMA}, bytes(8))])
def test_any_process_in_the_place_of_the_learners_gets_a_verdict(frames):
    left = iter(frames)

    def play(line, box):
        for each in left:
            receive(line)
            line.sendall(each)

    job = Job(CELLS, ("f",), limits=Limits(cell_seconds=0.2, total_seconds=2))
    outputs: list = []
    verdict = judge.judge(job, lambda: Box(play), outputs.append)
    assert len(outputs) == len(CELLS)
    assert replace(verdict, outputs=outputs).to_json()


@given(OUTPUTS | JSON)
@example([{"output_type": "stream", "text": "\ud800"}])
def test_any_outputs_of_a_cell_become_outputs(outputs):
    for output in judge._clean(outputs):
        assert json.dumps(output)
        assert output["output_type"] in ("stream", "error", "display_data")


def test_the_deepest_lists_that_can_be_read_are_an_error_and_no_more():
    deep = json.loads("[" * 900 + "]" * 900)
    tests, nothing = Session(Nobody, Limits()), Body(memoryview(b""))
    raised = dict.fromkeys(("type", "kinds", "message", "own", "place"), deep)
    with pytest.raises(RuntimeError, match=r"^\[\["):
        tests._read({"raised": raised}, nothing)
    with pytest.raises(TypeError, match="cannot be looked at"):
        tests._read({"result": deep}, nothing)
    error = {"output_type": "error", "ename": deep, "evalue": deep, "traceback": [deep]}
    assert judge._clean([error, deep]) == []
