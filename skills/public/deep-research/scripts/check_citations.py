"""Check the citations of a Markdown report: each number has a source, each source is used, sources have addresses."""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

HEADING = re.compile(
    r"^#{1,4}\s*(?:\d+[.\s]*)?(sources|references|bibliography|literature|works cited|来源|参考文献|参考资料|参考来源|引用)\s*$",
    re.IGNORECASE | re.MULTILINE,
)
ENTRY = re.compile(
    r"^\s*(?:[-*]\s*)?(?:\[(\d+)\][:.]?|(\d+)[.)])\s+(.*(?:\n(?!\s*(?:[-*]\s*)?(?:\[\d+\]|\d+[.)])\s)(?!\s*$)(?!#).+)*)",
    re.MULTILINE,
)
CITED = re.compile(r"\[(\d+(?:\s*[-–,;]\s*\d+)*)\](?!\()")
ADDRESS = re.compile(r"https?://[^\s)>\]]+|doi:\s*10\.\S+|arXiv:\s*\d{4}\.\d+", re.IGNORECASE)
CLAIM = re.compile(r"\d+(?:[.,]\d+)?\s*(?:%|percent|million|billion|万|亿)|(?:\$|€|£|¥)\s?\d")


def expanded(text: str) -> list[int]:
    """``1-3,5`` as numbers."""
    found: list[int] = []
    for part in re.split(r"[,;]", text):
        ends = [int(number) for number in re.split(r"[-–]", part)]
        found += range(ends[0], ends[-1] + 1)
    return found


def check(text: str) -> tuple[list[str], list[str], int]:
    """Problems, advice, and how many sources there are."""
    problems, advice = [], []
    heading = next(reversed(list(HEADING.finditer(text))), None)
    if heading is None:
        return (
            ["There is no list of sources; end with a heading Sources and entries `[1] Author, title, date, address`."],
            [],
            0,
        )
    body, listing = (
        text[: heading.start()],
        re.split(r"^#{1,4}\s", text[heading.end() :], maxsplit=1, flags=re.MULTILINE)[0],
    )
    body = re.sub(r"```.*?```|`[^`\n]+`", "", body, flags=re.DOTALL)
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
        parts = urlsplit(address[0].rstrip(".,;"))
        key = (
            f"{parts.netloc.removeprefix('www.')}{parts.path.rstrip('/')}?{parts.query}"
            if parts.netloc
            else address[0].lower()
        )
        if key in seen:
            problems.append(f"[{number}] and [{seen[key]}] are the same source; cite one of them.")
        seen.setdefault(key, number)
        if not re.search(r"\b(19|20)\d\d\b|n\.d\.|无日期", re.sub(ADDRESS, "", entry)):
            advice.append(f"[{number}] has no date.")
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
    problems, advice, count = check(parser.parse_args().report.read_text("utf-8"))
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
