"""All that agents get of nouns, in the order in which tools are listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langchain_core.tools import BaseTool

from deerflow.capability import AgentSpec, Offer, Package
from deerflow.config import AppConfig
from deerflow.features.memory.offer import MemoryOffer

OFFERS: tuple[Offer, ...] = (MemoryOffer(),)


def all_tools(config: AppConfig, *, small: bool = False, packages: Mapping[str, Package] = {}) -> Sequence[BaseTool]:
    """Return all tools that agents may have under a configuration, but for those of servers. Blocks: they take a while to be imported.

    Args:
        small: for a model with a small window.
        packages: nouns of other packages.
    """
    from deerflow.tools.registry import get_available_tools

    spec = AgentSpec(config, is_small=small)
    brought = [tool for offer in offers_of(packages) for tool in offer.tools(spec)]
    return get_available_tools(app_config=config, supports_vision=True, small=small, brought=brought)


def offers_of(packages: Mapping[str, Package]) -> tuple[Offer, ...]:
    return (*OFFERS, *(each.offer for each in packages.values() if each.offer is not None))
