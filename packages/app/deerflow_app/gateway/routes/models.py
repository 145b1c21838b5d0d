"""The models of the configuration as it is now, the providers of models and of searches, and what models used and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import date
from typing import Any

from fastapi import Request
from pydantic import BaseModel, Field, SecretStr
from typing_extensions import TypedDict

from deerflow.config import AppConfig
from deerflow.config.env import Store
from deerflow.config.model_origin import ModelOrigin
from deerflow.errors import NotFoundError
from deerflow.features.connections.checks import Check, try_model
from deerflow.features.connections.service import Connection, Connections, Trial
from deerflow.features.site import Mode, SiteSettings
from deerflow.features.usage.service import By, Limit, UsageReport
from deerflow.models import ModelInfo, model_info
from deerflow.models.pricing import pricing_of
from deerflow.models.resilience import Rest
from deerflow.runtime import Runtime
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import CurrentAdmin, CurrentPrincipal, CurrentRuntime

router = Router(tags=["models"])
usage_routes = Router(tags=["usage"])
TESTS_PER_USER, TESTS_OF_ALL = 10, 60
"""Per minute: each costs tokens."""


class Model(BaseModel):
    name: str = Field(description="By this runs ask for it.")
    model: str = Field(description="The provider's id.")
    display_name: str
    description: str | None
    supports_thinking: bool
    supports_reasoning_effort: bool
    supports_vision: bool
    context_window: int | None = Field(description="Tokens.")
    is_default: bool
    discovered_from: ModelOrigin | None = Field(description="Why a model that no file names is there.")
    missing: list[str] = Field(description="Environment variables that it needs and that are not set.")
    problem: str | None = Field(description="Why it cannot be used now, e.g. a missing environment variable.")
    rest: Rest | None = Field(description="Set while runs do not call it, but its fallbacks.")


class TokenUsage(BaseModel):
    enabled: bool


class Models(BaseModel):
    models: list[Model]
    token_usage: TokenUsage
    currency: str | None = Field(description="Of all costs, ISO 4217. None: no model has a price, or they differ.")
    default_mode: Mode | None = Field(description="Of new chats, if administrators have chosen one.")


@router.get("/api/models", summary="All models", response_model=Models)
async def list_models(principal: CurrentPrincipal, runtime: CurrentRuntime) -> Any:
    """`is_default`: the model of new chats, which administrators have chosen, or the first. A run that names none uses the first."""
    config, site = await runtime.config_source.acurrent(), await runtime.site.get()
    prices = [pricing_of(config, model.model, model.name) for model in config.models]
    currencies = {price.currency for price in prices if price}
    return {
        "models": [_with_rest(model, config, runtime) for model in chosen_default(model_info(config), site)],
        "default_mode": site["default_mode"],
        "token_usage": config.token_usage,
        "currency": currencies.pop() if len(currencies) == 1 else None,
    }


@router.get("/api/models/{model_name:path}", summary="A model", response_model=Model)
async def get_model(model_name: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Any:
    config = await runtime.config_source.acurrent()
    return _with_rest(_named(model_name, config), config, runtime)


@router.post(
    "/api/models/{model_name:path}/test",
    summary="Ask a model for one word, to see whether it answers",
)
async def test_model(model_name: str, request: Request, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Check:
    """Runs may leave a model alone for a while, since it failed or its provider asked to wait: it is asked nevertheless, and runs call
    it again if it answers."""
    config = await runtime.config_source.acurrent()
    _named(model_name, config)
    limits = {f"user {principal.user_id}": TESTS_PER_USER, "all": TESTS_OF_ALL}
    request.app.state.model_tests.attempt(limits)
    return await try_model(runtime.agent_provider, config, model_name)


def chosen_default(models: Sequence[ModelInfo], site: SiteSettings) -> list[ModelInfo]:
    """Mark the model of new chats."""
    if (chosen := site["default_model"]) is None:
        return [*models]
    return [replace(model, is_default=model.name == chosen) for model in models]


def _with_rest(model: ModelInfo, config: AppConfig, runtime: Runtime) -> dict[str, Any]:
    return {**asdict(model), "rest": runtime.agent_provider.rest_of(config, model.name)}


def _named(name: str, config: AppConfig) -> ModelInfo:
    for model in model_info(config):
        if model.name == name:
            return model
    raise NotFoundError(f"Model {name!r} not found.")


# providers: connected, tried and forgotten by administrators. Keys go in and never come out. -----------------------------


class GivenTrial(BaseModel):
    key: SecretStr | None = Field(default=None, description="Left out: the one that is kept.")
    base_url: str | None = Field(default=None, description="In place of the provider's own address.")
    models: list[str] = Field(
        default=[], max_length=20, description="The default first. Empty: those known of the provider."
    )

    def trial(self) -> Trial:
        return Trial(self.key.get_secret_value() if self.key else None, self.base_url, tuple(self.models))


class GivenConnection(GivenTrial):
    store: Store = Field(default="encrypted", description="In the data directory, or in `.env`.")


class ReachedModels(TypedDict):
    models: list[str]


@router.get("/api/connections", summary="Providers of models and searches, and which are connected")
async def list_connections(principal: CurrentAdmin, runtime: CurrentRuntime) -> Connections:
    return await runtime.connections.all(principal)


@router.post("/api/connections/{provider}/models", summary="The models that a key reaches")
async def list_reached(
    provider: str, given: GivenTrial, principal: CurrentAdmin, runtime: CurrentRuntime
) -> ReachedModels:
    """Codes of what can go wrong (422): `key_refused`, `no_server`, `no_list`."""
    return {"models": await runtime.connections.models(principal, provider, given.trial())}


@router.post(
    "/api/connections/{provider}/test",
    summary="Ask the first of the models for one word, or search once, before it is connected",
)
async def test_connection(
    provider: str, given: GivenTrial, request: Request, principal: CurrentAdmin, runtime: CurrentRuntime
) -> Check:
    request.app.state.model_tests.attempt({"all": TESTS_OF_ALL})
    return await runtime.connections.test(principal, provider, given.trial())


@router.put("/api/connections/{provider}", summary="Use a provider from now on")
async def connect(
    provider: str, given: GivenConnection, principal: CurrentAdmin, runtime: CurrentRuntime
) -> Connection:
    """409 where config.yaml names the models, or the provider is set in the environment of the process (`set_outside`)."""
    return await runtime.connections.connect(principal, provider, given.trial(), given.store)


@router.delete("/api/connections/{provider}", status_code=204, summary="Forget a provider's key, address and models")
async def disconnect(provider: str, principal: CurrentAdmin, runtime: CurrentRuntime) -> None:
    await runtime.connections.disconnect(principal, provider)


# usage: what models used and what it cost, over all threads -------------------------------------------------------------


@usage_routes.get("/api/usage", summary="Tokens and money by day, model, agent or person")
async def usage(
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    by: By = "day",
    since: date | None = None,
    until: date | None = None,
    everyone: bool = False,
    person: str | None = None,
) -> UsageReport:
    """One's own of the last 30 days, or of the days named (UTC, both included); administrators may ask for everyone's, or for
    those of a person by id."""
    return await runtime.usage.report(principal, by=by, since=since, until=until, everyone=everyone, person=person)


class UsageLimits(BaseModel):
    limits: list[Limit]


@usage_routes.get("/api/usage/limits", summary="What may be spent, and how much of it is")
async def limits(principal: CurrentPrincipal, runtime: CurrentRuntime) -> UsageLimits:
    config = await runtime.config_source.acurrent()
    return UsageLimits(limits=await runtime.usage.limits(principal, config.spending))
