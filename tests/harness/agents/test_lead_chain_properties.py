"""What the whole chain of the lead agent makes of any history: something that every provider takes, and caches."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call
from tests.support.unpaired_calls import unpaired_calls

from deerflow.agents.agent_parts import AgentParts
from deerflow.agents.middlewares.base import FusedMiddleware, fuse
from deerflow.agents.middlewares.view_image_middleware import MAX_IMAGES, images_of_old_turns
from deerflow.agents.thread_state import merge_messages
from deerflow.agents.transcript import Transcript
from deerflow.config import AppConfig, ModelConfig, Paths
from deerflow.config.agents import NO_PERSONA
from deerflow.context.run_options import RunOptions
from deerflow.features.offers import harness_of

ENTRY = ModelConfig(name="m", use="langchain_openai:ChatOpenAI", model="m", supports_vision=True, api_key="k")
FACTS = {"facts": {"date": "2026-01-02, Friday", "files": [{"filename": "a<b>.csv", "size": 3}]}}
ERROR = {"error": {"kind": "auth", "message": "no"}}
IMAGE = {"image": {"path": "/mnt/user-data/workspace/a.png", "mime_type": "image/png", "stored": "/x.png"}}


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Any:
    paths = Paths(tmp_path_factory.mktemp("data"))
    harness = harness_of(AppConfig(models=(ENTRY,)), paths, None)
    (fused,) = fuse(AgentParts(harness, RunOptions(is_plan_mode=True), (), NO_PERSONA, None, ()).chain)
    yield fused
    asyncio.run(harness.sandbox_provider.shutdown())


def _compiled(chain: FusedMiddleware, messages: Sequence[AnyMessage]) -> Transcript:
    transcript = Transcript(tuple(messages))
    for compile_step in chain._compilers:
        transcript = compile_step(transcript, None)
    return transcript


def _plain(messages: Sequence[AnyMessage]) -> list[dict[str, Any]]:
    return [message.model_dump() for message in messages]


ids = st.sampled_from(["a", "b", "c", "call_0"])
calls = st.lists(
    st.builds(lambda id_: tool_call(name="bash", args={"command": id_}, id=id_), ids | st.none()), max_size=3
)
broken = st.lists(st.builds(lambda id_: invalid_tool_call(name="bash", args="{", id=id_, error=None), ids), max_size=1)
humans = st.builds(
    lambda text, kwargs: HumanMessage(text, additional_kwargs=kwargs), st.text(max_size=4), st.sampled_from([{}, FACTS])
)
answers = st.builds(
    lambda text, some, bad, kwargs: AIMessage(
        text, tool_calls=some, invalid_tool_calls=bad, additional_kwargs=kwargs if not some and not bad else {}
    ),
    st.text(max_size=4),
    calls,
    broken,
    st.sampled_from([{}, ERROR]),
)
results = st.builds(
    lambda id_, kwargs: ToolMessage("ok", tool_call_id=id_, additional_kwargs=kwargs), ids, st.sampled_from([{}, IMAGE])
)
histories = st.lists(st.one_of(humans, answers, results), max_size=14)


@st.composite
def _steps(draw: st.DrawFn) -> list[AnyMessage]:
    """Whole steps, as runs leave them: every call answered, in any order."""
    if not draw(st.booleans()):
        return [draw(humans), *([AIMessage("", additional_kwargs=ERROR)] if draw(st.booleans()) else [])]
    names = draw(st.lists(ids, max_size=3, unique=True))
    made = [tool_call(name="bash", args={"command": str(draw(st.integers()))}, id=name) for name in names]
    order = draw(st.permutations(names))
    return [
        AIMessage(draw(st.text(min_size=1, max_size=3)), tool_calls=made),
        *(ToolMessage("ok", tool_call_id=name, additional_kwargs=draw(st.sampled_from([{}, IMAGE]))) for name in order),
    ]


finished = st.lists(_steps(), max_size=5).map(lambda steps: [message for step in steps for message in step])
relaxed = settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])


@relaxed
@given(history=histories)
def test_any_history_compiles_to_calls_with_exactly_one_result(chain: FusedMiddleware, history: list[AnyMessage]):
    request = _compiled(chain, merge_messages([], [history])).request()
    assert unpaired_calls(request) == []
    assert not any(isinstance(message, AIMessage) and "error" in message.additional_kwargs for message in request)


@relaxed
@given(history=histories)
def test_compiling_changes_nothing_that_was_said(chain: FusedMiddleware, history: list[AnyMessage]):
    before = _plain(history)
    first, second = _compiled(chain, history), _compiled(chain, history)
    assert _plain(first.request()) == _plain(second.request())
    assert _plain(history) == before


@relaxed
@given(history=finished, more=st.one_of(finished, histories))
def test_what_comes_later_leaves_the_beginning_of_a_request_as_it_was(
    chain: FusedMiddleware, history: list[AnyMessage], more: list[AnyMessage]
):
    if sum("image" in message.additional_kwargs for message in [*history, *more]) > MAX_IMAGES:
        return
    if images_of_old_turns([*history, *more]) != images_of_old_turns(history):
        return
    earlier = _plain(_compiled(chain, history).messages)
    later = _plain(_compiled(chain, [*history, *more]).messages)
    assert later[: len(earlier)] == earlier
