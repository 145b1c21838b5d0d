"""The TLS context of the HTTP clients of models: one a process.

Left alone, each client reads the certificates of all authorities, which is a tenth of a second of CPU a model.
"""

from __future__ import annotations

import os
import ssl
from functools import cache

import httpx2


def provider_tls() -> ssl.SSLContext:
    """Return whom to trust as ``httpx2`` does, also by ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``. Its first use reads files."""
    return _context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _context(file: str | None, directory: str | None) -> ssl.SSLContext:
    return httpx2.create_ssl_context()
