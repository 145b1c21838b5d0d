"""The context of a graph that is invoked without our runtime."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from deerflow.context.run_context import RunContext
from deerflow.context.run_options import RunOptions

OPTIONS = frozenset(each.name for each in fields(RunOptions))


class GivenContext(RunContext):
    """``context_schema`` of every agent graph: LangGraph makes a RunContext with it of a mapping such as
    ``{"thread_id": "t", "model_name": "m"}``, in which options stand beside the thread."""

    def __new__(cls, **given: Any) -> RunContext:
        options = {name: given.pop(name) for name in OPTIONS & given.keys()}
        if options:
            given["options"] = RunOptions(**options)
        return RunContext(**given)
