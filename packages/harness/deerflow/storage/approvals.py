"""What a person has granted to agents for longer than one call, and the record of what was decided about calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, PlainSerializer
from sqlalchemy import Table
from typing_extensions import TypedDict

from deerflow.errors import NotFoundError
from deerflow.identity import Principal
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.moment import Moment
from deerflow.storage.tables import asked_calls, grants, tool_decisions, utc_now
from deerflow.storage.visibility import changeable, readable, values_of

AgentName = Annotated[str, PlainSerializer(lambda name: name or None, return_type=str | None)]
"""A custom agent's; the lead agent's is empty here, and null to clients."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Calls of one tool by one agent that need no decision any more.

    Args:
        agent: a custom agent; empty: the lead agent.
        thread_id: None: in all threads.
        pattern: globs by argument; None: every call.
    """

    id: str
    user_id: str
    agent: str
    tool: str
    thread_id: str | None
    pattern: dict[str, str | None] | None
    digest: str | None
    """Of the tool's definition; empty for own tools. None: granted before grants were bound to it, and no longer in force."""
    destination: str | None
    """A host or server to which the agent may send; ``tool`` is empty then."""
    created_at: datetime


class GrantView(TypedDict):
    """A grant as its person sees it."""

    id: str
    agent: Annotated[AgentName, Field(description="A custom agent; null: the lead agent.")]
    tool: Annotated[str, Field(description="Empty if the grant is for a destination.")]
    thread_id: Annotated[str | None, Field(description="null: in all threads.")]
    pattern: Annotated[
        dict[str, str | None] | None,
        Field(description="Globs by argument, null for any value. Without a pattern: every call."),
    ]
    digest: Annotated[
        str | None,
        Field(
            description="Of the tool's definition; empty for tools of DeerFlow. null: the grant has expired, calls ask again."
        ),
    ]
    destination: Annotated[str | None, Field(description="A host or server to which the thread may send.")]
    created_at: Moment


def grant_view(grant: Grant) -> GrantView:
    return {
        "id": grant.id,
        "agent": grant.agent,
        "tool": grant.tool,
        "thread_id": grant.thread_id,
        "pattern": grant.pattern,
        "digest": grant.digest,
        "destination": grant.destination,
        "created_at": grant.created_at,
    }


@dataclass(frozen=True, slots=True)
class ToolDecision:
    """What was decided about one call, by a rule (``deny``), a grant or the person."""

    id: str
    run_id: str
    thread_id: str
    user_id: str
    agent: AgentName
    tool: str
    call_id: str
    decision: Annotated[str, Field(description="deny, grant, approve, edit, reject or respond.")]
    code: Annotated[str, Field(description="The guardrail's reason.", examples=["oap.tool_not_allowed"])]
    policy_id: str | None
    created_at: Moment


class ApprovalRepository:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def grants(self, principal: Principal) -> list[Grant]:
        """The newest first."""
        tail = f"WHERE {readable(grants)} ORDER BY created_at DESC, id"
        return await self._database.read(sql.select, Grant, grants, tail, *values_of(principal))

    async def revoke(self, principal: Principal, grant_id: str) -> None:
        """Raises NotFoundError."""
        statement = f"DELETE FROM grants WHERE id = ? AND {changeable(grants)}"
        if not await self._database.write(sql.change, statement, grant_id, *values_of(principal)):
            raise NotFoundError("There is no such grant.")

    async def decisions(
        self, *, run_id: str | None = None, thread_id: str | None = None, before: datetime | None = None, limit: int
    ) -> list[ToolDecision]:
        """Of everyone, the newest first."""
        given = {"run_id = ?": run_id, "thread_id = ?": thread_id, "created_at < ?": before}
        asked = {condition: value for condition, value in given.items() if value is not None}
        where = f"WHERE {' AND '.join(asked)} " if asked else ""
        tail = f"{where}ORDER BY created_at DESC, id LIMIT ?"
        return await self._database.read(sql.select, ToolDecision, tool_decisions, tail, *asked.values(), limit)


_OF_AGENT = "WHERE user_id = ? AND agent = ?"


