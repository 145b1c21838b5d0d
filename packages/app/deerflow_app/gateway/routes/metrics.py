"""Figures for Prometheus: to programs on this machine, and to those with the token of an administrator."""

from __future__ import annotations

from fastapi import Request, Response

from deerflow.errors import ForbiddenError
from deerflow_app.gateway.auth.scopes import require
from deerflow_app.gateway.auth.throttle import client_of
from deerflow_app.gateway.http.router import Router
from deerflow_app.metrics import CONTENT_TYPE

router = Router(tags=["system"])


@router.get("/metrics", summary="What the process does, for Prometheus", include_in_schema=False)
async def metrics(request: Request) -> Response:
    state = request.app.state
    if not client_of(request).is_local:
        credential = await state.authenticator.authenticate(request)
        require(credential, "read")
        # The scope `read` is enough, so the role of the token itself does not say who its owner is.
        if (credential.user or credential.principal).role != "admin":
            text = "Only administrators may see the figures of the server."
            raise ForbiddenError(text, reason="administrators_only")
    return Response(await state.metrics.text(state.runtime), media_type=CONTENT_TYPE)
