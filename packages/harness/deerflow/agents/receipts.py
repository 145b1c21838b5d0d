"""What a turn can show for its answer: what its tools did, and what of it the answer rests on. Pure; nothing is looked at here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from typing_extensions import TypedDict

from deerflow.agents.transcript import DECISION, REFUSED
from deerflow.sandbox.interface import OUTPUTS
from deerflow.security.text import inline
from deerflow.subagents.task import task_of
from deerflow.tools.runners import Tested
from deerflow.tools.shell import TESTED

Word = Literal["verified", "observed", "claimed", "contradicted"]
"""The server looked, and it is so; a tool call saw it; nothing bears it out; the server looked, and it is not so."""

WORST: tuple[Word, ...] = ("contradicted", "claimed", "observed", "verified")
TESTS_PASS = "tests pass"
MOST = 100
"""Receipts of each kind that are kept, the newest ones."""
COMMAND_CHARS = 300
_LOOKED_AT = 4000
"""Characters at the end of an answer that are searched."""

_SAYS_TESTS_PASS = re.compile(
    r"\btests?\b(?![^.\n]{0,30}\b(?:not|fail\w*|never|don.t|should|will|would|if)\b)[^.\n]{0,40}\b(?:pass(?:es|ed|ing)?|succeed(?:s|ed)?|green)\b"
    r"|测试(?!.{0,10}(?:未|没|不)).{0,10}通过",
    re.IGNORECASE,
)
_LINK = re.compile(re.escape(OUTPUTS) + r"/[^\s`'\"<>()\[\]*?{}|]*[^\s`'\"<>()\[\]*?{}|.,;:!?。，；：！？、]")
_CODE = re.compile(r"```.*?(?:```|\Z)|`(?![`/])[^`\n]*`", re.DOTALL)
"""Blocks of code, and spans that begin with something other than a path: what they name is not said to be there."""
_SENTENCE = re.compile(r"(?<=[.!?;])\s|[\n。！？；]")
_DENIED = re.compile(
    r"\b(?:not|no longer|cannot|never|unable|fail\w*|without|missing|remov\w*|delet\w*)\b|n.t\b|未|没|不|删|无法",
    re.IGNORECASE,
)
_NOT_YET = re.compile(r"\b(?:will|would|could|should|may|if|when|once)\b|将|如果", re.IGNORECASE)


class CheckReceipt(TypedDict):
    """An acceptance check of the run's request, and how it ended."""

    check: str
    passed: bool
    output: str


class Claim(TypedDict):
    """What the answer rests on: a file that was presented or linked, or that tests pass. ``seen``: what the word rests on."""

    claim: str
    word: Word
    seen: str


class CommandReceipt(TypedDict):
    """A shell command; ``test``: it is a test runner and nothing else."""

    command: str
    exit_code: int | None
    test: bool


class FileReceipt(TypedDict):
    """The newest state of a file that a tool wrote; large ones have no digest."""

    path: str
    bytes: int
    sha256: NotRequired[str]


class RefusedCall(TypedDict):
    """A call that was not made, and why."""

    tool: str
    why: str


class Work(TypedDict):
    """What tools did, those of subagents among them. ``tested``: the newest call that was a test runner."""

    commands: list[CommandReceipt]
    files: list[FileReceipt]
    delivered: list[str]
    sources: list[str]
    refused: list[RefusedCall]
    open_todos: list[str]
    tested: Tested | None


class Receipts(TypedDict):
    """``word``: that of the answer, None if it claims nothing; ``delivered``: paths; ``sources``: addresses; ``open_todos``:
    what the agent's own plan leaves undone."""

    word: Word | None
    claims: list[Claim]
    checks: list[CheckReceipt]
    commands: list[CommandReceipt]
    files: list[FileReceipt]
    delivered: list[str]
    sources: list[str]
    refused: list[RefusedCall]
    open_todos: list[str]


def receipts(work: Work, claims: Sequence[Claim], checks: Sequence[CheckReceipt] = ()) -> Receipts | None:
    """Receipts of a turn; None if there are none, and its answer claims nothing.

    Args:
        claims: as they were seen.
        checks: the acceptance checks, as they ended.
    """
    shown = {key: value for key, value in work.items() if key != "tested"}
    if not (claims or checks or any(shown.values())):
        return None
    seen: set[Word] = {claim["word"] for claim in claims}
    seen |= {"verified" if check["passed"] else "contradicted" for check in checks}
    word = next((word for word in WORST if word in seen), None)
    return {"word": word, "claims": list(claims), "checks": list(checks), **shown}  # type: ignore[typeddict-item]


def work_in(messages: Sequence[BaseMessage]) -> Work:
    """Return what the calls in ``messages`` did, oldest first."""
    calls = {call["id"]: call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls}
    found = _Found()
    for message in messages:
        if (task := task_of(message)) is not None and (theirs := task.get("work")):
            found.add_subagent(theirs)
        if isinstance(message, ToolMessage) and (call := calls.get(message.tool_call_id)) is not None:
            found.add_result(call["name"], call["args"], message)
    return found.work()


