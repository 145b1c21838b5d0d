"""Finding models when no file names any: keys in the environment, then servers on this machine, then the demo model.

A provider's model and address can be set without a file: ``<PREFIX>_MODEL`` and ``<PREFIX>_BASE_URL``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import yaml

from deerflow.config.document import ConfigProblem
from deerflow.config.env import MissingEnv
from deerflow.config.schema import ModelConfig

Probe = Callable[[str, str | None, float], Sequence[str]]
"""``probe(base_url, api_key, timeout in seconds)`` gives the ids that ``{base_url}/models`` lists; empty when nothing answers."""

LOCAL_TIMEOUT, REMOTE_TIMEOUT = 0.3, 10.0
LOCAL_SILENCE = 300
"""Seconds: a server on this machine may load a model before it answers."""
MAX_LISTED, MAX_ANSWER = 20, 1 << 20
DEMO_MODEL = "demo"

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
    """None: the client's own default."""
    settings: dict[str, Any] = field(default_factory=dict)

    def variable(self, environ: Mapping[str, str], *suffixes: str) -> str | None:
        """What the environment says under a name of this provider's with one of these suffixes."""
        names = (key.removesuffix("API_KEY") + suffix for key in self.keys for suffix in suffixes)
        return next((environ[name].strip() for name in names if environ.get(name, "").strip()), None)


@cache
def providers() -> tuple[Provider, ...]:
    """Those of ``providers.yaml``, in its order."""
    entries = yaml.safe_load(Path(__file__).with_name("providers.yaml").read_text(encoding="utf-8"))
    return tuple(
        Provider(**{**entry, "presets": tuple(Preset(**preset) for preset in entry["presets"])}) for entry in entries
    )


LOCAL_SERVERS = (
    Provider("Ollama", base_url="http://127.0.0.1:11434/v1"),
    Provider("vLLM", base_url="http://127.0.0.1:8000/v1", use="deerflow.models.vllm_provider:VllmChatModel"),
    Provider("LM Studio", base_url="http://127.0.0.1:1234/v1"),
)
"""Model servers on their usual ports of this machine. They have no keys."""

_NOT_FOR_CHAT = re.compile(
    "embed|rerank|whisper|tts|moderation|dall-e|image|audio|realtime|transcribe|sora|clip|bge-", re.IGNORECASE
)


def discover_models(environ: Mapping[str, str], probe: Probe) -> tuple[ModelConfig, ...]:
    """Models to be had here, the default first; each says in ``discovered_from`` why it is there. Never empty.

    Local servers are only asked if no provider has a key, and the demo model only appears if there is nothing else. A key
    goes to its own provider, or to the address that the environment gives for it.
    """
    models = [model for provider in providers() for model in _of_provider(provider, environ, probe)]
    if not models:
        models = _of_local_servers(probe)
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
    entries = listed if isinstance(listed, list) else ()
    return [entry["id"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)]


def _of_provider(provider: Provider, environ: Mapping[str, str], probe: Probe) -> Iterator[ModelConfig]:
    variable = next((name for name in provider.keys if environ.get(name, "").strip()), None)
    key = environ[variable].strip() if variable else None
    base_url = provider.variable(environ, "BASE_URL", "API_BASE")
    model = provider.variable(environ, "MODEL")
    if provider.title == "OpenAI" and base_url and urlsplit(base_url).hostname != "api.openai.com":
        reason = f"{variable or 'OPENAI_BASE_URL'} in the environment, server {_without_password(base_url)}"
        yield from _of_compatible_server(base_url, key, model, reason, probe)
    elif key:
        for preset in _presets(provider, model):
            yield _model(
                preset,
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
    for name in listed or [_Unlisted("unnamed", ("OPENAI_MODEL",), _without_password(base_url))]:
        # Some model names would make LangChain ask the Responses API, which few but OpenAI have.
        yield _model(_plain(name), PATCHED_OPENAI, key or "none", base_url, reason, {"use_responses_api": False})


class _Unlisted(MissingEnv):
    """Stands for the model of a server that does not say what it holds: nobody guesses it."""

    def problem(self) -> ConfigProblem:
        return ConfigProblem(
            f"the server {self.key} did not list its models (waited {REMOTE_TIMEOUT:.0f} seconds at most).",
            remedy="Name one: set OPENAI_MODEL in the environment or in .env, or add it to `models` in config.yaml.",
        )


def _of_local_servers(probe: Probe) -> list[ModelConfig]:
    slow = {"timeout": LOCAL_SILENCE}
    with ThreadPoolExecutor(len(LOCAL_SERVERS)) as pool:
        answers = list(pool.map(lambda server: probe(str(server.base_url), None, LOCAL_TIMEOUT), LOCAL_SERVERS))
    return [
        _model(_plain(name), server.use, "none", server.base_url, f"{server.title} at {server.base_url}", slow)
        for server, listed in zip(LOCAL_SERVERS, answers, strict=True)
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
    preset: Preset, use: str, key: str, base_url: str | None, reason: str, settings: Mapping[str, Any]
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
        discovered_from="no model in config.yaml, no provider key in the environment, no local model server",
    )


def _for_chat(models: Sequence[str]) -> list[str]:
    return [name for name in models if not _NOT_FOR_CHAT.search(name)][:MAX_LISTED]


def _without_password(url: str) -> str:
    return re.sub(r"(?<=://)[^/@]*@", "", url)
