"""What can go wrong with a request, whoever makes it: each error says what to do and knows its HTTP status."""

from __future__ import annotations

from typing import Literal

Code = Literal[
    "account_suspended",
    "agent_exists",
    "bad_request",
    "bucket_unavailable",
    "conflict",
    "csrf_mismatch",
    "csrf_missing",
    "damaged",
    "disk_full",
    "email_already_exists",
    "error",
    "file_changed",
    "forbidden",
    "host_not_allowed",
    "internal",
    "invalid_argument",
    "invalid_body",
    "invalid_credentials",
    "invalid_email",
    "invalid_json",
    "invalid_path",
    "invalid_request",
    "invalid_skill",
    "key_refused",
    "last_administrator",
    "method_not_allowed",
    "model_failed",
    "model_not_found",
    "no_list",
    "no_server",
    "no_space",
    "no_such_interrupt",
    "no_such_namespace",
    "no_such_run",
    "no_such_subscription",
    "no_text",
    "no_way_back",
    "not_authenticated",
    "not_found",
    "not_running",
    "not_supported",
    "origin_not_allowed",
    "precondition_failed",
    "precondition_required",
    "registration_closed",
    "run_active",
    "run_ended",
    "scope_missing",
    "secrets_unconfirmed",
    "session_required",
    "set_outside",
    "setup_code_required",
    "setup_code_wrong",
    "setup_required",
    "skill_exists",
    "system_already_initialized",
    "task_ended",
    "task_waits",
    "thread_busy",
    "token_expired",
    "token_invalid",
    "too_large",
    "too_many_requests",
    "too_slow",
    "unavailable",
    "unknown_command",
    "unknown_model",
    "unsupported_media_type",
    "unsupported_parameter",
    "weak_password",
    "web_unreachable",
    "wrong_key",
]
"""For programs. A page words an error by it, unless there is a reason."""

Reason = Literal[
    "address_invalid",
    "address_missing",
    "administrators_only",
    "agent_id_invalid",
    "agents_off",
    "already_decided",
    "archive_damaged",
    "archive_locked",
    "archive_too_large",
    "archive_unknown",
    "channel_gone",
    "channel_in_config",
    "channel_write_first",
    "code_wrong",
    "common_password",
    "current_password_wrong",
    "dictation_off",
    "fact_empty",
    "file_too_large",
    "file_version_gone",
    "file_writing",
    "key_missing",
    "key_stays",
    "key_wanted",
    "local_user",
    "message_gone",
    "model_missing",
    "models_in_config",
    "no_way_out",
    "odd_characters",
    "password_changed",
    "password_long",
    "password_short",
    "period_invalid",
    "picture_none",
    "pictures_off",
    "preview_gone",
    "report_not_utf8",
    "report_program_missing",
    "report_skill_off",
    "report_slow",
    "search_in_config",
    "secret_short",
    "skill_builtin",
    "skill_changed",
    "skill_from_address",
    "sound_empty",
    "sound_unknown",
    "still_starting",
    "text_not_utf8",
    "text_too_large",
    "text_too_long",
    "thread_gone",
    "token_incomplete",
    "tools_changed",
    "upload_cut_off",
    "upload_empty",
    "upload_too_large",
    "upload_too_many",
    "user_gone",
]
"""A finer cause than the code, where people meet it."""


class RequestError(Exception):
    """A request that cannot be fulfilled. ``str`` is for the person; it never holds host paths, secrets or foreign data."""

    status = 400
    code: Code = "bad_request"

    def __init__(
        self,
        message: str,
        *,
        code: Code | None = None,
        reason: Reason | None = None,
        param: str | None = None,
        **values: str | float,
    ) -> None:
        """``param``: the parameter at fault. ``values``: of the sentence, for a page that words it itself."""
        super().__init__(message)
        self.reason: Reason | None = reason
        self.param = param
        self.values = values
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


class DiskFullError(RequestError):
    """There is no room for a file."""

    status = 507
    code = "disk_full"
