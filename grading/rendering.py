"""What a submission shows, as HTML that can be trusted: drawn in a sandbox, cleaned outside it.

Everything that came with a submission passes through here on its way to a page, whoever opens it
(the feedback page, the formgrader). Three steps, in three processes:

1. :func:`view` (whoever makes a page) takes a notebook apart. What comes back is a notebook of the
   same cells that holds HTML in place of text, and of the metadata what nbgrader's templates need.
2. :func:`draw` (in a sandbox of its own, which has run no learner's code) turns Markdown, code and
   terminal text into HTML. Time and memory are bounded, for each piece and for all.
3. :func:`clean` (outside, bounded too) keeps of this HTML what is on a list: no script, style
   sheet, form, frame or refresh, no class or id of the page around it, and nothing that a browser
   would ask another site for. Pictures are those that the notebook itself holds.

What cannot be drawn or cleaned within the limits is shown as plain text, cut. Templates escape
whatever did not go through here (:class:`grading.formgrader.Page`, ``feedback.html.j2``).

Formulas of a feedback page become MathML in the sandbox, and :func:`mathml` builds each anew
outside it, from elements and attributes on a list. The formgrader typesets its own with MathJax.
"""

import base64
import html
import re
import resource
import signal
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import unquote
from xml.etree import ElementTree

import nh3
from latex2mathml.converter import convert
from markupsafe import Markup
from nbconvert.filters import Highlight2HTML, ansi2html, strip_ansi
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode
from pygments.token import STANDARD_TYPES, Name, Operator

from grading.runner import forkserver, pool
from grading.runner.forkserver import ForkServerError
from grading.runner.job import Limits

PIECE_SECONDS = 3  # of processor time, for one piece
SECONDS = 20  # of processor time, for all of a notebook, drawing and cleaning each
WAIT_SECONDS = 90  # on a machine that has other things to do
BOX = Limits(total_seconds=SECONDS, memory=2**29, processes=8, disk=2**20)
MAX_TEXT = 200_000  # characters of a piece that is drawn
MAX_HTML = 12_000_000  # characters of what becomes of it
MAX_PAGE = 20_000_000  # characters of HTML and pictures for all of a notebook
MAX_PLAIN = 20_000  # characters that are shown of what is not drawn
MAX_BRIEF = 4000  # the same, on a feedback page
NOT_DRAWN = "[Shown as it was typed, as far as it fits: this cannot be drawn.]\n"
LEFT_OUT = "[Left out: this notebook shows more than a page can hold.]"
PICTURE = "a picture that this cell drew"
NAMELESS = "a picture without a description"
NOT_HERE = "a picture from elsewhere, which this page does not load"
MAX_FORMULA = 2000  # characters of TeX that are typeset
# Of an output, a feedback page shows the beginning and the end.
FIRST_LINES, LAST_LINES, LINE = 24, 8, 200

ATTACHED = re.compile(r'\bsrc="(attachment:[^"]*)"')  # in HTML that somebody typed
LANGUAGE = "ipython3"
MARKS = ("grade_id", "grade", "solution", "locked", "task", "points", "score")
# What a notebook shows of a rich output: the first of these that it has, as in nbconvert.
RICH = ("text/html", "text/markdown", "image/svg+xml", "text/latex", "image/png", "image/jpeg")


# --- 1. take a notebook apart


def view(notebook: NotebookNode, server: str = "", *, brief: bool = False) -> NotebookNode:
    """The notebook that a template is given; it holds no text of the submission as it was typed.

    Args:
        notebook: what is to be shown; it is left as it is.
        server: the address of a fork server for this module; empty for this process's own.
        brief: for a page that is sent and needs nothing else: formulas are MathML, code has one
            complete line of HTML per line and few colours, long outputs are shortened.
    """
    pieces: list[tuple[str, str, dict]] = []
    places: list[tuple[dict | list, str | int]] = []

    def later(place: dict | list, key: str | int, kind: str, text: object, pictures=None) -> None:
        """Have `place[key]` filled with HTML."""
        text = text if isinstance(text, str) else ""
        kind = (BRIEF if brief else FULL).get(kind, kind)
        if brief:
            text = shortened(text) if kind == "terminal" else text
        pieces.append((kind, text, pictures if isinstance(pictures, dict) else {}))
        places.append((place, key))

    cells = [_cell(number, cell, later) for number, cell in enumerate(notebook.cells)]
    for (place, key), text in zip(places, _trusted(pieces, server), strict=True):
        place[key] = Markup(text)
    return NotebookNode(nbformat=4, nbformat_minor=5, metadata=NotebookNode(), cells=cells)


