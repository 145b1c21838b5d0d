"""All that agents get of nouns, in the order in which tools are listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from langchain_core.tools import BaseTool

from deerflow.capability import AgentSpec, Offer, Package
from deerflow.config import AppConfig, Paths
from deerflow.features.memory.offer import MemoryOffer
from deerflow.features.packages import packages_of
from deerflow.harness import Harness

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

OFFERS: tuple[Offer, ...] = (MemoryOffer(),)


def all_tools(config: AppConfig, *, small: bool = False, packages: Mapping[str, Package] = {}) -> Sequence[BaseTool]:
    """Return all tools that agents may have under a configuration, but for those of servers. Blocks: they take a while to be imported.

    Args:
        small: for a model with a small window.
        packages: nouns of other packages.
    """
    from deerflow.tools.registry import get_available_tools

    spec = AgentSpec(config, is_small=small)
    brought = [tool for offer in _offers_of(packages) for tool in offer.tools(spec)]
    return get_available_tools(app_config=config, supports_vision=True, small=small, brought=brought)


def harness_of(config: AppConfig, paths: Paths, checkpointer: BaseCheckpointSaver[str]) -> Harness:
    """Build the harness of an installation, with all nouns. Raises ConfigError for a package that cannot be."""
    packages = packages_of(config)
    return Harness.build(config, paths, checkpointer=checkpointer, offers=_offers_of(packages), packages=packages)


def _offers_of(packages: Mapping[str, Package]) -> tuple[Offer, ...]:
    return (*OFFERS, *(each.offer for each in packages.values() if each.offer is not None))
