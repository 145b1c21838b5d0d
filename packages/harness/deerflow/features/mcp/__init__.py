"""Servers of the Model Context Protocol: their sessions, and the tools that agents get from them."""

from __future__ import annotations

import re
from typing import Literal

from typing_extensions import TypedDict

COMMAND = re.compile(r"/([^\s/:]+):(\S+)(?:\s+(.*))?", re.DOTALL)
"""A message that calls a prompt of a server: ``/server:prompt arguments``."""


Reason = Literal["ended", "no_answer", "not_found"]
"""Why a session failed, where the sentence is ours."""


class McpPromptArgument(TypedDict):
    name: str
    description: str
    required: bool


class McpPrompt(TypedDict):
    """``command``: what a message begins with that calls it, e.g. ``/server:prompt``."""

    command: str
    server: str
    name: str
    description: str
    arguments: list[McpPromptArgument]
