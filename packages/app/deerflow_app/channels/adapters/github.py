"""GitHub: webhooks for what happens in repositories, comments for answers.

https://docs.github.com/en/webhooks, https://docs.github.com/en/rest/issues/comments.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import httpx

from deerflow.features.channels.types import (
    Accept,
    Author,
    Caps,
    Event,
    HttpAdapter,
    Inbound,
    Later,
    Me,
    Misconfigured,
    Part,
    Place,
    Ref,
    Refused,
    Signal,
    SignedOut,
    Uncertain,
    Unreachable,
)
from deerflow_app.channels.wire import AFTER, Http, understood

API = "https://api.github.com"
_REACTIONS = {Signal.SEEN: "eyes", Signal.JOINED: "rocket", Signal.DONE: "+1", Signal.FAILED: "confused"}
_OTHERS_LIMIT = 20_000
"""Letters of an issue that come with a comment on it."""


@dataclass(frozen=True)
class _Kind:
    """An event that carries a text. ``reactions``: the path of the text's reactions, with its id; empty if it takes none."""

    action: str
    text: str
    issue: str
    reactions: str = ""


_KINDS = {
    "issues": _Kind("opened", "issue", "issue", "issues/{number}/reactions"),
    "issue_comment": _Kind("created", "comment", "issue", "issues/comments/{id}/reactions"),
    "pull_request": _Kind("opened", "pull_request", "pull_request", "issues/{number}/reactions"),
    "pull_request_review": _Kind("submitted", "review", "pull_request"),
    "pull_request_review_comment": _Kind("created", "comment", "pull_request", "pulls/comments/{id}/reactions"),
}


