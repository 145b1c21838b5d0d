"""The end of a run: its acceptance checks, its thread in order if it ended before its time, and the background tasks that follow."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence, Set
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.graph import END

from deerflow.agents.middlewares.base import CAUSE, ToolFailure, cause_of
from deerflow.agents.receipts import Check
from deerflow.agents.transcript import CHECKS, is_person
from deerflow.capability import Capabilities, EndedRun
from deerflow.features.titles import enqueue_title
from deerflow.features.webhooks import enqueue_webhook
from deerflow.identity import Principal
from deerflow.runs.json_answer import problem_of
from deerflow.runs.timeline import run_json
from deerflow.sandbox.interface import Sandbox, SandboxError
from deerflow.storage import search as message_search
from deerflow.storage.runs import Ending, Run, first_words, is_first_good_turn
from deerflow.storage.tables import utc_now
from deerflow.storage.threads import TEMPORARY, set_title, shortened
from deerflow.storage.threads import find as find_thread
from deerflow.tasks.jobs import enqueue
from deerflow.threads.checkpoint import is_unfinished, provisional_title
from deerflow.tools.shell import cut_short

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from sqlalchemy import Connection

    from deerflow.agents.factory import Agent
    from deerflow.runs.request import CheckRequest

MODEL_NODE = "model"
UNFINISHED = "Not finished: the run ended before this call had a result."
DECLINED = "Not made: the user went on without allowing this call."
PATIENCE = 10.0
"""Seconds that a process which has to end gives to what must not be cut off."""
DELETE_THREAD = "delete_thread"
"""The task that removes a thread which was made for one run only."""
KEPT_FOR_READERS = timedelta(minutes=5)
TITLE_AFTER = timedelta(seconds=2)
"""How long the thread's first good turn is over before the model is asked for a title; until then the provisional one stands."""

CHECKS_FAILED = "checks_failed"
"""``stop_reason`` of runs whose last round of checks failed."""
OUTPUT_CHARS = 2000

T = TypeVar("T")


async def settle(
    agent: Agent, config: RunnableConfig, *, why: str, joining: Sequence[BaseMessage] = ()
) -> list[BaseMessage]:
    """Nothing is left to do in the thread, and nothing that was done or said is lost.

    Results of tools that finished are kept, though others of the same step did not; those get ``why`` as their result, or that they
    were not made if they waited for the person's decision.

    Args:
        config: names the thread.
        why: one sentence for the model.
        joining: what else joins the transcript: a partial answer, messages of the person that were not taken up.

    Returns:
        Those of ``joining`` that were not part of the transcript already.
    """
    snapshot = await agent.aget_state(config)
    undecided = {asked.value.get("tool_call_id") for asked in snapshot.interrupts if isinstance(asked.value, dict)}
    if is_unfinished(snapshot):  # or an attempt before this one died behind this step, and calls have no result yet
        await agent.aupdate_state(config, None, as_node=END)
        snapshot = await agent.aget_state(config)
    messages: list[AnyMessage] = list(snapshot.values.get("messages") or ())
    known = {message.id for message in messages}
    joining = [message for message in joining if message.id not in known]
    added: list[Any] = [*_answers(messages, why, undecided), *joining]
    if not added:
        return []
    await agent.aupdate_state(config, {"messages": added}, as_node=MODEL_NODE)
    if is_unfinished(await agent.aget_state(config)):
        await agent.aupdate_state(config, None, as_node=END)
    return list(joining)


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Do ``work`` to its end, and go on after it, even if this task is cancelled meanwhile because the process is to end.

    Raises:
        CancelledError: it was cancelled, and ``work`` needed more than ``PATIENCE`` seconds after that.
    """
    current, task = asyncio.current_task(), asyncio.create_task(work)
    assert current is not None
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        try:
            _, late = await asyncio.wait([task], timeout=PATIENCE)
        finally:
            task.cancel()
        if late:
            await asyncio.wait([task])
            raise
        current.uncancel()
        return task.result()


def _answers(messages: Sequence[AnyMessage], why: str, undecided: Set[str | None]) -> list[ToolMessage]:
    """Results for the calls at the end of the transcript that have none."""
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    last = next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)
    calls = last.tool_calls if last is not None else []
    return [
        ToolMessage(
            content=DECLINED if call["id"] in undecided else why + cut_short(call["name"], call["id"]),
            tool_call_id=call["id"] or "",
            name=call["name"],
            status="error",
            id=f"stopped:{call['id']}",
            additional_kwargs={CAUSE: cause_of(ToolFailure.REJECTED)} if call["id"] in undecided else {},
        )
        for call in calls
        if call["id"] not in answered
    ]


# acceptance checks: what must hold before the work of a run counts as done ----------------------------------------------


async def run_checks(sandbox: Sandbox | None, checks: Sequence[CheckRequest], answer: str) -> list[Check]:
    """Make the checks one after the other, apart from the agent's own shell. ``sandbox``: for those that are not of the answer."""
    return [
        await _checked_answer(answer, check.answer_schema)
        if sandbox is None or check.answer_schema is not None
        else await _checked(sandbox, check)
        for check in checks
    ]


