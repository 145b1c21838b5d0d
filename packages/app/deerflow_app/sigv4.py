"""Signatures of requests as Amazon's services ask for, version 4.

https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

ALGORITHM = "AWS4-HMAC-SHA256"
EMPTY = hashlib.sha256().hexdigest()


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs with one key for one service in one region."""

    key_id: str
    secret: str = field(repr=False)
    region: str
    service: str = "s3"

    def authorization(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], payload: str
    ) -> str:
        """Return the ``Authorization`` header.

        Args:
            path: as it is sent, see :func:`escaped`.
            query: not escaped yet.
            headers: all that are signed, with names in lower case; ``host`` and ``x-amz-date`` are required.
            payload: the SHA-256 of the body, in hex.
        """
        date, names = headers["x-amz-date"], sorted(headers)
        lines = [f"{name}:{' '.join(headers[name].split())}" for name in names]
        canonical = "\n".join([method, path, query_string(query), *lines, "", ";".join(names), payload])
        scope = f"{date[:8]}/{self.region}/{self.service}/aws4_request"
        to_sign = "\n".join([ALGORITHM, date, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        key = f"AWS4{self.secret}".encode()
        for part in (*scope.split("/"), to_sign):
            key = hmac.digest(key, part.encode(), "sha256")
        return f"{ALGORITHM} Credential={self.key_id}/{scope}, SignedHeaders={';'.join(names)}, Signature={key.hex()}"


def escaped(path: str) -> str:
    """Return a path as it is signed and sent: all but unreserved characters and slashes in percent-encoding."""
    return quote(path, safe="/~")


def query_string(query: Mapping[str, str]) -> str:
    """Return a query as it is signed and sent: sorted, everything but unreserved characters in percent-encoding."""
    return "&".join(sorted(f"{quote(name, safe='~')}={quote(value, safe='~')}" for name, value in query.items()))
