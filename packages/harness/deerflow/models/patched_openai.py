"""Any server that speaks OpenAI's protocol: the name that configurations of Gemini behind a gateway use."""

from __future__ import annotations

from typing import ClassVar

from langchain_openai import ChatOpenAI

from deerflow.models.openai import OpenAIWire


class PatchedChatOpenAI(OpenAIWire, ChatOpenAI):
    """``ChatOpenAI`` on DeerFlow's wire, which also reads the raw calls of older histories."""

    returns_unmarked: ClassVar[bool] = True
