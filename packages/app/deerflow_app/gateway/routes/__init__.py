"""What routes have in common: who is there, the database and the runtime that do the work, and requests and answers in the shape that
LangGraph's SDKs read (selected fields, pages)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import orjson
from fastapi import Depends, Path, Query, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.requests import HTTPConnection
from typing_extensions import TypedDict

from deerflow.errors import ForbiddenError, UnauthenticatedError
from deerflow.identity import ID_PATTERN, Principal
from deerflow.storage.database import Database
from deerflow.storage.list_page import ListPage
from deerflow_app.gateway.auth import Credential
from deerflow_app.gateway.auth.accounts import Accounts
from deerflow_app.gateway.settings import GatewaySettings

if TYPE_CHECKING:
    from deerflow.runtime import Runtime
else:
    Runtime = Any  # FastAPI resolves annotations when routes are made


async def current_credential(connection: HTTPConnection) -> Credential:
    """Set by the Authentication middleware. Raises UnauthenticatedError."""
    credential = getattr(connection.state, "credential", None)
    if credential is None:
        raise UnauthenticatedError("Authentication required. Sign in, or send an API token.")
    return credential


CurrentCredential = Annotated[Credential, Depends(current_credential)]


async def current_principal(credential: CurrentCredential) -> Principal:
    """On whose behalf the request is."""
    return credential.principal


CurrentPrincipal = Annotated[Principal, Depends(current_principal)]


async def current_admin(principal: CurrentPrincipal) -> Principal:
    """Raises ForbiddenError for others. A token of an administrator needs the scope ``admin``."""
    if principal.role != "admin":
        text = "Only administrators may do this, and API tokens only with the scope 'admin'."
        raise ForbiddenError(text, reason="administrators_only")
    return principal


CurrentAdmin = Annotated[Principal, Depends(current_admin)]


def _of_app(name: str) -> Callable[[HTTPConnection], Awaitable[Any]]:
    async def current(connection: HTTPConnection) -> Any:
        return getattr(connection.app.state, name)

    return current


current_runtime, current_settings = _of_app("runtime"), _of_app("settings")
CurrentRuntime = Annotated[Runtime, Depends(current_runtime)]
CurrentSettings = Annotated[GatewaySettings, Depends(current_settings)]
CurrentDatabase = Annotated[Database, Depends(_of_app("database"))]
CurrentAccounts = Annotated[Accounts, Depends(_of_app("accounts"))]


# requests -------------------------------------------------------------------------------------------------------------


def _listed(given: Any) -> Any:
    if not isinstance(given, list):
        return given
    return [
        item for text in given for item in (orjson.loads(text) if text.startswith("[") else text.split(",")) if item
    ]


PageSize = Annotated[int, Query(ge=1, le=1000)]
ID = rf"^{ID_PATTERN.pattern}$"
ThreadId = Annotated[str, Path(pattern=ID, examples=["5bd4a1f0-6c0e-4b57-9f0e-2f6c1f8b8f0a"])]
Listed = BeforeValidator(_listed)
"""For lists in addresses, as clients write them: repeated names, commas, or JSON. Nothing (``stream_mode=``) is an empty list."""


def raw_body(media_type: str, schema: dict[str, Any]) -> dict[str, Any]:
    """For the ``openapi_extra`` of a route that reads its body itself."""
    return {"requestBody": {"required": True, "content": {media_type: {"schema": schema}}}}


class RequestBody(BaseModel):
    """What a client sends. A field that the route does not know is a mistake."""

    model_config = ConfigDict(extra="forbid")


class PageRequest(RequestBody):
    limit: int = Field(default=10, ge=1, le=1000)
    offset: int = Field(default=0, ge=0, le=2**31)

    def page(self) -> ListPage:
        return ListPage(self.limit, self.offset)


class SortedPage(PageRequest):
    sort_by: Any = None
    sort_order: Literal["asc", "desc"] | None = None

    def page(self) -> ListPage:
        """Return the page, descending unless it asks for ``asc``."""
        return ListPage(self.limit, self.offset, self.sort_by or None, self.sort_order != "asc")


# answers --------------------------------------------------------------------------------------------------------------


def raw(media_type: str, description: str, **content: Any) -> Any:
    """For a route whose answer is described by hand."""
    return {
        "response_class": Response,
        "responses": {200: {"content": {media_type: content}, "description": description}},
    }


class Deleted(TypedDict):
    success: bool


async def json_answer(content: Any) -> Response:
    """``content``, which must be JSON values."""
    body = await asyncio.to_thread(orjson.dumps, content, option=orjson.OPT_NON_STR_KEYS)
    return Response(body, media_type="application/json")


def _optional(schema: dict[str, Any]) -> None:
    schema.pop("required", None)
    schema["description"] = f"{schema.get('description', '')}\nOnly the fields that `select` names.".strip()


SELECTABLE = ConfigDict(json_schema_extra=_optional)
"""For the model of such an answer: any field may be missing."""


HEADERS: dict[int | str, dict[str, Any]] = {
    200: {
        "headers": {
            "X-Pagination-Total": {"description": "How many there are in all.", "schema": {"type": "integer"}},
            "X-Pagination-Next": {
                "description": "The offset of the next page; absent on the last one.",
                "schema": {"type": "integer"},
            },
        }
    }
}
"""For the ``responses`` of a route."""


async def page_answer(entries: Sequence[Any], page: PageRequest, total: int) -> Response:
    """``entries``, those of ``page`` out of ``total``, with the headers that tell where they stand."""
    response = await json_answer(entries)
    response.headers["X-Pagination-Total"] = str(total)
    if entries and page.offset + len(entries) < total:
        response.headers["X-Pagination-Next"] = str(page.offset + len(entries))
    return response


def selected(entry: Mapping[str, Any], fields: Collection[str] | None) -> Mapping[str, Any]:
    """These fields of an entry; ``values.x`` leaves of its values only x. None: all of it."""
    if fields is None:
        return entry
    chosen = {key: value for key, value in entry.items() if key in fields}
    inner = {name.removeprefix("values.") for name in fields if name.startswith("values.")}
    if inner and "values" not in chosen:
        chosen["values"] = {key: value for key, value in entry["values"].items() if key in inner}
    return chosen


_STEP = re.compile(r"([^.\[\]]+)|\[(-?\d{1,9})\]")


def at_path(entry: Any, path: str) -> Any:
    """Return what stands at a path like ``values.messages[-1].content``; None if nothing does."""
    for name, index in _STEP.findall(path):
        if index:
            within = isinstance(entry, list) and -len(entry) <= int(index) < len(entry)
            entry = entry[int(index)] if within else None
        else:
            entry = entry.get(name) if isinstance(entry, Mapping) else None
    return entry
