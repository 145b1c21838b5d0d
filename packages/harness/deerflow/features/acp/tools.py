"""``invoke_acp_agent``: work for another agent on this machine, over the Agent Client Protocol.

Such an agent is a program that the operator has named in ``acp_agents``. It works as the server's user, in a directory of the
thread that the sandbox sees as ``/mnt/acp-workspace``, and with no environment but what its entry says. What it answers is text
from outside.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

from langchain_core.tools import BaseTool, ToolException
from pydantic import Field

from deerflow.config import AppConfig
from deerflow.config.schema import AcpAgentConfig
from deerflow.config.section import require
from deerflow.sandbox.interface import ACP_WORKSPACE
from deerflow.security.door import harmless
from deerflow.security.text import inline
from deerflow.tools.decorator import REACHES, Runtime, async_tool

if TYPE_CHECKING:
    from acp import RequestPermissionResponse

DEADLINE = 1800.0
"""Seconds for one task, from the start of the program."""
MAX_ANSWER = 200_000
INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR")


@dataclass
class _Caller:
    """Our side of a session.

    Args:
        approves: grant what the agent asks for.
        tell: called with what it is doing.
    """

    approves: bool
    tell: Any
    words: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    size: int = 0

    def on_connect(self, conn: Any) -> None:
        """It is enough to listen."""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        if update.session_update == "agent_message_chunk" and self.size < MAX_ANSWER:
            text = getattr(update.content, "text", "")
            self.words.append(text)
            self.size += len(text)
        elif update.session_update == "tool_call":
            self.tell(inline(update.title))

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Sequence[Any], **_: Any
    ) -> RequestPermissionResponse:
        from acp import RequestPermissionResponse
        from acp.schema import AllowedOutcome, DeniedOutcome

        kinds = {option.kind: option.option_id for option in reversed(options)}
        granted = kinds.get("allow_once") or kinds.get("allow_always")
        if self.approves and granted:
            return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=granted))
        self.refused.append(inline(tool_call.title or "a tool"))
        return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))

    def answer(self) -> str:
        said = harmless("".join(self.words), MAX_ANSWER).strip() or "(no response)"
        if not self.refused:
            return said
        asked = "; ".join(self.refused[:20])
        return f"{said}\n\n[It was not allowed to: {asked}. The operator can set auto_approve_permissions.]"


def acp_tools(config: AppConfig) -> list[BaseTool]:
    """The tool, if there are such agents."""
    if not (agents := config.acp_agents):
        return []
    listed = "\n".join(f"- {name}: {inline(entry.description, 500)}" for name, entry in agents.items())

    @async_tool("invoke_acp_agent", metadata={REACHES: "acp"})  # it may do anything
    async def invoke_acp_agent(
        agent: str,
        prompt: Annotated[str, Field(description="The whole task: the agent knows nothing else")],
        runtime: Runtime,
    ) -> str:
        """Replaced below."""
        if (entry := agents.get(agent)) is None:
            raise ToolException(f"Error: Unknown agent '{agent}'. Available: {', '.join(agents)}")
        return await _played(agent, entry, prompt, runtime)

    invoke_acp_agent.description = (
        f"Give a task to another agent and get its answer. Agents:\n{listed}\n"
        "It has a workspace of its own and sees none of your files: put what it needs into the prompt, and do not mention "
        f"/mnt/user-data. You can read what it leaves at {ACP_WORKSPACE}."
    )
    return [invoke_acp_agent]


async def _played(name: str, entry: AcpAgentConfig, prompt: str, runtime: Any) -> str:
    await asyncio.to_thread(import_module, "acp")
    from acp import PROTOCOL_VERSION, RequestError, spawn_agent_process, text_block

    if (workspace := runtime.context.machine.workspace) is None:
        raise ToolException("Error: this agent runs without a workspace.")

    def tell(text: str) -> None:
        event = {"type": "tool_progress", "tool": "invoke_acp_agent", "tool_call_id": runtime.tool_call_id}
        if runtime.stream_writer is not None:
            runtime.stream_writer(event | {"progress": None, "total": None, "message": text})

    caller: Any = _Caller(entry.auto_approve_permissions, tell)
    environment = {key: os.environ[key] for key in INHERITED if key in os.environ} | dict(require(entry.env))
    place = workspace.root / "acp-workspace"
    try:
        async with asyncio.timeout(DEADLINE):
            async with spawn_agent_process(caller, entry.command, *require(entry.args), env=environment, cwd=place) as (
                agent,
                _,
            ):
                await agent.initialize(protocol_version=PROTOCOL_VERSION)
                session = await agent.new_session(cwd=str(place), mcp_servers=[])
                if entry.model is not None and any(one.id == "model" for one in session.config_options or ()):
                    await agent.set_config_option(config_id="model", session_id=session.session_id, value=entry.model)
                await agent.prompt(session_id=session.session_id, prompt=[text_block(prompt)])
    except FileNotFoundError as error:
        why = f"{entry.command} is not installed, or not on the PATH of the server"
        raise ToolException(f"Error invoking ACP agent '{name}': {why}.") from error
    except TimeoutError as error:
        why = f"it took longer than {DEADLINE:.0f} seconds. What it said until then: {caller.answer()}"
        raise ToolException(f"Error invoking ACP agent '{name}': {why}") from error
    except (RequestError, OSError) as error:
        raise ToolException(f"Error invoking ACP agent '{name}': {inline(str(error), 1000)}") from error
    return caller.answer()
