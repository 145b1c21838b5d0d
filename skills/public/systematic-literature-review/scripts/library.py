"""Keep the papers of a review: join lists without doubles, record decisions, count them, print references."""

from __future__ import annotations

import argparse
import json
import re
import sys
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

Paper = dict[str, Any]


def key(paper: Paper) -> str:
    """The same for one paper from several places."""
    plain = unicodedata.normalize("NFKD", paper.get("title", "")).lower()
    return re.sub(r"\W+", "", plain)


def join(lists: list[list[Paper]]) -> tuple[list[Paper], int]:
    """All papers once, those seen first; what they lack is taken from later ones. Also how many were doubles."""
    found: dict[str, Paper] = {}
    by_doi: dict[str, str] = {}
    total = 0
    for paper in (paper for papers in lists for paper in papers):
        total += 1
        doi = str(paper.get("doi") or "").lower().removeprefix("https://doi.org/")
        name = by_doi.get(doi, key(paper)) if doi else key(paper)
        if doi:
            by_doi.setdefault(doi, name)
        known = found.setdefault(name, {})
        for field, value in paper.items():
            if value and not known.get(field):
                known[field] = value
    return list(found.values()), total - len(found)


def split_name(name: str) -> tuple[str, str]:
    """Family name and given names, from ``Family, Given`` or ``Given Family``."""
    if "," in name:
        family, _, given = name.partition(",")
        return family.strip(), given.strip()
    given, _, family = name.strip().rpartition(" ")
    return family, given


def initials(given: str) -> str:
    return " ".join("-".join(f"{part[0]}." for part in name.split("-") if part) for name in given.split())


def year(paper: Paper) -> str:
    return str(paper.get("published") or paper.get("year") or "n.d.")[:4]


def place(paper: Paper) -> str:
    return paper.get("journal") or (f"arXiv:{paper['id']}" if "arxiv" in str(paper.get("url", "")) else "")


def address(paper: Paper) -> str:
    return f"https://doi.org/{paper['doi']}" if paper.get("doi") else str(paper.get("url", ""))


def apa(paper: Paper, number: int) -> str:
    names = [f"{family}, {initials(given)}".rstrip(", ") for family, given in map(split_name, paper.get("authors", []))]
    if len(names) > 20:
        names = [*names[:19], "…", names[-1]]
    who = names[0] if len(names) == 1 else ", ".join(names[:-1]) + f", & {names[-1]}" if names else "Unknown"
    return " ".join(
        part
        for part in (
            f"{who} ({year(paper)}). {paper['title']}.",
            f"*{place(paper)}*." if place(paper) else "",
            address(paper),
        )
        if part
    )


