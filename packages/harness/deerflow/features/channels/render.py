"""Markdown as chat platforms write it: messages within the platform's limit, in its marks, without a mention of anyone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from deerflow.features.channels.blocks import Block, blocks_of, listed
from deerflow.features.channels.dialects import BREAK, DIALECTS, ChatDialect, Pair
from deerflow.features.channels.spans import LinkMark, Mark, MarkedText, Row, is_boundary, split, taken, without_seam

SMALLEST = 100
"""A limit below this leaves no room for marks."""
ROOM = 24
"""Room that a message leaves of its platform's limit: the engine may add that it may be a duplicate."""
_FENCE = re.compile(r"^ {0,3}(`{3,}(?=[^`\n]*$)|~{3,})(.*)$", re.MULTILINE)
_CUT = "…\n"
_BEGINS = ("open", "code")
_ENDS = ("close", "code")


def parts(markdown: str, dialect: str, *, limit: int | None = None) -> list[str]:
    """Return ``markdown`` as messages in ``dialect``; none is longer than ``limit`` (that of the dialect less ``ROOM``),
    in its own unit. There is none if the text shows nothing."""
    writer = _Writer(DIALECTS[dialect], limit)
    for block in blocks_of(markdown, writer.dialect):
        writer.add(block)
    return writer.done()


def tail(markdown: str, dialect: str, *, limit: int | None = None) -> str:
    """Return the end of ``markdown`` as one message, for progress, of which the newest counts; empty if there is nothing to show."""
    writer = _Writer(DIALECTS[dialect], limit)
    return writer.last(blocks_of(_ending(markdown, 2 * writer.limit), writer.dialect))


def _ending(markdown: str, room: int) -> str:
    """Return about the last ``room`` letters, from the beginning of a line; a fence that was open there is opened again."""
    if len(markdown) <= room:
        return markdown
    start = markdown.find("\n", len(markdown) - room, len(markdown) - 1) + 1 or len(markdown) - room
    fence = ""
    for found in _FENCE.finditer(markdown, 0, start):
        if not fence:
            fence = found[1] + found[2]
        elif fence.startswith(found[1][0]) and found[1].startswith(_run(fence)) and not found[2].strip():
            fence = ""
    return f"{fence}\n{markdown[start:]}" if fence else markdown[start:]


def _run(fence: str) -> str:
    return fence[: len(fence) - len(fence.lstrip(fence[0]))]


def _most(size: Callable[[int], int], most: int, room: int) -> int:
    """Return a number of letters, at most ``most``, whose ``size`` is within ``room`` and near it."""
    low, used, high, above = 0, 0, most, size(most)
    if above <= room:
        return most
    aim, is_guess = room * 31 // 32, True
    while high - low > 1 and used < room * 15 // 16:
        at = low + (high - low) * max(0, aim - used) // (above - used) if is_guess else (low + high) // 2
        at = min(max(at, low + 1), high - 1)
        if (found := size(at)) <= room:
            low, used = at, found
        else:
            high, above = at, found
        is_guess = not is_guess
    return low


