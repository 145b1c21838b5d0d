"""Questions that a model answers alone, without thread, tools or sandbox: side requests of chat interfaces, and the model ``<agent>:text``."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from time import time
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from deerflow.config import AppConfig
from deerflow.errors import InvalidRequestError, RequestError, UnavailableError
from deerflow.features.ask import TIMEOUT
from deerflow.features.connections.checks import explained
from deerflow.identity import Principal
from deerflow.models import model_info
from deerflow.models.thoughts import without_thoughts
from deerflow.runs.json_answer import check_schema, problem_of
from deerflow_app.gateway.routes import Runtime
from deerflow_app.gateway.routes.openai.answer import Answer
from deerflow_app.gateway.routes.openai.content import Said, json_text, json_wanted, parts_of, text_of
from deerflow_app.gateway.routes.openai.models import ALONE, model_of
from deerflow_app.gateway.routes.openai.parameters import ParameterError

PURPOSE = "text_agent"
ROUNDS = 3
"""Attempts to get JSON of a schema."""

_SPACES = re.compile(r"\s+")
HEADS = (
    # Open WebUI
    "### task: generate a concise, 3-5 word title",
    "### task: generate 1-3 broad tags",
    "### task: suggest 3-5 relevant follow-up questions",
    "### task: analyze the chat history to determine the necessity of generating search queries",
    "### task: you are an autocompletion system.",
    "### task: generate a detailed prompt for am image generation task",
    "your task is to reflect the speaker's likely facial expression through a fitting emoji",
    "create a concise, 3-5 word title with an emoji as a title for the chat history",
    # LibreChat
    "provide a concise, 5-word-or-less title for the conversation",
    "please generate a concise, 5-word-or-less title for the conversation",
    "analyze this conversation and provide: 1. the detected language of the conversation",
    # NextChat
    "please generate a four to five word title summarizing our conversation",
    "summarize the discussion briefly in 200 words or less to use as a prompt for future context",
    "使用四到五个字直接返回这句话的简要主题",
    "简要总结一下对话内容，用作后续的上下文提示 prompt",
    # LobeChat, Cherry Studio
    "you are a professional conversation summarizer. generate a concise title",
    "你是一名擅长会话的助理，你需要将用户的会话总结为",
    # Chatbox
    "based on the chat history, give this conversation a name",
)
"""Beginnings of the prompts with which chat interfaces ask for titles, tags and the like; in lower case, with single spaces."""


def is_for_model_alone(model: str, said: Sequence[Said]) -> bool:
    """Return whether a request is for a model alone: by its name, or as a side request of a chat interface."""
    people = [text_of(content) for role, content in said if role == "user"]
    instructions = [text_of(content) for role, content in said if role in ("system", "developer")]
    texts = [*people[-1:], *instructions]
    return model.endswith(ALONE) or any(
        _SPACES.sub(" ", text[:300]).strip().lower().startswith(HEADS) for text in texts
    )


async def answered_alone(
    runtime: Runtime, principal: Principal, model: str, said: Sequence[Said], schema: Mapping[str, Any] | None
) -> Answer:
    """Return what the agent's model says. It is counted for the person, whose limits hold.

    Raises:
        NotFoundError: there is no such agent.
        InvalidRequestError: the answer is not JSON of the schema, also when asked again.
        UnavailableError: the model cannot be asked, or the person has spent what is allowed.
    """
    if schema is not None:
        await asyncio.to_thread(check_schema, schema)
        said = [*said, ("user", json_wanted(schema))]
    config, messages = await runtime.config_source.acurrent(), [_message(*each) for each in said]
    model_name, usage, problem = await model_of(runtime, principal, model), dict[str, int](), ""
    for _ in range(ROUNDS):
        answer = await _asked(runtime, principal, config, messages, model_name)
        for key, tokens in (answer.usage_metadata or {}).items():
            usage[key] = usage.get(key, 0) + (tokens if isinstance(tokens, int) else 0)
        text = without_thoughts(answer.text)
        problem = await asyncio.to_thread(problem_of, text, schema) if schema is not None else ""
        if not problem:
            text = text if schema is None else json_text(text)
            return Answer(id=str(uuid4()), created=int(time()), model=model, text=text, usage=usage)
        messages += [AIMessage(text), HumanMessage(f"{problem}\n\nAnswer again, with the JSON alone.")]
    raise InvalidRequestError(
        f"The model's answer is not JSON of the schema, asked {ROUNDS} times. {problem}", code="invalid_json"
    )


async def _asked(
    runtime: Runtime, principal: Principal, config: AppConfig, messages: Sequence[BaseMessage], model_name: str | None
) -> AIMessage:
    try:
        return await runtime.ask.answer(config, principal, messages, model_name=model_name, purpose=PURPOSE)
    except RequestError:
        raise
    except Exception as error:
        known = model_info(config)
        info = next((each for each in known if model_name in (None, each.name)), None)
        why = explained(error, info, config, TIMEOUT) if info is not None else str(error)
        raise UnavailableError(why, code="model_failed") from error


def _message(role: str, content: Any) -> BaseMessage:
    parts, files = parts_of(content)
    if files:
        raise ParameterError("messages", f"a model alone takes no files. Leave {ALONE!r} out of the model's name.")
    if role == "assistant":
        return AIMessage(parts)
    return SystemMessage(parts) if role in ("system", "developer") else HumanMessage(parts)
