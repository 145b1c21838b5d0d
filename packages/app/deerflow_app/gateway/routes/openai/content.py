"""Texts, images and files of OpenAI's API, as messages of a run and back."""

from __future__ import annotations

import binascii
import json
from base64 import b64decode
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deerflow.errors import InvalidRequestError
from deerflow.files.uploads import UploadService
from deerflow.identity import Principal
from deerflow.runs.json_answer import json_in
from deerflow_app.gateway.routes import Runtime

Content = str | list[dict[str, Any]] | None
Said = tuple[str, Content]
"""Role and content."""
INSTRUCTIONS = "Instructions for this conversation:\n\n"


async def message_of(
    runtime: Runtime, principal: Principal, thread_id: str, role: str, content: Content
) -> dict[str, Any]:
    """Return a message as a run takes it: pictures stay in it, files become uploads of the thread."""
    parts, files = parts_of(content)
    message: dict[str, Any] = {"role": role, "content": parts}
    if files:
        saved = await UploadService(runtime.paths, runtime.threads.repository).save(principal, thread_id, _each(files))
        await runtime.documents.begin(principal, thread_id, [one.upload for one in saved])
        uploaded = [
            {"filename": one.upload.filename, "size": one.upload.size, "path": one.upload.path} for one in saved
        ]
        message["additional_kwargs"] = {"files": [{**each, "status": "uploaded"} for each in uploaded]}
    return message


def parts_of(content: Content) -> tuple[Any, list[_File]]:
    """Return the texts and pictures of a content, and its files. Raises InvalidRequestError."""
    if not isinstance(content, list):
        return content or "", []
    parts: list[dict[str, Any]] = []
    files: list[_File] = []
    for part in content:
        kind = part.get("type")
        if kind in ("text", "input_text", "output_text"):
            parts.append({"type": "text", "text": str(part.get("text") or "")})
        elif kind in ("image_url", "input_image"):
            given = part.get("image_url")
            parts.append({"type": "image_url", "image_url": given if isinstance(given, dict) else {"url": given}})
        elif kind in ("file", "input_file"):
            files.append(_file(part.get("file") or part))
        else:
            raise InvalidRequestError(f"Content of type {kind!r} is not supported: use text, images and files.")
    return parts, files


def input_item(message_id: str, message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message of a run as an item of a response's input."""
    role, content = message["role"], message["content"]
    word = "output_text" if role == "assistant" else "input_text"
    given: list[dict[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    parts: list[dict[str, Any]] = [
        {"type": "input_image", "detail": "auto", "image_url": part["image_url"].get("url")}
        if part["type"] == "image_url"
        else {"type": word, "text": part["text"]}
        for part in given
    ]
    files = (message.get("additional_kwargs") or {}).get("files") or ()
    parts += [{"type": "input_file", "filename": file["filename"]} for file in files]
    return {"id": f"msg_{message_id}", "type": "message", "role": role, "status": "completed", "content": parts}


@dataclass
class _File:
    filename: str
    data: bytes

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self.data


async def _each(files: Sequence[_File]) -> AsyncIterator[_File]:
    for file in files:
        yield file


def _file(given: Mapping[str, Any]) -> _File:
    data = str(given.get("file_data") or "")
    try:
        return _File(str(given.get("filename") or "file"), b64decode(data.rpartition(",")[2], validate=True))
    except (binascii.Error, ValueError) as error:
        raise InvalidRequestError(
            "file_data must be base64, as a data URL or alone; file ids are not known."
        ) from error


def text_of(content: Content) -> str:
    """Return the texts of a content, a line each."""
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if part.get("text"))
    return content or ""


def json_wanted(schema: Mapping[str, Any]) -> str:
    """Return the request for JSON of a schema."""
    shown = json.dumps(schema, ensure_ascii=False)
    return f"Your final answer must be JSON alone, without other text or a code fence, valid for this JSON schema:\n{shown}"


def json_text(answer: str) -> str:
    """Return the JSON of an answer. Raises ValueError."""
    return json.dumps(json_in(answer), ensure_ascii=False)
