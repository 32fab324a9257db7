"""tools/links.py against a small server: what is dead, what is unsure, what was not reached."""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tools import links


class Handler(BaseHTTPRequestHandler):
    """Answers with the status that the address asks for; /shy refuses HEAD, /away leads on, and
    what /odd says is not HTTP.
    """

    def do_GET(self):
        if self.path == "/slow":
            time.sleep(1)
        if self.path == "/odd":
            self.wfile.write(b"nonsense\r\n\r\n")
            return
        known = {"/shy": 200, "/slow": 200, "/away": 302}
        status = known.get(self.path) or int(self.path.strip("/"))
        if self.path == "/shy" and self.command == "HEAD":
            status = 405
        self.send_response(status)
        if self.path == "/away":
            self.send_header("Location", "/200")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET

    def log_message(self, *arguments):
        pass


@pytest.fixture
def address():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture
def site(tmp_path):
    """Write a page with these links."""

    def write(*addresses):
        body = "".join(f'<a href="{each}">x</a>' for each in addresses)
        own = '<link href="http://127.0.0.1:1/no-link"><a href="other.html#x">own</a>'
        (tmp_path / "index.html").write_text(own + body)
        return ["--html", str(tmp_path)]

    return write


def test_a_site_whose_links_answer(address, site, capsys):
    parts = (f"{address}/200#part", f"{address}/200#other")  # of one page
    assert links.main(site(*parts, f"{address}/shy", f"{address}/away")) == 0
    assert "3 of 3 answer" in capsys.readouterr().out


@pytest.mark.parametrize("status", [404, 410])
def test_a_dead_link_is_named_with_its_page(address, site, capsys, status):
    assert links.main(site(f"{address}/200", f"{address}/{status}")) == 1
    output = capsys.readouterr().out
    assert f"1 dead\n  {address}/{status} ({status}), on index.html\n" in output
    assert "1 of 2 answer" in output


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
def test_a_refusal_is_no_verdict(address, site, capsys, status):
    assert links.main(site(f"{address}/200", f"{address}/{status}")) == 0
    assert f"1 unsure\n  {address}/{status}" in capsys.readouterr().out


@pytest.mark.parametrize(("path", "why"), [(None, ""), ("/odd", "nonsense")])
def test_no_answer_or_no_http_is_no_verdict(address, site, capsys, path, why):
    link = f"{address}{path}" if path else "http://127.0.0.1:1/"
    assert links.main(site(f"{address}/200", link)) == 0
    assert f"1 not reached\n  {link} ({why}" in capsys.readouterr().out


def test_one_that_takes_too_long_is_not_waited_for(address):
    assert links.answer(f"{address}/slow", seconds=0.1) == "timed out"


def test_without_a_network_it_says_so(site, capsys):
    assert links.main(site("http://127.0.0.1:1/", "http://127.0.0.1:1/x")) == 0
    output = capsys.readouterr().out
    assert "NO NETWORK: none of 2 addresses could be reached" in output
    assert "dead" not in output


def test_without_a_book_it_says_what_to_do(tmp_path, capsys):
    assert links.main(["--html", str(tmp_path)]) == 2
    assert "run `make book`" in capsys.readouterr().err
