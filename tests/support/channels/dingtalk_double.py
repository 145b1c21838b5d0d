"""DingTalk on loopback: its two HTTP interfaces and its stream of JSON frames, as its official client sees them."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from tests.support.channels.double import LATER, Double, Fault, Operation
from tests.support.channels.loopback import Link

ANN, BEN, CORP, GROUP = "staff1", "staff2", "ding1", "cid-group"
PARAM_BYTES = 15_000
MESSAGE, CLICK = "/v1.0/im/bot/messages/get", "/v1.0/card/instances/callback"
OPERATIONS = {
    "/v1.0/oauth2/accessToken": Operation.IDENTIFY,
    "/v1.0/gateway/connections/open": Operation.LISTEN,
    "/v1.0/card/instances/createAndDeliver": Operation.POST,
    "/v1.0/card/instances": Operation.EDIT,
    "/v1.0/card/streaming": Operation.EDIT,
    "/v1.0/robot/messageFiles/download": Operation.FETCH,
}


@dataclass
class Card:
    """An AI card. ``values``: of its variables; ``flowStatus`` 2: it is being written, 3: it is done."""

    space: str
    values: dict[str, str]
    changes: list[str] = field(default_factory=list)


class DingTalkDouble(Double):
    """One app with a robot.

    Attributes:
        sent: messages of the robot: (kind, parameters, where). ``cards``: by outTrackId. ``files``: what people sent, by code.
        kept: what the robot uploaded, by media ID. ``delivered``: IDs of frames. ``acknowledged``: answers to them.
        waiting: frames that no acknowledgement has come for; a new link gets them again.
        is_expired: the next call with the present token is refused. ``scopes``: what the app may do; None: everything.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[str, dict[str, Any], str]] = []
        self.cards: dict[str, Card] = {}
        self.files: dict[str, bytes] = {}
        self.kept: dict[str, tuple[str, bytes]] = {}
        self.acknowledged: dict[str, dict[str, Any]] = {}
        self.waiting: dict[str, dict[str, Any]] = {}
        self.delivered: list[str] = []
        self.said: list[dict[str, Any]] = []
        self.tokens: list[str] = []
        self.opened: list[dict[str, Any]] = []
        self.lifetime = 7200
        self.is_revoked, self.is_expired = False, False
        self.scopes: set[str] | None = None
        self.undeliverable: dict[str, list[str]] = {}
        self._asked: Operation | None = None

    # As a person

    async def write(self, text: str = "", /, **message: Any) -> str:
        """Send a message; returns its ID."""
        message_id = f"msg{len(self.said)}"
        whole = {
            "conversationId": "cid-private",
            "conversationType": "1",
            "chatbotCorpId": CORP,
            "chatbotUserId": "$:LWCP_v1:$bot",
            "msgId": message_id,
            "senderNick": "Ann",
            "isAdmin": False,
            "senderStaffId": ANN,
            "senderId": "$:LWCP_v1:$ann",
            "senderCorpId": CORP,
            "createAt": int(time.time() * 1000),
            "robotCode": "client-1",
            "msgtype": "text",
            "text": {"content": f" {text} "},
            **message,
        }
        self.said.append(whole)
        await self.deliver(MESSAGE, whole)
        return message_id

    async def press(self, card_id: str, key: str, person: str = ANN) -> str:
        """Press the button with this key; returns the ID of the frame."""
        buttons = json.loads(self.cards[card_id].values["buttons"])
        event = next(one["event"] for one in buttons if one["event"]["params"]["actionId"] == key)
        private = {"actionIds": [event["params"]["actionId"]], "params": event["params"]["params"]}
        data = {"corpId": CORP, "type": "actionCallback", "userId": person, "outTrackId": card_id, "extension": "{}"}
        return await self.deliver(CLICK, {**data, "content": json.dumps({"cardPrivateData": private})})

    async def deliver(self, topic: str, data: Any, kind: str = "CALLBACK") -> str:
        """Put a frame on a link; returns its ID."""
        frame_id = uuid.uuid4().hex
        self.delivered.append(frame_id)
        headers = {"appId": "a", "contentType": "application/json", "messageId": frame_id, "topic": topic}
        self.waiting[frame_id] = {"specVersion": "1.0", "type": kind, "headers": headers, "data": json.dumps(data)}
        if self.links:
            await self.links[-1].send(json.dumps(self.waiting[frame_id]))
        return frame_id

    @staticmethod
    def keys(card: Card) -> tuple[str, ...]:
        return tuple(one["event"]["params"]["actionId"] for one in json.loads(card.values["buttons"]))

    # As the platform

    async def attend(self, link: Link) -> None:
        for frame in list(self.waiting.values()):
            await link.send(json.dumps(frame))
        async for raw in link:
            answer = json.loads(raw)
            assert answer["code"] == 200 and answer["headers"]["contentType"] == "application/json"
            json.loads(answer["data"])
            self.acknowledged[answer["headers"]["messageId"]] = answer
            self.waiting.pop(answer["headers"]["messageId"], None)

    def operation(self, request: Request) -> Operation | None:
        if request.url.path in ("/v1.0/robot/oToMessages/batchSend", "/v1.0/robot/groupMessages/send"):
            kind = json.loads(request._body)["msgKey"]
            return Operation.UPLOAD if kind in ("sampleFile", "sampleImageMsg") else Operation.POST
        return OPERATIONS.get(request.url.path)

    def due(self, operation: Operation | None) -> Fault | None:
        self._asked = operation
        return super().due(operation)

    def failure(self, fault: Fault) -> Response:
        match fault:
            case Fault.LATER:
                code = "Forbidden.AccessDenied.QpsLimitForAppkeyAndApi"
                return self._refused(code, "slow down", 403, headers={"retry-after": f"{LATER:.0f}"})
            case Fault.SIGNED_OUT:
                self.is_revoked = True
                if self._asked is Operation.LISTEN:
                    return self._refused("authFailed", "authentication failed", 401)
                if self._asked is Operation.IDENTIFY:
                    return self._wrong_secret()
                return self._refused("InvalidAuthentication", "invalid access_token")
            case _:
                return self._refused("invalidParameter.param.invalid", "not allowed")

    async def respond(self, request: Request) -> Response:
        path = request.url.path
        if path.startswith("/dl/"):
            return Response(self.files[path.rsplit("/", 1)[-1]], media_type="application/octet-stream")
        if path == "/media/upload":
            return await self._keep(request)
        body = await request.json()
        if path == "/v1.0/oauth2/accessToken":
            return self._token(body)
        if path == "/v1.0/gateway/connections/open":
            self.opened.append(body)
            return JSONResponse({"endpoint": f"{self.ws}/connect", "ticket": "ticket+1"})
        if request.headers.get("x-acs-dingtalk-access-token") != self.tokens[-1] or self.is_expired:
            self.is_expired = False
            return self._refused("InvalidAuthentication", "invalid access_token")
        if path == "/v1.0/robot/messageFiles/download":
            assert body["robotCode"] == "client-1"
            return JSONResponse({"downloadUrl": f"{self.http}/dl/{body['downloadCode']}"})
        if path == "/v1.0/card/instances/createAndDeliver":
            return self._create(body)
        if path.startswith("/v1.0/card/"):
            return self._change(path, body)
        return self._send(path, body)

    def _refused(self, code: str, why: str, status: int = 400, headers: Any = None, **more: Any) -> Response:
        return JSONResponse({"code": code, "message": why, "requestid": "r", **more}, status, headers)

    def _wrong_secret(self) -> Response:
        return self._refused("invalidClientIdOrSecret", "invalid clientId or clientSecret")

    def _token(self, body: Mapping[str, Any]) -> Response:
        if self.is_revoked or body != {"appKey": "client-1", "appSecret": "client-secret"}:
            return self._wrong_secret()
        self.tokens.append(f"access-{len(self.tokens)}")
        return JSONResponse({"accessToken": self.tokens[-1], "expireIn": self.lifetime})

    def _needs(self, scope: str) -> Response | None:
        if self.scopes is None or scope in self.scopes:
            return None
        detail = {"requiredScopes": [scope]}
        code = "Forbidden.AccessDenied.AccessTokenPermissionDenied"
        return self._refused(code, "permission is missing", 403, accessdenieddetail=detail)

    def _create(self, body: Mapping[str, Any]) -> Response:
        if missing := self._needs("Card.Instance.Write"):
            return missing
        values = body["cardData"]["cardParamMap"]
        if len(values["content"].encode()) > PARAM_BYTES:
            return self._refused("param.error", "content is too long")
        assert body["callbackType"] == "STREAM" and body["cardTemplateId"] == "template.schema"
        where = body["openSpaceId"].partition("//")[2]
        assert ("imGroupOpenDeliverModel" in body) == where.startswith("IM_GROUP.")
        self.cards.setdefault(body["outTrackId"], Card(where, dict(values)))
        result = {"spaceId": where, "success": where not in self.undeliverable, "errorMsg": "space is gone"}
        return JSONResponse({"success": True, "result": {"outTrackId": body["outTrackId"], "deliverResults": [result]}})

    def _change(self, path: str, body: Mapping[str, Any]) -> Response:
        card = self.cards.get(body["outTrackId"])
        if card is None:
            return self._refused("param.error", "card not exist")
        card.changes.append(path.rsplit("/", 1)[-1])
        if path == "/v1.0/card/streaming":
            assert body["isFull"] and body["key"] == "content" and not body["isError"] and body["guid"]
            if card.values["flowStatus"] == "3":
                return self._refused("param.error", "card is finalized")
            card.values |= {"content": body["content"], "flowStatus": "3" if body["isFinalize"] else "2"}
        else:
            by_key = body.get("cardUpdateOptions", {}).get("updateCardDataByKey", False)
            card.values = {**(card.values if by_key else {}), **body["cardData"]["cardParamMap"]}
        return JSONResponse({"success": True, "result": True})

    def _send(self, path: str, body: Mapping[str, Any]) -> Response:
        if missing := self._needs("qyapi_robot_sendmsg"):
            return missing
        if len(body["msgParam"].encode()) > PARAM_BYTES:
            return self._refused("invalidParameter.msgParam.invalid", "msgParam is too long")
        where = body["openConversationId"] if path.startswith("/v1.0/robot/groupMessages") else body["userIds"][0]
        lists = {name: self.undeliverable.get(name, []) for name in ("invalidStaffIdList", "flowControlledStaffIdList")}
        query = f"query{len(self.sent)}"
        if not any(where in names for names in lists.values()):
            self.sent.append((body["msgKey"], json.loads(body["msgParam"]), where))
        return JSONResponse({"processQueryKey": query, **lists})

    async def _keep(self, request: Request) -> Response:
        if request.query_params["access_token"] != self.tokens[-1] or self.is_expired:
            self.is_expired = False
            return JSONResponse({"errcode": 40014, "errmsg": "invalid access_token"})
        form = await request.form()
        file, kind = form["media"], form["type"]
        assert isinstance(file, UploadFile) and kind in ("image", "file")
        media = f"@media{len(self.kept)}"
        self.kept[media] = (str(file.filename), await file.read())
        return JSONResponse({"errcode": 0, "errmsg": "ok", "media_id": media, "type": kind})

    async def until_acknowledged(self, frame_id: str) -> dict[str, Any]:
        async with asyncio.timeout(10):
            while frame_id not in self.acknowledged:
                await asyncio.sleep(0.01)
        return self.acknowledged[frame_id]
