"""Read OpenDocument files: text, sheets and slides (``.odt``, ``.ods``, ``.odp``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deerflow.sandbox.converters.cells import letters, number, sheet, shown
from deerflow.sandbox.converters.markdown import Mark, comment, deleted, heading, joined, line, link, picture, table
from deerflow.sandbox.converters.parts import OfficeParts, all_text, local
from deerflow.sandbox.converters.program import Unreadable

TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
HREF = "{http://www.w3.org/1999/xlink}href"
MOST_COLUMNS, MOST_ROWS = 1024, 100_000
"""Cells of the same value that stand side by side are written once, with their number."""
_SKIPPED = (
    "tracked-changes",
    "forms",
    "sequence-decls",
    "desc",
    "title",
    "page-thumbnail",
    "annotation",
    "annotation-end",
    "shapes",
)


def read(data: bytes) -> Iterator[str]:
    """Yield the pieces of a document's text."""
    parts = OfficeParts(data)
    if b"encryption-data" in parts.bytes("META-INF/manifest.xml"):
        raise Unreadable("needs its password. Ask for it, or for a copy without one.")
    root = parts.xml("content.xml")
    if root is None or (body := root.find(f"{OFFICE}body")) is None:
        raise Unreadable("holds no text where OpenDocument keeps it.")
    yield from _Document(root, parts.xml("styles.xml"), parts).pieces(body)


