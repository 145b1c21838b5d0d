"""Publish a folder of a web page with Vercel. Without --yes it only shows what would be sent, and sends nothing."""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import os
import re
import sys
import time
from pathlib import Path

import httpx

API = "https://api.vercel.com"
NEVER = (
    ".git",
    "node_modules",
    ".venv",
    "__pycache__",
    ".vercel",
    ".next",
    ".DS_Store",
    ".env",
    ".env.*",
    "*.pem",
    "*.key",
    "id_rsa*",
    ".npmrc",
    ".netrc",
    "*.sqlite",
    "*.db",
)
SECRET = re.compile(rb"(?:sk|ghp|df|xox[bp])[-_][A-Za-z0-9_-]{20,}|AKIA[0-9A-Z]{16}|-----BEGIN [A-Z ]*PRIVATE KEY")
MAX_FILE, MAX_ALL = 50 << 20, 100 << 20
FRAMEWORKS = {
    "next": "nextjs",
    "nuxt": "nuxtjs",
    "@sveltejs/kit": "sveltekit-1",
    "astro": "astro",
    "gatsby": "gatsby",
    "@remix-run/dev": "remix",
    "vite": "vite",
    "react-scripts": "create-react-app",
}


def collect(root: Path) -> tuple[dict[str, bytes], list[str], list[str]]:
    """Files to send by path, names that are left out, and what forbids sending."""
    files: dict[str, bytes] = {}
    left_out: list[str] = []
    problems: list[str] = []
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if any(fnmatch.fnmatch(part, pattern) for part in Path(name).parts for pattern in NEVER):
            if path.is_file() and not {"node_modules", ".git", ".venv"} & set(Path(name).parts):
                left_out.append(name)
            continue
        if path.is_symlink():
            problems.append(f"{name} is a link")
        elif path.is_file():
            data = path.read_bytes()
            if SECRET.search(data):
                problems.append(f"{name} seems to hold a key; whoever opens the page could read it")
            if len(data) > MAX_FILE:
                problems.append(f"{name} has {len(data) >> 20} MB")
            files[name] = data
    if not files:
        problems.append("there is nothing to send")
    elif "package.json" not in files and "index.html" not in files:
        problems.append("there is neither index.html nor package.json")
    if sum(map(len, files.values())) > MAX_ALL:
        problems.append(f"more than {MAX_ALL >> 20} MB")
    return files, left_out, problems


def framework(files: dict[str, bytes]) -> str | None:
    try:
        package = json.loads(files.get("package.json", b"{}"))
    except ValueError:
        return None
    known = {**package.get("dependencies", {}), **package.get("devDependencies", {})}
    return next((value for name, value in FRAMEWORKS.items() if name in known), None)


def deploy(client: httpx.Client, name: str, files: dict[str, bytes], production: bool, wait: float) -> str:
    """Send the files and wait until the page answers; returns its address."""
    listing = []
    for path, data in files.items():
        digest = hashlib.sha1(data).hexdigest()
        client.post("/v2/files", content=data, headers={"x-vercel-digest": digest}).raise_for_status()
        listing.append({"file": path, "sha": digest, "size": len(data)})
    body = {"name": name, "files": listing, "projectSettings": {"framework": framework(files)}} | (
        {"target": "production"} if production else {}
    )
    made = (
        client.post("/v13/deployments", params={"skipAutoDetectionConfirmation": "1"}, json=body)
        .raise_for_status()
        .json()
    )
    end = time.monotonic() + wait
    while made.get("readyState") not in ("READY", "ERROR", "CANCELED") and time.monotonic() < end:
        time.sleep(2)
        made = client.get(f"/v13/deployments/{made['id']}").raise_for_status().json()
    if made.get("readyState") != "READY":
        raise ValueError(
            f"Vercel says {made.get('readyState')}: {made.get('errorMessage') or 'look at ' + str(made.get('inspectorUrl'))}"
        )
    return f"https://{made['url']}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--name", help="of the project; without it, the folder's")
    parser.add_argument("--production", action="store_true", help="replace the public page instead of making a preview")
    parser.add_argument("--yes", action="store_true", help="the person has agreed to publish exactly this")
    parser.add_argument("--wait", type=float, default=300, help=argparse.SUPPRESS)
    parser.add_argument("--api", default=API, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.folder.is_dir():
        print(f"{options.folder} is no folder", file=sys.stderr)
        return 2
    files, left_out, problems = collect(options.folder)
    name = (
        re.sub(r"[^a-z0-9-]+", "-", (options.name or options.folder.resolve().name).lower()).strip("-")[:52] or "page"
    )
    print(
        f"{len(files)} files, {sum(map(len, files.values())) / 1024:.0f} kB, would be public as project {name!r}{' in production' if options.production else ' (preview)'}:"
    )
    print(
        "\n".join(f"  {path}  {len(data)}" for path, data in list(files.items())[:40])
        + ("\n  …" if len(files) > 40 else "")
    )
    if left_out:
        print(f"Left out: {', '.join(left_out[:20])}")
    for problem in problems:
        print(f"- {problem}")
    if problems:
        return 1
    if not options.yes:
        print("Nothing was sent. Show this list to the person; if they agree, run it again with --yes.")
        return 0
    token = os.environ.get("VERCEL_TOKEN")
    if not token:
        print(
            "VERCEL_TOKEN is not set, so nothing can be published. The person makes a token in their Vercel account.",
            file=sys.stderr,
        )
        return 3
    try:
        with httpx.Client(base_url=options.api, headers={"Authorization": f"Bearer {token}"}, timeout=120) as client:
            print(deploy(client, name, files, options.production, options.wait))
    except httpx.HTTPStatusError as error:
        print(f"Vercel refused: {error.response.status_code} {error.response.text[:300]}", file=sys.stderr)
        return 2
    except (httpx.HTTPError, ValueError, KeyError) as error:
        print(f"It was not published: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
