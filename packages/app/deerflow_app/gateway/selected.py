"""Answers of which a client may want a few fields only, by ``select``."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict


def _optional(schema: dict[str, Any]) -> None:
    schema.pop("required", None)
    schema["description"] = f"{schema.get('description', '')}\nOnly the fields that `select` names.".strip()


SELECTABLE = ConfigDict(json_schema_extra=_optional)
"""For the model of such an answer: any field may be missing."""
