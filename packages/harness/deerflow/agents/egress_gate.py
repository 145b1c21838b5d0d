"""Hosts that commands reach through the egress proxy: each becomes a row of the thread, and a new one may need the person's word."""

from __future__ import annotations

from dataclasses import dataclass

from deerflow.config.schema import GuardrailsConfig
from deerflow.context import RunContext
from deerflow.context.approvals import Approvals
from deerflow.security.addresses import in_hosts
from deerflow.storage.provenance import Admits, ThreadProvenance


@dataclass(frozen=True, slots=True)
class EgressGate:
    """Gate of one thread, see :data:`deerflow.sandbox.interface.Gate`.

    Commands with a network do not ask before they run. A host that is new to the chat is refused where a call that sends something
    there would ask; the person is asked when the call has ended. The row of a host that passes is committed before the connection.

    Args:
        agent: whose grants count; empty for the lead agent.
        admits: the hosts that need no one's word.
        free: further ones: what the operator listed.
        waits: a person will be asked.
    """

    rows: ThreadProvenance
    approvals: Approvals
    agent: str
    admits: Admits
    free: tuple[str, ...]
    waits: bool

    async def __call__(self, host: str) -> str | None:
        if await self.rows.reach(host, "all" if in_hosts(host, self.free) else self.admits):
            return None
        if await self.approvals.may_reach(self.agent, host):
            await self.rows.reach(host, "all")
            return None
        why = f"{host} is new to this chat" + (", which holds text from outside" if self.admits == "clean" else "")
        if self.waits:
            return f"{why}. The user is asked whether this chat may reach it."
        return (
            f"{why}, and no one can decide about it in this run."
            " An administrator can list hosts that any chat may reach in guardrails.open_hosts."
        )


def gate_of(context: RunContext, guardrails: GuardrailsConfig) -> EgressGate | None:
    """Return the gate of a run's thread, or None where no rows are kept.

    Args:
        guardrails: those of the run's agent. Without the shipped policy no host is refused.
    """
    trust = context.trust
    if trust.provenance is None or trust.approvals is None:
        return None
    judges = guardrails.enabled and guardrails.provider is None
    policies: dict[str, Admits] = {"strict": "known", "auto": "clean", "off": "all"}
    allowed = context.config.sandbox.network.allow if context.config is not None else ()
    return EgressGate(
        trust.provenance,
        trust.approvals,
        context.agent,
        policies[guardrails.policy] if judges else "all",
        (*guardrails.open_hosts, *allowed),
        context.trust.waits(guardrails.unattended),
    )
