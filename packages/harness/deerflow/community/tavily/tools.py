"""Tavily. https://docs.tavily.com/documentation/api-reference"""

from functools import partial

from deerflow.community.web import Api, fetch_tool, first_page, found, search_tool

_tavily = partial(Api, "Tavily", key="TAVILY_API_KEY")

web_search_tool = search_tool(
    _tavily(
        "https://api.tavily.com/search",
        lambda query, options: {
            "query": query,
            "max_results": options["max_results"],
            "time_range": options["period"],
            "include_domains": [options["site"]] if options["site"] else None,
        },
        found("results", title="title", url="url", snippet="content", published="published_date"),
    ),
    takes_site=True,
)
web_fetch_tool = fetch_tool(
    _tavily(
        "https://api.tavily.com/extract",
        lambda url, options: {"urls": [url], "format": "markdown"},
        first_page("Tavily", "raw_content"),
    )
)
