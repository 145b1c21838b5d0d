"""The web pages: whatever path is left when the API has been asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

from fastapi import APIRouter, Request, Response

from deerflow.files.content import media_type
from deerflow_app.gateway.convertors import WEB_PATH
from deerflow_app.gateway.file_response import file_response, with_charset
from deerflow_app.gateway.web_files import WebFiles

_GATEWAY = Path(__file__).parent.parent


def web_router(directory: Path) -> APIRouter:
    """Serves the pages in ``directory``; to be included after all other routers. Blocks."""
    files = WebFiles(directory)
    router = APIRouter(tags=["web"])

    async def page(path: str, request: Request) -> Response:
        file = await asyncio.to_thread(files.open, path, request.headers.get("accept-encoding", ""))
        # Pages are UTF-8 throughout; a compressed one does not begin as the page does.
        kind = with_charset(media_type(file.name, file.content.head), b"")
        return file_response(request, file.content, media_type=kind, headers=file.headers, status_code=file.status)

    router.add_api_route(
        f"/{WEB_PATH}", page, methods=["GET", "HEAD"], include_in_schema=False, response_class=Response
    )
    return router


def pages() -> Path:
    """The web application if this installation has it built, else a notice how to build it."""
    built = _GATEWAY / "web"
    return built if (built / "index.html").is_file() else _GATEWAY / "no_page"


router = web_router(pages())
