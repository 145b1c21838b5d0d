"""The models of the configuration as it is now."""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from deerflow.errors import NotFoundError
from deerflow.features.ask import check_model
from deerflow.models import model_info
from deerflow.models.pricing import pricing_of
from deerflow_app.gateway.deps import CurrentPrincipal, CurrentRuntime

router = APIRouter(tags=["models"])
TESTS_PER_USER, TESTS_OF_ALL = 10, 60
"""Per minute: each costs tokens."""


class Model(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    name: str = Field(description="By this runs ask for it.")
    model: str = Field(description="The provider's id.")
    display_name: str
    description: str | None
    supports_thinking: bool
    supports_reasoning_effort: bool
    supports_vision: bool
    context_window: int | None = Field(description="Tokens.")
    is_default: bool
    discovered_from: str | None = Field(description="Why a model that no file names is here.")
    problem: str | None = Field(description="Why it cannot be used now, e.g. a missing environment variable.")


class TokenUsage(BaseModel):
    enabled: bool


class Models(BaseModel):
    models: list[Model]
    token_usage: TokenUsage
    currency: str | None = Field(description="Of all costs, ISO 4217. None: no model has a price, or they differ.")


class ModelTest(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    ok: bool
    latency_ms: int
    answer: str | None = Field(description="The beginning of what it said.")
    problem: str | None = Field(description="What went wrong, and what to do.")


@router.get("/api/models", summary="All models; the first is the default")
async def list_models(principal: CurrentPrincipal, runtime: CurrentRuntime) -> Models:
    config = await runtime.config_source.acurrent()
    prices = [pricing_of(config, model.model, model.name) for model in config.models]
    currencies = {price.currency for price in prices if price}
    return Models(
        models=[Model.model_validate(model) for model in model_info(config)],
        token_usage=TokenUsage(enabled=config.token_usage.enabled),
        currency=currencies.pop() if len(currencies) == 1 else None,
    )


@router.get("/api/models/{model_name:path}", summary="A model")
async def get_model(model_name: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Model:
    config = await runtime.config_source.acurrent()
    for model in model_info(config):
        if model.name == model_name:
            return Model.model_validate(model)
    raise NotFoundError(f"Model {model_name!r} not found.")


@router.post("/api/models/{model_name:path}/test", summary="Ask a model for one word, to see whether it answers")
async def test_model(
    model_name: str, request: Request, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> ModelTest:
    config = await runtime.config_source.acurrent()
    if model_name not in {model.name for model in model_info(config)}:
        raise NotFoundError(f"Model {model_name!r} not found.")
    limits = {f"user {principal.user_id}": TESTS_PER_USER, "all": TESTS_OF_ALL}
    request.app.state.model_tests.attempt(limits)
    return ModelTest.model_validate(await check_model(runtime.workshop.harness.models, config, model_name))
