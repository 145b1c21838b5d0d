"""Ask questions about tables in files with SQL: CSV, TSV, JSON, Parquet and Excel, each file or sheet a table."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

import duckdb
import pandas as pd

TEXT_READERS = {
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".txt": "read_csv",
    ".json": "read_json",
    ".jsonl": "read_json",
    ".ndjson": "read_json",
    ".parquet": "read_parquet",
}
EXCEL = (".xlsx", ".xlsm")


class AnalysisError(Exception):
    """Something in the request cannot be done; says what to change."""


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


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def tidy(frame: pd.DataFrame) -> pd.DataFrame:
    """A sheet without empty rows and columns, with unique names, and numbers where all values are numbers."""
    frame = frame.dropna(how="all").dropna(axis=1, how="all")
    names: list[str] = []
    for index, column in enumerate(frame.columns):
        name = str(column).strip()
        name = f"column_{index + 1}" if not name or name.startswith("Unnamed:") else name
        names.append(name if name not in names else f"{name}_{index + 1}")
    frame.columns = names
    return frame.convert_dtypes(convert_string=False, convert_boolean=False).infer_objects()


def load(connection: duckdb.DuckDBPyConnection, files: list[Path], header: int) -> dict[str, str]:
    """Make a table of each file or sheet; returns where each comes from."""
    taken: set[str] = set()
    origins: dict[str, str] = {}
    for path in files:
        if not path.is_file():
            raise AnalysisError(f"{path} does not exist")
        suffix = path.suffix.lower()
        if suffix in EXCEL:
            sheets = pd.read_excel(path, sheet_name=None, header=header, engine="openpyxl")
            for sheet, frame in sheets.items():
                frame = tidy(frame)
                if frame.empty:
                    continue
                name = table_name(path.stem if len(sheets) == 1 else f"{path.stem}_{sheet}", taken)
                connection.register(
                    "incoming", frame.astype({c: "string" for c in frame if frame[c].map(type).nunique() > 2})
                )
                connection.execute(f"CREATE TABLE {quoted(name)} AS SELECT * FROM incoming")
                connection.unregister("incoming")
                origins[name] = f"{path.name}, sheet {sheet}"
        elif suffix in TEXT_READERS:
            name = table_name(path.stem, taken)
            reader = TEXT_READERS[suffix]
            options = ", sample_size=-1" if reader == "read_csv" else ""
            options += f", skip={header}" if reader == "read_csv" and header else ""
            try:
                connection.execute(f"CREATE TABLE {quoted(name)} AS SELECT * FROM {reader}(?{options})", [str(path)])
            except duckdb.Error:
                if reader != "read_csv":
                    raise
                frame = tidy(pd.read_csv(path, sep=None, engine="python", encoding_errors="replace", header=header))
                connection.register("incoming", frame)
                connection.execute(f"CREATE TABLE {quoted(name)} AS SELECT * FROM incoming")
            origins[name] = path.name
        else:
            raise AnalysisError(
                f"{path.name}: give {' '.join([*TEXT_READERS, *EXCEL])} files; save .xls as .xlsx first"
            )
    return origins


def inspect(connection: duckdb.DuckDBPyConnection, origins: dict[str, str]) -> str:
    """Columns, types, gaps and first rows of every table."""
    parts = []
    for name, origin in origins.items():
        frame = connection.execute(f"SELECT * FROM {quoted(name)}").df()
        types = dict(
            connection.execute(
                "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ?", [name]
            ).fetchall()
        )
        columns = pd.DataFrame(
            {
                "column": frame.columns,
                "type": [types[column] for column in frame.columns],
                "missing": [int(frame[column].isna().sum()) for column in frame.columns],
                "distinct": [frame[column].astype(str).nunique() for column in frame.columns],
                "example": [str(next(iter(frame[column].dropna()), ""))[:40] for column in frame.columns],
            }
        )
        doubles = int(frame.astype(str).duplicated().sum())
        note = f", {doubles} of them repeated" if doubles else ""
        parts.append(
            f"## {name}  ({origin}; {len(frame):,} rows{note})\n\n{columns.to_markdown(index=False)}\n\nFirst rows:\n\n{frame.head(3).to_markdown(index=False)}"
        )
    return "\n\n".join(parts)


def summary(connection: duckdb.DuckDBPyConnection, table: str) -> str:
    """Numbers with quartiles and outliers, texts with their most frequent values, dates with their span."""
    frame = connection.execute(f"SELECT * FROM {quoted(table)}").df()
    numbers, texts, times = [], [], []
    for column in frame.columns:
        values = frame[column].dropna()
        if pd.api.types.is_bool_dtype(values) or not len(values):
            texts.append((column, values))
        elif pd.api.types.is_numeric_dtype(values):
            low, high = values.quantile([0.25, 0.75])
            reach = 1.5 * (high - low)
            outside = int(((values < low - reach) | (values > high + reach)).sum())
            facts = (values.min(), low, values.median(), high, values.max(), values.mean(), values.std(), values.sum())
            numbers.append([column, len(values), *(f"{float(fact):,.6g}" for fact in facts), outside])
        elif pd.api.types.is_datetime64_any_dtype(values):
            times.append([column, len(values), values.min(), values.max(), values.dt.date.nunique()])
        else:
            texts.append((column, values))
    parts = [f"## {table}: {len(frame):,} rows, {len(frame.columns)} columns"]
    if numbers:
        names = ["column", "n", "min", "25%", "median", "75%", "max", "mean", "std", "sum", "outliers"]
        parts.append(pd.DataFrame(numbers, columns=names).to_markdown(index=False))
    if times:
        parts.append(pd.DataFrame(times, columns=["column", "n", "first", "last", "days"]).to_markdown(index=False))
    for column, values in texts:
        counts = values.astype(str).value_counts()
        top = ", ".join(f"{value[:40]} ({count:,})" for value, count in counts.head(8).items())
        parts.append(f"- **{column}**: {len(counts):,} different values, {frame[column].isna().sum():,} missing. {top}")
    pairs = frame.select_dtypes("number").corr().abs() if len(numbers) > 1 else pd.DataFrame()
    strong = [
        f"{a} ~ {b}: {pairs.loc[a, b]:.2f}"
        for i, a in enumerate(pairs)
        for b in list(pairs)[i + 1 :]
        if pairs.loc[a, b] >= 0.6
    ]
    if strong:
        parts.append("Strong correlations (|r|): " + "; ".join(strong[:10]))
    return "\n\n".join(parts)


def export(frame: pd.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    writers = {
        ".csv": lambda: frame.to_csv(path, index=False),
        ".json": lambda: path.write_text(
            json.dumps(json.loads(frame.to_json(orient="records", date_format="iso")), ensure_ascii=False, indent=1),
            "utf-8",
        ),
        ".md": lambda: path.write_text(frame.to_markdown(index=False) + "\n", "utf-8"),
        ".xlsx": lambda: excel(frame, path),
        ".parquet": lambda: duckdb.from_df(frame).write_parquet(str(path)),
    }
    if path.suffix not in writers:
        raise AnalysisError(f"--output: {path.suffix or 'no ending'} is not one of {' '.join(writers)}")
    writers[path.suffix]()


def excel(frame: pd.DataFrame, path: Path) -> None:
    """A sheet with a filter, a fixed header and columns as wide as what they hold."""
    with pd.ExcelWriter(path, engine="xlsxwriter") as writer:
        frame.to_excel(writer, index=False, sheet_name="Result")
        sheet = writer.sheets["Result"]
        sheet.freeze_panes(1, 0)
        if len(frame.columns):
            sheet.autofilter(0, 0, len(frame), len(frame.columns) - 1)
        sheet.autofit()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["inspect", "summary", "query"])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--sql", help="one or more statements; the result of the last is shown")
    parser.add_argument("--table", help="for summary; without it, all tables")
    parser.add_argument("--output", type=Path, help="write the result as .csv .json .md .xlsx .parquet")
    parser.add_argument("--rows", type=int, default=50, help="at most so many rows are shown (%(default)s)")
    parser.add_argument("--header", type=int, default=0, help="rows above the header")
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
            return 0
        if not options.sql:
            raise AnalysisError(f"query needs --sql; tables: {', '.join(origins)}")
        frame = connection.execute(options.sql).df()
        if options.output:
            export(frame, options.output)
            print(f"{len(frame):,} rows in {options.output}\n")
        print(frame.head(options.rows).to_markdown(index=False))
        if len(frame) > options.rows:
            print(f"\n{len(frame) - options.rows:,} more rows; use --output, or ask for fewer")
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
