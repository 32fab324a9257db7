"""Ask every external link of the built book whether it still answers: ``python -m tools.links``.

No test does this, because tests must not depend on other machines. The answers are sorted:

- *dead*: the server said that there is nothing (404, 410). Only these make the exit status 1.
- *unsure*: an inconclusive answer (a login page, robots refused, a server error).
- *not reached*: no answer at all. Without a network, that is all of them.
"""

import argparse
import http.client
import sys
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urldefrag, urlsplit

ROOT = Path(__file__).resolve().parent.parent
HTML = ROOT / "_build" / "html"
AT_ONCE = 8
SECONDS = 20.0  # to wait for one answer
GONE = {404, 410}
AGENT = {"User-Agent": "Mozilla/5.0 (a course looks whether its references still answer)"}


class _Links(HTMLParser):
    """The addresses that a page links to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        address = dict(attrs).get("href") or ""
        if tag == "a" and urlsplit(address).scheme in ("http", "https"):
            self.addresses.add(urldefrag(address).url)


def external(folder: Path) -> dict[str, list[str]]:
    """Every address outside the site, with the pages that link to it."""
    pages = defaultdict(list)
    for path in sorted(folder.rglob("*.html")):
        for address in _Links(path.read_text(encoding="utf-8")).addresses:
            pages[address].append(str(path.relative_to(folder)))
    return dict(sorted(pages.items()))


def answer(address: str, *, seconds: float = SECONDS) -> int | str:
    """The status that the address answers with, or why there was none."""
    status: int | str = ""
    for method in ("HEAD", "GET"):  # some servers do not support HEAD
        request = urllib.request.Request(address, headers=AGENT, method=method)
        try:
            with urllib.request.urlopen(request, timeout=seconds) as response:
                return response.status
        except urllib.error.HTTPError as error:
            status = error.code
        except (OSError, ValueError, http.client.HTTPException) as error:
            return str(getattr(error, "reason", error)) or type(error).__name__
    return status


def report(pages: dict[str, list[str]], answers: Iterable[int | str]) -> int:
    """Print the results; return the exit status."""
    groups: dict[str, list[str]] = {"dead": [], "unsure": [], "not reached": []}
    for address, status in zip(pages, answers, strict=True):
        if isinstance(status, int) and status < 400:
            continue
        kind = "not reached" if isinstance(status, str) else "dead" if status in GONE else "unsure"
        groups[kind].append(f"  {address} ({status}), on {', '.join(pages[address])}")
    lost = len(groups["not reached"])
    if pages and lost == len(pages):
        print(f"NO NETWORK: none of {lost} addresses could be reached, so nothing is known of them")
        print("for example" + groups["not reached"][0])
        return 0
    for kind, lines in groups.items():
        print(f"{len(lines)} {kind}")
        print("\n".join(lines), end="\n" * bool(lines))
    print(f"{len(pages) - sum(map(len, groups.values()))} of {len(pages)} answer")
    return 1 if groups["dead"] else 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools.links", description=__doc__.split(":")[0])
    parser.add_argument("--html", type=Path, default=HTML, help="the built site")
    options = parser.parse_args(arguments)
    if not (options.html / "index.html").is_file():
        print(f"there is no built book in {options.html}: run `make book`", file=sys.stderr)
        return 2
    pages = external(options.html)
    print(f"{len(pages)} addresses, {AT_ONCE} at a time", flush=True)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return report(pages, list(pool.map(answer, pages)))


if __name__ == "__main__":
    sys.exit(main())
