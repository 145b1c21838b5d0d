"""Check a workbook: compute its formulas, and name errors, circles, numbers stored as text, formulas unlike their neighbours."""

from __future__ import annotations

import argparse
import json
import re
import sys
from typing import Any

from calc import Calculator
from functions import CellError, Unsupported
from openpyxl import load_workbook
from openpyxl.formula.translate import Translator
from openpyxl.worksheet.formula import ArrayFormula


def content(value: Any) -> Any:
    return value.text if isinstance(value, ArrayFormula) else value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workbook")
    parser.add_argument("--values", action="store_true", help="print every formula with its result")
    options = parser.parse_args()
    book = load_workbook(options.workbook)
    shown = load_workbook(options.workbook, data_only=True)
    sheets = {
        sheet.title: {
            cell.coordinate: content(cell.value) for row in sheet.iter_rows() for cell in row if cell.value is not None
        }
        for sheet in book.worksheets
    }
    calculator, problems, remarks, results = Calculator(sheets), [], [], {}
    unknown: set[str] = set()
    for sheet in book.worksheets:
        for row in sheet.iter_rows():
            for cell in row:
                value, place = content(cell.value), f"{sheet.title}!{cell.coordinate}"
                if isinstance(value, str) and value.startswith("="):
                    try:
                        result = calculator.value(sheet.title, cell.coordinate)
                        results[place] = [value, result]
                        stored = shown[sheet.title][cell.coordinate].value
                        if (
                            isinstance(stored, int | float)
                            and isinstance(result, int | float)
                            and abs(stored - result) > 1e-6 * max(abs(result), 1)
                        ):
                            problems.append(f"{place} {value} is {result:.15g}, but the file shows {stored:.15g}.")
                        if stored is None:
                            remarks.append(f"{place} has no stored result; viewers that do not compute show nothing.")
                    except CellError as error:
                        problems.append(f"{place} {value} gives {error}.")
                    except Unsupported as error:
                        unknown.add(str(error))
                    if re.search(
                        r"(?<![A-Z$\d.:])\d{3,}(?:\.\d+)?(?![\d:]*\))",
                        re.sub(r'"[^"]*"|\$?[A-Z]{1,3}\$?\d+', "", value),
                    ):
                        remarks.append(f"{place} {value} holds a number; put it into a cell of its own with a name.")
                    above = content(sheet.cell(cell.row - 1, cell.column).value) if cell.row > 1 else None
                    below = content(sheet.cell(cell.row + 1, cell.column).value)
                    if all(isinstance(other, str) and other.startswith("=") for other in (above, below)):
                        expected = Translator(above, origin=f"{cell.column_letter}{cell.row - 1}").translate_formula(
                            cell.coordinate
                        )
                        after = Translator(above, origin=f"{cell.column_letter}{cell.row - 1}").translate_formula(
                            f"{cell.column_letter}{cell.row + 1}"
                        )
                        if value != expected and below == after:
                            problems.append(f"{place} {value} is unlike its neighbours; expected {expected}.")
                elif (
                    isinstance(value, str)
                    and re.fullmatch(r"\s*[-+]?\d[\d.,]*\s*", value)
                    and cell.number_format != "@"
                ):
                    problems.append(f"{place} {value!r} is a number stored as text.")
                elif isinstance(value, str) and value in ("#REF!", "#DIV/0!", "#VALUE!", "#NAME?", "#N/A", "#NUM!"):
                    problems.append(f"{place} holds {value}.")
    if options.values:
        print(json.dumps(results, ensure_ascii=False, indent=1, default=str))
    formulas = sum(isinstance(v, str) and v.startswith("=") for cells in sheets.values() for v in cells.values())
    print(
        f"{len(sheets)} sheets, {sum(map(len, sheets.values())):,} cells, {formulas:,} formulas, {len(results):,} computed"
    )
    if unknown:
        print(f"Not computed here: {', '.join(sorted(unknown))}")
    for remark in remarks[:20]:
        print(f"? {remark}")
    for problem in problems[:60]:
        print(f"- {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
