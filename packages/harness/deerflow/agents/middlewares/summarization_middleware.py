"""Requests that fit: older messages give way to a summary, long old results to their ends."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage, get_buffer_string
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.constants import TAG_NOSTREAM
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest
from typing_extensions import TypedDict

from deerflow.agents.middlewares.base import (
    SUMMARIZER_TAG,
    Middleware,
    ModelHandler,
    ModelResult,
    Request,
    ToolHandler,
    ToolResult,
    context_of,
    emit,
    last_ai,
    messages_of,
    reminder,
    tool_messages,
    with_replaced,
    with_update,
)
from deerflow.agents.transcript import (
    ARGUMENTS,
    COMPACTION,
    SUMMARY,
    MessageMemo,
    Summary,
    Transcript,
    current_turn,
    is_long,
    is_person,
    newest_summary,
    shortened,
    summarized,
    without_long_arguments,
)
from deerflow.config import AppConfig
from deerflow.config.schema import ContextSize, SummarizationConfig
from deerflow.context import RunContext
from deerflow.models.context_window import BYTES_PER_TOKEN, ContextWindows, estimate
from deerflow.models.endpoint import model_id
from deerflow.models.failures import TOO_LARGE_CODE, ErrorKind, classify, model_error
from deerflow.sandbox.interface import SandboxError
from deerflow.security.text import disarmed
from deerflow.tools.files import write_file_tool
from deerflow.tools.shell import absolute, result_path

logger = logging.getLogger(__name__)

PATH_ARGUMENTS = ("path", "file_path", "filepath")
TRIES = 2
REMEMBERED = 64
DEFAULT_TRIGGER = (ContextSize(type="fraction", value=0.8),)
PINNED_SHARE, KEPT_SHARE, SHORTENED_SHARE = 1 / 4, 1 / 3, 0.7
"""Of what a request may hold: people's older messages, the part after the summary, and what is aimed at by shortening."""
READERS = frozenset({"grep", "read_file", "bash"})
"""Tools with which a file can be read."""
WITHOUT_WINDOW = 100_000
"""Tokens: shares refer to it where no window is known."""
FULL_FROM = 0.8
"""The part of what a request may hold from which on the model reads that its context is getting full."""
WORTH_IT = 1 / 4
"""A summary is made if it stands for at least this part of the request's messages."""

FULL = "Your context is getting full. "
REQUEST = """Write a hand-over of the conversation above: it will take the place of the older messages, \
and you will go on with it and the newest ones. Do not call tools and do not answer the user; write the hand-over only, in \
the user's language, with these headings, "None" where nothing fits:
## Task and constraints
What the user wants, in their own words where wording matters; rules and preferences that still hold.
## Decisions
What was decided and why; what was ruled out.
## Files and state
Paths, what is in them, what runs, results and figures that are still needed.
## Failed
What was tried and did not work.
## Open
Unfinished todos and the next steps.
Keep names, paths, numbers and quotations exact."""
KEEP = "\nThe user asks to keep above all: {keep}"
FROM_TEXT = "This is a conversation between a user and an assistant who works with tools.\n\n<conversation>\n{messages}\n</conversation>\n\n"


