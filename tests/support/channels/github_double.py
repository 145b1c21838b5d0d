"""GitHub on loopback: comments and reactions over REST, and signed deliveries to a route of ours."""

from __future__ import annotations

import hmac
import json
import uuid
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from tests.support.channels.double import LATER, Double, Fault, Operation

SECRET, TOKEN = "webhook-secret", "github_pat_secret"
REPOSITORY = "acme/shop"
ME = {"id": 900, "login": "deer-bot", "type": "User", "html_url": "https://github.com/deer-bot"}
ANN = {"id": 7, "login": "ann", "type": "User"}


class GitHubDouble(Double):
    """A repository. ``comments``: those that were made, by id. ``reactions``: path and content."""

    def __init__(self) -> None:
        super().__init__()
        self.comments: dict[int, dict[str, Any]] = {}
        self.reactions: list[tuple[str, str]] = []

    def delivery(self, event: str, payload: dict[str, Any], secret: str = SECRET) -> tuple[dict[str, str], bytes]:
        """Return headers and body of a webhook, as GitHub sends it."""
        body = json.dumps({"repository": {"full_name": REPOSITORY}, "sender": ANN, **payload}).encode()
        headers = {
            "Content-Type": "application/json",
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": str(uuid.uuid4()),
            "X-Hub-Signature-256": "sha256=" + hmac.digest(secret.encode(), body, "sha256").hex(),
        }
        return headers, body

    def issue(self, number: int = 5, body: str | None = "It crashes.", **more: Any) -> dict[str, Any]:
        return {
            "id": 100 + number,
            "number": number,
            "title": "A crash",
            "body": body,
            "user": ANN,
            "created_at": "2026-11-26T03:00:00Z",
            **more,
        }

    def comment(self, body: str, number: int = 77, **more: Any) -> dict[str, Any]:
        return {"id": number, "body": body, "user": ANN, "created_at": "2026-11-26T03:00:00Z", **more}

    def operation(self, request: Request) -> Operation | None:
        if request.url.path in ("/user", "/rate_limit"):
            return Operation.IDENTIFY
        if request.method == "PATCH":
            return Operation.EDIT
        return Operation.POST if request.url.path.endswith("/comments") else None

    def failure(self, fault: Fault) -> Response:
        if fault is Fault.LATER:  # a secondary limit comes with 403 or 429
            message = "You have exceeded a secondary rate limit."
            return JSONResponse({"message": message}, 403, {"retry-after": str(int(LATER))})
        if fault is Fault.SIGNED_OUT:
            return JSONResponse({"message": "Bad credentials"}, 401)
        return JSONResponse({"message": "Resource not accessible by personal access token"}, 403)

    async def respond(self, request: Request) -> Response:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return self.failure(Fault.SIGNED_OUT)
        body = await request.json() if await request.body() else {}
        match request.method, request.url.path.removeprefix(f"/repos/{REPOSITORY}").strip("/").split("/"):
            case "GET", ["user"]:
                return JSONResponse(ME)
            case "GET", ["rate_limit"]:
                return JSONResponse({"resources": {}})
            case "POST", ["issues", number, "comments"]:
                made = {"id": 1000 + len(self.comments), "body": body["body"], "issue": int(number), "user": ME}
                self.comments[made["id"]] = made
                return JSONResponse(made, 201)
            case "GET", ["issues", number, "comments"]:
                return JSONResponse([one for one in self.comments.values() if one["issue"] == int(number)])
            case "PATCH", ["issues", "comments", comment] if int(comment) in self.comments:
                self.comments[int(comment)]["body"] = body["body"]
                return JSONResponse(self.comments[int(comment)])
            case "POST", [*path, "reactions"]:
                self.reactions.append(("/".join(path), body["content"]))
                return JSONResponse({}, 201)
        return JSONResponse({"message": "Not Found"}, 404)
