"""Search arXiv and print papers as JSON: id, title, authors, date, abstract, categories, addresses."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from pathlib import Path

import httpx
from lxml import etree

ENDPOINT = "https://export.arxiv.org/api/query"
SPACES = {"a": "http://www.w3.org/2005/Atom", "x": "http://arxiv.org/schemas/atom"}


def query_of(words: str, category: str | None, start: str | None, end: str | None) -> str:
    """arXiv's query: plain words must all occur; fields such as ``ti:`` and AND, OR, ANDNOT are kept."""
    plain = not re.search(r"\b(all|ti|abs|au|cat):|\b(AND|OR|ANDNOT)\b", words)
    parts = [" AND ".join(f"all:{word}" for word in re.findall(r'"[^"]+"|\S+', words)) if plain else f"({words})"]
    if category:
        parts.append(f"cat:{category}")
    if start or end:
        low, high = (start or "1991-01-01").replace("-", ""), (end or "2100-01-01").replace("-", "")
        parts.append(f"submittedDate:[{low}0000 TO {high}2359]")
    return " AND ".join(parts)


def papers(feed: bytes) -> list[dict]:
    root = etree.fromstring(feed, etree.XMLParser(resolve_entities=False, no_network=True))
    found = []
    for entry in root.findall("a:entry", SPACES):

        def text(path: str, entry=entry) -> str:
            return " ".join((entry.findtext(path, "", SPACES) or "").split())

        address = text("a:id")
        number = re.sub(r"v\d+$", "", address.rpartition("/abs/")[2])
        found.append(
            {
                "id": number,
                "title": text("a:title"),
                "authors": [" ".join((name.text or "").split()) for name in entry.findall("a:author/a:name", SPACES)],
                "published": text("a:published")[:10],
                "updated": text("a:updated")[:10],
                "abstract": text("a:summary"),
                "categories": [category.get("term") for category in entry.findall("a:category", SPACES)],
                "doi": text("x:doi"),
                "journal": text("x:journal_ref"),
                "url": f"https://arxiv.org/abs/{number}",
                "pdf": f"https://arxiv.org/pdf/{number}",
            }
        )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("query", help='words, or arXiv fields: ti:"graph network" AND abs:molecule')
    parser.add_argument("--max-results", type=int, default=20)
    parser.add_argument("--category", help="such as cs.CL")
    parser.add_argument("--sort-by", choices=["relevance", "submittedDate", "lastUpdatedDate"], default="relevance")
    parser.add_argument("--start-date", help="YYYY-MM-DD")
    parser.add_argument("--end-date", help="YYYY-MM-DD")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--endpoint", default=ENDPOINT, help=argparse.SUPPRESS)
    options = parser.parse_args()
    query = query_of(options.query, options.category, options.start_date, options.end_date)
    found: list[dict] = []
    try:
        while len(found) < options.max_results:
            count = min(100, options.max_results - len(found))
            parameters = {
                "search_query": query,
                "start": len(found),
                "max_results": count,
                "sortBy": options.sort_by,
                "sortOrder": "descending",
            }
            answer = httpx.get(options.endpoint, params=parameters, timeout=60, follow_redirects=True)
            answer.raise_for_status()
            page = papers(answer.content)
            found += page
            if len(page) < count:
                break
            time.sleep(3)  # arXiv asks for three seconds between requests
    except (httpx.HTTPError, etree.XMLSyntaxError) as error:
        print(f"arXiv could not be asked: {error}. The sandbox needs the network to export.arxiv.org.", file=sys.stderr)
        return 2
    text = json.dumps(found, ensure_ascii=False, indent=1)
    if options.output:
        options.output.write_text(text + "\n", "utf-8")
        print(f"{len(found)} papers in {options.output}")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
