"""The chapters' questions for instructors: ``python -m tools.questions``.

Writes into ``_build/questions``, from the outputs of the built book (``make book``):

- ``questions.xml``: Moodle's format, one category per chapter, an explanation with each choice;
- ``exam.html``: to print, with the key on a page of its own.

Names of chapters (``05-rope``) limit both to these.
"""

import argparse
import sys
import xml.etree.ElementTree as ET
from html import escape
from pathlib import Path

import nbformat
from jupyter_cache import get_cache

from lib.questions import METADATA, marked

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / "_build" / ".jupyter_cache"
FOLDER = ROOT / "_build" / "questions"
COURSE = "Attention, Position, Cache"
EXAM = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{course}: questions</title><style>
body{{max-width:42em;margin:2em auto;font:11pt/1.4 Georgia,serif}}
ol.choices{{list-style:upper-alpha}} li{{break-inside:avoid;margin:.3em 0}}
.key{{break-before:page}}
</style></head><body><h1>{course}</h1>{questions}
<div class="key"><h1>Key</h1>{key}</div></body></html>
"""


def collect(folder: Path, cache: Path) -> dict[str, list[dict]]:
    """The questions of each chapter that has some, as its executed notebook holds them.

    Raises:
        ValueError: if a chapter has not been executed as it is now.
    """
    executed = get_cache(cache)
    questions = {}
    for path in sorted(folder.glob("[0-9][0-9]-*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        try:
            record = executed.match_cache_notebook(notebook)
        except KeyError:
            raise ValueError(
                f"{path.name} has changed since the book was built: make book"
            ) from None
        cells = executed.get_cache_bundle(record.pk).nb.cells
        outputs = [out for cell in cells for out in cell.get("outputs", ())]
        asked = [each for out in outputs for each in out.get("metadata", {}).get(METADATA, ())]
        if asked:
            questions[path.stem] = asked
    return questions


def prompt(question: dict) -> str:
    """The question as HTML, with its lines of code."""
    code = f"<pre>{escape(question['code'])}</pre>" if question["code"] else ""
    return f"<p>{marked(question['prompt'])}</p>{code}"


def moodle(questions: dict[str, list[dict]]) -> str:
    """All questions in Moodle's XML format, for its question bank."""
    quiz = ET.Element("quiz")
    for chapter, asked in questions.items():
        category = ET.SubElement(quiz, "question", type="category")
        text = ET.SubElement(ET.SubElement(category, "category"), "text")
        text.text = f"$course$/top/{COURSE}/{chapter}"
        for number, question in enumerate(asked, start=1):
            entry = ET.SubElement(quiz, "question", type="multichoice")
            name = ET.SubElement(ET.SubElement(entry, "name"), "text")
            name.text = f"{chapter} {number:02}"
            body = ET.SubElement(entry, "questiontext", format="html")
            ET.SubElement(body, "text").text = prompt(question)
            for setting, value in (("single", "true"), ("shuffleanswers", "true")):
                ET.SubElement(entry, setting).text = value
            for choice in question["choices"]:
                fraction = "100" if choice["holds"] else "0"
                answer = ET.SubElement(entry, "answer", fraction=fraction, format="html")
                ET.SubElement(answer, "text").text = marked(choice["text"])
                feedback = ET.SubElement(answer, "feedback", format="html")
                ET.SubElement(feedback, "text").text = marked(choice["why"])
    ET.indent(quiz)
    return ET.tostring(quiz, encoding="unicode", xml_declaration=True)


def exam(questions: dict[str, list[dict]]) -> str:
    """A page to print: questions with lettered choices, then the key with the reasons."""
    sheets, key = [], []
    for chapter, asked in questions.items():
        items, answers = [], []
        for question in asked:
            choices = "".join(f"<li>{marked(each['text'])}</li>" for each in question["choices"])
            items.append(f'<li>{prompt(question)}<ol class="choices">{choices}</ol></li>')
            (place,) = (i for i, each in enumerate(question["choices"]) if each["holds"])
            why = marked(question["choices"][place]["why"])
            answers.append(f"<li><strong>{chr(ord('A') + place)}</strong> {why}</li>")
        sheets.append(f"<h2>{chapter}</h2><ol>{''.join(items)}</ol>")
        key.append(f"<h2>{chapter}</h2><ol>{''.join(answers)}</ol>")
    return EXAM.format(course=COURSE, questions="".join(sheets), key="".join(key))


def main(chapters: list[str]) -> None:
    """Write both files, or report what is missing."""
    try:
        questions = collect(ROOT / "book", CACHE)
    except ValueError as error:
        sys.exit(f"[questions] {error}")
    if unknown := set(chapters) - questions.keys():
        sys.exit(f"[questions] no questions in {sorted(unknown)}, only in {list(questions)}")
    wanted = {name: asked for name, asked in questions.items() if name in (chapters or questions)}
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in (("questions.xml", moodle(wanted)), ("exam.html", exam(wanted))):
        (FOLDER / name).write_text(text, encoding="utf-8")
    n = sum(map(len, wanted.values()))
    print(f"[questions] {n} questions of {len(wanted)} chapters, in {FOLDER.relative_to(ROOT)}/")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("chapters", nargs="*", help="slugs, as 05-rope; all by default")
    main(parser.parse_args().chapters)
