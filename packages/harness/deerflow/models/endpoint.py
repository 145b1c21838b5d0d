"""The endpoint of a chat model: the address and key of its calls, and the model asked for there."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from langchain_core.language_models import BaseChatModel

_ADDRESSES = ("openai_api_base", "anthropic_api_url", "base_url", "api_base")
_KEYS = ("openai_api_key", "anthropic_api_key", "api_key")


class EndpointAccount(NamedTuple):
    """An address and the key used there: limits of calls hold for all models behind them."""

    address: str
    key: Hashable
    """Mostly a ``SecretStr``, which compares by value and does not show."""


class Endpoint(NamedTuple):
    """A model behind an account: its window, failures and waits are its own."""

    account: EndpointAccount
    model: str


def endpoint_of(model: BaseChatModel) -> Endpoint:
    """Return the endpoint that ``model`` calls. Entries with equal endpoints share what is known of it."""
    address = next((str(value) for name in _ADDRESSES if (value := getattr(model, name, None))), "")
    key = next((value for name in _KEYS if (value := getattr(model, name, None))), "")
    return Endpoint(EndpointAccount(address, key), model_id(model))


def model_id(model: BaseChatModel) -> str:
    """Return the provider's name of a model."""
    return str(getattr(model, "model_name", None) or getattr(model, "model", None) or model.get_name())
