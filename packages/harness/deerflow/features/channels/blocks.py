"""Markdown as a flat list of blocks: one walk over the tokens, which keeps no more structure than chat platforms can show."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

from deerflow.features.channels.dialects import ChatDialect
from deerflow.features.channels.spans import LinkMark, Mark, MarkedText, Row

_MARKDOWN = MarkdownIt("commonmark", {"maxNesting": 60}).enable(["table", "strikethrough"])
_WEB = re.compile(r"https?://", re.IGNORECASE)
_BR = re.compile(r"<br\s*/?>", re.IGNORECASE)
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}", re.ASCII)
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_WIDEST = 60
"""Letters to which a column of a grid is filled up; a longer cell moves its row, not all rows."""
_DEEPEST = 8
"""Levels of lists and quotes that are shown; what is deeper stands at the last one."""


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a heading, a piece of code, a rule or a table.

    Args:
        first, rest: what stands before its first line, and before each further one.
        quote: the number of the quote that it stands in; 0 if in none.
        joins: no empty line parts it from the block before.
        rows: of a table in the platform's own form.
    """

    kind: Literal["text", "code", "rule", "table"]
    spans: Sequence[MarkedText] = ()
    first: str = ""
    rest: str = ""
    language: str = ""
    quote: int = 0
    joins: bool = False
    rows: Sequence[Row] = ()


def blocks_of(markdown: str, dialect: ChatDialect) -> list[Block]:
    clean = _UNPRINTABLE.sub("", markdown).encode(errors="replace").decode()
    walk = _Walk(dialect)
    for token in _MARKDOWN.parse(clean):
        walk.take(token)
    return walk.blocks


def listed(rows: Sequence[Row], bullet: str) -> Iterator[Block]:
    """Yield each row of a table as an item of a list that repeats the names of the columns."""
    for row in rows[1:] or rows:
        spans: list[MarkedText] = []
        for name, cell in zip(rows[0], row, strict=False):
            if any(span.text for span in cell):
                spans += [MarkedText("; ")] if spans else []
                spans += [*name, MarkedText(": "), *cell] if row is not rows[0] and name else cell
        yield Block("text", spans, f"{bullet} ", " " * (len(bullet) + 1), joins=row is not rows[min(1, len(rows) - 1)])


@dataclass(slots=True)
class _Inside:
    """A list item (with its marker) or a quote that the walk is inside of."""

    marker: str = ""
    quote: int = 0
    is_fresh: bool = False


class _Walk:
    def __init__(self, dialect: ChatDialect) -> None:
        self.blocks: list[Block] = []
        self._dialect = dialect
        self._inside: list[_Inside] = []
        self._numbers: list[int | None] = []
        self._quotes = 0
        self._heading = 0
        self._tight = False
        self._rows: list[Row] | None = None
        self._cells: list[Sequence[MarkedText]] = []

    def take(self, token: Token) -> None:
        match token.type:
            case "inline" if self._rows is not None:
                self._cells.append(_spans(token.children or []))
            case "inline":
                self._text(_spans(token.children or []))
            case "html_block":
                self._text([MarkedText(token.content.rstrip("\n"))])
            case "fence" | "code_block":
                language = _LANGUAGE.fullmatch((token.info.split() or [""])[0])
                self._add(
                    Block(
                        "code", [MarkedText(token.content.removesuffix("\n"))], language=language[0] if language else ""
                    )
                )
            case "hr":
                self._add(Block("rule"))
            case "paragraph_open":
                self._tight = token.hidden
            case "heading_open":
                self._heading = int(token.tag[1:])
            case "heading_close":
                self._heading = 0
            case _:
                self._contain(token)

    def _contain(self, token: Token) -> None:
        match token.type:
            case "bullet_list_open":
                self._numbers.append(None)
            case "ordered_list_open":
                self._numbers.append(int(token.attrs.get("start", 1)))
            case "bullet_list_close" | "ordered_list_close":
                self._numbers.pop()
            case "list_item_open":
                number = self._numbers[-1]
                marker = self._dialect.bullet if number is None else f"{number}."
                self._numbers[-1] = None if number is None else number + 1
                self._inside.append(_Inside(marker + " ", is_fresh=True))
            case "blockquote_open":
                self._quotes += 1
                self._inside.append(_Inside(quote=self._quotes))
            case "list_item_close" | "blockquote_close":
                if self._inside[-1].is_fresh:
                    self._text([])
                self._inside.pop()
            case "table_open":
                self._rows = []
            case "tr_open":
                self._cells = []
            case "tr_close" if self._rows is not None:
                self._rows.append(self._cells)
            case "table_close":
                self._table(self._rows or [])
                self._rows = None
            case _:
                pass

    def _text(self, spans: Sequence[MarkedText]) -> None:
        if not self._heading:
            return self._add(Block("text", spans))
        spans = [_in_heading(span, is_strong=not self._dialect.heading) for span in spans]
        return self._add(
            Block("text", spans, "#" * min(self._heading, self._dialect.heading) + " " * (self._dialect.heading > 0))
        )

    def _table(self, rows: Sequence[Row]) -> None:
        if self._dialect.table == "native":
            return self._add(Block("table", rows=rows))
        if self._dialect.table == "list":
            for block in listed(rows, self._dialect.bullet):
                self._add(block)
            return None
        self._add(Block("code", [MarkedText(_grid(rows))]))
        links = [
            span
            for row in rows
            for cell in row
            for span in cell
            if any(isinstance(mark, LinkMark) for mark in span.marks)
        ]
        if links:  # a grid of letters cannot hold them
            self._add(Block("text", [one for link in links for one in (link, MarkedText("\n"))][:-1]))
        return None

    def _add(self, block: Block) -> None:
        """Add a block with what its place in lists and quotes puts before its lines."""
        is_first = any(one.is_fresh for one in self._inside)
        if block.kind != "text" and not self._dialect.nests:
            if is_first:
                self._text([])
            self.blocks.append(block)
            return
        before = self.blocks[-1] if self.blocks else None
        in_list = any(one.marker for one in self._inside)
        joins = (
            in_list and (is_first or self._tight) and before is not None and before.kind == "text" and bool(before.rest)
        )
        self.blocks.append(
            replace(
                block,
                first=self._lead(is_first=True) + block.first,
                rest=self._lead(is_first=False) + block.rest,
                quote=next((one.quote for one in self._inside if one.quote), 0),
                joins=joins or block.joins,
            )
        )
        for one in self._inside:
            one.is_fresh = False

    def _lead(self, *, is_first: bool) -> str:
        lead = ""
        for one in self._inside[:_DEEPEST]:
            if one.quote:
                lead += self._dialect.quote if isinstance(self._dialect.quote, str) else ""
            else:
                lead += one.marker if one.is_fresh and is_first else " " * len(one.marker)
        return lead


