"""Tables of a PDF's page: lines whose pieces stand in columns. A table is only made where every letter is kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from deerflow.sandbox.converters.markdown import table

FEWEST, MOST = 6, 6000
"""Pieces of text on a page that may hold a table."""
LEAST_ROWS, LEAST_COLUMNS, MOST_COLUMNS = 3, 3, 40
WIDEST = 14
"""Width of a cell for its height, on average: prose in columns is no table."""


class _Piece(NamedTuple):
    """A rectangle in points, from the left bottom of the page."""

    left: float
    bottom: float
    right: float
    top: float
    text: str = ""

    @property
    def height(self) -> float:
        return self.top - self.bottom


def with_tables(page: Any, text: str) -> str:
    """Return ``text`` of a text page of pdfium with its tables; the rest stays as pdfium orders it."""
    count = page.count_rects()
    if not FEWEST <= count <= MOST:
        return text
    rows = [_cells(row) for row in _lines([_Piece(*page.get_rect(at)) for at in range(count)])]
    for block in _blocks(rows):
        named = [
            [cell._replace(text=" ".join(page.get_text_bounded(*cell[:4]).split())) for cell in row] for row in block
        ]
        text = _replaced(text, named)
    return text


def _lines(pieces: list[_Piece]) -> Iterator[list[_Piece]]:
    """Pieces that stand side by side, from top to bottom."""
    row: list[_Piece] = []
    middle = 0.0
    for piece in sorted(pieces, key=lambda each: (-(each.bottom + each.top), each.left)):
        own = (piece.bottom + piece.top) / 2
        if row and abs(middle - own) >= max(2.0, piece.height * 0.45):
            yield sorted(row)
            row = []
        if not row:
            middle = own
        row.append(piece)
    if row:
        yield sorted(row)


def _cells(row: list[_Piece]) -> list[_Piece]:
    """Join what no gap parts."""
    cells: list[_Piece] = []
    for piece in row:
        if cells and piece.left - cells[-1].right < max(4.0, piece.height * 0.9):
            last = cells[-1]
            cells[-1] = _Piece(
                last.left, min(last.bottom, piece.bottom), max(last.right, piece.right), max(last.top, piece.top)
            )
        else:
            cells.append(piece)
    return cells


def _blocks(rows: list[list[_Piece]]) -> Iterator[list[list[_Piece]]]:
    """Rows with several cells that follow each other."""
    block: list[list[_Piece]] = []
    for row in [*rows, []]:
        if len(row) >= 2:
            block.append(row)
            continue
        cells = [cell for each in block for cell in each]
        if len(block) >= LEAST_ROWS and max(map(len, block)) >= LEAST_COLUMNS:
            wide = sum((cell.right - cell.left) / max(cell.height, 3) for cell in cells) / len(cells)
            if wide < WIDEST:
                yield block
        block = []


def _columns(block: list[list[_Piece]]) -> list[list[float]]:
    columns: list[list[float]] = []
    for left, right in sorted((cell.left, cell.right) for row in block for cell in row):
        if columns and left < columns[-1][1] - 1:
            columns[-1][1] = max(columns[-1][1], right) if right - left < 200 else columns[-1][1]
        else:
            columns.append([left, right])
    return columns


def _replaced(text: str, block: list[list[_Piece]]) -> str:
    """Put a table in the place of the lines that say the same."""
    columns = _columns(block)
    if not LEAST_COLUMNS <= len(columns) <= MOST_COLUMNS:
        return text
    rows: list[list[str]] = []
    for row in block:
        cells = [""] * len(columns)
        for cell in row:
            at = max(
                range(len(columns)), key=lambda at: min(cell.right, columns[at][1]) - max(cell.left, columns[at][0])
            )
            cells[at] = f"{cells[at]} {cell.text}".strip()
        rows.append(cells)
    said = [_letters(" ".join(cell.text for cell in row)) for row in block]
    lines = text.split("\n")
    keys = [_letters(each) for each in lines]
    found = [
        at for at, key in enumerate(keys) if key and any(key == each or (len(key) > 2 and key in each) for each in said)
    ]
    if not found:
        return text
    first, last = found[0], found[-1] + 1
    if sorted("".join(keys[first:last])) != sorted("".join(said)):
        return text
    return "\n".join([*lines[:first], "", table(rows), "", *lines[last:]])


def _letters(text: str) -> str:
    return re.sub(r"\W", "", text)
