"""InfoQuest of BytePlus. https://docs.byteplus.com/en/docs/InfoQuest"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from deerflow.community.web import DAYS, Api, fetch_tool, image_tool, search_tool

_infoquest = partial(Api, "InfoQuest", key="INFOQUEST_API_KEY")
_SEARCH = "https://search.infoquest.bytepluses.com"


def _time(value: Any) -> Any:
    """Times below 0 stand for none."""
    return None if isinstance(value, int) and value < 0 else value


def _things(answer: Any) -> Iterator[dict[str, Any]]:
    """All that has an address: pages, news and pictures stand at different depths."""
    if isinstance(answer, dict) and isinstance(answer.get("url") or answer.get("original"), str):
        yield answer
    elif isinstance(answer, dict | list):
        for part in answer.values() if isinstance(answer, dict) else answer:
            yield from _things(part)


def _hits(answer: Any) -> list[dict[str, Any]]:
    return [
        {
            **thing,
            "snippet": thing.get("desc") or thing.get("snippet") or thing.get("source"),
            "published": thing.get("date"),
        }
        for thing in _things(answer)
    ]


def _pictures(answer: Any) -> list[dict[str, Any]]:
    return [
        {
            "title": thing.get("title"),
            "image_url": thing.get("original") or thing.get("image_url") or thing.get("url"),
            "thumbnail_url": thing.get("thumbnail"),
            "source_url": thing.get("url") if thing.get("original") else thing.get("source"),
        }
        for thing in _things(answer)
    ]


def _html(answer: Any) -> str:
    return answer if isinstance(answer, str) else str(answer.get("reader_result") or answer["content"])


web_search_tool = search_tool(
    _infoquest(
        _SEARCH,
        lambda query, options: {
            "query": query,
            "format": "JSON",
            "time_range": DAYS.get(options["period"] or "") or _time(options["search_time_range"]),
            "site": options["site"],
        },
        _hits,
    ),
    takes_site=True,
)
image_search_tool = image_tool(
    _infoquest(
        _SEARCH,
        lambda query, options: {
            "query": query,
            "format": "JSON",
            "search_type": "Images",
            "time_range": _time(options["image_search_time_range"]),
            "image_size": options["image_size"],
        },
        _pictures,
    )
)
web_fetch_tool = fetch_tool(
    _infoquest(
        "https://reader.infoquest.bytepluses.com",
        lambda url, options: {
            "url": url,
            "format": "HTML",
            "fetch_time": _time(options["fetch_time"]),
            "timeout": int(options["timeout"]),
            "navi_timeout": _time(options["navigation_timeout"]),
        },
        _html,
    )
)