class SummarizationMiddleware(Middleware):
    """Counts each request before it is sent, and makes it smaller when it is due.

    The stored messages stay. A summary is one more message behind the unchanged request, so that the provider's cache
    serves the rest of it; with ``model_name`` another model reads the conversation as text.

    Args:
        settings: when and how; without ``enabled`` nothing is summarised unless the person asks for it.
        windows: what models can read.
        model: makes the summaries; None: the one that is asked.
        skills_path: where skills are mounted: what was read there lately is kept word for word.
    """

    def __init__(
        self,
        settings: SummarizationConfig | None = None,
        windows: ContextWindows | None = None,
        *,
        model: BaseChatModel | None = None,
        skills_path: str = "/mnt/skills",
    ) -> None:
        super().__init__()
        self.settings = settings or SummarizationConfig(enabled=True)
        self.windows = windows or ContextWindows()
        self.model = model
        self.skills_path = skills_path
        self._made: dict[tuple[str, str], Summary] = {}
        """By thread and last message: a request that is sent again after an error needs no second summary."""
        self._estimate_message = MessageMemo[BaseMessage, int](estimate)
        self._estimate_tool = MessageMemo[Any, int](_tool_size)

    def compile(self, transcript: Transcript, context: RunContext | None) -> Transcript:
        messages = without_long_arguments(transcript.messages)
        newest = newest_summary(transcript.state.get("summaries") or (), messages)
        seen = summarized(messages, newest, transcript.state.get("messages") or ())
        return transcript if seen is transcript.messages else transcript.with_messages(seen)

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        """Keep long arguments of a call that is done in a file: later requests name it."""
        result, args = await handler(request), request.tool_call["args"]
        long = {key: value for key, value in args.items() if is_long(value)}
        answers = tool_messages(result)
        if not long or not answers or any(_has_failed(answer) for answer in answers):
            return result
        call = request.tool_call
        if call["name"] == write_file_tool.name and [*long] == ["content"]:
            path = absolute(str(args.get("path")))
        else:
            path = await _kept(context_of(request), f"{call['id']}-arguments", as_lines(long))
        mark = {ARGUMENTS: path}
        return with_replaced(
            result, lambda m: m.model_copy(update={"additional_kwargs": {**m.additional_kwargs, **mark}}) if path else m
        )

    async def awrap_model_call(self, request: Request, handler: ModelHandler) -> ModelResult:
        asked = _compaction(request.messages)
        if asked is not None:
            return await self._on_demand(request, handler, str(asked.get("keep") or ""))
        smaller, made, size = request, None, self.size(request)
        if self._is_due(request, size):
            smaller, made = await self._smaller(request, handler)
        try:
            result = await handler(smaller)
        except Exception as error:
            failure = classify(error)
            is_too_large = failure.kind in (ErrorKind.CONTEXT_LENGTH, ErrorKind.TOO_LARGE)
            if not is_too_large or isinstance(error, GraphBubbleUp) or made is not None:
                raise
            if failure.kind is ErrorKind.CONTEXT_LENGTH:
                self.windows.refused(request.model, failure.detail, size, self._fixed(request))
            smaller, made = await self._smaller(request, handler)
            if made is None and self._is_short(request):
                raise model_error(ContextOverflowError, failure.detail, code=TOO_LARGE_CODE) from error
            if made is None:
                raise
            result = await handler(smaller)
        self.windows.passed(request.model, self._estimate(smaller), last_ai(result))
        return with_update(result, messages_of(result), {"summaries": [made]}) if made else result

    # counting ---------------------------------------------------------------------------------------------------------

    def size(self, request: Request) -> int:
        """Tokens of a request, about as its provider counts them."""
        return self.windows.counted(request.model, self._estimate(request))

    def _estimate(self, request: Request) -> int:
        return self._estimate_fixed(request) + sum(map(self._estimate_message, request.messages))

    def _estimate_fixed(self, request: Request) -> int:
        """Tokens of what every request holds: the system prompt and the tools."""
        system = self._estimate_message(request.system_message) if request.system_message else 0
        return system + sum(map(self._estimate_tool, request.tools))

    def _fixed(self, request: Request) -> int:
        return self.windows.counted(request.model, self._estimate_fixed(request))

    def _is_short(self, request: Request) -> bool:
        """Return whether the conversation is the smaller part of a request, so that shortening it would not help."""
        return sum(map(self._estimate_message, request.messages)) < self._estimate_fixed(request)

    def _limit(self, request: Request, *, sure: bool = False) -> int | None:
        context = request.runtime.context
        return self.windows.limit(request.model, context.config if context else None, sure=sure)

    def _is_due(self, request: Request, size: int) -> bool:
        limit = self._limit(request)
        if limit is not None and size > limit:
            return True
        if not self.settings.enabled:
            return False
        amounts = {"tokens": size, "messages": len(request.messages), "fraction": size / limit if limit else 0}
        due = any(amounts[each.type] >= each.value for each in self.settings.trigger or DEFAULT_TRIGGER)
        return due and self._cut(request) > 0

    # making room ------------------------------------------------------------------------------------------------------

    async def _smaller(self, request: Request, handler: ModelHandler) -> tuple[Request, Summary | None]:
        """``request`` with a summary, with shortened results, or both; and what the thread is to remember of that.

        Raises:
            ContextOverflowError: it does not fit whatever is left out.
        """
        key = (request.runtime.context.thread_id if request.runtime.context else "", request.messages[-1].id or "")
        made = self._made.get(key)
        if made is None and self.settings.enabled and (cut := self._cut(request)):
            made = await self._summary(request, handler, cut)
        smaller = _seen(request, made)
        if self._is_over(smaller):
            made = await self._fitted(smaller, made or _so_far(request)) or made
            smaller = _seen(request, made)
            sure = self._limit(request, sure=True)
            if sure is not None and self.size(smaller) > sure and not self._is_short(smaller):
                raise model_error(
                    ContextOverflowError,
                    f"The request would have about {self.size(smaller)} tokens, {sure} fit.",
                    code="context_length_exceeded",
                )
        if made is not None:
            made["after"] = self.size(smaller)
            if len(self._made) > REMEMBERED:
                self._made.clear()
            self._made[key] = made
        return smaller, made

    def _cut(self, request: Request) -> int:
        """How many of the request's first messages a summary may stand for; 0 if it is not worth it."""
        messages = request.messages
        while messages and messages[-1].id is None and isinstance(messages[-1], HumanMessage):
            messages = messages[:-1]
        sizes = [self._estimate_message(message) for message in messages]
        room = self._room(request)
        cut = _cut(sizes, self.settings.keep, room)
        while cut > 0 and (isinstance(messages[cut], ToolMessage) or messages[cut].id is None):
            cut -= 1
        pinned = {*self._pinned(_stored(request, messages[:cut]), room), None}
        gain = sum(
            size
            for message, size in zip(messages[:cut], sizes, strict=False)
            if message.id not in pinned and message.name != SUMMARY
        )
        return cut if gain > 0 and (gain >= WORTH_IT * sum(sizes) or self._is_over(request)) else 0

    def _is_over(self, request: Request) -> bool:
        limit = self._limit(request)
        return limit is not None and self.size(request) > limit

    def _room(self, request: Request) -> int:
        """Estimated tokens that messages may take."""
        counted = self.windows.counted(request.model, 1000) / 1000
        return round((self._limit(request) or WITHOUT_WINDOW) / counted)

    async def _summary(self, request: Request, handler: ModelHandler, cut: int, keep: str = "") -> Summary | None:
        """Ask for it; None if there is none to be had."""
        emit(request.runtime, {"type": "summarizing", "messages": cut})
        earlier, fitting = _so_far(request), request
        if self._is_over(request) and (fitted := await self._fitted(request, earlier)) is not None:
            earlier, fitting = fitted, _seen(request, fitted)
        question = self._question(fitting, self._prompt(request, keep))
        for attempt in range(TRIES):
            try:
                answer = last_ai(await handler(question))
            except GraphBubbleUp:
                raise
            except Exception as error:
                logger.warning("No summary (attempt %d): %s", attempt + 1, classify(error).detail)
                continue
            if answer is not None and answer.text.strip():
                made = self._record(request, cut, answer.text.strip(), earlier)
                made["history"] = await _keep_history(request, _stored(request, request.messages[:cut]))
                return made
            logger.warning("No summary (attempt %d): the answer was empty", attempt + 1)
        return None

    def _prompt(self, request: Request, keep: str) -> str:
        prompt = (self.settings.summary_prompt or REQUEST).replace("{messages}", "the conversation above")
        prompt += KEEP.format(keep=keep) if keep else ""
        limit = self._limit(request)
        if limit is not None and self.size(request) >= FULL_FROM * limit and not self.settings.summary_prompt:
            prompt = FULL + prompt
        return prompt

    def _question(self, request: Request, prompt: str) -> Request:
        silent = {"tags": [*(request.model.tags or ()), TAG_NOSTREAM, SUMMARIZER_TAG]}
        if self.model is None:
            messages = [*request.messages, reminder("summary_request", prompt)]
            return request.override(model=request.model.model_copy(update=silent), messages=messages)
        text = disarmed(_as_text(request.messages, self.settings.trim_tokens_to_summarize), foreign=True)
        own = self.settings.summary_prompt
        content = own.replace("{messages}", text) if own else FROM_TEXT.format(messages=text) + prompt
        return request.override(
            model=self.model.model_copy(update=silent),
            messages=[HumanMessage(content=content)],
            system_message=None,
            tools=[],
        )

    def _record(self, request: Request, cut: int, text: str, earlier: Summary) -> Summary:
        before, context = request.messages[:cut], request.runtime.context
        stored = _stored(request, before)
        pinned = self._pinned(stored, self._room(request))
        return Summary(
            upto=stored[-1].id or "",
            text=text,
            pinned=pinned,
            open=[id_ for id_ in pinned if id_ in _unanswered(request)],
            skills=self._skills(before, earlier["skills"]),
            shortened_upto=earlier["shortened_upto"],
            files=earlier.get("files", {}),
            before=self.size(request),
            after=0,
            made_at=datetime.now(UTC).isoformat(),
            run_id=context.run_id if context else "",
        )

    def _pinned(self, messages: Sequence[AnyMessage], room: int) -> list[str]:
        """What people said: the first and the last message always, others as far as they fit, the newest ones first."""
        people = [m for m in messages if is_person(m) and m.id and COMPACTION not in m.additional_kwargs]
        pinned = {message.id or "" for message in (*people[:1], *people[-1:])}
        left = PINNED_SHARE * room
        for message in reversed(people):
            size = self._estimate_message(message)
            if size <= left:
                left -= size
                pinned.add(message.id or "")
        return [message.id or "" for message in people if message.id in pinned]

    def _skills(self, messages: Sequence[AnyMessage], earlier: dict[str, str]) -> dict[str, str]:
        """The texts of skills that were read last, by path, the oldest first."""
        settings = self.settings
        paths = {
            call["id"]: next((str(call["args"][key]) for key in PATH_ARGUMENTS if key in call["args"]), "")
            for message in messages
            if isinstance(message, AIMessage)
            for call in message.tool_calls
            if call["name"] in settings.skill_file_read_tool_names
        }
        read = [(paths.get(m.tool_call_id, ""), m.text) for m in reversed(messages) if isinstance(m, ToolMessage)]
        found: dict[str, str] = {}
        left = settings.preserve_recent_skill_tokens
        for path, text in (*read, *reversed(earlier.items())):
            size = len(text.encode()) // BYTES_PER_TOKEN
            if not path.startswith(f"{self.skills_path}/") or path in found:
                continue
            if len(found) < settings.preserve_recent_skill_count and size <= min(
                left, settings.preserve_recent_skill_tokens_per_skill
            ):
                found[path] = text
                left -= size
        return dict(reversed(found.items()))

    def _shortened(self, request: Request, summary: Summary) -> Summary | None:
        """With as many of the oldest long results shortened as it takes to have some room again; None: there are none."""
        excess = self._estimate(request) - SHORTENED_SHARE * self._room(request)
        end = summary["shortened_upto"]
        for message in request.messages:
            if excess <= 0:
                break
            if message.id and not _is_kept(message) and shortened(message) is not message:
                excess -= self._estimate_message(message) - estimate(shortened(message))
                end = message.id
        return Summary(**{**summary, "shortened_upto": end}) if end != summary["shortened_upto"] else None

    async def _fitted(self, request: Request, summary: Summary) -> Summary | None:
        """With old long results shortened, and then as many of the person's longest messages cut as it takes; None: there are none.

        The whole of each goes to a file that the request names.
        """
        context = request.runtime.context
        made = self._shortened(request, summary) or summary
        files = dict(summary.get("files", {}))
        if made is not summary:
            end = next(n for n, message in enumerate(request.messages) if message.id == made["shortened_upto"])
            for message in request.messages[: end + 1]:
                if (
                    isinstance(message, ToolMessage)
                    and message.id
                    and message.id not in files
                    and is_long(message.text)
                ):
                    files[message.id] = await _kept(context, message.tool_call_id, message.text, only_new=True)
            made = Summary(**{**made, "files": files})
        people = [
            m for m in _stored(request, request.messages) if is_person(m) and is_long(m.text) and m.id not in files
        ]
        for message in sorted(people, key=lambda message: -len(message.text)):
            if not self._is_over(_seen(request, made)):
                break
            files = {**files, message.id or "": await _kept(context, f"message-{message.id}", message.text)}
            made = Summary(**{**made, "files": files})
        return made if made is not summary else None

    async def _on_demand(self, request: Request, handler: ModelHandler, keep: str) -> ModelResult:
        """``/compact``: summarize all that was said before it; the answer says what came of it, or the work goes on."""
        before = request.override(messages=request.messages[:-1])
        cut = len(before.messages)
        made = None
        if any(not _is_kept(message) for message in before.messages):
            made = await self._summary(before, handler, cut, keep)
        if made is not None:
            made["after"] = self.size(_seen(before, made))
        update = {"summaries": [made]} if made is not None else {}
        if request.messages[-1].id != request.state["messages"][-1].id:  # it came during the work
            result = await handler(_seen(before, made))
            return with_update(result, messages_of(result), update)
        facts = {"before": made["before"], "after": made["after"]} if made is not None else {}
        answer = AIMessage(_said(made, cut), additional_kwargs={COMPACTION: facts})
        return with_update(answer, [answer], update)


