"""Sign-ins that other programs left on this machine, read only: pure functions of (environ, home).

Nothing is refreshed, written or looked up in a key chain. A file that is missing, unreadable or malformed means
"no credential here"; the next place is tried. Blocking: call from a thread when a loop runs.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)

CLAUDE_CREDENTIALS_FILE = Path(".claude/.credentials.json")
CODEX_AUTH_FILE = Path(".codex/auth.json")
MAX_CREDENTIAL_BYTES = 1024 * 1024
EXPIRY_MARGIN_SECONDS = 60


@dataclass(frozen=True, slots=True)
class CodexCredential:
    """A ChatGPT sign-in for the Codex endpoint."""

    access_token: str = field(repr=False)
    account_id: str = ""


def is_oauth_token(token: str) -> bool:
    """Whether an Anthropic key is an OAuth access token, which goes out as ``Authorization: Bearer``."""
    return "sk-ant-oat" in token


def load_claude_token(environ: Mapping[str, str], home: Path, *, now: float | None = None) -> str | None:
    """A token for the Anthropic API, the first of: token variables, token file descriptor, ``CLAUDE_CODE_CREDENTIALS_PATH``, the default file.

    Args:
        environ: the process environment.
        home: the user's home directory.
        now: seconds since the epoch, for the expiry check; the clock if None.
    """
    for name in ("CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"):
        if token := environ.get(name, "").strip():
            return token
    if token := _from_descriptor(environ.get("CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR", "")):
        return token
    override = environ.get("CLAUDE_CODE_CREDENTIALS_PATH", "").strip()
    for path in [*([Path(override).expanduser()] if override else []), home / CLAUDE_CREDENTIALS_FILE]:
        if (document := _read_json(path)) is not None:
            return _claude_from_document(document, path, time.time() if now is None else now)
    return None


def load_codex_credential(environ: Mapping[str, str], home: Path) -> CodexCredential | None:
    """The sign-in in ``CODEX_AUTH_PATH`` or ``~/.codex/auth.json``, in its nested or its older flat form."""
    override = environ.get("CODEX_AUTH_PATH", "").strip()
    path = Path(override).expanduser() if override else home / CODEX_AUTH_FILE
    document = _read_json(path)
    if document is None:
        return None
    nested = document.get("tokens")
    tokens: Mapping[str, Any] = nested if isinstance(nested, Mapping) else {}
    token = _text(tokens.get("access_token")) or _text(document.get("access_token")) or _text(document.get("token"))
    if not token:
        return None
    account = _text(tokens.get("account_id")) or _text(document.get("account_id"))
    return CodexCredential(token, account)


def _from_descriptor(number: str) -> str | None:
    if not number.strip():
        return None
    try:
        # A descriptor can be read once only: it is duplicated, so that closing ours leaves the caller's open.
        with os.fdopen(os.dup(int(number)), "rb") as stream:
            data = stream.read(MAX_CREDENTIAL_BYTES + 1)
    except (OSError, ValueError, OverflowError) as error:
        logger.warning("CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR=%s cannot be read: %s", number, error)
        return None
    return data.decode("utf-8", "replace").strip() if len(data) <= MAX_CREDENTIAL_BYTES else None


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        if not path.is_file() or path.stat().st_size > MAX_CREDENTIAL_BYTES:
            return None
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        # The content may hold a secret, so only the kind of failure is logged.
        logger.warning("Credential file %s cannot be read (%s).", path, type(error).__name__)
        return None
    return document if isinstance(document, dict) else None


def _claude_from_document(document: Mapping[str, Any], path: Path, now: float) -> str | None:
    entry = document.get("claudeAiOauth")
    if not isinstance(entry, Mapping) or not (token := _text(entry.get("accessToken"))):
        return None
    expires_at = entry.get("expiresAt")  # milliseconds since the epoch; 0 or nothing if the source does not say
    if isinstance(expires_at, int | float) and 0 < expires_at <= (now + EXPIRY_MARGIN_SECONDS) * 1000:
        logger.warning("The sign-in in %s has expired. Sign in again, or set ANTHROPIC_API_KEY.", path)
        return None
    return token


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""