class _Writer:
    """Put blocks into messages, as many into one as fit."""

    def __init__(self, dialect: ChatDialect, limit: int | None) -> None:
        self.dialect = dialect
        self.limit = limit or dialect.limit - ROOM
        if self.limit < SMALLEST:
            raise ValueError(f"A message needs room for {SMALLEST}, not {self.limit}.")
        self._messages: list[list[str]] = []
        self._used = self._tables = 0
        self._before: Block | None = None

    def add(self, block: Block) -> None:
        for made in self._pieces(block):
            if not made.strip().strip(BREAK):
                continue
            between = self._between(self._before, block)
            size = self.dialect.size(made)
            used = self._used + self.dialect.size(between) + size
            is_table = block.kind == "table"
            if not self._messages or used > self.limit or self._tables + is_table > self.dialect.tables:
                self._messages.append([made])
                self._used, self._tables = size, 0
            else:
                self._messages[-1] += [between, made]
                self._used = used
            self._tables += is_table
            self._before = block

    def done(self) -> list[str]:
        return [self._joined(message) for message in self._messages]

    def last(self, blocks: Sequence[Block]) -> str:
        """Return the end of ``blocks`` that fits into one message, with a sign before it if something is missing."""
        kept: list[str] = []
        room, tables, after = self.limit - self.dialect.size(_CUT), 0, None
        for block in reversed(blocks):
            between = self._between(block, after) if after else ""
            tables += block.kind == "table"
            left = room - self.dialect.size(between)
            made = self._ended(block, left) if tables <= self.dialect.tables else ""
            is_whole = bool(made) and made == self._made(block, block.spans, block.first)
            if made.strip().strip(BREAK):
                kept += [between, made]
                room = left - self.dialect.size(made)
                after = block
            if not is_whole and (block.spans or block.rows):
                kept.append(_CUT)
                break
        return self._joined(kept[::-1]) if any(made.strip() for made in kept if made != _CUT) else ""

    def _ended(self, block: Block, room: int) -> str:
        """Return as much of the end of a block as has ``room``."""
        if self.dialect.size(made := self._made(block, block.spans, block.first)) <= room:
            return made
        if block.kind == "table":
            return ""
        text = "".join(span.text for span in block.spans)

        def size(count: int) -> int:
            return self.dialect.size(self._made(block, split(block.spans, len(text) - count)[1], block.rest))

        low = len(text) - _most(size, len(text), room)
        seam = max(text.find(sign, low) for sign in ("\n", " "))
        start = seam + 1 if low <= seam < (low + len(text)) // 2 else low
        while start < len(text) and not is_boundary(text, start):
            start += 1
        made = self._made(block, split(block.spans, start)[1], block.rest)
        return made if start < len(text) and self.dialect.size(made) <= room else ""

    def _between(self, before: Block | None, block: Block) -> str:
        if block.joins:
            return "\n"
        if before is not None and before.quote and before.quote == block.quote and isinstance(self.dialect.quote, str):
            return f"\n{self.dialect.quote.rstrip()}\n"
        return "\n\n"

    def _joined(self, message: Sequence[str]) -> str:
        made = "".join(message)
        if isinstance(self.dialect.quote, tuple):
            before, after = self.dialect.quote
            for between in ("\n\n", "\n"):
                made = made.replace(after + between + before, between)
        return made

    def _pieces(self, block: Block) -> Iterator[str]:
        """Yield a block as one piece, or as several where it is longer than a message."""
        if block.kind == "table":
            yield from self._rows(block)
            return
        first = block.first
        waiting = list(reversed(block.spans))
        while True:
            window = taken(waiting, self.limit)
            made = self._made(block, window, first)
            if not waiting and self.dialect.size(made) <= self.limit:
                yield made
                return
            cut = self._cut(block, window, first)
            if not cut:  # not even the marks have room
                text = "".join(span.text for span in window)
                waiting.append(MarkedText(text))
                block, first = replace(block, kind="text", first="", rest="", quote=0), ""
                continue
            head, rest = split(window, cut)
            yield self._made(block, head, first)
            waiting += reversed(without_seam(rest, is_code=block.kind == "code"))
            first = block.rest

    def _cut(self, block: Block, window: Sequence[MarkedText], first: str) -> int:
        """Return how many letters of ``window`` fit into a message, up to a line, else a space, else a whole letter."""
        text = "".join(span.text for span in window)

        def size(count: int) -> int:
            return self.dialect.size(self._made(block, split(window, count)[0], first))

        low = _most(size, len(text), self.limit)
        seam = next((at for sign in ("\n", " ") if (at := text.rfind(sign, low // 2, low + 1)) > 0), low)
        at = next((at for at in range(seam, max(0, seam - 64), -1) if is_boundary(text, at)), seam)
        return at if size(at) <= self.limit else 0

    def _rows(self, block: Block) -> Iterator[str]:
        """Yield a table of the platform's own, several times with its head if it is long; a giant row becomes an item of a list."""
        head, *rows = (self._row(row) for row in block.rows)
        size, room = self.dialect.size, self.limit - self.dialect.size(block.first)
        top = f"{head}\n|{' -- |' * len(block.rows[0])}"
        made, used = [top], size(top)
        for row, line in zip(block.rows[1:], rows, strict=True):
            more = size(f"\n{block.rest}{line}")
            if size(top) + more > room:
                if len(made) > 1:
                    yield block.first + f"\n{block.rest}".join(made)
                for item in listed([block.rows[0], row], self.dialect.bullet):
                    yield from self._pieces(item)
                made, used = [top], size(top)
                continue
            if used + more > room:
                yield block.first + f"\n{block.rest}".join(made)
                made, used = [top], size(top)
            made.append(line)
            used += more
        if len(made) > 1 or (len(block.rows) == 1 and size(top) <= room):
            yield block.first + f"\n{block.rest}".join(made)
        elif len(block.rows) == 1:
            for item in listed(block.rows, self.dialect.bullet):
                yield from self._pieces(item)

    def _row(self, row: Row) -> str:
        cells = (self._inline(cell).replace("\n", " ").replace("|", "\\|") for cell in row)
        return f"| {' | '.join(cells)} |"

    def _made(self, block: Block, spans: Sequence[MarkedText], first: str) -> str:
        text = "".join(span.text for span in spans)
        match block.kind:
            case "text":
                made = self.dialect.starts(self._inline(spans))
            case "code":
                made = self.dialect.fence(text, block.language)
            case "rule":
                made = self.dialect.rule
            case "table":
                return "\n".join(self._rows(block))
        made = first + made.replace("\n", "\n" + block.rest)
        if block.quote and isinstance(self.dialect.quote, tuple):
            return made.join(self.dialect.quote)
        return made

    def _inline(self, spans: Sequence[MarkedText]) -> str:
        """Write spans with their marks; what would be no mark beside a letter or another mark gets an invisible space."""
        made, before = "", ""
        for kind, text in self._strokes(spans):
            if not text:
                continue
            if before in _ENDS and kind in _BEGINS:
                made += self.dialect.touch
            elif self.dialect.apart and (
                (kind in _BEGINS and made[-1:].isalnum()) or (before in _ENDS and text[0].isalnum())
            ):
                made += BREAK
            made += text
            before = kind
        return made

    def _strokes(self, spans: Sequence[MarkedText]) -> Iterator[tuple[str, str]]:
        """Yield what opens, closes and stands between marks."""
        open_marks: list[tuple[Mark, str]] = []
        for span in (*spans, MarkedText("")):
            link = next((mark for mark in span.marks if isinstance(mark, LinkMark)), None)
            is_bare = link is not None and span.text == link.url
            marks: list[Mark] = [mark for mark in span.marks if not (is_bare and mark is link)]
            if link is not None and link in marks and self.dialect.apart:  # a label holds no marks there
                marks = marks[: marks.index(link) + 1]
            same = next(
                (at for at, (one, mark) in enumerate(zip(open_marks, marks, strict=False)) if one[0] != mark), None
            )
            same = min(len(open_marks), len(marks)) if same is None else same
            yield "close", "".join(after for _, after in reversed(open_marks[same:]))
            pairs: list[tuple[Mark, Pair]] = [(mark, self._pair(mark)) for mark in marks[same:]]
            open_marks[same:] = [(mark, after) for mark, (_, after) in pairs]
            yield "open", "".join(before for _, (before, _) in pairs)
            if is_bare:
                yield "text", self.dialect.bare(span.text)
            elif span.is_code and not (link and self.dialect.apart):
                yield "code", self.dialect.code(span.text) if span.text else ""
            else:
                yield "text", self.dialect.text(span.text)

    def _pair(self, mark: Mark) -> Pair:
        if isinstance(mark, LinkMark):
            return self.dialect.link(mark.url)
        return {"strong": self.dialect.strong, "em": self.dialect.em, "s": self.dialect.s}[mark]
