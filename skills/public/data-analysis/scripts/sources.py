"""Tables of files as text in DuckDB: each file or sheet with its own header, in any encoding, nothing lost on the way."""

from __future__ import annotations

import csv
import datetime
import io
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
from columns import Typist, quoted

TEXT = (".csv", ".tsv", ".txt")
NATIVE = {".json": "read_json", ".jsonl": "read_json", ".ndjson": "read_json", ".parquet": "read_parquet"}
OPENPYXL, CALAMINE = (".xlsx", ".xlsm"), (".xls", ".xlsb", ".ods")
KNOWN = (*TEXT, *NATIVE, *OPENPYXL, *CALAMINE)
LOOKED_AT = 40
"""Rows among which a sheet's header is looked for."""
TOTAL = re.compile(r"(?:grand )?total|sum|summe|gesamt\w*|合计|总计|小计|итого", re.IGNORECASE)


class AnalysisError(Exception):
    """Something in the request cannot be done; says what to change."""


@dataclass
class Origin:
    """The origin of a table, and notes on how it was read."""

    name: str
    notes: list[str] = field(default_factory=list)


def load(connection: duckdb.DuckDBPyConnection, files: list[Path], header: int | None) -> dict[str, Origin]:
    """Make a table of each file or sheet. ``header``: rows above the column names; None: each sheet's own."""
    taken: set[str] = set()
    origins: dict[str, Origin] = {}
    for path in files:
        if not path.is_file():
            raise AnalysisError(f"{path} does not exist")
        suffix = path.suffix.lower()
        if suffix in NATIVE:
            name = table_name(path.stem, taken)
            connection.execute(f"CREATE TABLE {quoted(name)} AS SELECT * FROM {NATIVE[suffix]}(?)", [str(path)])
            origins[name] = Origin(path.name)
        elif suffix in TEXT:
            name = table_name(path.stem, taken)
            origins[name] = _text_file(connection, path, name, header or 0)
        elif suffix in (*OPENPYXL, *CALAMINE):
            sheets = [each for each in _sheets(path) if any(map(_filled, each.rows))]
            for sheet in sheets:
                name = table_name(path.stem if len(sheets) == 1 else f"{path.stem}_{sheet.name}", taken)
                origins[name] = _sheet(connection, path, sheet, name, header)
        else:
            raise AnalysisError(f"{path.name}: give {' '.join(KNOWN)} files")
    return origins


def table_name(text: str, taken: set[str]) -> str:
    """A name that SQL takes without quotes: of the file, or of the file and its sheet."""
    name = re.sub(r"\W+", "_", text.strip().lower(), flags=re.UNICODE).strip("_") or "table"
    if name[0].isdigit():
        name = f"t_{name}"
    unique, number = name, 2
    while unique in taken:
        unique, number = f"{name}_{number}", number + 1
    taken.add(unique)
    return unique


def _typed(connection: duckdb.DuckDBPyConnection, name: str, origin: Origin, *, semicolons: bool = False) -> Origin:
    """Make the table of the raw one, whose cells are all text."""
    columns = Typist(connection, "raw", semicolons=semicolons).columns()
    chosen = ", ".join(f"{column.expression} AS {quoted(column.name)}" for column in columns)
    connection.execute(f"CREATE TABLE {quoted(name)} AS SELECT {chosen} FROM raw")
    connection.execute("DROP TABLE raw")
    origin.notes += [f"{column.name}: {column.note}" for column in columns if column.note]
    return origin


# text -----------------------------------------------------------------------------------------------------------------


def _text_file(connection: duckdb.DuckDBPyConnection, path: Path, name: str, skip: int) -> Origin:
    origin = Origin(path.name)
    text, encoding = decoded(path.read_bytes())
    if encoding != "UTF-8":
        origin.notes.append(f"read as {encoding}")
    if not text.strip():
        raise AnalysisError(f"{path.name} is empty")
    mark = _delimiter(text, path.suffix.lower())
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=mark))
    rows = [row for row in rows[skip:] if any(cell.strip() for cell in row)]
    width, lengths = len(rows[0]), Counter(map(len, rows))
    if odd := sum(count for length, count in lengths.items() if length != width):
        origin.notes.append(f"{odd} rows have more or fewer cells than the header")
    _raw(connection, rows[0], rows[1:])
    return _typed(connection, name, origin, semicolons=mark == ";")


def decoded(data: bytes) -> tuple[str, str]:
    """Return a text and the name of its encoding."""
    try:
        from text_encodings import recognised  # of the tool image
    except ImportError:
        for codec in ("utf-8-sig", "gb18030", "cp1252"):
            try:
                return data.decode(codec), "UTF-8" if codec == "utf-8-sig" else codec.upper()
            except UnicodeDecodeError:
                continue
        return data.decode("latin-1"), "ISO-8859-1"
    found = recognised(data)
    return found.decode(data).encode("utf-8", "replace").decode(), found.name


def _delimiter(text: str, suffix: str) -> str:
    if suffix == ".tsv":
        return "\t"
    try:
        return csv.Sniffer().sniff(text[:20_000], ",;\t|").delimiter
    except csv.Error:
        first = text.lstrip().partition("\n")[0]
        return max(",;\t|", key=first.count)


