"""Reading words of bash: quotes, escapes and expansions (bash reference manual, 3.1.2 and 3.5)."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from deerflow.agents.middlewares.shell.tree import Script, Word

MAX_DEPTH = 20
"""Expansions in expansions beyond which reading stops."""

ARITHMETIC_LIMIT = 500
"""Characters within which ``((`` must find its ``))``."""

ARITHMETIC_BUDGET = 50_000
"""Characters that are searched for ``))`` in all; bounds the work on text that is all brackets."""

ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[[^]]*\])?\+?=")
BREAKS = frozenset(" \t\n;&|()<>")

_BACKTICKS = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)
_ANSI_C_STRING = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ANSI_C_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|.)", re.DOTALL)
_ANSI_C_LETTERS = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "v": "\v",
}


class WordReader(ABC):
    """A position in a text, and how to read one word there."""

    def __init__(self, text: str, depth: int) -> None:
        self.text = text
        self.depth = depth
        self.pos = 0
        self.unclosed = ""
        self._arithmetic_budget = ARITHMETIC_BUDGET

    @abstractmethod
    def nested(self) -> Script:
        """Read a script up to the closing parenthesis, which is consumed."""

    @abstractmethod
    def inner(self, text: str) -> Script:
        """Read a script that stands in backticks."""

    def at(self, text: str) -> bool:
        return self.text.startswith(text, self.pos)

    @property
    def ended(self) -> bool:
        return self.pos >= len(self.text)

    def skip_blank(self, *, newlines: bool = False) -> None:
        """Skip white space, continued lines and, since a word may begin here, a comment."""
        while not self.ended:
            if self.text[self.pos] in (" \t\r\n" if newlines else " \t\r"):
                self.pos += 1
            elif self.at("\\\n"):
                self.pos += 2
            elif self.at("#"):
                end = self.text.find("\n", self.pos)
                self.pos = len(self.text) if end < 0 else end
            else:
                return

    def word(self) -> Word:
        """The word at the position; empty if there is none."""
        out: list[str] = []
        scripts: list[Script] = []
        processes: list[Script] = []
        start = self.pos
        quoted = not self.ended and (self.text[start] in "'\"\\" or self.at("$'") or self.at('$"'))
        while not self.ended:
            char = self.text[self.pos]
            if char in "<>" and self.text.startswith("(", self.pos + 1):
                self.pos += 2
                processes.append(self.nested())
            elif char == "(" and self.pos > start and self._opens_array(start):
                self._array(out, scripts)
            elif char == "(" and self.pos > start and self.text[self.pos - 1] in "@!+?*":
                self._extended_glob(out)
            elif char in BREAKS:
                break
            elif char == "'":
                self._single(out)
            elif char == '"':
                self._double(out, scripts)
            elif char == "\\":
                out.append("" if self.at("\\\n") else self.text[self.pos + 1 : self.pos + 2])
                self.pos += 2
            elif self.at("$'"):
                self._ansi_c(out)
            elif self.at('$"'):
                self.pos += 1
            elif not self.expansion(out, scripts):
                out.append(char)
                self.pos += 1
        return Word("".join(out), quoted, tuple(scripts), tuple(processes))

    def expansion(self, out: list[str], scripts: list[Script], *, in_double: bool = False) -> bool:
        """Read ``$(...)``, backticks, ``${...}`` or ``$((...))`` at the position, if one stands there."""
        if self.at("$$"):
            out.append("$$")
            self.pos += 2
        elif self.at("$((") and (end := self.arithmetic_end(self.pos + 1)):
            out.append(self.text[self.pos : end])
            self.pos = end
        elif self.at("$("):
            start = self.pos
            self.pos += 2
            scripts.append(self.nested())
            out.append(self.text[start : self.pos])
        elif self.at("${"):
            self._parameter(out, scripts, in_double)
        elif self.at("`"):
            self._backticks(out, scripts)
        else:
            return False
        return True

    def arithmetic_end(self, start: int) -> int:
        """Behind the ``))`` that closes the ``((`` at ``start``; 0 if it is no arithmetic."""
        depth = 0
        for index in range(start, min(start + min(ARITHMETIC_LIMIT, self._arithmetic_budget), len(self.text))):
            self._arithmetic_budget -= 1
            depth += {"(": 1, ")": -1}.get(self.text[index], 0)
            if depth == 1 and self.text[index] == ")":
                return index + 2 if self.text.startswith("))", index) else 0
        return 0

    def _single(self, out: list[str]) -> None:
        end = self.text.find("'", self.pos + 1)
        if end < 0:
            self.unclosed = "'"
            end = len(self.text)
        out.append(self.text[self.pos + 1 : end])
        self.pos = end + 1

    def _double(self, out: list[str], scripts: list[Script]) -> None:
        self.pos += 1
        while not self.ended:
            char = self.text[self.pos]
            if char == '"':
                self.pos += 1
                return
            if char == "\\":
                escaped = self.text[self.pos + 1 : self.pos + 2]
                out.append("" if escaped == "\n" else escaped if escaped in '$`"\\' else "\\" + escaped)
                self.pos += 2
            elif not self.expansion(out, scripts, in_double=True):
                out.append(char)
                self.pos += 1
        self.unclosed = '"'

    def _ansi_c(self, out: list[str]) -> None:
        match = _ANSI_C_STRING.match(self.text, self.pos + 1)
        if match is None:
            self.unclosed = "'"
            self.pos = len(self.text)
            return
        out.append(_ANSI_C_ESCAPE.sub(_decoded, match[1]))
        self.pos = match.end()

    @contextmanager
    def deeper(self, bracket: str) -> Iterator[bool]:
        """One level down; False if that is too deep, and then the text counts as read."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.unclosed, self.pos = bracket, len(self.text)
        yield self.depth <= MAX_DEPTH
        self.depth -= 1

    def _parameter(self, out: list[str], scripts: list[Script], in_double: bool) -> None:
        with self.deeper("${") as allowed:
            if allowed:
                self._parameter_body(out, scripts, in_double)

    def _parameter_body(self, out: list[str], scripts: list[Script], in_double: bool) -> None:
        start = self.pos
        self.pos += 2
        while not self.ended:
            char = self.text[self.pos]
            if char == "}":
                self.pos += 1
                out.append(self.text[start : self.pos])
                return
            if char == "\\":
                self.pos += 2
            elif char == '"':
                self._double([], scripts)
            elif char == "'" and not in_double:
                self._single([])
            elif not self.expansion([], scripts, in_double=in_double):
                self.pos += 1
        self.unclosed = "${"

    def _backticks(self, out: list[str], scripts: list[Script]) -> None:
        match = _BACKTICKS.match(self.text, self.pos)
        if match is None:
            self.unclosed = "`"
            self.pos = len(self.text)
            return
        scripts.append(self.inner(re.sub(r"\\([`\\$])", r"\1", match[1])))
        out.append(match[0])
        self.pos = match.end()

    def _opens_array(self, start: int) -> bool:
        match = ASSIGNMENT.match(self.text, start, self.pos)
        return match is not None and match.end() == self.pos

    def _array(self, out: list[str], scripts: list[Script]) -> None:
        with self.deeper("(") as allowed:
            if allowed:
                self._array_words(out, scripts)

    def _array_words(self, out: list[str], scripts: list[Script]) -> None:
        self.pos += 1
        while not self.ended:
            self.skip_blank(newlines=True)
            if self.at(")"):
                self.pos += 1
                return
            start = self.pos
            word = self.word()
            scripts.extend(word.scripts)
            out.append(word.text)
            self.pos = max(self.pos, start + 1)
        self.unclosed = "("

    def _extended_glob(self, out: list[str]) -> None:
        depth, start = 0, self.pos
        while not self.ended:
            depth += {"(": 1, ")": -1}.get(self.text[self.pos], 0)
            self.pos += 1
            if depth == 0:
                break
        out.append(self.text[start : self.pos])


def _decoded(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "xuU" and len(code) > 1:
        return chr(min(int(code[1:], 16), 0x10FFFF))
    if code[0] in "01234567":
        return chr(int(code, 8) & 0xFF)
    return _ANSI_C_LETTERS.get(code, code)
