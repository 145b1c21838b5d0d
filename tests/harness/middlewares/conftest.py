"""A real agent graph on a scripted endpoint over HTTP, with the chain that a test wants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from bench.scripted_openai import ScriptedOpenAI
from langchain.agents import create_agent
from langchain_core.messages import AnyMessage, HumanMessage, convert_to_messages
from langchain_core.tools import BaseTool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from tests.support.unpaired_calls import unpaired_calls

from deerflow.agents.middlewares.base import fuse
from deerflow.agents.thread_state import ThreadState
from deerflow.context import RunContext
from deerflow.context.machine import Machine
from deerflow.context.workspace import Workspace
from deerflow.identity import Principal
from deerflow.sandbox.interface import OUTPUTS, UPLOADS, WORKSPACE, Mount, Policy
from deerflow.sandbox.local.local_sandbox_provider import LocalSandboxProvider


@pytest.fixture
def endpoint() -> Iterator[ScriptedOpenAI]:
    """Its requests may never hold a call without exactly one result right behind it, whatever a test does."""
    with ScriptedOpenAI() as server:
        yield server
    for body in server.requests:
        assert not unpaired_calls(convert_to_messages(body["messages"]))


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    root = tmp_path / "user-data"
    directories = [root / name for name in ("workspace", "uploads", "outputs")]
    for directory in directories:
        directory.mkdir(parents=True)
    return Workspace(root, *directories)


@pytest.fixture
def context(workspace: Workspace) -> RunContext:
    mounts = (
        Mount(workspace.workspace, WORKSPACE),
        Mount(workspace.uploads, UPLOADS),
        Mount(workspace.outputs, OUTPUTS),
    )
    return RunContext(
        thread_id="thread-1",
        run_id="run-1",
        principal=Principal("alice"),
        machine=Machine(
            workspace=workspace,
            provider=LocalSandboxProvider(allow_host_bash=True),
            policy=Policy(mounts=mounts),
        ),
    )


class Conversation:
    """One thread of an agent."""

    def __init__(self, graph: Any, context: RunContext, endpoint: ScriptedOpenAI) -> None:
        self.graph = graph
        self.context = context
        self.endpoint = endpoint
        self.events: list[dict[str, Any]] = []
        self.config: Any = {"configurable": {"thread_id": context.thread_id}, "recursion_limit": 300}

    async def say(self, text: str | HumanMessage) -> list[AnyMessage]:
        """Run a turn; its new messages, the human one included."""
        before = len(await self.messages())
        async for mode, event in self.graph.astream(
            {"messages": [HumanMessage(text) if isinstance(text, str) else text]},
            self.config,
            context=self.context,
            stream_mode=["custom", "messages"],
        ):
            if mode == "custom":
                self.events.append(event)
        return (await self.messages())[before:]

    async def state(self) -> dict[str, Any]:
        return (await self.graph.aget_state(self.config)).values

    async def messages(self) -> list[AnyMessage]:
        return (await self.state()).get("messages", [])

    async def finished(self) -> bool:
        return not (await self.graph.aget_state(self.config)).next

    def request(self, index: int = -1) -> list[dict[str, Any]]:
        """The messages of a request, as they went over the wire."""
        return self.endpoint.requests[index]["messages"]

    def tail(self, index: int = -1) -> str:
        """The text of the last message of a request."""
        content = self.request(index)[-1]["content"]
        return content if isinstance(content, str) else str(content)

    def events_of(self, type_: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == type_]


Start = Callable[..., Conversation]


@pytest.fixture
def chat_model(endpoint: ScriptedOpenAI) -> Callable[..., ChatOpenAI]:
    def build(name: str = "scripted-model", **settings: Any) -> ChatOpenAI:
        settings = {"base_url": endpoint.base_url, "api_key": "k", "max_retries": 0, "stream_usage": True, **settings}
        # A Timeout keeps LangChain from sharing the connections of an earlier test, whose event loop is closed.
        settings.setdefault("timeout", httpx.Timeout(60))
        return ChatOpenAI(model=name, **settings)

    return build


@pytest.fixture
def start(endpoint: ScriptedOpenAI, context: RunContext, chat_model: Callable[..., ChatOpenAI]) -> Start:
    """Build an agent from a chain of middlewares and tools, and open a thread with it."""

    def build(
        *chain: Any, tools: Sequence[BaseTool] = (), model: ChatOpenAI | None = None, context: RunContext = context
    ) -> Conversation:
        graph = create_agent(
            model or chat_model(),
            list(tools),
            middleware=fuse(chain),
            state_schema=ThreadState,
            context_schema=RunContext,
            checkpointer=InMemorySaver(),
        )
        return Conversation(graph, context, endpoint)

    return build
