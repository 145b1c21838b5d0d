"""``view_image``: put a picture from the sandbox before the model's eyes."""

from __future__ import annotations

import asyncio
import posixpath
import re
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import ToolException
from langgraph.types import Command
from pydantic import Field

from deerflow.context import RunContext
from deerflow.sandbox.converters import UnreadableError
from deerflow.sandbox.converters.pictures import MAX_BYTES, digest, is_document, mime_type_of
from deerflow.sandbox.interface import OUTPUTS, UPLOADS, WORKSPACE, Sandbox, SandboxError
from deerflow.tools.decorator import Runtime, async_tool
from deerflow.tools.shell import absolute

ROOTS = (WORKSPACE, UPLOADS, OUTPUTS)
COPIES = f"{WORKSPACE}/.viewed-images"
"""What was shown, by content: the thread shows the same bytes when the file has long changed."""


@async_tool("view_image")
async def view_image_tool(
    image_path: Annotated[str, Field(description="A picture in /mnt/user-data, or a page of a PDF: report.pdf#page=3")],
    runtime: Runtime,
) -> Command[Any]:
    """Look at an image file of any usual format, or at a page of a PDF. It is shown to you after this call."""
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
    sandbox = await context.sandbox()
    found = _PAGE.fullmatch(image_path)
    path, page = _checked_path(found[1] if found else image_path), int(found[2]) if found else 0
    data = await _read(sandbox, path)
    is_pdf = is_document(data)
    if not is_pdf and mime_type_of(data) is None:
        raise ValueError(f"{path} is no picture: it is none of {TAKEN}. Convert it first.")
    if is_pdf and not page:
        raise ValueError(f"{path} is a PDF: name the page that you want to see, {path}#page=1.")
    try:
        picture = await keep_picture(context, data, page=page)
    except ValueError as error:
        raise ValueError(f"{path} cannot be shown: {error}") from error
    return {**picture, "path": f"{path}#page={page}" if page else path}


async def keep_picture(context: RunContext, data: bytes, mime_type: str = "", *, page: int = 0) -> dict[str, str]:
    """Keep a picture as models can take it, and describe it: ``path``, ``mime_type``, ``stored``, ``about``.

    Args:
        mime_type: counts for nothing: what a picture is its bytes tell.
        page: of a PDF or TIFF; 0: the first one of a picture.

    Raises:
        ValueError: it cannot be shown.
        SandboxError: it cannot be kept.
    """
    if len(data) > MAX_BYTES:
        raise ValueError("it is too large.")
    try:
        picture = await context.reader().picture(data, context.principal.user_id, page=page)
    except UnreadableError as error:
        raise ValueError(f"the picture {error}" if mime_type_of(data) else f"it {error}") from error
    sandbox = await context.sandbox()
    name = await asyncio.to_thread(digest, data) + (f"-{page}" if page else "")
    stored = f"{COPIES}/{name}{_EXTENSIONS[picture.mime_type]}"
    if await sandbox.stat(stored) is None:
        await sandbox.write(stored, picture.data)
    return {"path": stored, "mime_type": picture.mime_type, "stored": stored, "about": picture.about}


async def sent_picture(context: RunContext, path: str, known: str) -> tuple[str, bytes]:
    """Return type and bytes of an upload's picture as models can take it; the same ones in every request of a thread.

    Args:
        path: of the upload.
        known: the digest of what it held when it was sent.

    Raises:
        ValueError: it cannot be shown, or holds something else meanwhile.
        SandboxError: it cannot be read.
    """
    sandbox = await context.sandbox()

    async def unchanged() -> bytes:
        data = await _read(sandbox, path)
        if await asyncio.to_thread(digest, data) != known:
            raise ValueError("the file has changed since it was sent.")
        return data

    mime_type, stored = await kept_copy(context, known, unchanged)
    return mime_type, (await sandbox.read(stored))[0]


async def kept_copy(context: RunContext, known: str, read: Callable[[], Awaitable[bytes]]) -> tuple[str, str]:
    """Return type and path of a picture's copy as models can take it, made if it is not there yet.

    Args:
        known: the digest of the picture.
        read: returns it.

    Raises:
        ValueError: it cannot be shown, which is remembered.
        SandboxError: it cannot be read or kept.
    """
    sandbox = await context.sandbox()
    for mime_type, ending in _EXTENSIONS.items():
        if await sandbox.stat(stored := f"{COPIES}/{known}{ending}") is not None:
            return mime_type, stored
    if await sandbox.stat(refused := f"{COPIES}/{known}.txt") is not None:
        raise ValueError((await sandbox.read(refused))[0].decode("utf-8", "replace"))
    data = await read()
    try:
        kept = await keep_picture(context, data)
    except ValueError as error:
        if (await asyncio.to_thread(context.reader().describe))[1]:  # else it is our lack, which may end
            await sandbox.write(refused, str(error).encode())
        raise
    return kept["mime_type"], kept["stored"]


def _checked_path(image_path: str) -> str:
    path = posixpath.normpath(absolute(image_path))
    if not any(path.startswith(root + "/") for root in ROOTS):
        raise ValueError(f"Only images in {', '.join(ROOTS)} can be viewed, not {image_path}.")
    return path


async def _read(sandbox: Sandbox, path: str) -> bytes:
    entry = await sandbox.stat(path)
    if entry is None:
        raise ValueError(f"Image file not found: {path}")
    if entry.kind != "file":
        raise ValueError(f"Path is not a file: {path}")
    if entry.size > MAX_BYTES:
        raise ValueError(f"{path} is too large: {entry.size} bytes, the limit is {MAX_BYTES}. Make it smaller first.")
    data, _ = await sandbox.read(path, limit=MAX_BYTES)
    return data


TAKEN = "JPEG, PNG, WebP, GIF, BMP, TIFF, AVIF, HEIC or PDF"
_PAGE = re.compile(r"(.+)#page=(\d{1,6})")
_EXTENSIONS = {"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp"}
