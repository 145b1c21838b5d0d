"""/docs: the description of the API, to be read. Its viewer, Swagger UI, is loaded from elsewhere, so the page may do nothing
in anybody's name: it is kept apart from the site that serves it."""

from __future__ import annotations

import json

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse

router = APIRouter()

_SOURCE = "https://cdn.jsdelivr.net"
_VIEWER = f"{_SOURCE}/npm/swagger-ui-dist@5"
_POLICY = (
    f"sandbox allow-scripts allow-popups; default-src 'none'; script-src {_SOURCE} 'unsafe-inline'; "
    f"style-src {_SOURCE} 'unsafe-inline'; img-src data:; font-src data:; frame-ancestors 'self'"
)
_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="{viewer}/swagger-ui.css">
</head>
<body>
<div id="viewer"><p>The viewer of this page comes from {source}, which cannot be reached.
The description itself is at <a href="/openapi.json">/openapi.json</a>, for any viewer of OpenAPI.</p></div>
<script src="{viewer}/swagger-ui-bundle.js"></script>
<script>SwaggerUIBundle({{spec: {spec}, dom_id: "#viewer", supportedSubmitMethods: []}})</script>
</body>
</html>
"""


@router.get("/openapi.json", include_in_schema=False)
async def description(request: Request) -> JSONResponse:
    return JSONResponse(request.app.openapi())


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> HTMLResponse:
    spec = json.dumps(request.app.openapi()).replace("<", "\\u003c")
    page = _PAGE.format(title=request.app.title, viewer=_VIEWER, source=_SOURCE, spec=spec)
    return HTMLResponse(page, headers={"Content-Security-Policy": _POLICY})
