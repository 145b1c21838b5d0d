"""Providers of models, and of searches of the web, as administrators connect them: with a key, an address where it is needed, and
the models to use.

What is connected is set as variables, which the configuration is read with; so it holds at once, in every process that reads it.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar
from urllib.parse import urlsplit

from typing_extensions import TypedDict

from deerflow.config import AppConfig, ConfigError, ConfigSource, MissingEnv
from deerflow.config.discovery import (
    COMPATIBLE,
    SEARCH_VARIABLE,
    SEARCHES,
    Provider,
    addresses,
    for_chat,
    http_probe,
    list_models,
    models_of,
    providers,
    search_provider,
    search_tool,
)
from deerflow.config.env import Place, Store
from deerflow.errors import ConflictError, ForbiddenError, InvalidRequestError, NotFoundError, UnavailableError
from deerflow.features.connections.checks import Check, check_model, check_search
from deerflow.identity import Principal
from deerflow.models import ModelCache

Done = TypeVar("Done")

log = logging.getLogger(__name__)

_WORD = re.compile(r"[!#%&(-[\]-~]{1,4096}")
"""What needs no quotes in a ``.env`` file, and no reference is read in."""


class Connection(TypedDict):
    """A provider. ``place``: where its key stands (null: not connected); ``in_use``: whether agents use it now; ``models``: that it
    offers; ``example``: an address like the one that it needs; ``has_key``: whether a key stands there, too."""

    id: str
    kind: Literal["model", "search"]
    title: str
    variable: str
    place: Place | None
    base_url: str | None
    models: list[str]
    has_key: bool
    needs: Literal["key", "address", "nothing"]
    example: str | None
    in_use: bool


class Connections(TypedDict):
    """``models_in_file``, ``tools_in_file``: config.yaml names them, so none of that kind can be connected."""

    models_in_file: bool
    tools_in_file: bool
    connections: list[Connection]


@dataclass(frozen=True, slots=True)
class Trial:
    """What is tried, or connected. ``key``: None for the one that is kept; ``models``: none for those known of the provider."""

    key: str | None = None
    base_url: str | None = None
    models: tuple[str, ...] = ()


class ConnectionService:
    """Every method raises ForbiddenError to those who are no administrators, NotFoundError for an unknown provider."""

    def __init__(self, source: ConfigSource) -> None:
        self._source = source
        self._writing = asyncio.Lock()

    async def all(self, principal: Principal) -> Connections:
        """Of each provider, in the order in which they are asked."""
        _check(principal)
        found = await _off_loop(lambda: [self._connection(one) for one in _all()])
        config = await self._source.acurrent()
        return {"models_in_file": _in_file(config), "tools_in_file": config.lists_tools, "connections": found}

    async def models(self, principal: Principal, provider: str, trial: Trial) -> list[str]:
        """The models that a key reaches, those first that are known to work well.

        Raises:
            InvalidRequestError: the key is refused, or no server answers as it should; see :func:`list_models`.
        """
        one = _provider(principal, provider)
        if one in SEARCHES:
            raise NotFoundError(f"{one.title} has no models.")

        def ask() -> list[str]:
            environ = self._environ(one, trial)
            found = one.key(environ)
            base_url = one.address(environ) or one.base_url or one.api or ""
            listed = _listed(one, base_url, found[1] if found else "")
            listed = [name.removeprefix("models/") for name in listed]  # as Google writes them
            known = [preset.model for preset in one.presets if preset.model in listed]
            return list(dict.fromkeys([*known, *sorted(for_chat(listed))]))

        return await _off_loop(ask)

    async def test(self, principal: Principal, provider: str, trial: Trial) -> Check:
        """Ask the first of the models for one word, or search once, before anything is kept.

        Raises:
            InvalidRequestError: there is no key, no address or no model.
        """
        one = _provider(principal, provider)
        if one in SEARCHES:
            entry = search_tool(one, await _off_loop(self._environ, one, trial))
            return await check_search(await self._source.acurrent(), entry)

        def snapshot() -> AppConfig:
            found = tuple(models_of(one, self._environ(one, trial), http_probe))[:1]
            if not found:
                raise InvalidRequestError("There is no model to test. Choose one.", reason="model_missing")
            return self._source.current().model_copy(update={"models": found})

        models = ModelCache()
        try:
            config = await _off_loop(snapshot)
            return await check_model(models, config, str(config.models[0].__dict__["name"]))
        finally:
            await models.aclose()

    async def connect(self, principal: Principal, provider: str, trial: Trial, store: Store) -> Connection:
        """Use a provider from now on.

        Raises:
            ConflictError: config.yaml names the models, or the process's environment sets the provider's variables.
            InvalidRequestError: there is no key, or what is given cannot be a key, an address, or names of models.
            UnavailableError: the file cannot be written.
        """
        one = _provider(principal, provider)
        async with self._writing:
            await _off_loop(self._connect, one, trial, store)
        return await _off_loop(self._connection, one)

    async def disconnect(self, principal: Principal, provider: str) -> None:
        """Forget key, address and models. Raises as :meth:`connect`."""
        one = _provider(principal, provider)
        async with self._writing:
            await _off_loop(self._disconnect, one)

    def _connect(self, provider: Provider, trial: Trial, store: Store) -> None:
        config, is_search = self._source.current(), provider in SEARCHES
        if is_search and config.lists_tools:
            text = "config.yaml lists the tools. Set `use` of web_search there, or take its `tools` away."
            raise ConflictError(text, reason="search_in_config")
        if not is_search and _in_file(config):
            text = "config.yaml names the models. Add this one there, or take its `models` away."
            raise ConflictError(text, reason="models_in_config")
        if not is_search and not provider.presets and not any(trial.models):
            raise InvalidRequestError("Choose a model.", reason="model_missing")
        environ = self._environ(provider, trial)
        chosen = {SEARCH_VARIABLE: provider.id} if is_search else {}
        outside = self._source.variables.place_of(*provider.names) == "environment"
        if is_search and outside and not trial.key:  # it has all that it needs, and is only chosen
            self._change(provider, chosen, store)
        else:
            self._change(provider, dict.fromkeys(provider.names) | environ | chosen, store)

    def _disconnect(self, provider: Provider) -> None:
        chosen = self._source.variables.merged().get(SEARCH_VARIABLE, "").strip().lower() == provider.id
        names = (*provider.names, *([SEARCH_VARIABLE] if chosen else []))
        self._change(provider, dict.fromkeys(names), "encrypted")

    def _change(self, provider: Provider, changes: Mapping[str, str | None], store: Store) -> None:
        if outside := [name for name in changes if self._source.variables.place_of(name) == "environment"]:
            raise ConflictError(
                f"{outside[0]} is set in the environment in which DeerFlow was started. Change it there.",
                code="set_outside",
                name=outside[0],
            )
        try:
            self._source.variables.change(changes, store)
        except OSError as error:
            where = ".env" if store == "dotenv" else "The data directory"
            raise UnavailableError(f"{where} cannot be written: {error.strerror}.") from error
        self._source.reload()

    def _environ(self, provider: Provider, trial: Trial) -> dict[str, str]:
        """The variables of one provider as they would be."""
        environ = self._source.variables.merged()
        meant = addresses(trial.base_url) if trial.base_url and trial.base_url.strip() else [""]
        kept, address = provider.key(environ), (provider.address(environ) or "").rstrip("/")
        key = (trial.key or "").strip()
        if not key and kept:
            # Else whoever may connect could have a key sent to them that they may not see.
            if address not in meant:
                text = "The key that is kept is not sent to another address. Give the key, too."
                raise InvalidRequestError(text, reason="key_stays")
            key, meant = kept[1], [address]
        if provider.needs == "key" and not key:
            raise InvalidRequestError("Give the key.", reason="key_missing")
        if provider.needs == "address" and not meant[0]:
            raise InvalidRequestError("Give the server's address.", reason="address_missing")
        names = ",".join(name.strip() for name in trial.models)
        for what, text in (("key", key), ("address", meant[0]), ("name of a model", names)):
            if text and not _WORD.fullmatch(text):
                raise InvalidRequestError(
                    f"This cannot be the {what}: it holds spaces, quotes or other odd characters.",
                    reason="odd_characters",
                )
        if meant[0] and not _is_address(meant[0]):
            text = "Start the address with http:// or https://, without a name or a password."
            raise InvalidRequestError(text, reason="address_invalid")
        base_url = _found(provider, meant, key)
        made = {"API_KEY": key, "BASE_URL": base_url, "MODEL": names}
        return {provider.prefix + name: value for name, value in made.items() if value}

    def _connection(self, provider: Provider) -> Connection:
        environ = self._source.variables.merged()
        address = provider.address(environ)
        is_search = provider in SEARCHES
        models = [] if is_search else [one.__dict__["model"] for one in models_of(provider, environ, lambda *_: ())]
        place = self._source.variables.place_of(*provider.keys) or self._source.variables.place_of(*provider.names)
        ready = provider.is_ready(environ) if is_search else bool(models)
        in_use = provider is search_provider(environ) if is_search else ready
        return {
            "id": provider.id,
            "kind": "search" if is_search else "model",
            "title": provider.title,
            "variable": provider.keys[0],
            "place": place if ready else None,
            "base_url": address if address and _is_address(address) else None,
            "models": [model for model in models if not isinstance(model, MissingEnv)],
            "has_key": provider.key(environ) is not None,
            "needs": provider.needs,
            "example": provider.example or provider.base_url if provider.needs == "address" else None,
            "in_use": in_use,
        }


def _found(provider: Provider, meant: Sequence[str], key: str) -> str:
    """Return the address of those that may be meant at which models are listed; the first if none is."""
    any_server = provider.title == "OpenAI" or not (provider.presets or provider in SEARCHES)
    if len(meant) == 1 or not any_server:
        return meant[0]
    for address in reversed(meant):  # at most servers it is the longer one
        try:
            _listed(provider, address, key)
            return address
        except InvalidRequestError as error:
            if error.code == "no_server":
                break
            if error.code == "key_refused":
                return address
    return meant[0]


def _listed(provider: Provider, base_url: str, key: str) -> list[str]:
    headers = {name: text.replace("{key}", key) for name, text in provider.headers.items()} if key else {}
    try:
        return list_models(base_url.rstrip("/") + provider.models_path, headers)
    except InvalidRequestError as error:
        if error.code != "no_server" or provider.needs == "address":
            raise
        # Nobody gave this address, so it is no remedy.
        host = error.values["host"]
        text = f"{host} cannot be reached from this server. Check its way to the internet."
        raise InvalidRequestError(text, code="no_server", reason="no_way_out", host=host) from None


async def _off_loop(function: Callable[..., Done], *arguments: object) -> Done:
    try:
        return await asyncio.to_thread(function, *arguments)
    except ConfigError as error:
        # Its own words name paths of the host.
        log.error("%s", error)
        raise UnavailableError(
            "What is connected cannot be read. The server's log says why, and so does `deerflow doctor`."
        ) from None


def _provider(principal: Principal, provider: str) -> Provider:
    _check(principal)
    found = next((one for one in _all() if one.id == provider), None)
    if found is None:
        raise NotFoundError(f"There is no provider {provider!r}.")
    return found


def _all() -> tuple[Provider, ...]:
    return (*providers(), COMPATIBLE, *SEARCHES)


def _check(principal: Principal) -> None:
    if principal.role != "admin":
        raise ForbiddenError("Only administrators may see and change connections.", reason="administrators_only")


def _in_file(config: AppConfig) -> bool:
    return all(model.discovered_from is None for model in config.models)


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.username and parts.port != 0
    except ValueError:
        return False