class ContextTable(TypedDict):
    """What fills a model's window, in tokens, about as the provider counts them.

    Args:
        window: what the model reads and writes in one call; None: not known.
        limit: what a request may hold.
        used: system, tools, messages, summary and tool_results together.
    """

    model: str
    window: int | None
    limit: int | None
    used: int
    system: int
    tools: int
    messages: int
    tool_results: int
    summary: int


def context_table(
    windows: ContextWindows,
    config: AppConfig,
    model: BaseChatModel,
    prompt: str,
    tools: Sequence[BaseTool],
    messages: Sequence[AnyMessage],
) -> ContextTable:
    """The table for a compiled request."""
    sizes = {"system": estimate(HumanMessage(prompt)), "tools": sum(map(_tool_size, tools))}
    sizes |= {"messages": 0, "tool_results": 0, "summary": 0}
    for message in messages:
        kind = "tool_results" if isinstance(message, ToolMessage) else "messages"
        sizes["summary" if message.name == SUMMARY else kind] += estimate(message)
    counted = {kind: windows.counted(model, size) for kind, size in sizes.items()}
    return ContextTable(
        model=model_id(model),
        window=windows.window(model, config),
        limit=windows.limit(model, config),
        used=sum(counted.values()),
        **counted,
    )


def _said(made: Summary | None, count: int) -> str:
    if made is None:
        return "There is nothing to summarize yet." if count < 2 else "The model gave no summary; nothing was changed."
    return f"Summarized {count} messages: the model now reads about {made['after']:,} tokens instead of {made['before']:,}."


