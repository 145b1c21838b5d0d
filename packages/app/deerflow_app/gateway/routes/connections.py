"""Providers of models and of searches: connected, tried and forgotten by administrators. Keys go in and never come out."""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field, SecretStr
from typing_extensions import TypedDict

from deerflow.config.env import Store
from deerflow.features.connections import Connection, Connections, Trial
from deerflow_app.gateway.deps import CurrentAdmin, CurrentRuntime
from deerflow_app.gateway.routes.models import TESTS_OF_ALL, ModelTest

router = APIRouter(prefix="/api/connections", tags=["models"])


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


@router.get("", summary="Providers of models and searches, and which are connected")
async def list_connections(principal: CurrentAdmin, runtime: CurrentRuntime) -> Connections:
    return await runtime.connections.all(principal)


@router.post("/{provider}/models", summary="The models that a key reaches")
async def list_reached(
    provider: str, given: GivenTrial, principal: CurrentAdmin, runtime: CurrentRuntime
) -> ReachedModels:
    """Codes of what can go wrong (422): `key_refused`, `no_server`, `no_list`."""
    return {"models": await runtime.connections.models(principal, provider, given.trial())}


@router.post(
    "/{provider}/test", summary="Ask the first of the models for one word, or search once, before it is connected"
)
async def test_connection(
    provider: str, given: GivenTrial, request: Request, principal: CurrentAdmin, runtime: CurrentRuntime
) -> ModelTest:
    request.app.state.model_tests.attempt({"all": TESTS_OF_ALL})
    return ModelTest.model_validate(await runtime.connections.test(principal, provider, given.trial()))


@router.put("/{provider}", summary="Use a provider from now on")
async def connect(
    provider: str, given: GivenConnection, principal: CurrentAdmin, runtime: CurrentRuntime
) -> Connection:
    """409 where config.yaml names the models, or the provider is set in the environment of the process (`set_outside`)."""
    return await runtime.connections.connect(principal, provider, given.trial(), given.store)


@router.delete("/{provider}", status_code=204, summary="Forget a provider's key, address and models")
async def disconnect(provider: str, principal: CurrentAdmin, runtime: CurrentRuntime) -> None:
    await runtime.connections.disconnect(principal, provider)