class _Document:
    def __init__(self, root: Any, styles: Any, parts: OfficeParts) -> None:
        self._parts, self._styles = parts, styles
        self._ordered: set[tuple[str, int]] = set()
        self._hidden: set[str] = set()
        self._hidden_slides: set[str] = set()
        self._percent: set[str] = set()
        self._notes: list[str] = []
        self._boxes: list[str] = []
        self._slides, self._slide = sum(local(each) == "page" for each in root.iter()), 0
        self._deleted = {key: _removed(each) for each in root.iter(f"{TEXT}changed-region") if (key := _identity(each))}
        for tree in (root, styles):
            for each in tree.iter() if tree is not None else ():
                self._read_style(each)

    def pieces(self, body: Any) -> Iterator[str]:
        for text in dict.fromkeys(self._around()):
            yield f"{text}\n\n"
        yield from joined(self.blocks(body))
        for note in self._notes:
            yield f"{note}\n"

    def _read_style(self, element: Any) -> None:
        name = local(element)
        if name == "list-style":
            for level in element:
                if local(level) == "list-level-style-number":
                    self._ordered.add((_name(element), int(level.get(f"{TEXT}level") or 1)))
        elif name == "table-properties" and element.get(f"{TABLE}display") == "false":
            self._hidden.add(_name(element.getparent()))
        elif name == "drawing-page-properties" and any(
            key.endswith("}visibility") and value == "hidden" for key, value in element.attrib.items()
        ):
            self._hidden_slides.add(_name(element.getparent()))

    def _around(self) -> Iterator[str]:
        for each in self._styles.iter() if self._styles is not None else ():
            if each.tag in (f"{STYLE}header", f"{STYLE}footer"):
                text = " / ".join(line(block) for block in self.blocks(each))
                yield from [f"[{local(each)}: {text}]"] if text else []

    # blocks ---------------------------------------------------------------------------------------------------------

    def blocks(self, element: Any, style: str = "", depth: int = 0) -> Iterator[str]:
        for child in element:
            name = local(child)
            if name in ("h", "p"):
                text = self.inline(child).strip()
                boxes, self._boxes = self._boxes, []
                if text:
                    yield heading(int(child.get(f"{TEXT}outline-level") or 1), text) if name == "h" else text
                yield from boxes
            elif name == "list":
                yield from self._list(child, child.get(f"{TEXT}style-name") or style, depth)
            elif name == "table":
                yield from self._table(child)
            elif name == "page":
                self._slide += 1
                hidden = " (hidden)" if any(value in self._hidden_slides for value in child.attrib.values()) else ""
                yield Mark(f"slide {self._slide} of {self._slides}{hidden}")
                yield from self.blocks(child)
            elif name == "notes":
                if text := line(" ".join(self.blocks(child))):
                    yield f"[notes: {text}]"
            elif name in ("frame", "image", "object"):
                yield from self._frame(child)
            elif name and name not in _SKIPPED:
                yield from self.blocks(child, style, depth)

    def _list(self, element: Any, style: str, depth: int) -> Iterator[str]:
        count = 0
        for item in element:
            count += local(item) == "list-item"
            mark = f"{count}. " if (style, depth + 1) in self._ordered else "- "
            for at, text in enumerate(self.blocks(item, style, depth + 1)):
                nested = text.startswith("   " * (depth + 1))
                yield text if nested else "   " * depth + (mark if not at else "   ") + text

    def _frame(self, element: Any) -> Iterator[str]:
        kinds = {local(child): child for child in element}
        description = all_text(kinds["desc"], "desc") if "desc" in kinds else all_text(element, "title")
        if "image" in kinds and "object" not in kinds:
            address = kinds["image"].get(HREF) or ""
            yield picture(description, "" if address in self._parts.sizes else address)
        elif "object" in kinds:
            inside = (kinds["object"].get(HREF) or "").removeprefix("./")
            yield self._object(inside)
        else:
            yield from self.blocks(element)

    def _object(self, inside: str) -> str:
        """An equation, or what a chart or another object says."""
        root = self._parts.xml(f"{inside}/content.xml")
        if root is None:
            return "[object]"
        if "math" in str(root.tag).lower():
            return f"[equation: {all_text(root, 'annotation') or line(''.join(root.itertext()))}]"
        body = root.find(f".//{OFFICE}body")
        said = line("".join(body.itertext()))[:300] if body is not None else ""
        return f"[chart: {said}]" if said else "[object]"

    def _table(self, element: Any) -> Iterator[str]:
        rows: dict[int, list[str]] = {}
        notes: list[str] = []
        at = 0
        for row in element.iter(f"{TABLE}table-row"):
            if next(row.iterancestors(f"{TABLE}table")) is not element:
                continue
            cells: list[str] = []
            for cell in row:
                if local(cell) in ("table-cell", "covered-table-cell"):
                    text = self._cell(cell, f"{letters(len(cells) + 1)}{at + 1}", notes)
                    cells += [text] * min(_repeated(cell, "columns"), MOST_COLUMNS)
            while cells and not cells[-1]:
                cells.pop()
            count = _repeated(row, "rows")
            rows |= {at + more: cells for more in range(min(count, MOST_ROWS))} if cells else {}
            at += count
        if element.getparent().tag == f"{OFFICE}spreadsheet":
            hidden = element.get(f"{TABLE}style-name") in self._hidden
            yield sheet(element.get(f"{TABLE}name") or "", rows, notes, hidden=hidden).strip()
        elif rows:
            yield table(rows.values())

    def _cell(self, element: Any, place: str, notes: list[str]) -> str:
        said = [comment(all_text(note, "creator"), _said(note)) for note in element.findall(f"{OFFICE}annotation")]
        return " ".join(each for each in (self._shown(element, place, notes), *said) if each)

    def _shown(self, element: Any, place: str, notes: list[str]) -> str:
        text = "\n".join(self.blocks(element))
        kind = element.get(f"{OFFICE}value-type")
        if formula := element.get(f"{TABLE}formula"):
            notes.append(
                f"[formula at {place}: {formula.partition(':')[2] or formula}{'' if kind else ' (not calculated)'}]"
            )
        if kind in ("float", "currency") and (value := element.get(f"{OFFICE}value")):
            plain = shown(number(value))
            return text if text.lstrip("0") == plain and len(text) > len(plain) else plain
        if kind == "date" and (value := element.get(f"{OFFICE}date-value")):
            return value.removesuffix("T00:00:00").replace("T", " ")
        if kind == "boolean":
            return (element.get(f"{OFFICE}boolean-value") or text).upper()
        return text

    # within a paragraph ---------------------------------------------------------------------------------------------

    def inline(self, element: Any) -> str:
        return (element.text or "") + "".join(f"{self._one(child)}{child.tail or ''}" for child in element)

    def _one(self, element: Any) -> str:
        match local(element):
            case "s":
                return " " * min(int(element.get(f"{TEXT}c") or 1), 100)
            case "tab":
                return "\t"
            case "line-break":
                return "\n"
            case "a":
                return link(self.inline(element), element.get(HREF))
            case "note":
                return self._note(element)
            case "annotation":
                return comment(all_text(element, "creator"), _said(element))
            case "change":
                return deleted(self._deleted.get(element.get(f"{TEXT}change-id") or "", ""))
            case "change-start":
                return "{++"
            case "change-end":
                return "++}"
            case "frame":
                found = list(self._frame(element))
                self._boxes += [each for each in found if not each.startswith(("!", "[picture"))]
                return "".join(each for each in found if each.startswith(("!", "[picture")))
            case "custom-shape" | "text-box" | "g":
                self._boxes.extend(self.blocks(element))
                return ""
            case "annotation-end" | "tracked-changes" | "bookmark" | "":
                return ""
            case _:
                return self.inline(element)

    def _note(self, element: Any) -> str:
        self._notes.append("")
        at, body = len(self._notes), element.find(f"{TEXT}note-body")
        text = line(" ".join(self.blocks(body))) if body is not None else ""
        self._notes[at - 1] = f"[^{at}]: {text}"
        return f"[^{at}]"


def _said(note: Any) -> str:
    return " ".join("".join(each.itertext()) for each in note if local(each) in ("p", "list"))


def _name(element: Any) -> str:
    return next((value for key, value in element.attrib.items() if key.endswith("}name")), "")


def _identity(element: Any) -> str:
    return element.get(f"{TEXT}id") or element.get("{http://www.w3.org/XML/1998/namespace}id") or ""


def _removed(region: Any) -> str:
    return " ".join(
        "".join(each.itertext())
        for each in region.iter(f"{TEXT}p", f"{TEXT}h")
        if next(each.iterancestors(f"{TEXT}deletion"), None) is not None
    )


def _repeated(element: Any, what: str) -> int:
    count = element.get(f"{TABLE}number-{what}-repeated") or "1"
    return int(count) if count.isdigit() else 1
