"""``task``: give a subagent a part of the work. A subagent is a graph inside the call, with checkpoints of its own.

LangGraph makes a task of every tool call, so each subagent has a checkpoint namespace (``tools:<id>``). A run that goes on after
a crash calls the tool again, and the graph goes on from its last finished step.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, ToolException
from langgraph.errors import GraphBubbleUp
from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

from deerflow.context import RunContext
from deerflow.context.subagent import Subagent
from deerflow.models.context_window import ESTIMATED
from deerflow.models.pricing import ENTRY, price_of
from deerflow.security.door import UNTRUSTED
from deerflow.security.text import inline
from deerflow.subagents import SubagentConfig
from deerflow.tools.decorator import Runtime, async_tool
from deerflow.tracing import SUBAGENT

logger = logging.getLogger(__name__)

TASK = "task"
"""The tool's name, and the key in its result's ``artifact`` under which a :class:`TaskResult` stands."""
TASK_RESULT = "task_result"
"""Name of the message that brings the result of a subagent in the background."""
TURN_LIMIT = "turn_limit"
"""Key in an AI message's ``additional_kwargs``: the final answer of a subagent that had no turns left."""

LOOP_STOP = "loop_stop"
"""Likewise, of a turn that repeated itself; the value says what was repeated."""
LOOP = "loop"
"""The end of a subagent, and ``stop_reason`` of a run, that repeated itself."""

Status = Literal["running", "completed", "failed", "cancelled", "timed_out", "turn_limit", "loop"]

EVENTS: Mapping[Status, str] = {
    "completed": "task_completed",
    "turn_limit": "task_completed",
    "failed": "task_failed",
    "loop": "task_failed",
    "cancelled": "task_cancelled",
    "timed_out": "task_timed_out",
}

DESCRIPTION = """Give a subagent one self-contained part of the work. It shares your files, sees nothing of this conversation and \
cannot ask: state the goal, the paths, and what to report. Types: {types}."""


class _Spent(TypedDict):
    """``cost`` in the currency of the configured prices; None: no price is known."""

    tokens: int
    cost: float | None


class TaskResult(_Spent):
    """How a subagent ended; while it runs in the background, what it was given.

    ``namespace`` is that of the subagent's events and checkpoints,
    ``calls`` are ``{id, model, usage, run_id, marks}`` of its model's answers, ``carries`` the ``additional_kwargs`` of its first
    message, ``work`` what its tools did (:class:`deerflow.agents.receipts.Work`), ``receipts`` the line about that.
    """

    task_id: str
    subagent_type: str
    description: str
    namespace: str
    status: Status
    text: str
    error: str
    files: list[dict[str, Any]]
    seconds: float
    model: str
    calls: list[dict[str, Any]]
    carries: dict[str, Any]
    max_turns: int
    work: dict[str, Any]
    receipts: str


States = Callable[[Any, dict[str, Any], Any, RunContext], AsyncGenerator[Mapping[str, Any], None]]
"""Plays a graph with its input, configuration and context, and yields its states."""


def task_of(message: BaseMessage) -> TaskResult | None:
    """What a message tells of a subagent: the result of a call of ``task``, or one that comes later."""
    if message.name == TASK_RESULT:
        return message.additional_kwargs.get(TASK)
    artifact = message.artifact if isinstance(message, ToolMessage) and message.name == TASK else None
    return artifact.get(TASK) if isinstance(artifact, Mapping) else None


def delivery_id(namespace: str) -> str:
    """The id of the message that brings the result."""
    return f"{TASK_RESULT}:{namespace}"


def delivery(result: TaskResult, *, foreign: bool = False) -> HumanMessage:
    """Return the message that brings the result of a subagent in the background.

    Args:
        foreign: the thread holds foreign text, which the result may quote.
    """
    what = inline(f"{result['task_id']} ({result['description']})", 300)
    text = f"The background task {what} has ended.\n{result_text(result)}"
    more: dict[str, Any] = {"hide_from_ui": True, TASK: result} | ({UNTRUSTED: TASK} if foreign else {})
    return HumanMessage(text, id=delivery_id(result["namespace"]), name=TASK_RESULT, additional_kwargs=more)


