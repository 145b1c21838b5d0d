"""Ask questions about tables in files with SQL: CSV, TSV, JSON, Parquet and workbooks, each file or sheet a table."""

from __future__ import annotations

import argparse
import datetime
import json
import math
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
from columns import quoted
from sources import AnalysisError, Origin, load
from tabulate import tabulate

NUMBERS = (
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "HUGEINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL",
)


def shown(value: Any) -> str:
    """A value as it is: all digits of integers and of exact numbers, fifteen of others, never a power of ten."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        plain = f"{value:.15g}"
        return plain if "e" not in plain or abs(value) < 1e-9 else format(Decimal(plain), "f")
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    return " ".join(str(value).split()) if isinstance(value, str) else str(value)


def table(rows: Sequence[Sequence[Any]], names: Sequence[str]) -> str:
    """Rows as a Markdown table."""
    right = [
        any(row[at] is not None for row in rows)
        and all(isinstance(row[at], int | float | Decimal | None) and not isinstance(row[at], bool) for row in rows)
        for at in range(len(names))
    ]
    cells = [[shown(cell).replace("|", "\\|") for cell in row] for row in rows]
    aligned = ["right" if each else "left" for each in right]
    return tabulate(
        cells,
        [name.replace("|", "\\|") for name in names],
        tablefmt="pipe",
        disable_numparse=True,
        colalign=aligned if cells else None,
    )


def types_of(connection: duckdb.DuckDBPyConnection, name: str) -> dict[str, str]:
    return {row[0]: row[1] for row in connection.execute(f"DESCRIBE {quoted(name)}").fetchall()}


def one(connection: duckdb.DuckDBPyConnection, what: str, name: str) -> tuple[Any, ...]:
    found = connection.execute(f"SELECT {what} FROM {quoted(name)}").fetchone()
    assert found is not None
    return found


def notes_of(origin: Origin) -> str:
    return "".join(f"\n! {note}" for note in origin.notes)


def inspect(connection: duckdb.DuckDBPyConnection, origins: dict[str, Origin]) -> str:
    """Columns, types, gaps and first rows of every table, and what was odd in reading it."""
    parts = []
    for name, origin in origins.items():
        rows = []
        for column, kind in types_of(connection, name).items():
            at = quoted(column)
            missing, distinct, example = one(
                connection,
                f"count(*) - count({at}), count(DISTINCT {at}), any_value({at}) FILTER (WHERE {at} IS NOT NULL)",
                name,
            )
            rows.append([column, kind, missing, distinct, shown(example)[:40]])
        (count,) = one(connection, "count(*)", name)
        (different,) = (
            one(connection, f"(SELECT count(*) FROM (SELECT DISTINCT * FROM {quoted(name)}))" if rows else "0", name)
            if count
            else (0,)
        )
        note = f", {count - different} of them repeated" if count > different else ""
        first = connection.execute(f"SELECT * FROM {quoted(name)} LIMIT 3").fetchall()
        parts.append(
            f"## {name}  ({origin.name}; {count:,} rows{note}){notes_of(origin)}\n\n"
            f"{table(rows, ['column', 'type', 'missing', 'distinct', 'example'])}\n\nFirst rows:\n\n{table(first, [row[0] for row in rows])}"
        )
    return "\n\n".join(parts)


def summary(connection: duckdb.DuckDBPyConnection, name: str) -> str:
    """Numbers with quartiles and outliers, texts with their most frequent values, dates with their span."""
    numbers, times, texts = [], [], []
    kinds = types_of(connection, name)
    (size,) = one(connection, "count(*)", name)
    for column, kind in kinds.items():
        at = quoted(column)
        if kind.partition("(")[0] in NUMBERS:
            count, *facts = one(
                connection,
                f"count({at}), min({at}), quantile_cont({at}, 0.25), median({at}), quantile_cont({at}, 0.75), max({at}), avg({at}), "
                f"stddev_samp({at}::DOUBLE), sum({at})",
                name,
            )
            outside = 0
            if count:
                low, high = float(facts[1]), float(facts[3])
                reach = 1.5 * (high - low)
                (outside,) = one(
                    connection,
                    f"count(*) FILTER (WHERE {at}::DOUBLE < {low - reach!r} OR {at}::DOUBLE > {high + reach!r})",
                    name,
                )
            numbers.append([column, count, *facts, outside])
        elif kind.startswith(("DATE", "TIMESTAMP")):
            times.append(
                [column, *one(connection, f"count({at}), min({at}), max({at}), count(DISTINCT {at}::DATE)", name)]
            )
        else:
            distinct, missing = one(connection, f"count(DISTINCT {at}), count(*) - count({at})", name)
            top = connection.execute(
                f"SELECT {at}, count(*) AS n FROM {quoted(name)} WHERE {at} IS NOT NULL GROUP BY 1 ORDER BY n DESC, 1 LIMIT 8"
            ).fetchall()
            said = ", ".join(f"{shown(value)[:40]} ({count:,})" for value, count in top)
            texts.append(f"- **{column}**: {distinct:,} different values, {missing:,} missing. {said}")
    parts = [f"## {name}: {size:,} rows, {len(kinds)} columns"]
    if numbers:
        parts.append(
            table(numbers, ["column", "n", "min", "25%", "median", "75%", "max", "mean", "std", "sum", "outliers"])
        )
    if times:
        parts.append(table(times, ["column", "n", "first", "last", "days"]))
    parts += texts
    strong = correlations(connection, name, [row[0] for row in numbers])
    if strong:
        parts.append("Strong correlations (|r|): " + "; ".join(strong[:10]))
    return "\n\n".join(parts)


def correlations(connection: duckdb.DuckDBPyConnection, name: str, columns: Sequence[str]) -> list[str]:
    pairs = [(a, b) for i, a in enumerate(columns) for b in columns[i + 1 :]][:500]
    if not pairs:
        return []
    found = one(connection, ", ".join(f"corr({quoted(a)}::DOUBLE, {quoted(b)}::DOUBLE)" for a, b in pairs), name)
    return [
        f"{a} ~ {b}: {abs(r):.2f}" for (a, b), r in zip(pairs, found, strict=True) if r is not None and abs(r) >= 0.6
    ]


def export(rows: Sequence[Sequence[Any]], names: Sequence[str], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    writers = {".csv": as_csv, ".json": as_json, ".md": as_markdown, ".xlsx": as_workbook, ".parquet": as_parquet}
    if path.suffix not in writers:
        raise AnalysisError(f"--output: {path.suffix or 'no ending'} is not one of {' '.join(writers)}")
    writers[path.suffix](rows, names, path)


def as_csv(rows: Sequence[Sequence[Any]], names: Sequence[str], path: Path) -> None:
    import csv

    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([cell if isinstance(cell, str) else shown(cell) for cell in row] for row in rows)


def as_json(rows: Sequence[Sequence[Any]], names: Sequence[str], path: Path) -> None:
    def plain(value: Any) -> Any:
        if isinstance(value, Decimal):
            # As many digits as programs that read JSON keep; more of them as text.
            return float(value) if len(value.as_tuple().digits) <= 15 else shown(value)
        return value.isoformat() if isinstance(value, datetime.date | datetime.time) else str(value)

    records = [
        dict(zip(names, (plain(cell) if isinstance(cell, Decimal) else cell for cell in row), strict=True))
        for row in rows
    ]
    path.write_text(json.dumps(records, ensure_ascii=False, indent=1, default=plain), "utf-8")


def as_markdown(rows: Sequence[Sequence[Any]], names: Sequence[str], path: Path) -> None:
    path.write_text(table(rows, names) + "\n", "utf-8")


def as_parquet(rows: Sequence[Sequence[Any]], names: Sequence[str], path: Path) -> None:
    import pandas as pd

    duckdb.from_df(pd.DataFrame([list(row) for row in rows], columns=list(names))).write_parquet(str(path))


def as_workbook(rows: Sequence[Sequence[Any]], names: Sequence[str], path: Path) -> None:
    """A sheet with a filter, a fixed header and columns as wide as what they hold."""
    import xlsxwriter

    with xlsxwriter.Workbook(str(path), {"default_date_format": "yyyy-mm-dd", "remove_timezone": True}) as book:
        sheet, bold, moment = (
            book.add_worksheet("Result"),
            book.add_format({"bold": True}),
            book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"}),
        )
        scales = {scale: book.add_format({"num_format": "0." + "0" * scale}) for scale in range(1, 13)}
        sheet.write_row(0, 0, names, bold)
        for r, row in enumerate(rows, 1):
            for c, cell in enumerate(row):
                if isinstance(cell, bool) or cell is None:
                    sheet.write(r, c, cell)
                elif isinstance(cell, Decimal) and len(cell.as_tuple().digits) <= 15:
                    sheet.write_number(r, c, float(cell), scales.get(-int(cell.as_tuple().exponent)))
                elif (isinstance(cell, int) and abs(cell) < 10**15) or (
                    isinstance(cell, float) and math.isfinite(cell)
                ):
                    sheet.write_number(r, c, cell)
                elif isinstance(cell, datetime.datetime):
                    sheet.write_datetime(r, c, cell, moment)
                elif isinstance(cell, datetime.date):
                    sheet.write_datetime(r, c, cell)
                else:
                    sheet.write_string(r, c, cell if isinstance(cell, str) else shown(cell))
        sheet.freeze_panes(1, 0)
        if names:
            sheet.autofilter(0, 0, len(rows), len(names) - 1)
        sheet.autofit()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["inspect", "summary", "query"])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--sql", help="one or more statements; the result of the last is shown")
    parser.add_argument("--table", help="for summary; without it, all tables")
    parser.add_argument("--output", type=Path, help="write the result as .csv .json .md .xlsx .parquet")
    parser.add_argument("--rows", type=int, default=50, help="at most so many rows are shown (%(default)s)")
    parser.add_argument(
        "--header", type=int, help="rows above the names of columns; without it, each sheet's own are looked for"
    )
    options = parser.parse_args()
    connection = duckdb.connect()
    try:
        origins = load(connection, options.files, options.header)
        connection.execute("SET enable_external_access = false")
        if options.action == "inspect":
            print(inspect(connection, origins))
            return 0
        if options.action == "summary":
            if options.table and options.table not in origins:
                raise AnalysisError(f"--table: there is no {options.table}; there are {', '.join(origins)}")
            print("\n\n".join(summary(connection, name) for name in ([options.table] if options.table else origins)))
            print("".join(notes_of(origin) for origin in origins.values()))
            return 0
        if not options.sql:
            raise AnalysisError(f"query needs --sql; tables: {', '.join(origins)}")
        done = connection.execute(options.sql)
        names, rows = [column[0] for column in done.description or ()], done.fetchall()
        if options.output:
            export(rows, names, options.output)
            print(f"{len(rows):,} rows in {options.output}\n")
        print(table(rows[: options.rows], names))
        if len(rows) > options.rows:
            print(f"\n{len(rows) - options.rows:,} more rows; use --output, or ask for fewer")
        print("".join(notes_of(origin) for origin in origins.values()))
    except (AnalysisError, duckdb.Error, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
