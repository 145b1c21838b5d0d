"""What can go wrong with a request, whoever makes it: each error says what to do and knows its HTTP status."""

from __future__ import annotations


class RequestError(Exception):
    """A request that cannot be fulfilled. ``str`` is for the person; it never holds host paths, secrets or foreign data."""

    status = 400
    code = "bad_request"

    def __init__(self, message: str, *, code: str | None = None, param: str | None = None) -> None:
        """``param``: the parameter at fault."""
        super().__init__(message)
        self.param = param
        if code is not None:
            self.code = code


class InvalidRequestError(RequestError):
    status = 422
    code = "invalid_request"


class UnauthenticatedError(RequestError):
    status = 401
    code = "not_authenticated"


class ForbiddenError(RequestError):
    status = 403
    code = "forbidden"


class NotFoundError(RequestError):
    """There is no such thing, or it belongs to someone else: the two look the same."""

    status = 404
    code = "not_found"


class ConflictError(RequestError):
    status = 409
    code = "conflict"


class TooLargeError(RequestError):
    status = 413
    code = "too_large"


class TooManyRequestsError(RequestError):
    status = 429
    code = "too_many_requests"


class UnavailableError(RequestError):
    """A part that the request needs is missing or out of order just now."""

    status = 503
    code = "unavailable"
