"""Servers of the Model Context Protocol: their sessions, and the tools that agents get from them."""

SERVER = "mcp_server"
"""Key in the metadata of a server's tools: its name."""

POLICY = "mcp_policy"
"""Another one: allow, ask or deny, where the server's entry says so."""
