"""Does a model answer, does a search find something? Each is asked with one small real call."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from time import monotonic

from langchain.tools import ToolRuntime
from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool

from deerflow.config import AppConfig, ConfigError, ToolConfig
from deerflow.context import RunContext
from deerflow.features.ask import without_thoughts
from deerflow.models import ModelCache, ModelInfo, model_info
from deerflow.models.failures import classify, explain
from deerflow.reflection import resolve_variable

PROMPT = "This is a connection test. Answer with the single word: ready"
QUERY = "weather"
TIMEOUT = 30.0
"""Seconds. Whoever waits longer for one word has a problem, too."""
ANSWER_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Check:
    """``answer`` is the beginning of its answer, or what was found first; ``problem`` states what went wrong and what to do, without host paths."""

    ok: bool
    latency_ms: int
    answer: str | None = None
    problem: str | None = None


async def check_model(models: ModelCache, config: AppConfig, name: str) -> Check:
    """Ask the model for one word, once, without thinking.

    Raises:
        ValueError: no model has this name.
    """
    info = next((model for model in model_info(config) if model.name == name), None)
    if info is None:
        raise ValueError(f"Model {name!r} is not configured.")
    began = monotonic()
    try:
        answer, problem = await _ask(models, config, name), None
    except Exception as error:
        answer, problem = None, _explain(error, info, config)
    return Check(problem is None, round((monotonic() - began) * 1000), answer, problem)


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
        return Check(False, latency, problem=result.text.removeprefix("Error: "))
    found = json.loads(result.text)
    return Check(True, latency, found[0]["title"]) if found else Check(False, latency, problem="It found nothing.")


async def _ask(models: ModelCache, config: AppConfig, name: str) -> str:
    model = await asyncio.to_thread(models.get, config, name, provider_retries=False)
    async with asyncio.timeout(TIMEOUT):
        answer = await model.ainvoke([HumanMessage(PROMPT)], config={"run_name": "model_check"})
    return without_thoughts(answer.text)[:ANSWER_CHARACTERS]


def _explain(error: Exception, model: ModelInfo, config: AppConfig) -> str:
    if isinstance(error, ConfigError):  # whose own words begin with the place of the file
        texts = [": ".join(filter(None, (problem.key, problem.message))) for problem in error.problems]
        return " ".join(f"{text} {problem.remedy}".strip() for text, problem in zip(texts, error.problems, strict=True))
    if isinstance(error, ImportError):
        return str(error)
    if isinstance(error, TimeoutError) and not str(error):
        return f"{model.display_name} did not answer within {TIMEOUT:g} seconds. Check the address, or try again later."
    entry = next(entry for entry in config.models if entry.__dict__.get("name") == model.name)
    return explain(classify(error), model=model.display_name, provider=str(entry.use))