def _cell(number: int, cell: NotebookNode, later: Callable) -> NotebookNode:
    kind = cell.cell_type
    made = NotebookNode(id=f"{number}", cell_type=kind, metadata=NotebookNode())
    if marks := cell.metadata.get("nbgrader"):
        made.metadata.nbgrader = NotebookNode({key: marks.get(key) for key in MARKS})
        if comment := marks.get("comment"):
            later(made.metadata.nbgrader, "comment", "markdown", comment)
    if kind == "raw":
        made.metadata.raw_mimetype = str(cell.metadata.get("raw_mimetype", ""))
    marks = marks or {}
    locked = marks.get("locked") is True and marks.get("grade") is not True
    given = kind == "code" and (locked or cell.metadata.get("given") is True)
    later(made, "source", "given" if given else kind, cell.source, cell.get("attachments"))
    if kind == "code":
        count = cell.get("execution_count")
        made.execution_count = count if isinstance(count, int) else Markup("&nbsp;")
        made.outputs = [_output(output, later) for output in cell.get("outputs", [])]
    return made


def _output(output: NotebookNode, later: Callable) -> NotebookNode:
    kind = output.output_type
    made = NotebookNode(output_type=kind, metadata=NotebookNode())
    if kind == "stream":
        made.name = "stderr" if output.get("name") == "stderr" else "stdout"
        later(made, "text", "terminal", output.get("text"))
        return made
    if kind == "error":
        made.traceback = [""]
        later(made.traceback, 0, "terminal", "\n".join(map(str, output.get("traceback", ""))))
        return made
    made.output_type = "display_data"
    data = output.get("data", {})
    made.data = NotebookNode()
    name = next((name for name in RICH if name in data), "text/plain")
    if name == "text/html":
        later(made.data, "text/html", "html", data[name])
    elif name == "text/markdown":
        later(made.data, "text/html", "markdown", data[name])
    elif name.startswith("image/"):
        later(made.data, "text/html", name, data[name])
    elif name == "text/latex":
        later(made.data, "text/html", "plain", data[name])
    else:
        later(made.data, "text/plain", "terminal", data.get(name, ""))
    return made


def _trusted(pieces: list[tuple[str, str, dict]], server: str) -> list[str]:
    """HTML for each piece, or its plain text where there is none."""
    if not pieces:
        return []
    try:
        server = server or pool.fork_server(__name__).path
        made = forkserver.call(server, "clean", {"pieces": pieces}, WAIT_SECONDS)["html"]
    except ForkServerError:
        made = [None] * len(pieces)
    left, shown = MAX_PAGE, []
    for (kind, text, _), drawing in zip(pieces, made, strict=True):
        drawing = plain(kind, text) if drawing is None else drawing
        left -= len(drawing)
        shown.append(drawing if left >= 0 else LEFT_OUT)
    return shown


def plain(kind: str, text: str) -> str:
    """A piece as it was typed, cut."""
    room = MAX_BRIEF if kind in BRIEF.values() else MAX_PLAIN
    text = html.escape(NOT_DRAWN + strip_ansi(text[:room]))
    return text if kind in ("terminal", "lines") else f"<pre>{text}</pre>"


def shortened(text: str) -> str:
    """The beginning and the end of an output, with a line that says how much is left out."""
    lines = text.split("\n")
    left_out = lines[FIRST_LINES:-LAST_LINES]
    if left_out:
        count = f"{len(left_out):,} {'line' if len(left_out) == 1 else 'lines'}"
        note = f"[… {count} left out here: the notebook that you handed in prints them all.]"
        lines = [*lines[:FIRST_LINES], note, *lines[-LAST_LINES:]]
    return "\n".join(
        line if len(line) <= LINE else f"{line[:LINE]} [… {len(line) - LINE:,} characters left out]"
        for line in lines
    )


# --- 2. draw, in a sandbox


