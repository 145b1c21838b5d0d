"""What can go wrong between us and the Codex endpoint, in LangChain's classes of model errors."""

from __future__ import annotations

from typing import NoReturn

import httpx
from langchain_core.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelError,
    ModelInvalidRequestError,
    ModelPermissionDeniedError,
    ModelRateLimitError,
    ModelTimeoutError,
)


class CodexStatusError(ModelError):
    """An HTTP status that says no. ``response`` is the answer, already read."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(f"The Codex endpoint answered HTTP {response.status_code}: {response.text[:500]}")
        self.response = response


class CodexAuthenticationError(CodexStatusError, ModelAuthenticationError):
    """HTTP 401: the sign-in is not valid (any more)."""


class CodexPermissionError(CodexStatusError, ModelPermissionDeniedError):
    """HTTP 403."""


class CodexInvalidRequestError(CodexStatusError, ModelInvalidRequestError):
    """HTTP 400, 404 or 422."""


class CodexRateLimitError(CodexStatusError, ModelRateLimitError):
    """HTTP 429."""


class CodexServerError(CodexStatusError, ModelAPIError):
    """HTTP 5xx."""


class CodexConnectionError(ModelConnectionError, ConnectionError):
    """The endpoint could not be reached, or the connection broke."""


class CodexTimeoutError(ModelTimeoutError, TimeoutError):
    """The endpoint did not answer in time."""


class CodexStreamCutError(ModelConnectionError, ConnectionError, RuntimeError):
    """The stream ended without saying that the response is complete."""


def raise_transport_error(error: httpx.TransportError) -> NoReturn:
    if isinstance(error, httpx.TimeoutException):
        raise CodexTimeoutError(f"The Codex endpoint did not answer in time ({type(error).__name__}).") from error
    raise CodexConnectionError(f"The connection to the Codex endpoint failed: {error}") from error


def status_error(response: httpx.Response) -> CodexStatusError:
    status = response.status_code
    kind = {
        400: CodexInvalidRequestError,
        401: CodexAuthenticationError,
        403: CodexPermissionError,
        404: CodexInvalidRequestError,
        422: CodexInvalidRequestError,
        429: CodexRateLimitError,
    }.get(status, CodexServerError if status >= 500 else CodexStatusError)
    return kind(response)
