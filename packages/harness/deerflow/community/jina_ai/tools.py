"""Jina's reader. Works without a key, seldom. https://jina.ai/reader"""

from __future__ import annotations

from deerflow.community.web import Api, Options, fetch_tool
from deerflow.security.html import readable


def _headers(options: Options) -> dict[str, str | None]:
    key = options["api_key"]
    return {
        "X-Return-Format": "html",
        "X-Timeout": str(int(options["timeout"])),
        "Authorization": f"Bearer {key}" if key else None,
    }


web_fetch_tool = fetch_tool(
    Api(
        "Jina",
        "https://r.jina.ai/",
        lambda url, o: {"headers": _headers(o), "json": {"url": url}},
        readable,
        key="JINA_API_KEY",
        needs_key=False,
    )
)
