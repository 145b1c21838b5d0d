"""A capability of your own: a glossary of the house.

It brings agents a tool, a section of the system prompt and a middleware. A background task counts, for each person, in how many runs
a term was looked up; ``routes.py`` shows the counts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.tools import tool
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, ToolException
from pydantic import BaseModel, ConfigDict
from sqlalchemy import Connection

from deerflow.capability import AgentSpec, Capability, EndedRun, Offer, Package
from deerflow.features.store import StoreService
from deerflow.identity import Principal
from deerflow.storage.database import Database
from deerflow.storage.tables import utc_now
from deerflow.tasks.jobs import Job, enqueue
from my_package.middleware import HouseRules

LOOKED_UP = "glossary_looked_up"
"""The kind of background task. Kinds are shared by all of DeerFlow, so begin yours with your name."""
NAMESPACE = ("glossary",)
"""Of the person's store."""


class Settings(BaseModel):
    """The keys beside ``name`` in the entry of ``config.yaml``."""

    model_config = ConfigDict(extra="forbid")

    terms: dict[str, str]
    rules: str = ""


class GlossaryOffer(Offer):
    """The part that agents get. It depends on the settings only, so that the system prompt stays the same in each turn."""

    def __init__(self, settings: Settings) -> None:
        self._terms = {term.lower(): meaning for term, meaning in settings.terms.items()}
        self._names = ", ".join(settings.terms)
        self._rules = settings.rules

        @tool("explain_term")
        async def explain_term(term: str) -> str:
            """Look up a term in the glossary of the house."""
            if (meaning := self._terms.get(term.strip().lower())) is None:
                raise ToolException(f"Error: the glossary lacks {term!r}. It has: {self._names}.")
            return meaning

        explain_term.handle_tool_error = True
        explain_term.metadata = {"readOnlyHint": True, "openWorldHint": False}  # it reads nothing of strangers
        self._tool = explain_term

    def tools(self, agent: AgentSpec) -> Sequence[BaseTool]:
        return [self._tool]

    def prompt(self, agent: AgentSpec, tools: Collection[str]) -> str:
        if "explain_term" not in tools:
            return ""
        return f"<glossary>\nexplain_term knows what the house means by: {self._names}.\n</glossary>"

    def middlewares(self, agent: AgentSpec) -> Sequence[AgentMiddleware]:
        return [GlossaryRules(self._rules)] if self._rules else []


class GlossaryRules(HouseRules):
    """Rules for the use of terms. The class has a name of its own, since an agent takes one middleware of a name."""


class Glossary(Capability):
    """The part that the glossary takes in runs."""

    name = "glossary"

    def __init__(self, database: Database) -> None:
        self._store = StoreService(database)
        self.jobs = {LOOKED_UP: self.count}

    def run_ended(self, connection: Connection, ended: EndedRun) -> datetime | None:
        """Ask for the count, in the transaction that ends the run: it is asked for once, or the run has not ended."""
        calls = [call for message in ended.joined if isinstance(message, AIMessage) for call in message.tool_calls]
        terms = sorted({str(call["args"].get("term")).lower() for call in calls if call["name"] == "explain_term"})
        if not terms:
            return None
        enqueue(connection, LOOKED_UP, ended.run.run_id, {"user_id": ended.run.user_id, "terms": terms})
        return utc_now()

    async def count(self, job: Job) -> None:
        """Note the run with each term. A task can be done twice, when a process dies in it, so that runs are kept and not a number."""
        store = self._store.of(Principal(job.payload["user_id"], source="internal"))
        for term in job.payload["terms"]:
            found = await store.aget(NAMESPACE, term)
            runs = {*(found.value["runs"] if found else ()), job.key}
            await store.aput(NAMESPACE, term, {"runs": sorted(runs)})


def glossary(settings: Mapping[str, Any]) -> Package:
    """Make the capability: the entry point in ``pyproject.toml`` names this function."""
    return Package(GlossaryOffer(Settings.model_validate(settings)), Glossary, "my_package.routes:router")
