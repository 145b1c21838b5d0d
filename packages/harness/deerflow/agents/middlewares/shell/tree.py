"""What a command line consists of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Word:
    """One word: quotes removed, ``$HOME`` and the like as written."""

    text: str
    quoted: bool = False
    """It begins with a quote or a backslash, so that a leading ``~`` means itself."""
    scripts: tuple[Script, ...] = ()
    """Its command substitutions."""
    processes: tuple[Script, ...] = ()
    """Its process substitutions: ``<(...)`` and ``>(...)``."""


@dataclass(frozen=True, slots=True)
class Redirect:
    operator: str
    target: Word
    body: str = ""
    """The text of a heredoc."""

    @property
    def writes(self) -> bool:
        return ">" in self.operator


@dataclass(slots=True)
class Command:
    """A simple command."""

    assignments: list[tuple[str, Word]] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    upstream: list[Command] = field(default_factory=list)
    """The commands whose output is piped into it."""
    background: bool = False

    @property
    def is_blank(self) -> bool:
        return not (self.words or self.assignments or self.redirects)

    def every_word(self) -> Iterator[Word]:
        yield from self.words
        yield from (word for _, word in self.assignments)
        yield from (redirect.target for redirect in self.redirects)


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    commands: list[Command]


@dataclass(frozen=True, slots=True)
class Loop:
    """A ``while``, ``until`` or ``for`` loop."""

    condition: list[Command]
    body: list[Command]


@dataclass(slots=True)
class Script:
    commands: list[Command] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    unclosed: str = ""
    """The quote or bracket that never ends, or "": such text is no valid bash."""

    def walk(self) -> Iterator[Script]:
        """This script and all that are substituted in it."""
        yield self
        for command in self.commands:
            for word in command.every_word():
                for script in (*word.scripts, *word.processes):
                    yield from script.walk()