class OutOfTime(BaseException):
    """Not an Exception, so that no library handles it as one of its own."""


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Limit the processor time of the code inside."""

    def ring(number, frame):
        raise OutOfTime

    signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds, 0.2)  # again, in case something catches it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def draw(argument: dict) -> dict:
    """HTML for each piece, or None. It is untrusted: a hijacked process could return anything."""
    left, made = float(SECONDS), []
    for kind, text, pictures in argument["pieces"]:
        before = _spent()
        try:
            with _limited(max(0.01, min(PIECE_SECONDS, left))):
                drawing = DRAW[kind](text, pictures)
        except (Exception, OutOfTime):
            drawing = None
        left -= _spent() - before
        made.append(drawing if drawing is not None and len(drawing) <= MAX_HTML else None)
    return {"html": made}


def prepare() -> None:
    """Import what drawing needs, before any fork."""
    sample = "# a $\\beta$\n\n`c` [d](e) <b>\n\n```python\nf\n```\n\n|g|\n|-|\n"
    for made in draw({"pieces": [(kind, sample, {}) for kind in DRAW]})["html"]:
        _ANY.clean(made)


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class _Pictures(dict):
    """A cell's attachments by name; a missing one is an empty picture."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> dict[str, str]:
        # JupyterLab writes a name with a space as an address, and the attachment under the name.
        return self.get(unquote(name), {"image/png": ""})


class _Typeset(IPythonRenderer):
    """Formulas as MathML in place of TeX; what cannot be read as TeX stays as it was typed."""

    def inline_math(self, body: str) -> str:
        return self._formula(body, body, "inline")

    def block_math(self, body: str) -> str:
        return self._formula(body, body, "block")

    def latex_environment(self, name: str, body: str) -> str:
        return self._formula(f"\\begin{{{name}}}{body}\\end{{{name}}}", body, "block")

    def _formula(self, tex: str, shown: str, display: str) -> str:
        try:
            if len(tex) > MAX_FORMULA:
                raise ValueError(f"a formula of {len(tex)} characters")
            made = convert(tex, display=display)
        except Exception:
            return f"<code>{html.escape(shown[:MAX_FORMULA])}</code>"
        # Text, until `mathml` has looked at it outside the sandbox.
        return f'<span class="formula">{html.escape(made)}</span>'


def _markdown(text: str, pictures: dict, kind: type[IPythonRenderer] = IPythonRenderer) -> str:
    renderer = kind(escape=False, attachments=_Pictures(pictures))
    made = MarkdownWithMath(renderer=renderer).render(text)
    made = ATTACHED.sub(
        lambda match: f'src="{renderer._embed_image_or_attachment(match[1])}"', made
    )
    for box, sign in {" checked": "☑ ", "": "☐ "}.items():
        made = made.replace(
            f'<input class="task-list-item-checkbox" type="checkbox" disabled{box}/>', sign
        )
    return made


def _typeset(text: str, pictures: dict) -> str:
    made = _markdown(text, pictures, _Typeset)
    made = HEADING.sub(lambda match: f"{match[1]}h{min(6, max(3, int(match[2]) + 1))}", made)
    return EMPTY.sub("<td></td>", made)


def _code(text: str, _) -> str:
    return Highlight2HTML(pygments_lexer=LANGUAGE)(text)


def _lines(text: str, _) -> str:
    """Code with the colours of few kinds of words; each line is complete HTML by itself."""
    made = (
        _code(text, _).partition("<pre>")[2].rpartition("</pre>")[0].removeprefix("<span></span>")
    )
    made = TOKEN.sub(lambda match: _coloured(COLOURED.get(match[1], match[1][0]), match[2]), made)
    before = ""
    while made != before:
        before, made = made, NEIGHBOURS.sub(r'<span class="\1">\2\3', made)
    return made


def _coloured(kind: str, text: str) -> str:
    return f'<span class="{kind}">{text}</span>' if kind in KINDS and text.strip() else text


HEADING = re.compile(r"(</?)h([1-6])(?=[ >])")
EMPTY = re.compile(r"<th[^>]*></th>")  # names no column
TOKEN = re.compile(r'<span class="(\w+)">([^<]*)</span>')
NEIGHBOURS = re.compile(r'<span class="(\w+)">([^<\n]*)</span>( *)<span class="\1">')
KINDS = ("k", "s", "c", "m", "nf")  # keywords, strings, comments, numbers, names that are defined
COLOURED = {STANDARD_TYPES[kind]: "nf" for kind in (Name.Function, Name.Class, Name.Decorator)}
COLOURED[STANDARD_TYPES[Operator.Word]] = "k"
FULL = {"raw": "html", "given": "code"}  # how a page of each sort draws a cell of this kind
BRIEF = {"markdown": "typeset", "code": "lines", "raw": "plain", "given": "plain"}
DRAW: dict[str, Callable[[str, dict], str]] = {
    "markdown": _markdown,
    "typeset": _typeset,
    "code": _code,
    "lines": _lines,
    "terminal": lambda text, _: ansi2html(text),
}


