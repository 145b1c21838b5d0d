"""Dictation by an endpoint of OpenAI's audio transcriptions: a real form over real HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from bench.scripted_openai import HttpError, ScriptedOpenAI
from tests.app.gateway.conftest import WithRuntime

from deerflow.config import load_config
from deerflow.errors import UnavailableError
from deerflow.features.transcription import MOST_BYTES, can_transcribe, transcribe

SOUND = bytes(range(256)) * 40
WEBM = {"content-type": "audio/webm;codecs=opus"}
URL = "/api/transcriptions"


async def test_a_recording_goes_to_the_endpoint_as_it_is_and_comes_back_as_text(
    with_runtime: WithRuntime, scripted: ScriptedOpenAI
):
    section = {"model": scripted.models[0], "base_url": scripted.base_url, "api_key": "k"}
    scripted.speech = " Grüße aus 上海. "
    async with with_runtime(transcription=section) as gateway:
        assert (await gateway.user.get("/api/features")).json()["transcription"] == {"enabled": True}
        heard = await gateway.user.post(URL, content=SOUND, headers=WEBM)
        assert (heard.status_code, heard.json()) == (200, {"text": "Grüße aus 上海."})
        form = scripted.sounds[-1]
        assert (form["file"], form["filename"], form["model"]) == (SOUND, b"speech.webm", section["model"].encode())

        for body, kind, status, words in (
            (b"", WEBM, 422, "empty"),
            (SOUND, {"content-type": "video/mp4"}, 422, "as one of"),
            (SOUND, {}, 422, "as one of"),
            (bytes(MOST_BYTES + 1), WEBM, 413, ""),
        ):
            refused = await gateway.user.post(URL, content=body, headers=kind)
            assert (refused.status_code, words in refused.text) == (status, True), refused.text
        assert (await gateway.anonymous.post(URL, content=SOUND, headers=WEBM)).status_code == 401


async def test_what_the_endpoint_refuses_is_said_without_its_own_words(
    with_runtime: WithRuntime, scripted: ScriptedOpenAI
):
    async with with_runtime(transcription={"model": scripted.models[0], "base_url": scripted.base_url}) as gateway:
        for refusal, words in (
            (HttpError(401, "Key sk-abc of org-x is wrong"), "transcription.api_key"),
            (HttpError(404, "No such model"), "transcription.model"),
            (HttpError(413, "Too large"), "shorter"),
            (HttpError(400, "What is this?"), "Try again"),
        ):
            scripted.speech = refusal
            heard = await gateway.user.post(URL, content=SOUND, headers=WEBM)
            assert (heard.status_code, words in heard.json()["detail"]) == (503, True), heard.text
            assert "org-x" not in heard.text


async def test_without_an_endpoint_there_is_none(with_runtime: WithRuntime):
    async with with_runtime() as gateway:
        assert (await gateway.user.get("/api/features")).json()["transcription"] == {"enabled": False}
        none = await gateway.user.post(URL, content=SOUND, headers=WEBM)
        assert (none.status_code, none.json()["reason"]) == (404, "dictation_off")


def test_a_missing_variable_is_named(tmp_path: Path):
    file = tmp_path / "config.yaml"
    file.write_text("transcription: {model: m, api_key: $NO_SUCH_KEY}")
    config = load_config(file, environ={}, cwd=tmp_path, probe=lambda *_: ())
    assert can_transcribe(config)
    with pytest.raises(UnavailableError, match="NO_SUCH_KEY"):
        asyncio.run(transcribe(config, SOUND, "audio/webm"))
