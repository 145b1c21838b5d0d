"""Pictures that came with a message or that the model asked to see, shown where that was and as they were."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from hashlib import sha256
from operator import is_
from pathlib import PurePosixPath
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from deerflow.agents.middlewares.base import (
    Middleware,
    ModelHandler,
    ModelResult,
    Request,
    last_ai,
    messages_of,
    model_entry,
    with_messages,
)
from deerflow.agents.transcript import IMAGES, Transcript
from deerflow.agents.turn import PICTURES
from deerflow.context import RunContext
from deerflow.models.endpoint import model_id
from deerflow.models.failures import classify, refuses_pictures
from deerflow.models.messages import is_reminder
from deerflow.sandbox.converters.pictures import digest
from deerflow.sandbox.interface import SandboxError
from deerflow.security.text import inline
from deerflow.tools.images import kept_copy, sent_picture
from deerflow.uploads.blocks import FileBlock, file_block

HEADER = "Here are the images you've viewed:"
SENT = "Here are the images that came with the message above:"
REFERENCE, UPLOAD = "sandbox:", "upload:"
"""Schemes of addresses that stand for bytes until the request goes out: of a copy that is kept, of an upload by its digest."""
REFUSED_PICTURES = "refused_pictures"
"""Key in an answer's ``additional_kwargs``: the model, pictures before the answer that its provider refused, and its words."""

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
        """Send the pictures that the model can see; of each other one a sentence stands in its place."""
        if not any(isinstance(one, HumanMessage) and isinstance(one.content, list) for one in request.messages):
            return await handler(request)
        messages = [await _standard(message, request.runtime.context) for message in request.messages]
        pictures = list(dict.fromkeys(url for message in messages for url in _pictures(message)))
        if not pictures:
            is_same = all(map(is_, messages, request.messages))
            return await handler(request if is_same else request.override(messages=messages))
        entry = model_entry(request)
        if entry is None or entry.supports_vision:
            return await self._sent(request, handler, messages, pictures)
        text = f"{model_id(request.model)} cannot see pictures: this one is left out. The user can choose a model with vision."
        return await handler(request.override(messages=_replaced(messages, dict.fromkeys(pictures, _note(text)))))

    async def _sent(
        self, request: Request, handler: ModelHandler, messages: Sequence[AnyMessage], pictures: Sequence[str]
    ) -> ModelResult:
        """Ask with all pictures but those that the provider refused before; when it refuses, without the newest step's, then without any.

        The answer records which were refused, so that no later request to this model holds them.
        """
        name, refused = model_id(request.model), dict[str, str]()
        known = _refused_before(messages, name)
        while True:
            left_out = known | {_key(url): why for url, why in refused.items()}
            sent = [url for url in pictures if _key(url) not in left_out]
            loaded = await asyncio.gather(*(_load(url, request.runtime.context) for url in sent))
            text = f"the provider of {name} refused this picture, so it is not sent again: "
            notes = {url: _note(text + left_out[_key(url)]) for url in pictures if _key(url) in left_out}
            blocks = {**notes, **dict(zip(sent, loaded, strict=True))}
            try:
                result = await handler(request.override(messages=_replaced(messages, blocks)))
                return _with_refused(result, name, refused) if refused else result
            except Exception as error:
                if not sent or not refuses_pictures(error):
                    raise
                why = classify(error).detail[:200]
            newest = {url for message in _newest_step(messages) for url in _pictures(message)}
            refused |= dict.fromkeys([url for url in sent if url in newest] or sent, why)

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


def _pictures(message: AnyMessage) -> list[str]:
    """The addresses of pictures in a person's message or in one that shows them."""
    if not isinstance(message, HumanMessage) or not isinstance(message.content, list):
        return []
    return [url for block in message.content if (url := _url(block))]


def _url(block: Any) -> str:
    image = block.get("image_url") if isinstance(block, dict) else None
    return str(image.get("url") or "") if isinstance(image, dict) else ""


