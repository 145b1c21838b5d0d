"""Draw a chart, or several, from a JSON specification as PNG, SVG or PDF."""

from __future__ import annotations

import argparse
import io
import json
import math
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import kinds_basic  # noqa: F401
import kinds_more  # noqa: F401
import kinds_relations  # noqa: F401
import kinds_special  # noqa: F401
import matplotlib.pyplot as plt
import pandas as pd
from kinds import KINDS, SpecError
from style import Style, headings


def load(source: Any, base: Path) -> pd.DataFrame:
    """Rows: a list of objects, an object of columns, or a file (CSV, TSV, JSON, Parquet, a workbook: ``book.xlsx#Sheet``)."""
    if isinstance(source, str):
        path, sheet = base / source, ""
        if not path.is_file() and "#" in source:
            source, _, sheet = source.rpartition("#")
            path = base / source
        if not path.is_file():
            raise SpecError(f"data: {path} does not exist")
        readers = {
            ".csv": read_text,
            ".tsv": read_text,
            ".json": pd.read_json,
            ".parquet": read_parquet,
            **dict.fromkeys((".xlsx", ".xlsm", ".xls", ".xlsb", ".ods"), lambda path: read_sheet(path, sheet)),
        }
        if path.suffix not in readers:
            raise SpecError(f"data: {path.suffix} is not one of {' '.join(readers)}")
        return readers[path.suffix](path)
    if isinstance(source, list | dict) and source:
        return pd.DataFrame(source)
    raise SpecError('data: give rows [{"month": "Jan", "sales": 3}], columns {"month": [...]}, or the path of a file')


def read_parquet(path: Path) -> pd.DataFrame:
    import duckdb

    return duckdb.read_parquet(str(path)).df()


def read_sheet(path: Path, name: str) -> pd.DataFrame:
    """Read a sheet with its own header, which may stand below a title; without a name the first one that holds a table."""
    book = pd.ExcelFile(path, engine="calamine")
    if name and name not in book.sheet_names:
        raise SpecError(f"data: {path.name} has no sheet {name!r}. There are {', '.join(map(str, book.sheet_names))}")
    for each in [name] if name else book.sheet_names:
        rows = [row for row in book.parse(each, header=None, dtype=object).to_numpy().tolist() if filled(row)]
        if not rows:
            continue
        usual = max(map(filled, rows))
        heads = (at for at, row in enumerate(rows) if filled(row) >= 0.6 * usual and says_words(row))
        at = next(heads, 0)
        names = [f"column_{c + 1}" if pd.isna(cell) else str(cell).strip() for c, cell in enumerate(rows[at])]
        return pd.DataFrame(rows[at + 1 :], columns=names).infer_objects()
    raise SpecError(f"data: {path.name} holds no table")


def filled(row: list[Any]) -> int:
    return sum(not pd.isna(cell) and str(cell).strip() != "" for cell in row)


def says_words(row: list[Any]) -> bool:
    return sum(isinstance(cell, str) for cell in row) >= 0.5 * filled(row)


def read_text(path: Path) -> pd.DataFrame:
    """A CSV or TSV file in any encoding; where cells are parted by semicolons, decimals have a comma."""
    data = path.read_bytes()
    try:
        from text_encodings import text_of  # of the tool image

        text = text_of(data).removeprefix("\ufeff")
    except ImportError:
        text = data.decode("utf-8-sig", "replace")
    first = text.lstrip().partition("\n")[0]
    mark = "\t" if path.suffix == ".tsv" else max(",;\t", key=first.count)
    european = mark == ";" and re.search(r"(?:^|;)-?\d+,\d+(?:;|\r?$)", text, re.MULTILINE) is not None
    return pd.read_csv(
        io.StringIO(text), sep=mark, decimal="," if european else ".", thousands="." if european else None
    )


def draw_into(axes: Any, spec: dict[str, Any], base: Path) -> None:
    kind = KINDS.get(spec.get("type", ""))
    if kind is None:
        raise SpecError(f"type: {spec.get('type')!r} is not one of {' '.join(sorted(KINDS))}")
    frame = load(spec.get("data"), base)
    for name in kind.needs:
        if not spec.get(name):
            raise SpecError(f"{spec['type']} needs {name}: the name of a column. The data has {list(frame.columns)}")
    for name in (*kind.needs, *kind.takes):
        asked = spec.get(name)
        for column in asked if isinstance(asked, list) else [asked] if isinstance(asked, str) else []:
            if name in kind.columns and column not in frame.columns:
                raise SpecError(f"{name}: there is no column {column!r}. The data has {list(frame.columns)}")
    if not len(frame):
        raise SpecError("data: there are no rows")
    for name in kind.needs:
        for column in spec[name] if isinstance(spec[name], list) else [spec[name]]:
            if name in kind.columns and frame[column].isna().all():
                raise SpecError(f"{name}: the column {column!r} is empty, or holds formulas that were never calculated")
    kind.draw(axes, frame, spec, Style(spec))


