"""Access that a person allows elsewhere: the authorization code flow with PKCE, found and registered for as the protocol has it.

Discovery (RFC 9728, 8414), registration (RFC 7591) and the checks of both are those of the SDK. Its own flow waits in one process
for the answer; ours is kept between its two halves, so that any process may take the answer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx
import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.oauth2 import OAuthContext, PKCEParameters, check_registration_usable
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    create_client_registration_request,
    create_oauth_metadata_request,
    credentials_match_issuer,
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
    get_client_metadata_scopes,
    handle_auth_metadata_response,
    handle_protected_resource_response,
    handle_registration_response,
    issuers_match,
    validate_authorization_response_iss,
    validate_metadata_issuer,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata, OAuthToken
from mcp.shared.auth_utils import check_resource_allowed
from pydantic import AnyUrl, ValidationError

from deerflow.config.schema import McpOAuthConfig, McpServerConfig
from deerflow.config.section import require
from deerflow.security.addresses import Blocked
from deerflow.security.outbound import Outbound
from deerflow.security.text import inline

SECONDS = 15.0
MAX_ANSWER = 1 << 20
"""Bytes of what a server of others may answer."""
CLIENT_NAME = "DeerFlow"


class AuthorizationError(Exception):
    """Access cannot be had. ``str`` is for the person."""


class AuthorizationRefusedError(AuthorizationError):
    """What was allowed once is allowed no more: the person has to connect again."""


@dataclass(frozen=True, slots=True)
class Door:
    """Asks servers whose addresses others name.

    Args:
        hosts: which the operator names in the entry, private ones too. All others are checked like every call outside.
    """

    outbound: Outbound
    hosts: frozenset[str]

    async def ask(self, request: httpx2.Request, *, body: bool = True) -> httpx2.Response:
        """The answer to ``request``; redirects are not followed. Raises AuthorizationError."""
        try:
            async with asyncio.timeout(SECONDS), self._answer(request) as answer:
                data = await _read(answer, request.url.host) if body else b""
                kept = {
                    name: answer.headers[name]
                    for name in ("www-authenticate", "content-type")
                    if name in answer.headers
                }
                return httpx2.Response(answer.status_code, headers=kept, content=data, request=request)
        except (Blocked, OSError, httpx.HTTPError, httpx2.HTTPError) as error:
            why = "it does not answer" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
            raise AuthorizationError(f"{request.url.host} cannot be asked: {why}") from error

    @asynccontextmanager
    async def _answer(self, request: httpx2.Request) -> AsyncIterator[httpx2.Response | httpx.Response]:
        content = await request.aread()
        if request.url.host in self.hosts:
            async with await asyncio.to_thread(httpx2.AsyncClient, timeout=SECONDS) as client:
                answer = await client.send(request, stream=True)
                try:
                    yield answer
                finally:
                    await answer.aclose()
            return
        url = self.outbound.check(str(request.url))
        headers = {name: value for name, value in request.headers.items() if name not in ("host", "content-length")}
        async with self.outbound.stream(
            request.method, url, headers=headers, timeout=SECONDS, content=content
        ) as answer:
            yield answer


async def _read(answer: httpx2.Response | httpx.Response, host: str) -> bytes:
    data = bytearray()
    async for chunk in answer.aiter_bytes():
        data += chunk
        if len(data) > MAX_ANSWER:
            raise AuthorizationError(f"{host} answered with more than {MAX_ANSWER >> 20} MB.")
    return bytes(data)


def door_of(entry: McpServerConfig, outbound: Outbound) -> Door:
    oauth = entry.oauth
    named = (entry.url, oauth.token_url, oauth.authorization_url) if oauth else (entry.url,)
    return Door(outbound, frozenset(filter(None, (urlsplit(url or "").hostname for url in named))))


async def begin(
    entry: McpServerConfig, redirect_uri: str, state: str, door: Door, known: Mapping[str, Any] | None
) -> tuple[str, dict[str, Any]]:
    """Where the person allows access, and what :func:`finish` needs of it.

    Args:
        known: the client that was registered before, which may be used again.

    Raises:
        AuthorizationError: the server does not let itself be connected; says why.
    """
    url, oauth = str(entry.url), entry.oauth
    assert oauth is not None
    is_web = redirect_uri.startswith("https:")
    ours = OAuthClientMetadata(
        client_name=CLIENT_NAME,
        redirect_uris=[AnyUrl(redirect_uri)],
        application_type="web" if is_web else "native",
        token_endpoint_auth_method=None if is_web else "none",
    )
    nothing: Any = None
    context = OAuthContext(url, ours, nothing, None, None)
    try:
        challenge = await door.ask(_challenge(url), body=False)
        server = _named(oauth) or await _discovered(context, challenge, door)
        if server.code_challenge_methods_supported and "S256" not in server.code_challenge_methods_supported:
            raise AuthorizationError("its authorization server does not know PKCE with S256.")
        offered = get_client_metadata_scopes(
            extract_scope_from_www_auth(challenge), context.protected_resource_metadata, server, ours.grant_types
        )
        ours.scope = scope = oauth.scope or offered
        client = _configured(oauth, server) or _again(known, server, redirect_uri)
        client = client or await _registered(ours, server, door)
    except (OAuthFlowError, ValidationError) as error:
        raise AuthorizationError(inline(str(error))[:300]) from error
    pkce = PKCEParameters.generate()
    resource = context.get_resource_url() if context.should_include_resource_param() else None
    query = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": pkce.code_challenge,
        "code_challenge_method": "S256",
        "resource": resource,
        "scope": scope,
        "prompt": "consent" if "offline_access" in (scope or "").split() else None,
    }
    where = str(server.authorization_endpoint)
    given = urlencode({name: value for name, value in query.items() if value})
    kept: dict[str, Any] = {"url": url, "redirect_uri": redirect_uri, "verifier": pkce.code_verifier}
    kept |= {"resource": resource, "scope": scope, "is_discovered": _named(oauth) is None}
    kept |= {"server": server.model_dump(mode="json"), "client": client.model_dump(mode="json", exclude_none=True)}
    return f"{where}{'&' if urlsplit(where).query else '?'}{given}", kept


async def finish(
    kept: Mapping[str, Any], code: str, issuer: str | None, door: Door
) -> tuple[dict[str, Any], int | None]:
    """The person's connection for what came back, and for how many seconds its token is good. Raises AuthorizationError."""
    server = OAuthMetadata.model_validate(kept["server"])
    if kept["is_discovered"]:
        try:
            validate_authorization_response_iss(issuer, server)
        except OAuthFlowError as error:
            raise AuthorizationError(inline(str(error))[:300]) from error
    made = {name: kept[name] for name in ("url", "client", "resource", "scope")}
    made |= {"token_url": str(server.token_endpoint)}
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": kept["redirect_uri"]}
    token = await _token(form | {"code_verifier": kept["verifier"]}, made, door)
    return made | _of_token(token), token.expires_in


