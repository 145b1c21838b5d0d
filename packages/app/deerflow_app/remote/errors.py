"""What can go wrong between a program and its server, in words for the person."""

from __future__ import annotations


class RemoteError(Exception):
    """Args:
    message: what happened, one sentence.
    remedy: what the person can do next.
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class UnreachableError(RemoteError):
    """The server does not answer, or not any more."""


class RefusedError(RemoteError):
    """The server answered, but did not do it.

    Args:
        status: the HTTP status.
        code: the server's word for the reason, e.g. ``not_found``.
    """

    def __init__(self, message: str, remedy: str = "", *, status: int, code: str = "") -> None:
        super().__init__(message, remedy)
        self.status = status
        self.code = code
