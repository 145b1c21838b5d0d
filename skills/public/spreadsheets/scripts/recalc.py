"""Calculate a workbook's formulas with LibreOffice and store their results in the file, where viewers look for them."""

from __future__ import annotations

import argparse
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from lxml import etree
from openpyxl.formula import Tokenizer
from openpyxl.utils import column_index_from_string, range_boundaries
from openpyxl.utils.cell import coordinate_from_string

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
LINK = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
SECONDS = 150
CIRCLE = "#CIRCLE!"
MOST_ERRORS = 500
"""Formulas that are searched for circles: each is compared with each."""
ABSENT = "not calculated: LibreOffice is not installed here. Excel calculates when the file is opened."


class Uncalculated(Exception):
    """LibreOffice is missing or failed; says what follows."""


@dataclass(frozen=True)
class Value:
    """A formula with its result. ``kind``: n, str, b or e, as in the file; an empty one has no result."""

    formula: str
    kind: str = ""
    text: str = ""

    @property
    def number(self) -> float | None:
        return float(self.text) if self.kind == "n" and self.text else None

    @property
    def error(self) -> str:
        return self.text if self.kind == "e" else ""


def parsed(data: bytes) -> Any:
    return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True))


def sheets(book: ZipFile) -> Iterator[tuple[str, str]]:
    """Yield the name and the part of each sheet, in their order."""
    links = {one.get("Id"): one.get("Target") for one in parsed(book.read("xl/_rels/workbook.xml.rels"))}
    for sheet in parsed(book.read("xl/workbook.xml")).iter(f"{MAIN}sheet"):
        yield sheet.get("name"), posixpath.normpath(posixpath.join("/xl", links[sheet.get(LINK)]))[1:]


def values(path: Path) -> dict[str, Value]:
    """Return what the file stores for its formulas, by ``Sheet!A1``."""
    found: dict[str, Value] = {}
    with ZipFile(path) as book:
        for name, part in sheets(book):
            for cell in parsed(book.read(part)).iter(f"{MAIN}c"):
                formula = cell.find(f"{MAIN}f")
                if formula is not None:
                    text = cell.findtext(f"{MAIN}v") or ""
                    kind = cell.get("t", "n") if text else ""
                    found[f"{name}!{cell.get('r')}"] = Value(f"={formula.text or ''}", kind, text)
    return found


def changed(path: Path, target: Path, change: Callable[[str, Any], None]) -> None:
    """Write a copy of the workbook in which ``change(Sheet!A1, cell)`` has seen each formula; all else stays as it is."""
    with ZipFile(path) as book, ZipFile(target, "w") as copy:
        names = {part: name for name, part in sheets(book)}
        for entry in book.infolist():
            data = book.read(entry)
            if entry.filename in names:
                root = parsed(data)
                for cell in root.iter(f"{MAIN}c"):
                    if cell.find(f"{MAIN}f") is not None:
                        change(f"{names[entry.filename]}!{cell.get('r')}", cell)
                data = etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True)
            copy.writestr(entry, data)


def put(cell: Any, value: Value) -> None:
    """Give a cell this result; one without a kind takes the old one away."""
    for old in cell.findall(f"{MAIN}v"):
        cell.remove(old)
    cell.attrib.pop("t", None)
    if value.kind:
        etree.SubElement(cell, f"{MAIN}v").text = value.text
        if value.kind != "n":
            cell.set("t", value.kind)