class RunApprovals:
    """See :class:`deerflow.context.approvals.Approvals`."""

    def __init__(self, database: Database, *, run_id: str, thread_id: str, user_id: str) -> None:
        self._database = database
        self._run_id, self._thread_id, self._user_id = run_id, thread_id, user_id
        self._has_granted = False
        self._reachable: dict[str, frozenset[str]] = {}

    def take_granted(self) -> bool:
        """Return whether something was granted since this was asked last: other calls that wait may be free by it."""
        granted, self._has_granted = self._has_granted, False
        return granted

    async def patterns(self, agent: str, tool: str, digest: str) -> list[dict[str, str | None] | None]:
        tail = f"{_OF_AGENT} AND tool = ? AND digest = ? AND (thread_id IS NULL OR thread_id = ?)"
        mine = self._user_id, agent, tool, digest, self._thread_id
        found = await self._database.read(sql.select, Grant, grants, tail, *mine)
        return [grant.pattern for grant in found if grant.destination is None]

    async def grant(
        self, agent: str, tool: str, digest: str, pattern: Mapping[str, str | None] | None, *, everywhere: bool
    ) -> None:
        thread_id = None if everywhere else self._thread_id
        given = dict(pattern) if pattern else None
        key = sql.dumps([self._user_id, agent, tool, digest, thread_id, sorted((given or {}).items())])
        made = Grant(sql.short_key(key), self._user_id, agent, tool, thread_id, given, digest, None, utc_now())
        await self._add(grants, made)
        self._has_granted = True

    async def may_reach(self, agent: str, destination: str) -> bool:
        tail = f"{_OF_AGENT} AND destination = ? AND thread_id = ?"
        mine = self._user_id, agent, destination, self._thread_id
        return bool(await self._database.read(sql.select, Grant, grants, tail, *mine))

    async def reachable(self, agent: str) -> frozenset[str]:
        if agent not in self._reachable:
            tail = f"{_OF_AGENT} AND thread_id = ? AND destination IS NOT NULL"
            mine = self._user_id, agent, self._thread_id
            found = await self._database.read(sql.select, Grant, grants, tail, *mine)
            self._reachable[agent] = frozenset(filter(None, (grant.destination for grant in found)))
        return self._reachable[agent]

    async def let_reach(self, agent: str, destination: str) -> None:
        key = sql.dumps([self._user_id, agent, self._thread_id, destination])
        made = Grant(sql.short_key(key), self._user_id, agent, "", self._thread_id, None, "", destination, utc_now())
        await self._add(grants, made)
        self._has_granted = True
        self._reachable.pop(agent, None)

    async def asked(self, call: str) -> Mapping[str, Any] | None:
        statement = "SELECT definition FROM asked_calls WHERE thread_id = ? AND call = ?"
        row = await self._database.read(
            lambda connection: sql.execute(connection, statement, self._thread_id, sql.short_key(call)).fetchone()
        )
        return None if row is None else sql.loads(row[0])

    async def ask(self, call: str, shown: Mapping[str, Any]) -> None:
        row = {"thread_id": self._thread_id, "call": sql.short_key(call), "definition": dict(shown)}
        tail = "ON CONFLICT (thread_id, call) DO UPDATE SET definition = excluded.definition"
        await self._database.write(lambda connection: sql.insert(connection, asked_calls, row, tail) and None)

    async def record(
        self, call_id: str, decision: str, *, asked_by: str, agent: str, tool: str, code: str, policy_id: str | None
    ) -> None:
        key = sql.short_key(f"{self._run_id}/{asked_by}/{call_id}/{decision}")
        whose = self._run_id, self._thread_id, self._user_id
        made = ToolDecision(key, *whose, agent, tool, call_id, decision, code, policy_id, utc_now())
        await self._add(tool_decisions, made)

    async def _add(self, table: Table, row: Grant | ToolDecision) -> None:
        """Once: an answer is played again when a process has died on it."""
        await self._database.write(
            lambda connection: sql.insert(connection, table, asdict(row), "ON CONFLICT DO NOTHING") and None
        )
