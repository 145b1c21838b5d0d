"""Each route is written once, under /api; clients of LangGraph find it where they look."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from deerflow.errors import NotFoundError

_LANGGRAPH = "/api/langgraph"
_BARE = ("/threads", "/runs", "/assistants", "/store", "/ok", "/info")


class Prefixes:
    """``/api/langgraph/X`` and ``/threads``, ``/runs`` … mean ``/api/X``, ``/api/threads`` …"""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            path, raw = scope["path"], scope.get("raw_path")
            if path.endswith("\n"):  # routes end in `$`, which matches before it: two paths would be one
                raise NotFoundError("There is nothing at a path that ends in a line feed.")
            if _within(path, _LANGGRAPH):
                scope["path"] = "/api" + path[len(_LANGGRAPH) :]
                if raw and raw.startswith(_LANGGRAPH.encode()):
                    scope["raw_path"] = b"/api" + raw[len(_LANGGRAPH) :]
            elif any(_within(path, bare) for bare in _BARE):
                scope["path"] = "/api" + path
                if raw:
                    scope["raw_path"] = b"/api" + raw
        await self._app(scope, receive, send)


def _within(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(prefix + "/")
