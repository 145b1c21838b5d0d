"""The functions of spreadsheets that are computed here."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from typing import Any

EPOCH = datetime.datetime(1899, 12, 30)


class Unsupported(Exception):
    """A function or form that is not computed here."""


class CellError(Exception):
    """An error value such as #DIV/0!."""


class Grid(list):
    """Rows of values of a range."""

    def flat(self) -> list[Any]:
        return [value for row in self for value in row]


def number(value: Any) -> float:
    if isinstance(value, Grid):
        value = value[0][0] if value else None
    if value is None or value == "":
        return 0
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, datetime.datetime):
        return (value - EPOCH) / datetime.timedelta(days=1)
    if isinstance(value, datetime.date):
        return (value - EPOCH.date()).days
    try:
        return float(value)
    except (TypeError, ValueError):
        raise CellError("#VALUE!") from None


def numbers(arguments: tuple[Any, ...]) -> list[float]:
    """Numbers of ranges, texts in them left out; plain arguments must be numbers."""
    found: list[float] = []
    for value in arguments:
        if isinstance(value, Grid):
            found += [number(v) for v in value.flat() if v is not None and not isinstance(v, str | bool)]
        else:
            found.append(number(value))
    return found


def matches(test: Any) -> Callable[[Any], bool]:
    """A condition of SUMIF and its kin: a value, or a text such as ``>=5`` or ``ab*``."""
    sign, rest = re.match(r"(<>|>=|<=|=|>|<)?(.*)", str(test), re.DOTALL).groups()  # type: ignore[union-attr]
    try:
        wanted: Any = float(rest)
    except ValueError:
        wanted = None
    if sign in (None, "=", "<>"):
        if wanted is not None:
            same = lambda v: isinstance(v, int | float) and v == wanted  # noqa: E731
        else:
            pattern = re.compile(re.escape(rest).replace(r"\*", ".*").replace(r"\?", ".") + r"\Z", re.IGNORECASE)
            same = lambda v: bool(pattern.match("" if v is None else str(v)))  # noqa: E731
        return (lambda v: not same(v)) if sign == "<>" else same
    limit = wanted if wanted is not None else 0
    compare = {
        ">": lambda v: v > limit,
        "<": lambda v: v < limit,
        ">=": lambda v: v >= limit,
        "<=": lambda v: v <= limit,
    }[sign]
    return lambda v: isinstance(v, int | float) and not isinstance(v, bool) and compare(v)


def chosen(*pairs: Any) -> list[bool]:
    tests = [(grid.flat(), matches(test)) for grid, test in zip(pairs[::2], pairs[1::2], strict=True)]
    return [all(test(values[i]) for values, test in tests) for i in range(len(tests[0][0]))]


def picked(values: Grid, marks: list[bool]) -> list[float]:
    return [v for v, mark in zip(values.flat(), marks, strict=False) if mark and isinstance(v, int | float)]


def mean(values: list[float]) -> float:
    if not values:
        raise CellError("#DIV/0!")
    return sum(values) / len(values)


def lookup(wanted: Any, table: Grid, column: float, approximate: Any = True) -> Any:
    found = None
    for row in table:
        if row[0] == wanted or (
            isinstance(wanted, str) and isinstance(row[0], str) and row[0].lower() == wanted.lower()
        ):
            return row[int(column) - 1]
        if approximate and row[0] is not None and type(row[0]) is type(wanted) and row[0] <= wanted:
            found = row
    if not approximate or found is None:
        raise CellError("#N/A")
    return found[int(column) - 1]


def match(wanted: Any, values: Grid, kind: float = 1) -> int:
    flat = values.flat()
    if kind == 0:
        test = matches(wanted)
        for index, value in enumerate(flat):
            if test(value):
                return index + 1
        raise CellError("#N/A")
    fits = [
        i + 1
        for i, value in enumerate(flat)
        if value is not None and (value <= wanted if kind > 0 else value >= wanted)
    ]
    if not fits:
        raise CellError("#N/A")
    return fits[-1]


def index(table: Grid, row: float, column: float = 1) -> Any:
    if len(table) == 1 and column == 1:
        row, column = 1, row
    try:
        return table[int(row) - 1][int(column) - 1]
    except IndexError:
        raise CellError("#REF!") from None