# --- 3. clean, outside

COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
ANSI = {f"ansi-{c}{i}-{g}" for c in COLOURS for i in ("", "-intense") for g in ("fg", "bg")} | {
    "ansi-default-inverse-fg",
    "ansi-default-inverse-bg",
    "ansi-bold",
    "ansi-underline",
}
TOKENS = {name for name in STANDARD_TYPES.values() if name}
TAGS = nh3.ALLOWED_TAGS - {"area", "map", "nav"}
CLASSES = {
    "div": {"highlight", f"hl-{LANGUAGE}"},
    "span": TOKENS | ANSI | {"formula"},
    "a": {"anchor-link"},
}
STYLE = re.compile(r"(?:rgb\(|[\w\s#,.%:;)-])*", re.ASCII)  # no function that loads anything
STYLES = {"text-align", "color", "background-color"}
IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp|svg\+xml);base64,[A-Za-z0-9+/=]*", re.ASCII)
SIZE = re.compile(r"[0-9]{1,3}%?|[0-9]{4}", re.ASCII)
BASE64 = re.compile(r"[A-Za-z0-9+/=]*", re.ASCII)
SHOWN = re.compile(r'<img((?: [a-z]+="[^"]*")*)>')  # as the cleaner writes it


def _attribute(tag: str, name: str, value: str) -> str | None:
    if tag == "img" and name == "src":
        return value if IMAGE.fullmatch(value) else None
    if name in ("width", "height"):
        return value if SIZE.fullmatch(value) else None
    if name == "style":
        return value if STYLE.fullmatch(value) else None
    if name == "href" and value.lower().startswith("data:"):
        return None
    return value


_ANY = nh3.Cleaner(
    tags=TAGS,
    clean_content_tags={"script", "style", "template", "title", "noscript", "textarea", "iframe"},
    attributes={
        "*": {"id", "title", "lang", "dir"},
        "a": {"href"},
        "img": {"src", "alt", "width", "height"},
        "ol": {"start"},
        "span": {"style"},
        "td": {"style", "colspan", "rowspan"},
        "th": {"style", "colspan", "rowspan", "scope"},
    },
    attribute_filter=_attribute,
    allowed_classes=CLASSES,
    filter_style_properties=STYLES,
    url_schemes={"http", "https", "mailto", "data"},
    url_relative=lambda url: f"#{OWN}{url[1:]}" if url.startswith("#") else None,
    id_prefix=(OWN := "of-the-notebook-"),
)


def _described(tag: re.Match) -> str:
    """A picture with a text for whoever does not see it."""
    names = re.findall(r' ([a-z]+)="[^"]*"', tag[1])
    text = NAMELESS if "src" in names else NOT_HERE
    return tag[0] if "alt" in names else f'<img{tag[1]} alt="{text}">'


# Code and terminal text are colours and nothing else.
_TEXT = nh3.Cleaner(
    tags={"div", "pre", "span"},
    attributes={"span": {"style"}},
    attribute_filter=_attribute,
    allowed_classes=CLASSES,
    filter_style_properties=STYLES,
)


# --- formulas

FORMULA = re.compile(r'<span class="formula">([^<]*)</span>')
TOKEN_ELEMENTS = {"mi", "mn", "mo", "mtext"}
ELEMENTS = TOKEN_ELEMENTS | set(
    "math mrow mfrac msqrt mroot mstyle mphantom mspace msub msup msubsup munder mover munderover "
    "mtable mtr mtd".split()
)
BOOL, LENGTH = re.compile("true|false"), re.compile(r"-?[0-3](\.[0-9]{1,4})?em|0")
VALUES = {
    "display": re.compile("block"),
    "stretchy": BOOL,
    "accent": BOOL,
    "displaystyle": BOOL,
    "scriptlevel": re.compile("[0-2]"),
    "columnalign": re.compile("(left|center|right)( (left|center|right)){0,20}"),
    "width": LENGTH,
    "minsize": LENGTH,
    "maxsize": LENGTH,
    "linethickness": LENGTH,
}
LETTERS = {
    "script": "SCRIPT",
    "double-struck": "DOUBLE-STRUCK",
    "bold": "BOLD",
    "fraktur": "FRAKTUR",
}
MAX_DEPTH = 60


