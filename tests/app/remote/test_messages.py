from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from deerflow.events.jsonable import message_json
from deerflow.events.streams.client_events import message_dict
from deerflow_app.remote.messages import shown_message

MESSAGES = [
    HumanMessage("hi", id="1"),
    HumanMessage(
        [{"type": "text", "text": "see "}, {"type": "image_url", "image_url": {"url": "x"}}],
        id="2",
        additional_kwargs={"files": [{"filename": "a.csv"}]},
    ),
    AIMessage("", id="3", tool_calls=[{"name": "bash", "args": {"command": "ls"}, "id": "c"}]),
    AIMessage(
        "done",
        id="4",
        usage_metadata={"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
        additional_kwargs={"reasoning_content": "hm", "error": {"kind": "network"}},
    ),
    ToolMessage("out", name="bash", tool_call_id="c", id="5", status="error"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.id)
def test_a_message_from_a_server_looks_like_one_of_this_process(message: AnyMessage) -> None:
    assert shown_message(message_json(message)) == message_dict(message)
