"""A run that answers a client of OpenAI's API, and what it says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import uuid4

from fastapi import Request

from deerflow.errors import Code, InvalidRequestError
from deerflow.events.graph_stream import LLM_RETRY
from deerflow.events.streams.client_events import TurnEvents
from deerflow.events.streams.client_events import text_of as shown_text
from deerflow.identity import Principal
from deerflow.models.failures import ErrorKind
from deerflow.runs.request import CheckRequest, RunRequest
from deerflow.runs.service import FORGOTTEN
from deerflow.storage.runs import MultitaskStrategy, Run, RunStatus
from deerflow.storage.threads import LEAD_AGENT
from deerflow.tools.clarification import NAME as QUESTION
from deerflow_app.gateway.http.streaming import canceller
from deerflow_app.gateway.routes import Runtime
from deerflow_app.gateway.routes.openai.answer import Answer
from deerflow_app.gateway.routes.openai.content import INSTRUCTIONS, Said, json_text, json_wanted, message_of, text_of
from deerflow_app.gateway.routes.openai.models import check_model

BROKE_OFF = "\n\n[The answer broke off here. The model was asked again:]"
RECORD = "openai"
"""Key of a run's context for what the client asked besides."""
_DISCONNECT_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class RunQuestion:
    """Args:
    thread_id: None: a new one.
    effort: of the model's reasoning.
    schema: of JSON that the answer must be.
    record: kept with the run.
    """

    model: str
    said: Sequence[Said]
    thread_id: str | None
    effort: str | None
    schema: dict[str, Any] | None
    record: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(kw_only=True)
class RunAnswer(Answer):
    """The answer of a run."""

    runtime: Runtime
    principal: Principal
    run: Run
    base_url: str
    streams: bool = True
    """The client has read what was said; else an answer that broke off can give way to the next attempt."""
    has_ended: bool = False
    """All of it was read."""
    _last: str = ""
    """The text of the last message."""

    @classmethod
    def of(cls, runtime: Runtime, principal: Principal, request: Request, run: Run) -> RunAnswer:
        """Return the answer of any run of the principal's."""
        record = (run.kwargs["request"].get("context") or {}).get(RECORD) or {}
        return cls(
            id=run.run_id,
            created=int(run.created_at.timestamp()),
            model=record.get("model") or run.agent or LEAD_AGENT,
            thread_id=run.thread_id,
            record=record,
            runtime=runtime,
            principal=principal,
            run=run,
            base_url=str(request.base_url),
        )

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """Of the JSON that the answer must be."""
        checks = self.run.kwargs["request"].get("checks") or ()
        return next((check["answer_schema"] for check in checks if check.get("answer_schema") is not None), None)

    async def pieces(self) -> AsyncGenerator[tuple[str, str], None]:
        """Yield ``content`` and ``reasoning_content`` as they are generated; links to delivered files last. JSON comes whole."""
        async with aclosing(self._said()) as said:
            async for kind, text in said:
                if self.schema is None or kind != "content":
                    yield kind, text
        self.run = await self.runtime.runs.get(self.principal, self.run.run_id)
        async for text in self._ending():
            yield "content", text
        self.has_ended = True

    async def _ending(self) -> AsyncGenerator[str, None]:
        """Yield what follows when the run has ended: the JSON, or links to files and what the run waits for."""
        if self.schema is not None:
            self._become_json()
            if self.text:
                yield self.text
            return
        for path in (self.run.receipts or {}).get("delivered", ()):
            name, url = path.rpartition("/")[2], f"{self.base_url}api/threads/{self.run.thread_id}/artifacts{path}"
            link = f"[{name}]({url}?download=true)"
            between = "\n\n" if self.text and not self.annotations else "\n" if self.text else ""
            place = {"start_index": len(self.text + between), "end_index": len(self.text + between + link)}
            self.annotations.append({"url": f"{url}?download=true", "title": name, **place})
            self.text += between + link
            yield between + link
        if self._needs_decision:
            waits = f"\n\n{self._waits}" if self.text else self._waits
            self.text += waits
            yield waits

    async def _said(self) -> AsyncGenerator[tuple[str, str], None]:
        events, speaking, before = TurnEvents(lambda: None), "", ""
        async with aclosing(self.runtime.runs.events(self.run)) as batches:
            async for batch in batches:
                for event in events.of(batch):
                    data = event.data
                    if event.type == "end":
                        self.usage, self.error = data["usage"], data["error"]
                        if data["stop_reason"] == FORGOTTEN:
                            await self._recall()
                            yield "content", self.text
                    elif event.type == "custom":
                        if _is_of_a_half(data) and self.text != before:
                            self.text = before = self.text + BROKE_OFF if self.streams else before
                            yield "content", BROKE_OFF
                        continue
                    elif event.type != "messages-tuple" or not (data["type"] == "ai" or data.get("name") == QUESTION):
                        continue
                    if reasoning := data.get("reasoning_content"):
                        yield "reasoning_content", reasoning
                    if content := data.get("content"):
                        is_new = data["id"] != speaking
                        before = self.text if is_new else before
                        self._last = content if is_new else self._last + content
                        content = "\n\n" + content if self.text and is_new else content
                        speaking, self.text = data["id"], self.text + content
                        yield "content", content

    async def _recall(self) -> None:
        """Take what was said from the thread: the events of the run are not kept any more."""
        transcript, run = self.runtime.runs.transcript, self.run
        entries, _ = await transcript.run_messages(self.principal, run.run_id, limit=1000)
        texts = [shown_text(entry["content"]["content"]) for entry in entries if entry["content"]["type"] == "ai"]
        texts = [text for text in texts if text]
        self.text, self._last = "\n\n".join(texts), texts[-1] if texts else ""
        sent, received = run.input_tokens, run.output_tokens
        self.usage = {"input_tokens": sent, "output_tokens": received, "total_tokens": sent + received}
        if run.status in (RunStatus.ERROR, RunStatus.TIMEOUT):
            self.error = {"kind": run.stop_reason or "error", "message": run.error or "The run failed."}

    def _become_json(self) -> None:
        """Leave of the text only the JSON that was asked for, or else say why there is none."""
        last, self.text = self._last, ""
        if self.error is not None:
            return
        if self.run.status is not RunStatus.SUCCESS:
            why = self._waits if self._needs_decision else "The run was stopped before its answer."
            self.error = {"kind": "no_answer", "message": why}
            return
        failed = [check for check in (self.run.receipts or {}).get("checks") or () if not check["passed"]]
        try:
            self.text = json_text(last) if not failed else ""
        except ValueError as error:
            failed = [{"output": str(error)}]
        if failed:
            why = f"The agent's answer is not JSON of the schema, also when asked again. {failed[0]['output']}"
            self.error = {"kind": "invalid_json", "message": why}

    @property
    def _needs_decision(self) -> bool:
        return self.run.status is RunStatus.INTERRUPTED and self.run.stop_reason == "interrupt"

    @property
    def _waits(self) -> str:
        return f"A call needs your decision before I go on: {self.base_url}chats/{self.run.thread_id}"

    async def read(self) -> None:
        """Read it to its end, as it is left when nothing of it was sent before."""
        self.streams = False
        async with aclosing(self.pieces()) as pieces:
            async for _ in pieces:
                pass

    async def whole(self, request: Request) -> None:
        """Read it to its end; a client that leaves stops it. Raises InvalidRequestError: the run failed."""
        reading = asyncio.create_task(self.read())
        try:
            while not (await asyncio.wait({reading}, timeout=_DISCONNECT_SECONDS))[0]:
                if await request.is_disconnected():
                    await self.cancel()
            reading.result()
        finally:
            reading.cancel()
        if self.error is not None:  # not a status of 500, after which clients would begin the task again
            raise InvalidRequestError(str(self.error["message"]), code=cast("Code", self.error["kind"]))

    async def cancel(self) -> None:
        await canceller(self.runtime, self.principal, self.run)()


