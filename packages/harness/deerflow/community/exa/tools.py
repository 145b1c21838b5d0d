"""Exa. https://docs.exa.ai/reference"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from deerflow.community.web import DAYS, Api, Options, fetch_tool, first_page, search_tool

_exa = partial(Api, "Exa", key="EXA_API_KEY", key_header="x-api-key")


def _hits(answer: Any) -> list[dict[str, Any]]:
    return [
        {**hit, "snippet": "\n".join(hit.get("highlights") or ()), "published": hit.get("publishedDate")}
        for hit in answer["results"]
    ]


def _since(options: Options) -> str | None:
    """The day at which a period begins."""
    return (datetime.now(UTC) - timedelta(DAYS[options["period"]])).strftime("%Y-%m-%d") if options["period"] else None


web_search_tool = search_tool(
    _exa(
        "https://api.exa.ai/search",
        lambda query, options: {
            "query": query,
            "type": options["search_type"] or "auto",
            "numResults": options["max_results"],
            "startPublishedDate": _since(options),
            "includeDomains": [options["site"]] if options["site"] else None,
            "contents": {"highlights": {"maxCharacters": 1000}},
        },
        _hits,
    ),
    takes_site=True,
)
web_fetch_tool = fetch_tool(
    _exa(
        "https://api.exa.ai/contents",
        lambda url, options: {"urls": [url], "text": {"maxCharacters": 200_000}},
        first_page("Exa", "text"),
    )
)
