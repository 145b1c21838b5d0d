"""Finding models when no file names any: keys in the environment, then servers on this machine, then the demo model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from deerflow.config.models import ModelConfig
from deerflow.config.providers import (
    LOCAL_SERVERS,
    NOT_FOR_CHAT,
    OPENAI,
    PATCHED_OPENAI,
    PROVIDERS,
    LocalServer,
    Preset,
    Provider,
)

Probe = Callable[[str, str | None, float], Sequence[str]]
"""``probe(base_url, api_key, timeout in seconds)`` gives the ids that ``{base_url}/models`` lists; empty when nothing answers."""

LOCAL_TIMEOUT, REMOTE_TIMEOUT = 0.3, 1.0
MAX_LISTED, MAX_ANSWER = 20, 1 << 20
DEMO_MODEL = "demo"


def discover_models(environ: Mapping[str, str], probe: Probe) -> tuple[ModelConfig, ...]:
    """Models to be had here, the default first; each says in ``discovered_from`` why it is there. Never empty.

    Local servers are only asked if no provider has a key, and the demo model only appears if there is nothing else. A key
    goes to its own provider, or to the address that the environment gives for it.
    """
    models = [model for provider in PROVIDERS for model in _of_provider(provider, environ, probe)]
    if not models:
        models = _of_local_servers(LOCAL_SERVERS, probe)
    return tuple({model.name: model for model in reversed(models or [_demo()])}.values())[::-1]


def http_probe(base_url: str, api_key: str | None, timeout: float) -> Sequence[str]:
    """The real :data:`Probe`. Whatever goes wrong, the answer is: no models."""
    import httpx

    deadline = monotonic() + timeout
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        # A redirect would carry the key to whoever the server names, a proxy is no way to this machine.
        with httpx.Client(timeout=timeout, follow_redirects=False, trust_env=api_key is not None) as client:
            with client.stream("GET", f"{base_url.rstrip('/')}/models", headers=headers) as answer:
                answer.raise_for_status()
                body = b""
                for piece in answer.iter_bytes():
                    body += piece
                    # Whatever listens on such a port may just as well be an endless stream.
                    if len(body) > MAX_ANSWER or monotonic() > deadline:
                        return ()
        listed = json.loads(body).get("data")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, AttributeError):
        return ()
    return (
        [entry["id"] for entry in listed or () if isinstance(entry, dict) and isinstance(entry.get("id"), str)]
        if isinstance(listed, list)
        else ()
    )


def _of_provider(provider: Provider, environ: Mapping[str, str], probe: Probe) -> Iterator[ModelConfig]:
    variable = next((name for name in provider.keys if environ.get(name, "").strip()), None)
    key = environ[variable].strip() if variable else None
    base_url = _set(environ, provider.prefixes, "BASE_URL", "API_BASE")
    model = _set(environ, provider.prefixes, "MODEL")
    if provider is OPENAI and base_url and urlsplit(base_url).hostname != "api.openai.com":
        reason = f"{variable or 'OPENAI_BASE_URL'} in the environment, server {_without_password(base_url)}"
        yield from _of_compatible_server(base_url, key, model, reason, probe)
    elif key:
        for preset in _presets(provider, model):
            yield _model(
                preset.entry(),
                provider.use,
                key,
                base_url or provider.base_url,
                f"{variable} in the environment",
                provider.settings,
            )


def _of_compatible_server(
    base_url: str, key: str | None, model: str | None, reason: str, probe: Probe
) -> Iterator[ModelConfig]:
    """Servers that speak OpenAI's protocol are told apart by their address alone; what they hold they must say themselves."""
    listed = [model] if model else _for_chat(probe(base_url, key, REMOTE_TIMEOUT))
    for name in listed or [OPENAI.presets[0].model]:
        # Some model names would make LangChain ask the Responses API, which few but OpenAI have.
        yield _model(
            _plain(name).entry(), PATCHED_OPENAI, key or "none", base_url, reason, {"use_responses_api": False}
        )


def _of_local_servers(servers: Sequence[LocalServer], probe: Probe) -> list[ModelConfig]:
    with ThreadPoolExecutor(len(servers)) as pool:
        answers = list(pool.map(lambda server: probe(server.base_url, None, LOCAL_TIMEOUT), servers))
    return [
        _model(_plain(name).entry(), server.use, "none", server.base_url, f"{server.title} at {server.base_url}", {})
        for server, listed in zip(servers, answers, strict=True)
        for name in _for_chat(listed)
    ]


def _presets(provider: Provider, model: str | None) -> tuple[Preset, ...]:
    if model is None:
        return provider.presets
    return (next((preset for preset in provider.presets if preset.model == model), _plain(model)),)


def _plain(model: str) -> Preset:
    """A model of which only the id is known: nothing is claimed that could make a request fail."""
    return Preset(model, thinking=False, vision=False)


def _model(
    entry: dict[str, Any], use: str, key: str, base_url: str | None, reason: str, settings: Mapping[str, Any]
) -> ModelConfig:
    extras = {**settings, **({"base_url": base_url} if base_url else {})}
    return ModelConfig.model_validate({**entry, "use": use, "api_key": key, "discovered_from": reason, **extras})


def _demo() -> ModelConfig:
    return ModelConfig(
        name=DEMO_MODEL,
        display_name="Demo (no real model)",
        description="Plays a scripted example in the real sandbox. Set a provider's key, e.g. OPENAI_API_KEY, to work with a real model.",
        use="deerflow.models.demo:DemoChatModel",
        model=DEMO_MODEL,
        discovered_from="no model in config.yaml, no provider key in the environment, no local model server",
    )


def _for_chat(models: Sequence[str]) -> list[str]:
    return [name for name in models if not any(part in name.lower() for part in NOT_FOR_CHAT)][:MAX_LISTED]


def _set(environ: Mapping[str, str], prefixes: Sequence[str], *suffixes: str) -> str | None:
    names = (f"{prefix}_{suffix}" for prefix in prefixes for suffix in suffixes)
    return next((environ[name].strip() for name in names if environ.get(name, "").strip()), None)


def _without_password(url: str) -> str:
    return re.sub(r"(?<=://)[^/@]*@", "", url)
