"""What kind of file a name and its first bytes stand for: the same on every machine, whatever its tables of types say."""

from __future__ import annotations

import codecs
from pathlib import PurePosixPath

SNIFF_BYTES = 8192

BINARY = "application/octet-stream"

_TYPES = {
    "text/html": "html htm",
    "application/xhtml+xml": "xhtml xht",
    "image/svg+xml": "svg",
    "text/xml": "xml xsl xslt",
    "text/css": "css",
    "text/javascript": "js mjs cjs",
    "text/markdown": "md markdown",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "text/calendar": "ics",
    "text/plain": "txt log ini cfg conf toml yaml yml py pyi ipynb rs go java c h cpp hpp cc rb php pl sh bash zsh sql ts tsx "
    "jsx vue svelte r lua swift kt scala tex bib rst diff patch env srt vtt jsonl ndjson map",
    "application/json": "json geojson webmanifest",
    "application/pdf": "pdf",
    "application/wasm": "wasm",
    "image/png": "png",
    "image/jpeg": "jpg jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/avif": "avif",
    "image/bmp": "bmp",
    "image/x-icon": "ico",
    "image/tiff": "tif tiff",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/ogg": "ogg oga opus",
    "audio/flac": "flac",
    "audio/mp4": "m4a",
    "video/mp4": "mp4 m4v",
    "video/webm": "webm",
    "video/quicktime": "mov",
    "font/woff": "woff",
    "font/woff2": "woff2",
    "font/ttf": "ttf",
    "font/otf": "otf",
    "application/zip": "zip skill",
    "application/gzip": "gz tgz",
    "application/x-tar": "tar",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "application/msword": "doc",
    "application/vnd.ms-excel": "xls",
    "application/vnd.ms-powerpoint": "ppt",
    "application/epub+zip": "epub",
}
_BY_SUFFIX = {suffix: kind for kind, suffixes in _TYPES.items() for suffix in suffixes.split()}


def media_type(name: str, head: bytes = b"") -> str:
    """The media type, without parameters, of a file called ``name`` that begins with ``head``.

    A name that tells nothing is judged by ``head``: text if it is UTF-8 without NUL, else bytes. An empty one is bytes.
    """
    known = _BY_SUFFIX.get(PurePosixPath(name).suffix[1:].lower())
    if known is not None:
        return known
    return "text/plain" if head and b"\0" not in head and charset(head) == "utf-8" else BINARY


def charset(head: bytes) -> str | None:
    """The encoding of text that begins with ``head``; None if it is neither UTF-8 nor marked as UTF-16."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        # The last character may be cut.
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return None
    return "utf-8"
