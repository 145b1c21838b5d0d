"""The context of a run: what middlewares and tools know of it."""

from deerflow.context.run_context import RunContext

__all__ = ["RunContext"]
