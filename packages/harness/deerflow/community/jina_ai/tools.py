"""Jina's reader, which works without a key, seldom, and its search. https://jina.ai/reader"""

from functools import partial

from deerflow.community.web import Api, fetch_tool, found, search_tool

_jina = partial(Api, "Jina", key="JINA_API_KEY")

web_search_tool = search_tool(
    _jina(
        "https://s.jina.ai/",
        lambda query, options: {"q": query, "num": options["max_results"]},
        found("data", title="title", url="url", snippet="description", published="date"),
        headers=lambda _: {"Accept": "application/json", "X-Respond-With": "no-content"},
    ),
    takes_period=False,
)
web_fetch_tool = fetch_tool(
    _jina(
        "https://r.jina.ai/",
        lambda url, options: {"url": url},
        str,
        needs_key=False,
        headers=lambda options: {"X-Return-Format": "html", "X-Timeout": str(int(options["timeout"]))},
    )
)