async def _checked_answer(answer: str, schema: Mapping[str, Any] | None) -> Check:
    problem = await asyncio.to_thread(problem_of, answer, schema or {})
    return {"check": "the answer is JSON of the schema that was asked for", "passed": not problem, "output": problem}


async def _checked(sandbox: Sandbox, check: CheckRequest) -> Check:
    name = check.command or f"{check.file_exists} exists"
    try:
        if check.file_exists:
            entry = await sandbox.stat(check.file_exists)
            return {"check": name, "passed": entry is not None and entry.kind == "file", "output": ""}
        result = await sandbox.exec(check.command or "", timeout=check.timeout, env={"DEERFLOW_CHECK": "1"})
    except SandboxError as error:
        return {"check": name, "passed": False, "output": str(error)}
    ended = f"stopped after {check.timeout:g} seconds" if result.timed_out else f"exit code {result.exit_code}"
    output = f"{result.output[-OUTPUT_CHARS:].rstrip()}\n[{ended}]".lstrip()
    return {"check": name, "passed": result.exit_code == 0, "output": output}


def rounds(messages: Sequence[BaseMessage]) -> int:
    """How often checks of the run that added ``messages`` have failed and gone back to the model."""
    return sum(message.name == CHECKS for message in messages)


def correction(checks: Sequence[Check]) -> HumanMessage:
    """What the model is asked when checks failed."""
    failed = [f"- {check['check']}\n{check['output']}".rstrip() for check in checks if not check["passed"]]
    text = (
        f"The work is not accepted yet: {len(failed)} of {len(checks)} acceptance checks failed. Correct the work. The checks are "
        "made again when you are done; do not change what they test just to pass.\n\n" + "\n".join(failed)
    )
    return HumanMessage(text, id=str(uuid4()), name=CHECKS, additional_kwargs={"hide_from_ui": True})


# background tasks -------------------------------------------------------------------------------------------------------


def follow_up(
    connection: Connection,
    run: Run,
    ending: Ending,
    joined: Sequence[BaseMessage],
    capabilities: Capabilities,
    ended: EndedRun | None,
) -> datetime | None:
    """Make the run's messages findable, name its thread, and enqueue the tasks that follow, in the transaction that ends it.

    Args:
        joined: the messages that the run added to its thread.
        ended: the run for capabilities; None: it could not be begun at all.

    Returns:
        When the first of the tasks is due; None: there is none.
    """
    if not run.kwargs.get(TEMPORARY):
        message_search.index(connection, run.thread_id, run.user_id, joined)
    people = [message for message in joined if is_person(message)]
    title = provisional_title(people[0]) if people else ""
    named = bool(title) and set_title(connection, run.thread_id, title, only_if_missing=True)
    dues = [enqueue_follow_up(connection, run)]
    if ended is not None:
        dues += capabilities.run_ended(connection, ended)
    if ending.ends_turn and is_first_good_turn(connection, run):
        begun = people[0].text if people else ""
        if not named or run.turn != run.run_id:
            begun = first_words(connection, run.thread_id, run.turn) or begun
        first = begun if named else _first_words_if_title(connection, run)
        if begun and first:
            dues.append(_ask_for_title(connection, run, begun, first, ending.last_ai_message or ""))
    return min(filter(None, dues), default=None)


def _first_words_if_title(connection: Connection, run: Run) -> str | None:
    """How the thread's first message begins, if the thread is still called so. None: the person has named it."""
    first, thread = first_words(connection, run.thread_id), find_thread(connection, run.thread_id)
    provisional = shortened(provisional_title(HumanMessage(first))) if first else None
    return first if thread is not None and thread.title in (None, provisional) else None


def _ask_for_title(connection: Connection, run: Run, begun: str, first: str, answer: str) -> datetime:
    """The first turn that comes to a good end names the thread.

    Args:
        begun: how the turn begins.
        first: how the thread does.
    """
    due = utc_now() + TITLE_AFTER
    principal = Principal(run.user_id, source="internal")
    texts = {"user_text": begun, "assistant_text": answer, "first_text": first}
    enqueue_title(connection, principal, run.thread_id, **texts, due_at=due)
    return due


def enqueue_follow_up(connection: Connection, run: Run, *, undone: bool = False) -> datetime | None:
    """Enqueue what follows from the end of any run, also of one that never began. Return when it is due, if at all.

    Args:
        undone: its row goes.
    """
    principal, now = Principal(run.user_id, source="internal"), utc_now()
    webhook = run.kwargs["request"].get("webhook")
    if webhook:
        shown = {**run_json(run), "values": {}} if undone else None
        enqueue_webhook(connection, principal, run.run_id, webhook, undone=shown)
    if run.kwargs.get("delete_thread"):
        payload = {"user_id": run.user_id}
        enqueue(connection, DELETE_THREAD, run.thread_id, payload, due_at=now + KEPT_FOR_READERS)
        return now if webhook else now + KEPT_FOR_READERS
    return now if webhook else None
