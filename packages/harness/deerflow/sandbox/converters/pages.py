"""Read a page or text of the web, inside a converter."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from deerflow.security.html import decoded, readable

_SAMPLE = "<title>A</title><article><h1>A</h1><p>One <a href='/b'>sentence</a> to begin with.</p></article>" * 3
_IS_PAGE = re.compile(r"\s*<(?:!doctype html|html)\b", re.IGNORECASE)


def warm(**_: Any) -> None:
    """Load the libraries, and what they load with their first page."""
    _load()


@cache
def _load() -> None:
    readable(_SAMPLE, "https://example.org/")


def work(data: bytes, *, charset: str, url: str | None, html: bool) -> tuple[dict[str, Any], bytes]:
    """Return what the page says of itself, and the text in UTF-8. ``html``: it is a page, whatever it begins with."""
    text = decoded(data, charset)
    if not html and not _IS_PAGE.match(text[:1000]):
        return {"plain": True}, text.encode("utf-8", "replace")
    page = readable(text, url)
    about = {"title": page.title, "links": page.links, "head": page.head._asdict(), "scripted": page.scripted}
    return about, page.text.encode("utf-8", "replace")
