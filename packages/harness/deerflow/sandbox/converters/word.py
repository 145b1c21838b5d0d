"""Read Word documents (``.docx`` and the like): text as displayed, with all that stands around it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from deerflow.sandbox.converters.charts import chart
from deerflow.sandbox.converters.equations import latex
from deerflow.sandbox.converters.markdown import comment, deleted, heading, inserted, joined, line, link, picture, table
from deerflow.sandbox.converters.numbering import Numbering
from deerflow.sandbox.converters.parts import RELATION, OfficeParts, local
from deerflow.sandbox.converters.program import Unreadable

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
MOST_COLUMNS = 200
_SYMBOLS = {"F0FE": "☒", "F0A8": "☐", "F06F": "☐", "F0FC": "✓"}
"""Of the font Wingdings, which forms use."""
_HOLDERS = (
    "sdt",
    "sdtContent",
    "ins",
    "smartTag",
    "customXml",
    "body",
    "document",
    "moveTo",
    "AlternateContent",
    "Choice",
)
_SKIPPED = ("Fallback", "instrText", "pPr", "rPr", "tbl", "tabs", "sdtPr", "del", "moveFrom")


def read(data: bytes) -> Iterator[str]:
    """Yield the pieces of a document's text."""
    parts = OfficeParts(data)
    main = parts.main("document", "word/document.xml")
    if parts.xml(main) is None:
        raise Unreadable("holds no text where Word keeps it.")
    yield from _Word(parts, main).pieces()


