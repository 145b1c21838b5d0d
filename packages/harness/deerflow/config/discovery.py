"""Finding models when no file names any: keys in the environment, then servers on this machine, then the demo model.

A provider's models and address can be set without a file: ``<PREFIX>_MODEL`` (several with commas) and ``<PREFIX>_BASE_URL``.
Who searches the web is found the same way where no file lists the tools.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from time import monotonic
from typing import Any, Literal
from urllib.parse import urlsplit

import yaml

from deerflow.config.document import ConfigError, ConfigProblem
from deerflow.config.env import MissingEnv, first_set
from deerflow.config.model_origin import ModelOrigin
from deerflow.config.schema import DEFAULT_TOOLS, ModelConfig, ToolConfig
from deerflow.errors import InvalidRequestError

Probe = Callable[[str, str | None, float], Sequence[str]]
"""``probe(base_url, api_key, timeout in seconds)`` gives the ids that ``{base_url}/models`` lists; empty when nothing answers."""

LOCAL_TIMEOUT, REMOTE_TIMEOUT = 0.3, 10.0
LOCAL_SILENCE = 300
"""Seconds: a server on this machine may load a model before it answers."""
Needs = Literal["key", "address", "nothing"]
MAX_LISTED, MAX_ANSWER = 20, 1 << 20
DEMO_MODEL = "demo"

SEARCH_VARIABLE = "DEER_FLOW_WEB_SEARCH"
"""Names who searches the web where several could."""

PATCHED_OPENAI = "deerflow.models.patched_openai:PatchedChatOpenAI"


@dataclass(frozen=True, slots=True)
class Preset:
    """A model that a provider offers. ``context_window`` is in tokens."""

    model: str
    display_name: str = ""
    context_window: int | None = None
    thinking: bool = True
    effort: bool = False
    vision: bool = True


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider with a key of its own. The first of ``keys`` that is set is sent to ``base_url`` and nowhere else."""

    title: str
    keys: Sequence[str] = ()
    use: str = PATCHED_OPENAI
    presets: tuple[Preset, ...] = ()
    base_url: str | None = None
    """None: the client's own default. Of one that needs an address: its usual one on this machine, if it has one."""
    example: str | None = None
    """Form of the address that it needs."""
    settings: dict[str, Any] = field(default_factory=dict)
    api: str | None = None
    """Where the client's own default leads."""
    models_path: str = "/models"
    headers: dict[str, str] = field(default_factory=lambda: {"Authorization": "Bearer {key}"})
    """Of a request for the models; ``{key}`` stands for the key."""
    needs: Needs = "key"
    """What must be given before it can be used."""

    @property
    def prefix(self) -> str:
        """Of the variables that are set for this provider."""
        return self.keys[0].removesuffix("API_KEY")

    @property
    def id(self) -> str:
        """In addresses."""
        return self.prefix.lower().strip("_")

    @property
    def names(self) -> tuple[str, ...]:
        """All its variables."""
        prefixes = [key.removesuffix("API_KEY") for key in self.keys]
        return tuple(each + name for each in prefixes for name in ("API_KEY", "MODEL", "BASE_URL", "API_BASE"))

    def key(self, environ: Mapping[str, str]) -> tuple[str, str] | None:
        """The variable that holds the key, and the key."""
        return first_set(environ, *self.keys)

    def address(self, environ: Mapping[str, str]) -> str | None:
        """That the environment names in place of the provider's own."""
        return self.variable(environ, "BASE_URL", "API_BASE")

    def is_ready(self, environ: Mapping[str, str]) -> bool:
        """Whether the environment gives what it needs."""
        return {"key": self.key(environ), "address": self.address(environ), "nothing": True}[self.needs] is not None

    def variable(self, environ: Mapping[str, str], *suffixes: str) -> str | None:
        """What the environment says under a name of this provider's with one of these suffixes."""
        names = (key.removesuffix("API_KEY") + suffix for key in self.keys for suffix in suffixes)
        found = first_set(environ, *names)
        return found[1] if found else None


