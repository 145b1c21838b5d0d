"""Tavily. https://docs.tavily.com/documentation/api-reference"""

from __future__ import annotations

from functools import partial
from typing import Any

from deerflow.community.fetcher import WebError
from deerflow.community.web import Api, Options, fetch_tool, found, search_tool
from deerflow.security.html import Page

_tavily = partial(Api, "Tavily", key="TAVILY_API_KEY")


def _headers(options: Options) -> dict[str, str]:
    return {"Authorization": f"Bearer {options['api_key']}"}


def _page(answer: Any) -> Page:
    if not answer["results"]:
        raise WebError("Tavily could not read this page.")
    return Page(answer["results"][0].get("title") or "", answer["results"][0]["raw_content"])


web_search_tool = search_tool(
    _tavily(
        "https://api.tavily.com/search",
        lambda query, o: {"headers": _headers(o), "json": {"query": query, "max_results": o["max_results"]}},
        found("results", title="title", url="url", snippet="content"),
    )
)
web_fetch_tool = fetch_tool(
    _tavily(
        "https://api.tavily.com/extract",
        lambda url, o: {"headers": _headers(o), "json": {"urls": [url], "format": "markdown"}},
        _page,
    )
)
