"""Reading command lines of bash: lists, pipelines, groups, functions, redirections, heredocs.

Nothing is expanded, and text that bash would reject is read as far as it goes. What must be right is where a command
begins and which text is only data (bash reference manual, 3.2 and 3.6).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from deerflow.agents.middlewares.shell.tree import Command, Function, Loop, Redirect, Script, Word
from deerflow.agents.middlewares.shell.words import ASSIGNMENT, BREAKS, MAX_DEPTH, WordReader

MAX_UPSTREAM = 100
"""Commands before a pipe that are remembered."""

_CLOSERS = {
    "{": "}",
    "if": "fi",
    "while": "done",
    "until": "done",
    "for": "done",
    "select": "done",
    "case": "esac",
}
_FILLERS = frozenset({"then", "else", "elif", "!", "time", "coproc"})
_CONTROL = (";;&", "&&", "||", ";;", ";&", "|&", ";", "|", "&", "(", ")", "\n")
_PIPES = ("|", "|&")
_CASE_ENDS = (";;", ";&", ";;&")
_REDIRECT = re.compile(r"(?:\d+|\{\w+\})?(<<<|<<-|<<|<>|<&|>>|>&|>\||&>>|&>|<(?!\()|>(?!\())")
_EMPTY_PARENTHESES = re.compile(r"[ \t]*\)")
_ESAC = re.compile(r"esac\b")


def parse(text: str, depth: int = 0) -> Script:
    """Read a command line or script. Never raises; ``Script.unclosed`` says if it ended too early."""
    return _Parser(text, depth).read()


@dataclass(slots=True)
class _Group:
    closer: str
    """What ends it; "" for a function's head that waits for its body."""
    start: int
    body: int = -1
    function: str = ""
    expects_pattern: bool = False


@dataclass(slots=True)
class _Scope:
    """The script that is being read."""

    script: Script = field(default_factory=Script)
    groups: list[_Group] = field(default_factory=list)
    current: Command = field(default_factory=Command)
    closed: list[Command] = field(default_factory=list)
    """The commands of a group that has just ended: a pipe may follow."""
    heredocs: list[tuple[Command, int]] = field(default_factory=list)

    def open(self, closer: str) -> _Group:
        waiting = self.groups.pop() if self.groups and not self.groups[-1].closer else None
        self.groups.append(_Group(closer, len(self.script.commands), function=waiting.function if waiting else ""))
        return self.groups[-1]

    def define(self, name: str) -> None:
        self.groups.append(_Group("", len(self.script.commands), function=name))
        self.current = Command()

    def close(self, closer: str) -> None:
        """End the innermost group with this closer."""
        if not any(group.closer == closer for group in self.groups):
            return
        while (group := self.groups.pop()).closer != closer:
            pass
        commands = self.script.commands
        if group.function:
            self.script.functions.append(Function(group.function, commands[group.start :]))
        if closer == "done" and group.body >= group.start:
            self.script.loops.append(Loop(commands[group.start : group.body], commands[group.body :]))
        self.closed = commands[group.start :]

    def finish(self, operator: str) -> None:
        """End the current command at a control operator."""
        command, sources = self.current, [*self.current.upstream, *self.closed]
        if not command.is_blank:
            self.script.commands.append(command)
            sources.append(command)
        if operator == "&":
            for member in [*command.upstream, command]:
                member.background = True
        self.current = Command(upstream=sources[-MAX_UPSTREAM:] if operator in _PIPES else [])
        self.closed = []