def _raw(connection: duckdb.DuckDBPyConnection, header: Sequence[Any], rows: Sequence[Sequence[str | None]]) -> None:
    """Make the table ``raw`` of texts, by a file: the quickest way in."""
    width = max(len(header), *map(len, rows)) if rows else len(header)
    names = _names([*header, *[""] * (width - len(header))])
    with tempfile.NamedTemporaryFile("w", suffix=".csv", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        for row in rows:
            writer.writerow(
                [*("" if cell is None else cell.replace("\0", "") for cell in row), *[""] * (width - len(row))]
            )
        file.flush()
        types = "{" + ", ".join(f"'{at}': 'VARCHAR'" for at in range(width)) + "}"
        named = ", ".join(f"{quoted(str(at))} AS {quoted(name)}" for at, name in enumerate(names))
        connection.execute(
            f"CREATE TABLE raw AS SELECT {named} FROM read_csv(?, header=false, auto_detect=false, delim=',', quote='\"', escape='\"', "
            f"new_line='\\r\\n', max_line_size=16777216, columns={types})",
            [file.name],
        )


def _names(header: Sequence[Any]) -> list[str]:
    names: list[str] = []
    for index, cell in enumerate(header):
        name = " ".join(str(cell if cell is not None else "").split()) or f"column_{index + 1}"
        lower = {each.lower() for each in names}
        names.append(name if name.lower() not in lower else f"{name}_{index + 1}")
    return names


# workbooks ------------------------------------------------------------------------------------------------------------


@dataclass
class Sheet:
    """The cells of a sheet, and which columns hold formulas whose results are not stored."""

    name: str
    rows: list[list[Any]]
    formulas: Counter[int] = field(default_factory=Counter)


def _sheets(path: Path) -> Iterator[Sheet]:
    if path.suffix.lower() in CALAMINE:
        from python_calamine import CalamineWorkbook

        book = CalamineWorkbook.from_path(str(path))
        for name in book.sheet_names:
            yield Sheet(
                name,
                [[None if cell == "" else cell for cell in row] for row in book.get_sheet_by_name(name).to_python()],
            )
        return
    from openpyxl import load_workbook

    values, formulas = load_workbook(path, data_only=True), load_workbook(path)
    for sheet in values.worksheets:
        found = Sheet(sheet.title, [list(row) for row in sheet.iter_rows(values_only=True)])
        for at, row in enumerate(formulas[sheet.title].iter_rows()):
            for cell in row:
                if cell.data_type == "f" and found.rows[at][cell.column - 1] is None:
                    found.formulas[cell.column - 1] += 1
        yield found


def _filled(row: Sequence[Any]) -> int:
    return sum(cell is not None and str(cell).strip() != "" for cell in row)


def _sheet(connection: duckdb.DuckDBPyConnection, path: Path, sheet: Sheet, name: str, header: int | None) -> Origin:
    origin = Origin(f"{path.name}, sheet {sheet.name}")
    at = min(header, len(sheet.rows) - 1) if header is not None else header_of(sheet.rows)
    above = [str(cell) for row in sheet.rows[:at] for cell in row if cell is not None]
    if above:
        origin.notes.append(f"rows above the header are left out: {'; '.join(above)[:120]!r}")
    body = [row for row in sheet.rows[at + 1 :] if _filled(row)]
    width = max(map(len, [sheet.rows[at], *body]))
    head = [*sheet.rows[at], *[None] * (width - len(sheet.rows[at]))]
    used = [c for c in range(width) if head[c] is not None or any(c < len(row) and row[c] is not None for row in body)]
    lost = [c for c in used if sheet.formulas[c] and not any(c < len(row) and row[c] is not None for row in body)]
    names = _names([head[c] for c in used])
    if lost:
        said = ", ".join(names[used.index(c)] for c in lost)
        origin.notes.append(
            f"{len(used)} columns, {said} left out: formulas without results. Calculate it in SQL, or have the file opened and saved in Excel"
        )
    some = [
        f"{names[used.index(c)]}: {sheet.formulas[c]} formulas without results are missing"
        for c in used
        if sheet.formulas[c] and c not in lost
    ]
    if outside := sum(count for c, count in sheet.formulas.items() if c not in used):
        some.append(f"{outside} formulas without results stand outside of the table")
    kept = [c for c in used if c not in lost]
    if body and TOTAL.fullmatch(str(next((cell for cell in body[-1] if cell is not None), "")).strip(" :")):
        origin.notes.append("the last row is a total: leave it out of sums")
    _raw(
        connection,
        [names[used.index(c)] for c in kept],
        [[_said(row[c]) if c < len(row) else None for c in kept] for row in body],
    )
    origin.notes += some
    return _typed(connection, name, origin)


def header_of(rows: Sequence[Sequence[Any]]) -> int:
    """Return the row with the names of columns: the first one that is about as wide as the table and says words."""
    sizes = Counter(size for row in rows[: 5 * LOOKED_AT] if (size := _filled(row)))
    usual = max(sizes, key=lambda size: (sizes[size], size))
    wide = max(usual, 1)
    for at, row in enumerate(rows[:LOOKED_AT]):
        filled = [cell for cell in row if cell is not None and str(cell).strip()]
        words = sum(isinstance(cell, str) for cell in filled)
        if len(filled) >= max(1, 0.6 * wide) and words >= 0.5 * len(filled):
            return at
    return next((at for at, row in enumerate(rows) if _filled(row)), 0)


def _said(value: Any) -> str | None:
    """A cell as text that loses nothing: fifteen digits of a number, days as ISO has them."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return format(Decimal(f"{value:.15g}"), "f") if value == value and abs(value) < 1e300 else None
    if isinstance(value, datetime.datetime):
        rounded = (value + datetime.timedelta(microseconds=500)).replace(microsecond=0, tzinfo=None)
        return rounded.date().isoformat() if rounded.time() == datetime.time() else rounded.isoformat(" ")
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else str(value)