def calculated(path: Path) -> dict[str, Value]:
    """Return all formulas with their results by ``Sheet!A1``. Raises Uncalculated."""
    office = shutil.which("soffice") or shutil.which("libreoffice")
    if office is None:
        raise Uncalculated(ABSENT)
    with tempfile.TemporaryDirectory() as folder:
        bare, made = Path(folder, f"bare{path.suffix}"), Path(folder, "made", "bare.xlsx")
        # Without old results, which LibreOffice would believe.
        changed(path, bare, lambda place, cell: put(cell, Value("")))
        command = [office, "--headless", f"-env:UserInstallation=file://{folder}/profile", "--convert-to", "xlsx"]
        try:
            done = subprocess.run(
                [*command, "--outdir", str(made.parent), str(bare)], capture_output=True, text=True, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            raise Uncalculated(f"not calculated: LibreOffice took more than {SECONDS} seconds.") from None
        if not made.is_file():
            raise Uncalculated(f"not calculated: LibreOffice failed: {(done.stderr or done.stdout).strip()[-300:]}")
        results = values(made)
    found = {place: result_of(value, results.get(place)) for place, value in values(path).items()}
    # LibreOffice writes circles as #VALUE!.
    circles = circular({place: one.formula for place, one in found.items() if one.error == "#VALUE!"})
    return found | {place: Value(found[place].formula, "e", CIRCLE) for place in circles}


def circular(formulas: dict[str, str]) -> set[str]:
    """Return the formulas that depend on themselves, or on one that does."""
    left = {place: named(place, formula) for place, formula in list(formulas.items())[:MOST_ERRORS]}
    places = {place: spot(place) for place in left}
    while True:
        ends = [
            place
            for place, areas in left.items()
            if not any(inside(places[other], area) for area in areas for other in left)
        ]
        if not ends:
            return {*left}
        for place in ends:
            del left[place]


def spot(place: str) -> tuple[str, int, int]:
    sheet, _, cell = place.rpartition("!")
    column, row = coordinate_from_string(cell)
    return sheet.lower(), column_index_from_string(column), row


def named(place: str, formula: str) -> list[tuple[str, Any]]:
    """Return the sheets and ranges that a formula names."""
    found: list[tuple[str, Any]] = []
    for token in Tokenizer(formula).items:
        sheet, _, area = token.value.rpartition("!")
        if token.subtype == "RANGE" and re.fullmatch(r"\$?[A-Z]{0,3}\$?\d*(:\$?[A-Z]{0,3}\$?\d*)?", area):
            own = place.rpartition("!")[0]
            found.append(
                ((sheet.strip("'").replace("''", "'") or own).lower(), range_boundaries(area.replace("$", "")))
            )
    return found


def inside(place: tuple[str, int, int], area: tuple[str, Any]) -> bool:
    sheet, column, row = place
    left, top, right, bottom = area[1]
    return sheet == area[0] and (left or 0) <= column <= (right or column) and (top or 0) <= row <= (bottom or row)


def result_of(value: Value, result: Value | None) -> Value:
    """Return the formula as it was written with LibreOffice's result, in Excel's words."""
    if result is None or result.kind not in ("n", "str", "b", "e"):
        return Value(value.formula)
    return Value(value.formula, result.kind, "#VALUE!" if result.text.startswith("Err:") else result.text)


def recalculate(path: Path) -> list[str]:
    """Store the results in the file; returns what is wrong with its formulas. Raises Uncalculated."""
    results = calculated(path)
    # Excel has no such value, and what LibreOffice does not know may be known to Excel.
    kept = {place: one for place, one in results.items() if one.error not in (CIRCLE, "#NAME?")}
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, path.name)
        changed(path, target, lambda place, cell: put(cell, kept.get(place, Value(""))))
        shutil.copyfile(target, path)
    return [f"{place} {one.formula} gives {one.error}" for place, one in results.items() if one.error]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workbook", type=Path, help=".xlsx or .xlsm; its results are replaced, all else stays")
    options = parser.parse_args()
    try:
        problems = recalculate(options.workbook)
    except Uncalculated as error:
        print(f"{options.workbook}: {error}")
        return 3
    except (BadZipFile, KeyError) as error:
        print(f"{options.workbook} is no .xlsx workbook: {error}", file=sys.stderr)
        return 2
    print(f"{options.workbook}: {len(values(options.workbook)):,} formulas calculated")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
