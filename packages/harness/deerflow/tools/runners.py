"""Test runners: the commands that run tests, and the lines in which each says how many there were. Add a row to know another one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from typing_extensions import TypedDict

from deerflow.sandbox.interface import SandboxCommandError
from deerflow.sandbox.isolated import check_environment


@dataclass(frozen=True, slots=True)
class TestSummary:
    """The lines of an output that count tests, and the numbers in them. A pattern without a group counts its lines."""

    line: str
    passed: str
    failed: str


PYTEST = TestSummary(r"(?:=+ )?\d+ \w{1,20}\b.{0,300} in \d[\d.]*s\b", r"(\d+) x?passed", r"(\d+) (?:failed|errors?)")
UNITTEST = TestSummary(r"Ran \d+ tests? in |FAILED \(", r"Ran (\d+) test", r"(?:failures|errors)=(\d+)")
NODE = TestSummary(r"(?:#|ℹ) (?:pass|fail) +\d+$", r"pass +(\d+)", r"fail +(\d+)")
JEST = TestSummary(r" {0,9}Tests:? +\d", r"(\d+) passed", r"(\d+) failed")
MOCHA = TestSummary(r" {0,9}\d+ (?:passing|failing)\b", r"(\d+) passing", r"(\d+) failing")
PLAYWRIGHT = TestSummary(r" {0,9}\d+ (?:passed|failed)(?: \(|$)", r"(\d+) passed", r"(\d+) failed")
GO = TestSummary(r"(?:ok|FAIL)\s+\S+\s", r"^ok(?!.{0,2000}\[no tests to run\])", r"^FAIL")
CARGO = TestSummary(r"test result: | {0,9}Summary \[", r"(\d+) passed", r"(\d+) failed")
PHPUNIT = TestSummary(r"OK \(\d+ tests?|Tests: \d+, ", r"OK \((\d+)", r"(?:Failures|Errors): (\d+)")
RSPEC = TestSummary(r"\d+ examples?, ", r"(\d+) example", r"(\d+) failure")
DOTNET = TestSummary(r".{0,20} - Failed: +\d+", r"Passed: +(\d+)", r"Failed: +(\d+)")
MAVEN = TestSummary(r".{0,20}Tests run: \d+", r"Tests run: (\d+)", r"(?:Failures|Errors): (\d+)")
CTEST = TestSummary(r"\d+% tests passed, ", r"out of (\d+)", r"(\d+) tests? failed")
DENO = TestSummary(r"(?:ok|FAILED) \| \d+ passed", r"(\d+) passed", r"(\d+) failed")
BUN = TestSummary(r" {0,9}\d+ (?:pass|fail)$", r"(\d+) pass", r"(\d+) fail")
ANY = (PYTEST, UNITTEST, NODE, JEST, MOCHA, PLAYWRIGHT, GO, CARGO, PHPUNIT, RSPEC, DOTNET, MAVEN, CTEST, DENO, BUN)

_VALUED = r"(?:[CfXW]|-(?:prefix|dir|cwd|filter)) "
_OPTIONS = rf"(?: (?:-{_VALUED}\S+|-(?!{_VALUED})\S+|\w+=\S*))*"
_PYTHON = rf"python[\d.]*{_OPTIONS}"
RUNNERS: Mapping[str, Sequence[TestSummary]] = {
    rf"(?:{_PYTHON} -m )?(?:pytest|py\.test)": (PYTEST,),
    rf"{_PYTHON} -m (?:unittest|nose2|django test)|nose2|django-admin test": (UNITTEST,),
    rf"(?:{_PYTHON} )?(?:\S*/)?manage\.py test": (UNITTEST,),
    rf"node{_OPTIONS} --test": (NODE,),
    r"jest|vitest|ava|tap": (JEST, NODE, PYTEST),
    r"mocha": (MOCHA, NODE),
    r"playwright test": (PLAYWRIGHT,),
    rf"go{_OPTIONS} test": (GO,),
    r"cargo(?: \+\S+)? (?:test|nextest run)": (CARGO,),
    r"dotnet test": (DOTNET,),
    rf"mvnw?{_OPTIONS} (?:test|verify)": (MAVEN,),
    r"ctest": (CTEST,),
    r"rspec": (RSPEC,),
    r"phpunit": (PHPUNIT,),
    r"deno test": (DENO,),
    r"bun test": (BUN,),
    rf"(?:npm|pnpm|yarn|bun){_OPTIONS} (?:run(?:-script)? )?test[\w:-]*": ANY,
    rf"(?:make|just|task){_OPTIONS} (?:test|check)[\w:-]*": ANY,
    r"tox|nox|hatch test": ANY,
}
"""By the beginning of the command."""

_WRAPPERS = (
    r"(?:(?:time|nice|command|timeout(?: -\S+)* \d\S*|(?:uv|poetry|pipenv|pdm|hatch|rye) run|npx|bunx|(?:pnpm|bundle) exec)"
    r"(?: -\S+)* )?"
)
_COMMANDS = [(re.compile(rf"{_WRAPPERS}(?:\S*/)?(?:{row})(?= |$)"), found) for row, found in RUNNERS.items()]
_BUILTINS = frozenset({"time", "command"})
_LONGEST = 1000
"""Characters of a command that is looked at."""
_TAIL = 20_000
"""Characters at the end of an output in which its summary is looked for."""
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|\\.")
_CD = re.compile(r"\s*cd\s+(?:'[^']*'|\"[^\"]*\"|\S+)\s*&&\s*")


class Tested(TypedDict):
    """A call whose whole command was a test runner, and what it said. ``tree``: of the sources beside it, when it had ended."""

    command: str
    cwd: str
    exit_code: int | None
    passed: int
    failed: int
    seconds: float
    tree: str | None


@dataclass(frozen=True, slots=True)
class Invocation:
    """A command that is a test runner and nothing else, so that its exit code is that of the tests.

    ``argv`` and ``env`` run it again; ``directory`` is that of a ``cd`` before it, or empty.
    """

    argv: list[str]
    env: dict[str, str]
    directory: str
    summaries: Sequence[TestSummary]

    def count(self, output: str) -> tuple[int, int]:
        """How many tests passed and failed, by the runner's summary."""
        passed = failed = 0
        lines = _COLOUR.sub("", output[-_TAIL:]).splitlines()
        for summary in self.summaries:
            said = [line[:2000] for line in lines if re.match(summary.line, line)]
            passed += sum(_number(summary.passed, line) for line in said)
            failed += sum(_number(summary.failed, line) for line in said)
        return passed, failed


