"""Platforms that call us, as people use them: GitHub, and a program with signed webhooks."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import quote

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from tests.contracts.channels.case import Case, Said, Shown
from tests.support.channels.double import Double, Fault, Operation
from tests.support.channels.github_double import GitHubDouble

from deerflow.features.channels.types import Adapter

SIGNING_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class CallingCase(Case):
    """Args:
    calls: the address of ours that the platform calls; set once the server runs.
    """

    has_link = has_clicks = has_history = has_signals = has_replies = False
    calls = ""

    def adapter(self) -> Adapter:
        raise NotImplementedError

    async def repeat(self) -> None:
        raise NotImplementedError

    async def babble(self) -> None:
        raise NotImplementedError

    async def _call(self, headers: dict[str, str], body: bytes) -> None:
        async with httpx.AsyncClient(trust_env=False) as http:
            (await http.post(self.calls, headers=headers, content=body)).raise_for_status()

    def received(self) -> Sequence[tuple[str, bytes]]:
        return ()


class GitHubCase(CallingCase):
    name = "github"

    def __init__(self) -> None:
        self.double: GitHubDouble = GitHubDouble()

    async def say(self, said: Said) -> str:
        user = {"id": 8, "login": "ben", "type": "User"} if said.by_ben else {"id": 7, "login": "ann", "type": "User"}
        now = datetime.now(UTC).isoformat()
        comment = self.double.comment(f"@deer-bot {said.text}", user=user, created_at=now)
        payload = {"action": "created", "issue": self.double.issue(), "comment": comment}
        headers, body = self.double.delivery("issue_comment", payload)
        await self._call(headers, body)
        return headers["X-GitHub-Delivery"]

    def shown(self) -> Sequence[Shown]:
        return [Shown(one["body"]) for one in self.double.comments.values()]


class Program(Double):
    """A program that takes signed answers, and keeps files for us to fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.got: list[str] = []
        self.files: dict[str, bytes] = {}

    def operation(self, request: Request) -> Operation | None:
        return None

    def failure(self, fault: Fault) -> Response:
        return JSONResponse({}, 403)

    async def respond(self, request: Request) -> Response:
        if request.method == "GET":
            return Response(self.files[request.url.path.rsplit("/", 1)[-1]])
        self.got.append((await request.json())["data"]["text"])
        return JSONResponse({})


class WebhookCase(CallingCase):
    name = "webhook"

    def __init__(self) -> None:
        self.double: Program = Program()
        self._count = 0

    async def say(self, said: Said) -> str:
        self._count += 1
        message, stamp, person = f"msg_{self._count}", str(int(time.time())), "ben" if said.by_ben else "ann"
        self.double.files |= {quote(name): content for name, content in said.files}
        files = [{"name": name, "url": f"{self.double.http}/{quote(name)}"} for name, _ in said.files]
        data = {"text": said.text, "chat": person, "author": {"id": person, "name": person}, "files": files}
        body = json.dumps({"type": "message", "data": data}).encode()
        key = base64.b64decode(SIGNING_SECRET.removeprefix("whsec_"))
        signed = hmac.digest(key, f"{message}.{stamp}.".encode() + body, "sha256")
        headers = {"webhook-id": message, "webhook-timestamp": stamp}
        await self._call({**headers, "webhook-signature": f"v1,{base64.b64encode(signed).decode()}"}, body)
        return message

    def shown(self) -> Sequence[Shown]:
        return [Shown(text) for text in self.double.got]
