"""Chat channels over HTTP: a bot that signs in by QR code, and the routes of the reference that set a platform up."""

from __future__ import annotations

from functools import partial

import pytest
from tests.app.gateway.conftest import WithRuntime
from tests.support.channels.wechat_double import WeChatDouble

from deerflow_app.channels.adapters import wechat


@pytest.fixture
def opened(with_runtime: WithRuntime) -> WithRuntime:
    return partial(with_runtime, memory={"enabled": False})


async def test_a_qr_code_adds_a_bot_and_signs_it_in_again(opened: WithRuntime, monkeypatch: pytest.MonkeyPatch):
    async with WeChatDouble() as double, opened() as gateway:
        monkeypatch.setattr(wechat, "BASE_URL", double.http)
        me, other = gateway.user, gateway.admin
        code = (await me.post("/api/channels/wechat/qr-code")).json()
        assert code["content"].endswith(code["id"]) and code["server"] == double.http
        question = {"id": code["id"], "server": code["server"], "own": True, "agent": None}
        double.qr = [
            {"status": "wait"},
            {"status": "need_verifycode"},
            {"status": "confirmed", "bot_token": "secret-1"},
        ]
        seen = [(await me.post("/api/channels/wechat/qr-code/progress", json=question)).json() for _ in range(3)]
        assert [one["state"] for one in seen] == ["waiting", "needs_code", "confirmed"]
        assert [one["bot"] for one in seen[:2]] == [None, None]
        bot = seen[2]["bot"]
        assert bot["own"] and bot["kind"] == "wechat" and "secret-1" not in str(seen)
        again = {"id": code["id"], "server": code["server"], "bot_id": bot["id"]}
        double.qr = [{"status": "confirmed", "bot_token": "secret-2"}]
        strange = await other.post("/api/channels/wechat/qr-code/progress", json=again)
        assert strange.status_code == 404 and double.qr, "a stranger's question reaches no platform"
        made = (await me.post("/api/channels/wechat/qr-code/progress", json=again)).json()
        assert made["bot"]["id"] == bot["id"] and len((await me.get("/api/channels/bots")).json()["bots"]) == 1


async def test_a_qr_code_is_for_its_platform_and_for_who_may_add_the_bot(
    opened: WithRuntime, monkeypatch: pytest.MonkeyPatch
):
    async with WeChatDouble() as double, opened() as gateway:
        monkeypatch.setattr(wechat, "BASE_URL", double.http)
        question = {"id": "1", "server": double.http}
        telegram = {"kind": "telegram", "values": {"bot_token": "1:a"}, "own": True}
        bot_id = (await gateway.user.post("/api/channels/bots", json=telegram)).json()["id"]
        refused = [
            await gateway.user.post("/api/channels/telegram/qr-code"),
            await gateway.user.post("/api/channels/wechat/qr-code/progress", json=question),
            await gateway.user.post("/api/channels/wechat/qr-code/progress", json=question | {"bot_id": bot_id}),
            await gateway.admin.post(
                "/api/channels/wechat/qr-code/progress", json=question | {"server": "https://evil.example"}
            ),
        ]
        assert [one.status_code for one in refused] == [404, 403, 404, 503]
        assert "no server of WeChat" in refused[3].json()["detail"]


async def test_the_settings_of_a_platform_are_set_and_deleted(opened: WithRuntime):
    async with opened() as gateway:
        path, values = "/api/channels/telegram/runtime-config", {"bot_token": "1:a"}
        assert (await gateway.user.post(path, json={"values": values})).status_code == 403
        for _ in range(2):
            made = (await gateway.admin.post(path, json={"values": values})).json()
            assert (made["provider"], made["enabled"], made["configured"]) == ("telegram", True, True)
        assert len((await gateway.admin.get("/api/channels/bots")).json()["bots"]) == 1
        assert (await gateway.user.delete(path)).status_code == 403
        gone = (await gateway.admin.delete(path)).json()
        assert (gone["enabled"], gone["configured"]) == (False, False)
        wrong = [await gateway.admin.post("/api/channels/fax/runtime-config", json={"values": {}})]
        wrong.append(await gateway.admin.post(path, json={"values": {"bot_tokn": "1"}}))
        assert [one.status_code for one in wrong] == [404, 404] and "bot_tokn" in wrong[1].text
