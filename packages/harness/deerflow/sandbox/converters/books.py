"""Read books (``.epub``): what is known of them, and their chapters in order."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from urllib.parse import unquote

from deerflow.sandbox.converters.markdown import line
from deerflow.sandbox.converters.parts import OfficeParts, local
from deerflow.sandbox.converters.program import Unreadable
from deerflow.security.html import decoded, markdown_of

_ABOUT = ("title", "creator", "date", "language", "publisher")


def read(data: bytes) -> Iterator[str]:
    """Yield the chapters."""
    parts = OfficeParts(data)
    container = parts.xml("META-INF/container.xml")
    place = (
        next((each.get("full-path") for each in container.iter() if local(each) == "rootfile"), "")
        if container is not None
        else ""
    )
    package = parts.xml(place or "")
    if package is None:
        raise Unreadable("holds no table of its chapters.")
    folder = posixpath.dirname(place)
    yield (
        "".join(
            f"**{local(each)}:** {line(each.text)}\n" for each in package.iter() if local(each) in _ABOUT and each.text
        )
        + "\n"
    )
    items = {each.get("id"): each.get("href") or "" for each in package.iter() if local(each) == "item"}
    for each in package.iter():
        if local(each) == "itemref" and (address := items.get(each.get("idref"))):
            chapter = parts.bytes(posixpath.normpath(posixpath.join(folder, unquote(address))))
            if text := markdown_of(decoded(chapter)).strip():
                yield f"{text}\n\n"
