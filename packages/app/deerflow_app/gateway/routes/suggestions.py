"""What the person might ask next."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from deerflow.features.suggestions import Said
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import CurrentPrincipal, CurrentRuntime, RequestBody

router = Router(tags=["suggestions"])
MOST = 5


class SaidMessage(BaseModel):
    role: str = Field(max_length=32, examples=["user"])
    content: str


class SuggestionRequest(RequestBody):
    messages: Annotated[list[SaidMessage], Field(description="The newest last.")]
    n: int = Field(default=3, ge=1, le=MOST)
    model_name: str | None = Field(default=None, description="Default: the first model.")


class Suggestions(BaseModel):
    suggestions: list[str] = Field(description="At most n. Empty if the model cannot be asked.")


class SuggestionsConfig(BaseModel):
    enabled: bool = Field(description="There is a model to ask.")
    max_suggestions: int = Field(description="The largest `n`.")


@router.get("/api/suggestions/config", summary="Whether there are suggestions, and how many")
async def suggestions_config(principal: CurrentPrincipal, runtime: CurrentRuntime) -> SuggestionsConfig:
    config = await runtime.config_source.acurrent()
    return SuggestionsConfig(enabled=bool(config.models), max_suggestions=MOST)


@router.post("/api/threads/{thread_id}/suggestions", summary="What the person might ask next")
async def suggest(
    thread_id: str, body: SuggestionRequest, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> Suggestions:
    await runtime.threads.repository.get(principal, thread_id)
    config = await runtime.config_source.acurrent()
    messages = [Said(message.role, message.content) for message in body.messages]
    found = await runtime.suggestions.suggest(config, principal, messages, n=body.n, model_name=body.model_name)
    return Suggestions(suggestions=found)
