"""Servers of the Model Context Protocol: their sessions, and the tools that agents get from them."""

from __future__ import annotations

import re

from typing_extensions import TypedDict

COMMAND = re.compile(r"/([^\s/:]+):(\S+)(?:\s+(.*))?", re.DOTALL)
"""A message that calls a prompt of a server: ``/server:prompt arguments``."""

SERVER = "mcp_server"
"""Key in the metadata of a server's tools: its name."""

POLICY = "mcp_policy"
"""Another one: allow, ask or deny, where the server's entry says so."""


DIGEST = "mcp_digest"
"""Another one: the digest of the tool's definition, to which grants, policies and waiting cards are bound."""

TRUSTED = "mcp_trusted"
"""Another one: an administrator trusts the server, so that the annotations of its tools are believed."""


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
