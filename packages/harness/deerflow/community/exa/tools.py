"""Exa. https://docs.exa.ai/reference"""

from __future__ import annotations

from functools import partial
from typing import Any

from deerflow.community.fetcher import WebError
from deerflow.community.web import Api, Options, fetch_tool, search_tool
from deerflow.security.html import Page

_exa = partial(Api, "Exa", key="EXA_API_KEY")


def _request(options: Options, **body: Any) -> dict[str, Any]:
    return {"headers": {"x-api-key": options["api_key"]}, "json": body}


def _hits(answer: Any) -> list[dict[str, Any]]:
    return [{**hit, "snippet": "\n".join(hit.get("highlights") or ())} for hit in answer["results"]]


def _page(answer: Any) -> Page:
    if not answer["results"]:
        raise WebError("Exa could not read this page.")
    return Page(answer["results"][0].get("title") or "", answer["results"][0]["text"])


web_search_tool = search_tool(
    _exa(
        "https://api.exa.ai/search",
        lambda query, o: _request(
            o,
            query=query,
            type=o["search_type"] or "auto",
            numResults=o["max_results"],
            contents={"highlights": {"maxCharacters": 1000}},
        ),
        _hits,
    )
)
web_fetch_tool = fetch_tool(
    _exa("https://api.exa.ai/contents", lambda url, o: _request(o, urls=[url], text={"maxCharacters": 200_000}), _page)
)
