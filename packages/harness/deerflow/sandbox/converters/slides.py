"""Read PowerPoint presentations (``.pptx``): a mark for each slide, its text, tables, charts and notes."""

# pyright: reportMissingImports=false

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from deerflow.sandbox.converters.charts import chart
from deerflow.sandbox.converters.equations import latex
from deerflow.sandbox.converters.markdown import Mark, comment, heading, line, link, picture, table
from deerflow.sandbox.converters.parts import RELATION, OfficeParts, all_text, local, parsed

GROUP = 6
"""A shape that holds others."""
MOST_DEPTH = 30


def read(data: bytes) -> Iterator[str]:
    """Yield the slides of a presentation."""
    import pptx

    OfficeParts(data)  # for its limits
    deck = pptx.Presentation(io.BytesIO(data))
    for number, slide in enumerate(deck.slides, 1):
        hidden = " (hidden)" if slide._element.get("show") == "0" else ""
        yield Mark(f"slide {number} of {len(deck.slides)}{hidden}")
        for text in _shapes(slide.shapes, slide.shapes.title, slide.part, 0):
            yield f"{text}\n\n"
        if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame) is not None and frame.text.strip():
            yield f"[notes: {frame.text.strip()}]\n\n"
        for text in _comments(slide.part):
            yield f"{text}\n\n"


def _shapes(shapes: Any, title: Any, part: Any, depth: int) -> Iterator[str]:
    for shape in shapes:
        if shape.shape_type == GROUP and depth < MOST_DEPTH:
            yield from _shapes(shape.shapes, title, part, depth + 1)
        elif getattr(shape, "has_table", False):
            yield table([cell.text for cell in row.cells] for row in shape.table.rows)
        elif getattr(shape, "has_chart", False):
            yield chart(shape.chart._chartSpace)
        elif shape.has_text_frame:
            is_title = title is not None and shape._element is title._element
            text = _text(shape, part, listed=shape.is_placeholder and not is_title)
            if text:
                yield heading(1, text) if is_title else text
        else:
            yield from _other(shape, part)


def _text(shape: Any, part: Any, *, listed: bool) -> str:
    lines: list[str] = []
    for paragraph in shape.text_frame.paragraphs:
        text = "".join(_run(each, part) for each in paragraph._p)
        lines.append("   " * paragraph.level + "- " * (listed and bool(text.strip())) + text)
    return "\n".join(lines).strip()


def _run(element: Any, part: Any) -> str:
    name = local(element)
    if name == "br":
        return "\n"
    if name in ("oMath", "oMathPara", "m", "AlternateContent"):
        found = next((each for each in element.iter() if local(each) == "oMath"), None)
        return f" ${latex(found)}$ " if found is not None else ""
    if name not in ("r", "fld"):
        return ""
    text = all_text(element)
    target = next((each.get(f"{RELATION}id") for each in element.iter() if local(each) == "hlinkClick"), None)
    relation = part.rels.get(target) if target else None
    return link(text, relation.target_ref if relation is not None and relation.is_external else None)


def _other(shape: Any, part: Any) -> Iterator[str]:
    """A picture, a drawing of boxes (SmartArt), or an object."""
    element = shape._element
    about = next((each for each in element.iter() if local(each) == "cNvPr"), None)
    description = (about.get("descr") or "") if about is not None else ""
    blip = next((each for each in element.iter() if local(each) == "blip"), None)
    linked = part.rels.get(blip.get(f"{RELATION}link")) if blip is not None and blip.get(f"{RELATION}link") else None
    if blip is not None or description:
        yield picture(description, linked.target_ref if linked is not None else "")
    for each in element.iter():
        if local(each) == "relIds" and (key := each.get(f"{RELATION}dm")) in part.rels:
            root = parsed(part.rels[key].target_part.blob)
            texts = [line(all_text(body)) for body in root.iter() if local(body) == "p"] if root is not None else []
            yield "\n".join(f"- {text}" for text in texts if text)
    if text := line(all_text(element)):
        yield text


def _comments(part: Any) -> Iterator[str]:
    authors: dict[str, str] = {}
    for relation in part.package.main_document_part.rels.values():
        if "commentAuthors" in relation.reltype or relation.reltype.endswith("/authors"):
            root = parsed(relation.target_part.blob)
            authors |= {each.get("id") or "": each.get("name") or "" for each in root} if root is not None else {}
    for relation in part.rels.values():
        if relation.reltype.endswith("/comments"):
            root = parsed(relation.target_part.blob)
            for each in root.iter() if root is not None else ():
                if local(each) == "cm":
                    yield comment(authors.get(each.get("authorId") or "", ""), all_text(each) or all_text(each, "text"))