def cancelled(started: TaskResult) -> TaskResult:
    """The result of a subagent that was stopped."""
    return {**started, "status": "cancelled", "text": ""}


def head_of(result: TaskResult) -> dict[str, Any]:
    """What all events of a subagent tell."""
    return {key: result[key] for key in ("task_id", "description", "subagent_type")}


def begun(given: TaskResult, *, background: bool = False) -> dict[str, Any]:
    """The event that a subagent begins, or goes on after a crash."""
    return {"type": "task_started", **head_of(given), "namespace": [given["namespace"]], "background": background}


def subagents_in(agent: Any) -> Subagents | None:
    """The subagents that an agent can call."""
    tools = getattr(getattr(agent.nodes.get("tools"), "bound", None), "tools_by_name", {})
    return getattr(getattr(tools.get(TASK), "coroutine", None), "subagents", None)


@dataclass(frozen=True)
class Subagents:
    """Args:
    configs: by name.
    build: makes a subagent's graph, without a checkpointer, so that it has the lead's.
    work: of the tools that messages tell of, and the line about it.
    carried: ``additional_kwargs`` of the first message of a subagent that an agent with these messages asks.
    """

    configs: Mapping[str, SubagentConfig]
    build: Callable[[SubagentConfig], Any]
    work: Callable[[Sequence[BaseMessage]], tuple[Any, str]]
    carried: Callable[[Sequence[BaseMessage]], dict[str, Any]]
    _graphs: dict[str, Any] = field(default_factory=dict[str, Any])

    def tools(self) -> list[BaseTool]:
        """``task`` over these subagents, and ``cancel_task``."""

        async def task(
            description: Annotated[str, Field(description="3 to 6 words; shown to the user")],
            prompt: Annotated[str, Field(description="The whole task")],
            subagent_type: str,
            runtime: Runtime,
            max_turns: Annotated[int | None, Field(ge=1, description="Fewer turns than its own limit")] = None,
            background: Annotated[bool, Field(description="Return at once; the result comes as a message")] = False,
        ) -> ToolMessage | str:
            """Delegate."""
            config = self.configs.get(subagent_type)
            if config is None:
                raise ToolException(f"Unknown subagent type '{subagent_type}'. Available: {', '.join(self.configs)}")
            given = self._started(config, description, prompt, max_turns, runtime)
            if not background:
                runtime.stream_writer(begun(given))
                result = await self.play(given, runtime.context, runtime.stream_writer)
                is_fine = result["status"] in ("completed", "turn_limit")
                return _answer(result, result_text(result), status="success" if is_fine else "error")
            if (start := runtime.context.delegation.start) is None:
                raise ToolException("nothing can work in the background here. Call task without background.")
            start(given, runtime.context)
            return _answer(
                given, f"Started in the background as {given['task_id']}. Go on; its result comes as a message."
            )

        names = {"type": "string", **({"enum": [*self.configs]} if self.configs else {})}
        task.__annotations__["subagent_type"] = Annotated[str, WithJsonSchema(names)]
        made = async_tool(TASK)(task)
        made.description = DESCRIPTION.format(
            types="; ".join(f"{name} ({config.description.splitlines()[0]})" for name, config in self.configs.items())
        )
        made.coroutine.subagents = self  # type: ignore[union-attr]
        return [made, cancel_task_tool]

    def _started(
        self, config: SubagentConfig, description: str, prompt: str, max_turns: int | None, runtime: Runtime
    ) -> TaskResult:
        turns = config.max_turns if max_turns is None else min(max_turns, config.max_turns)
        return {
            "task_id": runtime.tool_call_id or "",
            "subagent_type": config.name,
            "description": description,
            "namespace": runtime.config.get("configurable", {}).get("checkpoint_ns", "").split("|")[-1],
            "status": "running",
            "text": prompt,
            "error": "",
            "files": [],
            "tokens": 0,
            "cost": None,
            "seconds": 0.0,
            "model": "",
            "calls": [],
            "carries": self.carried(runtime.state["messages"]),
            "max_turns": turns,
            "work": {},
            "receipts": "",
        }

    async def play(
        self,
        given: TaskResult,
        context: RunContext,
        emit: Callable[[dict[str, Any]], None],
        states: States | None = None,
    ) -> TaskResult:
        """Run a subagent to its end. Interrupts and cancellation pass; whatever else goes wrong is a result.

        Args:
            given: what it was given.
            context: the lead's.
            states: plays a graph that is no part of the lead's.
        """
        config = self.configs[given["subagent_type"]]
        own = replace(
            context,
            subagent=Subagent(config.name, given["namespace"], given["max_turns"]),
            delegation=replace(context.delegation, start=None, cancel=None),
            trust=replace(context.trust, unattended=context.trust.unattended or states is not None),
        )
        result = await self._played(config, given, own, emit, states or _inner)
        emit({"type": EVENTS[result["status"]], **head_of(result), **_ending(result)})
        if context.delegation.ended is not None:
            await context.delegation.ended(result["task_id"])
        return result

    async def _played(
        self,
        config: SubagentConfig,
        given: TaskResult,
        context: RunContext,
        emit: Callable[[dict[str, Any]], None],
        states: States,
    ) -> TaskResult:
        began, messages, failure = time.monotonic(), list[BaseMessage](), None
        limit = asyncio.timeout(config.timeout_seconds)
        try:
            graph = await self._graph(config)
            playing = states(graph, _input(given), _limits(config, given), context)
            await _follow(playing, limit, given["task_id"], context, emit, messages)
        except GraphBubbleUp:
            raise
        except Exception as problem:
            failure = _failure(problem, config, is_stopped=given["task_id"] in context.delegation.stops, limit=limit)
        answers = _answers(messages)
        last = answers[-1] if answers else AIMessage("")
        status, error = failure or _end(last)
        used = [answer for answer in answers if answer.usage_metadata]
        work, receipts = self.work(messages)
        return {
            **given,
            "status": status,
            "text": next((each.text for each in reversed(answers) if each.text.strip() and not is_failure(each)), ""),
            "error": error,
            "files": work["files"],
            **_spent(answers, context),
            "seconds": round(time.monotonic() - began, 1),
            "model": str(last.response_metadata.get("model_name") or context.options.model_name or ""),
            "calls": [_call(answer) for answer in used],
            "work": work,
            "receipts": receipts,
        }

    async def _graph(self, config: SubagentConfig) -> Any:
        if config.name not in self._graphs:
            self._graphs[config.name] = await asyncio.to_thread(self.build, config)
        return self._graphs[config.name]


