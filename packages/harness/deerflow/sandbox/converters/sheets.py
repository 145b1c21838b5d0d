"""Read Excel workbooks: ``.xlsx`` and the like by walking their XML, ``.xls`` and ``.xlsb`` by a library for these."""

# pyright: reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import Any

from deerflow.sandbox.converters.cells import letters, number, sheet, shown
from deerflow.sandbox.converters.charts import chart
from deerflow.sandbox.converters.markdown import comment, line, link
from deerflow.sandbox.converters.parts import RELATION, OfficeParts, all_text, local
from deerflow.sandbox.converters.program import Unreadable

MOST_NOTES = 100
"""Formulas and the like that are listed below a sheet."""
MOST_COLUMNS = 16_384
LARGE = 16 << 20
"""Bytes of a sheet that is only read by the quicker library, which knows values alone."""
_REFERENCE = re.compile(r"([A-Z]{1,3})(\d{1,7})")


def read(data: bytes) -> Iterator[str]:
    """Yield the sheets of an ``.xlsx``, ``.xlsm`` or ``.xltx``."""
    parts = OfficeParts(data)
    if any(size > LARGE for name, size in parts.sizes.items() if "worksheets/" in name):
        yield "[The sheets are large: formulas, comments and links are left out.]\n\n"
        yield from read_binary(data)
    else:
        yield from _Workbook(parts).sheets()


def read_binary(data: bytes) -> Iterator[str]:
    """Yield the sheets of an ``.xls`` or ``.xlsb``."""
    import python_calamine

    try:
        book = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(data))
    except python_calamine.CalamineError as error:
        if "password" in str(error).lower() or "encrypt" in str(error).lower():
            raise Unreadable("needs its password. Ask for it, or for a copy without one.") from None
        raise
    for about in book.sheets_metadata:
        if "WorkSheet" not in str(about.typ):
            continue
        rows = book.get_sheet_by_name(about.name).to_python(skip_empty_area=False)
        hidden = "Hidden" in str(about.visible)
        yield sheet(about.name, {at: [*map(shown, row)] for at, row in enumerate(rows)}, hidden=hidden)


class _Workbook:
    def __init__(self, parts: OfficeParts) -> None:
        self._parts = parts
        self._main = parts.main("workbook", "xl/workbook.xml")
        self._root = parts.xml(self._main)
        if self._root is None:
            raise Unreadable("holds no sheets where Excel keeps them.")
        self._relations = parts.relations(self._main)
        about = next((each for each in self._root.iter() if local(each) == "workbookPr"), None)
        self._since_1904 = about is not None and about.get("date1904") in ("1", "true")

    def sheets(self) -> Iterator[str]:
        for each in self._root.iter():
            if local(each) != "sheet":
                continue
            part = self._relations.get(each.get(f"{RELATION}id") or "", "")
            if part in self._parts.sizes:
                yield self._sheet(each.get("name") or "", part, hidden=each.get("state") in ("hidden", "veryHidden"))

    def _sheet(self, name: str, part: str, *, hidden: bool) -> str:
        reader = _Sheet(self, self._parts.relations(part))
        if self._parts.sizes[part]:
            reader.walk(self._parts.bytes(part))
        notes = reader.notes()
        for target in reader.relations.values():
            if "comments" in target.lower() and target.endswith(".xml"):
                self._comment(target, reader)
            elif "/drawings/" in target and target.endswith(".xml"):
                charts = [found for found in self._parts.relations(target).values() if "/charts/chart" in found]
                notes += [chart(root) for found in charts if (root := self._parts.xml(found)) is not None]
        return sheet(name, reader.rows, notes, hidden=hidden)

    def _comment(self, part: str, reader: _Sheet) -> None:
        root = self._parts.xml(part)
        if root is None:
            return
        authors = [each.text or "" for each in root.iter() if local(each) == "author"]
        for each in root.iter():
            if local(each) == "comment":
                at = each.get("authorId") or ""
                author = authors[int(at)] if at.isdigit() and int(at) < len(authors) else ""
                text = line(all_text(each)).removeprefix(f"{author}:").strip()
                reader.add(each.get("ref") or "", lambda cell, note=comment(author, text): f"{cell} {note}".strip())

    @cached_property
    def texts(self) -> list[str]:
        """Texts that cells share."""
        part = next((target for target in self._relations.values() if target.lower().endswith("sharedstrings.xml")), "")
        root = self._parts.xml(part)
        return [_rich(each) for each in root if local(each) == "si"] if root is not None else []

    @cached_property
    def formats(self) -> list[str]:
        """The number format of each style of cells."""
        from openpyxl.styles.numbers import BUILTIN_FORMATS

        part = next((target for target in self._relations.values() if target.endswith("styles.xml")), "")
        root = self._parts.xml(part)
        own: dict[str, str] = {}
        for each in root.iter() if root is not None else ():
            if local(each) == "numFmt":
                own[each.get("numFmtId")] = each.get("formatCode") or ""
        for each in root if root is not None else ():
            if local(each) == "cellXfs":
                ids = [style.get("numFmtId") or "0" for style in each]
                return [own.get(at) or BUILTIN_FORMATS.get(int(at) if at.isdigit() else 0, "General") for at in ids]
        return []

    def moment(self, value: float, form: str) -> object:
        """Return the meaning of a number in a format of dates; itself where the calendar has no such day."""
        from openpyxl.utils.datetime import CALENDAR_MAC_1904, CALENDAR_WINDOWS_1900, from_excel

        kind = _kind_of(form)
        if kind == "number":
            return value
        epoch = CALENDAR_MAC_1904 if self._since_1904 else CALENDAR_WINDOWS_1900
        try:
            found = from_excel(value, epoch, timedelta=kind == "duration")
        except (ValueError, OverflowError):
            return value
        return value if found is None else found


