"""A message of ours as a card of Feishu, JSON 2.0."""

from __future__ import annotations

from typing import Any

from deerflow.features.channels.types import Button, Part, Place


def card_of(place: Place, part: Part, *, card: str = "", is_streaming: bool = False) -> dict[str, Any]:
    """Return the card that shows a part. ``update_multi``: everybody sees the same card, and it may be changed.

    Args:
        card: ID of the card entity, if the card is one.
    """
    text = {"tag": "markdown", "content": part.text, "element_id": "text"}
    elements: list[dict[str, Any]] = [text]
    if part.buttons:
        columns = [{"tag": "column", "width": "auto", "elements": [_button(place, one, card)]} for one in part.buttons]
        elements.append({"tag": "column_set", "flex_mode": "flow", "columns": columns})
    config = {"update_multi": True, "streaming_mode": is_streaming}
    return {"schema": "2.0", "config": config, "body": {"elements": elements}}


def _button(place: Place, button: Button, card: str) -> dict[str, Any]:
    # A click names the message and the chat; all else comes back with its value.
    value = {"key": button.key, "topic": place.topic, "private": place.is_private, "card": card}
    return {
        "tag": "button",
        "text": {"tag": "plain_text", "content": button.label},
        "type": button.style or "default",
        "behaviors": [{"type": "callback", "value": value}],
    }
