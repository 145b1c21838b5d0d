"""The transcript of a thread: its messages in order, the run of each, and what they cost."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

import orjson
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from sqlalchemy import Connection

from deerflow.agents.transcript import summary_marks
from deerflow.errors import NotFoundError
from deerflow.events.jsonable import message_json
from deerflow.identity import Principal
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.runs import Run, find, since
from deerflow.storage.tables import runs
from deerflow.storage.threads import ThreadRepository
from deerflow.storage.visibility import may_change, may_read
from deerflow.subagents.task import TASK, delivery_id
from deerflow.threads.task_transcripts import TaskTranscripts, kept
from deerflow.threads.view import EventEntry, MessageEntry, ModelUsage, SubagentTask, ThreadTurn, ThreadUsage

if TYPE_CHECKING:
    from deerflow.events.log import EventLog
    from deerflow.threads.states import ThreadStates
from deerflow.threads.branches import Branch, are_joined, branches, turns_of
from deerflow.threads.exports import as_json, as_markdown
from deerflow.threads.feedback import Feedback, FeedbackRepository

CALLERS = ("lead_agent", "subagent", "middleware")
_NO_RESULT: dict[str, Any] = {
    "namespace": "",
    "text": "",
    "error": "",
    "files": [],
    "tokens": 0,
    "cost": None,
    "seconds": 0.0,
    "model": "",
}
_EVENT_TYPES = {"human": "llm.human.input", "ai": "llm.ai.response", "tool": "llm.tool.result"}


@dataclass(frozen=True)
class TranscriptView:
    database: Database
    threads: ThreadRepository
    states: ThreadStates
    log: EventLog

    async def messages(
        self,
        principal: Principal,
        thread_id: str,
        *,
        limit: int = 50,
        before_seq: int | None = None,
        after_seq: int | None = None,
    ) -> tuple[list[MessageEntry], bool]:
        """A page of the thread's messages, in order, and whether there are more in that direction.

        The last ones, the last ones before ``before_seq``, or the first ones after ``after_seq``.
        """
        await self.threads.get(principal, thread_id)
        return _page(await self._entries(principal, thread_id), limit, before_seq, after_seq)

    async def run_messages(
        self,
        principal: Principal,
        run_id: str,
        *,
        thread_id: str | None = None,
        limit: int = 50,
        before_seq: int | None = None,
        after_seq: int | None = None,
    ) -> tuple[list[MessageEntry], bool]:
        """As :meth:`messages`, of one run. Raises NotFoundError."""
        run = await self._run(principal, run_id, thread_id)
        entries = [entry for entry in await self._entries(principal, run.thread_id) if entry["run_id"] == run_id]
        return _page(entries, limit, before_seq, after_seq)

    async def events(
        self,
        principal: Principal,
        run_id: str,
        *,
        thread_id: str | None = None,
        event_types: Collection[str] | None = None,
        limit: int = 500,
    ) -> list[EventEntry]:
        """The run's events so far, from the first on. ``event_types``: only these."""
        run = await self._run(principal, run_id, thread_id)
        found: list[EventEntry] = []
        async with aclosing(self.log.so_far(run.thread_id, run_id)) as pages:
            async for page in pages:
                for event in page:
                    if event_types is None or event.method in event_types:
                        found.append(
                            {
                                "seq": event.seq,
                                "run_id": run_id,
                                "thread_id": run.thread_id,
                                "event_type": event.method,
                                "namespace": list(event.namespace),
                                "content": event.data,
                            }
                        )
                if len(found) >= limit:
                    break
        return found[:limit]

    async def tasks(self, principal: Principal, thread_id: str) -> list[SubagentTask]:
        """The thread's subagents in the order of their calls."""
        await self.threads.get(principal, thread_id)
        entries = await self._entries(principal, thread_id)
        results = {entry["content"].get("tool_call_id"): entry["content"] for entry in entries}
        ended = {entry["content"]["id"]: entry["content"] for entry in entries}
        calls = [(entry, call) for entry in entries for call in entry["content"].get("tool_calls") or ()]
        found: list[SubagentTask] = []
        for entry, call in calls:
            result = results.get(call["id"])
            if call["name"] != TASK or (result is not None and "deferred" in result["additional_kwargs"]):
                continue
            known = ((result or {}).get("artifact") or {}).get(TASK) or {}
            background = known.get("status") == "running"
            if background and (message := ended.get(delivery_id(known["namespace"]))) is not None:
                known = message["additional_kwargs"][TASK]
            elif background:
                known |= {"text": ""}
            status = known.get("status") or ("running" if result is None else "failed")
            if (status == "running" and not await self._is_active(entry["run_id"])) or _was_stopped(result):
                status = "cancelled"
            error = str(result["content"]) if result is not None and not known else ""
            shown = {key: known.get(key, value) for key, value in {**_NO_RESULT, "error": error}.items()}
            head = {key: str(call["args"].get(key) or "") for key in ("subagent_type", "description")}
            where = {"task_id": call["id"], "run_id": entry["run_id"], "status": status, "background": background}
            found.append(cast(SubagentTask, where | head | shown))
        return found

    async def task(self, principal: Principal, thread_id: str, task_id: str) -> SubagentTask:
        """One of :meth:`tasks`. Raises NotFoundError."""
        for task in reversed(await self.tasks(principal, thread_id)):
            if task["task_id"] == task_id:
                return task
        raise NotFoundError(f"There is no task {task_id} in thread {thread_id}.")

    async def task_messages(self, principal: Principal, thread_id: str, task_id: str) -> list[dict[str, Any]]:
        """The transcript of a subagent: as it is kept, or as far as a run has come with it. Raises NotFoundError."""
        task = await self.task(principal, thread_id, task_id)
        named = (thread_id, task_id, task["namespace"])
        stored = await self.database.browse(kept, *named)
        if stored is not None and task["status"] != "running":
            return stored
        begun, found = await self._run(principal, task["run_id"] or "", thread_id), TaskTranscripts()
        for run in await self.database.browse(since, begun):
            if not run.closed or stored is None:  # a later one, if a person had to decide first
                async with aclosing(self.log.so_far(thread_id, run.run_id)) as pages:
                    await found.read(pages)
        namespaces = [each for each, of_task in found.task_ids.items() if of_task == task_id and found.messages(each)]
        return found.messages(namespaces[-1]) if namespaces else stored or []

    async def _is_active(self, run_id: str | None) -> bool:
        run = await self.database.browse(find, run_id or "")
        return run is not None and (not run.ended or run.stop_reason == "interrupt")

    async def turns(self, principal: Principal, thread_id: str) -> list[ThreadTurn]:
        """The person's messages from which a conversation can be taken up again: edited, or answered anew.

        Of several with the same ``parent_message_id`` each is another way on from there, and the thread goes back to one by a
        fork from its ``end_checkpoint_id``.
        """
        await self.threads.get(principal, thread_id)
        recorded = await self.database.browse(turns_of, thread_id)
        if any(turn.before == "" for turn in recorded):
            beginning = await self.states.beginning(thread_id)
            recorded = [replace(turn, before=beginning) if turn.before == "" else turn for turn in recorded]
        ways = branches(recorded, {} if are_joined(recorded) else await self.states.parents(thread_id))
        unknown = Branch(None, None)
        return [
            {
                "message_id": turn.message_id,
                "run_id": turn.run_id,
                "checkpoint_id": turn.before,
                "created_at": turn.created_at.isoformat(),
                "parent_message_id": ways.get(turn.message_id, unknown).parent,
                "end_checkpoint_id": ways.get(turn.message_id, unknown).end,
            }
            for turn in recorded
        ]

    async def token_usage(self, principal: Principal, thread_id: str) -> ThreadUsage:
        await self.threads.get(principal, thread_id)
        rows = await self.database.browse(
            lambda connection: sql.select(connection, _Used, runs, "WHERE thread_id = ?", thread_id)
        )
        return _usage(thread_id, rows)

    async def export(self, principal: Principal, thread_id: str, format: Literal["md", "json"]) -> tuple[str, bytes]:
        """The conversation as a file: its name and content. Hidden messages are left out."""
        thread = await self.threads.get(principal, thread_id)
        values = (await self.states.snapshot(thread_id)).values
        messages = values.get("messages", ())
        summaries = summary_marks(values.get("summaries") or (), messages)
        name = re.sub(r"[^\w. -]+", "_", thread.title or "")[:100].strip(". ") or thread_id
        if format == "md":
            return f"{name}.md", as_markdown(thread.title, messages, summaries).encode("utf-8", "replace")
        shown = as_json(thread.title, thread_id, [message_json(message) for message in messages], summaries)
        return f"{name}.json", await asyncio.to_thread(orjson.dumps, shown)

    async def _run(self, principal: Principal, run_id: str, thread_id: str | None) -> Run:
        run = await self.database.browse(find, run_id)
        return owned_run(run, principal, run_id, thread_id)

    async def _entries(self, principal: Principal, thread_id: str) -> list[MessageEntry]:
        messages = (await self.states.snapshot(thread_id)).values.get("messages", ())
        run_of = await self.database.browse(_runs_of_messages, thread_id)
        entries: list[MessageEntry] = []
        run_id: str | None = None
        since: str | None = None
        for seq, message in enumerate(messages, 1):
            if isinstance(message, HumanMessage):
                run_id = run_of.get(message.id or "") or message.additional_kwargs.get("run_id") or run_id
                since = message.additional_kwargs.get("timestamp") or since
            entries.append(
                {
                    "thread_id": thread_id,
                    "run_id": run_id,
                    "event_type": _EVENT_TYPES.get(message.type, message.type),
                    "category": "message",
                    "content": message_json(message),
                    "metadata": _metadata(message),
                    "seq": seq,
                    "created_at": message.additional_kwargs.get("timestamp") or since,
                    "feedback": None,
                }
            )
        _attach(entries, await FeedbackRepository(self.database).of_thread(principal, thread_id))
        return entries