class _Word:
    def __init__(self, parts: OfficeParts, main: str) -> None:
        self._parts, self._main, self._folder = parts, main, main.rpartition("/")[0]
        self._relations = parts.relations(main)
        self._numbers = Numbering(parts.xml(f"{self._folder}/numbering.xml"))
        self._levels: dict[str | None, int | None] = {}
        self._style_numbers: dict[str | None, Any] = {}
        self._read_styles(parts.xml(f"{self._folder}/styles.xml"))
        self._others = {
            kind: {each.get(f"{W}id"): each for each in self._elements(f"{kind}s.xml")}
            for kind in ("footnote", "endnote", "comment")
        }
        self._notes: list[str] = []
        self._boxes: list[str] = []

    def pieces(self) -> Iterator[str]:
        body = self._parts.xml(self._main)
        for text in dict.fromkeys(self._around(body)):
            yield f"{text}\n\n"
        yield from joined(self.blocks(body))
        for note in self._notes:
            yield f"{note}\n"

    def _elements(self, name: str) -> Any:
        root = self._parts.xml(f"{self._folder}/{name}")
        return root if root is not None else ()

    def _read_styles(self, root: Any) -> None:
        for style in root.iter(f"{W}style") if root is not None else ():
            own, based = style.get(f"{W}styleId"), _value(style, "basedOn")
            name = (_value(style, "name") or "").lower()
            numbered = re.match(r"heading (\d)", name)
            level = int(numbered[1]) if numbered else 1 if name == "title" else _outline(style.find(f"{W}pPr"))
            self._levels[own] = level or self._levels.get(based)
            number = style.find(f"{W}pPr/{W}numPr")
            self._style_numbers[own] = number if number is not None else self._style_numbers.get(based)

    def _around(self, body: Any) -> Iterator[str]:
        """Headers and footers, once each."""
        for reference in body.iter(f"{W}headerReference", f"{W}footerReference"):
            part = self._relations.get(reference.get(f"{RELATION}id") or "")
            root = self._parts.xml(part) if part else None
            text = " / ".join(line(block) for block in self.blocks(root)) if root is not None else ""
            if text:
                yield f"[{local(reference)[:6]}: {text}]"

    # blocks ---------------------------------------------------------------------------------------------------------

    def blocks(self, element: Any) -> Iterator[str]:
        for child in element:
            name = local(child)
            if name == "p":
                yield from self._paragraph(child)
            elif name == "tbl":
                if text := self._table(child):
                    yield text
            elif name in _HOLDERS:
                yield from self.blocks(child)

    def _paragraph(self, element: Any) -> Iterator[str]:
        outer, self._boxes = self._boxes, []
        text = re.sub(r"[ \t]+\n", "\n", self.inline(element)).strip()
        boxes, self._boxes = self._boxes, outer
        about = element.find(f"{W}pPr")
        style = _value(about, "pStyle")
        level = _outline(about) or self._levels.get(style)
        number = about.find(f"{W}numPr") if about is not None else None
        label, depth = (
            self._numbers.next(number if number is not None else self._style_numbers.get(style)) if text else ("", 0)
        )
        if text:
            text = f"{label} {text}" if label else text
            if level:
                yield heading(level, text.removeprefix("- "))
            else:
                yield "   " * depth + text if label else text
        yield from boxes

    def _table(self, element: Any) -> str:
        rows: list[list[str]] = []
        for row in element.iter(f"{W}tr"):
            if next(row.iterancestors(f"{W}tbl")) is not element:
                continue
            cells: list[str] = []
            for cell in row.iter(f"{W}tc"):
                if next(cell.iterancestors(f"{W}tr")) is not row:
                    continue
                about = cell.find(f"{W}tcPr")
                span = int(_value(about, "gridSpan") or 1)
                merged = about.find(f"{W}vMerge") if about is not None else None
                below = merged is not None and merged.get(f"{W}val") != "restart"
                cells += ["" if below else "\n".join(self.blocks(cell)), *[""] * (min(span, MOST_COLUMNS) - 1)]
            rows.append(cells)
        if element.getparent().tag == f"{W}tc":
            return " ; ".join(" , ".join(line(cell) for cell in row) for row in rows)
        return table(rows)

    # within a paragraph -----------------------------------------------------------------------------------------------

    def inline(self, element: Any) -> str:
        return "".join(self._pieces_of(element))

    def _pieces_of(self, element: Any) -> Iterable[str]:
        for child in element:
            name = local(child)
            if name in ("t", "delText"):
                yield child.text or ""
            elif name in ("tab", "ptab"):
                yield "\t"
            elif name in ("br", "cr"):
                yield "\n"
            elif name == "noBreakHyphen":
                yield "-"
            elif name == "sym":
                yield _SYMBOLS.get((child.get(f"{W}char") or "").upper(), "•")
            elif name in ("del", "moveFrom"):
                yield deleted(self.inline(child))
            elif name in ("ins", "moveTo"):
                yield inserted(self.inline(child))
            elif name == "hyperlink":
                yield link(self.inline(child), self._relations.get(child.get(f"{RELATION}id") or ""))
            elif name in ("footnoteReference", "endnoteReference"):
                yield self._note(name.removesuffix("Reference"), child.get(f"{W}id"))
            elif name == "commentReference":
                if (found := self._others["comment"].get(child.get(f"{W}id"))) is not None:
                    yield comment(found.get(f"{W}author") or "", " ".join(self.blocks(found)))
            elif name == "oMath":
                yield f" ${latex(child).strip() or '[equation]'}$ "
            elif name in ("drawing", "pict", "object"):
                yield self._drawing(child)
            elif name == "txbxContent":
                self._boxes.extend(self.blocks(child))
            elif name not in _SKIPPED:
                yield from self._pieces_of(child)

    def _note(self, kind: str, key: str | None) -> str:
        found = self._others[kind].get(key)
        if found is None:
            return ""
        self._notes.append("")
        number = len(self._notes)
        self._notes[number - 1] = f"[^{number}]: {line(' '.join(self.blocks(found)))}"
        return f"[^{number}]"

    def _drawing(self, element: Any) -> str:
        """A picture, a chart, or boxes of text."""
        before = len(self._boxes)
        for box in element.iter(f"{W}txbxContent"):
            if next((up for up in box.iterancestors() if local(up) in ("txbxContent", "Fallback")), None) is None:
                self._boxes.extend(self.blocks(box))
        description = next((each.get("descr") or "" for each in element.iter() if local(each) == "docPr"), "")
        found = list[str]()
        for each in element.iter():
            if local(each) in ("blip", "imagedata"):
                target = self._relations.get(each.get(f"{RELATION}link") or "", "")
                found.append(picture(description or each.get("title") or "", target))
            elif local(each) == "chart" and (part := self._relations.get(each.get(f"{RELATION}id") or "")):
                root = self._parts.xml(part)
                self._boxes.append(chart(root) if root is not None else "[chart]")
        return "".join(found) or (picture(description) if description and len(self._boxes) == before else "")


def _value(element: Any, name: str) -> str | None:
    found = element.find(W + name) if element is not None else None
    return found.get(f"{W}val") if found is not None else None


def _outline(about: Any) -> int | None:
    level = _value(about, "outlineLvl")
    return int(level) + 1 if level and level.isdigit() and int(level) < 9 else None
