"""Ask the person about hosts that commands could not reach, and about packages that they could not install."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.errors import GraphInterrupt

from deerflow.agents.effects import Effect
from deerflow.config.schema import UnattendedConfig
from deerflow.context import RunContext
from deerflow.context.approvals import Approvals
from deerflow.features.guardrails.approvals import answer_to, card
from deerflow.tools.shell import REFUSED_HOSTS, WANTS_PACKAGES

NETWORK = "network"
"""Name of the action of a card that asks whether commands may reach a host."""
OUTWARD = "deerflow.outward"


@dataclass(frozen=True, slots=True)
class NetworkQuestions:
    """Questions about the last step of a run.

    Args:
        approvals: of the thread: hosts that commands may reach.
        unattended: what becomes of questions in a run without a person.
        emit: sends an event to the run's log.
    """

    context: RunContext
    approvals: Approvals
    unattended: UnattendedConfig
    emit: Callable[[dict[str, Any]], None]

    async def answers(self, messages: Sequence[Any]) -> list[str]:
        """Return what the person decided, in words for the model. Interrupts the run until they have."""
        texts = [await self._decided((host,), call_id) for host, call_id in _refused_hosts(messages)]
        packages, installs = self.context.machine.package_hosts, _refused_installs(messages)
        if installs and packages and (hosts := await packages.of(self.context.machine.policy)):
            texts.append(await self._decided(hosts, installs, packages=True))
        return [text for text in texts if text]

    async def _decided(self, hosts: tuple[str, ...], call_id: str, *, packages: bool = False) -> str:
        """Return the decision about a host, or those of packages; empty if the person need not be asked."""
        host = " and ".join(hosts)
        if not self.context.trust.waits(self.unattended):
            await self._record(host, "deny", call_id)
            return ""
        value = await self._card(host, packages=packages)
        try:
            answer = answer_to(value)
        except GraphInterrupt:
            # Only now: answers belong to interrupts by their order, so none may be left out that was answered before.
            if all([await self.approvals.may_reach(self._agent, each) for each in hosts]):
                return ""
            raise
        await self._record(host, answer["type"], call_id)
        if answer["type"] == "approve":
            # Once: the answer is played again while the person decides about the next host.
            for each in hosts:
                if not await self.approvals.may_reach(self._agent, each):
                    await self.approvals.let_reach(self._agent, each)
            if packages:
                return f"The user lets this chat install packages, from {host}. Run the command again."
            return f"The user lets commands reach {host} in this chat. Run the command again if it is still needed."
        said = str(answer.get("message") or "").strip()
        return f"The user does not let {'this chat install packages' if packages else f'commands reach {host}'}. {said}".rstrip()

    @property
    def _agent(self) -> str:
        return self.context.agent

    async def _card(self, host: str, *, packages: bool) -> dict[str, Any]:
        provenance, subagent = self.context.trust.provenance, self.context.subagent
        return card(
            NETWORK,
            {"host": host} | ({"packages": True} if packages else {}),
            f"a command wants to install packages from {host}" if packages else f"a command wants to reach {host}",
            effect=Effect(sends=True, reaches="commands"),
            destination=host,
            sources=await provenance.sources() if provenance is not None else [],
            asker={"agent": self._agent, "subagent": subagent.name if subagent is not None else ""},
            cosmetic=frozenset(),
            call_id=None,
            reason=OUTWARD,
            decisions=("approve", "reject"),
            grants=(),
        )

    async def _record(self, host: str, decision: str, call_id: str) -> None:
        self.emit({"type": "guardrail", "tool": NETWORK, "host": host, "decision": decision})
        await self.approvals.record(
            host, decision, asked_by=call_id, agent=self._agent, tool=NETWORK, code=OUTWARD, policy_id=None
        )


def _refused_hosts(messages: Sequence[Any]) -> list[tuple[str, str]]:
    """Return the hosts that commands of the last step could not reach, each with the call whose result says so."""
    found: dict[str, str] = {}
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            break
        found = dict.fromkeys(message.additional_kwargs.get(REFUSED_HOSTS) or (), message.tool_call_id) | found
    return list(found.items())


def _refused_installs(messages: Sequence[Any]) -> str:
    """Return the call of the last step that could not install packages; empty if there is none."""
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            break
        if isinstance(message.artifact, dict) and message.artifact.get(WANTS_PACKAGES):
            return message.tool_call_id
    return ""
