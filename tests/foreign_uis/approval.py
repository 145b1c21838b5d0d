"""A tool of a person's own that asks before it acts, in the shape that chat interfaces have buttons for."""

import json

from langchain_core.tools import tool
from langgraph.types import interrupt

ALLOWED = {"allow_ignore": True, "allow_respond": True, "allow_edit": True, "allow_accept": True}


@tool
def send_mail(to: str) -> str:
    """Send a mail, if the person agrees."""
    asked = {"action_request": {"action": "send_mail", "args": {"to": to}}, "config": ALLOWED, "description": "A mail"}
    return f"Answered: {json.dumps(interrupt([asked]))}"
