"""Every place that makes a message is known, with the way in which its text passes the door."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import deerflow

CONSTANT = "a text of ours, or nothing"
PERSON = "what the person said"
MODEL = "what the model itself said in this run"
MARKED = "agents/transcript.py marks it: the system's first line, and what it quotes disarmed or fenced"
RESULT = "a result: disarmed in requests; fenced if provenance_middleware.py marks it as foreign"
QUESTION = "no agent: a model without tools is asked"

MAKERS: dict[tuple[str, str], str] = {
    ("agents/middlewares/base.py", "error_message"): CONSTANT,
    ("agents/middlewares/base.py", "reminder"): MARKED,
    ("agents/middlewares/base.py", "error_result"): RESULT,
    ("agents/middlewares/dangling_tool_call_middleware.py", "_synthetic"): RESULT,
    ("agents/middlewares/deferred_tool_filter_middleware.py", "tool_search"): RESULT,
    ("features/guardrails/middleware.py", "arrivals"): MARKED,
    ("features/guardrails/middleware.py", "_instead"): PERSON,
    ("agents/middlewares/llm_error_handling_middleware.py", "_lasting"): MODEL,
    ("agents/middlewares/llm_error_handling_middleware.py", "_with_halves"): MODEL,
    ("agents/middlewares/loop_detection_middleware.py", "final_answer"): CONSTANT,
    ("agents/middlewares/summarization_middleware.py", "_question"): QUESTION,
    ("agents/middlewares/summarization_middleware.py", "_on_demand"): CONSTANT,
    ("agents/middlewares/summarization_middleware.py", "context_table"): CONSTANT,
    ("agents/middlewares/todo_middleware.py", "write_todos_tool"): RESULT,
    ("agents/middlewares/token_usage_middleware.py", "_asked"): CONSTANT,
    ("agents/middlewares/token_usage_middleware.py", "_last"): CONSTANT,
    ("agents/middlewares/view_image_middleware.py", "_shown"): MARKED,
    ("agents/transcript.py", "with_reminder"): MARKED,
    ("agents/transcript.py", "summarized"): MARKED,
    ("agents/turn.py", "human_message"): PERSON,
    ("events/graph_stream.py", "partial"): MODEL,
    ("events/usage_meter.py", "add"): CONSTANT,
    ("events/usage_meter.py", "count_reserved"): CONSTANT,
    ("events/usage_meter.py", "count_streamed"): CONSTANT,
    ("features/ask.py", "__call__"): QUESTION,
    ("features/connections/checks.py", "_ask"): QUESTION,
    ("features/titles/job.py", "__call__"): QUESTION,
    ("features/mcp/tools.py", "_answer"): RESULT,
    ("runs/attempt.py", "_sorry"): CONSTANT,
    ("runs/claims.py", "contradiction"): MARKED,
    ("runs/finalize.py", "_answers"): RESULT,
    ("runs/finalize.py", "correction"): MARKED,
    ("features/titles/__init__.py", "_first_words_if_title"): PERSON,
    ("subagents/task.py", "delivery"): MARKED,
    ("subagents/task.py", "_input"): MODEL,
    ("subagents/task.py", "_played"): MODEL,
    ("subagents/task.py", "_answer"): RESULT,
    ("threads/service.py", "search"): PERSON,
    ("tools/clarification.py", "clarification_message"): RESULT,
    ("tools/files.py", "present_file_tool"): RESULT,
    ("tools/images.py", "view_image_tool"): RESULT,
}

ROOT = Path(deerflow.__file__).parent
KINDS = frozenset({"HumanMessage", "ToolMessage", "SystemMessage", "AIMessage"})


def made_in(node: ast.AST, function: str = "") -> Iterator[str]:
    """The functions below ``node`` that make a message."""
    for child in ast.iter_child_nodes(node):
        inside = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
        if isinstance(child, ast.Call) and isinstance(child.func, ast.Name) and child.func.id in KINDS:
            yield inside
        yield from made_in(child, inside)


def test_each_place_that_makes_a_message_has_its_door() -> None:
    found = Counter(
        (file.relative_to(ROOT).as_posix(), function)
        for file in ROOT.rglob("*.py")
        if file.parent.name != "models"  # which translate what providers send
        for function in made_in(ast.parse(file.read_text("utf-8")))
    )
    assert found.keys() == MAKERS.keys(), "Say in MAKERS how the text of a new message passes the door."
