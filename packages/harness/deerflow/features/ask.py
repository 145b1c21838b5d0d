"""One question to a model, outside of any conversation: for titles, suggestions and the like."""

from __future__ import annotations

import asyncio
import re

from langchain_core.messages import HumanMessage

from deerflow.config import AppConfig
from deerflow.models import ModelCache

TIMEOUT = 60.0
_THOUGHTS = re.compile(r"<think>.*?(</think>|\Z)", re.DOTALL | re.IGNORECASE)


async def ask(models: ModelCache, config: AppConfig, prompt: str, *, model_name: str | None, purpose: str) -> str:
    """The model's answer to ``prompt``, thinking off, what it thought aloud left out.

    Args:
        model_name: None: the default model.
        purpose: names the call in traces, e.g. ``title_agent``.

    Raises:
        Exception: whatever can go wrong with a model; TimeoutError after a minute.
    """
    model = await asyncio.to_thread(models.get, config, model_name)
    async with asyncio.timeout(TIMEOUT):
        answer = await model.ainvoke(
            [HumanMessage(prompt)],
            config={"run_name": purpose, "tags": [f"middleware:{purpose.removesuffix('_agent')}"]},
        )
    return without_thoughts(answer.text)


def without_thoughts(text: str) -> str:
    """``text`` without ``<think>`` parts, as some models write them into their answer."""
    return _THOUGHTS.sub("", text).strip()
