"""Speech as text, by an endpoint of OpenAI's audio transcriptions. The sound is kept nowhere."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import httpx

from deerflow.config import AppConfig, ConfigError, missing_in
from deerflow.errors import InvalidRequestError, NotFoundError, TooLargeError, UnavailableError
from deerflow.models.failures import ErrorKind, classify
from deerflow.security.outbound import tls

logger = logging.getLogger(__name__)

MOST_BYTES = 25 << 20
"""As much as OpenAI takes."""
TIMEOUT = 120.0
OPENAI = "https://api.openai.com/v1"
ENDINGS: Mapping[str, str] = MappingProxyType(
    {
        "audio/webm": "webm",
        "audio/ogg": "ogg",
        "audio/mp4": "mp4",
        "audio/x-m4a": "m4a",
        "audio/mpeg": "mp3",
        "audio/wav": "wav",
        "audio/x-wav": "wav",
        "audio/flac": "flac",
    }
)
"""Endings by media type. Endpoints know the format of a sound by the ending of its name."""


_WORDS: Mapping[ErrorKind, str] = MappingProxyType(
    {
        ErrorKind.AUTH: "The endpoint for dictation rejected its key. An administrator can correct transcription.api_key in config.yaml.",
        ErrorKind.MODEL_NOT_FOUND: "The endpoint for dictation does not know its model or address. "
        "An administrator can correct transcription.model and transcription.base_url in config.yaml.",
        ErrorKind.NETWORK: "The endpoint for dictation could not be reached. Try again, or let an administrator check "
        "transcription.base_url in config.yaml.",
        ErrorKind.QUOTA: "The account behind dictation has no quota or credit left.",
        ErrorKind.TOO_LARGE: "The recording is too long for the endpoint. Dictate a shorter piece.",
    }
)
"""The provider's own words stay in the log: they may name an account."""


def can_transcribe(config: AppConfig) -> bool:
    """Return whether an endpoint is configured."""
    wanted = config.transcription
    return bool(vars(wanted).get("model")) or any(missing_in(wanted))


async def transcribe(config: AppConfig, sound: bytes, media_type: str) -> str:
    """Return what is said in a recording.

    Raises:
        NotFoundError: no endpoint is configured.
        InvalidRequestError, TooLargeError: the sound is empty, too long, or of no format that endpoints know.
        UnavailableError: the endpoint does not do it; says why and what to do.
    """
    if not can_transcribe(config):
        raise NotFoundError(
            "This server has no endpoint for dictation. An administrator can name one under `transcription` in config.yaml.",
            reason="dictation_off",
        )
    kind = media_type.partition(";")[0].strip().lower()
    ending = ENDINGS.get(kind)
    if ending is None:
        raise InvalidRequestError(f"Send a recording as one of {', '.join(ENDINGS)}.", reason="sound_unknown")
    if len(sound) > MOST_BYTES:
        raise TooLargeError(f"A recording may have {MOST_BYTES >> 20} MB. Dictate a shorter piece.")
    if not sound:
        raise InvalidRequestError("The recording is empty. Check the microphone, then try again.", reason="sound_empty")
    try:
        return await _asked(config, (f"speech.{ending}", sound, kind))
    except ConfigError as error:
        raise UnavailableError(" ".join(f"{each.key}: {each.message}" for each in error.problems)) from error
    except Exception as error:
        failure = classify(error)
        logger.warning("No transcription: %s", failure.detail or error)
        words = _WORDS.get(failure.kind, "The endpoint for dictation did not answer. Try again in a moment.")
        raise UnavailableError(words) from error


async def _asked(config: AppConfig, file: tuple[str, bytes, str]) -> str:
    wanted = config.transcription
    async with asyncio.timeout(TIMEOUT):
        answer = await ask_endpoint(wanted.base_url or OPENAI, wanted.api_key, wanted.model or "", file)
    return str(answer["text"]).strip()


async def ask_endpoint(
    base_url: str, api_key: str | None, model: str, file: tuple[str, bytes, str]
) -> Mapping[str, Any]:
    """Send a recording (name, content, media type), and return the answer, which holds ``text``. Raises httpx.HTTPError."""
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    async with httpx.AsyncClient(timeout=TIMEOUT, verify=await asyncio.to_thread(tls)) as client:
        answer = await client.post(
            f"{base_url.rstrip('/')}/audio/transcriptions",
            headers=headers,
            data={"model": model, "response_format": "json"},  # which is the default
            files={"file": file},
        )
    answer.raise_for_status()
    return answer.json()
