"""``view_image``: put a picture from the sandbox before the model's eyes."""

from __future__ import annotations

import hashlib
import posixpath
from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import ToolException
from langgraph.types import Command
from pydantic import Field

from deerflow.context import RunContext
from deerflow.sandbox.converters import UnreadableError
from deerflow.sandbox.interface import OUTPUTS, UPLOADS, WORKSPACE, Sandbox, SandboxError
from deerflow.tools.decorator import Runtime, async_tool
from deerflow.tools.shell import absolute

ROOTS = (WORKSPACE, UPLOADS, OUTPUTS)
COPIES = f"{WORKSPACE}/.viewed-images"
"""What was shown, by content: the thread shows the same bytes when the file has long changed."""


@async_tool("view_image")
async def view_image_tool(
    image_path: Annotated[str, Field(description="Path of a .jpg, .png or .webp file in /mnt/user-data")],
    runtime: Runtime,
) -> Command[Any]:
    """Look at an image file. It is shown to you after this call."""
    try:
        image = await _shown(runtime.context, image_path)
    except (SandboxError, ValueError) as error:
        raise ToolException(f"Error: {error}") from error
    message = ToolMessage(
        f"Successfully read image: {image.pop('about')}",
        name="view_image",
        tool_call_id=runtime.tool_call_id or "",
        additional_kwargs={"image": image},
    )
    return Command(update={"viewed_images": {image["path"]: {"mime_type": image["mime_type"]}}, "messages": [message]})


async def _shown(context: RunContext, image_path: str) -> dict[str, str]:
    """Check the file, keep a copy of what will be shown, and describe it: ``path``, ``mime_type``, ``stored``."""
    sandbox, path = await context.sandbox(), _checked_path(image_path)
    data = await _read(sandbox, path)
    mime_type = mime_type_of(data)
    if mime_type is None or mime_type != MIME_TYPES[posixpath.splitext(path)[1].lower()]:
        raise ValueError(f"{path} is {mime_type or 'no supported image'}, which does not match its extension.")
    try:
        return {**await keep_picture(context, data, mime_type), "path": path}
    except ValueError as error:
        raise ValueError(f"{path} cannot be shown: {error}") from error


async def keep_picture(context: RunContext, data: bytes, mime_type: str) -> dict[str, str]:
    """Keep a picture in the sandbox, and describe it: ``path``, ``mime_type``, ``stored``, ``about``. Raises ValueError, SandboxError."""
    if len(data) > MAX_FILE_BYTES:
        raise ValueError("it is too large.")
    try:
        picture = await context.reader().picture(data, mime_type, context.principal.user_id)
    except UnreadableError as error:
        raise ValueError(f"the picture {error}") from error
    sandbox = await context.sandbox()
    digest = hashlib.sha256(picture.data).hexdigest()[:32]
    stored = f"{COPIES}/{digest}{_EXTENSIONS[picture.mime_type]}"
    if await sandbox.stat(stored) is None:
        await sandbox.write(stored, picture.data)
    return {"path": stored, "mime_type": picture.mime_type, "stored": stored, "about": picture.about}


def _checked_path(image_path: str) -> str:
    path = posixpath.normpath(absolute(image_path))
    if not any(path.startswith(root + "/") for root in ROOTS):
        raise ValueError(f"Only images in {', '.join(ROOTS)} can be viewed, not {image_path}.")
    if posixpath.splitext(path)[1].lower() not in MIME_TYPES:
        raise ValueError(f"Unsupported image format: {path}. Supported: {', '.join(MIME_TYPES)}. Convert it first.")
    return path


async def _read(sandbox: Sandbox, path: str) -> bytes:
    entry = await sandbox.stat(path)
    if entry is None:
        raise ValueError(f"Image file not found: {path}")
    if entry.kind != "file":
        raise ValueError(f"Path is not a file: {path}")
    if entry.size > MAX_FILE_BYTES:
        raise ValueError(
            f"{path} is too large: {entry.size} bytes, the limit is {MAX_FILE_BYTES}. Make it smaller first."
        )
    data, _ = await sandbox.read(path, limit=MAX_FILE_BYTES)
    return data


MAX_FILE_BYTES = 20 * 1024 * 1024

MIME_TYPES = {".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".webp": "image/webp"}
_EXTENSIONS = {"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp"}


def mime_type_of(data: bytes) -> str | None:
    """The picture's type by its first bytes."""
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None
