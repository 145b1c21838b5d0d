"""Make an Excel workbook from a JSON description: values, formulas, styles, charts, rules; LibreOffice calculates it."""

from __future__ import annotations

import argparse
import datetime
import json
import re
import sys
from pathlib import Path
from typing import Any

import xlsxwriter
from recalc import Uncalculated, recalculate
from xlsxwriter.utility import xl_cell_to_rowcol, xl_rowcol_to_cell

FORMATS = {
    "money": "#,##0.00",
    "whole": "#,##0",
    "percent": "0.0%",
    "date": "yyyy-mm-dd",
    "text": "@",
    "number": "#,##0.00",
    "year": "0",
}


class SpecError(ValueError):
    """The description cannot become a workbook; says where."""


def cells_of(sheet: dict[str, Any]) -> dict[str, Any]:
    """All cells of a sheet by name. ``{row}`` in a formula is the number of its own row, ``{first}``/``{last}`` of the data."""
    found: dict[str, Any] = {}
    title = 2 if sheet.get("title") else 0
    if title:
        found["A1"] = sheet["title"]
    columns = sheet.get("columns", [])
    rows = sheet.get("rows", [])
    first, last = title + 2, title + 1 + len(rows)
    for c, column in enumerate(columns):
        found[xl_rowcol_to_cell(title, c)] = column["name"]
        for r, row in enumerate(rows):
            value = (
                row[c]
                if isinstance(row, list) and c < len(row)
                else row.get(column["name"])
                if isinstance(row, dict)
                else None
            )
            if value is None and column.get("formula"):
                value = column["formula"]
            if isinstance(value, str) and value.startswith("="):
                value = (
                    value.replace("{row}", str(first + r)).replace("{first}", str(first)).replace("{last}", str(last))
                )
            found[xl_rowcol_to_cell(title + 1 + r, c)] = value
        if (total := column.get("total")) is not None and rows:
            letter = re.sub(r"\d", "", xl_rowcol_to_cell(0, c))
            formula = (
                f"={total.upper()}({letter}{first}:{letter}{last})"
                if re.fullmatch(r"[A-Za-z]+", total) and total.islower()
                else total
            )
            found[xl_rowcol_to_cell(title + 1 + len(rows), c)] = (
                formula.replace("{first}", str(first)).replace("{last}", str(last)).replace("{row}", str(last + 1))
            )
    for name, value in sheet.get("cells", {}).items():
        found[name.upper()] = value["value"] if isinstance(value, dict) else value
    return found


def write(spec: dict[str, Any], path: Path) -> None:
    """Write the workbook; its formulas have no results yet."""
    sheets = spec.get("sheets") or []
    if not sheets:
        raise SpecError("sheets: give at least one")
    for sheet in sheets:
        if re.search(r"[\[\]:*?/\\]", sheet.get("name", "")) or not 0 < len(sheet.get("name", "")) <= 31:
            raise SpecError(f"sheets: {sheet.get('name')!r} is no name; 1 to 31 letters without [ ] : * ? / \\")
    contents = {sheet["name"]: cells_of(sheet) for sheet in sheets}
    path.parent.mkdir(parents=True, exist_ok=True)
    book = xlsxwriter.Workbook(str(path))
    color = "#" + str(spec.get("color", "1F4E79")).lstrip("#")
    font = {"font_name": spec.get("font", "Calibri"), "font_size": 11}
    styles: dict[str, Any] = {}

    def style(**wanted: Any) -> Any:
        key = json.dumps(wanted, sort_keys=True)
        return styles.setdefault(key, book.add_format({**font, "valign": "vcenter", **wanted}))

    for sheet in sheets:
        page = book.add_worksheet(sheet["name"])
        page.hide_gridlines(2)
        columns, rows = sheet.get("columns", []), sheet.get("rows", [])
        title = 2 if sheet.get("title") else 0
        inputs = {name.upper() for name in sheet.get("inputs", [])}
        for name, value in contents[sheet["name"]].items():
            row, column = xl_cell_to_rowcol(name)
            own = sheet.get("cells", {}).get(name) if name in sheet.get("cells", {}) else None
            settings: dict[str, Any] = {}
            kind = (own or {}).get("format") if isinstance(own, dict) else None
            in_table = columns and column < len(columns) and title < row <= title + len(rows) + 1
            if in_table and own is None:
                kind = kind or columns[column].get("format")
            if kind:
                settings["num_format"] = FORMATS.get(kind, kind)
            if row == 0 and title and name == "A1":
                settings = {"bold": True, "font_size": 16, "font_color": color}
            elif columns and row == title and column < len(columns) and own is None:
                right = columns[column].get("format") not in (None, "text", "date")
                settings = {
                    "bold": True,
                    "font_color": "#FFFFFF",
                    "bg_color": color,
                    "align": "right" if right else "left",
                    "text_wrap": True,
                }
            elif in_table and row == title + len(rows) + 1 and own is None:
                settings |= {"bold": True, "top": 1, "top_color": color}
            elif in_table and own is None:
                settings |= {"bottom": 4, "bottom_color": "#D5DBE1"}
                if columns[column].get("input"):
                    settings["font_color"] = "#0000C0"
            if isinstance(own, dict):
                settings |= {
                    key: own[key]
                    for key in ("bold", "italic", "font_color", "bg_color", "align", "text_wrap")
                    if key in own
                }
            if name in inputs:
                settings |= {"font_color": "#0000C0", "bg_color": "#FFF9E5"}
            dated = style(**{"num_format": FORMATS["date"], **settings})
            put(page, (row, column), value, style(**settings), dated)
        shape(book, page, sheet, title, len(rows), color, {"name": font["font_name"], "size": 9})
    book.close()


