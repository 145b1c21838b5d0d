"""Chat models: one factory for every provider. Provider packages are imported when a model of theirs is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deerflow.models.factory import ModelCache, ModelInfo, create_chat_model, model_info

__all__ = ["ModelCache", "ModelInfo", "create_chat_model", "model_info"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from deerflow.models import factory

        return getattr(factory, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