def _in_heading(span: MarkedText, *, is_strong: bool) -> MarkedText:
    others: tuple[Mark, ...] = tuple(mark for mark in span.marks if mark != "strong")
    marks = ("strong", *others) if is_strong else span.marks
    return MarkedText(span.text.replace("\n", " "), marks, span.is_code)


def _spans(tokens: Sequence[Token]) -> list[MarkedText]:
    """Return the inline tokens as spans; a mark inside of itself counts once."""
    spans: list[MarkedText] = []
    active: tuple[Mark, ...] = ()
    opened: list[bool] = []
    label = 0
    for token in tokens:
        name, _, side = token.type.rpartition("_")
        if side == "open":
            mark = _mark(name, token)
            is_new = mark is not None and mark not in active
            opened.append(is_new)
            active = (*active, mark) if is_new and mark is not None else active
            label = len(spans) if name == "link" else label
        elif side == "close":
            if name == "link":
                _close_link(spans, label, active, token)
            active = active[:-1] if opened.pop() else active
        else:
            spans.extend(_leaf(token, active))
    return spans


def _mark(name: str, token: Token) -> Mark | None:
    if name == "link":
        url = str(token.attrs.get("href", ""))
        return LinkMark(url)
    return name if name in ("strong", "em", "s") else None


def _leaf(token: Token, marks: tuple[Mark, ...]) -> Iterator[MarkedText]:
    in_link = any(isinstance(mark, LinkMark) for mark in marks)
    match token.type:
        case "softbreak" | "hardbreak":
            yield MarkedText(" ", marks) if in_link else MarkedText("\n")
        case "html_inline" if _BR.fullmatch(token.content):
            yield MarkedText(" ", marks) if in_link else MarkedText("\n")
        case "image":
            url = str(token.attrs.get("src", ""))
            yield MarkedText(
                token.content or "image", (*marks, LinkMark(url)) if _WEB.match(url) and not in_link else marks
            )
        case _:
            if token.content:
                yield MarkedText(token.content, marks, token.type == "code_inline")


def _close_link(spans: list[MarkedText], start: int, marks: tuple[Mark, ...], token: Token) -> None:
    """Finish the label that began at ``start``: an address without one is its own, and only pages are links."""
    place = next(index for index, mark in enumerate(marks) if isinstance(mark, LinkMark))
    link = marks[place]
    assert isinstance(link, LinkMark)
    label = "".join(span.text for span in spans[start:])
    if _WEB.match(link.url):
        if token.markup == "autolink" or not label or label == link.url:
            spans[start:] = [MarkedText(link.url, marks)]
        return
    spans[start:] = [
        MarkedText(span.text, tuple(mark for mark in span.marks if mark != link), span.is_code)
        for span in spans[start:]
    ]
    address = link.url.removeprefix("mailto:")
    if address != link.url and address not in label:
        spans.append(MarkedText(f" ({address})", marks[:place]))


def _width(text: str) -> int:
    """Return the columns that a text takes where all letters are equally wide, as in a terminal."""
    return sum(
        2 if unicodedata.east_asian_width(letter) in "WF" else unicodedata.category(letter) not in ("Mn", "Me", "Cf")
        for letter in text
    )


def _grid(rows: Sequence[Row]) -> str:
    texts = [["".join(span.text for span in cell).replace("\n", " ") for cell in row] for row in rows]
    wide = [[_width(text) for text in row] for row in texts]
    columns = [min(_WIDEST, max(column)) for column in zip(*wide, strict=True)]

    def line(index: int) -> str:
        cells = zip(texts[index], wide[index], columns, strict=True)
        return " | ".join(text + " " * (column - width) for text, width, column in cells).rstrip()

    return "\n".join([line(0), "-+-".join("-" * max(1, one) for one in columns), *map(line, range(1, len(rows)))])
