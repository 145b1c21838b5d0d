"""What every compiled request must be free of."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage


def unpaired_calls(messages: Sequence[AnyMessage]) -> list[str]:
    """Ids of tool calls that do not have exactly one result right behind their message, and of results without a call.

    Empty for every compiled request: providers refuse anything else.
    """
    wrong: list[str] = []
    open_ids: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id in open_ids:
                open_ids.discard(message.tool_call_id)
            else:
                wrong.append(message.tool_call_id)
            continue
        wrong.extend(sorted(open_ids))
        open_ids = {call["id"] or "" for call in message.tool_calls} if isinstance(message, AIMessage) else set()
    return [*wrong, *sorted(open_ids)]
