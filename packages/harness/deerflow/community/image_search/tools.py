"""Pictures by DuckDuckGo, without an account."""

from deerflow.community.ddg_search.tools import by_library
from deerflow.community.web import image_tool

image_search_tool = image_tool(
    by_library(
        "images",
        lambda hit: {
            "title": hit["title"],
            "image_url": hit["image"],
            "thumbnail_url": hit["thumbnail"],
            "source_url": hit["url"],
            "width": hit.get("width"),
            "height": hit.get("height"),
        },
    )
)
