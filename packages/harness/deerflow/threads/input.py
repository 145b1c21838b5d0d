"""What a run begins with: messages as clients send them, turned into those that a thread keeps."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from langchain_core.messages import AnyMessage, HumanMessage, convert_to_messages

from deerflow.agents.middlewares.base import BROKE_OFF, ERROR, FORCED_ENDS
from deerflow.agents.transcript import COMPACTION, INJECTED_NAMES
from deerflow.agents.turn import FACTS, PROMPT, QUOTED, human_message
from deerflow.config import AppConfig
from deerflow.errors import InvalidRequestError
from deerflow.events.jsonable import HIDDEN_KEYS
from deerflow.sandbox.converters.pictures import MAX_BYTES, digest
from deerflow.security.outbound import Outbound
from deerflow.storage.provenance import CLIENT, MAX_NAME, Source, ThreadProvenance, addresses_in
from deerflow.tools.download import WebError, fetch, network_of
from deerflow.uploads import Upload, keep_once, list_uploads
from deerflow.uploads.blocks import FileBlock, file_block

OWN_KEYS = frozenset({FACTS, COMPACTION, "run_id", "turn_id", "timestamp", ERROR, BROKE_OFF, *FORCED_ENDS})
"""Keys of ``additional_kwargs`` that only we may write."""

MOST_QUOTED = 20
MAX_QUOTED = 20_000
"""Characters of one text of others that comes with a message."""

_COMPACT = re.compile(r"/compact((?:\s.*)?)", re.DOTALL)
"""A message that asks for a summary of the conversation, with what to keep above all."""


def messages_of(given: Any) -> list[AnyMessage]:
    """The messages in a run's input: dictionaries of any of LangChain's forms, their ids and fields kept.

    Raises:
        InvalidRequestError: they are no messages; says what is wrong.
    """
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    if isinstance(given, Mapping):
        given = [given]
    if not isinstance(given, Sequence):
        raise InvalidRequestError("input.messages must be a list of messages.")
    try:
        messages: list[Any] = convert_to_messages(list(given))
    except (ValueError, TypeError, KeyError, NotImplementedError) as error:
        raise InvalidRequestError(f"input.messages cannot be read: {error}") from error
    for message in messages:
        message.id = message.id or str(uuid.uuid4())
        for key in OWN_KEYS:
            message.additional_kwargs.pop(key, None)
    return messages


def client_messages(given: Any) -> list[AnyMessage]:
    """Return messages as clients may give them: as :func:`messages_of`, without names that only the system's own have."""
    messages = messages_of(given)
    for message in messages:
        if isinstance(message, HumanMessage) and message.name in INJECTED_NAMES:
            message.name = None
    return messages


def visible_input(given: Mapping[str, Any]) -> dict[str, Any]:
    """Values that a client may give to a graph, its messages read.

    Raises:
        InvalidRequestError: one that only the server sets.
    """
    for key in given:
        if key in HIDDEN_KEYS or key.startswith("__") or ":" in key:
            raise InvalidRequestError(f"input.{key}: is set by the server.")
    return {**given, "messages": client_messages(given["messages"])} if "messages" in given else dict(given)


async def with_facts(
    messages: Sequence[AnyMessage],
    *,
    run_id: str,
    turn_id: str,
    now: datetime,
    time_zone: str | None,
    uploads_dir: Path,
    called: Callable[[str], Awaitable[Mapping[str, Any]]],
    config: AppConfig,
    provenance: ThreadProvenance,
) -> list[AnyMessage]:
    """``messages`` with the facts of the turn recorded with each of the person's messages. Files inside of these become uploads.

    Args:
        now: when they were sent.
        time_zone: the person's, by its IANA name, for the date that the model reads.
        called: the facts of what a message with a command, ``/name``, calls of nouns.
        config: which addresses of the web may be opened.
        provenance: of the thread; gets the addresses that the person writes, and what of the messages is not the person's.
    """
    brought = {
        index: await _brought(message, uploads_dir, config)
        for index, message in enumerate(messages)
        if isinstance(message, HumanMessage) and isinstance(message.content, list)
    }
    texts = [message.text for message in messages if isinstance(message, HumanMessage)]
    commands = {text: await called(text.strip()) for text in texts if text.lstrip().startswith("/")}

    def recorded() -> list[AnyMessage]:
        there = in_zone(now, time_zone)
        return [
            _human(message, (run_id, turn_id), there, uploads_dir, commands.get(message.text, {}), brought.get(index))
            if isinstance(message, HumanMessage)
            else message
            for index, message in enumerate(messages)
        ]

    made = await asyncio.to_thread(recorded)
    await record_said(provenance, made, brought.values())
    return made


@dataclass(frozen=True, slots=True)
class _Brought:
    """A message's content without the files in it, and what became of these: uploads with their digests, or nothing."""

    content: str | list[str | dict[Any, Any]]
    files: Mapping[Upload, str]
    missing: Sequence[Mapping[str, str]]


