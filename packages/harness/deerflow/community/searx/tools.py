"""A SearXNG of your own; pages are read by DeerFlow itself. https://docs.searxng.org/dev/search_api.html"""

from __future__ import annotations

from typing import Any

from deerflow.community.web import Api, Options, fetch_tool, found, image_tool, search_tool


def _request(query: str, options: Options, **more: Any) -> dict[str, Any]:
    names = ("language", "safesearch", "time_range", "categories", "engines")
    return {"params": {"q": query, "format": "json", **{name: options[name] for name in names}, **more}}


web_search_tool = search_tool(
    Api("SearXNG", "/search", _request, found("results", title="title", url="url", snippet="content"), method="GET")
)
image_search_tool = image_tool(
    Api(
        "SearXNG",
        "/search",
        lambda query, options: _request(query, options, categories="images"),
        found(
            "results",
            title="title",
            image_url="img_src",
            thumbnail_url="thumbnail_src",
            source_url="url",
            resolution="resolution",
        ),
        method="GET",
    )
)
web_fetch_tool = fetch_tool()
