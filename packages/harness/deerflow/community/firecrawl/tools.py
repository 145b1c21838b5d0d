"""Firecrawl. https://docs.firecrawl.dev/api-reference"""

from __future__ import annotations

from functools import partial
from typing import Any

from deerflow.community.web import Api, Options, fetch_tool, found, search_tool
from deerflow.security.html import Page

_firecrawl = partial(Api, "Firecrawl", key="FIRECRAWL_API_KEY")


def _request(options: Options, **body: Any) -> dict[str, Any]:
    return {"headers": {"Authorization": f"Bearer {options['api_key']}"}, "json": body}


web_search_tool = search_tool(
    _firecrawl(
        "https://api.firecrawl.dev/v2/search",
        lambda query, o: _request(o, query=query, limit=o["max_results"]),
        found("data.web", title="title", url="url", snippet="description"),
    )
)
web_fetch_tool = fetch_tool(
    _firecrawl(
        "https://api.firecrawl.dev/v2/scrape",
        lambda url, o: _request(o, url=url, formats=["markdown"]),
        lambda answer: Page(answer["data"]["metadata"].get("title") or "", answer["data"]["markdown"]),
    )
)
