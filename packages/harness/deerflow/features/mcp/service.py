"""MCP servers: what administrators see and change (their entries in ``extensions_config.json``, their logs), and what each person
sees and connects."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from deerflow.config.document import parse_json, read_text, write_text
from deerflow.config.env import MASK, has_reference, mask_secrets, references, resolve_tree
from deerflow.config.schema import McpServerConfig, mcp_entry
from deerflow.errors import ConflictError, ForbiddenError, InvalidRequestError, NotFoundError, UnavailableError
from deerflow.features.mcp import McpPrompt
from deerflow.features.mcp.connections import Given, McpConnections
from deerflow.features.mcp.pins import McpChange
from deerflow.features.mcp.servers import McpServers, McpTrial
from deerflow.features.mcp.states import McpServerState
from deerflow.harness import Harness
from deerflow.identity import Principal

FILE = "extensions_config.json"
KEYS = ("mcpServers", "mcp_servers")
SHAPE = {
    "enabled": True,
    "type": "stdio",
    "command": None,
    "args": [],
    "env": {},
    "url": None,
    "headers": {},
    "oauth": None,
    "description": "",
}
"""What every entry has in an answer."""
ON_HOST = ("isolation", "mounts", "network", "type", "command", "args", "env")
"""What decides how much of this machine a program gets."""
PLACE = ("url", "command", "args")
PLACE_OF_TOKENS = ("token_url", "authorization_url")
"""What decides, with those of ``oauth``, who gets the secrets of an entry."""

_SECRET = r"(?=[\w-]*(?:key|token|secret|passw|auth|credential))[\w-]*"
_ASSIGNED = re.compile(rf"((?:^|[?&]|^--?){_SECRET}=)([^&#\s]+)", re.IGNORECASE)
_FLAG = re.compile(rf"--?{_SECRET}", re.IGNORECASE)


class McpService:
    """``config``, ``update``, ``switch``, ``reset``, ``restart``, ``changes``, ``accept`` and ``log`` raise ForbiddenError to those who are no administrators.

    Args:
        harness: of the configuration as it is now.
    """

    def __init__(self, servers: McpServers, harness: Callable[[], Awaitable[Harness]]) -> None:
        self._servers = servers
        self._harness = harness
        self._writing = asyncio.Lock()

    async def config(self, principal: Principal) -> dict[str, Any]:
        """``{"mcp_servers": {name: entry}}`` as in the file, with marks for secrets."""
        found = _servers(await asyncio.to_thread(_read, await self._file(principal)))
        return {"mcp_servers": {name: SHAPE | _marked(entry) for name, entry in found.items()}}

    async def update(self, principal: Principal, servers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Replace all entries; a mark keeps the secret that it stands for. Servers whose entry stays are not touched, those whose entry
        goes leave nothing to another one under their name.

        Raises:
            InvalidRequestError: an entry cannot be used, refers to a variable that is not in ``mcp.variables``, or would send a
                secret that is kept to another server.
            ForbiddenError: a program would get more of this machine than the file gives it.
            UnavailableError: the file cannot be written.
        """
        file = await self._file(principal)
        harness = await self._harness()
        async with self._writing:
            gone = await asyncio.to_thread(_write, file, servers, harness.config.mcp.variables)
        await self.states(principal)
        if gone:
            await self._servers.forget(gone)
        return await self.config(principal)

    async def switch(self, principal: Principal, name: str, enabled: bool) -> dict[str, Any]:
        """Switch a server on or off; all else in its entry stays as it is. Raises NotFoundError, UnavailableError, ForbiddenError."""
        file = await self._file(principal)
        async with self._writing:
            await asyncio.to_thread(_switch, file, name, enabled)
        await self.states(principal)
        return await self.config(principal)

    async def reset(self, principal: Principal) -> list[str]:
        """Open new sessions with all servers that are up or could not be reached: their tools are read again. Return their names."""
        _check(principal)
        await self.states(principal)
        harness = await self._harness()

        async def restarted(name: str) -> str | None:
            try:
                await self._servers.restart(name, principal.user_id)
            except NotFoundError:
                return None  # the person has no connection to it
            return name

        names = await asyncio.gather(*map(restarted, harness.config.extensions.enabled_mcp_servers))
        return [name for name in names if name is not None]

    async def states(self, principal: Principal) -> list[McpServerState]:
        """Of each server, in the order of the file. Others than administrators see those that are on, without what went wrong."""
        harness = await self._harness()
        found = await self._servers.states(harness.config, harness.sandbox_provider, principal.user_id)
        if principal.role == "admin":
            return found
        on = harness.config.extensions.enabled_mcp_servers
        return [{**one, "error": ""} for one in found if one["name"] in on]

    async def prompts(self, principal: Principal) -> list[McpPrompt]:
        """Those of the servers that are up, for the person's messages."""
        harness = await self._harness()
        return await self._servers.prompts(harness.config, harness.sandbox_provider, principal.user_id)

    async def restart(self, principal: Principal, name: str) -> McpServerState:
        """Open a new session and wait for it. Raises NotFoundError."""
        _check(principal)
        await self.states(principal)
        await self._servers.restart(name, principal.user_id)
        return next(one for one in await self.states(principal) if one["name"] == name)

    async def test(self, principal: Principal, name: str, entry: Mapping[str, Any]) -> McpTrial:
        """Open a session with a server as ``entry`` describes it, before it is kept. Raises as :meth:`update`."""
        file, harness = await self._file(principal), await self._harness()

        def checked() -> McpServerConfig:
            made = _checked(name, entry, _servers(_read(file)).get(name) or {}, harness.config.mcp.variables)
            # What is not allowed over HTTP stands in the file as it is here.
            return McpServerConfig.model_validate(resolve_tree(made, harness.config.origin.environ))

        valid = await asyncio.to_thread(checked)
        if valid.is_own:
            raise InvalidRequestError("Each person connects to this server. Save it, then connect: that tests it, too.")
        return await self._servers.trial(name, valid, harness.config, harness.sandbox_provider)

    async def changes(self, principal: Principal, name: str) -> list[McpChange]:
        """Return the definitions of a server's tools that wait for an administrator. Raises NotFoundError."""
        _check(principal)
        harness = await self._harness()
        await self.states(principal)
        return self._servers.changes(name, _entry(harness, name))

    async def accept(self, principal: Principal, name: str, digests: Collection[str]) -> list[McpChange]:
        """Let policies and trust hold for these definitions, too; return those that still wait.

        Raises:
            NotFoundError: there is no such server.
            ConflictError: one of them is not waiting: the server has changed it again.
        """
        _check(principal)
        harness = await self._harness()
        _entry(harness, name)
        await self._servers.accept(name, digests)
        return await self.changes(principal, name)

    async def log(self, principal: Principal, name: str) -> list[str]:
        """The last lines that a server has written, and what went wrong with it. Raises NotFoundError."""
        _check(principal)
        await self.states(principal)
        return self._servers.log(name, principal.user_id)

    async def connect(self, principal: Principal, session: str | None, name: str, redirect_uri: str) -> str:
        """The address where the person allows DeerFlow to use a server for them.

        Args:
            session: of the browser that asks, which alone may bring the answer; None for a program.
            redirect_uri: where the answer is brought.

        Raises:
            NotFoundError: there is no such server that is on.
            ConflictError: it wants no connection of each person's own.
            UnavailableError: it cannot be connected; says why.
        """
        harness = await self._harness()
        entry = harness.config.extensions.enabled_mcp_servers.get(name)
        if entry is None:
            raise NotFoundError(f"There is no MCP server {name!r} that is on.")
        if not entry.is_own:
            raise ConflictError(f"The MCP server {name!r} needs no connection of your own.")
        return await _connections(self._servers).begin(principal, session, name, entry, redirect_uri)

    async def connected(self, principal: Principal, session: str | None, given: Given) -> str:
        """Keep what a person has allowed; the name of the server.

        Raises:
            InvalidRequestError: it was not begun here, or is too old, or was refused.
            UnavailableError: no token is to be had; says why.
        """
        harness = await self._harness()
        servers = harness.config.extensions.enabled_mcp_servers
        return await _connections(self._servers).finish(principal, session, given, servers)

    async def disconnect(self, principal: Principal, name: str) -> None:
        """Forget the person's connection. Raises NotFoundError: there is none."""
        harness = await self._harness()
        if not await _connections(self._servers).forget(principal, name):
            raise NotFoundError(f"You are not connected to an MCP server {name!r}.")
        await self._servers.tools(harness.config, harness.sandbox_provider, principal.user_id)  # ends the session

    async def _file(self, principal: Principal) -> Path:
        _check(principal)
        return (await self._harness()).config.origin.extensions_place


