"""Files inside messages: one reading for the shapes in which clients put them there."""

from __future__ import annotations

import base64
import binascii
import mimetypes
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from deerflow.sandbox.converters.pictures import mime_type_of

PICTURE_TYPES = ("image", "image_url", "input_image")
_TYPES = (*PICTURE_TYPES, "file", "input_file", "document", "media")
_ENDINGS = {"image/jpeg": ".jpg", "image/heic": ".heic", "image/avif": ".avif", "image/webp": ".webp"}
"""Those that a machine's own table may lack or call otherwise."""


@dataclass(frozen=True, slots=True)
class FileBlock:
    """A file in a message.

    Args:
        kind: type of its block.
        address: where it stands: an address of the web, or a data URL.
        data: its content in base64, if it came with the message outside of an address.
        text: its content, if it came as text.
        name: that the client gives it; may be empty.
        media_type: that the client states; may be empty.
    """

    kind: str
    address: str = ""
    data: str = ""
    text: str = ""
    name: str = ""
    media_type: str = ""

    @property
    def is_picture(self) -> bool:
        """True if the client says that it is one."""
        return self.kind in PICTURE_TYPES or self.media_type.startswith("image/")

    @property
    def is_elsewhere(self) -> bool:
        return not self.data and not self.text and not self.address.startswith("data:")

    def content(self) -> bytes:
        """Return the bytes that came with the message. Raises ValueError: says what is wrong."""
        if self.text:
            return self.text.encode("utf-8", "replace")
        head, _, data = self.address.partition(",")
        try:
            if self.data:
                found = base64.b64decode(self.data, validate=True)
            elif head.endswith(";base64"):
                found = base64.b64decode(unquote_to_bytes(data), validate=True)
            else:
                found = unquote_to_bytes(data)
        except (binascii.Error, ValueError):
            raise ValueError("its data is not base64.") from None
        if not found:
            raise ValueError("it is empty.")
        return found

    def filename(self, data: bytes, digest: str) -> str:
        """Return a name for the file with this content: the client's, which tells nothing of the content, and its digest."""
        path = PurePosixPath(self.name or urlsplit(self.address).path if self.is_elsewhere else self.name)
        kind = mime_type_of(data)
        ending = _ENDINGS.get(kind, "") or mimetypes.guess_extension(kind) if kind else path.suffix
        ending = ending or mimetypes.guess_extension(self.media_type) or ""
        stem = re.sub(r"[/\\\0]", "_", path.stem).strip(". ")[:40] or ("picture" if kind else "file")
        return f"{stem}-{digest[:8]}{ending[:20]}"


def file_block(block: Any) -> FileBlock | None:
    """Return the file in a content block of OpenAI, Anthropic or LangChain (also of JavaScript and of earlier versions); None: there is none."""
    if not isinstance(block, Mapping) or (kind := block.get("type")) not in _TYPES:
        return None
    parts = [block, *(block[name] for name in ("source", "file", "image_url") if isinstance(block.get(name), Mapping))]
    inner: dict[str, Any] = {key: value for part in parts for key, value in part.items()}

    def first(*names: str) -> str:
        return next((inner[name] for name in names if inner.get(name) and isinstance(inner[name], str)), "")

    extra = next((inner[name] for name in ("metadata", "extras") if isinstance(inner.get(name), Mapping)), {})
    name = first("filename", "name") or next((str(extra[n]) for n in ("filename", "name") if extra.get(n)), "")
    address, media_type = first("url", "image_url", "file_url"), first("mime_type", "mimeType", "media_type")
    data, text = first("base64", "data", "file_data"), first("text")
    if data.startswith("data:"):
        address, data = data, ""
    if address.startswith("data:"):
        media_type = address[5:].partition(",")[0].partition(";")[0] or media_type
    if "text" in (block.get("source_type"), inner.get("type")):
        data, text = "", text or data
    return FileBlock(str(kind), address, data, text, name, media_type)
