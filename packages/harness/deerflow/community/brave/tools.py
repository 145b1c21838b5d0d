"""Brave Search. https://api-dashboard.search.brave.com/app/documentation"""

from __future__ import annotations

from functools import partial
from typing import Any

from deerflow.community.web import LETTERS, Api, Options, found, image_tool, search_tool

_brave = partial(Api, "Brave Search", key="BRAVE_API_KEY", key_header="X-Subscription-Token", method="GET")


def _content(query: str, options: Options) -> dict[str, Any]:
    period = f"p{LETTERS[options['period']]}" if options["period"] else options["time_range"]
    return {"q": query, "count": options["max_results"], "freshness": period}


web_search_tool = search_tool(
    _brave(
        "https://api.search.brave.com/res/v1/web/search",
        _content,
        found("web.results", title="title", url="url", snippet="description", published="page_age"),
    )
)
image_search_tool = image_tool(
    _brave(
        "https://api.search.brave.com/res/v1/images/search",
        _content,
        found(
            "results",
            title="title",
            image_url="properties.url",
            thumbnail_url="thumbnail.src",
            source_url="url",
            width="properties.width",
            height="properties.height",
        ),
    )
)
