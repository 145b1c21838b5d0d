"""A chat model of your own: any LangChain chat model. This one adds a header that the house's gateway asks for."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from deerflow.models.openai import OpenAIChatModel


class HouseModel(OpenAIChatModel):
    """``team`` comes from the model's entry in ``config.yaml``, as all keys do that DeerFlow does not know."""

    team: str

    @model_validator(mode="before")
    @classmethod
    def _with_header(cls, values: dict[str, Any]) -> dict[str, Any]:
        headers = {**(values.get("default_headers") or {}), "X-Team": values.get("team", "")}
        return {**values, "default_headers": headers}
