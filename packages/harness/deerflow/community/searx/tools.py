"""A SearXNG of your own; pages are read by DeerFlow itself. https://docs.searxng.org/dev/search_api.html"""

from __future__ import annotations

from functools import partial
from typing import Any

from deerflow.community.web import Api, Options, fetch_tool, found, image_tool, search_tool

_searx = partial(Api, "SearXNG", "/search", method="GET")


def _content(query: str, options: Options) -> dict[str, Any]:
    names = ("language", "safesearch", "time_range", "categories", "engines")
    asked = {"q": query, "format": "json", **{name: options[name] for name in names}}
    return {**asked, "time_range": options["period"]} if options["period"] else asked


web_search_tool = search_tool(
    _searx(_content, found("results", title="title", url="url", snippet="content", published="publishedDate"))
)
image_search_tool = image_tool(
    _searx(
        lambda query, options: {**_content(query, options), "categories": "images"},
        found(
            "results",
            title="title",
            image_url="img_src",
            thumbnail_url="thumbnail_src",
            source_url="url",
            resolution="resolution",
        ),
    )
)
web_fetch_tool = fetch_tool()
