"""Markdown that arrives in pieces: finished blocks come out once, only the last one is still open."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, HorizontalRule, Markdown, MarkdownElement
from rich.padding import Padding
from rich.rule import Rule
from rich.syntax import Syntax
from rich.text import Text

from deerflow_app.cli.terminal import clean


class MarkdownStream:
    """Cuts a growing Markdown text at block borders.

    Only whole lines are looked at: ``#`` may become ``#hashtag``, which continues the paragraph before it.
    """

    def __init__(self) -> None:
        self.pending = ""
        self._parser = MarkdownIt("commonmark").enable("table")
        self._look_at = 0

    def feed(self, delta: str) -> list[str]:
        """Take the next piece; return the blocks that it completed."""
        self.pending += clean(delta)
        if "\n" not in delta or len(self.pending) < self._look_at:
            return []
        blocks = self._cut()
        # A long open block (a list, a table) is parsed less and less often, which keeps the total cost linear.
        self._look_at = int(len(self.pending) * 1.1)
        return blocks

    def close(self) -> list[str]:
        """The text has ended: return all that is left."""
        self.pending += "\n"
        blocks = self._cut()
        rest, self.pending, self._look_at = self.pending.strip("\n"), "", 0
        return [*blocks, rest] if rest.strip() else blocks

    def _cut(self) -> list[str]:
        whole_lines = self.pending[: self.pending.rfind("\n") + 1]
        starts = [
            token.map[0]
            for token in self._parser.parse(whole_lines)
            if token.level == 0 and token.nesting >= 0 and token.map is not None
        ]
        if len(starts) < 2:
            return []
        lines = self.pending.splitlines(keepends=True)
        borders = [0, *starts[1:]]
        self.pending = "".join(lines[starts[-1] :])
        blocks = ["".join(lines[a:b]).strip("\n") for a, b in itertools.pairwise(borders)]
        return [block for block in blocks if block.strip()]


def newest_part(source: str, lines: int) -> str:
    """The last ``lines`` lines of an open block; an open code fence keeps its first line so that it stays code."""
    all_lines = source.splitlines()
    if len(all_lines) <= lines:
        return source
    head = all_lines[:1] if source.lstrip().startswith(("```", "~~~")) else []
    return "\n".join([*head, *all_lines[-lines:]])


class _LeftHeading(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = self.text.copy()
        text.justify = "left"
        if self.tag == "h1":
            text.stylize("underline")
        yield text


class _PlainCode(CodeBlock):
    """Code on the terminal's own background, set off by a bar: it can be read on any theme and copied."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        syntax = Syntax(
            str(self.text).rstrip(), self.lexer_name, theme="ansi_dark", background_color="default", word_wrap=True
        )
        for line in console.render_lines(syntax, options.update(width=max(options.max_width - 2, 10)), pad=False):
            yield Text("│ ", style="faint", end="")
            yield from line
            yield Text("")


class _ThinRule(HorizontalRule):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Rule(style="markdown.hr")
        yield Text()


class _Prose(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _LeftHeading,
        "fence": _PlainCode,
        "code_block": _PlainCode,
        "hr": _ThinRule,
    }

    def __init__(self, source: str) -> None:
        super().__init__(source, hyperlinks=False)
        for token in self.parsed:
            token.children = _with_real_links(token.children) if token.children else token.children


def _with_real_links(tokens: Sequence[Token]) -> list[Token]:
    """Drop links that lead nowhere from a terminal, as to a page of the server, and those whose text is the address; their text stays."""
    kept: list[Token] = []
    drops = False
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "link_open":
            target = str(token.attrs.get("href", ""))
            drops = not _ADDRESS.match(target) or (following is not None and following.content == target)
        if not (drops and token.type in ("link_open", "link_close")):
            kept.append(token)
    return kept


_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


class Prose:
    """A piece of Markdown as it stands in the chat: indented, never wider than reads well."""

    def __init__(self, source: str, *, indent: int = 2, max_width: int = 100) -> None:
        self._source = source
        self._indent = indent
        self._max_width = max_width

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(options.max_width, self._max_width)
        body = Padding(_Trimmed(_Prose(self._source)), (0, 0, 0, self._indent))
        yield from console.render(body, options.update(width=width))


class _Trimmed:
    """A renderable without the empty lines that its elements leave at both ends."""

    def __init__(self, body: Markdown) -> None:
        self._body = body

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self._body, options, pad=False)
        filled = [i for i, line in enumerate(lines) if any(segment.text.strip() for segment in line)]
        for line in lines[filled[0] : filled[-1] + 1] if filled else []:
            yield from line
            yield Text("")
