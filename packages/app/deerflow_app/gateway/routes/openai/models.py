"""Agents, as the models of OpenAI's API."""

from __future__ import annotations

from typing import Any

from fastapi import Response
from starlette.responses import JSONResponse

from deerflow.context.run_options import run_options
from deerflow.errors import NotFoundError
from deerflow.identity import Principal
from deerflow.storage.threads import LEAD_AGENT
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import CurrentPrincipal, CurrentRuntime, Runtime
from deerflow_app.gateway.routes.openai.answer import ANSWERS, PREFIX

router = Router(prefix=PREFIX, tags=["openai"])

ALONE = ":text"
"""Behind the name of an agent: its model alone."""


@router.get("/models", summary="Agents, as models", responses=ANSWERS)
async def list_models(principal: CurrentPrincipal, runtime: CurrentRuntime) -> Response:
    names = [LEAD_AGENT, *(agent.name for agent in await runtime.agents.list(principal))]
    return JSONResponse({"object": "list", "data": [_model(name) for name in names]})


@router.get("/models/{model}", summary="One agent, as a model", responses=ANSWERS)
async def get_model(model: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Response:
    await check_model(runtime, principal, model)
    return JSONResponse(_model(model))


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "deerflow"}


async def check_model(runtime: Runtime, principal: Principal, model: str) -> None:
    """Raise NotFoundError if no agent of the principal's is meant."""
    try:
        await runtime.assistants.get(principal, model.removesuffix(ALONE))
    except NotFoundError as error:
        text = f"The model {model!r} does not exist. GET /v1/models lists those that you can use."
        raise NotFoundError(text, code="model_not_found", param="model") from error


async def model_of(runtime: Runtime, principal: Principal, model: str) -> str | None:
    """Return the name of the model that an agent uses; None: the default one."""
    assistant, agent = await runtime.assistants.resolve(principal, model.removesuffix(ALONE))
    configurable = (assistant.config or {}).get("configurable") or {}
    return run_options({**configurable, **(assistant.context or {})}, agent).model_name
