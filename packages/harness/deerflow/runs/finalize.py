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
from deerflow.agents.receipts import CheckReceipt
from deerflow.agents.transcript import CHECKS
from deerflow.capability import Capabilities, EndedRun
from deerflow.runs.json_answer import problem_of
from deerflow.sandbox.interface import Sandbox, SandboxError
from deerflow.storage import search as message_search
from deerflow.storage.runs import Run
from deerflow.storage.tables import utc_now
from deerflow.storage.threads import TEMPORARY
from deerflow.tasks.jobs import enqueue
from deerflow.threads.checkpoint import is_unfinished
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


async def past_cancellation(work: Coroutine[Any, Any, T]) -> T:
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


async def run_checks(sandbox: Sandbox | None, checks: Sequence[CheckRequest], answer: str) -> list[CheckReceipt]:
    """Make the checks one after the other, apart from the agent's own shell. ``sandbox``: for those that are not of the answer."""
    return [
        await _checked_answer(answer, check.answer_schema)
        if sandbox is None or check.answer_schema is not None
        else await _checked(sandbox, check)
        for check in checks
    ]


async def _checked_answer(answer: str, schema: Mapping[str, Any] | None) -> CheckReceipt:
    problem = await asyncio.to_thread(problem_of, answer, schema or {})
    return {"check": "the answer is JSON of the schema that was asked for", "passed": not problem, "output": problem}


async def _checked(sandbox: Sandbox, check: CheckRequest) -> CheckReceipt:
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


def correction(checks: Sequence[CheckReceipt]) -> HumanMessage:
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
    joined: Sequence[BaseMessage],
    capabilities: Capabilities,
    ended: EndedRun | None,
) -> datetime | None:
    """Make the run's messages findable and enqueue the tasks that follow, in the transaction that ends it.

    Args:
        joined: the messages that the run added to its thread.
        ended: the run for capabilities; None: it could not be begun at all.

    Returns:
        When the first of the tasks is due; None: there is none.
    """
    if not run.kwargs.get(TEMPORARY):
        message_search.index(connection, run.thread_id, run.user_id, joined)
    dues = [follow_up_closed(connection, run, capabilities)]
    if ended is not None:
        dues += capabilities.run_ended(connection, ended)
    return min(filter(None, dues), default=None)


def follow_up_closed(
    connection: Connection, run: Run, capabilities: Capabilities, *, is_undone: bool = False
) -> datetime | None:
    """Enqueue what follows from the end of any run, also of one that was never executed. Return when it is due, if at all.

    Args:
        is_undone: its row goes.
    """
    dues = capabilities.run_closed(connection, run, is_undone=is_undone)
    if run.kwargs.get("delete_thread"):
        due = utc_now() + KEPT_FOR_READERS
        enqueue(connection, DELETE_THREAD, run.thread_id, {"user_id": run.user_id}, due_at=due)
        dues.append(due)
    return min(filter(None, dues), default=None)
