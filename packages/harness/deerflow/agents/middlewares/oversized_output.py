"""Tool results that are too long for a conversation: the whole goes to a file, head and tail stay."""

from __future__ import annotations

import logging
import re

from langchain_core.messages import ToolMessage

from deerflow.agents.middlewares.tool_results import content_text
from deerflow.context import RunContext
from deerflow.sandbox.interface import WORKSPACE, SandboxError

logger = logging.getLogger(__name__)

RESULTS_DIRECTORY = f"{WORKSPACE}/.tool-results"


async def shortened(message: ToolMessage, context: RunContext | None, *, limit: int, kept: int) -> ToolMessage:
    """``message`` as it is up to ``limit`` characters of text, else its first and last ``kept`` / 2 and where the rest is.

    Blocks that are no text, such as pictures, stay.
    """
    text = content_text(message.content)
    if len(text) <= limit:
        return message
    path = await _spill(message, text, context)
    where = f"The whole result is in {path}: use grep or read_file with line ranges." if path else "The rest is lost."
    head, tail = text[: kept // 2], text[-(kept // 2) :]
    synopsis = (
        f"{head}\n\n[... {len(text) - len(head) - len(tail)} of {len(text)} characters left out. {where}]\n\n{tail}"
    )
    if isinstance(message.content, str):
        return message.model_copy(update={"content": synopsis})
    others = [block for block in message.content if isinstance(block, dict) and block.get("type") != "text"]
    return message.model_copy(update={"content": [{"type": "text", "text": synopsis}, *others]})


async def _spill(message: ToolMessage, text: str, context: RunContext | None) -> str | None:
    if context is None or context.sandbox_provider is None:
        return None
    name = re.sub(r"[^A-Za-z0-9_-]", "_", message.tool_call_id)[:100]
    path = f"{RESULTS_DIRECTORY}/{name}.txt"
    try:
        await (await context.sandbox()).write(path, text.encode())
    except SandboxError as error:
        logger.warning("Could not write the long result of %s to %s: %s", message.name, path, error)
        return None
    return path
