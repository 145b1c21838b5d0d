"""The head of a page: what it says of itself, its author and its day, wherever pages write that."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from deerflow.security.text import sanitize

MOST_LETTERS = 200
MOST_DATA = 200_000
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?(?:\.\d{1,6})?(?:Z|[+-]\d{2}:?\d{2})?)?")
_AUTHORS = ("author", "article:author", "dc.creator", "citation_author", "parsely-author", "sailthru.author")
_DATES = ("article:published_time", "datepublished", "date", "dc.date", "dc.date.issued", "citation_publication_date", "pubdate",
          "parsely-pub-date", "sailthru.date")  # fmt: skip
_SITES = ("og:site_name", "application-name")


class Head(NamedTuple):
    """Each is one line, sanitized and still untrusted, or empty."""

    title: str = ""
    author: str = ""
    published: str = ""
    site: str = ""
    language: str = ""


NOTHING_SAID = Head()


def head_of(tree: Any) -> Head:
    """Return the head of a page; before its scripts are dropped, since one of them may hold data."""
    said: dict[str, str] = {}
    for element in tree.iter("meta"):
        name = (element.get("property") or element.get("name") or element.get("itemprop") or "").lower()
        said.setdefault(name, element.get("content") or "")
    for name, value in _linked_data(tree):
        said.setdefault(name, value)
    author = next((value for name in _AUTHORS if (value := _line(said.get(name))) and "://" not in value), "")
    times = (
        element.get("datetime") or "" for element in tree.iter("time") if element.get("itemprop") == "datePublished"
    )
    published = next(
        (found[0] for value in (*(said.get(name, "") for name in _DATES), *times) if (found := _DATE.search(value))), ""
    )
    return Head(
        _line(tree.findtext(".//title"), 1000) or _line(said.get("og:title"), 1000),
        author,
        published,
        next((value for name in _SITES if (value := _line(said.get(name)))), ""),
        _line(tree.get("lang") or tree.get("{http://www.w3.org/XML/1998/namespace}lang"), 20),
    )


def _linked_data(tree: Any) -> Iterator[tuple[str, str]]:
    for script in tree.iter("script"):
        if "ld+json" not in (script.get("type") or "") or not script.text or len(script.text) > MOST_DATA:
            continue
        try:
            waiting = [json.loads(script.text)]
        except (ValueError, RecursionError):
            continue
        for _ in range(200):
            if not waiting:
                break
            each = waiting.pop(0)
            if isinstance(each, list):
                waiting += each
            elif isinstance(each, dict):
                waiting += [value for key, value in each.items() if key in ("@graph", "mainEntity")]
                if isinstance(date := each.get("datePublished"), str):
                    yield "datepublished", date
                if name := _names(each.get("author")):
                    yield "author", name


def _names(author: Any) -> str:
    people = author if isinstance(author, list) else [author]
    names = [person.get("name") if isinstance(person, dict) else person for person in people[:5]]
    return ", ".join(name for name in names if isinstance(name, str))


def _line(text: Any, most: int = MOST_LETTERS) -> str:
    return " ".join(sanitize(text or "", most).split())
