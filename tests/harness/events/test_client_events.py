"""Messages as the public streaming contract shows them, whichever process they come from."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from deerflow.events.streams.client_events import message_dict

SHOWN: list[tuple[AnyMessage, dict[str, Any]]] = [
    (HumanMessage("hi", id="1"), {"type": "human", "content": "hi", "id": "1"}),
    (
        HumanMessage(
            [{"type": "text", "text": "see "}, {"type": "image_url", "image_url": {"url": "x"}}],
            id="2",
            additional_kwargs={"files": [{"filename": "a.csv"}]},
        ),
        {"type": "human", "content": "see ", "id": "2", "files": [{"filename": "a.csv"}]},
    ),
    (
        AIMessage("", id="3", tool_calls=[{"name": "bash", "args": {"command": "ls"}, "id": "c"}]),
        {
            "type": "ai",
            "content": "",
            "id": "3",
            "tool_calls": [{"name": "bash", "args": {"command": "ls"}, "id": "c"}],
        },
    ),
    (
        AIMessage(
            "",
            id="6",
            tool_calls=[{"name": "call_tool", "args": {"name": "s_echo", "arguments": {"text": "hi"}}, "id": "c"}],
        ),
        {
            "type": "ai",
            "content": "",
            "id": "6",
            "tool_calls": [{"name": "s_echo", "args": {"text": "hi"}, "id": "c"}],
        },
    ),
    (
        AIMessage(
            "done",
            id="4",
            usage_metadata={"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
            additional_kwargs={"reasoning_content": "hm", "error": {"kind": "network"}},
        ),
        {
            "type": "ai",
            "content": "done",
            "id": "4",
            "usage_metadata": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
            "reasoning_content": "hm",
            "error": {"kind": "network"},
        },
    ),
    (
        ToolMessage("out", name="bash", tool_call_id="c", id="5", status="error"),
        {"type": "tool", "content": "out", "name": "bash", "tool_call_id": "c", "id": "5", "status": "error"},
    ),
]


@pytest.mark.parametrize(("message", "shown"), SHOWN, ids=lambda value: getattr(value, "id", ""))
def test_a_message_has_the_fields_of_the_contract(message: AnyMessage, shown: dict[str, Any]) -> None:
    assert message_dict(message) == shown
