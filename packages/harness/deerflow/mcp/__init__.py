"""Servers of the Model Context Protocol: their sessions, and the tools that agents get from them."""

from __future__ import annotations

import re
from typing import Literal

from typing_extensions import TypedDict

COMMAND = re.compile(r"/([^\s/:]+):(\S+)(?:\s+(.*))?", re.DOTALL)
"""A message that calls a prompt of a server: ``/server:prompt arguments``."""

SERVER = "mcp_server"
"""Key in the metadata of a server's tools: its name."""

POLICY = "mcp_policy"
"""Another one: allow, ask or deny, where the server's entry says so. A changed definition suspends ``allow``."""

DIGEST = "mcp_digest"
"""Another one: the hex digest of the tool's definition (:mod:`deerflow.mcp.definitions`), which grants and waiting cards hold."""

TRUSTED = "mcp_trusted"
"""Another one: whether the annotations are believed. Otherwise the metadata holds ``readOnlyHint`` alone."""

DESTINATION = "mcp_destination"
"""Another one: the host of the server's address, or the name of a server that is a program."""

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