@cache
def _kind_of(form: str) -> str:
    """Return the kind of the numbers in a format: ``number``, ``date`` or ``duration``."""
    from openpyxl.styles.numbers import is_date_format, is_timedelta_format

    return "number" if not is_date_format(form) else "duration" if is_timedelta_format(form) else "date"


class _Sheet:
    """The cells of one sheet."""

    def __init__(self, book: _Workbook, relations: dict[str, str]) -> None:
        self._book, self.relations = book, relations
        self.rows: dict[int, list[str]] = {}
        self._formulas: list[str] = []
        self._formula_count = 0
        self._shared: dict[str, tuple[str, str]] = {}
        self._merged: list[str] = []
        self._hidden: list[str] = []

    def walk(self, data: bytes) -> None:
        from lxml import etree  # type: ignore[attr-defined]

        tags = [f"{{*}}{name}" for name in ("row", "col", "mergeCell", "hyperlink")]
        for _, element in etree.iterparse(
            io.BytesIO(data), tag=tags, resolve_entities=False, no_network=True, recover=True
        ):
            name = local(element)
            if name == "row":
                self._row(element)
            elif name == "col" and element.get("hidden") in ("1", "true"):
                self._hidden.append(f"columns {_span(element)}")
            elif name == "mergeCell":
                self._merged.append(element.get("ref") or "")
            elif name == "hyperlink" and (target := self.relations.get(element.get(f"{RELATION}id") or "")):
                self.add(element.get("ref") or "", lambda cell, target=target: link(cell, target))
            element.clear()

    def notes(self) -> list[str]:
        found: list[str] = []
        for name, each in (("formulas", self._formulas), ("merged cells", self._merged), ("hidden", self._hidden)):
            more = (self._formula_count if name == "formulas" else len(each)) - min(len(each), MOST_NOTES)
            if each:
                found.append(f"[{name}: {'; '.join(each[:MOST_NOTES])}{f'; and {more} more' if more else ''}]")
        return found

    def _row(self, element: Any) -> None:
        at = element.get("r") or ""
        place = int(at) if at.isdigit() else max(self.rows, default=0) + 1
        if element.get("hidden") in ("1", "true"):
            self._hidden.append(f"row {place}")
        cells: list[str] = []
        for each in element:
            if local(each) == "c":
                found = _REFERENCE.fullmatch(each.get("r") or "")
                column = _column(found[1]) if found else len(cells)
                if column < MOST_COLUMNS:
                    cells += [""] * (column + 1 - len(cells))
                    cells[column] = self._cell(each, found[0] if found else f"{letters(column + 1)}{place}")
        self.rows[place] = cells

    def _cell(self, element: Any, place: str) -> str:
        parts = {local(child): child for child in element}
        kind, raw = element.get("t") or "n", parts["v"].text or "" if "v" in parts else ""
        style = element.get("s") or "0"
        formats = self._book.formats
        form = formats[int(style)] if style.isdigit() and int(style) < len(formats) else "General"
        if kind == "inlineStr":
            text = _rich(parts["is"]) if "is" in parts else ""
        elif kind == "s":
            texts = self._book.texts
            text = texts[int(raw)] if raw.isdigit() and int(raw) < len(texts) else ""
        elif kind == "b":
            text = shown(raw == "1") if raw else ""
        elif kind in ("str", "e", "d"):
            text = raw.removesuffix("T00:00:00") if kind == "d" else raw
        else:
            value = number(raw) if raw else None
            meant = self._book.moment(value, form) if isinstance(value, int | float) else value
            text = shown(meant, form)
        return self._with_formula(parts["f"], place, text, stored=bool(raw)) if "f" in parts else text

    def _with_formula(self, element: Any, place: str, text: str, *, stored: bool) -> str:
        formula, group = element.text or "", element.get("si")
        if group is not None and formula:
            self._shared[group] = formula, place
        elif group in self._shared and len(self._formulas) < MOST_NOTES:
            from openpyxl.formula.translate import Translator

            origin = self._shared[group]
            formula = Translator(f"={origin[0]}", origin=origin[1]).translate_formula(place).removeprefix("=")
        self._formula_count += 1
        if len(self._formulas) < MOST_NOTES:
            self._formulas.append(f"{place} ={formula}" + " (not calculated)" * (not stored))
        return text if stored else f"={formula} (not calculated)"

    def add(self, place: str, change: Callable[[str], str]) -> None:
        """Change what a cell says, which may be beyond all that hold something."""
        found = _REFERENCE.match(place)
        if not found or (column := _column(found[1])) >= MOST_COLUMNS:
            return
        cells = self.rows.setdefault(int(found[2]), [])
        cells += [""] * (column + 1 - len(cells))
        cells[column] = change(cells[column])


def _rich(element: Any) -> str:
    """A text with formats in it, without the readings of Japanese words."""
    pieces = [each.text or "" for each in element.iter() if local(each) == "t" and local(each.getparent()) != "rPh"]
    return "".join(pieces).replace("_x000D_", "")


@cache
def _column(letters: str) -> int:
    at = 0
    for letter in letters:
        at = at * 26 + ord(letter) - 64
    return at - 1


def _span(element: Any) -> str:
    ends = [element.get(name) or "" for name in ("min", "max")]
    return ":".join(dict.fromkeys(letters(int(end)) for end in ends if end.isdigit()))
