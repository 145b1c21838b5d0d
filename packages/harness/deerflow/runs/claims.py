"""Whether what an answer rests on is so: the server looks itself, once the work is done. See :class:`deerflow.agents.receipts.Claim`."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import unquote
from uuid import uuid4

from langchain_core.messages import BaseMessage, HumanMessage

from deerflow.agents.receipts import TESTS_PASS, Claim, Word
from deerflow.agents.transcript import RECEIPTS
from deerflow.sandbox.interface import Entry, Sandbox, SandboxError
from deerflow.tools.runners import Tested, invocation
from deerflow.tools.shell import sources

REPEATED_SECONDS = 60
"""Tests that took longer are not run again."""
CLOCK = 0.02
"""Seconds by which the clock of a file system may be behind."""
OUTPUT_CHARS = 2000


@dataclass(frozen=True, slots=True)
class Look:
    """Looks at the claims of one turn.

    Args:
        answer: that of the turn.
        since: when the turn began, in seconds since 1970.
        tested: the newest call of the turn that was a test runner.
    """

    sandbox: Sandbox
    answer: str
    since: float
    tested: Tested | None

    async def at(self, claims: Sequence[Claim]) -> list[Claim]:
        """The claims with what was seen of each, one after the other."""
        return [await self._seen(claim["claim"]) for claim in claims]

    async def _seen(self, claim: str) -> Claim:
        try:
            word, seen = await (self._tests() if claim == TESTS_PASS else self._file(claim))
        except SandboxError as error:
            word, seen = "claimed", str(error)
        return {"claim": claim, "word": word, "seen": seen}

    async def _file(self, path: str) -> tuple[Word, str]:
        entry = await self._entry(path)
        if entry is None:
            return "contradicted", "there is no such file"
        if (entry.changed or entry.modified) + CLOCK < self.since:
            return "claimed", "it was not written in this turn"
        return "verified", "it is there, and was written in this turn"

    async def _entry(self, path: str) -> Entry | None:
        """A file by the name that the answer gives it: also as in an address, or cut off at a blank or a bracket."""
        for name in dict.fromkeys((path, unquote(path))):
            if (entry := await self.sandbox.stat(name)) is not None:
                return entry
        parent, answer = posixpath.dirname(path), unquote(self.answer)
        beside = (await self.sandbox.list(parent, depth=1))[0] if await self.sandbox.stat(parent) else []
        return next((entry for entry in beside if entry.path.startswith(unquote(path)) and entry.path in answer), None)

    async def _tests(self) -> tuple[Word, str]:
        tested = self.tested
        if tested is None:
            return "claimed", "no call of this turn was a test runner and nothing else"
        if (again := await self._again(tested)) is not None:
            return again
        if tested["exit_code"] != 0 or not tested["passed"]:
            return "claimed", f"`{tested['command']}` ended with exit code {tested['exit_code']}"
        if tested["tree"] is None or tested["tree"] != await sources(self.sandbox, tested["cwd"]):
            return "claimed", f"files have changed since `{tested['command']}` ended"
        return "observed", f"`{tested['command']}` ended with exit code 0, {tested['passed']} passed"

    async def _again(self, tested: Tested) -> tuple[Word, str] | None:
        """What the tests say when they are run again, apart from the agent's shell; None: they are not, or do not end."""
        tests = invocation(tested["command"])
        if tests is None or tested["seconds"] > REPEATED_SECONDS or not self.sandbox.awake:
            return None
        limit = 2 * REPEATED_SECONDS
        result = await self.sandbox.run(tests.argv, cwd=tested["cwd"], env=tests.env, timeout=limit)
        if result.exit_code is None:
            return None
        passed, failed = tests.count(result.output)
        said = f"`{tested['command']}`, run again without the agent's shell, ended with exit code {result.exit_code}"
        if result.exit_code == 0 and passed:
            return "verified", f"{said}, {passed} passed"
        end = f"\n{result.output[-OUTPUT_CHARS:].strip()}"
        if result.exit_code and failed:
            return "contradicted", f"{said}, {failed} failed:{end}"
        return "claimed", f"{said} and counted no test:{end}"


def contradiction(claims: Sequence[Claim]) -> HumanMessage | None:
    """What the model is asked, once in a turn, if its answer is not so."""
    false = [f"- {claim['claim']}: {claim['seen']}" for claim in claims if claim["word"] == "contradicted"]
    if not false:
        return None
    text = (
        "Your answer was checked against the sandbox, and what stands below is not so. Correct the work or the answer, then give the "
        "whole answer again. Nothing of the session's shell (directory, variables, functions) reached the check.\n\n"
        + "\n".join(false)
    )
    return HumanMessage(text, id=str(uuid4()), name=RECEIPTS, additional_kwargs={"hide_from_ui": True})


def is_told(turn: Sequence[BaseMessage]) -> bool:
    """Whether the model was asked in this turn already."""
    return any(message.name == RECEIPTS for message in turn)


def begun_at(turn: Sequence[BaseMessage], created_at: datetime) -> float:
    """When a turn began, in seconds since 1970; ``created_at`` is that of its run, for messages that do not say."""
    said = turn[0].additional_kwargs.get("timestamp") if turn else None
    return (datetime.fromisoformat(said) if isinstance(said, str) else created_at).timestamp()