def _input(given: TaskResult) -> dict[str, Any]:
    kwargs = given.get("carries", {})  # one that an older version began has none
    prompt = HumanMessage(given["text"], id=f"{given['namespace']}:prompt", additional_kwargs=kwargs)
    return {"messages": [prompt]}


def _limits(config: SubagentConfig, given: TaskResult) -> dict[str, Any]:
    return {"recursion_limit": 10 * given["max_turns"] + 100, "run_name": f"{SUBAGENT}{config.name}"}


async def _follow(
    playing: AsyncGenerator[Mapping[str, Any], None],
    limit: asyncio.Timeout,
    task_id: str,
    context: RunContext,
    emit: Callable[[dict[str, Any]], None],
    messages: list[BaseMessage],
) -> None:
    """Keep ``messages`` those of the graph's newest state, and emit each new answer, until the graph ends.

    Raises TimeoutError: the time is over, or the task was stopped.
    """
    stops, shown = context.delegation.stops, 0
    async with limit, aclosing(playing) as played:
        with stops.ending(task_id, limit):
            async for state in played:
                messages[:] = state["messages"]
                answers = _answers(messages)
                for number, answer in enumerate(answers[shown:], shown + 1):
                    progress = {"message": answer, "message_index": number, "total_messages": len(answers)}
                    spent = _spent(answers[:number], context)
                    emit({"type": "task_running", "task_id": task_id, **progress, **spent})
                shown = len(answers)
                if task_id in stops:
                    raise TimeoutError


