"""OpenAI's API, for chat interfaces and scripts that speak it: agents are its models, and a conversation is a thread."""

from deerflow_app.gateway.routes.openai.chat import router as chat_routes
from deerflow_app.gateway.routes.openai.models import router as model_routes
from deerflow_app.gateway.routes.openai.responses import router as response_routes

__all__ = ["chat_routes", "model_routes", "response_routes"]