def mathml(text: str) -> str:
    """A formula that a page may hold, built anew from elements and attributes on a list.

    No element of the list can contain HTML, a link, a style or an identifier, and no length is
    above 4 em. What is not on it is left out with its content; what is no XML is shown as text.
    """
    try:
        if "<!" in text or "<?" in text:
            raise ValueError("no part of a formula")
        return _element(ElementTree.fromstring(text), 0)
    except (ElementTree.ParseError, ValueError, RecursionError):
        return f"<code>{html.escape(text[:MAX_FORMULA])}</code>"


def _element(element: ElementTree.Element, depth: int) -> str:
    tag = element.tag.rpartition("}")[2]
    if tag == "mo" and element.text == "∞":  # a number, without an operator's space
        tag = "mi"
    if tag not in ELEMENTS or depth > MAX_DEPTH or (tag == "math") != (depth == 0):
        raise ValueError(f"<{tag}> is no part of a formula")
    if tag in TOKEN_ELEMENTS:
        if len(element):
            raise ValueError("an element where only text may be")
        inside = html.escape(_letters(element.text or "", element.get("mathvariant", "")))
    else:
        inside = "".join(_element(child, depth + 1) for child in element)
        if tag == "mrow" and len(element) == 1:
            return inside
    attributes = "".join(
        f' {name}="{value}"'
        for name, value in element.attrib.items()
        if name in VALUES and VALUES[name].fullmatch(value)
    )
    if tag == "mi" and element.get("mathvariant") == "normal":
        attributes += ' mathvariant="normal"'
    return f"<{tag}{attributes}>{inside}</{tag}>"


def _letters(text: str, variant: str) -> str:
    """A letter of another alphabet as the character that Unicode has for it."""
    kind, letter = LETTERS.get(variant), text.strip()
    if kind is None or len(letter) != 1 or not letter.isascii() or not letter.isalpha():
        return text
    name = f"{kind} {'CAPITAL' if letter.isupper() else 'SMALL'} {letter.upper()}"
    for full in (f"MATHEMATICAL {name}", name, name.replace("FRAKTUR", "BLACK-LETTER")):
        try:
            return unicodedata.lookup(full)
        except KeyError:
            continue
    return text


def clean(argument: dict) -> dict:
    """HTML for each piece that a page may hold, or None; drawn in a sandbox."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, 2 * SECONDS))
    resource.setrlimit(resource.RLIMIT_DATA, (2 * BOX.memory,) * 2)
    drawn = _drawn(argument["pieces"])
    made = []
    for (kind, text, _), drawing in zip(argument["pieces"], drawn, strict=True):
        if kind == "plain":
            made.append(html.escape(text[:MAX_TEXT]))
        elif kind.startswith("image/"):
            made.append(_picture(kind, text))
        elif drawing is None:
            made.append(None)
        else:
            cleaner = _TEXT if kind in ("code", "lines", "terminal") else _ANY
            cleaned = cleaner.clean(drawing)
            if kind == "typeset":
                cleaned = FORMULA.sub(lambda each: mathml(html.unescape(each[1])), cleaned)
            # From unclosed tags, a parser can produce far more HTML than it was given.
            fits = len(cleaned) <= 3 * len(drawing) + 1000
            made.append(SHOWN.sub(_described, cleaned) if fits else None)
    return {"html": made}


def _drawn(pieces: list) -> list[str | None]:
    """The sandbox's output, checked for its form."""
    drawable = [piece for piece in pieces if piece[0] in DRAW and len(piece[1]) <= MAX_TEXT]
    answer = forkserver.boxed(draw, {"pieces": drawable}, BOX, WAIT_SECONDS) if drawable else {}
    made = answer.get("html")
    made = made if isinstance(made, list) and len(made) == len(drawable) else [None] * len(drawable)
    results = iter(
        each if isinstance(each, str) and len(each) <= MAX_HTML else None for each in made
    )
    return [
        next(results)
        if kind in DRAW and len(text) <= MAX_TEXT
        else (text if kind == "html" and len(text) <= MAX_TEXT else None)
        for kind, text, _ in pieces
    ]


def _picture(kind: str, text: str) -> str:
    """A picture, which runs no script even if it is SVG."""
    if kind == "image/svg+xml":
        text = base64.b64encode(text.encode(errors="replace")).decode()
    text = "".join(text.split())
    if not BASE64.fullmatch(text):
        text = ""
    return f'<img alt="{PICTURE}" src="data:{kind};base64,{text}">'