def _answers(messages: Iterable[BaseMessage]) -> list[AIMessage]:
    return [message for message in messages if isinstance(message, AIMessage)]


def _failure(
    problem: Exception, config: SubagentConfig, *, is_stopped: bool, limit: asyncio.Timeout
) -> tuple[Status, str]:
    if is_stopped:
        return "cancelled", "it was stopped"
    if limit.expired():
        return "timed_out", f"it took longer than {config.timeout_seconds} seconds"
    logger.exception("The subagent %s failed", config.name)
    return "failed", str(problem) or type(problem).__name__


def _end(last: AIMessage) -> tuple[Status, str]:
    """Return status and error of a graph that came to its end with this answer."""
    if is_failure(last):
        return "failed", str(last.additional_kwargs["error"].get("message"))
    if last.tool_calls:
        return "failed", "a call needs the user's decision, which only a task in the foreground can wait for"
    if repeated := last.additional_kwargs.get(LOOP_STOP):
        return LOOP, f"it repeated itself: {repeated}"
    return "turn_limit" if TURN_LIMIT in last.additional_kwargs else "completed", ""


def result_text(result: TaskResult) -> str:
    """What the lead agent reads."""
    text, error = result["text"], result["error"].rstrip(".")
    match result["status"]:
        case "completed":
            shown = [f"Task Succeeded. Result: {text or 'No response generated'}"]
        case "turn_limit":
            shown = [
                "Task Succeeded. Result: [it had no turns left; this is what it has]",
                text or "No response generated",
            ]
        case "timed_out":
            shown = [f"Task timed out. Error: {error}."]
        case "loop":
            shown = [f"Task stopped. Error: {error}."]
        case "cancelled":
            shown = ["Task cancelled by user."]
        case _:
            shown = [f"Task failed. Error: {error}."]
    is_fine = result["status"] in ("completed", "turn_limit")
    shown += [f"What it had so far: {text}"] if text and not is_fine else []
    return "\n".join([*shown, *filter(None, [result.get("receipts")])])


def is_failure(answer: AIMessage) -> bool:
    """Whether an answer says why there is none."""
    return bool(answer.additional_kwargs.get("error"))


def _answer(result: TaskResult, text: str, *, status: Literal["success", "error"] = "success") -> ToolMessage:
    artifact = {TASK: result, "files": result["files"]}
    return ToolMessage(text, name=TASK, tool_call_id=result["task_id"], status=status, artifact=artifact)


def _inner(graph: Any, given: dict[str, Any], config: Any, context: RunContext) -> AsyncGenerator[Any, None]:
    """As a part of the graph that calls."""
    return graph.astream(given, config, context=context, stream_mode="values")


@async_tool("cancel_task")
async def cancel_task_tool(task_id: str, runtime: Runtime) -> str:
    """Stop a background task whose result is no longer needed."""
    cancel = runtime.context.delegation.cancel
    if cancel is None or not await cancel(task_id):
        return f"Error: no background task {task_id} is at work."
    return f"Stopped {task_id}."


def _spent(answers: Iterable[AIMessage], context: RunContext) -> _Spent:
    tokens, cost = 0, None
    for answer in answers:
        if not (used := answer.usage_metadata):
            continue
        tokens += used["total_tokens"]
        if (price := price_of(context.config, answer, context.options.model_name)) is not None:
            cost = (cost or 0.0) + price["amount"]
    return {"tokens": tokens, "cost": cost}


def _ending(result: TaskResult) -> dict[str, Any]:
    shown = {key: result.get(key) for key in ("status", "files", "tokens", "cost", "seconds", "model")}
    return {**shown, "result": result["text"]} | ({"error": result["error"]} if result["error"] else {})


def _call(answer: AIMessage) -> dict[str, Any]:
    metadata = answer.response_metadata
    return {
        "id": answer.id,
        "model": metadata.get("model_name"),
        "usage": dict(answer.usage_metadata or {}),
        "run_id": metadata.get("run_id"),
        "marks": {key: metadata[key] for key in (ENTRY, ESTIMATED) if key in metadata},
    }
