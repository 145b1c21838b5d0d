"""The certificates of authorities, read once a process.

Each client of OpenAI reads them, and each runtime of a test makes three such clients: that took a quarter of what these tests cost.
So does each client of a gateway.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import httpcore2
import httpx
import pytest


@contextmanager
def read_once() -> Iterator[None]:
    """Give all clients of httpx and httpx2 one context each while the environment names the same authorities as now."""
    real, of_httpx = httpcore2.default_ssl_context, httpx.create_ssl_context
    usual = _named()
    kept, kept_of_httpx = cache(real), cache(of_httpx)

    def shared(*, _trust_env: bool = True) -> ssl.SSLContext:
        if _named() != usual:
            return real(_trust_env=_trust_env)
        if usual == (None, None):
            ssl.get_default_verify_paths()  # looks for files as ``real`` does, which on an event loop fails the test
        return kept(_trust_env=_trust_env)

    def shared_of_httpx(verify: Any = True, cert: Any = None, trust_env: bool = True) -> ssl.SSLContext:
        if verify is not True or cert is not None or _named() != usual:
            return of_httpx(verify, cert, trust_env)
        return kept_of_httpx(trust_env=trust_env)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("httpx._transports.default.create_ssl_context", shared_of_httpx)
        patch.setattr(httpcore2, "default_ssl_context", shared)
        yield


def _named() -> tuple[str | None, str | None]:
    return os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
