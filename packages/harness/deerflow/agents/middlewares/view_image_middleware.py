"""Pictures that the model asked to see, shown where it asked and as they were."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage

from deerflow.agents.middlewares.base import Middleware, ModelHandler, ModelResult, Request
from deerflow.agents.transcript import IMAGES, Transcript
from deerflow.context import RunContext
from deerflow.models.messages import is_reminder
from deerflow.sandbox.interface import SandboxError

HEADER = "Here are the images you've viewed:"
REFERENCE = "sandbox:"
"""Scheme of addresses that stand for bytes until the request goes out."""

MAX_IMAGES = 16
TURNS = 3
"""An image leaves the request when so many turns have begun since: in groups, so that the prompt's beginning rarely changes."""


class ViewImageMiddleware(Middleware):
    """Behind the results of a step that viewed images stands one human message with these images.

    The thread holds references only. ``view_image`` keeps a copy of what it showed under the hash of its content, so
    the same reference gives the same bytes in every request, also when the file was overwritten, and the provider's
    prompt cache holds.

    At most ``max_images`` are sent. Dropping the oldest one with each new one would change the prompt's beginning each
    time, so half of them are dropped at once when there are too many: which ones depends on their position alone.

    Args:
        max_images: images in a request; between half of them and all are sent.
    """

    def __init__(self, *, max_images: int = MAX_IMAGES) -> None:
        super().__init__()
        self.max_images = max(2, max_images)

    def compile(self, transcript: Transcript, context: RunContext | None) -> Transcript:
        total = sum(_image(message) is not None for message in transcript.messages)
        if not total:
            return transcript
        first = max(self._first_sent(total), images_of_old_turns(transcript.messages))
        return transcript.with_messages(_with_images(transcript.messages, first))

    async def awrap_model_call(self, request: Request, handler: ModelHandler) -> ModelResult:
        stored = {url for message in request.messages for url in _references(message)}
        if not stored:
            return await handler(request)
        context = request.runtime.context
        uris = dict(zip(stored, await asyncio.gather(*(_data_uri(url, context) for url in stored)), strict=True))
        return await handler(request.override(messages=[_loaded(message, uris) for message in request.messages]))

    def _first_sent(self, total: int) -> int:
        """How many of the oldest images are only named."""
        half = self.max_images // 2
        return 0 if total <= self.max_images else -(-(total - self.max_images) // half) * half


def images_of_old_turns(messages: Sequence[AnyMessage]) -> int:
    """How many images belong to turns that are over for long: looked at anew in every third turn."""
    begins = [isinstance(message, HumanMessage) and not is_reminder(message) for message in messages]
    kept_from = (sum(begins) - 1) // TURNS * TURNS - TURNS + 2
    images = turn = 0
    for message, begun in zip(messages, begins, strict=True):
        turn += begun
        if turn >= kept_from:
            break
        images += _image(message) is not None
    return images


def _image(message: AnyMessage) -> Mapping[str, Any] | None:
    image = message.additional_kwargs.get("image") if isinstance(message, ToolMessage) else None
    return image if isinstance(image, Mapping) and image.get("path") else None


def _with_images(messages: Sequence[AnyMessage], first_sent: int) -> list[AnyMessage]:
    result: list[AnyMessage] = []
    blocks: list[str | dict[Any, Any]] = []
    position = 0
    for message in messages:
        if blocks and not isinstance(message, ToolMessage):
            result.append(_shown(blocks))
            blocks = []
        result.append(message)
        if (image := _image(message)) is not None:
            blocks += _blocks(image, sent=position >= first_sent)
            position += 1
    return [*result, _shown(blocks)] if blocks else result


def _shown(blocks: list[str | dict[Any, Any]]) -> HumanMessage:
    return HumanMessage(content=[{"type": "text", "text": HEADER}, *blocks], name=IMAGES)


def _blocks(image: Mapping[str, Any], *, sent: bool) -> list[dict[str, Any]]:
    mime_type = image.get("mime_type") or "unknown"
    if not sent:
        return [
            {"type": "text", "text": f"- {image['path']} ({mime_type}): shown earlier; view it again if you need it."}
        ]
    if data := image.get("base64"):
        url = f"data:{mime_type};base64,{data}"
    else:
        url = f"{REFERENCE}{mime_type},{image.get('stored') or image['path']}"
    return [
        {"type": "text", "text": f"- {image['path']} ({mime_type})"},
        {"type": "image_url", "image_url": {"url": url}},
    ]


def _references(message: AnyMessage) -> list[str]:
    if not isinstance(message, HumanMessage) or message.name != IMAGES or not isinstance(message.content, list):
        return []
    return [url for block in message.content if (url := _url(block)).startswith(REFERENCE)]


def _url(block: Any) -> str:
    image = block.get("image_url") if isinstance(block, dict) else None
    return str(image.get("url") or "") if isinstance(image, dict) else ""


async def _data_uri(reference: str, context: RunContext | None) -> str | None:
    """The bytes behind a reference as a data URI; None if they are gone."""
    if context is None or context.sandbox_provider is None:
        return None
    mime_type, _, path = reference.removeprefix(REFERENCE).partition(",")
    try:
        data, _size = await (await context.sandbox()).read(path)
    except SandboxError:
        return None
    encoded = await asyncio.to_thread(base64.b64encode, data)
    return f"data:{mime_type};base64,{encoded.decode()}"


def _loaded(message: AnyMessage, uris: Mapping[str, str | None]) -> AnyMessage:
    if not _references(message):
        return message
    return message.model_copy(update={"content": [_loaded_block(block, uris) for block in message.content]})


def _loaded_block(block: Any, uris: Mapping[str, str | None]) -> Any:
    url = _url(block)
    if not url.startswith(REFERENCE):
        return block
    uri = uris[url]
    return (
        {"type": "image_url", "image_url": {"url": uri}}
        if uri
        else {"type": "text", "text": "  (this image is no longer available)"}
    )