@dataclass
class _Found:
    """The work that the messages read so far show."""

    commands: list[CommandReceipt] = field(default_factory=list[CommandReceipt])
    files: dict[str, FileReceipt] = field(default_factory=dict[str, FileReceipt])
    delivered: dict[str, None] = field(default_factory=dict[str, None])
    sources: dict[str, None] = field(default_factory=dict[str, None])
    refused: list[RefusedCall] = field(default_factory=list[RefusedCall])
    todos: list[Any] = field(default_factory=list[Any])
    tested: Tested | None = None

    def add_subagent(self, theirs: Mapping[str, Any]) -> None:
        """Add the :class:`Work` of a subagent, as its task keeps it."""
        self.commands += theirs["commands"]
        self.files |= {file["path"]: file for file in theirs["files"]}
        self.sources |= dict.fromkeys(theirs["sources"])
        self.refused += theirs["refused"]
        self.tested = theirs["tested"] or self.tested

    def add_result(self, tool: str, args: Mapping[str, Any], message: ToolMessage) -> None:
        """Add what one call did, whose arguments the person may have changed."""
        args = (message.additional_kwargs.get(DECISION) or {}).get("args") or args
        proof = message.artifact if isinstance(message.artifact, Mapping) else {}
        if tool == "bash" and "exit_code" in proof:
            command = str(args.get("command") or "")[:COMMAND_CHARS]
            self.commands.append({"command": command, "exit_code": proof["exit_code"], "test": TESTED in proof})
            self.tested = proof.get(TESTED) or self.tested
        written = {file["path"]: file for file in file_receipts(message)}
        self.files |= written
        if tool == "present_files":
            self.delivered |= dict.fromkeys(written)
        if why := message.additional_kwargs.get(REFUSED):
            self.refused.append({"tool": tool, "why": str(why)})
        if message.status != "error" and tool == "write_todos":
            self.todos = args.get("todos") or []
        if message.status != "error" and isinstance(url := args.get("url"), str):
            self.sources[url] = None

    def work(self) -> Work:
        left = [todo for todo in self.todos if isinstance(todo, dict) and todo.get("status") != "completed"]
        return {
            "commands": self.commands[-MOST:],
            "files": list(self.files.values())[-MOST:],
            "delivered": list(self.delivered)[-MOST:],
            "sources": list(self.sources)[-MOST:],
            "refused": self.refused[-MOST:],
            "open_todos": [str(todo.get("content")) for todo in left][:MOST],
            "tested": self.tested,
        }


def claims_of(work: Work, answer: str) -> list[Claim]:
    """What an answer rests on, before anything is looked at."""
    tested, end = work["tested"], answer[-_LOOKED_AT:]
    says = tested is not None and tested["exit_code"] == 0 and tested["passed"] > 0
    says = says or _SAYS_TESTS_PASS.search(end) is not None
    paths = dict.fromkeys([*work["delivered"], *_links(end)])
    return [{"claim": each, "word": "claimed", "seen": ""} for each in [*([TESTS_PASS] if says else []), *paths][:MOST]]


def work_of_subagent(messages: Sequence[BaseMessage]) -> tuple[Work, str]:
    """What a subagent did, and the line about it with which its result ends; empty if it did nothing."""
    work = work_in(messages)
    said: list[str] = []
    if tested := work["tested"]:
        counted = f"{tested['passed']} passed, {tested['failed']} failed, exit code {tested['exit_code']}"
        said.append(f"tests ({inline(tested['command'][:COMMAND_CHARS])}): {counted}")
    if commands := work["commands"]:
        failed = sum(command["exit_code"] != 0 for command in commands)
        said.append(f"commands: {len(commands)}" + (f", of which {failed} failed" if failed else ""))
    if files := work["files"]:
        named = ", ".join(inline(file["path"]) for file in files[:10])
        said.append(f"files written: {named}" + (f" and {len(files) - 10} more" if len(files) > 10 else ""))
    if work["refused"]:
        said.append(f"refused calls: {len(work['refused'])}")
    return work, f"[receipts: {'; '.join(said)}]" if said else ""


def file_receipts(result: ToolMessage) -> list[FileReceipt]:
    """Receipts of the files that a call wrote or presented. Tools of others keep in artifacts what they like."""
    found = result.artifact.get("files") if isinstance(result.artifact, Mapping) else None
    files: list[FileReceipt] = found if isinstance(found, list) else []
    return [file for file in files if isinstance(file, dict) and isinstance(file.get("path"), str) and "bytes" in file]


def answer_of(messages: Sequence[BaseMessage]) -> str:
    last = messages[-1] if messages else None
    return last.text if isinstance(last, AIMessage) else ""


def _links(answer: str) -> list[str]:
    """Files of the sandbox that an answer names as there."""
    found: list[str] = []
    for sentence in _SENTENCE.split(_CODE.sub(" ", answer)):
        for link in _LINK.finditer(sentence):
            is_pattern = sentence[link.end() : link.end() + 1] in tuple("*?{<[")
            if not is_pattern and not _DENIED.search(sentence) and not _NOT_YET.search(sentence, 0, link.start()):
                found.append(link[0])
    return found
