"""``create_deerflow_agent``: an agent from arguments alone, and the assembly that every DeerFlow agent goes through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph

from deerflow.agents.chain import AnyMiddleware, in_order, insert_extras, with_replacements
from deerflow.agents.features import RuntimeFeatures
from deerflow.agents.middlewares.base import EndsAtOnce, FusedMiddleware, fuse, has_nodes_after_model
from deerflow.agents.middlewares.clarification_middleware import ClarificationMiddleware
from deerflow.agents.middlewares.dangling_tool_call_middleware import DanglingToolCallMiddleware
from deerflow.agents.middlewares.loop_detection_middleware import LoopDetectionMiddleware
from deerflow.agents.middlewares.sandbox_middleware import SandboxMiddleware
from deerflow.agents.middlewares.thread_data_middleware import ThreadDataMiddleware
from deerflow.agents.middlewares.todo_middleware import TodoMiddleware
from deerflow.agents.middlewares.tool_error_handling_middleware import ToolErrorHandlingMiddleware
from deerflow.agents.middlewares.tool_order_middleware import ToolOrderMiddleware
from deerflow.agents.middlewares.uploads_middleware import UploadsMiddleware
from deerflow.agents.middlewares.view_image_middleware import ViewImageMiddleware
from deerflow.agents.thread_state import ThreadState
from deerflow.context import RunContext
from deerflow.tools.clarification import ask_clarification_tool
from deerflow.tools.images import view_image_tool

Agent = CompiledStateGraph[Any, Any, Any, Any]


def create_deerflow_agent(
    model: BaseChatModel,
    tools: Sequence[BaseTool] | None = None,
    *,
    system_prompt: str | None = None,
    middleware: Sequence[AnyMiddleware] | None = None,
    features: RuntimeFeatures | None = None,
    extra_middleware: Sequence[AnyMiddleware] | None = None,
    plan_mode: bool = False,
    state_schema: type | None = None,
    checkpointer: bool | BaseCheckpointSaver[Any] | None = None,
    name: str = "default",
) -> Agent:
    """An agent from arguments alone: no configuration file, environment variable or global is read.

    One exception: the built-in sandbox keeps threads in the usual data directory (``DEER_FLOW_HOME``, else
    ``.deer-flow``). Pass ``features=RuntimeFeatures(sandbox=False)``, or a middleware of yours, where that must not be.

    Args:
        model: the chat model.
        tools: your tools; on a name clash they win over built-in ones.
        system_prompt: used as it is.
        middleware: the whole chain, verbatim; nothing is added.
        features: which built-in middlewares to use.
        extra_middleware: yours, placed by ``@Next``/``@Prev`` or before Clarification.
        plan_mode: adds ``write_todos``.
        state_schema: default ThreadState.
        checkpointer: makes threads persistent.
        name: stands on the agent's messages.

    Raises:
        ValueError: ``middleware`` together with ``features`` or ``extra_middleware``, or anchors that cannot be met.
        TypeError: an extra is not an AgentMiddleware.
    """
    if middleware is not None:
        if features is not None:
            raise ValueError("Cannot specify both 'middleware' and 'features': 'middleware' is the whole chain.")
        if extra_middleware:
            raise ValueError(
                "Cannot specify both 'middleware' and 'extra_middleware': 'middleware' is the whole chain."
            )
        return assemble(
            model,
            tools or (),
            middleware,
            system_prompt=system_prompt,
            state_schema=state_schema,
            checkpointer=checkpointer,
            name=name,
        )
    features = features or RuntimeFeatures()
    chain = insert_extras(_feature_chain(features, plan_mode), extra_middleware or ())
    return assemble(
        model,
        [*(tools or ()), *_feature_tools(features)],
        chain,
        system_prompt=system_prompt,
        state_schema=state_schema,
        checkpointer=checkpointer,
        name=name,
    )


def assemble(
    model: BaseChatModel,
    tools: Sequence[BaseTool],
    chain: Sequence[AnyMiddleware],
    *,
    system_prompt: str | None,
    state_schema: type | None = None,
    checkpointer: bool | BaseCheckpointSaver[Any] | None = None,
    name: str | None = None,
) -> Agent:
    """The last step of every assembly: duplicates dropped, adjacent middlewares fused, the graph compiled."""
    own = {tool.name for tool in tools}
    first = {tool.name: tool for tool in reversed(tools)}
    middlewares = fuse(chain)
    if has_nodes_after_model(middlewares):
        middlewares.append(EndsAtOnce())
    for middleware in middlewares:
        if isinstance(middleware, FusedMiddleware):
            middleware.tools = [tool for tool in middleware.tools if tool.name not in own]
    return create_agent(
        model,
        list(first[tool_name] for tool_name in dict.fromkeys(tool.name for tool in tools)) or None,
        system_prompt=system_prompt,
        middleware=middlewares,
        state_schema=state_schema or ThreadState,
        context_schema=RunContext,
        checkpointer=checkpointer,
        name=name,
    )


def _feature_chain(features: RuntimeFeatures, plan_mode: bool) -> list[AnyMiddleware]:
    slots: dict[str, AnyMiddleware] = {
        "dangling_tool_call": DanglingToolCallMiddleware(),
        "tool_error_handling": ToolErrorHandlingMiddleware(),
        "loop_detection": LoopDetectionMiddleware(),
        "clarification": ClarificationMiddleware(),
    }
    if features.sandbox is True:
        slots |= {
            "tool_order": ToolOrderMiddleware(),
            "thread_data": ThreadDataMiddleware(),
            "uploads": UploadsMiddleware(),
            "sandbox": SandboxMiddleware(),
        }
    if features.vision is True:
        slots["vision"] = ViewImageMiddleware()
    if plan_mode:
        slots["todo"] = TodoMiddleware()
    return in_order(with_replacements(slots, features))


def _feature_tools(features: RuntimeFeatures) -> list[BaseTool]:
    vision = [view_image_tool] if features.vision and features.sandbox else []
    return [*vision, ask_clarification_tool]
