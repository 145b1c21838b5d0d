"""Tests of models and of searches: whether one answers at all."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Annotated

from langchain.tools import ToolRuntime
from langchain_core.messages import (
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    message_chunk_to_message,
)
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.tools import BaseTool, tool
from pydantic import Field

from deerflow.config import AppConfig, ConfigError, ToolConfig
from deerflow.context import RunContext
from deerflow.models import ModelCache, ModelInfo, model_info
from deerflow.models.failures import ErrorKind, classify, explain
from deerflow.models.resilience import Rest
from deerflow.models.thoughts import without_thoughts
from deerflow.reflection import resolve_variable

if TYPE_CHECKING:
    from deerflow.runs.agent_provider import AgentProvider

CHECK_ROLE = "You test a connection."
CHECK_PROMPTS = (
    "Call the tool ready. If you cannot, answer with the single word: ready",
    "Answer with the single word: ready",
)


QUERY = "weather"
CHECK_TIMEOUT = 30.0
"""Seconds for a turn. A person who waits longer for one word has a problem, too."""
ANSWER_CHARACTERS = 200
_MARKS = re.compile(
    r"!?\[([^\]]*)\]\([^)]*\)|\*\*+|`+|(?<!\w)[*_]+(?=\w)|(?<=\w)[*_]+(?!\w)|^\s*(?:#+|>)\s", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Check:
    """``answer`` is the beginning of its answer, or what was found first; ``problem`` states what went wrong and what to do, without host paths."""

    ok: bool
    latency_ms: int
    answer: Annotated[str | None, Field(description="The beginning of what it said.")]
    problem: Annotated[str | None, Field(description="What went wrong, and what to do.")]
    kind: Annotated[ErrorKind | None, Field(description="Why a call of the model failed.")] = None
    rest: Annotated[Rest | None, Field(description="Set while runs do not call it, but its fallbacks.")] = None


async def check_model(models: ModelCache, config: AppConfig, name: str) -> Check:
    """Ask the model for one word in two turns, as a chat would, without thinking.

    Raises:
        ValueError: no model has this name.
    """
    info = next((model for model in model_info(config) if model.name == name), None)
    if info is None:
        raise ValueError(f"Model {name!r} is not configured.")
    began = monotonic()
    answer = problem = kind = None
    try:
        answer = await _ask(models, config, name)
    except Exception as error:
        problem = explained(error, info, config, CHECK_TIMEOUT)
        kind = None if isinstance(error, ConfigError | ImportError) else classify(error).kind
    return Check(problem is None, round((monotonic() - began) * 1000), answer, problem, kind)


async def try_model(agent_provider: AgentProvider, config: AppConfig, name: str) -> Check:
    """Ask a model for one word, also while runs do not call it; they do again if it answers. Raises ValueError: no model has this name."""
    check = await check_model(agent_provider.harness.models, config, name)
    if check.ok:
        agent_provider.let_call(config, name)
    return replace(check, rest=agent_provider.rest_of(config, name))


async def check_search(config: AppConfig, entry: ToolConfig) -> Check:
    """Search once, as an agent with this entry of ``web_search`` would."""
    tool = await asyncio.to_thread(resolve_variable, entry.use, BaseTool)
    context = RunContext(thread_id="", config=config.model_copy(update={"tools": (entry,)}))
    runtime = ToolRuntime(
        state={}, context=context, config={}, stream_writer=lambda _: None, tool_call_id="check", store=None
    )
    began = monotonic()
    call = {"type": "tool_call", "name": tool.name, "id": "check", "args": {"query": QUERY, "runtime": runtime}}
    result = await tool.ainvoke(call)
    latency = round((monotonic() - began) * 1000)
    if result.status == "error":
        return Check(False, latency, None, result.text.removeprefix("Error: "))
    found = json.loads(result.text)
    return Check(True, latency, found[0]["title"], None) if found else Check(False, latency, None, "It found nothing.")


@tool
def ready() -> str:
    """Tell that the connection works."""
    return "ready"


async def _ask(models: ModelCache, config: AppConfig, name: str) -> str:
    """Ask as a chat does: with instructions and a tool, streamed, and once more with what was answered; the last words."""
    model = await asyncio.to_thread(models.get, config, name, provider_retries=False)
    bound, said = model.bind_tools([ready]), ""
    messages: list[BaseMessage] = [SystemMessage(CHECK_ROLE)]
    for prompt in CHECK_PROMPTS:
        messages.append(HumanMessage(prompt))
        async with asyncio.timeout(CHECK_TIMEOUT):
            stream = bound.astream(messages, config={"run_name": "model_check"})
            chunks = [chunk async for chunk in stream if isinstance(chunk, AIMessageChunk)]
        answer = add_ai_message_chunks(AIMessageChunk(content=""), *chunks)
        results = [ToolMessage(ready.invoke({}), tool_call_id=call["id"] or "") for call in answer.tool_calls]
        messages += [message_chunk_to_message(answer), *results]
        said = without_thoughts(answer.text) or said
    return quoted(said)


def quoted(text: str) -> str:
    """Return the beginning of an answer, cut between words, without the marks of Markdown."""
    plain = " ".join(_MARKS.sub(r"\1", text).split())
    if len(plain) <= ANSWER_CHARACTERS:
        return plain
    words, _, rest = plain[: ANSWER_CHARACTERS + 1].rpartition(" ")
    # Chinese has no spaces: a "word" of 20 characters and more is a sentence there.
    return (words if len(rest) < 20 else plain[:ANSWER_CHARACTERS]).rstrip(" ,.;:") + "…"


def explained(error: Exception, model: ModelInfo, config: AppConfig, seconds: float) -> str:
    """Return what went wrong with a model, and what to do. ``seconds``: how long it had."""
    if isinstance(error, ConfigError):  # whose own words begin with the place of the file
        return " ".join(str(replace(problem, file=None)) for problem in error.problems)
    if isinstance(error, ImportError):
        return str(error)
    if isinstance(error, TimeoutError) and not str(error):
        return f"{model.display_name} did not answer within {seconds:g} seconds. Check the address, or try again later."
    entry = next(entry for entry in config.models if entry.__dict__.get("name") == model.name)
    return explain(classify(error), model=model.display_name, provider=str(entry.use))