def _cut(sizes: Sequence[int], keep: ContextSize, room: int) -> int:
    """The first message that stays."""
    most = KEPT_SHARE * room
    if keep.type != "messages":
        most = min(most, keep.value * room if keep.type == "fraction" else keep.value)
    least = len(sizes) - int(keep.value) if keep.type == "messages" else 0
    first = len(sizes) - 1
    kept = sizes[-1] if sizes else 0
    while first > max(least, 0) and (kept := kept + sizes[first - 1]) <= most:
        first -= 1
    return max(first, 0)


def _compaction(messages: Sequence[AnyMessage]) -> Mapping[str, Any] | None:
    asked = messages[-1].additional_kwargs.get(COMPACTION) if messages else None
    return asked if isinstance(asked, Mapping) else None


def _seen(request: Request, summary: Summary | None) -> Request:
    if summary is None:
        return request
    return request.override(messages=list(summarized(request.messages, summary, request.state["messages"])))


def _stored(request: Request, before: Sequence[AnyMessage]) -> list[AnyMessage]:
    """The thread's messages up to the last of ``before``, as they were said; with those that have just arrived."""
    stored: list[AnyMessage] = list(request.state["messages"])
    known = {message.id for message in stored}
    stored += [message for message in request.messages if message.id and message.id not in known]
    last = next((message.id for message in reversed(before) if message.id), None)
    place = next((place for place, message in enumerate(stored) if message.id == last), -1)
    return stored[: place + 1]


