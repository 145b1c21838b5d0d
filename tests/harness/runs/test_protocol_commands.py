"""What a client may ask of a thread, and what it is told when that cannot be."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from deerflow.errors import ConflictError, InvalidRequestError, NotFoundError, RequestError, UnavailableError
from deerflow.events.store import RunEvent
from deerflow.identity import Principal
from deerflow.runs.protocol_commands import ProtocolCommand, ProtocolCommands, error_answer
from deerflow.runs.request import RunRequest
from deerflow.storage.runs import RunStatus

ME = Principal("me", "user", "session")
ASKED = "0123456789abcdef0123456789abcdef"


@dataclass
class Runs:
    """Records what is started."""

    started: list[tuple[str, RunRequest]] = field(default_factory=list)
    known: list[Any] = field(default_factory=list)
    said: list[RunEvent] = field(default_factory=list)
    steered: list[Any] = field(default_factory=list)
    refusal: RequestError | None = None

    async def start(self, principal: Principal, request: RunRequest, *, thread_id: str) -> Any:
        if self.refusal:
            raise self.refusal
        self.started.append((thread_id, request))
        return SimpleNamespace(run_id=f"run-{len(self.started)}", thread_id=thread_id)

    async def list(self, principal: Principal, thread_id: str, *, limit: int = 10) -> list[Any]:
        return self.known[:limit]

    async def get(self, principal: Principal, run_id: str, *, thread_id: str) -> Any:
        for run in self.known:
            if run.run_id == run_id:
                return run
        raise NotFoundError(f"There is no run {run_id}.")

    async def steer(self, principal: Principal, thread_id: str, message: Any) -> Any:
        self.steered.append(message)
        return SimpleNamespace(run_id="run-0")

    async def events(self, run: Any) -> AsyncGenerator[list[RunEvent], None]:
        yield self.said
        yield []
        raise AssertionError("read on after the log was silent")


class States:
    async def get(self, principal: Principal, thread_id: str) -> dict[str, Any]:
        return {
            "values": {"messages": [1], "title": "T"},
            "checkpoint": {"checkpoint_id": "k9"},
            "tasks": [{"interrupts": [{"id": ASKED, "value": "Sure?"}]}, {"interrupts": []}],
        }

    async def history(
        self, principal: Principal, thread_id: str, *, limit: int, before: str | None
    ) -> list[dict[str, Any]]:
        state = {
            "checkpoint": {"checkpoint_id": "k1"},
            "created_at": "2026-01-01T00:00:00+00:00",
            "metadata": {"step": 3},
        }
        return [state] * limit


class Streams:
    async def position(self, principal: Principal, thread_id: str) -> int:
        if thread_id == "new":
            raise NotFoundError("There is no thread new.")
        return 640


@pytest.fixture
def runs() -> Runs:
    made = Runs()
    made.known = [SimpleNamespace(run_id="run-0", assistant_id="coder", status=RunStatus.INTERRUPTED)]
    return made


async def ask(runs: Runs, method: str, params: dict[str, Any], thread_id: str = "t") -> dict[str, Any]:
    commands = ProtocolCommands(cast(Any, runs), cast(Any, States()), cast(Any, Streams()))
    return await commands.execute(ME, thread_id, ProtocolCommand(id=7, method=method, params=params))


async def test_a_run_starts_on_a_thread_that_need_not_exist(runs: Runs) -> None:
    answer = await ask(runs, "run.start", {"assistant_id": "lead_agent", "input": {"messages": []}}, "new")

    assert answer == {"type": "success", "id": 7, "result": {"run_id": "run-1"}, "meta": {"applied_through_seq": 0}}
    thread_id, request = runs.started[0]
    assert (thread_id, request.if_not_exists, request.input) == ("new", "create", {"messages": []})


async def test_a_client_learns_which_events_lie_before_its_run(runs: Runs) -> None:
    answer = await ask(runs, "run.start", {"assistant_id": "lead_agent", "input": None})
    assert answer["meta"] == {"applied_through_seq": 640}


async def test_a_client_forks_from_the_checkpoint_in_its_configuration(runs: Runs) -> None:
    config = {"configurable": {"checkpoint_id": "k3", "thread_id": "t", "model_name": "m"}, "recursion_limit": 9}
    await ask(runs, "run.start", {"assistant_id": "lead_agent", "input": "hi", "config": config})

    request = runs.started[0][1]
    assert request.fork_from == "k3"
    assert request.config == {"configurable": {"thread_id": "t", "model_name": "m"}, "recursion_limit": 9}


async def test_the_older_spelling_of_the_strategy_is_understood(runs: Runs) -> None:
    params = {"assistant_id": "a", "input": "hi", "multitaskStrategy": "reject", "multitask_strategy": "reject"}
    await ask(runs, "run.start", params)
    await ask(runs, "run.start", {"assistant_id": "a", "input": "hi", "multitaskStrategy": "interrupt"})

    assert [request.multitask_strategy for _, request in runs.started] == ["reject", "interrupt"]


@pytest.mark.parametrize(
    "params",
    [
        {"interrupt_id": ASKED, "response": {"approved": True}, "namespace": []},
        {"responses": [{"interrupt_id": ASKED, "response": {"approved": True}, "namespace": ["tools:1"]}]},
    ],
)
async def test_an_answer_goes_on_with_the_assistant_that_asked(runs: Runs, params: dict[str, Any]) -> None:
    await ask(runs, "input.respond", {**params, "update": {"title": "N"}, "goto": "model", "strict_resume": True})

    request = runs.started[0][1]
    assert request.command is not None
    assert request.command.resume == {ASKED: {"approved": True}}
    assert (request.command.update, request.command.goto) == ({"title": "N"}, "model")
    assert request.assistant_id == "coder"


async def test_an_answer_cannot_ask_to_be_ignored_if_nobody_waits_for_it(runs: Runs) -> None:
    with pytest.raises(InvalidRequestError, match=r"params\.strict_resume: .*always refused"):
        await ask(runs, "input.respond", {"interrupt_id": ASKED, "response": "yes", "strict_resume": False})
    assert not runs.started


async def test_an_answer_that_nobody_waits_for_starts_nothing(runs: Runs) -> None:
    with pytest.raises(NotFoundError) as caught:
        await ask(runs, "input.respond", {"interrupt_id": "f" * 32, "response": "yes"})

    assert error_answer(7, caught.value)["error"] == "no_such_interrupt"
    assert runs.started == []


async def test_a_message_is_handed_to_the_run_on_its_way(runs: Runs) -> None:
    answer = await ask(runs, "input.inject", {"namespace": [], "message": {"role": "user", "content": "Stop at 3."}})

    assert answer["result"] == {"run_id": "run-0"}
    assert runs.steered == [{"role": "user", "content": "Stop at 3."}]


async def test_state_is_given_whole_or_by_key(runs: Runs) -> None:
    whole = await ask(runs, "state.get", {"namespace": []})
    assert whole["result"] == {"values": {"messages": [1], "title": "T"}, "checkpoint": {"id": "k9"}}

    part = await ask(runs, "state.get", {"namespace": [], "keys": ["title", "unknown"]})
    assert part["result"]["values"] == {"title": "T"}


async def test_checkpoints_are_listed(runs: Runs) -> None:
    answer = await ask(runs, "state.listCheckpoints", {"limit": 2})

    listed = {"id": "k1", "timestamp": "2026-01-01T00:00:00+00:00", "step": 3, "metadata": {"step": 3}}
    assert answer["result"] == {"checkpoints": [listed, listed]}


async def test_a_fork_is_a_run_from_a_checkpoint(runs: Runs) -> None:
    answer = await ask(runs, "state.fork", {"checkpoint_id": "k1", "input": {"messages": ["again"]}})

    assert answer["result"] == {"run_id": "run-1", "thread_id": "t"}
    request = runs.started[0][1]
    assert (request.fork_from, request.assistant_id) == ("k1", "coder")


async def test_the_tree_shows_the_agents_of_a_run_and_how_they_are(runs: Runs) -> None:
    def event(seq: int, method: str, data: Any, namespace: tuple[str, ...] = ()) -> RunEvent:
        return RunEvent(100_000_000 + seq, "run-0", method, data, namespace)

    call = {"type": "ai", "id": "m", "tool_calls": [{"id": "c1", "name": "task", "args": {}}]}
    result = {"type": "tool", "id": "r", "tool_call_id": "c1", "content": "ok"}
    runs.said = [
        event(0, "metadata", {"attempt": 1}),
        event(1, "updates", {"model": {"messages": [call]}}),
        event(2, "custom", {}, ("tools:c1", "inner:2")),
        event(3, "custom", {}, ("tools:c9",)),
        event(4, "messages", [result, {}]),
    ]

    tree = (await ask(runs, "agent.getTree", {}))["result"]["tree"]

    assert (tree["namespace"], tree["status"], tree["graph_name"]) == ([], "interrupted", "coder")
    (done, going) = tree["children"]
    assert (done["namespace"], done["status"], done["children"][0]["status"]) == (
        ["tools:c1"],
        "completed",
        "completed",
    )
    assert (going["namespace"], going["status"]) == (["tools:c9"], "started")


@pytest.mark.parametrize(
    ("method", "params", "code", "says"),
    [
        ("run.start", {"assistant_id": "a", "temperature": 1}, "invalid_argument", "temperature"),
        ("run.start", {"assistant_id": "a", "webhooks": {}}, "invalid_argument", "webhooks"),
        ("input.respond", {"response": "yes"}, "invalid_argument", "interrupt_id"),
        ("input.respond", {"responses": []}, "invalid_argument", "responses"),
        ("input.inject", {"message": {"role": "ai", "content": "x"}}, "invalid_argument", "role"),
        (
            "input.inject",
            {"namespace": ["a"], "message": {"role": "user", "content": "x"}},
            "no_such_namespace",
            "root",
        ),
        ("state.get", {"namespace": ["a:1"]}, "no_such_namespace", "root"),
        ("state.listCheckpoints", {"limit": 0}, "invalid_argument", "limit"),
        ("state.fork", {}, "invalid_argument", "checkpoint_id"),
        ("agent.getTree", {"run_id": "nope"}, "no_such_run", "nope"),
        ("subscription.subscribe", {"channels": ["values"]}, "not_supported", "WebSocket"),
        ("run.stop", {}, "unknown_command", "run.stop"),
    ],
)
async def test_what_cannot_be_is_refused_by_name(
    runs: Runs, method: str, params: dict[str, Any], code: str, says: str
) -> None:
    with pytest.raises(RequestError) as caught:
        await ask(runs, method, params)

    answer = error_answer(7, caught.value)
    assert (answer["type"], answer["id"], answer["error"]) == ("error", 7, code)
    assert says in answer["message"]
    assert runs.started == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotFoundError("x"), "no_such_run"),
        (ConflictError("x", code="run_active"), "invalid_argument"),
        (InvalidRequestError("x"), "invalid_argument"),
        (UnavailableError("x"), "unknown_error"),
        (NotFoundError("x", code="no_such_checkpoint"), "no_such_checkpoint"),
    ],
)
def test_errors_have_the_codes_of_the_protocol(error: RequestError, code: str) -> None:
    assert error_answer(None, error) == {"type": "error", "id": None, "error": code, "message": "x"}
