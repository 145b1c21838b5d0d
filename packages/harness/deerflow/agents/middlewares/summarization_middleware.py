"""Requests that fit: older messages give way to a summary, long old results to their ends."""

from __future__ import annotations

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
from typing_extensions import TypedDict

from deerflow.agents.middlewares.base import (
    SUMMARIZER_TAG,
    Middleware,
    ModelHandler,
    ModelResult,
    Request,
    emit,
    last_ai,
    messages_of,
    reminder,
    with_update,
)
from deerflow.agents.transcript import (
    COMPACTION,
    SUMMARY,
    MessageMemo,
    Summary,
    Transcript,
    is_person,
    newest_summary,
    shortened,
    summarized,
)
from deerflow.config import AppConfig
from deerflow.config.schema import ContextSize, SummarizationConfig
from deerflow.context import RunContext
from deerflow.models.context_window import BYTES_PER_TOKEN, ContextWindows, estimate
from deerflow.models.endpoint import model_id
from deerflow.models.failures import TOO_LARGE_CODE, ErrorKind, classify, model_error
from deerflow.security.text import disarmed

logger = logging.getLogger(__name__)

PATH_ARGUMENTS = ("path", "file_path", "filepath")
TRIES = 2
REMEMBERED = 64
DEFAULT_TRIGGER = (ContextSize(type="fraction", value=0.8),)
PINNED_SHARE, KEPT_SHARE, SHORTENED_SHARE = 1 / 4, 1 / 3, 0.7
"""Of what a request may hold: people's older messages, the part after the summary, and what is aimed at by shortening."""
WITHOUT_WINDOW = 100_000
"""Tokens: shares refer to it where no window is known."""
WORTH_IT = 1 / 4
"""A summary is made if it stands for at least this part of the request's messages."""

REQUEST = """Your context is getting full. Write a hand-over of the conversation above: it will take the place of the older messages, \
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
        messages = transcript.messages
        seen = summarized(messages, newest_summary(transcript.state.get("summaries") or (), messages))
        return transcript if seen is messages else transcript.with_messages(seen)

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
            made = self._shortened(smaller, made or _so_far(request)) or made
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
        pinned = {*self._pinned(messages[:cut], room), None}
        gain = sum(size for message, size in zip(messages[:cut], sizes, strict=False) if message.id not in pinned)
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
        question = self._question(request, keep)
        for attempt in range(TRIES):
            try:
                answer = last_ai(await handler(question))
            except GraphBubbleUp:
                raise
            except Exception as error:
                logger.warning("No summary (attempt %d): %s", attempt + 1, classify(error).detail)
                continue
            if answer is not None and answer.text.strip():
                return self._record(request, cut, answer.text.strip())
            logger.warning("No summary (attempt %d): the answer was empty", attempt + 1)
        return None

    def _question(self, request: Request, keep: str) -> Request:
        prompt = (self.settings.summary_prompt or REQUEST).replace("{messages}", "the conversation above")
        prompt += KEEP.format(keep=keep) if keep else ""
        silent = {"tags": [*(request.model.tags or ()), TAG_NOSTREAM, SUMMARIZER_TAG]}
        if self.model is None:
            fitting = request
            if self._is_over(request):
                fitting = _seen(request, self._shortened(request, _so_far(request)))
            messages = [*fitting.messages, reminder("summary_request", prompt)]
            return fitting.override(model=request.model.model_copy(update=silent), messages=messages)
        text = disarmed(_as_text(request.messages, self.settings.trim_tokens_to_summarize), foreign=True)
        own = self.settings.summary_prompt
        content = own.replace("{messages}", text) if own else FROM_TEXT.format(messages=text) + prompt
        return request.override(
            model=self.model.model_copy(update=silent),
            messages=[HumanMessage(content=content)],
            system_message=None,
            tools=[],
        )

    def _record(self, request: Request, cut: int, text: str) -> Summary:
        before = request.messages[:cut]
        context, earlier = request.runtime.context, _so_far(request)
        return Summary(
            upto=next(message.id or "" for message in reversed(before) if message.id),
            text=text,
            pinned=self._pinned(before, self._room(request)),
            skills=self._skills(before, earlier["skills"]),
            shortened_upto=earlier["shortened_upto"],
            before=self.size(request),
            after=0,
            made_at=datetime.now(UTC).isoformat(),
            run_id=context.run_id if context else "",
        )

    def _pinned(self, messages: Sequence[AnyMessage], room: int) -> list[str]:
        """What people said: the first and the last message always, others as far as they fit, the newest ones first."""
        people = [message for message in messages if is_person(message) and message.id]
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
    return request if summary is None else request.override(messages=list(summarized(request.messages, summary)))


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