def _unanswered(request: Request) -> set[str | None]:
    """Ids of the person's messages that the work is about. None once the turn has its answer."""
    messages = request.messages
    if messages and isinstance(messages[-1], AIMessage) and not messages[-1].tool_calls:
        return set()
    return {message.id for message in current_turn(_stored(request, messages)) if is_person(message)}


async def _kept(context: RunContext | None, name: str, text: str, *, only_new: bool = False) -> str:
    """Write a text to a file of the workspace and return its path; "" if there is no workspace.

    Args:
        only_new: a file that is there already holds more, and stays.
    """
    if context is None or context.machine.provider is None:
        return ""
    path = result_path(name)
    try:
        sandbox = await context.sandbox()
        if not only_new or await sandbox.stat(path) is None:
            await sandbox.write(path, text.encode("utf-8", "replace"))
    except SandboxError as error:
        logger.warning("Could not write %s: %s", path, error)
        return ""
    return path


def _has_failed(answer: ToolMessage) -> bool:
    """Return whether a call has to be made again, for which its arguments are needed."""
    return answer.status == "error" or answer.text.startswith("Error")


async def _keep_history(request: Request, messages: Sequence[AnyMessage]) -> str:
    """Write the conversation where ``grep`` finds what a summary leaves out, and return the path; "" if nothing can read it."""
    context = request.runtime.context
    if (
        context is None
        or context.machine.provider is None
        or not READERS & {_tool_name(tool) for tool in request.tools}
    ):
        return ""
    name = f"conversation-{context.namespace}" if context.subagent is not None else "conversation"
    return await _kept(context, name, await asyncio.to_thread(history, messages))


