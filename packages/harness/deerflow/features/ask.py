"""One question to a model, outside of any conversation: for titles, suggestions and the like."""

from __future__ import annotations

import asyncio
import re

from langchain_core.messages import HumanMessage

from deerflow.config import AppConfig
from deerflow.events.usage_meter import UsageMeter
from deerflow.identity import Principal
from deerflow.models import ModelCache
from deerflow.storage.database import Database
from deerflow.storage.usage import add_usage

TIMEOUT = 60.0
_THOUGHTS = re.compile(r"<think>.*?(</think>|\Z)", re.DOTALL | re.IGNORECASE)


class Asker:
    """Asks models outside of conversations. What they use is counted for the person, under the purpose instead of an agent."""

    def __init__(self, database: Database, models: ModelCache) -> None:
        self._database = database
        self._models = models

    async def __call__(
        self, config: AppConfig, principal: Principal, prompt: str, *, model_name: str | None, purpose: str
    ) -> str:
        """The model's answer to ``prompt``, thinking off, what it thought aloud left out.

        Args:
            model_name: None: the default model.
            purpose: names the call in traces and figures, e.g. ``title_agent``.

        Raises:
            Exception: whatever can go wrong with a model; TimeoutError after a minute.
        """
        model = await asyncio.to_thread(self._models.get, config, model_name)
        async with asyncio.timeout(TIMEOUT):
            answer = await model.ainvoke(
                [HumanMessage(prompt)],
                config={"run_name": purpose, "tags": [f"middleware:{purpose.removesuffix('_agent')}"]},
            )
        meter = UsageMeter(config, model_name=model_name)
        meter.count(answer, purpose)
        if meter.usage:
            await self._database.write(
                lambda connection: add_usage(connection, principal.user_id, purpose, meter.usage)
            )
        return without_thoughts(answer.text)


def without_thoughts(text: str) -> str:
    """``text`` without ``<think>`` parts, as some models write them into their answer."""
    return _THOUGHTS.sub("", text).strip()
