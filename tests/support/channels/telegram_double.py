"""Telegram on loopback: Bot API with long polling, as its official clients see it."""

from __future__ import annotations

import asyncio
import html
import json
import re
import time
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from tests.support.channels.double import LATER, Double, Fault, Operation
from tests.support.channels.loopback import Cut

OPERATIONS = {
    "getMe": Operation.IDENTIFY,
    "getUpdates": Operation.LISTEN,
    "sendMessage": Operation.POST,
    "sendRichMessage": Operation.POST,
    "editMessageText": Operation.EDIT,
    "sendDocument": Operation.UPLOAD,
    "sendPhoto": Operation.UPLOAD,
    "getFile": Operation.FETCH,
}
US = {"id": 99, "is_bot": True, "first_name": "Deer", "username": "Deer_Bot"}
ANN, BEN = 7, 8
GROUP = -100500


class TelegramDouble(Double):
    """The Bot API of one bot.

    Attributes:
        updates: those that no poll has confirmed.
        messages: of the bot, by (chat, message id).
        files: of people, by file id.
        said: all messages of people.
        waiting: the number of the poll that is held open, or 0.
        freezes: raised by one, the poll that waits is never answered; ``cuts``: it is cut.
    """

    def __init__(self, token: str = "99:AAbbCC-dd_ee") -> None:
        super().__init__()
        self.token = token
        self.updates: list[dict[str, Any]] = []
        self.messages: dict[tuple[int, int], dict[str, Any]] = {}
        self.uploads: list[tuple[str, bytes]] = []
        self.files: dict[str, bytes] = {}
        self.answers: list[dict[str, Any]] = []
        self.reactions: list[dict[str, Any]] = []
        self.said: list[dict[str, Any]] = []
        self.waiting = 0
        self.freezes = 0
        self.cuts = 0
        self._update_id = 1000
        self._message_id = 10
        self._poll = 0

    def push(self, **update: Any) -> dict[str, Any]:
        self._update_id += 1
        self.updates.append({"update_id": self._update_id, **update})
        return self.updates[-1]

    def write(self, chat: int = ANN, user: Mapping[str, Any] | None = None, **message: Any) -> dict[str, Any]:
        """Send a message as a person; returns it."""
        self._message_id += 1
        kind = {"type": "private", "first_name": "Ann"} if chat > 0 else {"type": "supergroup", "title": "Herd"}
        whole = {
            "message_id": self._message_id,
            "date": int(time.time()),
            "chat": {"id": chat, **kind},
            "from": {"id": ANN, "is_bot": False, "first_name": "Ann", **(user or {})},
            **message,
        }
        self.said.append(whole)
        self.push(message=whole)
        return whole

    def keep(self, content: bytes) -> dict[str, Any]:
        """Store a file of a person; returns the part of a message that names it."""
        file_id = f"file-{len(self.files)}"
        self.files[file_id] = content
        return {"file_id": file_id, "file_unique_id": file_id, "file_size": len(content)}

    def press(self, chat: int, message_id: int, data: str, person: int = ANN) -> None:
        found = self.messages[chat, message_id]
        query = {"id": f"q{self._update_id}", "chat_instance": "1", "data": data, "message": found["result"]}
        self.push(callback_query={**query, "from": {"id": person, "is_bot": False, "first_name": "Ann"}})

    def operation(self, request: Request) -> Operation | None:
        return OPERATIONS.get(request.url.path.rsplit("/", 1)[-1])

    def failure(self, fault: Fault) -> Response:
        match fault:
            case Fault.LATER:
                return _error(429, f"Too Many Requests: retry after {LATER:.0f}", retry_after=int(LATER))
            case Fault.SIGNED_OUT:
                return _error(401, "Unauthorized")
            case Fault.DISPLACED:
                why = (
                    "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
                )
                return _error(409, why)
            case _:
                return _error(403, "Forbidden: bot was blocked by the user")

    async def respond(self, request: Request) -> Response:
        path = request.url.path
        if path.startswith(f"/file/bot{self.token}/"):
            return Response(self.files[path.rsplit("/", 1)[-1]], media_type="application/octet-stream")
        if not path.startswith(f"/bot{self.token}/"):
            return _error(401, "Unauthorized")
        method = path.rsplit("/", 1)[-1]
        body = await _arguments(request)
        if method == "getUpdates":
            return await self._get_updates(body)
        name = re.sub("([A-Z])", r"_\1", method).lower()
        return getattr(self, f"_{name}", _yes)(body)

    async def _get_updates(self, body: Mapping[str, Any]) -> Response:
        offset = int(body.get("offset", 0))
        if offset <= self._update_id + 10:  # one in the far future is ignored
            self.updates = [update for update in self.updates if update["update_id"] >= offset]
        self._poll += 1
        self.waiting = 0
        end, poll, cuts, freezes = time.monotonic() + float(body.get("timeout", 0)), self._poll, self.cuts, self.freezes
        while (not self.updates and time.monotonic() < end) or freezes != self.freezes:
            self.waiting = poll
            await asyncio.sleep(0.01)
            if cuts != self.cuts:
                raise Cut
            if poll != self._poll:
                return self.failure(Fault.DISPLACED)
        return _result(self.updates[: int(body.get("limit", 100))])

    def _get_me(self, body: Mapping[str, Any]) -> Response:
        return _result(US)

    def _send_message(self, body: Mapping[str, Any]) -> Response:
        return self._checked(body) or self._posted(body, {"text": _visible(body)})

    _send_rich_message = _send_message

    def _edit_message_text(self, body: Mapping[str, Any]) -> Response:
        found = self.messages.get((int(body["chat_id"]), int(body["message_id"])))
        if found is None:
            return _error(400, "Bad Request: message to edit not found")
        if (refusal := self._checked(body)) is not None:
            return refusal
        shown = ("text", "rich_message", "reply_markup")
        if all(found["body"].get(key) == body.get(key) for key in shown):
            return _error(
                400,
                "Bad Request: message is not modified: specified new message content and reply markup are exactly the same",
            )
        found["body"] = {**found["body"], **{key: body.get(key) for key in shown}}
        found["result"]["text"] = _visible(body)
        return _result(found["result"])

    def _checked(self, body: Mapping[str, Any]) -> Response | None:
        text = _visible(body)
        if not text.strip():
            return _error(400, "Bad Request: message text is empty")
        rich = body.get("rich_message")
        if rich and text.count("\n| ") > 500:
            return _error(400, "Bad Request: RICH_MESSAGE_TOO_MANY_BLOCKS")
        if len(text.encode("utf-16-le")) // 2 > (32_768 if rich else 4096):
            return _error(400, "Bad Request: message is too long")
        for row in (body.get("reply_markup") or {}).get("inline_keyboard", ()):
            if any(not 1 <= len(button["callback_data"].encode()) <= 64 for button in row):
                return _error(400, "Bad Request: BUTTON_DATA_INVALID")
        return None

    def _send_document(self, body: Mapping[str, Any]) -> Response:
        self.uploads.append(body["document"])
        return self._posted(body, {"document": self.keep(body["document"][1])})

    def _send_photo(self, body: Mapping[str, Any]) -> Response:
        if not body["photo"][1].startswith((b"\x89PNG", b"\xff\xd8")):
            return _error(400, "Bad Request: IMAGE_PROCESS_FAILED")
        self.uploads.append(body["photo"])
        return self._posted(body, {"photo": [{**self.keep(body["photo"][1]), "width": 1, "height": 1}]})

    def _posted(self, body: Mapping[str, Any], content: Mapping[str, Any]) -> Response:
        self._message_id += 1
        chat = int(body["chat_id"])
        kind = {"type": "private"} if chat > 0 else {"type": "supergroup", "title": "Herd"}
        result = {
            "message_id": self._message_id,
            "date": int(time.time()),
            "chat": {"id": chat, **kind},
            "from": US,
            **content,
        }
        if thread := body.get("message_thread_id"):
            result |= {"message_thread_id": int(thread), "is_topic_message": True}
        self.messages[chat, self._message_id] = {"body": dict(body), "result": result}
        return _result(result)

    def _get_file(self, body: Mapping[str, Any]) -> Response:
        name = str(body["file_id"])
        if len(self.files[name]) > 20_000_000:
            return _error(400, "Bad Request: file is too big")
        found = {"file_id": name, "file_unique_id": name, "file_size": len(self.files[name])}
        return _result({**found, "file_path": f"documents/{name}"})

    def _answer_callback_query(self, body: Mapping[str, Any]) -> Response:
        self.answers.append(dict(body))
        return _result(True)

    def _set_message_reaction(self, body: Mapping[str, Any]) -> Response:
        self.reactions.append(dict(body))
        return _result(True)