async def _standard(message: AnyMessage, context: RunContext | None) -> AnyMessage:
    """A person's message whose pictures, of any shape, are prepared and kept: other programs add such messages to threads."""
    if not isinstance(message, HumanMessage) or message.name == IMAGES or not isinstance(message.content, list):
        return message
    files = [file if (file := file_block(block)) and file.is_picture else None for block in message.content]
    if not any(files):
        return message
    blocks = [await _kept(file, context) if file else block for file, block in zip(files, message.content, strict=True)]
    return message.model_copy(update={"content": blocks})


async def _kept(file: FileBlock, context: RunContext | None) -> dict[str, Any]:
    """The block of a picture by its copy, or with its bytes where nothing can be kept."""
    if file.is_elsewhere:
        return _note("a picture stood at an address here, which was not opened.")

    async def read() -> bytes:
        return data

    try:
        data = await asyncio.to_thread(file.content)
        if context is None or context.machine.provider is None or context.machine.converters is None:
            encoded = await asyncio.to_thread(base64.b64encode, data)
            url = f"data:{file.media_type or 'image/png'};base64,{encoded.decode()}"
        else:
            mime_type, stored = await kept_copy(context, await asyncio.to_thread(digest, data), read)
            url = f"{REFERENCE}{mime_type},{stored}"
    except (SandboxError, ValueError) as error:
        return _note(f"a picture that came here cannot be shown: {error}")
    return {"type": "image_url", "image_url": {"url": url}}


def _note(text: str) -> dict[str, Any]:
    return {"type": "text", "text": f"  ({inline(text)})"}


def _replaced(messages: Sequence[AnyMessage], blocks: Mapping[str, dict[str, Any]]) -> list[AnyMessage]:
    """``messages`` with these blocks in place of pictures."""
    return [
        message.model_copy(update={"content": [blocks.get(_url(block), block) for block in message.content]})
        if _pictures(message)
        else message
        for message in messages
    ]


def _newest_step(messages: Sequence[AnyMessage]) -> Sequence[AnyMessage]:
    """Return the messages since the model's last answer."""
    answers = [index for index, message in enumerate(messages) if isinstance(message, AIMessage)]
    return messages[answers[-1] + 1 :] if answers else messages


def _key(url: str) -> str:
    return sha256(url.encode()).hexdigest()[:32] if url.startswith("data:") else url


def _refused_before(messages: Sequence[AnyMessage], model: str) -> dict[str, str]:
    known = (message.additional_kwargs.get(REFUSED_PICTURES) for message in messages if isinstance(message, AIMessage))
    ours = (each for each in known if isinstance(each, Mapping) and each.get("model") == model)
    return {picture: str(each.get("why")) for each in ours for picture in each.get("pictures") or ()}


def _with_refused(result: ModelResult, model: str, refused: Mapping[str, str]) -> ModelResult:
    if (answer := last_ai(result)) is None:
        return result
    record = {"model": model, "pictures": [_key(url) for url in refused], "why": next(iter(refused.values()))}
    kwargs = {**answer.additional_kwargs, REFUSED_PICTURES: record}
    noted = answer.model_copy(update={"additional_kwargs": kwargs})
    return with_messages(result, [noted if message is answer else message for message in messages_of(result)])


async def _load(reference: str, context: RunContext | None) -> dict[str, Any]:
    """The block with the bytes behind a reference, or one that says why they cannot be had."""
    if not reference.startswith((REFERENCE, UPLOAD)):
        return {"type": "image_url", "image_url": {"url": reference}}
    scheme, _, rest = reference.partition(":")
    about, _, path = rest.partition(",")
    try:
        if context is None or context.machine.provider is None:
            raise ValueError("this image is no longer available")
        if f"{scheme}:" == UPLOAD:
            mime_type, data = await sent_picture(context, path, about)
        else:
            mime_type, data = about, (await (await context.sandbox()).read(path))[0]
    except SandboxError:
        return _note("this image is no longer available")
    except ValueError as error:
        return _note(str(error))
    encoded = await asyncio.to_thread(base64.b64encode, data)
    return {"type": "image_url", "image_url": {"url": f"data:{mime_type};base64,{encoded.decode()}"}}
