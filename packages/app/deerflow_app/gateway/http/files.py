"""An open file as an HTTP answer: parts of it, nothing if the client has it already, and never more memory than a chunk."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import AsyncGenerator, Mapping
from email.utils import formatdate, parsedate
from typing import Literal
from urllib.parse import quote, unquote_to_bytes

from starlette.convertors import PathConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from deerflow.files.content import FileContent, charset

CHUNK = 1 << 19

_RANGE = re.compile(r"bytes=\s*(\d{0,18})-(\d{0,18})\s*")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def file_response(
    request: Request, content: FileContent, *, media_type: str, headers: Mapping[str, str], status_code: int = 200
) -> Response:
    """Answer GET or HEAD with ``content``, which is closed at the end.

    Understands If-None-Match, If-Modified-Since, and one Range with If-Range; several ranges get the whole (RFC 9110).
    """
    all_headers = {**headers, "content-type": media_type, "x-content-type-options": "nosniff", "etag": content.etag}
    all_headers["last-modified"] = formatdate(content.modified, usegmt=True)
    all_headers["accept-ranges"] = "bytes"
    if status_code == 200 and _is_fresh(request, content, all_headers["last-modified"]):
        content.close()
        del all_headers["content-type"], all_headers["accept-ranges"]
        return Response(status_code=304, headers=all_headers)
    start, end = 0, content.size
    if status_code == 200 and request.method == "GET" and _wants_part(request, content, all_headers["last-modified"]):
        part = _range(request.headers["range"], content.size)
        if part is not None and part[0] >= part[1]:
            content.close()
            body = {"detail": f"The file has {content.size} bytes.", "code": "range_not_satisfiable"}
            return JSONResponse(body, 416, headers={"content-range": f"bytes */{content.size}"})
        if part is not None:
            status_code, (start, end) = 206, part
            all_headers["content-range"] = f"bytes {start}-{end - 1}/{content.size}"
    all_headers["content-length"] = str(end - start)
    if request.method == "HEAD":
        content.close()
        return Response(status_code=status_code, headers=all_headers)
    return StreamingResponse(_body(content, start, end), status_code, headers=all_headers)


async def _body(content: FileContent, offset: int, end: int) -> AsyncGenerator[bytes, None]:
    try:
        while offset < end:
            chunk = await asyncio.to_thread(content.read, offset, min(CHUNK, end - offset))
            if not chunk:
                # The length is announced: only a broken connection tells the client that this is not all.
                raise RuntimeError("The file became shorter while it was sent.")
            offset += len(chunk)
            yield chunk
    finally:
        content.close()


def _is_fresh(request: Request, content: FileContent, last_modified: str) -> bool:
    known = request.headers.get("if-none-match")
    if known is not None:
        return known.strip() == "*" or content.etag in [tag.strip().removeprefix("W/") for tag in known.split(",")]
    since, modified = parsedate(request.headers.get("if-modified-since")), parsedate(last_modified)
    return since is not None and modified is not None and modified <= since


def _wants_part(request: Request, content: FileContent, last_modified: str) -> bool:
    if "range" not in request.headers:
        return False
    return request.headers.get("if-range", content.etag) in (content.etag, last_modified)


def _range(header: str, size: int) -> tuple[int, int] | None:
    """First byte and the one behind the last; empty if nothing is there; None for what is to be ignored."""
    found = _RANGE.fullmatch(header.strip().lower())
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if not first:
        return max(0, size - int(last)), size
    if last and int(last) < int(first):
        return None
    return int(first), min(int(last) + 1, size) if last else size


def with_charset(media_type: str, head: bytes, known: str | None = None) -> str:
    """``media_type`` with the encoding of the text that begins with ``head``: the one that is ``known``, or that is plain."""
    found = (known or charset(head)) if media_type.startswith("text/") else None
    return f"{media_type}; charset={found}" if found else media_type


def content_disposition(kind: Literal["inline", "attachment"], name: str) -> str:
    """The header for a file of any name (RFC 6266): nothing in it breaks the header or shows another extension."""
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    text = "".join("_" if unicodedata.category(char) in _HIDDEN or char in '/\\"' else char for char in text) or "file"
    plain = text.encode("ascii", "replace").decode().replace("?", "_").replace("%", "_")
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{quote(text, safe='')}"


def raw_path_after(request: Request, marker: str, fallback: str) -> str:
    """The path of the request behind ``marker``; bytes that are not UTF-8 become lone surrogates, as file names have them.

    ``fallback``: the path as the router has decoded it, for a server that does not tell the bytes.
    """
    _, found, tail = request.scope.get("raw_path", b"").partition(b"?")[0].partition(marker.encode())
    return unquote_to_bytes(tail).decode("utf-8", "surrogateescape") if found else fallback


FILE_PATH = "{path:file}"
"""As ``{path:path}``, but a file's name may hold line breaks."""
WEB_PATH = "{path:web}"
"""Nothing of the API, where a wrong path or method has to be told as JSON and not as a page."""


class _FilePath(PathConvertor):
    regex = r"(?s:.*)"


class _WebPath(PathConvertor):
    regex = r"(?!(?:api|preview|health)(?:/|$))(?s:.*)"


register_url_convertor("file", _FilePath())
register_url_convertor("web", _WebPath())