def _visible(body: Mapping[str, Any]) -> str:
    """Return what people see: without the tags of HTML, where that is how the text is written."""
    if rich := body.get("rich_message"):
        return str(rich["markdown"])
    text = str(body["text"])
    return html.unescape(re.sub(r"<[^>]+>", "", text)) if body.get("parse_mode") == "HTML" else text


async def _arguments(request: Request) -> dict[str, Any]:
    kind = request.headers.get("content-type", "")
    if kind.startswith("application/json"):
        return {**request.query_params, **await request.json()}
    found: dict[str, Any] = dict(request.query_params)
    for key, value in (await request.form()).multi_items():
        if isinstance(value, UploadFile):
            found[key] = (value.filename, await value.read())
        else:
            found[key] = json.loads(value) if value[:1] in "{[" and value else value
    # A file may stand under another name, which its parameter then gives.
    prefix = "attach://"
    return {
        key: found[value.removeprefix(prefix)] if isinstance(value, str) and value.startswith(prefix) else value
        for key, value in found.items()
    }


def _result(result: Any) -> Response:
    body = json.dumps({"ok": True, "result": result})  # in ASCII, as any text can be that
    return Response(body, media_type="application/json")


def _error(code: int, description: str, **parameters: Any) -> Response:
    more = {"parameters": parameters} if parameters else {}
    return JSONResponse({"ok": False, "error_code": code, "description": description, **more}, code)


def _yes(body: Mapping[str, Any]) -> Response:
    return _result(True)
