"""Exa. https://docs.exa.ai/reference"""

from __future__ import annotations

from functools import partial
from typing import Any

from deerflow.community.web import Api, fetch_tool, first_page, search_tool

_exa = partial(Api, "Exa", key="EXA_API_KEY", key_header="x-api-key")


def _hits(answer: Any) -> list[dict[str, Any]]:
    return [{**hit, "snippet": "\n".join(hit.get("highlights") or ())} for hit in answer["results"]]


web_search_tool = search_tool(
    _exa(
        "https://api.exa.ai/search",
        lambda query, options: {
            "query": query,
            "type": options["search_type"] or "auto",
            "numResults": options["max_results"],
            "contents": {"highlights": {"maxCharacters": 1000}},
        },
        _hits,
    )
)
web_fetch_tool = fetch_tool(
    _exa(
        "https://api.exa.ai/contents",
        lambda url, options: {"urls": [url], "text": {"maxCharacters": 200_000}},
        first_page("Exa", "text"),
    )
)
