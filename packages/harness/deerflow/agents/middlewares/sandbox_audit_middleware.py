"""A record of every shell command and file change, and advice against the dangerous ones."""

from __future__ import annotations

import asyncio
import json
import logging
import posixpath
import re
from bisect import bisect_left
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, NamedTuple

from langgraph.prebuilt.tool_node import ToolCallRequest

from deerflow.agents.middlewares.base import (
    Middleware,
    ToolHandler,
    ToolResult,
    error_result,
    tool_messages,
    with_note,
)

MAX_COMMAND = 10_000
"""Characters of a command."""
MAX_LINE = 2000
"""Characters of one call that are looked at, and as many of its redirections: the rules take quadratic time."""
MAX_DEPTH = 8
"""Code in strings of code, and wrappers in front of a program."""


class Verdict(IntEnum):
    WARN = 1
    BLOCK = 2


class Finding(NamedTuple):
    """Why a command is not simply passed."""

    verdict: Verdict
    rule: str
    reason: str


_SHELL = r"(?:ba|z|da|k|a)?sh"
_INTERPRETER = rf"(?:(?:python|pypy)[\d.]*|perl|ruby|node|php|lua|{_SHELL})"
_FOREIGN = r"(?:(?:curl|wget|nc)\b|base64 (?:.* )?(?:-\w*[dD]\b|--decode)|xxd .*-r|openssl .*-d\b)"
_FOREIGN_NEAR = _FOREIGN.replace(".*", ".{0,100}")
_VITAL = (
    r"(?P<it>(?:/+(?:(?:home|root|etc|usr|bin|sbin|lib|lib64|var|boot|dev|proc|sys|opt|srv|mnt|mnt/skills"
    r"|mnt/user-data(?:/uploads)?)/?)?|~(?:root)?/?|\$HOME/?|\$\{HOME\}/?)\*?)(?=\s|$)"
)
_DISK = r"(?P<it>/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|mapper/|disk/|mem)\w*)"
_PROTECTED = (
    r"(?P<it>/(?:etc|bin|sbin|boot|usr/(?:local/)?s?bin)/\S+|/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|mem|tcp/|udp/)\S*"
    r"|(?:~\w*|\$HOME|\$\{HOME\}|/root|/home/[^/]+)/\.(?:bashrc|profile|zshrc|bash_profile|ssh/authorized_keys))"
)
_BLOCKED = [
    ("recursive-delete", r"rm (?:.* )?(?P<it>--no-preserve-root)", "rm {it}"),
    ("recursive-delete", rf"rm (?=(?:.* )?(?:-\w*[rR]|--recursive))(?:.* )?{_VITAL}", "rm -r of {it}: name what is below"),
    ("recursive-delete", rf"find {_VITAL}.* -(?:delete|exec(?:dir)? \S*rm )", "find deletes what it finds in {it}"),
    ("disk-format", r"(?P<it>mkfs(?:\.\S+)?|mke2fs|wipefs|mkswap)\b", "{it} formats a disk"),
    ("raw-disk", rf"(?:dd .*\b[io]f=|shred .*){_DISK}", "{it} is a disk device"),
    ("network-redirect", r"(?:.*\t[<>&\d]+)?(?P<it>/dev/(?:tcp|udp)/\S*)", "{it} opens a raw network connection"),
    ("protected-file", rf"(?:.*\t[\d&]*>[>|]?|(?:tee|truncate|sed -i|cp|mv|ln|install) (?:.* )?){_PROTECTED}", "writing to {it}"),
    ("secret-file", r"(?!echo |printf ).*(?P<it>/etc/g?shadow\b|/proc/[^/\s'\"]+/environ\b)", "reading {it}"),
    ("reverse-shell", r"(?P<it>(?:nc|ncat|netcat) (?:.* )?(?:-\w*e|--exec)\b|socat .*\b(?i:exec|system):)", "{it} serves a shell"),
    ("library-injection", r"(?:(?:export|env) .*)?(?P<it>LD_(?:PRELOAD|LIBRARY_PATH))=", "{it}= replaces libraries"),
]  # fmt: skip
_WARNED = [
    ("path-change", r"(?:(?:export|env) (?:.* )?)?(?P<it>PATH=)", "{it} changes which programs later commands find"),
    ("permissions", r"(?P<it>chmod (?:-\S+ )*(?:0?777|a?\+rwx))\b", "{it} lets everybody change the files"),
    ("install", r"(?:python[\d.]* -m )?(?P<it>pip[\d.]*|apt|apt-get) (?:.* )?install\b", "{it} install changes later commands"),
    ("privileges", r"(?P<it>sudo|su|doas)\b", "{it} has no effect here: work without it"),
]  # fmt: skip
"""What a call looks like: its name, its arguments, and behind tabs its redirections."""
_BLOCKED_SCRIPTS = [
    ("fork-bomb", r"(?<![\w:])([\w:]+)\s*(?:\(\s*\))?\s*\{[^}]{0,100}?(?<![\w:])\1\s*\|\s*\1\s*&", "a function that starts itself"),
    ("fork-bomb", r"\bwhile\s+(?:true|:)\s*[;\n]\s*do\b[^\n]{0,200}[^&>]&\s*done\b", "it starts processes without end"),
    ("remote-code", rf"(?:^|[\n;&|(])\s*\"?(?:\$\(|`)\s*(?:{_INTERPRETER}\b|{_FOREIGN})", "it runs what a command prints"),
    (
        "remote-code",
        rf"(?<![^\s;&|(/])(?:eval|source|\.|{_INTERPRETER})(?:\s+(?:-\w*|<<<)){{0,9}}\s*\"?(?:[$<]\(|`)(?:[^)`]{{0,200}}\|)?\s*{_FOREIGN_NEAR}",
        "it runs downloaded or decoded text: save it to a file, read it, then run it",
    ),
]  # fmt: skip
"""The same for all of a command, whose strings are taken out."""


