"""Pictures that came with a message or that the model asked to see, shown where that was and as they were."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage

from deerflow.agents.middlewares.base import Middleware, ModelHandler, ModelResult, Request
from deerflow.agents.transcript import IMAGES, Transcript
from deerflow.agents.turn import PICTURES
from deerflow.context import RunContext
from deerflow.models.messages import is_reminder
from deerflow.sandbox.interface import SandboxError
from deerflow.tools.images import sent_picture

HEADER = "Here are the images you've viewed:"
SENT = "Here are the images that came with the message above:"
REFERENCE, UPLOAD = "sandbox:", "upload:"
"""Schemes of addresses that stand for bytes until the request goes out: of a copy that is kept, of an upload by its digest."""

MAX_IMAGES = 16
TURNS = 3
"""An image leaves the request when so many turns have begun since: in groups, so that the prompt's beginning rarely changes."""


class ViewImageMiddleware(Middleware):
    """Behind the results of a step that viewed images stands one human message with these images.

    The thread holds references only. A copy of what was shown is kept under the hash of the file's content, so the same
    reference gives the same bytes in every request, also when the file was overwritten, and the provider's prompt cache
    holds. Behind a person's message stand the pictures that came with it. A picture is sent once: later ones are named.

    At most ``max_images`` are sent. Dropping the oldest one with each new one would change the prompt's beginning each
    time, so half of them are dropped at once when there are too many: which ones depends on their position alone.

    Args:
        max_images: images in a request; between half of them and all are sent.
    """

    def __init__(self, *, max_images: int = MAX_IMAGES) -> None:
        super().__init__()
        self.max_images = max(2, max_images)

    def compile(self, transcript: Transcript, context: RunContext | None) -> Transcript:
        total = sum(len(_images(message)) for message in transcript.messages)
        if not total:
            return transcript
        first = max(self._first_sent(total), images_of_old_turns(transcript.messages))
        return transcript.with_messages(_with_images(transcript.messages, first))

    async def awrap_model_call(self, request: Request, handler: ModelHandler) -> ModelResult:
        stored = {url for message in request.messages for url in _references(message)}
        if not stored:
            return await handler(request)
        context = request.runtime.context
        loaded = dict(zip(stored, await asyncio.gather(*(_load(url, context) for url in stored)), strict=True))
        return await handler(request.override(messages=[_loaded(message, loaded) for message in request.messages]))

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
        images += len(_images(message))
    return images


def _images(message: AnyMessage) -> Sequence[Mapping[str, Any]]:
    """The pictures that a result shows, or that came with a message."""
    if isinstance(message, HumanMessage):
        return message.additional_kwargs.get(PICTURES, ())
    image = message.additional_kwargs.get("image") if isinstance(message, ToolMessage) else None
    return [image] if isinstance(image, Mapping) and image.get("path") else []


def _with_images(messages: Sequence[AnyMessage], first_sent: int) -> list[AnyMessage]:
    result: list[AnyMessage] = []
    blocks: list[str | dict[Any, Any]] = []
    header, position, shown = HEADER, 0, set[str]()
    for message in messages:
        if blocks and not isinstance(message, ToolMessage):
            result.append(_shown(header, blocks))
            blocks = []
        result.append(message)
        header = SENT if isinstance(message, HumanMessage) else HEADER
        for image in _images(message):
            blocks += _blocks(image, shown, sent=position >= first_sent)
            position += 1
    return [*result, _shown(header, blocks)] if blocks else result


def _shown(header: str, blocks: list[str | dict[Any, Any]]) -> HumanMessage:
    return HumanMessage(content=[{"type": "text", "text": header}, *blocks], name=IMAGES)


def _blocks(image: Mapping[str, Any], shown: set[str], *, sent: bool) -> list[dict[str, Any]]:
    """Return a picture as a request shows it. ``shown``: what it has shown so far."""
    kind = f" ({image.get('mime_type') or 'unknown'})" if "digest" not in image else ""
    name = f"- {image['path']}{kind}"
    key = str(image.get("digest") or PurePosixPath(image.get("stored") or "").stem)
    if not sent:
        return [{"type": "text", "text": f"{name}: shown earlier; view it again if you need it."}]
    if key in shown:
        return [{"type": "text", "text": f"{name}: the same picture as shown above."}]
    shown |= {key} if key else set()
    if data := image.get("base64"):
        url = f"data:{image.get('mime_type') or 'unknown'};base64,{data}"
    elif "digest" in image:
        url = f"{UPLOAD}{image['digest']},{image['path']}"
    else:
        url = f"{REFERENCE}{image.get('mime_type') or 'unknown'},{image.get('stored') or image['path']}"
    return [{"type": "text", "text": name}, {"type": "image_url", "image_url": {"url": url}}]


def _references(message: AnyMessage) -> list[str]:
    if not isinstance(message, HumanMessage) or message.name != IMAGES or not isinstance(message.content, list):
        return []
    return [url for block in message.content if (url := _url(block)).startswith((REFERENCE, UPLOAD))]


def _url(block: Any) -> str:
    image = block.get("image_url") if isinstance(block, dict) else None
    return str(image.get("url") or "") if isinstance(image, dict) else ""


async def _load(reference: str, context: RunContext | None) -> dict[str, Any]:
    """The block with the bytes behind a reference, or one that says why they cannot be had."""
    scheme, _, rest = reference.partition(":")
    about, _, path = rest.partition(",")
    try:
        if context is None or context.sandbox_provider is None:
            raise ValueError("this image is no longer available")
        if f"{scheme}:" == UPLOAD:
            mime_type, data = await sent_picture(context, path, about)
        else:
            mime_type, data = about, (await (await context.sandbox()).read(path))[0]
    except SandboxError:
        return {"type": "text", "text": "  (this image is no longer available)"}
    except ValueError as error:
        return {"type": "text", "text": f"  ({error})"}
    encoded = await asyncio.to_thread(base64.b64encode, data)
    return {"type": "image_url", "image_url": {"url": f"data:{mime_type};base64,{encoded.decode()}"}}


def _loaded(message: AnyMessage, blocks: Mapping[str, dict[str, Any]]) -> AnyMessage:
    if not _references(message):
        return message
    return message.model_copy(update={"content": [blocks.get(_url(block), block) for block in message.content]})
