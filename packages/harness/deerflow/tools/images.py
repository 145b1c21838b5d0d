"""``view_image``: put a picture from the sandbox before the model's eyes."""

from __future__ import annotations

import asyncio
import hashlib
import io
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import ToolException
from langgraph.types import Command
from pydantic import Field

from deerflow.sandbox.interface import OUTPUTS, UPLOADS, WORKSPACE, Sandbox, SandboxError
from deerflow.tools.decorator import Runtime, async_tool
from deerflow.tools.shell import absolute

if TYPE_CHECKING:
    from PIL import Image

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
        image = await _shown(await runtime.context.sandbox(), image_path)
    except (SandboxError, ValueError) as error:
        raise ToolException(f"Error: {error}") from error
    message = ToolMessage(
        f"Successfully read image: {image.pop('about')}",
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
        return {**await keep_picture(sandbox, data, mime_type), "path": path}
    except ValueError as error:
        raise ValueError(f"{path} cannot be shown: {error}.") from error


async def keep_picture(sandbox: Sandbox, data: bytes, mime_type: str) -> dict[str, str]:
    """Keep a picture in the sandbox, and describe it: ``path``, ``mime_type``, ``stored``, ``about``. Raises ValueError, SandboxError."""
    if len(data) > MAX_FILE_BYTES:
        raise ValueError("it is too large")
    picture = await asyncio.to_thread(prepare, data, mime_type)
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
MAX_SENT_BYTES = 400_000
"""Each request carries the picture again, until it leaves."""
MAX_SIDE = 2000
"""Pixels. Providers scale larger ones down, or refuse them when there are many."""

MIME_TYPES = {".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".webp": "image/webp"}
_EXTENSIONS = {"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp"}


@dataclass(frozen=True, slots=True)
class Picture:
    """Bytes fit to be sent."""

    data: bytes
    mime_type: str
    about: str
    """Its size, and what was done to it."""


def mime_type_of(data: bytes) -> str | None:
    """The picture's type by its first bytes."""
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def prepare(data: bytes, mime_type: str) -> Picture:
    """Decode a picture and make it smaller if need be. CPU work: not for an event loop.

    Raises:
        ValueError: the picture is damaged or has too many pixels.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data)) as image:
            image.load()
            about = f"{image.width} x {image.height} pixels, {len(data) / 1000:.0f} kB"
            if max(image.size) <= MAX_SIDE and len(data) <= MAX_SENT_BYTES:
                return Picture(data, mime_type, about)
            return _smaller(image, about)
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError) as error:
        raise ValueError(f"the picture cannot be decoded ({type(error).__name__})") from error


def _smaller(image: Image.Image, about: str) -> Picture:
    image.thumbnail((MAX_SIDE, MAX_SIDE))
    alpha = image.mode in ("RGBA", "LA", "P", "PA")
    data, kind = (_encoded(image.convert("RGBA"), "PNG", optimize=True), "PNG") if alpha else (b"", "JPEG")
    while not 0 < len(data) <= MAX_SENT_BYTES:
        data, kind = _encoded(image.convert("RGB"), "JPEG", quality=80), "JPEG"
        if len(data) > MAX_SENT_BYTES:
            image.thumbnail((image.width * 3 // 4, image.height * 3 // 4))
    about += f"; shown to you as {kind}, {image.width} x {image.height} pixels, {len(data) / 1000:.0f} kB"
    return Picture(data, f"image/{kind.lower()}", about)


def _encoded(image: Image.Image, form: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()
