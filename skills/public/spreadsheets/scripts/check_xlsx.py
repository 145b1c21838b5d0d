"""Check a workbook: name errors, circles, results that are not those of the formulas, numbers stored as text, odd formulas."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from openpyxl import load_workbook
from openpyxl.formula import Tokenizer
from openpyxl.formula.translate import Translator
from openpyxl.worksheet.formula import ArrayFormula
from recalc import Uncalculated, Value, calculated, values

ERRORS = ("#REF!", "#DIV/0!", "#VALUE!", "#NAME?", "#N/A", "#NUM!")
NUMBER_INSIDE = re.compile(r"(?<![A-Z$\d.:])\d{3,}(?:\.\d+)?(?![\d:]*\))")


def content(value: Any) -> Any:
    return value.text if isinstance(value, ArrayFormula) else value


def is_formula(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("=")


def check_results(stored: dict[str, Value], results: dict[str, Value] | None) -> list[str]:
    """Return errors, and results in the file that are not those of its formulas."""
    problems: list[str] = []
    for place, value in (results or stored).items():
        shown, number = stored[place].number, value.number
        if value.error:
            problems.append(f"{place} {value.formula} gives {value.error}.")
        elif shown is not None and number is not None and abs(shown - number) > 1e-6 * max(abs(number), 1):
            problems.append(f"{place} {value.formula} is {number:.15g}, but the file shows {shown:.15g}.")
    return problems


def check_formula(cell: Any, value: str, names: set[str]) -> tuple[list[str], list[str]]:
    """Return problems and remarks that the formula's text alone shows."""
    place, problems, remarks = f"{cell.parent.title}!{cell.coordinate}", [], []
    for token in Tokenizer(value).items:
        sheet = token.value.rpartition("!")[0].strip("'").replace("''", "'")
        if token.subtype == "RANGE" and sheet and "[" not in sheet and sheet.lower() not in names:
            problems.append(f"{place} {value} names the sheet {sheet!r}, which is missing.")
    if NUMBER_INSIDE.search(re.sub(r'"[^"]*"|\$?[A-Z]{1,3}\$?\d+', "", value)):
        remarks.append(f"{place} {value} holds a number; put it into a cell of its own with a name.")
    page, row, letter = cell.parent, cell.row, cell.column_letter
    above = content(page.cell(row - 1, cell.column).value) if row > 1 else None
    below = content(page.cell(row + 1, cell.column).value)
    if is_formula(above) and is_formula(below):
        pattern = Translator(above, origin=f"{letter}{row - 1}")
        expected = pattern.translate_formula(cell.coordinate)
        if value != expected and below == pattern.translate_formula(f"{letter}{row + 1}"):
            problems.append(f"{place} {value} is unlike its neighbours; expected {expected}.")
    return problems, remarks


def check_value(cell: Any) -> str:
    """Return the problem of a cell without a formula, or nothing."""
    value, place = cell.value, f"{cell.parent.title}!{cell.coordinate}"
    if isinstance(value, str) and re.fullmatch(r"\s*[-+]?\d[\d.,]*\s*", value) and cell.number_format != "@":
        return f"{place} {value!r} is a number stored as text."
    return f"{place} holds {value}." if value in ERRORS else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workbook", type=Path)
    parser.add_argument("--values", action="store_true", help="print every formula with its result")
    options = parser.parse_args()
    book = load_workbook(options.workbook)
    stored, results, why = values(options.workbook), None, ""
    try:
        results = calculated(options.workbook) if stored else {}
    except Uncalculated as error:
        why = str(error)
    problems, remarks, count = check_results(stored, results), [], 0
    names = {sheet.title.lower() for sheet in book.worksheets}
    for cell in (cell for sheet in book.worksheets for row in sheet.iter_rows() for cell in row):
        if cell.value is None:
            continue
        count += 1
        if is_formula(value := content(cell.value)):
            found, said = check_formula(cell, value, names)
            problems, remarks = problems + found, remarks + said
        elif problem := check_value(cell):
            problems.append(problem)
    if empty := [place for place, value in stored.items() if not value.kind]:
        some = ", ".join(empty[:5]) + (" …" if len(empty) > 5 else "")
        remarks.append(f"{len(empty):,} formulas are not calculated in the file: {some}. Run recalc.py.")
    if options.values:
        shown = {place: [one.formula, one.text or "not calculated"] for place, one in (results or stored).items()}
        print(json.dumps(shown, ensure_ascii=False, indent=1))
    print(f"{len(book.worksheets)} sheets, {count:,} cells, {len(stored):,} formulas")
    if why:
        print(f"Results are {why}")
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
