"""Pages read by DeerFlow itself. Nobody else learns what is read, and it needs no key."""

from deerflow.community.web import fetch_tool

web_fetch_tool = fetch_tool()