@cache
def providers() -> tuple[Provider, ...]:
    """Those of ``providers.yaml``, in its order."""
    entries = yaml.safe_load(Path(__file__).with_name("providers.yaml").read_text(encoding="utf-8"))
    return tuple(
        Provider(**{**entry, "presets": tuple(Preset(**preset) for preset in entry.get("presets", ()))})
        for entry in entries
    )


COMPATIBLE = Provider("OpenAI-compatible server", ("OPENAI_COMPATIBLE_API_KEY",), needs="address")
"""Any server that speaks OpenAI's protocol, beside OpenAI itself: known by its address, with or without a key."""


def local_servers() -> tuple[Provider, ...]:
    """Model servers that are looked for on their usual ports of this machine, without a key."""
    return tuple(one for one in providers() if one.needs == "address" and one.base_url)


_SEARCHES: tuple[tuple[str, str, str, Needs], ...] = (
    ("Tavily", "TAVILY_API_KEY", "tavily", "key"),
    ("Brave Search", "BRAVE_API_KEY", "brave", "key"),
    ("Serper (Google)", "SERPER_API_KEY", "serper", "key"),
    ("Exa", "EXA_API_KEY", "exa", "key"),
    ("Jina", "JINA_API_KEY", "jina_ai", "key"),
    ("Firecrawl", "FIRECRAWL_API_KEY", "firecrawl", "key"),
    ("InfoQuest", "INFOQUEST_API_KEY", "infoquest", "key"),
    ("SearXNG", "SEARX_API_KEY", "searx", "address"),
    ("DuckDuckGo", "DDG_API_KEY", "ddg_search", "nothing"),
)
SEARCHES = tuple(
    Provider(title, (key,), f"deerflow.community.{place}.tools:web_search_tool", needs=needs)
    for title, key, place, needs in _SEARCHES
)
"""Who can search the web. The first that has what it needs does."""

_NOT_FOR_CHAT = re.compile(
    "embed|rerank|whisper|tts|moderation|dall-e|image|audio|realtime|transcribe|sora|clip|bge-", re.IGNORECASE
)


def discover_models(
    environ: Mapping[str, str], probe: Probe, connected: Collection[str] = ()
) -> tuple[ModelConfig, ...]:
    """Models to be had here, the default first; each says in ``discovered_from`` why it is there. Never empty.

    Local servers are only asked if no provider has a key, and the demo model only appears if there is nothing else. A key
    goes to its own provider, or to the address that the environment gives for it.

    Args:
        connected: variables that a person set on the page, and not in the environment.
    """
    known = (*providers(), COMPATIBLE)
    models = [model for provider in known for model in models_of(provider, environ, probe, connected)]
    if not models:
        models = _of_local_servers(probe)
    return tuple({model.name: model for model in reversed(models or [_demo()])}.values())[::-1]


def search_provider(environ: Mapping[str, str]) -> Provider:
    """Who searches the web: the one that ``DEER_FLOW_WEB_SEARCH`` names, else the first that has what it needs.

    Raises:
        ConfigError: the variable names none.
    """
    if named := environ.get(SEARCH_VARIABLE, "").strip().lower():
        for provider in SEARCHES:
            if provider.id == named:
                return provider
        known = ", ".join(provider.id for provider in SEARCHES)
        raise ConfigError(
            ConfigProblem(f"{SEARCH_VARIABLE} names no provider: {named}.", remedy=f"Choose one of {known}.")
        )
    return next(provider for provider in SEARCHES if provider.is_ready(environ))


def search_tool(provider: Provider, environ: Mapping[str, str]) -> ToolConfig:
    """The entry of ``web_search`` that asks ``provider``, with the key and at the address that the environment gives for it."""
    given = {"api_key": (provider.key(environ) or ("", None))[1], "base_url": provider.address(environ)}
    return ToolConfig.model_validate(
        {"name": "web_search", "group": "web", "use": provider.use, "discovered_from": provider.title}
        | {name: value for name, value in given.items() if value}
    )


def discover_tools(environ: Mapping[str, str]) -> tuple[ToolConfig, ...]:
    """The default tools, with the web searched by whom the environment offers. Raises as :func:`search_provider`."""
    search = search_tool(search_provider(environ), environ)
    return tuple(search if tool.name == search.name else tool for tool in DEFAULT_TOOLS)