def history(messages: Sequence[AnyMessage]) -> str:
    """Messages as lines of text, whole, each argument with its own line ends: for ``grep``."""
    parts: list[str] = []
    for message in messages:
        name = f"{message.type} {message.name or ''}".strip()
        parts.append(f"[{name}]\n{message.text}".rstrip())
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            parts.append(f"[call {call['name']}]\n{as_lines(call['args'])}".rstrip())
    return "\n\n".join(parts) + "\n"


def as_lines(args: Mapping[str, Any]) -> str:
    """A call's arguments as text, with their own line ends."""
    return "\n".join(f"{key}: {value}" for key, value in args.items())


def _tool_name(tool: BaseTool | dict[str, Any]) -> str:
    return tool.name if isinstance(tool, BaseTool) else ""


def _so_far(request: Request) -> Summary:
    """The summary that holds so far, or an empty one."""
    last = newest_summary(request.state.get("summaries") or (), request.state["messages"])
    return last or Summary(upto="", text="", pinned=[], skills={}, shortened_upto="", before=0, after=0)


def _is_kept(message: AnyMessage) -> bool:
    return (is_person(message) and bool(message.id)) or message.name == SUMMARY


def _as_text(messages: Sequence[AnyMessage], tokens: int | None) -> str:
    """The conversation for another model: long results shortened, the oldest left out where it is too long."""
    parts = [get_buffer_string([shortened(message)]) for message in messages]
    left = (tokens or 1 << 40) * BYTES_PER_TOKEN
    kept: list[str] = []
    for part in reversed(parts):
        left -= len(part.encode())
        if left < 0 and kept:
            kept.append(f"[{len(parts) - len(kept)} older messages left out]")
            break
        kept.append(part)
    return "\n".join(reversed(kept))


def _tool_size(tool: BaseTool | dict[str, Any]) -> int:
    return len(json.dumps(convert_to_openai_tool(tool))) // BYTES_PER_TOKEN
