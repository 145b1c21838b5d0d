"""The graph factory for LangGraph's own tools (``langgraph.json``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from deerflow.agents.lead_agent import build_lead_agent
from deerflow.config import AppConfig, ConfigSource, Paths
from deerflow.context.run_options import run_options
from deerflow.features.offers import OFFERS
from deerflow.harness import Harness

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from deerflow.agents.factory import Agent


def make_lead_agent(config: RunnableConfig, app_config: AppConfig | None = None) -> Agent:
    """Return the lead agent for the options in ``configurable``, overlaid by ``context``."""
    context = config.get("context")  # type: ignore[typeddict-item]
    given = {**(config.get("configurable") or {}), **(context if isinstance(context, Mapping) else {})}
    snapshot = app_config or ConfigSource().current()
    return build_lead_agent(Harness.build(snapshot, Paths(), OFFERS), run_options(given))
