"""Reports in Markdown as documents to pass on, made by the scripts of skills in the thread's sandbox, as an agent makes them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from deerflow.context import RunContext
from deerflow.errors import ConflictError, InvalidRequestError, NotFoundError, TooLargeError, UnavailableError
from deerflow.features.skills.for_run import SkillsForRun
from deerflow.files.content import file_requests, virtual_path
from deerflow.identity import Principal
from deerflow.sandbox.interface import WORKSPACE, ExecResult, Sandbox, SandboxError, SandboxFileError
from deerflow.storage.threads import ThreadRepository

Format = Literal["pdf", "docx"]
MARKDOWN = frozenset({".md", ".markdown"})
SECONDS = 120.0
MOST_BYTES = 5 << 20
"""Of the Markdown."""
MOST_MADE = 50 << 20
MOST_PROBLEMS = 20
_MISSING = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


class _Script(NamedTuple):
    skill: str
    path: str
    noun: str


_SCRIPTS: dict[Format, _Script] = {
    "docx": _Script("report-writing", "scripts/make_docx.py", "Word document"),
    "pdf": _Script("pdf", "scripts/make_pdf.py", "PDF"),
}


@dataclass(frozen=True, slots=True)
class Report:
    """A document; ``problems`` name what is missing in it, e.g. a picture that could not be found."""

    filename: str
    data: bytes
    problems: tuple[str, ...] = ()


class ReportService:
    """Converts the Markdown files of threads. What is made stays nowhere.

    Args:
        context: that of a run in a thread of a person.
    """

    def __init__(self, threads: ThreadRepository, context: Callable[[str, Principal], Awaitable[RunContext]]) -> None:
        self._threads = threads
        self._context = context

    async def make(self, principal: Principal, thread_id: str, path: str, form: Format) -> Report:
        """Return a Markdown file as a document.

        Raises:
            NotFoundError, InvalidRequestError, TooLargeError: there is no such file, or it is no Markdown that can be converted.
            ConflictError: the person has turned off the skill that does it.
            UnavailableError: the sandbox cannot do it; says what is missing.
        """
        await self._threads.get(principal, thread_id, to_change=True)
        source, script = virtual_path(path), _SCRIPTS[form]
        if PurePosixPath(source).suffix.lower() not in MARKDOWN:
            raise InvalidRequestError("Only a Markdown file can be saved as a document.", param="path")
        context = await self._context(thread_id, principal)
        skills = context.of(SkillsForRun)
        skill = skills.usable.enabled.get(script.skill) if skills is not None else None
        if skill is None:
            raise ConflictError(
                f"The skill {script.skill}, which makes a {script.noun}, is off. Turn it on under Skills, then try again.",
                reason="report_skill_off",
            )
        try:
            sandbox = await context.sandbox()
            with file_requests(source):
                await _check(sandbox, source)
            return await _made(sandbox, source, f"{skill.path}/{script.path}", form, script.noun)
        except SandboxError as error:
            raise UnavailableError(f"The sandbox cannot make a {script.noun}: {error}") from error


async def _check(sandbox: Sandbox, source: str) -> None:
    entry = await sandbox.stat(source)
    if entry is None or entry.kind != "file":
        raise NotFoundError(f"Artifact not found: {source}")
    if entry.size > MOST_BYTES:
        raise TooLargeError(f"A report may have {MOST_BYTES >> 20} MB.")
    try:
        (await sandbox.read(source, limit=MOST_BYTES))[0].decode()
    except UnicodeDecodeError:
        raise InvalidRequestError(
            "The file is not UTF-8. Open it with Edit and save it, then try again.", reason="report_not_utf8"
        ) from None


async def _made(sandbox: Sandbox, source: str, script: str, form: Format, noun: str) -> Report:
    name = f"{PurePosixPath(source).stem}.{form}"
    folder = f"{WORKSPACE}/.report-{secrets.token_hex(6)}"
    target = f"{folder}/made.{form}"
    try:
        done = await sandbox.run(["python3", "-u", script, source, "-o", target], timeout=SECONDS)
        made = await sandbox.stat(target)
        # With exit code 1 the document is there, and the lines name what is missing in it.
        if done.exit_code not in (0, 1) or made is None or not made.size:
            raise _failure(done, noun)
        data, size = await sandbox.read(target, limit=MOST_MADE)
    finally:
        with suppress(SandboxFileError):
            await sandbox.remove(folder)
    if size > len(data):
        raise TooLargeError(f"The {noun} has more than {MOST_MADE >> 20} MB. Use smaller pictures.")
    lines = [line.strip() for line in done.output.splitlines() if line.strip()]
    return Report(name, data, tuple(lines[1 : 1 + MOST_PROBLEMS]) if done.exit_code else ())


def _failure(done: ExecResult, noun: str) -> UnavailableError:
    if done.timed_out:
        return UnavailableError(
            f"Making the {noun} took more than {SECONDS:g} seconds. Save a shorter file.", reason="report_slow"
        )
    if done.killed_for:
        return UnavailableError(
            f"Making the {noun} needed too much {done.killed_for}. Save a shorter file, or one with smaller pictures."
        )
    missing = _MISSING.search(done.output)
    if missing or done.exit_code == 127:
        what = f"the Python package {missing[1]!r}" if missing else "python3"
        return UnavailableError(
            f"The sandbox lacks {what}, which makes the {noun}. "
            "An administrator can run `deerflow setup` on the server, which prepares the sandbox's packages.",
            reason="report_program_missing",
        )
    last = next((line for line in reversed(done.output.splitlines()) if line.strip()), "no output")
    return UnavailableError(f"The {noun} could not be made: {last.strip()[:300]}")
