"""What a run can show for its answer: receipts of its tool calls, and whether they bear out what it claims."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from typing_extensions import TypedDict

from deerflow.sandbox.interface import OUTPUTS

Verification = Literal["verified", "partly", "claimed"]

MOST = 100
"""Receipts of each kind that are kept, the newest ones."""
COMMAND_CHARS = 300
_LOOKED_AT = 4000
"""Characters at the end of a command, and of an answer, that are searched."""

_RUNNER = re.compile(
    r"(?:^|[;&|(\n]|\b[A-Z_]{1,40}=\S{0,200}(?=[ \t])|\s-m|\b(?:npx|bunx|run|exec|time|timeout \S{1,10}))"
    r"[ \t]{0,20}(?:[\w.~-]{0,100}/){0,20}"
    r"(?:pytest|tox|nox|ctest|rspec|phpunit|jest|vitest|unittest|playwright test|go test|cargo (?:nex)?test|dotnet test"
    r"|deno test|bun test|(?:make|mvn|gradlew?|npm|pnpm|yarn)(?! (?:i|install|add|ci)\b)(?: \S{1,40}){0,4} \S{0,40}(?:test|check)\S{0,40})"
    r"(?=$|[\s;&|)])"
)
_HIDES_EXIT_CODE = re.compile(r"\|\||;|(?<![>&])&(?![>&\d])|(?<!\|)\|(?!\|)")
_CHANGES = re.compile(
    r"(?<![\d&>])>{1,2}(?![&\s]*/dev/null)|\b(?:sed -i|tee|mv|cp|rm|patch|git (?:apply|checkout|reset|stash))\b"
)
_TESTS_PASS = re.compile(
    r"\btests?\b(?![^.\n]{0,30}\b(?:not|fail\w*|never|don.t|should|will|would|if)\b)[^.\n]{0,40}\b(?:pass(?:es|ed|ing)?|succeed(?:s|ed)?|green)\b"
    r"|测试(?!.{0,10}(?:未|没|不)).{0,10}通过",
    re.IGNORECASE,
)
_DELIVERED = re.compile(re.escape(OUTPUTS) + r"/[^\s`'\"<>()\[\]*]*[^\s`'\"<>()\[\]*.,;:!?]")


class Check(TypedDict):
    """An acceptance check of the run's request, and how it ended."""

    check: str
    passed: bool
    output: str


class Claim(TypedDict):
    """What the answer says that a receipt could prove."""

    claim: str
    proved: bool


class Command(TypedDict):
    """A shell command; ``test``: it runs tests, and its exit code is theirs."""

    command: str
    exit_code: int
    test: bool


class FileReceipt(TypedDict):
    """The newest state of a file that the run wrote; large ones have no digest."""

    path: str
    bytes: int
    sha256: NotRequired[str]


class Receipts(TypedDict):
    """``delivered``: paths; ``sources``: addresses; ``open_todos``: what the agent's own plan leaves undone."""

    verification: Verification
    claims: list[Claim]
    checks: list[Check]
    commands: list[Command]
    files: list[FileReceipt]
    delivered: list[str]
    sources: list[str]
    open_todos: list[str]


def receipts(messages: Sequence[BaseMessage], checks: Sequence[Check] = ()) -> Receipts | None:
    """Receipts of a run; None if it has none and its answer claims nothing that one could prove.

    Args:
        messages: those that the run added to its thread, oldest first.
        checks: the acceptance checks, as they ended.
    """
    calls = {call["id"]: call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls}
    commands: list[Command] = []
    files: dict[str, FileReceipt] = {}
    sources: dict[str, None] = {}
    delivered: dict[str, None] = {}
    tested = False
    todos: list[Any] = []
    for message in messages:
        if not isinstance(message, ToolMessage) or (call := calls.get(message.tool_call_id)) is None:
            continue
        proof = message.artifact if isinstance(message.artifact, Mapping) else {}
        if call["name"] == "bash" and "exit_code" in proof:
            command = str(call["args"].get("command") or "")
            is_test = is_test_command(command)
            commands.append({"command": command[:COMMAND_CHARS], "exit_code": proof["exit_code"], "test": is_test})
            tested = proof["exit_code"] == 0 if is_test else tested and not _CHANGES.search(command[:_LOOKED_AT])
        presented = call["name"] == "present_files"
        for file in file_receipts(message):
            files[file["path"]] = file
            tested = tested and presented
            delivered |= {file["path"]: None} if presented else {}
        if message.status != "error" and call["name"] == "write_todos":
            todos = call["args"].get("todos") or []
        if message.status != "error" and isinstance(url := call["args"].get("url"), str):
            sources[url] = None
    claims = _claims(_answer(messages), tested, {*files, *delivered})
    proofs = [claim["proved"] for claim in claims] + [check["passed"] for check in checks]
    open_todos = [
        str(todo.get("content")) for todo in todos if isinstance(todo, dict) and todo.get("status") != "completed"
    ]
    if not (proofs or commands or files or sources or todos):
        return None
    if not proofs and (tested or delivered):
        proofs = [True]
    if open_todos:
        proofs = [*(proofs or [True]), False]
    return {
        "verification": _verification(proofs),
        "claims": claims,
        "checks": list(checks),
        "commands": commands[-MOST:],
        "files": list(files.values())[-MOST:],
        "delivered": list(delivered)[-MOST:],
        "sources": list(sources)[-MOST:],
        "open_todos": open_todos[:MOST],
    }


def file_receipts(result: ToolMessage) -> list[FileReceipt]:
    """Receipts of the files that a call wrote or presented. Tools of others keep in artifacts what they like."""
    found = result.artifact.get("files") if isinstance(result.artifact, Mapping) else None
    files: list[FileReceipt] = found if isinstance(found, list) else []
    return [file for file in files if isinstance(file, dict) and isinstance(file.get("path"), str) and "bytes" in file]


def is_test_command(command: str) -> bool:
    """Whether a command runs tests and its exit code is theirs: nothing behind them hides it."""
    end = command[-_LOOKED_AT:]
    found = list(_RUNNER.finditer(end))
    return bool(found) and ("pipefail" in command or not _HIDES_EXIT_CODE.search(end, found[-1].end()))


def _verification(proofs: Sequence[bool]) -> Verification:
    if proofs and all(proofs):
        return "verified"
    return "partly" if any(proofs) or not proofs else "claimed"


def _claims(answer: str, tested: bool, known: set[str]) -> list[Claim]:
    claims: list[Claim] = [{"claim": "tests pass", "proved": tested}] if _TESTS_PASS.search(answer) else []
    named = dict.fromkeys(found[0] for found in _DELIVERED.finditer(answer))
    return claims + [{"claim": path, "proved": path in known} for path in list(named)[:MOST]]


def _answer(messages: Sequence[BaseMessage]) -> str:
    last = messages[-1] if messages else None
    return last.text[-_LOOKED_AT:] if isinstance(last, AIMessage) else ""