async def _brought(message: HumanMessage, uploads_dir: Path, config: AppConfig) -> _Brought | None:
    """Keep the files inside a message as uploads; one between two texts leaves its name there. None: there is none."""
    blocks = [file_block(block) for block in message.content]
    if not any(blocks):
        return None
    said = [index for index, file in enumerate(blocks) if file is None]
    content: list[Any] = []
    files: dict[Upload, str] = {}
    missing: list[dict[str, str]] = []
    for index, file in enumerate(blocks):
        if file is None:
            content.append(message.content[index])
            continue
        try:
            upload, known = await _kept(file, uploads_dir, config)
        except (WebError, ValueError) as error:
            name = file.name or (file.address[:200] if file.is_elsewhere else "")
            what = f"{'picture' if file.is_picture else 'file'} {name}".strip()
            missing.append({"name": f"The {what}", "why": str(error)})
            continue
        files[upload] = known
        if said and said[0] < index < said[-1]:
            content.append({"type": "text", "text": f"[{upload.filename}]"})
    if len(content) == 1 and isinstance(content[0], dict) and isinstance(content[0].get("text"), str):
        content = content[0]["text"]
    return _Brought(content or "", files, missing)


async def _kept(file: FileBlock, uploads_dir: Path, config: AppConfig) -> tuple[Upload, str]:
    """Keep a file of a message, once, and return it with its digest. Raises WebError or ValueError: says why it cannot be had."""
    data = b""
    if file.is_elsewhere:
        if not file.address:
            raise ValueError("the message holds neither data nor an address of it.")
        data = (await fetch(Outbound(network_of(config)), file.address, max_bytes=MAX_BYTES)).data

    def keep() -> tuple[Upload, str]:
        content = data or file.content()
        known = digest(content)
        return keep_once(content, file.filename(content, known), uploads_dir), known

    return await asyncio.to_thread(keep)


def in_zone(moment: datetime, name: str | None) -> datetime:
    """Return a moment as clocks in a time zone show it; in the server's if it has no zone of that name. Reads a file.

    Args:
        name: of IANA, or an offset like ``+05:30``.
    """
    try:
        if name and name[0] in "+-":
            return moment.astimezone(datetime.strptime(name, "%z").tzinfo)
        return moment.astimezone(ZoneInfo(name) if name else None)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # browsers may know zones that this machine does not
        return moment.astimezone()


async def record_said(
    provenance: ThreadProvenance, messages: Sequence[AnyMessage], brought: Iterable[_Brought | None] = ()
) -> None:
    """Record which addresses the person wrote, and what of the messages is not the person's."""
    people = [message for message in messages if isinstance(message, HumanMessage)]
    prompts = [fact for message in people if (fact := message.additional_kwargs.get(FACTS, {}).get(PROMPT))]
    foreign = [Source("server", str(prompt["name"])) for prompt in prompts]
    for message in people:
        foreign += [
            Source("channel", quoted["source"]) for quoted in message.additional_kwargs.get(FACTS, {}).get(QUOTED, ())
        ]
    files = (one for each in brought if each is not None for one in each.files.items())
    foreign += [Source("upload", upload.filename, known) for upload, known in files]
    if len(people) < len(messages):
        foreign.append(CLIENT)
    await provenance.add(*foreign)
    await provenance.add_addresses([url for message in people for url in addresses_in(message.text)], "person")


def _human(
    message: HumanMessage,
    ids: tuple[str, str],
    now: datetime,
    uploads_dir: Path,
    called: Mapping[str, Any],
    brought: _Brought | None,
) -> HumanMessage:
    extra = dict(message.additional_kwargs)
    files = _named_uploads(extra.get("files"), uploads_dir)
    if brought is not None:
        message = message.model_copy(update={"content": brought.content})
        files += [upload for upload in brought.files if upload not in files]
    made = human_message(
        message.content,
        now=now,
        run_id=ids[0],
        turn_id=ids[1],
        files=files,
        uploads_dir=uploads_dir,
        called=called,
        quoted=_quoted(extra.pop(QUOTED, None)),
        missing=brought.missing if brought is not None else (),
    )
    own = made.additional_kwargs
    if asked := _COMPACT.fullmatch(message.text.strip()):
        own[COMPACTION] = {"keep": asked[1].strip()}
    return message.model_copy(update={"name": message.name or made.name, "additional_kwargs": {**extra, **own}})


def _quoted(given: Any) -> list[dict[str, str]]:
    """Texts of others that a client says came with a message, as ``{source, text}``."""
    found = [each for each in given or () if isinstance(each, Mapping)] if isinstance(given, Sequence) else []
    return [
        {"source": str(each.get("source") or "a channel")[:MAX_NAME], "text": str(each.get("text") or "")[:MAX_QUOTED]}
        for each in found[:MOST_QUOTED]
    ]


def _named_uploads(files: Any, uploads_dir: Path) -> list[Upload]:
    """Those uploads of the thread that a message says it came with."""
    if not isinstance(files, list):
        return []
    names = {file.get("filename") for file in files if isinstance(file, Mapping)}
    return [upload for upload in list_uploads(uploads_dir) if upload.filename in names]
