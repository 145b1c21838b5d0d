"""Subagents: agents that the lead agent gives a part of its work."""

from deerflow.subagents.registry import SubagentConfig, subagents_of

__all__ = ["SubagentConfig", "subagents_of"]