async def refresh(held: Mapping[str, Any], door: Door) -> tuple[dict[str, Any], int | None]:
    """The connection with a new token. Raises RefusedError: it is allowed no more; AuthorizationError: not now."""
    token = await _token({"grant_type": "refresh_token", "refresh_token": held["refresh_token"]}, held, door)
    return {**held, **_of_token(token)}, token.expires_in


async def _token(form: dict[str, str], held: Mapping[str, Any], door: Door) -> OAuthToken:
    nothing: Any = None
    client = OAuthClientInformationFull.model_validate(held["client"])
    context = OAuthContext(held["url"], nothing, nothing, None, None, client_info=client)
    form = {**form, "client_id": client.client_id, **({"resource": held["resource"]} if held["resource"] else {})}
    try:
        form, headers = context.prepare_token_auth(form, {"Accept": "application/json"})
        answer = await door.ask(httpx2.Request("POST", held["token_url"], data=form, headers=headers))
        if answer.status_code in (200, 201):
            return OAuthToken.model_validate_json(answer.content)
    except ValidationError:
        raise AuthorizationError(f"{held['token_url']} gave no token.") from None
    except OAuthFlowError as error:
        raise AuthorizationError(inline(str(error))[:300]) from error
    try:
        said = json.loads(answer.content)
        why = inline(str(said.get("error_description") or said["error"]))[:200]
    except (ValueError, KeyError, AttributeError):
        said, why = {}, ""
    final = answer.status_code in (400, 401) and said.get("error") in ("invalid_grant", "invalid_client")
    raise (AuthorizationRefusedError if final else AuthorizationError)(
        " ".join(filter(None, (f"{held['token_url']} answered {answer.status_code}.", why)))
    )


