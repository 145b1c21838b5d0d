"""Check the citations of a Markdown report: each number has a source, each source is used, sources have addresses.

With --number it turns `[citation:Title](URL)` into numbers with a list of sources, with --link numbers into these.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

from citations import ADDRESS, CITED, CODE, ENTRY, LINK, expanded, heads, linked, numbered, parts, same

CLAIM = re.compile(r"\d+(?:[.,]\d+)?\s*(?:%|percent|million|billion|万|亿)|(?:\$|€|£|¥)\s?\d")


def check(text: str, pages: dict[str, dict[str, str]]) -> tuple[list[str], list[str], int]:
    """Problems, advice, and how many sources there are. ``pages``: what kept pages say of themselves, by address."""
    problems, advice = [], []
    body, heading, listing, after = parts(text)
    body = CODE.sub("", f"{body}\n\n{after}")
    if links := len(LINK.findall(body)):
        problems.append(
            f"{links} citations are written [citation:Title](URL), as in answers: number them with --number."
        )
    if not heading:
        missing = (
            "There is no list of sources; end with a heading Sources and entries `[1] Author, title, date, address`."
        )
        return problems or [missing], [], 0
    sources = [(int(entry[1] or entry[2]), entry[3].strip()) for entry in ENTRY.finditer(listing)]
    numbers = [number for number, _ in sources]
    cited = [number for group in CITED.findall(body) for number in expanded(group)]
    problems += [f"[{number}] is cited, but is not in the list." for number in sorted(set(cited) - set(numbers))]
    problems += [f"[{number}] is in the list, but is never cited." for number in sorted(set(numbers) - set(cited))]
    problems += [
        f"[{number}] stands in the list {count} times." for number, count in Counter(numbers).items() if count > 1
    ]
    seen: dict[str, int] = {}
    for number, entry in sources:
        address = ADDRESS.search(entry)
        if address is None:
            problems.append(f"[{number}] has no address: {entry[:60]!r}")
            continue
        key = same(address[0]) if "://" in address[0] else address[0].lower()
        if key in seen:
            problems.append(f"[{number}] and [{seen[key]}] are the same source; cite one of them.")
        seen.setdefault(key, number)
        if not re.search(r"\b(19|20)\d\d\b|n\.d\.|无日期", re.sub(ADDRESS, "", entry)):
            day = pages.get(key, {}).get("published", "")[:10]
            advice.append(f"[{number}] has no date" + (f"; its page says {day}." if day else "."))
    for paragraph in re.split(r"\n\s*\n", body):
        if (
            CLAIM.search(paragraph)
            and not CITED.search(paragraph)
            and "](http" not in paragraph
            and not paragraph.lstrip().startswith("#")
        ):
            advice.append(f"Figures without a source: {' '.join(paragraph.split())[:80]!r}")
    hosts = Counter(urlsplit(match[0]).netloc for match in ADDRESS.finditer(listing) if "://" in match[0])
    if len(sources) >= 4 and hosts and hosts.most_common(1)[0][1] > len(sources) / 2:
        advice.append(f"More than half of the sources are from {hosts.most_common(1)[0][0]}.")
    return problems, advice, len(sources)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--number", action="store_true", help="write the citations as numbers with a list of sources")
    form.add_argument("--link", action="store_true", help="write the numbers as [citation:Title](URL)")
    parser.add_argument("-o", "--output", type=Path, help="where to write it; the report itself if left out")
    options = parser.parse_args()
    if not options.report.is_file():
        print(f"{options.report} does not exist.", file=sys.stderr)
        return 1
    text, pages = options.report.read_text("utf-8"), heads()
    if options.number or options.link:
        text = numbered(text, pages) if options.number else linked(text, pages)
        place = options.output or options.report
        place.write_text(text, "utf-8")
        print(f"written to {place}")
        if options.link:
            return 0
    problems, advice, count = check(text, pages)
    print(f"{count} sources, {len(problems)} problems")
    for line in problems:
        print(f"- {line}")
    for line in advice:
        print(f"? {line}")
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
