"""Firecrawl. https://docs.firecrawl.dev/api-reference"""

from functools import partial

from deerflow.community.web import LETTERS, Api, fetch_tool, found, search_tool
from deerflow.security.html import Page

_firecrawl = partial(Api, "Firecrawl", key="FIRECRAWL_API_KEY")

web_search_tool = search_tool(
    _firecrawl(
        "https://api.firecrawl.dev/v2/search",
        lambda query, options: {
            "query": query,
            "limit": options["max_results"],
            "tbs": f"qdr:{LETTERS[options['period']]}" if options["period"] else None,
        },
        found("data.web", title="title", url="url", snippet="description", published="date"),
    )
)
web_fetch_tool = fetch_tool(
    _firecrawl(
        "https://api.firecrawl.dev/v2/scrape",
        lambda url, options: {"url": url, "formats": ["markdown"]},
        lambda answer: Page(answer["data"]["metadata"].get("title") or "", answer["data"]["markdown"]),
    )
)
