"""An authorization server that holds its clients to the rules: registration, PKCE, codes and refresh tokens that are used once."""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response


@dataclass
class OAuthDouble:
    """Answers in front of ``app``, an MCP server at ``/mcp``, which sees whose call it is in the header ``x-person``.

    ``POST /change`` with JSON changes its attributes.
    """

    app: Any
    base: str
    lifetime: int | None = 3600
    registers: bool = True
    issuer: str = ""
    discovers: str = ""
    """Where metadata says that the authorization server is; empty: here."""
    methods: list[str] = field(default_factory=lambda: ["S256"])
    clients: dict[str, list[str]] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    access: dict[str, str] = field(default_factory=dict)
    refreshing: dict[str, str] = field(default_factory=dict)
    refreshes: int = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        request = Request(scope, receive)
        name = request.url.path.strip("/").split("/")[-1].replace("-", "_")
        if request.url.path == "/mcp":
            scheme, _, token = request.headers.get("authorization", "").partition(" ")
            if scheme != "Bearer" or token not in self.access:
                where = f'Bearer resource_metadata="{self.base}/.well-known/oauth-protected-resource/mcp"'
                return await Response(status_code=401, headers={"www-authenticate": where})(scope, receive, send)
            scope["headers"] = [*scope["headers"], (b"x-person", self.access[token].encode())]
            return await self.app(scope, receive, send)
        if request.url.path == "/.well-known/oauth-protected-resource/mcp":
            name = "resource"
        handler = getattr(self, f"on_{name}", None)
        answer = await handler(request) if handler is not None else Response(status_code=404)
        await answer(scope, receive, send)

    async def on_resource(self, _: Request) -> Response:
        server = self.discovers or self.base
        return JSONResponse({"resource": f"{self.base}/mcp", "authorization_servers": [server]})

    async def on_oauth_authorization_server(self, _: Request) -> Response:
        found = {"issuer": self.issuer or self.base, "code_challenge_methods_supported": self.methods}
        found |= {f"{name}_endpoint": f"{self.base}/{name[:9]}" for name in ("authorization", "token")}
        found["authorization_endpoint"] = f"{self.base}/authorize"
        found["authorization_response_iss_parameter_supported"] = True
        return JSONResponse(found | ({"registration_endpoint": f"{self.base}/register"} if self.registers else {}))

    async def on_register(self, request: Request) -> Response:
        given = await request.json()
        client = f"client-{len(self.clients) + 1}"
        self.clients[client] = given["redirect_uris"]
        return JSONResponse({**given, "client_id": client}, 201)

    async def on_authorize(self, request: Request) -> Response:
        """Whoever comes with ``x-person`` allows it; without it nobody does."""
        asked = dict(request.query_params)
        known = asked.get("redirect_uri") in self.clients.get(asked.get("client_id", ""), [])
        if not known or asked.get("code_challenge_method") != "S256" or asked.get("resource") != f"{self.base}/mcp":
            return JSONResponse({"error": "invalid_request"}, 400)
        answer = {"state": asked["state"], "iss": self.base}
        if person := request.headers.get("x-person"):
            code = secrets.token_urlsafe()
            self.codes[code] = {**asked, "person": person}
            answer["code"] = code
        else:
            answer |= {"error": "access_denied", "error_description": "The person said <no>."}
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(answer)}", 302)

    async def on_token(self, request: Request) -> Response:
        form = dict(await request.form())
        if form["grant_type"] == "authorization_code":
            asked = self.codes.pop(str(form["code"]), None)
            digest = hashlib.sha256(str(form.get("code_verifier")).encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            names = ("client_id", "redirect_uri", "resource")
            if asked is None or challenge != asked["code_challenge"] or any(form.get(n) != asked[n] for n in names):
                return JSONResponse({"error": "invalid_grant"}, 400)
            person = asked["person"]
        else:
            self.refreshes += 1
            if (person := self.refreshing.pop(str(form["refresh_token"]), None)) is None:
                return JSONResponse({"error": "invalid_grant", "error_description": "used before"}, 400)
        token, refresh = secrets.token_urlsafe(), secrets.token_urlsafe()
        self.access[token] = self.refreshing[refresh] = person
        given = {"access_token": token, "refresh_token": refresh, "token_type": "bearer"}
        return JSONResponse(given | ({"expires_in": self.lifetime} if self.lifetime is not None else {}))

    async def on_change(self, request: Request) -> Response:
        for name, value in (await request.json()).items():
            setattr(self, name, value)
        return JSONResponse({"refreshes": self.refreshes, "clients": len(self.clients)})