def _entry(harness: Harness, name: str) -> McpServerConfig:
    if (entry := harness.config.extensions.mcp_servers.get(name)) is None:
        raise NotFoundError(f"There is no MCP server {name!r}.")
    return entry


def _connections(servers: McpServers) -> McpConnections:
    if servers.connections is None:
        raise UnavailableError("Connections need a database, which is not there.")
    return servers.connections


def _check(principal: Principal) -> None:
    if principal.role != "admin":
        raise ForbiddenError("Only administrators may see and change MCP servers.", reason="administrators_only")


def _read(file: Path) -> dict[str, Any]:
    return dict(parse_json(read_text(file), file).data) if file.is_file() else {}


def _servers(document: Mapping[str, Any]) -> dict[str, Any]:
    found = next((document[key] for key in KEYS if document.get(key)), {})
    return {name: mcp_entry(entry) for name, entry in found.items()}


def _write(file: Path, servers: Mapping[str, Mapping[str, Any]], variables: Collection[str]) -> list[str]:
    """Return the names of servers that were there and are gone."""
    document = _read(file)
    before = _servers(document)
    key = next((key for key in KEYS if key in document), KEYS[0])
    document[key] = {name: _checked(name, entry, before.get(name) or {}, variables) for name, entry in servers.items()}
    _store(file, document)
    return [name for name in before if name not in servers]


