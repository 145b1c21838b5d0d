"""The web pages: whatever path is left when the API has been asked."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import re
from pathlib import Path, PurePosixPath

from fastapi import Request, Response

from deerflow.errors import NotFoundError
from deerflow.files.content import OpenFile, media_type
from deerflow_app.gateway.http.compression import negotiate
from deerflow_app.gateway.http.files import WEB_PATH, file_response, with_charset
from deerflow_app.gateway.http.router import Router

_GATEWAY = Path(__file__).parent.parent
SHELLS = ("chats", "settings")
"""Pages that stand for every address below them: the browser reads the rest of the address itself."""

_IMMUTABLE = "public, max-age=31536000, immutable"
_PACKED = {"br": ".br", "gzip": ".gz"}
_INLINE_SCRIPT = re.compile(rb"<script(?![^>]*\ssrc[\s=])[^>]*>(.*?)</script\s*>", re.DOTALL | re.IGNORECASE)
_POLICY = (
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'{hashes}; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; media-src 'self' blob:; font-src 'self' data:; connect-src 'self'; "
    "frame-src 'self' blob:; worker-src 'self' blob:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'self'"
)


class WebFiles:
    """The pages below one directory, which is trusted; nothing outside of it is served."""

    def __init__(self, root: Path) -> None:
        """Blocks: looks where ``root`` really is."""
        self._root = root.resolve()
        self._policies: dict[tuple[Path, str], str] = {}

    def answer(self, request: Request, path: str) -> Response:
        """What is to be shown for the path of an address, ``404.html`` where nothing is. Blocks.

        Raises NotFoundError without a ``404.html``.
        """
        status = 200
        file = self._find(path)
        if file is None:
            status, file = 404, self._inside("404.html")
        if file is None:
            raise NotFoundError(f"There is no page /{path}.")
        name = file.relative_to(self._root).as_posix()
        immutable = name.startswith("_next/static/")
        headers = {"cache-control": _IMMUTABLE if immutable else "no-cache", "vary": "accept-encoding"}
        if file.suffix == ".html":
            headers["content-security-policy"] = self._policy(file)
        packed = {coding: self._inside(name + suffix) for coding, suffix in _PACKED.items()}
        accepted = request.headers.get("accept-encoding", "")
        coding = negotiate(accepted, [coding for coding, found in packed.items() if found])
        if coding is not None:
            headers["content-encoding"] = coding
        served = (packed[coding] if coding else None) or file
        content = OpenFile(os.open(served, os.O_RDONLY | os.O_CLOEXEC), served.name)
        # Pages are UTF-8 throughout; a compressed one does not begin as the page does.
        kind = with_charset(media_type(file.name, content.head), b"")
        return file_response(request, content, media_type=kind, headers=headers, status_code=status)

    def _find(self, path: str) -> Path | None:
        """A real file, else its page, else the shell of what cannot be known when pages are built."""
        trimmed = path.strip("/")
        if not trimmed:
            return self._inside("index.html")
        wanted = [trimmed, f"{trimmed}.html", f"{trimmed}/index.html"]
        first, _, rest = trimmed.partition("/")
        if first in SHELLS and rest:
            last = PurePosixPath(rest).name
            if last.startswith("__next.") and last.endswith(".txt"):
                wanted.append(f"{first}/{last}")
            else:
                wanted.append(first + (".txt" if last.endswith(".txt") else ".html"))
        return next((file for name in wanted if (file := self._inside(name)) is not None), None)

    def _inside(self, name: str) -> Path | None:
        """The regular file of this name, if it is one and really lies in the directory."""
        if "\0" in name or "\\" in name or ".." in name.split("/"):
            return None
        try:
            file = (self._root / name).resolve()
            return file if file.is_relative_to(self._root) and file.is_file() else None
        except (OSError, RuntimeError, ValueError):
            return None

    def _policy(self, page: Path) -> str:
        """Allows exactly the scripts that stand in the page as it was built."""
        info = page.stat()
        key = (page, f"{info.st_mtime_ns}-{info.st_size}")
        if key not in self._policies:
            scripts = dict.fromkeys(_INLINE_SCRIPT.findall(page.read_bytes()))
            digests = (base64.b64encode(hashlib.sha256(script).digest()).decode() for script in scripts)
            self._policies[key] = _POLICY.format(hashes="".join(f" 'sha256-{digest}'" for digest in digests))
        return self._policies[key]


def web_router(directory: Path) -> Router:
    """Serves the pages in ``directory``; to be included after all other routers. Blocks."""
    files = WebFiles(directory)
    router = Router(tags=["web"])

    async def page(path: str, request: Request) -> Response:
        return await asyncio.to_thread(files.answer, request, path)

    router.add_api_route(
        f"/{WEB_PATH}", page, methods=["GET", "HEAD"], include_in_schema=False, response_class=Response
    )
    return router


def pages() -> Path:
    """The web application if this installation has it built, else a notice how to build it."""
    built = _GATEWAY / "web"
    return built if (built / "index.html").is_file() else _GATEWAY / "no_page"


router = web_router(pages())