def invocation(command: str) -> Invocation | None:
    """The test runner that a command is; None: it is another one, or does more than that."""
    lines = [line for line in command.strip().split("\n") if line.strip() and not line.lstrip().startswith("#")]
    if len(command) > _LONGEST or len(lines) != 1 or set(lines[0]) & set("`$\0"):
        return None
    lexer = shlex.shlex(lines[0], posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError:
        return None
    words = words[:-3] if words[-3:] == ["2", ">&", "1"] else words
    directory = ""
    if words[:1] == ["cd"] and words[2:3] == ["&&"]:
        directory, words = words[1], words[3:]
    if any(set(word) <= set("();<>|&") or word.startswith("#") for word in words):
        return None
    env: dict[str, str] = {}
    words = words[1:] if words[:1] == ["env"] else words
    while words and (found := _ASSIGNMENT.fullmatch(words[0])):
        env[found[1]], words = found[2], words[1:]
    said = " ".join(words)
    summaries = next((rows for pattern, rows in _COMMANDS if pattern.match(said)), None)
    try:
        check_environment(env)
    except SandboxCommandError:
        return None
    if summaries is None:
        return None
    argv = words[1:] if words[0] in _BUILTINS else words
    if set(_QUOTED.sub("", lines[0])) & set("*?[{~"):  # for a shell that knows nothing of the session's
        argv, env = ["bash", "--norc", "--noprofile", "-c", _CD.sub("", lines[0], count=1)], {}
    return Invocation(argv, env, directory, summaries)


def _number(pattern: str, line: str) -> int:
    found = [match[match.re.groups] for match in re.finditer(pattern, line)]
    return sum(int(text) if text.isdigit() else 1 for text in found)