class GitHub(HttpAdapter):
    """An account or app that is mentioned in issues and pull requests.

    Args:
        secret: that of the webhook.
        token: with the right to write issues and pull requests.
        login: the name that is mentioned; empty to take that of the token. An app's token has none of its own.
    """

    def __init__(self, secret: str, token: str, *, login: str = "", base_url: str = API) -> None:
        self.caps = Caps(
            dialect="github",
            edit_every=5.0,
            post_every=1.0,
            signals=frozenset(_REACTIONS),
            ack_seconds=10.0,
            replays=False,
        )
        self._secret = secret
        self._token = token
        self._login = login.removesuffix("[bot]")
        self._http = Http(
            base_url,
            secrets=[token],
            headers={
                "Accept": "application/vnd.github+json",
                "Authorization": f"Bearer {token}",
                "User-Agent": "deerflow",
                "X-GitHub-Api-Version": "2022-11-28",
            },
        )

    async def aclose(self) -> None:
        await self._http.aclose()

    async def identify(self) -> Me:
        if not self._secret:
            raise Misconfigured(
                "Set GITHUB_WEBHOOK_SECRET to the secret of the webhook: repository → Settings → Webhooks."
            )
        if not self._token:
            raise Misconfigured(
                "Set channels.github.token: Settings → Developer settings → Personal access tokens → Fine-grained tokens."
            )
        if self._login:
            await self._call("GET", "/rate_limit")
            return Me(self._login, self._login)
        user = await self._call("GET", "/user")
        self._login = user["login"]
        return Me(str(user["id"]), user["login"], link=user.get("html_url", ""))

    async def listen(self, accept: Accept, cursor: str, connected: Callable[[], None]) -> None:
        if not self._login:
            await self.identify()
        connected()
        await asyncio.Event().wait()

    async def receive(self, headers: Mapping[str, str], body: bytes, accept: Accept) -> tuple[int, Mapping[str, Any]]:
        """As in the contract. GitHub does not deliver a second time by itself, so nothing but the row is waited for."""
        headers = {name.lower(): value for name, value in headers.items()}
        if not self._secret or not hmac.compare_digest(
            headers.get("x-hub-signature-256", "").encode(), signature(self._secret, body).encode()
        ):
            return 401, {"error": "X-Hub-Signature-256 does not fit GITHUB_WEBHOOK_SECRET."}
        kind, delivery = headers.get("x-github-event", ""), headers.get("x-github-delivery", "")
        if kind == "ping":
            return 200, {"status": "pong"}
        try:
            data = json.loads(body)
        except ValueError:
            return 400, {"error": "Set the webhook's content type to application/json."}
        if not self._login:  # this adapter only receives: another one holds the connection
            await self.identify()
        found = understood(partial(self._events, kind, delivery), data, "GitHub")
        if not found:
            return 202, {"status": "ignored"}
        await accept(found, None)
        return 202, {"status": "accepted", "id": delivery}

    def _events(self, event: str, delivery: str, data: Mapping[str, Any]) -> list[Event]:
        if (kind := _KINDS.get(event)) is None or data["action"] != kind.action or not delivery:
            return []
        said, issue = data[kind.text], data[kind.issue]
        user, text = said["user"], said.get("body") or ""
        if self._is_ours(user["login"]) or not (text or kind.text == kind.issue):
            return []
        repository, number = data["repository"]["full_name"], issue["number"]
        own, quoted = _without_quotes(text)
        is_mention, own = self._addressed(own)
        title = f"#{number} {issue['title']}"
        if kind.text == kind.issue:
            own = f"{issue['title']}\n\n{own}".strip()
        else:
            quoted = f"{title}\n\n{(issue.get('body') or '')[:_OTHERS_LIMIT]}\n\n{quoted}".strip()
        reactions = kind.reactions.format(number=number, id=said["id"])
        return [
            Inbound(
                delivery,
                Place(repository, str(number), name=title),
                Author(str(user["id"]), name=user["login"], is_bot=user.get("type") == "Bot"),
                _moment(said.get("submitted_at") or said.get("created_at")),
                own,
                is_mention=is_mention,
                quoted=quoted,
                wake={
                    "event": event,
                    "action": kind.action,
                    "url": said.get("html_url", ""),
                    "reactions": f"/repos/{repository}/{reactions}" if reactions else "",
                },
            )
        ]

    def _is_ours(self, login: str) -> bool:
        return login.removesuffix("[bot]").lower() == self._login.lower()

    def _addressed(self, text: str) -> tuple[bool, str]:
        """Return whether the text names us, and the text without our name at its start. Names in code are not mentions."""
        name = re.compile(rf"(?<![\w@/.-])@{re.escape(self._login)}(?![\w/-])", re.IGNORECASE)
        prose = re.sub(r"```[^`]*```|`[^`\n]*`", "", text)
        ours = name.match(text)
        return bool(self._login and name.search(prose)), (text[ours.end() :] if ours else text).strip()

    async def post(self, place: Place, part: Part, key: str, wake: Mapping[str, Any]) -> Ref:
        path = f"/repos/{place.chat}/issues/{place.topic}/comments"
        made = await self._call("POST", path, json={"body": part.text})
        return {"id": made["id"]}

    async def edit(self, place: Place, ref: Ref, part: Part, seq: int) -> Ref:
        path = f"/repos/{place.chat}/issues/comments/{ref['id']}"
        await self._call("PATCH", path, repeatable=True, json={"body": part.text})
        return ref

    async def find(self, place: Place, since: datetime, known: Sequence[Ref], wake: Mapping[str, Any]) -> Ref | None:
        path = f"/repos/{place.chat}/issues/{place.topic}/comments"
        query = {"since": f"{since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}", "per_page": "100"}
        taken, found = {ref.get("id") for ref in known}, await self._call("GET", path, params=query)
        lost = [one["id"] for one in found if self._is_ours(one["user"]["login"]) and one["id"] not in taken]
        return {"id": max(lost)} if lost else None

    async def signal(self, place: Place, message_id: str, signal: Signal, wake: Mapping[str, Any]) -> None:
        if path := wake.get("reactions"):
            await self._call("POST", path, repeatable=True, json={"content": _REACTIONS[signal]})

    async def _call(self, method: str, path: str, *, repeatable: bool = False, **more: Any) -> Any:
        answer = await self._http.request(method, path, repeatable=repeatable, **more)
        if answer.status_code == 401:
            raise SignedOut(
                "GitHub does not take channels.github.token. Make a new one under Settings → Developer settings."
            )
        if answer.status_code == 403 and (after := _pause(answer)) is not None:
            raise Later("GitHub asks for a pause.", after, everywhere=True)
        try:
            said = answer.json() if answer.content else {}
        except ValueError:
            why = f"{answer.url.host} did not answer with JSON."
            raise Unreachable(why) if repeatable or method == "GET" else Uncertain(why) from None
        if answer.status_code >= 400:
            raise Refused(f"GitHub: {said.get('message', answer.status_code)} ({answer.status_code}, {method} {path}).")
        return said


def signature(secret: str, body: bytes) -> str:
    """Return the value of ``X-Hub-Signature-256``."""
    return "sha256=" + hmac.digest(secret.encode(), body, "sha256").hex()


def _pause(answer: httpx.Response) -> float | None:
    """Return the seconds that a limit asks for, or None if the answer is about a right."""
    if after := answer.headers.get("retry-after"):
        return float(after) if after.isdecimal() else AFTER
    if answer.headers.get("x-ratelimit-remaining") == "0":
        return max(1.0, float(answer.headers.get("x-ratelimit-reset", 0)) - time.time())
    return None


def _without_quotes(text: str) -> tuple[str, str]:
    lines = text.replace("\r\n", "\n").split("\n")
    quoted = [line for line in lines if line.lstrip().startswith(">")]
    own = [line for line in lines if not line.lstrip().startswith(">")]
    return "\n".join(own).strip(), "\n".join(quoted)


def _moment(stamp: str | None) -> datetime:
    return datetime.fromisoformat(stamp) if stamp else datetime.now(UTC)