def judge(command: object) -> Finding | None:
    """The gravest finding about a shell command; None = nothing to say."""
    text = command if isinstance(command, str) else ""
    if not text.strip():
        return Finding(Verdict.BLOCK, "empty-command", "empty command")
    if len(text) > MAX_COMMAND:
        reason = f"command too long: {len(text)} characters of {MAX_COMMAND}. Write the content to a file first"
        return Finding(Verdict.BLOCK, "command-too-long", reason)
    if "\0" in text:
        return Finding(Verdict.BLOCK, "null-byte", "null byte detected")
    return max(_findings(text), key=lambda finding: finding.verdict, default=None)


def _findings(text: str, depth: int = 0) -> Iterator[Finding]:
    strings: list[str] = []
    bare = _BLANKS.sub(lambda blanks: "\n" if "\n" in blanks[0] else " ", _without_strings(text, strings))
    for rule, pattern, reason in _BLOCKED_SCRIPTS:
        if re.search(pattern, bare):
            yield Finding(Verdict.BLOCK, rule, reason)
    foreign = False
    for call in _calls(bare, strings):
        for verdict, rules in ((Verdict.BLOCK, _BLOCKED), (Verdict.WARN, _WARNED)):
            for rule, pattern, reason in rules:
                if found := re.match(pattern, call.line):
                    yield Finding(verdict, rule, reason.format(it=found["it"]))
        foreign = (foreign and call.piped) or re.match(_FOREIGN, call.line) is not None
        if call.piped and re.fullmatch(_INTERPRETER, call.name) and call.reads_code:
            if foreign:
                reason = f"a pipe into {call.name} runs downloaded or decoded text: save it to a file and read it first"
                yield Finding(Verdict.BLOCK, "remote-code", reason)
            elif re.fullmatch(_SHELL, call.name):
                yield Finding(Verdict.BLOCK, "pipe-to-shell", f"a pipe into {call.name} runs whatever comes")
        if depth < MAX_DEPTH and (code := call.code):
            yield from _findings(code, depth + 1)


# from text to calls ---------------------------------------------------------------------------------------------------

