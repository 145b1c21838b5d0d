"""Two forms of citations: `[citation:Title](URL)` behind a claim, as in answers, and numbers with a list of sources, as in files."""

from __future__ import annotations

import re
from pathlib import Path

KEPT = Path("/mnt/user-data/workspace/.web")
LINK = re.compile(
    r"(?<!!)\[citation:\s*((?:\\.|[^\]\\\n]){1,300})\]\(\s*<?(https?://[^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*)>?\s*\)"
)
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
HEADING = re.compile(
    r"^#{1,4}\s*(?:\d+[.\s]*)?(sources|references|bibliography|literature|works cited|来源|参考文献|参考资料|参考来源|引用)\s*$",
    re.IGNORECASE | re.MULTILINE,
)
ENTRY = re.compile(
    r"^\s*(?:[-*]\s*)?(?:\[(\d+)\][:.]?|(\d+)[.)])\s+(.*(?:\n(?!\s*(?:[-*]\s*)?(?:\[\d+\]|\d+[.)])\s)(?!\s*$)(?!#).+)*)",
    re.MULTILINE,
)
CITED = re.compile(r"\[(\d+(?:\s*[-–,;]\s*\d+)*)\](?!\()")
ADDRESS = re.compile(
    r"https?://[^\s()<>\]]+(?:\([^\s()<>]*\)[^\s()<>\]]*)*|doi:\s*10\.\S+|arXiv:\s*\d{4}\.\d+", re.IGNORECASE
)


def expanded(text: str) -> list[int]:
    """Return ``1-3,5`` as numbers."""
    found: list[int] = []
    for part in re.split(r"[,;]", text):
        ends = [int(number) for number in re.split(r"[-–]", part)]
        found += range(ends[0], ends[-1] + 1)
    return found


def parts(text: str) -> tuple[str, str, str, str]:
    """Return what stands before the list of sources, its heading, the list, and what follows; no heading: there is no list."""
    heading = next(reversed(list(HEADING.finditer(text))), None)
    if heading is None:
        return text, "", "", ""
    rest = text[heading.end() :]
    end = re.search(r"^#{1,4}\s", rest, re.MULTILINE)
    at = end.start() if end else len(rest)
    return text[: heading.start()], heading[0], rest[:at], rest[at:]


def sources_of(listing: str) -> dict[int, str]:
    """Return the entries of a list of sources by their numbers."""
    found: dict[int, str] = {}
    for entry in ENTRY.finditer(listing):
        found.setdefault(int(entry[1] or entry[2]), entry[3].strip())
    return found


def same(address: str) -> str:
    """Return an address without what makes no other page of it."""
    return re.sub(r"^https?://(?:www\.)?", "", address.rstrip(".,;")).split("#")[0].rstrip("/")


def heads(folder: Path = KEPT) -> dict[str, dict[str, str]]:
    """Return what kept pages say of themselves, by address: title, author, published, site, kept."""
    found: dict[str, dict[str, str]] = {}
    for file in sorted(folder.glob("*.md")) if folder.is_dir() else []:
        with file.open(encoding="utf-8", errors="replace") as lines:
            title = lines.readline().removeprefix("# ").strip()
            says = {"title": title, "kept": str(file)}
            for line in (next(lines, "").strip() for _ in range(8)):
                name, colon, value = line.partition(": ")
                if colon and name in ("Source", "Author", "Published", "Site"):
                    says[name.lower()] = value
        if source := says.pop("source", ""):
            found[same(source)] = says
    return found


def numbered(text: str, pages: dict[str, dict[str, str]]) -> str:
    """Return a text whose citations are numbers, with a list of sources at its end; the one that it has goes on."""
    body, heading, listing, after = parts(text)
    entries = sources_of(listing)
    numbers = {same(found[0]): number for number, entry in entries.items() if (found := ADDRESS.search(entry))}
    new: list[str] = []

    def number(match: re.Match[str]) -> str:
        title, address = match[1].replace("\\", "").strip(), match[2]
        key = same(address)
        if key not in numbers:
            numbers[key] = max(entries, default=0) + 1
            entries[numbers[key]] = entry_of(title, address, pages.get(key, {}))
            new.append(f"[{numbers[key]}] {entries[numbers[key]]}")
        return f"[{numbers[key]}]"

    body, after = outside_code(LINK, number, body), outside_code(LINK, number, after)
    if not new:
        return f"{body}{heading}{listing}{after}"
    listing = "\n".join(filter(None, [listing.strip(), *new]))
    return "\n\n".join(filter(None, [body.rstrip(), (heading or "## Sources").strip(), listing, after.strip()])) + "\n"


def entry_of(title: str, address: str, page: dict[str, str]) -> str:
    """Return a line of the list of sources, with author, site and day as far as the page says them."""
    said = [
        page.get("author", ""),
        page.get("title") or title,
        page.get("site", ""),
        page.get("published", "")[:10] or "n.d.",
    ]
    kept = f" ([as read]({page['kept']}))" if page.get("kept") else ""
    return f"{', '.join(dict.fromkeys(filter(None, said))).rstrip('.')}. {address}{kept}"


def linked(text: str, pages: dict[str, dict[str, str]]) -> str:
    """Return a text whose numbers are citations as in answers, without the list of sources."""
    body, heading, listing, after = parts(text)
    if not heading:
        return text
    known = {number: (found[0].rstrip(".,;"), entry) for number, entry in sources_of(listing).items()
             if (found := ADDRESS.search(entry)) and "://" in found[0]}  # fmt: skip

    def link(match: re.Match[str]) -> str:
        wanted = expanded(match[1])
        if not all(each in known for each in wanted):
            return match[0]
        found = [
            (pages.get(same(known[each][0]), {}).get("title") or _title(known[each][1]), known[each][0])
            for each in wanted
        ]
        return "".join(f"[citation:{re.sub(r'[][]', '', title)}]({address})" for title, address in found)

    left = [entry[0].strip("\n") for entry in ENTRY.finditer(listing) if int(entry[1] or entry[2]) not in known]
    rest = f"{heading}\n\n{chr(10).join(left)}\n\n" if left else ""
    return (
        outside_code(CITED, link, body).rstrip()
        + "\n"
        + (f"\n{rest}{outside_code(CITED, link, after)}" if rest or after else "")
    )


def outside_code(pattern: re.Pattern[str], change, text: str) -> str:
    """Return ``text`` with matches changed, but not in code."""
    done, at = [], 0
    for code in CODE.finditer(text):
        done += [pattern.sub(change, text[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*done, pattern.sub(change, text[at:])])


def _title(entry: str) -> str:
    """The title in a line of the list of sources, as far as that can be seen: what stands before its address."""
    said = re.sub(r"\(\[as read\]\([^)]*\)\)", "", entry)
    said = " ".join(ADDRESS.sub("", said).split()).strip(" .,;<>").removesuffix(", n.d")
    return said[:200] or "Source"
