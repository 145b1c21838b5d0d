"""Which settings are secret, and how they look where people can see them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from deerflow.config.env import has_reference

MASK = "********"

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SECRET = re.compile(
    r"(_|^api|^access|^auth)keys?$|secret|(^|_)token$|passw(or)?d|credential|authorization|(^|_)cookie$|(^|_)dsn$|connection_string$|(postgres|redis|database)_url$"
)
_URL_PASSWORD = re.compile(r"(?<=://)([^/\s:@]*):[^/\s@]+@")


def is_secret_key(name: str) -> bool:
    """Whether a setting with this name usually holds a secret, e.g. ``api_key``, ``SLACK_BOT_TOKEN`` or ``Authorization``."""
    plain = _CAMEL.sub("_", name).lower().replace("-", "_")
    return bool(_SECRET.search(plain)) and not plain.endswith("public_key")


def mask_secrets(value: Any, *, name: str = "") -> Any:
    """A copy of ``value`` with secrets replaced by :data:`MASK`, passwords in URLs among them.

    References such as ``$API_KEY`` are no secrets and stay as they are.
    """
    if isinstance(value, Mapping):
        return {key: mask_secrets(item, name=str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [mask_secrets(item, name=name) for item in value]
    if value in (None, "") or isinstance(value, bool) or has_reference(value):
        return value
    if is_secret_key(name):
        return MASK
    return _URL_PASSWORD.sub(rf"\1:{MASK}@", value) if isinstance(value, str) else value
