"""Which programs a script really calls: wrappers removed, code in strings read."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from deerflow.agents.middlewares.shell.parser import parse
from deerflow.agents.middlewares.shell.tree import Command, Script, Word
from deerflow.agents.middlewares.shell.words import MAX_DEPTH

SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "fish", "ash"})
INTERPRETERS = re.compile(r"(python|pypy)[\d.]*|perl|ruby|node|nodejs|php|lua")
DOWNLOADERS = frozenset({"curl", "wget", "fetch", "aria2c", "http", "https", "nc", "ncat", "netcat", "lwp-request"})

_WRAPPERS = {
    "sudo": "ugpChrtT",
    "doas": "u",
    "env": "uC",
    "nohup": "",
    "nice": "n",
    "ionice": "cn",
    "timeout": "sk",
    "command": "",
    "builtin": "",
    "exec": "a",
    "setsid": "",
    "stdbuf": "ioe",
    "xargs": "adEIiLnPs",
    "busybox": "",
    "time": "fo",
}
"""Programs that run the rest of their arguments, and their one-letter options that take a value."""


@dataclass(frozen=True, slots=True)
class Call:
    """One program and its arguments."""

    name: str
    words: tuple[Word, ...]
    """The arguments."""
    command: Command
    wrappers: tuple[str, ...] = ()

    @property
    def arguments(self) -> list[str]:
        return [word.text for word in self.words]

    @property
    def operands(self) -> list[Word]:
        """The arguments that are no options; all of them behind ``--``."""
        found: list[Word] = []
        for index, word in enumerate(self.words):
            if word.text == "--":
                return [*found, *self.words[index + 1 :]]
            if not word.text.startswith("-") or word.text == "-":
                found.append(word)
        return found

    def has_flag(self, letters: str, *long: str) -> bool:
        """Whether a one-letter option of ``letters`` is set, alone or in a cluster, or one of the ``long`` ones."""
        for argument in self.arguments:
            if argument == "--":
                return False
            if argument in long or any(argument.startswith(name + "=") for name in long):
                return True
            if re.match(r"-[A-Za-z]", argument) and any(letter in argument for letter in letters):
                return True
        return False


def scripts(script: Script, depth: int = 0) -> Iterator[Script]:
    """The script, those substituted in it, and those given as strings to shells in it."""
    for part in script.walk():
        yield part
        if depth >= MAX_DEPTH:
            continue
        for command in part.commands:
            if (call := unwrap(command)) is not None:
                for code in _given_code(call):
                    yield from scripts(parse(code), depth + 1)


def calls(script: Script) -> Iterator[Call]:
    """Every call in all of a script's :func:`scripts`, also behind ``find -exec``."""
    for part in scripts(script):
        for command in part.commands:
            if (call := unwrap(command)) is not None:
                yield call
                yield from _executed_by_find(call)


def unwrap(command: Command) -> Call | None:
    """The program that a command runs in the end."""
    words, wrappers = list(command.words), []
    while words:
        name = posixpath.basename(words[0].text)
        rest = words[1:]
        if name not in _WRAPPERS or not rest:
            return Call(name, tuple(rest), command, tuple(wrappers))
        wrappers.append(name)
        words = _behind_options(rest, _WRAPPERS[name])
        if name == "env":
            while words and re.match(r"[A-Za-z_]\w*=", words[0].text):
                words = words[1:]
        elif name == "timeout":
            words = words[1:]
    return Call(wrappers[-1], (), command, tuple(wrappers)) if wrappers else None


def _behind_options(words: list[Word], valued: str) -> list[Word]:
    index = 0
    while index < len(words) and words[index].text.startswith("-") and words[index].text != "-":
        option = words[index].text
        index += 1
        if option == "--":
            break
        if len(option) == 2 and option[1] in valued:
            index += 1
    return words[index:]


def _given_code(call: Call) -> Iterator[str]:
    """Shell code in a call's strings, heredocs and here-strings."""
    if call.name == "eval":
        yield " ".join(call.arguments)
    if call.name not in SHELLS:
        return
    inline = inline_code(call)
    if inline is not None:
        yield inline.text
    elif reads_code_from_stdin(call):
        for redirect in call.command.redirects:
            if redirect.operator in ("<<", "<<-"):
                yield redirect.body
            elif redirect.operator == "<<<":
                yield redirect.target.text


def inline_code(call: Call) -> Word | None:
    """The code behind ``-c`` or ``-e``."""
    letters = "c" if call.name in SHELLS or call.name.startswith(("python", "pypy")) else "er"
    for index, word in enumerate(call.words[:-1]):
        if re.fullmatch(rf"-[A-Za-z]*[{letters}]", word.text):
            return call.words[index + 1]
    return None


def reads_code_from_stdin(call: Call) -> bool:
    """Whether a shell or interpreter takes its program from standard input."""
    if inline_code(call) is not None or any(re.match(r"-[A-Za-z]*m", argument) for argument in call.arguments[:1]):
        return False
    if call.name in SHELLS and call.has_flag("s"):
        return True
    words = _behind_options(list(call.words), "oOWX")
    return not words or words[0].text in ("-", "/dev/stdin")


def is_interpreter(name: str) -> bool:
    return name in SHELLS or INTERPRETERS.fullmatch(name) is not None


def brings_foreign_text(call: Call) -> bool:
    """Whether its output was downloaded or decoded, so that nobody has read it."""
    if call.name in DOWNLOADERS:
        return True
    if call.name in ("base64", "base32"):
        return call.has_flag("dD", "--decode")
    if call.name == "openssl":
        return call.has_flag("d") or "s_client" in call.arguments
    return call.name == "xxd" and call.has_flag("r")


def _executed_by_find(call: Call) -> Iterator[Call]:
    if call.name not in ("find", "fd"):
        return
    for index, argument in enumerate(call.arguments):
        if argument in ("-exec", "-execdir", "-ok", "-x") and index + 1 < len(call.words):
            inner = Command(words=list(call.words[index + 1 :]), redirects=call.command.redirects)
            if (executed := unwrap(inner)) is not None:
                yield executed