def _is_of_a_half(data: Any) -> bool:
    """Return whether an event says that an answer broke off in the middle, and that the model is asked again."""
    notice = data if isinstance(data, Mapping) else {}
    return notice.get("type") == LLM_RETRY and notice.get("reason") == ErrorKind.BROKEN_OFF


async def start(runtime: Runtime, principal: Principal, request: Request, question: RunQuestion) -> RunAnswer:
    """Start the run that answers. Raises NotFoundError, InvalidRequestError; ConflictError: the thread is at work."""
    await check_model(runtime, principal, question.model)
    thread_id = question.thread_id or str(uuid4())
    messages: list[dict[str, Any]] = []
    instructions = ""
    for role, content in question.said:
        if role == "system":
            instructions = f"{instructions}\n\n{text_of(content)}".strip()
        else:
            messages.append(await message_of(runtime, principal, thread_id, role, content))
    wanted = [instructions] if instructions else []
    wanted += [json_wanted(question.schema)] if question.schema is not None else []
    if wanted:
        words = {"role": "user", "content": INSTRUCTIONS + "\n\n".join(wanted)}
        messages.insert(len(messages) - 1, words)
    record = {"model": question.model, "instructions": instructions or None, **question.record}
    effort = {"reasoning_effort": question.effort} if question.effort else {}
    run = await runtime.runs.start(
        principal,
        RunRequest(
            assistant_id=question.model,
            input={"messages": messages},
            context={"unattended": True, "can_wait": True, RECORD: record, **effort},
            multitask_strategy=MultitaskStrategy.REJECT,
            if_not_exists="create",
            checks=[] if question.schema is None else [CheckRequest(answer_schema=question.schema)],
        ),
        thread_id=thread_id,
    )
    return RunAnswer.of(runtime, principal, request, run)