def ieee(paper: Paper, number: int) -> str:
    names = [f"{initials(given)} {family}".strip() for family, given in map(split_name, paper.get("authors", []))]
    who = (
        f"{names[0]} et al."
        if len(names) > 6
        else " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    )
    where = f" *{place(paper)}*," if place(paper) else ""
    return f"[{number}] {who}, “{paper['title']},”{where} {year(paper)}. {address(paper)}".rstrip()


def gbt(paper: Paper, number: int) -> str:
    names = [
        f"{family.upper()} {initials(given).replace('.', '')}".strip()
        for family, given in map(split_name, paper.get("authors", []))
    ]
    who = ", ".join(names[:3]) + (", et al" if len(names) > 3 else "")
    kind = "J" if paper.get("journal") else "EB/OL"
    return f"[{number}] {who}. {paper['title']}[{kind}]. {place(paper) + ', ' if place(paper) else ''}{year(paper)}. {address(paper)}"


def bibtex(paper: Paper, number: int) -> str:
    family = split_name(paper.get("authors", ["unknown"])[0])[0]
    word = next((word for word in re.findall(r"\w+", paper["title"].lower()) if len(word) > 3), "paper")
    name = re.sub(
        r"\W",
        "",
        unicodedata.normalize("NFKD", f"{family}{year(paper)}{word}").encode("ascii", "ignore").decode().lower(),
    )
    fields = {
        "title": f"{{{paper['title']}}}",
        "author": " and ".join(paper.get("authors", [])),
        "year": year(paper),
        "journal": paper.get("journal"),
    }
    fields |= {
        "eprint": None if paper.get("journal") else paper.get("id"),
        "doi": paper.get("doi"),
        "url": paper.get("url"),
    }
    kind = "article" if paper.get("journal") else "misc"
    return (
        f"@{kind}{{{name},\n"
        + ",\n".join(f"  {field} = {{{value}}}" for field, value in fields.items() if value)
        + "\n}"
    )


STYLES = {"apa": apa, "ieee": ieee, "gbt": gbt, "bibtex": bibtex}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    joining = actions.add_parser("join", help="join lists into one library")
    joining.add_argument("lists", nargs="+", type=Path)
    joining.add_argument("-o", "--output", type=Path, required=True)
    deciding = actions.add_parser("decide", help="record why a paper is in or out")
    deciding.add_argument("library", type=Path)
    deciding.add_argument("id")
    deciding.add_argument("decision", choices=["include", "exclude", "maybe"])
    deciding.add_argument("--stage", choices=["title", "fulltext"], default="title")
    deciding.add_argument("--reason", default="", help="the criterion; needed to exclude")
    for name, about in (("flow", "how many papers came through each stage"), ("open", "what has no decision yet")):
        actions.add_parser(name, help=about).add_argument("library", type=Path)
    citing = actions.add_parser("cite", help="print references of included papers")
    citing.add_argument("library", type=Path)
    citing.add_argument("--style", choices=list(STYLES), default="apa")
    citing.add_argument("--all", action="store_true", help="not only the included ones")
    options = parser.parse_args()
    if options.action == "join":
        papers, doubles = join([json.loads(path.read_text("utf-8")) for path in options.lists])
        for number, paper in enumerate(papers, 1):
            paper.setdefault("id", f"p{number}")
        options.output.write_text(
            json.dumps({"doubles": doubles, "papers": papers}, ensure_ascii=False, indent=1) + "\n", "utf-8"
        )
        print(f"{len(papers)} papers, {doubles} doubles removed")
        return 0
    library = json.loads(options.library.read_text("utf-8"))
    papers = library["papers"]
    if options.action == "decide":
        paper = next((paper for paper in papers if paper["id"] == options.id), None)
        if paper is None or (options.decision == "exclude" and not options.reason):
            print(
                f"There is no paper {options.id}."
                if paper is None
                else "Give --reason: the criterion that it does not meet.",
                file=sys.stderr,
            )
            return 2
        paper.setdefault("screening", {})[options.stage] = {"decision": options.decision, "reason": options.reason}
        options.library.write_text(json.dumps(library, ensure_ascii=False, indent=1) + "\n", "utf-8")
    elif options.action == "open":
        waiting = [paper for paper in papers if not decided(paper)]
        print(
            "\n".join(f"{paper['id']}  {paper['title']} ({year(paper)})" for paper in waiting)
            or "All papers are decided."
        )
    elif options.action == "flow":
        print(flow(papers, library["doubles"]))
    else:
        shown = [paper for paper in papers if options.all or included(paper)]
        shown.sort(key=lambda paper: (split_name(paper.get("authors", ["~"])[0])[0].lower(), year(paper)))
        print("\n\n".join(STYLES[options.style](paper, number) for number, paper in enumerate(shown, 1)))
    return 0


def stage(paper: Paper, name: str) -> str:
    return paper.get("screening", {}).get(name, {}).get("decision", "")


def decided(paper: Paper) -> bool:
    return stage(paper, "title") == "exclude" or stage(paper, "fulltext") in ("include", "exclude")


def included(paper: Paper) -> bool:
    return stage(paper, "fulltext") == "include"


def flow(papers: list[Paper], doubles: int) -> str:
    """The counts of a PRISMA diagram as Markdown."""
    out_early = [paper for paper in papers if stage(paper, "title") == "exclude"]
    read = [paper for paper in papers if stage(paper, "title") in ("include", "maybe") or stage(paper, "fulltext")]
    out_late = [paper for paper in read if stage(paper, "fulltext") == "exclude"]
    reasons = Counter(paper["screening"]["fulltext"]["reason"] for paper in out_late)
    rows = [
        ("Records found", len(papers) + doubles),
        ("Doubles removed", doubles),
        ("Screened by title and abstract", len(papers)),
    ]
    rows += [
        ("Excluded by title and abstract", len(out_early)),
        ("Read in full", len(read)),
        ("Excluded after reading", len(out_late)),
    ]
    rows += [(f"- {reason}", count) for reason, count in reasons.most_common()]
    rows += [
        ("**Included**", sum(map(included, papers))),
        ("Not yet decided", sum(not decided(paper) for paper in papers)),
    ]
    return "| Stage | Papers |\n|---|---:|\n" + "\n".join(f"| {name} | {count} |" for name, count in rows)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
