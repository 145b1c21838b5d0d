"""``view_image``: put a picture from the sandbox before the model's eyes."""

from __future__ import annotations

import asyncio
import hashlib
import posixpath
from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langgraph.types import Command
from pydantic import Field

from deerflow.sandbox.interface import OUTPUTS, UPLOADS, WORKSPACE, Sandbox, SandboxError
from deerflow.tools.builtins.image_file import MAX_FILE_BYTES, MIME_TYPES, mime_type_of, prepare
from deerflow.tools.decorator import Runtime, async_tool

ROOTS = (WORKSPACE, UPLOADS, OUTPUTS)
COPIES = f"{WORKSPACE}/.viewed-images"
"""What was shown, by content: the thread shows the same bytes when the file has long changed."""


@async_tool("view_image")
async def view_image_tool(
    image_path: Annotated[str, Field(description="Absolute path of a .jpg, .png or .webp file in /mnt/user-data")],
    runtime: Runtime,
) -> Command[Any]:
    """Look at an image file. It is shown to you after this call."""
    try:
        image = await _shown(await runtime.context.sandbox(), image_path)
    except (SandboxError, ValueError) as error:
        message = ToolMessage(
            f"Error: {error}", name="view_image", tool_call_id=runtime.tool_call_id or "", status="error"
        )
        return Command(update={"messages": [message]})
    message = ToolMessage(
        "Successfully read image",
        name="view_image",
        tool_call_id=runtime.tool_call_id or "",
        additional_kwargs={"image": image},
    )
    return Command(update={"viewed_images": {image["path"]: {"mime_type": image["mime_type"]}}, "messages": [message]})


async def _shown(sandbox: Sandbox, image_path: str) -> dict[str, str]:
    """Check the file, keep a copy of what will be shown, and describe it: ``path``, ``mime_type``, ``stored``."""
    path = _checked_path(image_path)
    data = await _read(sandbox, path)
    mime_type = mime_type_of(data)
    if mime_type is None or mime_type != MIME_TYPES[posixpath.splitext(path)[1].lower()]:
        raise ValueError(f"{path} is {mime_type or 'no supported image'}, which does not match its extension.")
    try:
        picture = await asyncio.to_thread(prepare, data, mime_type)
    except ValueError as error:
        raise ValueError(f"{path} cannot be shown: {error}.") from error
    digest = hashlib.sha256(picture.data).hexdigest()[:32]
    stored = f"{COPIES}/{digest}{picture.extension}"
    if await sandbox.stat(stored) is None:
        await sandbox.write(stored, picture.data)
    return {"path": path, "mime_type": picture.mime_type, "stored": stored}


def _checked_path(image_path: str) -> str:
    path = posixpath.normpath(image_path)
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
    data, size = await sandbox.read(path, limit=MAX_FILE_BYTES)
    if size > MAX_FILE_BYTES:
        raise ValueError(f"{path} grew beyond {MAX_FILE_BYTES} bytes while it was read.")
    return data
