"""Values of a sheet's cells as they are displayed: integers whole, dates as ISO has them, nothing that is text made a number."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence

from deerflow.sandbox.converters.markdown import heading, table

MOST_GAP = 20
"""Empty rows that are shown; of more only the number is."""
_LITERAL = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]|_.|\*.')


def shown(value: object, form: str = "General") -> str:
    """Return a value in the number format of its cell."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return _number(value, _LITERAL.sub("", form))
    if isinstance(value, datetime.datetime):
        return _moment(value)
    if isinstance(value, datetime.timedelta):
        seconds = round(value.total_seconds())
        return f"{'-' * (seconds < 0)}{abs(seconds) // 3600}:{abs(seconds) // 60 % 60:02}:{abs(seconds) % 60:02}"
    if isinstance(value, datetime.time):
        return value.replace(microsecond=0).isoformat()
    return str(value)


def number(text: str) -> int | float | str:
    """Return the number that a file writes so; what is none stays text."""
    try:
        return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
    except ValueError:
        return text


def _number(value: float, form: str) -> str:
    if value != value or abs(value) == float("inf"):
        return ""
    if "%" in form:
        return f"{value * 100:.10g}%"
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e16):
        whole = str(int(value))
        return whole.zfill(len(form)) if form and not form.strip("0") and value >= 0 else whole
    near = round(value, 12)
    return repr(near) if abs(value) > 1e-3 else repr(value)


def _moment(value: datetime.datetime) -> str:
    value = (value + datetime.timedelta(microseconds=500_000)).replace(microsecond=0)
    if value.time() == datetime.time(0):
        return value.date().isoformat()
    return value.isoformat(" ")


def letters(column: int) -> str:
    """Return the letters of a column, counted from 1."""
    text = ""
    while column > 0:
        column, digit = divmod(column - 1, 26)
        text = chr(65 + digit) + text
    return text


def sheet(name: str, rows: Mapping[int, Sequence[str]], notes: Sequence[str] = (), *, hidden: bool = False) -> str:
    """Return a sheet: its name, its cells as a table, and below it what else is to be known of them.

    Args:
        rows: cells by the number of their row; it may be far from one row to the next.
    """
    kept: list[Sequence[str]] = []
    before: int | None = None
    for at in sorted(number for number, row in rows.items() if any(row)):
        empty = at - before - 1 if before is not None else 0
        kept += [[f"({empty} empty rows)"]] if empty > MOST_GAP else [[""]] * empty
        kept.append(rows[at])
        before = at
    width = max((at + 1 for row in kept for at, cell in enumerate(row) if cell), default=0)
    head = heading(2, name + " (hidden sheet)" * hidden)
    return "\n\n".join([head, table(row[:width] for row in kept) or "(empty)", *notes]) + "\n\n"
