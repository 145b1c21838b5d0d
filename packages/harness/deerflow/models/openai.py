"""OpenAI and every server that speaks its chat completions API."""

from __future__ import annotations

from langchain_openai import ChatOpenAI

from deerflow.models.openai_wire import OpenAIWire


class OpenAIChatModel(OpenAIWire, ChatOpenAI):
    """``ChatOpenAI`` with the same fields and answers, at a fraction of its cost per call."""