def pick(wanted: Any, keys: Grid, values: Grid, default: Any = None, *_: Any) -> Any:
    try:
        return values.flat()[match(wanted, keys, 0) - 1]
    except CellError:
        if default is None:
            raise
        return default


def half_up(value: Any, digits: Any = 0) -> float:
    scale = 10 ** int(number(digits))
    return math.copysign(math.floor(abs(number(value)) * scale + 0.5 + 1e-9), number(value)) / scale


def pmt(rate: float, periods: float, present: float, future: float = 0, *_: Any) -> float:
    return (
        -(present + future) / periods
        if rate == 0
        else -(rate * (present * (1 + rate) ** periods + future)) / ((1 + rate) ** periods - 1)
    )


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "SUM": lambda *a: math.fsum(numbers(a)),
    "AVERAGE": lambda *a: mean(numbers(a)),
    "MIN": lambda *a: min(numbers(a), default=0),
    "MAX": lambda *a: max(numbers(a), default=0),
    "MEDIAN": lambda *a: mean(sorted(numbers(a))[(len(numbers(a)) - 1) // 2 : len(numbers(a)) // 2 + 1]),
    "COUNT": lambda *a: len(numbers(a)),
    "COUNTA": lambda *a: sum(v is not None for g in a for v in (g.flat() if isinstance(g, Grid) else [g])),
    "COUNTBLANK": lambda g: sum(v in (None, "") for v in g.flat()),
    "PRODUCT": lambda *a: math.prod(numbers(a)),
    "SUMPRODUCT": lambda *a: math.fsum(
        math.prod(number(v) if isinstance(v, int | float) else 0 for v in row)
        for row in zip(*(g.flat() for g in a), strict=True)
    ),
    "SUMIF": lambda g, t, s=None: math.fsum(picked(s if s is not None else g, chosen(g, t))),
    "SUMIFS": lambda s, *p: math.fsum(picked(s, chosen(*p))),
    "COUNTIF": lambda g, t: sum(chosen(g, t)),
    "COUNTIFS": lambda *p: sum(chosen(*p)),
    "AVERAGEIF": lambda g, t, s=None: mean(picked(s if s is not None else g, chosen(g, t))),
    "ROUND": half_up,
    "ROUNDUP": lambda v, d=0: math.copysign(math.ceil(abs(number(v)) * 10**d - 1e-9), number(v)) / 10**d,
    "ROUNDDOWN": lambda v, d=0: math.trunc(number(v) * 10**d) / 10**d,
    "INT": lambda v: math.floor(number(v)),
    "MOD": lambda a, b: number(a) % number(b),
    "ABS": lambda v: abs(number(v)),
    "SQRT": lambda v: math.sqrt(number(v)),
    "POWER": lambda a, b: number(a) ** number(b),
    "AND": lambda *a: all(bool(v) for g in a for v in (g.flat() if isinstance(g, Grid) else [g])),
    "OR": lambda *a: any(bool(v) for g in a for v in (g.flat() if isinstance(g, Grid) else [g])),
    "NOT": lambda v: not v,
    "VLOOKUP": lookup,
    "MATCH": match,
    "INDEX": index,
    "XLOOKUP": pick,
    "_XLFN.XLOOKUP": pick,
    "LEN": lambda v: len(text(v)),
    "LEFT": lambda v, n=1: text(v)[: int(n)],
    "RIGHT": lambda v, n=1: text(v)[-int(n) :],
    "UPPER": lambda v: text(v).upper(),
    "LOWER": lambda v: text(v).lower(),
    "TRIM": lambda v: " ".join(text(v).split()),
    "CONCATENATE": lambda *a: "".join(map(text, a)),
    "DATE": lambda y, m, d: number(
        datetime.datetime(int(y) + (int(m) - 1) // 12, (int(m) - 1) % 12 + 1, 1) + datetime.timedelta(days=int(d) - 1)
    ),
    "YEAR": lambda v: (EPOCH + datetime.timedelta(days=number(v))).year,
    "MONTH": lambda v: (EPOCH + datetime.timedelta(days=number(v))).month,
    "DAY": lambda v: (EPOCH + datetime.timedelta(days=number(v))).day,
    "PMT": lambda *a: pmt(*map(number, a)),
    "NPV": lambda rate, *a: math.fsum(v / (1 + rate) ** (i + 1) for i, v in enumerate(numbers(a))),
}


def text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    return str(int(value)) if isinstance(value, float) and value == int(value) else str(value)
