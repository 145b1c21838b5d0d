"""Computes the formulas of a workbook without a spreadsheet program: the usual operators and functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from functions import FUNCTIONS, CellError, Grid, Unsupported, number, text
from openpyxl.formula import Tokenizer
from openpyxl.utils import get_column_letter, range_boundaries

REFERENCE = re.compile(r"\$?[A-Z]{1,3}\$?\d+(:\$?[A-Z]{1,3}\$?\d+)?|\$?[A-Z]{1,3}:\$?[A-Z]{1,3}")


class Calculator:
    """Values of cells. ``sheets``: name of each sheet to its cells ``{"A1": value or "=formula"}``; case of names does not matter."""

    def __init__(self, sheets: Mapping[str, Mapping[str, Any]]) -> None:
        self.sheets = {name.lower(): dict(cells) for name, cells in sheets.items()}
        self.known: dict[tuple[str, str], Any] = {}
        self.open: set[tuple[str, str]] = set()

    def value(self, sheet: str, cell: str) -> Any:
        """The value of a cell. Raises CellError (errors and circles) and Unsupported."""
        key = (sheet.lower(), cell)
        if key in self.known:
            if isinstance(self.known[key], Exception):
                raise self.known[key]
            return self.known[key]
        if key[0] not in self.sheets:
            raise CellError("#REF!")
        content = self.sheets[key[0]].get(cell)
        if not (isinstance(content, str) and content.startswith("=")):
            return content
        if key in self.open:
            raise CellError("#CIRCLE!")
        self.open.add(key)
        try:
            result = Parser(self, sheet, content).value()
            if isinstance(result, Grid):
                result = result[0][0]
            self.known[key] = 0 if result is None else result
        except RecursionError:
            self.known[key] = Unsupported("a chain of formulas that is too long")
        except (ZeroDivisionError, OverflowError):
            self.known[key] = CellError("#DIV/0!")
        except (TypeError, ValueError, AttributeError):
            self.known[key] = CellError("#VALUE!")
        except (CellError, Unsupported) as error:
            self.known[key] = error
        finally:
            self.open.discard(key)
        return self.value(sheet, cell)

    def range(self, sheet: str, reference: str) -> Any:
        reference = reference.replace("$", "").upper()
        if re.fullmatch(r"[A-Z]+\d+", reference):
            return self.value(sheet, reference)
        cells = self.sheets.get(sheet.lower())
        if cells is None:
            raise CellError("#REF!")
        left, top, right, bottom = range_boundaries(reference)
        if bottom is None:
            top, bottom = 1, max((int(re.sub(r"\D", "", name)) for name in cells), default=1)
        return Grid(
            [self.value(sheet, f"{get_column_letter(c)}{r}") for c in range(left, right + 1)]
            for r in range(top, bottom + 1)
        )


class Parser:
    """Reads one formula and computes it on the way."""

    LEVELS = (("=", "<>", "<", ">", "<=", ">="), ("&",), ("+", "-"), ("*", "/"), ("^",))

    def __init__(self, calculator: Calculator, sheet: str, formula: str) -> None:
        self.calculator, self.sheet = calculator, sheet
        self.tokens = [token for token in Tokenizer(formula).items if token.type != "WHITE-SPACE"]
        self.at = 0

    def value(self) -> Any:
        result = self.level(0)
        if self.at < len(self.tokens):
            raise Unsupported(self.tokens[self.at].value)
        return result

    def peek(self) -> Any:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def level(self, depth: int) -> Any:
        if depth == len(self.LEVELS):
            return self.part()
        left = self.level(depth + 1)
        while (
            (token := self.peek()) is not None and token.type == "OPERATOR-INFIX" and token.value in self.LEVELS[depth]
        ):
            self.at += 1
            left = self.apply(token.value, left, self.level(depth + 1))
        return left

    def apply(self, sign: str, left: Any, right: Any) -> Any:
        if sign == "&":
            return text(left) + text(right)
        if sign in "+-*/^":
            a, b = number(left), number(right)
            return {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a / b, "^": lambda: a**b}[
                sign
            ]()
        if isinstance(left, str) or isinstance(right, str):
            a, b = text(left).lower(), text(right).lower()
        else:
            a, b = number(left), number(right)
        return {"=": a == b, "<>": a != b, "<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b}[sign]

    def part(self) -> Any:
        token = self.peek()
        if token is None:
            raise Unsupported("an incomplete formula")
        self.at += 1
        if token.type == "OPERATOR-PREFIX":
            inner = number(self.part())
            result: Any = -inner if token.value == "-" else inner
        elif token.type == "OPERAND":
            result = self.operand(token)
        elif token.type == "PAREN" and token.subtype == "OPEN":
            result = self.level(0)
            self.at += 1
        elif token.type == "FUNC" and token.subtype == "OPEN":
            result = self.function(token.value[:-1].upper())
        else:
            raise Unsupported(token.value)
        while (token := self.peek()) is not None and token.type == "OPERATOR-POSTFIX":
            self.at += 1
            result = number(result) / 100
        return result

    def operand(self, token: Any) -> Any:
        if token.subtype == "NUMBER":
            return float(token.value)
        if token.subtype == "TEXT":
            return token.value[1:-1].replace('""', '"')
        if token.subtype == "LOGICAL":
            return token.value.upper() == "TRUE"
        if token.subtype == "ERROR":
            raise CellError(token.value)
        sheet, _, reference = token.value.rpartition("!")
        sheet = sheet.strip("'").replace("''", "'") or self.sheet
        if not REFERENCE.fullmatch(reference.upper()):
            raise Unsupported(f"the name {token.value}")
        return self.calculator.range(sheet, reference)

    def function(self, name: str) -> Any:
        arguments: list[Any] = []
        while (token := self.peek()) is not None and not (token.type == "FUNC" and token.subtype == "CLOSE"):
            if token.type == "SEP":
                self.at += 1
                continue
            start = self.at
            try:
                arguments.append(self.level(0))
            except (CellError, ZeroDivisionError) as error:
                if name not in ("IF", "IFERROR", "IFNA", "ISERROR", "AND", "OR"):
                    raise
                arguments.append(error)
                self.skip(start)
        self.at += 1
        if name in ("IF", "IFERROR", "IFNA", "ISERROR"):
            return self.lazy(name, arguments)
        for argument in arguments:
            if isinstance(argument, Exception):
                raise argument
        if name not in FUNCTIONS:
            raise Unsupported(name)
        return FUNCTIONS[name](*arguments)

    def skip(self, start: int) -> None:
        """Go behind an argument that gave an error."""
        depth, self.at = 0, start
        while (token := self.peek()) is not None:
            if depth == 0 and (token.type == "SEP" or token.subtype == "CLOSE"):
                return
            depth += (token.subtype == "OPEN") - (token.subtype == "CLOSE")
            self.at += 1

    def lazy(self, name: str, arguments: list[Any]) -> Any:
        first = arguments[0]
        failed = isinstance(first, Exception)
        if name == "ISERROR":
            return failed
        if name in ("IFERROR", "IFNA"):
            result = arguments[1] if failed else first
        else:
            if failed:
                raise first
            result = (
                arguments[1]
                if (first[0][0] if isinstance(first, Grid) else first)
                else arguments[2]
                if len(arguments) > 2
                else False
            )
        if isinstance(result, Exception):
            raise result
        return result