def owned_run(
    run: Run | None, principal: Principal, run_id: str, thread_id: str | None, *, to_change: bool = False
) -> Run:
    """The run that was looked for. Raises NotFoundError, also for a run of another thread."""
    may = may_change if to_change else may_read
    if run is None or not may(principal, run) or thread_id not in (None, run.thread_id):
        raise NotFoundError(f"There is no run {run_id}{f' in thread {thread_id}' if thread_id else ''}.")
    return run


def _was_stopped(result: Mapping[str, Any] | None) -> bool:
    return result is not None and str(result["id"]).startswith("stopped:")


def _runs_of_messages(connection: Connection, thread_id: str) -> dict[str, str]:
    taken = "SELECT message_id, run_id FROM turns WHERE thread_id = ?"
    return dict(sql.execute(connection, taken, thread_id).fetchall())


def _metadata(message: AnyMessage) -> dict[str, Any]:
    if not isinstance(message, AIMessage):
        return {"tool": message.name} if isinstance(message, ToolMessage) and message.name else {}
    return {"caller": "lead_agent"} | ({"usage": dict(message.usage_metadata)} if message.usage_metadata else {})


def _attach(entries: Sequence[MessageEntry], judged: Mapping[str, Feedback]) -> None:
    """A judgement stands with the message it is about: the one it names, else the last answer of its run."""
    by_message = {entry["content"].get("id"): entry for entry in entries}
    last_answer = {entry["run_id"]: entry for entry in entries if entry["event_type"] == _EVENT_TYPES["ai"]}
    for run_id, given in judged.items():
        entry = by_message.get(given.message_id) if given.message_id else None
        if entry := entry or last_answer.get(run_id):
            entry["feedback"] = {
                "feedback_id": given.feedback_id,
                "rating": given.rating,
                "comment": given.comment,
            }


