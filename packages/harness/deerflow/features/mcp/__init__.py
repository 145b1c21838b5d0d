"""MCP servers, as people see and change them."""
