"""Jina's reader, which works without a key, seldom, and its search. https://jina.ai/reader"""

from __future__ import annotations

from functools import partial

from deerflow.community.web import Api, Options, fetch_tool, found, search_tool
from deerflow.security.html import readable

_jina = partial(Api, "Jina", key="JINA_API_KEY")


def _headers(options: Options, **more: str) -> dict[str, str | None]:
    key = options["api_key"]
    return {**more, "Authorization": f"Bearer {key}" if key else None}


def _reading(options: Options) -> dict[str, str | None]:
    return _headers(options, **{"X-Return-Format": "html", "X-Timeout": str(int(options["timeout"]))})


def _searching(options: Options) -> dict[str, str | None]:
    return _headers(options, **{"Accept": "application/json", "X-Respond-With": "no-content"})


web_search_tool = search_tool(
    _jina(
        "https://s.jina.ai/",
        lambda query, o: {"headers": _searching(o), "json": {"q": query, "num": o["max_results"]}},
        found("data", title="title", url="url", snippet="description"),
    )
)
web_fetch_tool = fetch_tool(
    _jina(
        "https://r.jina.ai/",
        lambda url, o: {"headers": _reading(o), "json": {"url": url}},
        readable,
        needs_key=False,
    )
)
