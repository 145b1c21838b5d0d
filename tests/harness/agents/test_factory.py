"""``create_deerflow_agent``: what people who build their own agents rely on."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from deerflow.agents import Next, Prev, RuntimeFeatures, create_deerflow_agent
from deerflow.agents.factory import _feature_chain, insert_extras
from deerflow.agents.middlewares.clarification_middleware import ClarificationMiddleware
from deerflow.agents.middlewares.dangling_tool_call_middleware import DanglingToolCallMiddleware
from deerflow.agents.middlewares.loop_detection_middleware import LoopDetectionMiddleware
from deerflow.agents.middlewares.thread_data_middleware import SandboxMiddleware, ThreadDataMiddleware
from deerflow.agents.middlewares.todo_middleware import TodoMiddleware
from deerflow.agents.middlewares.tool_error_handling_middleware import ToolErrorHandlingMiddleware
from deerflow.agents.middlewares.uploads_middleware import UploadsMiddleware
from deerflow.agents.middlewares.view_image_middleware import ViewImageMiddleware


class Model(GenericFakeChatModel):
    bound: Any = None

    def bind_tools(self, tools: Any, **kwargs: Any) -> Model:
        self.bound = [tool.name for tool in tools]
        return self


def _model(*texts: str) -> Model:
    return Model(messages=iter([AIMessage(text) for text in texts or ("hi",)]))


class A(AgentMiddleware): ...


class B(AgentMiddleware): ...


def _anchored(decorator: Any, name: str = "Extra") -> AgentMiddleware:
    return decorator(type(name, (AgentMiddleware,), {}))()


NO_SANDBOX = RuntimeFeatures(sandbox=False)


def _names(chain: Any) -> list[str]:
    return [type(m).__name__ for m in chain]


async def test_an_agent_needs_a_model_only():
    agent = create_deerflow_agent(_model("hello"), features=NO_SANDBOX)
    result = await agent.ainvoke({"messages": [{"role": "user", "content": "hi"}]})
    assert result["messages"][-1].text == "hello" and result["messages"][-1].name == "default"


def test_an_agent_works_synchronously_too():
    agent = create_deerflow_agent(_model("hello"), features=NO_SANDBOX)
    assert agent.invoke({"messages": [{"role": "user", "content": "hi"}]})["messages"][-1].text == "hello"


async def test_a_checkpointer_makes_threads_persistent():
    agent = create_deerflow_agent(_model("one", "two"), features=NO_SANDBOX, checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    await agent.ainvoke({"messages": [{"role": "user", "content": "1"}]}, config)
    result = await agent.ainvoke({"messages": [{"role": "user", "content": "2"}]}, config)
    assert [m.text for m in result["messages"]] == ["1", "one", "2", "two"]


def test_the_graph_has_no_nodes_but_model_and_tools():
    agent = create_deerflow_agent(_model(), plan_mode=True, features=RuntimeFeatures(vision=True))
    assert set(agent.nodes) == {"__start__", "model", "tools"}


def test_the_whole_chain_stands_in_its_order():
    class Guardrail(AgentMiddleware): ...

    class Summary(AgentMiddleware): ...

    class Title(AgentMiddleware): ...

    class Memory(AgentMiddleware): ...

    class Limit(AgentMiddleware): ...

    features = RuntimeFeatures(
        memory=Memory(),
        summarization=Summary(),
        subagent=Limit(),
        vision=True,
        auto_title=Title(),
        guardrail=Guardrail(),
    )
    assert _names(_feature_chain(features, plan_mode=True)) == [
        "ToolOrderMiddleware",
        "ThreadDataMiddleware",
        "UploadsMiddleware",
        "SandboxMiddleware",
        "DanglingToolCallMiddleware",
        "Guardrail",
        "ProvenanceMiddleware",
        "ToolErrorHandlingMiddleware",
        "Summary",
        "TodoMiddleware",
        "Title",
        "Memory",
        "ViewImageMiddleware",
        "Limit",
        "LoopDetectionMiddleware",
        "ClarificationMiddleware",
    ]


def test_without_features_only_the_essentials_stand():
    assert _names(_feature_chain(NO_SANDBOX, plan_mode=False)) == [
        "DanglingToolCallMiddleware",
        "ProvenanceMiddleware",
        "ToolErrorHandlingMiddleware",
        "LoopDetectionMiddleware",
        "ClarificationMiddleware",
    ]


def test_a_sandbox_of_your_own_replaces_all_three():
    chain = _feature_chain(RuntimeFeatures(sandbox=A()), plan_mode=False)
    assert _names(chain)[0] == "A"
    assert not any(isinstance(m, (ThreadDataMiddleware, UploadsMiddleware, SandboxMiddleware)) for m in chain)


def test_a_replacement_stands_where_the_built_in_one_would():
    chain = _names(_feature_chain(RuntimeFeatures(vision=A()), plan_mode=False))
    assert chain.index("A") == chain.index("LoopDetectionMiddleware") - 1 and "ViewImageMiddleware" not in chain


@pytest.mark.parametrize("feature", ["summarization", "guardrail", "memory", "auto_title", "subagent"])
def test_a_feature_without_a_built_in_middleware_says_what_to_pass(feature: str):
    with pytest.raises(ValueError, match=feature):
        create_deerflow_agent(_model(), features=RuntimeFeatures(**{feature: True}))


def test_the_defaults_are_those_that_people_know():
    assert vars(RuntimeFeatures()) == {
        "sandbox": True,
        "memory": False,
        "summarization": False,
        "subagent": False,
        "vision": False,
        "auto_title": False,
        "guardrail": False,
    }


def test_a_whole_chain_excludes_features_and_extras():
    with pytest.raises(ValueError, match="Cannot specify both"):
        create_deerflow_agent(_model(), middleware=[], features=RuntimeFeatures())
    with pytest.raises(ValueError, match="whole chain"):
        create_deerflow_agent(_model(), middleware=[], extra_middleware=[A()])


@tool
def mine(text: str) -> str:
    """Mine."""
    return text


@tool("ask_clarification")
def my_clarification(question: str) -> str:
    """Mine."""
    return question


async def test_your_tool_wins_over_a_built_in_one_of_the_same_name_and_keeps_its_place():
    model = _model()
    agent = create_deerflow_agent(model, [mine, my_clarification], features=NO_SANDBOX)
    await agent.ainvoke({"messages": [{"role": "user", "content": "hi"}]})
    assert model.bound == ["mine", "ask_clarification"]
    assert agent.nodes["tools"].bound.tools_by_name["ask_clarification"] is my_clarification


@pytest.mark.parametrize(
    ("features", "there"),
    [
        (RuntimeFeatures(vision=True), True),
        (RuntimeFeatures(vision=True, sandbox=False), False),
        (RuntimeFeatures(), False),
    ],
)
def test_view_image_comes_with_vision_and_a_sandbox(features: RuntimeFeatures, there: bool):
    agent = create_deerflow_agent(_model(), features=features)
    assert ("view_image" in agent.nodes["tools"].bound.tools_by_name) is there


def test_write_todos_comes_with_plan_mode_only():
    for plan_mode in (True, False):
        agent = create_deerflow_agent(_model(), features=NO_SANDBOX, plan_mode=plan_mode)
        assert ("write_todos" in agent.nodes["tools"].bound.tools_by_name) is plan_mode


# placement ----------------------------------------------------------------------------------------------------------

CHAIN = [
    DanglingToolCallMiddleware(),
    ToolErrorHandlingMiddleware(),
    LoopDetectionMiddleware(),
    ClarificationMiddleware(),
]


def _placed(*extras: AgentMiddleware) -> list[str]:
    return _names(insert_extras(CHAIN, extras))


def test_extras_stand_before_clarification_in_their_order():
    assert _placed(A(), B())[-3:] == ["A", "B", "ClarificationMiddleware"]


def test_next_and_prev_place_beside_their_anchor():
    after = _placed(_anchored(Next(DanglingToolCallMiddleware)))
    assert after.index("Extra") == after.index("DanglingToolCallMiddleware") + 1
    before = _placed(_anchored(Prev(ToolErrorHandlingMiddleware)))
    assert before.index("Extra") == before.index("ToolErrorHandlingMiddleware") - 1


def test_an_anchor_may_be_another_extra_whatever_the_order():
    first = _anchored(Next(DanglingToolCallMiddleware), "First")
    second = _anchored(Next(type(first)), "Second")
    third = _anchored(Prev(type(second)), "Third")
    assert _placed(third, second, first)[1:4] == ["First", "Third", "Second"]


def test_clarification_stays_last_whatever_is_anchored_to_it():
    assert _placed(_anchored(Next(ClarificationMiddleware)))[-2:] == ["Extra", "ClarificationMiddleware"]


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (Next(DanglingToolCallMiddleware), Next(DanglingToolCallMiddleware), "Conflict"),
        (Prev(DanglingToolCallMiddleware), Prev(DanglingToolCallMiddleware), "Conflict"),
        (Next(DanglingToolCallMiddleware), Prev(DanglingToolCallMiddleware), "cross-anchoring"),
    ],
)
def test_two_extras_at_one_anchor_are_a_conflict(first: Any, second: Any, words: str):
    with pytest.raises(ValueError, match=words):
        _placed(_anchored(first, "One"), _anchored(second, "Two"))


def test_an_extra_cannot_have_both_anchors():
    extra = Prev(ToolErrorHandlingMiddleware)(Next(DanglingToolCallMiddleware)(type("Extra", (AgentMiddleware,), {})))()
    with pytest.raises(ValueError, match="both"):
        _placed(extra)


def test_an_anchor_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="Cannot resolve"):
        _placed(_anchored(Next(TodoMiddleware)))


def test_anchors_in_a_circle_are_named():
    class One(AgentMiddleware): ...

    class Two(AgentMiddleware): ...

    One._next_anchor, Two._next_anchor = Two, One  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="Circular"):
        _placed(One(), Two())


@pytest.mark.parametrize("decorator", [Next, Prev])
@pytest.mark.parametrize("anchor", [str, "Clarification", A()])
def test_only_middleware_classes_are_anchors(decorator: Any, anchor: Any):
    with pytest.raises(TypeError):
        decorator(anchor)


def test_only_middlewares_are_extras():
    with pytest.raises(TypeError):
        create_deerflow_agent(_model(), features=NO_SANDBOX, extra_middleware=[A])  # type: ignore[list-item]


def test_a_subclass_of_the_anchor_counts():
    class Special(ViewImageMiddleware): ...

    names = _names(insert_extras([Special(), ClarificationMiddleware()], [_anchored(Next(ViewImageMiddleware))]))
    assert names == ["Special", "Extra", "ClarificationMiddleware"]
