"""Servers of the Model Context Protocol: their sessions, and the tools that agents get from them."""