def size_of(spec: dict[str, Any]) -> tuple[float, float]:
    width, height = spec.get("size", [9.6, 5.6])
    return float(width), float(height)


def render(spec: dict[str, Any], base: Path) -> plt.Figure:
    """A figure of one chart, or of ``panels`` in a grid."""
    style = Style(spec)
    style.use()
    panels = spec.get("panels")
    if panels is None:
        figure = plt.figure(figsize=size_of(spec))
        bottom, top = headings(figure, spec, style)
        polar = KINDS[spec["type"]].polar if spec.get("type") in KINDS else False
        draw_into(figure.add_subplot(projection="polar" if polar else None), spec, base)
        figure.tight_layout(rect=(0.012, bottom, 0.988, top))
        return figure
    columns = int(spec.get("columns", 2 if len(panels) > 1 else 1))
    rows = math.ceil(len(panels) / columns)
    size = spec.get("size", [6.2 * columns, 4.2 * rows + 0.8])
    figure = plt.figure(figsize=tuple(map(float, size)))
    bottom, top = headings(figure, spec, style)
    for index, panel in enumerate(panels):
        inherited = {key: spec[key] for key in ("theme", "palette", "data") if key in spec}
        panel = {**inherited, **panel}
        polar = KINDS[panel["type"]].polar if panel.get("type") in KINDS else False
        axes = figure.add_subplot(rows, columns, index + 1, projection="polar" if polar else None)
        draw_into(axes, panel, base)
        if panel.get("title"):
            above = 20 if axes.get_legend() is not None or polar else 8
            axes.set_title(panel["title"], loc="left", size=12, weight="bold", color=style.ink, pad=above)
    figure.tight_layout(rect=(0.012, bottom, 0.988, top), h_pad=2.2, w_pad=2.2)
    return figure


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "spec", nargs="?", help="a JSON file with one specification or a list of them; - reads standard input"
    )
    parser.add_argument("-o", "--output", help="file (.png .svg .pdf), or a directory where the file holds a list")
    parser.add_argument("--format", nargs="+", choices=["png", "svg", "pdf"], default=["png"], help="with a directory")
    parser.add_argument("--dpi", type=int, default=160)
    parser.add_argument("--list", action="store_true", help="list the types with their fields")
    options = parser.parse_args()
    if options.list:
        for name, kind in sorted(KINDS.items()):
            optional = f"  [{' '.join(kind.takes)}]" if kind.takes else ""
            print(f"{name}: {' '.join(kind.needs)}{optional}\n    {kind.about}")
        return 0
    if not options.spec or not options.output:
        parser.error("give a specification and --output")
    text = sys.stdin.read() if options.spec == "-" else Path(options.spec).read_text("utf-8")
    base = Path.cwd() if options.spec == "-" else Path(options.spec).absolute().parent
    try:
        specs = json.loads(text)
    except ValueError as error:
        print(f"The specification is no JSON: {error}", file=sys.stderr)
        return 2
    target = Path(options.output)
    several = isinstance(specs, list)
    if not several and target.suffix.lower() not in (".png", ".svg", ".pdf"):
        parser.error("--output must end in .png, .svg or .pdf")
    for index, spec in enumerate(specs if several else [specs]):
        name = str(spec.get("name") or f"{index + 1:02}-{spec.get('type', 'panels')}")
        files = [target / f"{name}.{kind}" for kind in options.format] if several else [target]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                figure = render(spec, base)
            except SpecError as error:
                print(f"{name}: {error}", file=sys.stderr)
                return 2
            for file in files:
                file.parent.mkdir(parents=True, exist_ok=True)
                figure.savefig(file, dpi=options.dpi)
                print(file)
            plt.close(figure)
        if missing := {str(warning.message) for warning in caught if "missing from" in str(warning.message)}:
            print(f"{name}: no font here has these letters: {'; '.join(sorted(missing))[:300]}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
