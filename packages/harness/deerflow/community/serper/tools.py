"""Google by Serper. https://serper.dev"""

from __future__ import annotations

from functools import partial
from typing import Any

from deerflow.community.web import LETTERS, Api, Options, found, image_tool, search_tool

_serper = partial(Api, "Serper", key="SERPER_API_KEY", key_header="X-API-KEY")


def _content(query: str, options: Options) -> dict[str, Any]:
    period = f"qdr:{LETTERS[options['period']]}" if options["period"] else None
    return {"q": query, "num": options["max_results"], "tbs": period}


web_search_tool = search_tool(
    _serper(
        "https://google.serper.dev/search",
        _content,
        found("organic", title="title", url="link", snippet="snippet", published="date"),
    )
)
image_search_tool = image_tool(
    _serper(
        "https://google.serper.dev/images",
        _content,
        found(
            "images",
            title="title",
            image_url="imageUrl",
            thumbnail_url="thumbnailUrl",
            source_url="link",
            width="imageWidth",
            height="imageHeight",
        ),
    )
)