def put(page: Any, place: tuple[int, int], value: Any, form: Any, date_form: Any) -> None:
    """Write one cell. A formula's result is left empty: xlsxwriter's 0 would be shown as if it were one."""
    if isinstance(value, str) and value.startswith("="):
        page.write_formula(*place, value, form, "")
    elif isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        page.write_datetime(*place, datetime.datetime.fromisoformat(value), date_form)
    elif value is None:
        page.write_blank(*place, None, form)
    elif isinstance(value, str):
        page.write_string(*place, value, form)
    else:
        page.write(*place, value, form)


def shape(
    book: Any, page: Any, sheet: dict[str, Any], title: int, count: int, color: str, font: dict[str, Any]
) -> None:
    """Widths, filter, fixed header, choices, rules, charts, print settings."""
    columns, rows = sheet.get("columns", []), sheet.get("rows", [])
    for c, column in enumerate(columns):
        values = [
            str(row[c])
            if isinstance(row, list) and c < len(row)
            else str(row.get(column["name"], ""))
            if isinstance(row, dict)
            else ""
            for row in rows
        ]
        longest = max([len(column["name"]), *(len(v) if not v.startswith("=") else 10 for v in values)], default=8)
        page.set_column(c, c, column.get("width", min(max(longest * 1.15 + 3, 9), 48)))
        if column.get("choices"):
            page.data_validation(
                title + 1, c, title + max(count, 1), c, {"validate": "list", "source": column["choices"]}
            )
        if column.get("rule") == "scale":
            page.conditional_format(
                title + 1,
                c,
                title + count,
                c,
                {"type": "3_color_scale", "min_color": "#F8D7DA", "mid_color": "#FFFFFF", "max_color": "#D4EDDA"},
            )
        elif column.get("rule") == "bars":
            page.conditional_format(
                title + 1, c, title + count, c, {"type": "data_bar", "bar_color": color, "bar_solid": True}
            )
        elif column.get("rule") == "negative":
            page.conditional_format(
                title + 1,
                c,
                title + count,
                c,
                {"type": "cell", "criteria": "<", "value": 0, "format": book.add_format({"font_color": "#C00000"})},
            )
    for name, width in sheet.get("widths", {}).items():
        page.set_column(f"{name}:{name}", width)
    if columns:
        page.freeze_panes(title + 1, sheet.get("freeze_columns", 0))
        page.set_row(title, 22)
        if count and sheet.get("filter", True):
            page.autofilter(title, 0, title + count, len(columns) - 1)
    for chart in sheet.get("charts", []):
        made = book.add_chart(
            {"type": chart.get("type", "column"), **({"subtype": chart["subtype"]} if chart.get("subtype") else {})}
        )
        names = [column["name"] for column in columns]
        for index, series in enumerate(chart["series"]):
            if series not in names or chart["categories"] not in names:
                raise SpecError(f"charts: {series!r} or {chart['categories']!r} is no column of {sheet['name']!r}")
            c, k = names.index(series), names.index(chart["categories"])
            fill = [color, "#E8833A", "#3A9D78", "#C8506B", "#7B62B3"][index % 5]
            look = (
                {"line": {"color": fill, "width": 2.25}}
                if chart.get("type") == "line"
                else {"fill": {"color": fill}, "gap": 60}
            )
            made.add_series(
                {
                    "name": [sheet["name"], title, c],
                    "categories": [sheet["name"], title + 1, k, title + count, k],
                    "values": [sheet["name"], title + 1, c, title + count, c],
                    **look,
                }
            )
        made.set_title(
            {"name": chart.get("title", ""), "name_font": {**font, "size": 12}, "none": not chart.get("title")}
        )
        made.set_legend({"position": "top", "font": font} if len(chart["series"]) > 1 else {"none": True})
        form = columns[names.index(chart["series"][0])].get("format")
        shown = {"num_format": FORMATS.get(form, form)} if form not in (None, "text", "date") else {}
        grid = {"major_gridlines": {"visible": True, "line": {"color": "#E4E8EC"}}, "line": {"none": True}}
        made.set_y_axis({**grid, **shown, "num_font": font})
        made.set_x_axis({"num_font": font})
        made.set_size({"width": 560, "height": 300})
        page.insert_chart(chart.get("at", xl_rowcol_to_cell(title, len(columns) + 1)), made)
    page.fit_to_pages(1, 0)
    if len(columns) > 6:
        page.set_landscape()
    if columns:
        page.repeat_rows(title)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=Path, help="a JSON file")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    try:
        write(json.loads(options.spec.read_text("utf-8")), options.output)
        problems = recalculate(options.output)
    except Uncalculated as error:
        print(f"{options.output}: its formulas are {error}")
        return 0
    except (ValueError, KeyError) as error:
        print(f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else error, file=sys.stderr)
        return 2
    print(options.output)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