class _Parser(WordReader):
    def read(self, closing: str = "") -> Script:
        """Read to the end, or to an unmatched ``closing`` parenthesis, which is consumed."""
        scope = _Scope()
        while self._step(scope, closing):
            pass
        scope.finish("")
        scope.script.unclosed = self.unclosed
        return scope.script

    def nested(self) -> Script:
        with self.deeper("(") as allowed:
            return self.read(closing=")") if allowed else Script()

    def inner(self, text: str) -> Script:
        with self.deeper("`") as allowed:
            return parse(text, self.depth) if allowed else Script()

    def _step(self, scope: _Scope, closing: str) -> bool:
        """Read one token; False at the end."""
        if scope.groups and scope.groups[-1].expects_pattern:
            self._case_pattern(scope.groups[-1])
        self.skip_blank()
        if self.ended:
            if closing and not self.unclosed:
                self.unclosed = "("
            return False
        if operator := self._control():
            return self._operator(scope, operator, closing)
        if not self._redirect(scope):
            self._next_word(scope)
        return True

    def _operator(self, scope: _Scope, operator: str, closing: str) -> bool:
        words = scope.current.words
        if operator == "(" and len(words) == 1 and (match := _EMPTY_PARENTHESES.match(self.text, self.pos)):
            self.pos = match.end()
            scope.define(words[0].text)
            return True
        scope.finish(operator)
        if operator == "(":
            scope.open(")")
        elif operator == ")":
            if closing and not any(group.closer == ")" for group in scope.groups):
                return False
            scope.close(")")
        elif operator in _CASE_ENDS and scope.groups and scope.groups[-1].closer == "esac":
            scope.groups[-1].expects_pattern = True
        elif operator == "\n":
            self._read_heredocs(scope)
        return True

    def _control(self) -> str:
        for operator in _CONTROL:
            if self.at(operator):
                if self.at("&>") or (self.at("((") and self.arithmetic_end(self.pos)):
                    return ""
                self.pos += len(operator)
                return operator
        return ""

    def _next_word(self, scope: _Scope) -> None:
        command = scope.current
        if not command.words and self._arithmetic_command():
            command.words.append(Word("(("))
            return
        start = self.pos
        word = self.word()
        self.pos = max(self.pos, start + 1)
        if not command.words and not command.assignments and not word.quoted and self._reserved(scope, word.text):
            return
        assignment = None if command.words else ASSIGNMENT.match(self.text, start, self.pos)
        if assignment:
            value = Word(word.text[assignment.end() - start :], word.quoted, word.scripts, word.processes)
            command.assignments.append((assignment[1], value))
            return
        command.words.append(word)
        if word.text == "[[" and len(command.words) == 1:
            self._conditional(command)

    def _reserved(self, scope: _Scope, text: str) -> bool:
        """Take a reserved word in command position."""
        if text in _FILLERS:
            return True
        if text in _CLOSERS:
            group = scope.open(_CLOSERS[text])
            if text in ("for", "select"):
                self.skip_blank()
                if not self._arithmetic_command():
                    self.word()
            elif text == "case":
                self._case_head(group)
            return True
        if text == "do":
            if scope.groups and scope.groups[-1].closer == "done":
                scope.groups[-1].body = len(scope.script.commands)
            return True
        if text in _CLOSERS.values():
            scope.close(text)
            return True
        if text == "function":
            self.skip_blank()
            name = self.word().text
            if match := re.compile(r"[ \t]*\([ \t]*\)").match(self.text, self.pos):
                self.pos = match.end()
            scope.define(name)
            return True
        return False

    def _conditional(self, command: Command) -> None:
        """``[[ ... ]]``: operators inside are no control operators."""
        while not self.ended and command.words[-1].text != "]]":
            self.skip_blank(newlines=True)
            start = self.pos
            word = self.word()
            if self.pos > start:
                command.words.append(word)
            else:
                self.pos += 1

    def _case_head(self, group: _Group) -> None:
        self.skip_blank()
        self.word()
        self.skip_blank(newlines=True)
        if self.at("in"):
            self.pos += 2
        group.expects_pattern = True

    def _case_pattern(self, group: _Group) -> None:
        """Skip ``pattern)``; nothing before ``esac``."""
        group.expects_pattern = False
        self.skip_blank(newlines=True)
        if _ESAC.match(self.text, self.pos):
            return
        while not self.ended and not self.at(")"):
            if self.text[self.pos] in BREAKS:
                self.pos += 1
            else:
                self.word()
        self.pos += 1

    def _arithmetic_command(self) -> bool:
        end = self.arithmetic_end(self.pos) if self.at("((") else 0
        self.pos = end or self.pos
        return end > 0

    def _redirect(self, scope: _Scope) -> bool:
        match = _REDIRECT.match(self.text, self.pos)
        if not match:
            return False
        self.pos = match.end()
        self.skip_blank()
        target = self.word()
        if match[1] in ("<<", "<<-"):
            scope.heredocs.append((scope.current, len(scope.current.redirects)))
        scope.current.redirects.append(Redirect(match[1], target))
        return True

    def _read_heredocs(self, scope: _Scope) -> None:
        for command, index in scope.heredocs:
            redirect = command.redirects[index]
            body = self._heredoc_body(redirect)
            target = redirect.target
            if not target.quoted and ("$(" in body or "`" in body) and self.depth < MAX_DEPTH:
                target = Word(target.text, scripts=_Parser(body, self.depth + 1).substitutions())
            command.redirects[index] = Redirect(redirect.operator, target, body)
        scope.heredocs = []

    def _heredoc_body(self, redirect: Redirect) -> str:
        lines: list[str] = []
        while not self.ended:
            end = self.text.find("\n", self.pos)
            end = len(self.text) if end < 0 else end
            line = self.text[self.pos : end]
            self.pos = min(end + 1, len(self.text))
            if (line.lstrip("\t") if redirect.operator == "<<-" else line) == redirect.target.text:
                break
            lines.append(line)
        return "\n".join(lines)

    def substitutions(self) -> tuple[Script, ...]:
        """The substitutions of text that is otherwise data: an unquoted heredoc."""
        scripts: list[Script] = []
        while not self.ended:
            if self.at("\\"):
                self.pos += 2
            elif not self.expansion([], scripts, in_double=True):
                self.pos += 1
        return tuple(scripts)