def http_probe(base_url: str, api_key: str | None, timeout: float) -> Sequence[str]:
    """The real :data:`Probe`. Whatever goes wrong, the answer is: no models."""
    try:
        return list_models(
            f"{base_url.rstrip('/')}/models", {"Authorization": f"Bearer {api_key}"} if api_key else {}, timeout
        )
    except InvalidRequestError:
        return ()


def list_models(url: str, headers: Mapping[str, str], timeout: float = REMOTE_TIMEOUT) -> list[str]:
    """The ids that a server lists at ``url``. Blocks, for ``timeout`` seconds at most, a little more where pieces are slow.

    Raises:
        InvalidRequestError: it refuses the key (code ``key_refused``), there is no such server (``no_server``), or it is one that
            lists no models (``no_list``).
    """
    import httpx

    deadline = monotonic() + timeout
    try:
        # A redirect would carry the key to whoever the server names, a proxy is no way to this machine.
        with httpx.Client(timeout=timeout, follow_redirects=False, trust_env=bool(headers)) as client:
            with client.stream("GET", url, headers=dict(headers)) as answer:
                if answer.status_code in (401, 403):
                    if not headers:
                        raise InvalidRequestError(
                            "The server wants a key. Give one.", code="key_refused", reason="key_wanted"
                        )
                    raise InvalidRequestError(
                        "The key was refused. Check that it is whole and for this provider.", code="key_refused"
                    )
                answer.raise_for_status()
                body = b""
                for piece in answer.iter_bytes():
                    body += piece
                    # Whatever listens on such a port may just as well be an endless stream.
                    if len(body) > MAX_ANSWER or monotonic() > deadline:
                        raise ValueError
        listed = json.loads(body)["data"]
        return [entry["id"] for entry in listed if isinstance(entry, dict) and isinstance(entry.get("id"), str)]
    except (httpx.TransportError, httpx.InvalidURL) as error:
        slow = (
            f"did not answer within {timeout:g} seconds"
            if isinstance(error, httpx.TimeoutException)
            else "cannot be reached"
        )
        raise InvalidRequestError(
            f"{_host(url)} {slow}. Check the address.", code="no_server", host=_host(url)
        ) from None
    except (httpx.HTTPStatusError, ValueError, KeyError, TypeError):
        raise InvalidRequestError(
            f"{_host(url)} answers, but lists no models at this address.", code="no_list"
        ) from None


def models_of(
    provider: Provider, environ: Mapping[str, str], probe: Probe, connected: Collection[str] = ()
) -> Iterator[ModelConfig]:
    """What this provider offers with its variables: none without a key, or an address where that is enough."""
    variable, key = provider.key(environ) or (None, None)
    base_url = provider.address(environ)
    model = provider.variable(environ, "MODEL")
    is_other = provider.title == "OpenAI" and base_url and urlsplit(base_url).hostname != "api.openai.com"
    is_connected = connected and any(name in connected for name in provider.names)
    if provider.presets and not is_other:
        reason = ModelOrigin(kind="connected") if is_connected else ModelOrigin(kind="environment", name=variable or "")
        for preset in _presets(provider, model) if key else ():
            yield _model(preset, provider.use, str(key), base_url or provider.base_url, reason, provider.settings)
        return
    base_url = base_url or (provider.base_url if provider.needs == "key" else None)
    if base_url and (key or provider.needs != "key" or is_other):
        # Servers that speak OpenAI's protocol are known by their address alone; they must say themselves what they hold.
        names = _names(model)
        base_url, listed = _reached(base_url, key, probe, bool(names))
        shown = _without_password(base_url)
        set_ = ModelOrigin(kind="environment", name=variable or f"{provider.prefix}BASE_URL", address=shown)
        reason = ModelOrigin(kind="connected") if is_connected else set_
        use = PATCHED_OPENAI if is_other else provider.use
        for name in names or listed or [_Unlisted("unnamed", (f"{provider.prefix}MODEL",), shown)]:
            # Some model names would make LangChain ask the Responses API, which few but OpenAI have.
            yield _model(_plain(name), use, key or "none", base_url, reason, {"use_responses_api": False})