def _switch(file: Path, name: str, enabled: bool) -> None:
    document = _read(file)
    key = next((key for key in KEYS if document.get(key)), KEYS[0])
    servers = dict(document.get(key) or {})
    if name not in servers:
        raise NotFoundError(f"There is no MCP server {name!r}.")
    servers[name] = {**mcp_entry(servers[name]), "enabled": enabled}
    _store(file, {**document, key: servers})


def _store(file: Path, document: Mapping[str, Any]) -> None:
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
    try:
        write_text(file.resolve(), json.dumps(document, indent=2, ensure_ascii=False) + "\n", mode)
    except OSError as error:
        raise UnavailableError(f"{file.name} cannot be written: {error.strerror}.") from error


def _checked(
    name: str, entry: Mapping[str, Any], before: Mapping[str, Any], variables: Collection[str]
) -> dict[str, Any]:
    entry = mcp_entry(entry)
    kept = {key: _kept(value, _marked(before).get(key), before.get(key)) for key, value in entry.items()}
    made = {key: value for key, value in kept.items() if value is not None}
    try:
        valid = McpServerConfig.model_validate(made)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidRequestError(f"The MCP server {name!r} is not valid: {where}: {first['msg']}.") from None
    if problem := valid.problem():
        raise InvalidRequestError(f"The MCP server {name!r} is not valid: {problem}")
    free = valid.isolation == "host" or valid.mounts or valid.network.mode == "host"
    old = McpServerConfig.model_validate(dict(before)) if before else None
    if free and any(getattr(valid, field) != getattr(old, field, None) for field in ON_HOST):
        raise ForbiddenError(
            f"What the MCP server {name!r} may use of this machine (isolation, mounts, network: host) is set in {FILE} itself."
        )
    _check_secrets(name, entry, made, before, variables)
    return made


def _check_secrets(
    name: str, entry: Mapping[str, Any], made: Mapping[str, Any], before: Mapping[str, Any], variables: Collection[str]
) -> None:
    """What is kept for a server goes to that server alone, and nothing else of ours goes to any. Raises InvalidRequestError."""
    same = _is_same_place(made, before)
    if not same and MASK in json.dumps(entry):
        raise InvalidRequestError(
            f"The MCP server {name!r} is not valid: its address or command is another one than before, which does not get the secrets "
            f"that are kept for it. Send them in place of {MASK}, or leave them out."
        )
    kept = set(_references(before)) if same else set[tuple[str, str]]()
    for variable in (variable for variable, where in _references(made) if (variable, where) not in kept):
        if variable not in variables:
            raise InvalidRequestError(
                f"The MCP server {name!r} is not valid: it refers to the variable {variable}, which entries that come over HTTP may not. "
                f"List it under mcp.variables in config.yaml, or write the entry into {FILE} itself."
            )


def _is_same_place(made: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Whether the same server gets the secrets of an entry, and the same token endpoint those of its ``oauth``, if it keeps it."""
    pairs = [(made.get(key), before.get(key)) for key in PLACE]
    new, old = made.get("oauth"), before.get("oauth")
    if isinstance(new, Mapping) and isinstance(old, Mapping):
        pairs += [(new.get(key), old.get(key)) for key in PLACE_OF_TOKENS]
    return all((one or None) == (other or None) for one, other in pairs)


def _references(value: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Each variable that an entry refers to, and the text in its place: moved or put into another text, it is another reference."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _references(item, f"{at}.{key}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _references(item, f"{at}.{index}")
    else:
        yield from ((variable, f"{at}={value}") for variable in references(value))


# marks ----------------------------------------------------------------------------------------------------------------


def _marked(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A copy whose secrets are marks. What the environment holds is referred to by name, and no secret."""
    marked = mask_secrets(entry)
    for key in ("env", "headers"):
        marked[key] = {name: _mark(value) for name, value in (entry.get(key) or {}).items()}
    if isinstance(entry.get("url"), str):
        marked["url"] = _without_values(marked["url"])
    args = list(entry.get("args") or ())
    marked["args"] = [
        _mark(value) if _FLAG.fullmatch(str(flag)) else _without_values(shown)
        for flag, value, shown in zip(["", *args], args, marked.get("args") or (), strict=False)
    ]
    return marked


def _mark(value: Any) -> Any:
    return value if value in (None, "") or has_reference(value) else MASK


def _without_values(text: Any) -> Any:
    return text if has_reference(text) or not isinstance(text, str) else _ASSIGNED.sub(rf"\1{MASK}", text)


def _kept(new: Any, shown: Any, old: Any) -> Any:
    """``new`` with what its marks stand for. Raises InvalidRequestError: one stands for nothing."""
    if new == shown and old is not None:
        return old
    if isinstance(new, Mapping):
        inner, values = (one if isinstance(one, Mapping) else {} for one in (shown, old))
        return {key: _kept(value, inner.get(key), values.get(key)) for key, value in new.items()}
    if isinstance(new, list):
        shown, old = ([*(one or ()), *[None] * len(new)] for one in (shown, old))
        return [_kept(*each) for each in zip(new, shown, old, strict=False)]
    if isinstance(new, str) and MASK in new:
        raise InvalidRequestError(f"{MASK} stands for a secret that is kept already. Send the new one as it is.")
    return new
