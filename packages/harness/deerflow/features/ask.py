"""Questions to models outside of conversations."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from sqlalchemy import Connection

from deerflow.config import AppConfig
from deerflow.errors import UnavailableError
from deerflow.events.usage_meter import UsageMeter
from deerflow.identity import Principal
from deerflow.models import ModelCache
from deerflow.models.context_window import estimate, estimate_usage, has_figures
from deerflow.models.endpoint import model_id
from deerflow.models.failures import classify
from deerflow.models.thoughts import without_thoughts
from deerflow.storage.budgets import Budget, LimitReached, Spent, add_usage, release, spent
from deerflow.storage.database import Database

logger = logging.getLogger(__name__)

TIMEOUT = 60.0


class Asker:
    """Asks models outside of conversations. What they use is counted for the person, under the purpose instead of an agent."""

    def __init__(self, database: Database, models: ModelCache) -> None:
        self._database = database
        self._models = models

    async def __call__(
        self, config: AppConfig, principal: Principal, prompt: str, *, model_name: str | None, purpose: str
    ) -> str:
        """Return the model's answer to ``prompt``, what it thought aloud left out. See :meth:`answer`."""
        asked = [HumanMessage(prompt)]
        answer = await self.answer(config, principal, asked, model_name=model_name, purpose=purpose)
        return without_thoughts(answer.text)

    async def answer(
        self,
        config: AppConfig,
        principal: Principal,
        messages: Sequence[BaseMessage],
        *,
        model_name: str | None,
        purpose: str,
    ) -> AIMessage:
        """Return the model's answer to ``messages``, thinking off.

        Args:
            model_name: None: the default model.
            purpose: names the call in traces and figures, e.g. ``title_agent``.

        Raises:
            UnavailableError: the person has spent what is allowed per day.
            Exception: whatever can go wrong with a model; TimeoutError after a minute.
        """
        model = await asyncio.to_thread(self._models.get, config, model_name)
        length = sum(estimate(message) for message in messages)
        limits, meter = config.spending, UsageMeter(config, model_name=model_name)
        keys = {"person": principal.user_id, "run": f"{purpose}:{uuid4()}"}
        used = lambda currency: spent(meter.usage, currency)  # noqa: E731
        is_limited = bool(limits.per_person_day.tokens or limits.per_person_day.money)
        if is_limited:
            budget = Budget(self._database, limits, keys, used, attended=False, resumed=False)
            try:
                await budget.reserve(purpose, Spent(length))
            except LimitReached as reached:
                raise UnavailableError(f"Not asked: {reached}. {reached.remedy}") from reached

        def count(connection: Connection) -> None:
            release(connection, keys, used)
            if meter.usage:
                add_usage(connection, principal.user_id, purpose, meter.usage)

        calls = self._models.calls
        try:
            async with asyncio.timeout(TIMEOUT):
                answer = await model.ainvoke(
                    list(messages),
                    config={"run_name": purpose, "tags": [f"middleware:{purpose.removesuffix('_agent')}"]},
                )
            if not has_figures(answer):
                estimate_usage(answer, length)
            meter.count(answer, purpose)
            calls.answered(model_id(model), dict(answer.usage_metadata or {}))
        except Exception as error:
            calls.errors[model_id(model), classify(error).kind.value] += 1
            raise
        finally:
            if is_limited or meter.usage:
                await self._database.write(count)
        return answer


_TAG = re.compile(r"</?(?:title|answer|output)>", re.IGNORECASE)
_PREAMBLE = re.compile(
    r"(?:(?:sure|certainly|of course|okay|here(?:'s| is| are))\b[^:\n]{0,80}|(?:the )?title|标题)\s*[:：]",
    re.IGNORECASE,
)


def unwrapped(answer: str, key: str) -> Any:
    """Return what a model was asked for, without what it stood in: thoughts, a code fence, a tag, a preamble, an object of JSON.

    Args:
        key: of the object that models give although no one asked for one.
    """
    text = without_thoughts(answer)
    if "```" in text:
        inside = text.split("```")[1]
        text = inside.partition("\n")[2] if "\n" in inside else inside
    text = _TAG.sub("", text).strip()
    found = _json(text)
    if isinstance(found, dict):
        return found.get(key, next(iter(found.values()), ""))
    if found is not None:
        return found
    while (preamble := _PREAMBLE.match(text.lstrip("*# "))) and (
        rest := text.lstrip("*# ")[preamble.end() :].strip("* \n")
    ):
        text = rest
    return text


def _json(text: str) -> Any:
    """Return the first list or object of JSON in a text; None if there is none."""
    for start in [at for mark in "{[" if (at := text.find(mark)) >= 0]:
        try:
            return json.JSONDecoder().raw_decode(text[start:])[0]
        except (ValueError, RecursionError):
            continue
    return None
