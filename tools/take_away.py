"""Make what a reader takes away: ``python -m tools.take_away [zip | pdf | epub] ...``, or all."""

import argparse
import sys
import time
from pathlib import Path

from tools import book, downloads, paper

WRITERS = {"pdf": (downloads.PDF, paper.write_pdf), "epub": (downloads.EPUB, paper.write_epub)}


def say(path: Path, more: str = "") -> None:
    place = f"{downloads.FOLDER}/{path.name}"
    print(f"[take-away] {place}: {downloads.size(path)}{more}", flush=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools.take_away", description=__doc__.split(":")[0])
    parser.add_argument("what", nargs="*", help="zip, pdf, epub; all by default")
    parser.add_argument("--root", type=Path, default=book.ROOT, help="the folder with _config.yml")
    options = parser.parse_args(arguments)
    root, wanted = options.root.resolve(), options.what or ["zip", *WRITERS]
    folder = root / downloads.FOLDER
    if unknown := set(wanted) - {"zip", *WRITERS}:
        parser.error(f"there is no {', '.join(sorted(unknown))}, only zip, pdf and epub")
    if wanted == ["zip"]:
        downloads.prepare(root)
        say(folder / downloads.ZIP)
        return 0
    if not book.build(root):
        return 1
    for name, write in (WRITERS[kind] for kind in WRITERS if kind in wanted):
        start = time.monotonic()
        write(root, folder / name)
        downloads.remember(root, name, downloads.pages_key(root))
        say(folder / name, f", made in {time.monotonic() - start:.0f} s")
    downloads.place(root)
    print("[take-away] the first page of the site offers what was made")
    return 0


if __name__ == "__main__":
    sys.exit(main())
