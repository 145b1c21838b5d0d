"""Is a model's provider there, and does it take our key? Asked with a request that costs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

TIMEOUT = 3.0
"""Seconds. A doctor who lets one wait for half a minute is not asked again."""

_CHECK_ADDRESS = "Check the network, a proxy, or the model's base_url."


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The model listing of a provider, which both OpenAI's and Anthropic's APIs have."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    status: Literal["ok", "warn", "bad"]
    found: str
    fix: str = ""


def endpoint_of(model: Any) -> Endpoint | None:
    """Where this chat model sends its requests; None for providers that cannot be asked this way."""
    if (client := getattr(model, "root_client", None)) is not None:
        return Endpoint(_listing(str(client.base_url)), {"Authorization": f"Bearer {client.api_key}"})
    if (url := getattr(model, "anthropic_api_url", None)) is not None:
        key = getattr(model, "anthropic_api_key", None)
        secret = key.get_secret_value() if key is not None else ""
        return Endpoint(
            _listing(str(url).rstrip("/").removesuffix("/v1") + "/v1"),
            {"x-api-key": secret, "anthropic-version": "2023-06-01"},
        )
    return None


def reach(endpoint: Endpoint, *, timeout: float = TIMEOUT) -> Answer:
    """Ask once. Blocks.

    Args:
        timeout: seconds for connecting, and for waiting for the answer.
    """
    import httpx

    try:
        status = httpx.get(endpoint.url, headers=dict(endpoint.headers), timeout=timeout).status_code
    except httpx.TimeoutException:
        return Answer("bad", f"no answer within {timeout:g} s", _CHECK_ADDRESS)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        return Answer("bad", f"cannot be reached: {str(error) or type(error).__name__}", _CHECK_ADDRESS)
    if status in (401, 403):
        return Answer(
            "bad", f"refuses the key (HTTP {status})", "Set the right key in the environment or in config.yaml."
        )
    if status >= 500:
        return Answer("warn", f"answers with HTTP {status}", "The provider has a problem: try again later.")
    return Answer("ok", "reachable" if status == 200 else f"reachable (no listing of models: HTTP {status})")


def _listing(base: str) -> str:
    return base.rstrip("/") + "/models"
