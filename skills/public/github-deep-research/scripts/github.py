"""Ask GitHub about a repository: facts, README, files, history, contributors, releases, issues. Output is JSON or text."""

from __future__ import annotations

import argparse
import base64
import json
import os
import sys
from collections import Counter
from typing import Any

import httpx

API = "https://api.github.com"


class GitHub:
    """Reads one repository. A token is optional; without it GitHub allows 60 requests an hour."""

    def __init__(self, owner: str, repository: str, api: str) -> None:
        headers = {
            "Accept": "application/vnd.github+json",
            "User-Agent": "deerflow-skill",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        if token := os.environ.get("GITHUB_TOKEN"):
            headers["Authorization"] = f"Bearer {token}"
        self.client = httpx.Client(base_url=api, headers=headers, timeout=30, follow_redirects=True)
        self.path = f"/repos/{owner}/{repository}"

    def get(self, path: str = "", **parameters: Any) -> Any:
        answer = self.client.get(self.path + path, params=parameters)
        if answer.status_code in (403, 429) and answer.headers.get("x-ratelimit-remaining") == "0":
            raise SystemExit(
                f"GitHub's limit is used up until {answer.headers.get('x-ratelimit-reset')} (Unix time). A GITHUB_TOKEN raises it."
            )
        if answer.status_code == 404:
            raise SystemExit(f"There is no {self.path.removeprefix('/repos/')}{path}, or it is private.")
        answer.raise_for_status()
        return answer.json()

    def pages(self, path: str, limit: int, **parameters: Any) -> list[Any]:
        found: list[Any] = []
        for page in range(1, 11):
            part = self.get(path, per_page=min(100, limit), page=page, **parameters)
            found += part
            if len(part) < min(100, limit) or len(found) >= limit:
                break
        return found[:limit]

    # what can be asked ----------------------------------------------------------------------------------------------

    def info(self, limit: int) -> Any:
        facts = self.get()
        wanted = "full_name description homepage language license stargazers_count forks_count open_issues_count subscribers_count default_branch created_at pushed_at archived fork topics size"
        found = {name: facts.get(name) for name in wanted.split()}
        found["license"] = (facts.get("license") or {}).get("spdx_id")
        return found

    def readme(self, limit: int) -> str:
        return base64.b64decode(self.get("/readme")["content"]).decode("utf-8", "replace")

    def tree(self, limit: int) -> str:
        branch = self.get()["default_branch"]
        entries = self.get(f"/git/trees/{branch}", recursive="1")["tree"]
        files = [f"{entry['path']}  {entry.get('size', 0)}" for entry in entries if entry["type"] == "blob"]
        kinds = Counter(
            entry["path"].rpartition(".")[2] for entry in entries if entry["type"] == "blob" and "." in entry["path"]
        )
        more = f"\n… {len(files) - limit} more" if len(files) > limit else ""
        return (
            f"{len(files)} files: {', '.join(f'{kind} {count}' for kind, count in kinds.most_common(10))}\n"
            + "\n".join(files[:limit])
            + more
        )

    def file(self, limit: int, path: str = "") -> str:
        return base64.b64decode(self.get(f"/contents/{path}")["content"]).decode("utf-8", "replace")

    def languages(self, limit: int) -> Any:
        sizes = self.get("/languages")
        return {name: f"{100 * size / sum(sizes.values()):.1f}%" for name, size in sizes.items()}

    def contributors(self, limit: int) -> Any:
        people = self.pages("/contributors", limit)
        total = sum(person["contributions"] for person in people)
        return [
            {
                "login": p.get("login", "?"),
                "commits": p["contributions"],
                "share": f"{100 * p['contributions'] / total:.0f}%",
            }
            for p in people
        ]

    def commits(self, limit: int) -> Any:
        return [
            {
                "sha": c["sha"][:9],
                "date": c["commit"]["author"]["date"][:10],
                "author": c["commit"]["author"]["name"],
                "message": c["commit"]["message"].split("\n")[0],
            }
            for c in self.pages("/commits", limit)
        ]

    def releases(self, limit: int) -> Any:
        return [
            {
                "tag": r["tag_name"],
                "name": r["name"],
                "date": (r["published_at"] or "")[:10],
                "prerelease": r["prerelease"],
                "notes": (r["body"] or "")[:600],
            }
            for r in self.pages("/releases", limit)
        ]

    def issues(self, limit: int) -> Any:
        return [
            self._thread(issue)
            for issue in self.pages("/issues", limit * 2, state="all", sort="comments")
            if "pull_request" not in issue
        ][:limit]

    def prs(self, limit: int) -> Any:
        return [
            {**self._thread(pull), "merged": bool(pull.get("merged_at"))}
            for pull in self.pages("/pulls", limit, state="all", sort="updated", direction="desc")
        ]

    def _thread(self, entry: dict[str, Any]) -> dict[str, Any]:
        return {
            "number": entry["number"],
            "state": entry["state"],
            "title": entry["title"],
            "created": entry["created_at"][:10],
            "closed": (entry.get("closed_at") or "")[:10],
            "comments": entry.get("comments"),
            "labels": [label["name"] for label in entry.get("labels", [])],
            "url": entry["html_url"],
        }

    def summary(self, limit: int) -> Any:
        """Health in one answer: facts, languages, who does the work, the last commits and releases."""
        people, commits = self.contributors(30), self.commits(100)
        share = sum(int(person["share"].rstrip("%")) for person in people[:3])
        return {
            **self.info(0),
            "languages": self.languages(0),
            "contributors_seen": len(people),
            "share_of_first_three": f"{share}%",
            "last_commits": commits[:5],
            "last_100_commits_since": commits[-1]["date"] if commits else None,
            "releases": [{"tag": r["tag"], "date": r["date"]} for r in self.releases(5)],
        }


ACTIONS = (
    "summary",
    "info",
    "readme",
    "tree",
    "file",
    "languages",
    "contributors",
    "commits",
    "releases",
    "issues",
    "prs",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", help="owner/name, or the address of its page")
    parser.add_argument("action", nargs="?", choices=ACTIONS, default="summary")
    parser.add_argument("path", nargs="?", default="", help="for file: its path in the repository")
    parser.add_argument("--limit", type=int, default=30)
    parser.add_argument("--api", default=os.environ.get("GITHUB_API_URL", API), help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args()
    parts = options.repository.removesuffix("/").removesuffix(".git").split("/")
    if len(parts) < 2:
        parser.error("give owner/name")
    if "github.com" in parts:
        parts = parts[parts.index("github.com") + 1 :][:2]
    github = GitHub(parts[-2], parts[-1], options.api)
    try:
        extra = {"path": options.path} if options.action == "file" else {}
        found = getattr(github, options.action)(options.limit, **extra)
    except httpx.HTTPError as error:
        print(f"GitHub could not be asked: {error}. The sandbox needs the network to api.github.com.", file=sys.stderr)
        return 2
    print(found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, indent=1))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
