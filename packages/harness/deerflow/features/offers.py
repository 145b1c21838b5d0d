"""All that agents get of the nouns in this folder, in the order in which tools are listed."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.tools import BaseTool

from deerflow.capability import AgentSpec, Offer
from deerflow.config import AppConfig
from deerflow.features.memory.offer import MemoryOffer

OFFERS: tuple[Offer, ...] = (MemoryOffer(),)


def all_tools(config: AppConfig, *, small: bool = False) -> Sequence[BaseTool]:
    """Return all tools that agents may have under a configuration, but for those of servers. Blocks: they take a while to be imported.

    Args:
        small: for a model with a small window.
    """
    from deerflow.tools.registry import get_available_tools

    brought = [tool for offer in OFFERS for tool in offer.tools(AgentSpec(config, is_small=small))]
    return get_available_tools(app_config=config, supports_vision=True, small=small, brought=brought)