def _reached(base_url: str, key: str | None, probe: Probe, is_named: bool) -> tuple[str, list[str]]:
    """The address of a server, found by trying where it is not whole, and the models that it lists."""
    meant = addresses(base_url)
    for address in reversed(meant) if len(meant) > 1 or not is_named else ():
        if listed := for_chat(probe(address, key, REMOTE_TIMEOUT)):
            return address, listed[:MAX_LISTED]
    return meant[0], []


def addresses(text: str) -> list[str]:
    """Return the addresses that a person may mean, as ``localhost:1234`` or ``http://host``: the one as it was typed first.

    A key is never sent in the clear to a host outside of the person's own network.
    """
    text = text.strip()
    try:
        if "://" not in text:
            text = f"{'http' if _is_near(urlsplit(f'//{text}').hostname or '') else 'https'}://{text}"
        if not urlsplit(text).hostname:
            return [text]
        text = text.rstrip("/")
        return [text] if urlsplit(text).path else [text, f"{text}/v1"]
    except ValueError:
        return [text]


def _is_near(host: str) -> bool:
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".localhost", ".local", ".lan", ".internal"))


class _Unlisted(MissingEnv):
    """Stands for the model of a server that does not say what it holds: nobody guesses it."""

    def problem(self) -> ConfigProblem:
        return ConfigProblem(
            f"the server {self.key} did not list its models (waited {REMOTE_TIMEOUT:.0f} seconds at most).",
            remedy=f"Name one: set {self.variables[0]} in the environment or in .env, or add it to `models` in config.yaml.",
        )


def _of_local_servers(probe: Probe) -> list[ModelConfig]:
    slow, servers = {"timeout": LOCAL_SILENCE}, local_servers()
    with ThreadPoolExecutor(len(servers)) as pool:
        answers = list(pool.map(lambda server: probe(str(server.base_url), None, LOCAL_TIMEOUT), servers))
    return [
        _model(_plain(name), server.use, "none", server.base_url, _local(server), slow)
        for server, listed in zip(servers, answers, strict=True)
        for name in for_chat(listed)[:MAX_LISTED]
    ]


def _local(server: Provider) -> ModelOrigin:
    return ModelOrigin(kind="local", name=server.title, address=server.base_url)


def _presets(provider: Provider, model: str | None) -> tuple[Preset, ...]:
    known = {preset.model: preset for preset in provider.presets}
    return tuple(known.get(name) or _plain(name) for name in _names(model)) or provider.presets


def _names(models: str | None) -> list[str]:
    return [name.strip() for name in (models or "").split(",") if name.strip()]


def _plain(model: str) -> Preset:
    """A model of which only the id is known: nothing is claimed that could make a request fail."""
    return Preset(model, thinking=False, vision=False)


def _model(
    preset: Preset, use: str, key: str, base_url: str | None, reason: ModelOrigin, settings: Mapping[str, Any]
) -> ModelConfig:
    entry = {
        "name": str.__str__(preset.model),
        "display_name": preset.display_name or str.__str__(preset.model),
        "use": use,
        "model": preset.model,
        "api_key": key,
        "context_window": preset.context_window,
        "supports_thinking": preset.thinking,
        "supports_reasoning_effort": preset.effort,
        "supports_vision": preset.vision,
        "discovered_from": reason,
        **settings,
    }
    return ModelConfig.model_validate({**entry, "base_url": base_url} if base_url else entry)


def _demo() -> ModelConfig:
    return ModelConfig(
        name=DEMO_MODEL,
        display_name="Demo (no real model)",
        description="Plays a scripted example in the real sandbox. Set a provider's key, e.g. OPENAI_API_KEY, to work with a real model.",
        use="deerflow.models.demo:DemoChatModel",
        model=DEMO_MODEL,
        discovered_from=ModelOrigin(kind="demo"),
    )


def for_chat(models: Sequence[str]) -> list[str]:
    """Those whose names do not speak against it."""
    return [name for name in models if not _NOT_FOR_CHAT.search(name)]


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "The server"
    except ValueError:
        return "The server"


def _without_password(url: str) -> str:
    return re.sub(r"(?<=://)[^/@]*@", "", url)