_STRING = re.compile(
    r"(?P<comment>(?<![^\s;&|(])\#[^\n]*|\[\[\s[^\n]{0,500}?\s\]\])|\\(?P<escaped>.)|'(?P<single>[^']*)'|\"(?P<double>(?:\\.|[^\"\\])*)\""
    r"|(?<!<)<<-?[ \t]*['\"\\]?(?P<word>[A-Za-z_]\w*+)['\"]?(?P<rest>[^\n]*+)\n",
    re.DOTALL,
)
_BLANKS = re.compile(r"\s+")
_TOKEN = re.compile(
    r"(?P<redirect>\d*(?:<<<|&>>?|[<>]&|>>|>\||<>|[<>]))(?!\()[ \t]*(?P<target>[^\s;&|()<>]*)"
    r"|(?P<pipe>\|&?(?!\|))|(?P<end>&&|\|\||[$<>]\(|[;&()\n`])|(?P<word>(?:[^\s;&|()<>`$]|\$(?!\())+)"
)
_KEYWORDS = frozenset(
    re.findall(r"\S+", "if then else elif fi for while until do done case esac in function time ! { }")
)
_WRAPPERS = {"sudo": "ugChpT", "env": "uC", "nohup": "", "nice": "n", "timeout": "sk", "command": "", "exec": "a",
             "setsid": "", "xargs": "adEILnPs", "busybox": ""}  # fmt: skip
"""Programs that run the rest of their arguments, and their one-letter options that take a value."""


class _Call(NamedTuple):
    """One program of a command."""

    words: list[str]
    redirects: list[tuple[str, str]]
    """Operator and target."""
    piped: bool
    """Whether its input is another call's output."""

    @property
    def name(self) -> str:
        head = self.words[0] if self.words else ""
        return head if head.startswith("/dev/") or "=" in head else posixpath.basename(head)

    @property
    def line(self) -> str:
        redirects = (f"\t{operator}{target}" for operator, target in self.redirects if operator != "<<<")
        return (" ".join((self.name, *self.words[1:]))[:MAX_LINE] + "".join(redirects))[: 2 * MAX_LINE]

    @property
    def code(self) -> str:
        """What a shell is given to run, if it is a shell."""
        if self.name == "eval":
            return " ".join(self.words[1:])
        inline = [word for flag, word in zip(self.words, self.words[1:], strict=False) if re.fullmatch(r"-\w*c", flag)]
        given = [*inline, *(target for operator, target in self.redirects if operator == "<<<")]
        return given[0] if given and re.fullmatch(_SHELL, self.name) else ""

    @property
    def reads_code(self) -> bool:
        """Whether an interpreter is given no program but its standard input."""
        return self.words[1:2] in (["-"], ["-s"]) or all(word.startswith("-") for word in self.words[1:])


def _without_strings(text: str, strings: list[str]) -> str:
    """``text`` with every string and here-document moved to ``strings``, which leaves a mark in its word."""
    text = re.sub("[\ue000\ue001]", "", text)
    kept, position, ends = [], 0, _document_ends(text)
    while found := _STRING.search(text, position):
        kept.append(text[position : found.start()])
        position = found.end()
        held = found["escaped"] if found["single"] is None else found["single"]
        if found["word"]:
            known = ends.get(found["word"], [])
            if (after := bisect_left(known, (position, 0))) == len(known):
                kept.append("<<")
                position = found.start() + 2
                continue
            end, past = known[after]
            held, position = text[position:end], past
        elif found["comment"] is not None or found[0] == "\\\n":
            kept.append(" ")
            continue
        elif found["double"] is not None:
            held = found["double"]
            if "$(" in held or "`" in held:
                kept.append(held)
                continue
        strings.append(held or "")
        mark = f"\ue000{len(strings) - 1}\ue001"
        kept.append(f"<<< {mark} {found['rest']}" if found["word"] else mark)
    return "".join(kept) + text[position:]


def _document_ends(text: str) -> dict[str, list[tuple[int, int]]]:
    """Where lines stand that may end a here-document, by their word: start and end."""
    ends: dict[str, list[tuple[int, int]]] = {}
    for line in re.finditer(r"^\t*(\w+)[ \t]*$", text, re.MULTILINE):
        ends.setdefault(line[1], []).append(line.span())
    return ends