def _of_token(token: OAuthToken) -> dict[str, Any]:
    """What does not come again stays as it was (RFC 6749, section 6)."""
    given = token.model_dump(include={"access_token", "refresh_token", "scope"}, exclude_none=True)
    return given | {"token_type": token.token_type}


# the authorization server ---------------------------------------------------------------------------------------------


def _challenge(url: str) -> httpx2.Request:
    """A request that a server answers with 401, and with where to go then."""
    headers = {"Accept": "application/json, text/event-stream"}
    return httpx2.Request("POST", url, json={"jsonrpc": "2.0", "id": 0, "method": "ping"}, headers=headers)


def _named(oauth: McpOAuthConfig) -> OAuthMetadata | None:
    if not oauth.authorization_url or not oauth.token_url:
        return None
    at = urlsplit(oauth.authorization_url)
    named = {"authorization_endpoint": oauth.authorization_url, "token_endpoint": oauth.token_url}
    return OAuthMetadata.model_validate({"issuer": f"{at.scheme}://{at.netloc}", **named})


async def _discovered(context: OAuthContext, challenge: httpx2.Response, door: Door) -> OAuthMetadata:
    """Raises AuthorizationError, OAuthFlowError."""
    url = context.server_url
    named = extract_resource_metadata_from_www_auth(challenge)
    for place in build_protected_resource_metadata_discovery_urls(named, url):
        found = await handle_protected_resource_response(await door.ask(create_oauth_metadata_request(place)))
        if found is not None:
            if not check_resource_allowed(url, str(found.resource)):
                raise AuthorizationError(f"its metadata is about {found.resource}.")
            context.protected_resource_metadata = found
            context.auth_server_url = str(found.authorization_servers[0])
            break
    expected = context.auth_server_url or "{0.scheme}://{0.netloc}".format(urlsplit(url))
    for place in build_oauth_authorization_server_metadata_discovery_urls(context.auth_server_url, url):
        _, server = await handle_auth_metadata_response(await door.ask(create_oauth_metadata_request(place)))
        if server is not None:
            if not issuers_match(str(server.issuer), expected):
                validate_metadata_issuer(server, expected)
            return server
    raise AuthorizationError(
        "it does not tell where access is allowed. Set oauth.authorization_url and oauth.token_url in its entry."
    )


# our client -----------------------------------------------------------------------------------------------------------


def _configured(oauth: McpOAuthConfig, server: OAuthMetadata | None) -> OAuthClientInformationFull | None:
    """Raises ConfigError: the entry refers to a variable that is not set."""
    client_id, secret = require([oauth.client_id, oauth.client_secret])
    if not client_id:
        return None
    methods = (server.token_endpoint_auth_methods_supported if server else None) or ["client_secret_post"]
    method = "client_secret_post" if "client_secret_post" in methods else "client_secret_basic"
    return OAuthClientInformationFull(
        client_id=client_id, client_secret=secret, token_endpoint_auth_method=method if secret else "none"
    )


def _again(
    known: Mapping[str, Any] | None, server: OAuthMetadata, redirect_uri: str
) -> OAuthClientInformationFull | None:
    client = OAuthClientInformationFull.model_validate(known) if known and known.get("issuer") else None
    if (
        client is None
        or client.client_secret_expires_at
        or not credentials_match_issuer(client, str(server.issuer), None)
    ):
        return None
    return client if redirect_uri in map(str, client.redirect_uris or ()) else None


async def _registered(ours: OAuthClientMetadata, server: OAuthMetadata, door: Door) -> OAuthClientInformationFull:
    """Raises AuthorizationError, OAuthFlowError."""
    if server.registration_endpoint is None:
        raise AuthorizationError(
            "its authorization server registers no clients by itself. Get a client id there, and set oauth.client_id in its entry."
        )
    request = create_client_registration_request(server, ours, str(server.issuer))
    client = await handle_registration_response(await door.ask(request))
    check_registration_usable(client)
    client.issuer, client.redirect_uris = str(server.issuer), ours.redirect_uris
    return client