def _page(
    entries: Sequence[MessageEntry], limit: int, before_seq: int | None, after_seq: int | None
) -> tuple[list[MessageEntry], bool]:
    if after_seq is not None:
        found = [entry for entry in entries if entry["seq"] > after_seq]
        return found[:limit], len(found) > limit
    found = [entry for entry in entries if before_seq is None or entry["seq"] < before_seq]
    return found[max(0, len(found) - limit) :], len(found) > limit


@dataclass(frozen=True, slots=True)
class _Used:
    """What a run used."""

    usage: Mapping[str, Mapping[str, Mapping[str, int]]] | None
    input_tokens: int
    output_tokens: int
    cost: float | None


def _usage(thread_id: str, rows: Sequence[_Used]) -> ThreadUsage:
    by_model: dict[str, ModelUsage] = {}
    by_caller: dict[str, int] = dict.fromkeys(CALLERS, 0)
    for row in rows:
        for name, callers in (row.usage or {}).items():
            model = by_model.setdefault(name, {"tokens": 0, "runs": 0})
            model["runs"] += 1
            for caller, counted in callers.items():
                tokens = counted.get("input_tokens", 0) + counted.get("output_tokens", 0)
                model["tokens"] += tokens
                kind = caller.split(":")[0]
                by_caller[kind if kind in by_caller else "middleware"] += tokens
    read, written = sum(row.input_tokens for row in rows), sum(row.output_tokens for row in rows)
    costs = [row.cost for row in rows if row.cost is not None]
    return {
        "thread_id": thread_id,
        "total_tokens": read + written,
        "total_input_tokens": read,
        "total_output_tokens": written,
        "total_runs": len(rows),
        "cost": sum(costs) if costs else None,
        "by_model": by_model,
        "by_caller": by_caller,
    }


# feedback: a thumb up or down for a run, with a comment -------------------------------------------------------------------
