"""One question to a model, outside of any conversation: for titles, suggestions and the like."""

from __future__ import annotations

import asyncio
import re
from uuid import uuid4

from langchain_core.messages import HumanMessage
from sqlalchemy import Connection

from deerflow.config import AppConfig
from deerflow.errors import UnavailableError
from deerflow.events.graph_stream import UsageMeter
from deerflow.identity import Principal
from deerflow.models import ModelCache
from deerflow.models.context_window import estimate
from deerflow.storage.budgets import Amount, Budget, LimitReached, Scope, release, spent
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
            UnavailableError: the person has spent what is allowed per day.
            Exception: whatever can go wrong with a model; TimeoutError after a minute.
        """
        model = await asyncio.to_thread(self._models.get, config, model_name)
        limits, meter = config.spending, UsageMeter(config, model_name=model_name)
        keys: dict[Scope, str] = {"person": principal.user_id, "run": f"{purpose}:{uuid4()}"}
        used = lambda currency: spent(meter.usage, currency)  # noqa: E731
        is_limited = bool(limits.per_person_day.tokens or limits.per_person_day.money)
        if is_limited:
            budget = Budget(self._database, limits, keys, used, attended=False, resumed=False)
            try:
                await budget.reserve(purpose, Amount(estimate(HumanMessage(prompt))))
            except LimitReached as reached:
                raise UnavailableError(f"Not asked: {reached}. {reached.remedy}") from reached

        def count(connection: Connection) -> None:
            release(connection, keys, used)
            if meter.usage:
                add_usage(connection, principal.user_id, purpose, meter.usage)

        try:
            async with asyncio.timeout(TIMEOUT):
                answer = await model.ainvoke(
                    [HumanMessage(prompt)],
                    config={"run_name": purpose, "tags": [f"middleware:{purpose.removesuffix('_agent')}"]},
                )
            meter.count(answer, purpose)
        finally:
            if is_limited or meter.usage:
                await self._database.write(count)
        return without_thoughts(answer.text)


def without_thoughts(text: str) -> str:
    """``text`` without ``<think>`` parts, as some models write them into their answer."""
    return _THOUGHTS.sub("", text).strip()
