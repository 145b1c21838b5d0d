"""All that agents get of nouns, in the order in which tools are listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from langchain_core.tools import BaseTool

from deerflow.capability import AgentSpec, Offer, Package
from deerflow.config import AppConfig, Paths
from deerflow.features.acp.offer import AcpOffer
from deerflow.features.assistants.offer import AssistantsOffer
from deerflow.features.guardrails.offer import GuardrailsOffer
from deerflow.features.mcp.offer import McpOffer
from deerflow.features.mcp.servers import McpServers
from deerflow.features.memory.offer import MemoryOffer
from deerflow.features.packages import packages_of
from deerflow.features.skills.catalog import SkillCatalog
from deerflow.features.skills.offer import SkillsOffer
from deerflow.harness import Harness

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
OFFERS: tuple[Offer, ...] = (AcpOffer(), GuardrailsOffer(), AssistantsOffer())
"""The offers that need no data directory."""


def all_tools(config: AppConfig, *, small: bool = False, packages: Mapping[str, Package] = {}) -> Sequence[BaseTool]:
    """Return all tools that agents may have under a configuration, but for those that depend on the person. Blocks: they take a while to be imported.

    Args:
        small: for a model with a small window.
        packages: nouns of other packages.
    """
    from deerflow.tools.registry import get_available_tools

    spec = AgentSpec(config, is_small=small)
    offers = (MemoryOffer(), AcpOffer(), *_packaged(packages))
    brought = [tool for offer in offers for tool in offer.tools(spec)]
    return get_available_tools(app_config=config, supports_vision=True, small=small, brought=brought)


def harness_of(config: AppConfig, paths: Paths, checkpointer: BaseCheckpointSaver[str] | None) -> Harness:
    """Build the harness of an installation, with all nouns. Raises ConfigError for a package that cannot be."""
    packages = packages_of(config)
    offers = (
        MemoryOffer(),
        AcpOffer(),
        GuardrailsOffer(),
        McpOffer(McpServers(paths.base_dir / "mcp", paths.secrets_key_file)),
        SkillsOffer(SkillCatalog(paths)),
        AssistantsOffer(),
        *_packaged(packages),
    )
    return Harness.build(config, paths, offers, checkpointer=checkpointer, packages=packages)


def _packaged(packages: Mapping[str, Package]) -> list[Offer]:
    return [each.offer for each in packages.values() if each.offer is not None]
