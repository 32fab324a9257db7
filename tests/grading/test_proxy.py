"""The line between tests and answer: late frames, requests left in the middle, old functions."""

import contextlib
import json
import socket
import threading
import time

import pytest

from grading.runner.job import Ended, Limits, Stopped
from grading.runner.protocol import HEAD, Disconnected, Incoming, Timeout, receive, send
from grading.runner.proxy import Proxy, Session


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


def test_functions_of_a_test_are_out_of_reach_in_later_cells(session):
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
    tests.begin(5.0)  # the next cell
    reply = json.loads(function(lambda: called.append(2)))
    assert "during that test only" in reply["raised"]["message"]
    assert called == [1]