def _calls(bare: str, strings: list[str]) -> Iterator[_Call]:
    """The calls of a command one after the other, those in substitutions and behind wrappers as their own."""
    call, piped = _Call([], [], False), False
    for token in _TOKEN.finditer(bare + "\n"):
        text = re.sub("\ue000(\\d+)\ue001", lambda held: strings[int(held[1])], token["word"] or token["target"] or "")
        text = posixpath.normpath(text) if text.startswith("/") else text
        if token["redirect"]:
            call.redirects.append((token["redirect"], text))
        elif token["word"]:
            call.words.append(text)
        else:
            yield from _unwrapped(call) if call.words or call.redirects else ()
            piped = bool(token["pipe"]) or (piped and not call.words and token["end"] == "(")
            call = _Call([], [], piped)


def _unwrapped(call: _Call, depth: int = 0) -> Iterator[_Call]:
    """A call and the one that it makes; assignments before it count as calls."""
    words = call.words
    while words and (words[0] in _KEYWORDS or re.match(r"[A-Za-z_]\w*=", words[0])):
        if "=" in words[0]:
            yield _Call(words[:1], [], False)
        words = words[1:]
    yield call._replace(words=words)
    wrapper = posixpath.basename(words[0]) if words else ""
    if wrapper in _WRAPPERS and len(words) > 1 and depth < MAX_DEPTH:
        words = words[1:]
        while words and (words[0].startswith("-") or re.fullmatch(r"[\d.]+[smhd]?", words[0])):
            words = words[2 if words[0][1:] in tuple(_WRAPPERS[wrapper]) else 1 :]
        yield from _unwrapped(call._replace(words=words), depth + 1)


audit = logging.getLogger("deerflow.audit")

SHOWN_COMMAND = 200
"""Characters of a command in a warning, and in the record of a refusal."""


class SandboxAuditMiddleware(Middleware):
    """Blocks or warns about shell commands and logs them as JSON: ``[SandboxAudit] {...}`` on ``deerflow.audit``.

    It is advice, not protection: what must not happen is what the sandbox makes impossible.
    """

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        name, args = request.tool_call["name"], request.tool_call["args"]
        path = str(args.get("path") or args.get("file_path") or args.get("filepath") or "")
        if name in ("write_file", "str_replace"):
            size = len(str(args.get("content") or args.get("new_str") or args.get("new_string") or ""))
            return await _recorded(request, handler, path=path, size=size, verdict="pass")
        if name != "bash" or "command" not in args:  # without a command the tool itself says what it wants
            return await handler(request)
        # Off the loop: a long command may take a tenth of a second.
        finding = await asyncio.to_thread(judge, args["command"])
        command = "" if args["command"] is None else str(args["command"])
        if finding is None:
            return await _recorded(request, handler, command=command, verdict="pass")
        facts = {"command": command, "verdict": finding.verdict.name.lower(), "rule": finding.rule}
        if finding.verdict is Verdict.BLOCK:
            facts |= {"command": command[:SHOWN_COMMAND], "command_length": len(command)}
            text = f"Error: Command blocked (security violation detected, rule {finding.rule}): {finding.reason}."
            _record(request, facts, "error")
            return error_result(request.tool_call, text)
        shown = command if len(command) <= SHOWN_COMMAND else command[:SHOWN_COMMAND] + "..."
        warning = f"The command `{shown}` was run, but note: {finding.reason}."
        return with_note(await _recorded(request, handler, **facts), warning)


async def _recorded(request: ToolCallRequest, handler: ToolHandler, **facts: Any) -> ToolResult:
    """Make the call and log what it was and how it ended."""
    outcome = "interrupted"
    try:
        result = await handler(request)
        outcome = next((message.status for message in tool_messages(result)), "success")
        return result
    finally:
        _record(request, facts, outcome)


def _record(request: ToolCallRequest, facts: dict[str, Any], outcome: str) -> None:
    context = getattr(request.runtime, "context", None)
    record = {
        "timestamp": datetime.now(UTC).isoformat(),
        "thread_id": getattr(context, "thread_id", None) or "unknown",
        "user_id": getattr(getattr(context, "principal", None), "user_id", None) or "unknown",
        "run_id": getattr(context, "run_id", None) or "unknown",
        "tool": request.tool_call["name"],
        **facts,
        "outcome": outcome,
    }
    level = logging.INFO if facts["verdict"] == "pass" else logging.WARNING
    audit.log(level, "[SandboxAudit] %s", json.dumps(record, ensure_ascii=False))
