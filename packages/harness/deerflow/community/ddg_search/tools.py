"""DuckDuckGo, without an account. What it asks and how it reads the answer is the library's, which is kept up to date."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from deerflow.community.web import LETTERS, Ask, Options, search_tool
from deerflow.tools.download import WebError


def by_library(kind: str, read: Callable[[dict[str, Any]], dict[str, Any]]) -> Ask:
    """A search of this kind, ``text`` or ``images``, by the library ``ddgs``."""

    def search(query: str, options: Options) -> list[dict[str, Any]]:
        # It brings a parser of pages: a server that never searches this way never loads it.
        from ddgs import DDGS
        from ddgs.exceptions import DDGSException, RatelimitException

        library = DDGS(timeout=max(1, int(options["timeout"])), proxy=options["proxy"])
        try:
            return getattr(library, kind)(
                query,
                region=options["region"] or "wt-wt",
                safesearch=options["safesearch"] or "moderate",
                max_results=int(options["max_results"]),
                timelimit=LETTERS.get(options["period"] or ""),
                backend=options["backend"] or "duckduckgo",
            )
        except RatelimitException as error:
            raise WebError("DuckDuckGo wants fewer searches: wait a minute, or configure another provider.") from error
        except DDGSException as error:
            if "No results" in str(error):
                raise WebError("Nothing was found, or DuckDuckGo did not answer. Try other words.") from error
            raise WebError("DuckDuckGo cannot be reached. Has this machine a network?") from error

    async def ask(query: str, options: Options) -> list[dict[str, Any]]:
        try:
            async with asyncio.timeout(float(options["timeout"])):
                return [read(hit) for hit in await asyncio.to_thread(search, query, options)]
        except TimeoutError as error:
            raise WebError(f"DuckDuckGo did not answer within {options['timeout']:g} seconds.") from error

    return ask


web_search_tool = search_tool(
    by_library("text", lambda hit: {"title": hit["title"], "url": hit["href"], "snippet": hit["body"]})
)
