"""Marks in the metadata of a tool that comes from a server of the Model Context Protocol."""

from __future__ import annotations

SERVER = "mcp_server"
"""Key in the metadata of a server's tools: its name."""
POLICY = "mcp_policy"
"""Key of its policy: allow, ask or deny, where the server's entry says so. A changed definition suspends ``allow``."""
DIGEST = "mcp_digest"
"""Key of the hex digest of the tool's definition (:mod:`deerflow.features.mcp.definitions`), which grants and waiting cards hold."""
TRUSTED = "mcp_trusted"
"""Key of whether the annotations are believed. Otherwise the metadata holds ``readOnlyHint`` alone."""
DESTINATION = "mcp_destination"
"""Key of the host of the server's address, or the name of a server that is a program."""
