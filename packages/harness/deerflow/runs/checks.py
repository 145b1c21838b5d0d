"""Acceptance checks of a run: what must hold before its work counts as done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from langchain_core.messages import BaseMessage, HumanMessage
from pydantic import BaseModel, ConfigDict, Field, model_validator

from deerflow.agents.receipts import Check
from deerflow.agents.transcript import CHECKS
from deerflow.sandbox.interface import Sandbox, SandboxError

CHECKS_FAILED = "checks_failed"
"""``stop_reason`` of runs whose last round of checks failed."""
OUTPUT_CHARS = 2000


class CheckRequest(BaseModel):
    """A command of the sandbox that must exit with 0, or a file that must exist."""

    model_config = ConfigDict(extra="forbid")

    command: str | None = Field(default=None, max_length=10_000)
    file_exists: str | None = Field(default=None, max_length=4096)
    timeout: float = Field(default=600, gt=0, le=3600, description="Seconds that the command may take.")

    @model_validator(mode="after")
    def _one_kind(self) -> CheckRequest:
        if bool(self.command) == bool(self.file_exists):
            raise ValueError("A check has either a command or file_exists.")
        return self


async def run_checks(sandbox: Sandbox, checks: Sequence[CheckRequest]) -> list[Check]:
    """Make the checks one after the other, apart from the agent's own shell."""
    return [await _made(sandbox, check) for check in checks]


async def _made(sandbox: Sandbox, check: CheckRequest) -> Check:
    name = check.command or f"{check.file_exists} exists"
    try:
        if check.file_exists:
            entry = await sandbox.stat(check.file_exists)
            return {"check": name, "passed": entry is not None and entry.kind == "file", "output": ""}
        result = await sandbox.exec(check.command or "", timeout=check.timeout, env={"DEERFLOW_CHECK": "1"})
    except SandboxError as error:
        return {"check": name, "passed": False, "output": str(error)}
    ended = f"stopped after {check.timeout:g} seconds" if result.timed_out else f"exit code {result.exit_code}"
    output = f"{result.output[-OUTPUT_CHARS:].rstrip()}\n[{ended}]".lstrip()
    return {"check": name, "passed": result.exit_code == 0, "output": output}


def rounds(messages: Sequence[BaseMessage]) -> int:
    """How often checks of the run that added ``messages`` have failed and gone back to the model."""
    return sum(message.name == CHECKS for message in messages)


def correction(checks: Sequence[Check]) -> HumanMessage:
    """What the model is asked when checks failed."""
    failed = [f"- {check['check']}\n{check['output']}".rstrip() for check in checks if not check["passed"]]
    text = (
        f"The work is not accepted yet: {len(failed)} of {len(checks)} acceptance checks failed.\n\n"
        + "\n".join(failed)
        + "\n\nCorrect the work. The checks are made again when you are done; do not change what they test just to pass."
    )
    kwargs: dict[str, Any] = {"hide_from_ui": True}
    return HumanMessage(text, id=str(uuid4()), name=CHECKS, additional_kwargs=kwargs)
