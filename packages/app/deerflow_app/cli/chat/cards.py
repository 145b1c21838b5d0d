"""Cards: how one tool call looks, running or finished. Pure functions from a ToolRun to something rich can print."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from deerflow_app.cli.chat.turn import ToolRun
from deerflow_app.cli.terminal import clean, count, duration, one_line

BODY_LINES = 8
"""Lines of output or preview that a card shows; the whole stands in the thread."""

HIDDEN = frozenset({"write_todos", "ask_clarification", "present_files"})
"""Tools whose effect is shown instead: the plan, the answer, the delivered files."""

STOPPED = "Error: the command was stopped"
"""What the last line of a result begins with when the sandbox ended the command."""

_VERBS = {
    "bash": "Run",
    "ls": "List",
    "read_file": "Read",
    "write_file": "Write",
    "str_replace": "Edit",
    "glob": "Find",
    "grep": "Search",
    "present_files": "Deliver",
    "write_todos": "Plan",
    "ask_clarification": "Ask",
    "view_image": "Look at",
    "task": "Delegate",
    "cancel_task": "Stop",
}
_STEPS = {"completed": ("✓", "ok", "faint"), "in_progress": ("▸", "accent", "bold"), "waiting": ("?", "warn", "")}
"""Glyph, its style and the text's, by a step's status."""


def card(tool: ToolRun, *, width: int = 100) -> RenderableType:
    """The card of a call: a title line and, where it helps, a few lines of body."""
    body = [Text("  │ ", style="faint").append_text(line) for line in _body(tool)]
    for line in body:
        line.no_wrap, line.overflow = True, "ellipsis"
    return Group(_title(tool, width), *body)


def has_body(tool: ToolRun) -> bool:
    """Whether the card is more than its title line."""
    return bool(_body(tool))


def todo_panel(todos: Iterable[Mapping[str, Any]]) -> RenderableType:
    """The plan with its progress."""
    items = list(todos)
    done = sum(item.get("status") == "completed" for item in items)
    lines = [Text("  Plan ", style="bold").append(f"{done} of {len(items)} done", style="faint")]
    for item in items:
        glyph, style, text_style = _STEPS.get(item.get("status", ""), ("○", "faint", "faint"))
        lines.append(Text(f"  {glyph} ", style=style).append(one_line(item["content"], 120), style=text_style))
    return Group(*lines)


def newly_done(before: Iterable[Mapping[str, Any]], now: Iterable[Mapping[str, Any]]) -> list[str]:
    """The steps of the plan that were completed between two states of it."""
    done = {item["content"] for item in before if item["status"] == "completed"}
    return [item["content"] for item in now if item["status"] == "completed" and item["content"] not in done]


def short_path(path: str) -> str:
    """A virtual path without the root that all of them share."""
    return clean(str(path)).replace("\n", "⏎").removeprefix("/mnt/user-data/").removeprefix("/mnt/")


def summary(tool: ToolRun) -> str:
    """The call on one line, without colour: for progress on stderr."""
    verb = _VERBS.get(tool.name, clean(tool.name))
    return f"{verb} {_object(tool).plain}".strip()


def _exit_code(tool: ToolRun) -> str:
    """The exit code that a command's result ends with; empty for success."""
    ended = re.search(r"^Exit Code: (\d+)\s*\Z", tool.result or "", re.M) if tool.name == "bash" else None
    return ended[1] if ended else ""


def is_unwell(tool: ToolRun) -> bool:
    """Whether the call failed, or its command did, or the command was stopped, which its result says at the end."""
    return tool.failed or bool(_exit_code(tool)) or _was_stopped(tool)


def command_note(tool: ToolRun) -> str:
    """How a command ended and how long it took, as far as that is worth a word."""
    code = _exit_code(tool)
    ending = f"exit {code}" if code else "stopped" if _was_stopped(tool) else ""
    took = duration(tool.seconds) if tool.seconds >= 1 else ""
    return " · ".join(part for part in (ending, took) if part)


def _was_stopped(tool: ToolRun) -> bool:
    return tool.name == "bash" and (tool.result or "").rstrip().rpartition("\n")[2].startswith(STOPPED)


def _title(tool: ToolRun, width: int) -> Text:
    running, unwell = tool.result is None, is_unwell(tool)
    glyph, style = ("◌ ", "accent") if running else ("✗ ", "bad") if unwell else ("● ", "ok")
    title = Text(glyph, style=style, no_wrap=True, overflow="ellipsis")
    title.append(_VERBS.get(tool.name, one_line(tool.name, 40)), style="card.name").append(" ")
    note = _note(tool)
    named = _object(tool)
    named.truncate(max(width - title.cell_len - len(note) - 3, 12), overflow="ellipsis")
    title.append_text(named)
    return title.append(f"  {note}", style="faint") if note else title


def _object(tool: ToolRun) -> Text:
    """What the call is about."""
    args = tool.args
    match tool.name:
        case "bash":
            return Text(one_line(in_words(args.get("description") or args.get("command") or ""), 200))
        case "read_file" | "write_file" | "str_replace" | "ls" | "view_image":
            return Text(short_path(args.get("path") or args.get("image_path") or ""), style="card.path")
        case "task":
            doing = f" · {one_line(tool.output, 120)}" if tool.result is None and tool.output else ""
            return Text(one_line(args.get("description") or args.get("prompt") or "", 80)).append(doing, style="faint")
        case "glob" | "grep":
            pattern = Text(f"“{one_line(in_words(args.get('pattern') or ''), 80)}”")
            return pattern.append(" in ").append(short_path(args.get("path") or "."), style="card.path")
        case "present_files":
            names = ", ".join(short_path(path) for path in args.get("filepaths") or ())
            return Text(names, style="card.path")
        case _:
            return Text(one_line(in_words(args), 200))


def in_words(value: Any) -> str:
    """A tool's arguments for people: no quotes, brackets or names of values from a programming language."""
    if isinstance(value, Mapping):
        given = [(str(key).replace("_", " "), item) for key, item in value.items() if item is not None]
        return ", ".join(
            f"{key} ({in_words(item)})" if isinstance(item, Mapping) else f"{key}: {in_words(item)}"
            for key, item in given
        )
    if isinstance(value, list | tuple):
        return ", ".join(in_words(item) for item in value)
    if value is None or isinstance(value, bool):
        return "yes" if value else "no" if value is False else "none"
    return one_line(str(value), 60)


def _note(tool: ToolRun) -> str:
    """What is known about the call's end."""
    if tool.result is None:
        return duration(tool.seconds) if tool.seconds >= 1 else ""
    if tool.failed:
        return ""
    match tool.name:
        case "bash":
            return command_note(tool)
        case "read_file":
            return count(len(tool.result.splitlines()), "line")
        case "write_file":
            lines = count(len(str(tool.args.get("content") or "").splitlines()), "line")
            return f"{lines} appended" if tool.args.get("append") else lines
        case "ls":
            lines = 0 if tool.result == "(empty)" else len(tool.result.splitlines())
            return f"{lines:,} {'entry' if lines == 1 else 'entries'}"
        case "glob" | "grep":
            return one_line(tool.result, 40).split(" under ")[0].split(" in ")[0]
        case _:
            return ""


def _body(tool: ToolRun) -> list[Text]:
    if tool.failed:
        return [*_command(tool), *_shown(_lines((tool.result or "").removeprefix("Error: "), "bad"), BODY_LINES)]
    match tool.name:
        case "bash":
            output = tool.output if tool.result is None else tool.result.removesuffix(f"Exit Code: {_exit_code(tool)}")
            return [*_command(tool), *_tail(output)]
        case "write_file":
            return _shown(_lines(str(tool.args.get("content") or ""), "diff.add", "+ "), BODY_LINES)
        case "str_replace":
            return _shown(
                _diff(str(tool.args.get("old_str") or ""), str(tool.args.get("new_str") or "")), BODY_LINES * 2
            )
        case name if name in _VERBS or tool.result is None:
            return []
        case _:
            return _shown(_lines(tool.result or "", "faint"), 3)


def _command(tool: ToolRun) -> list[Text]:
    """The command under its description; when there is none the title already shows a command of one line."""
    command = clean(str(tool.args.get("command") or "")).strip("\n") if tool.name == "bash" else ""
    if not tool.args.get("description") and "\n" not in command:
        return []
    lines = [Text(f"{'$' if i == 0 else ' '} {line}") for i, line in enumerate(command.splitlines())]
    return _shown(lines, BODY_LINES)


def _lines(text: str, style: str, sign: str = "") -> list[Text]:
    return [Text(sign + line.expandtabs(4), style=style) for line in clean(text).splitlines()]


def _shown(lines: list[Text], limit: int) -> list[Text]:
    """The first lines and how many follow."""
    if len(lines) <= limit + 1:
        return lines
    return [*lines[:limit], Text(f"… {count(len(lines) - limit, 'more line')}", style="faint")]


def _tail(text: str) -> list[Text]:
    """The last lines and how many came before: a command tells its result at the end."""
    lines = _lines(text.rstrip(), "faint")
    if len(lines) <= BODY_LINES + 1:
        return lines
    earlier = Text(f"… {count(len(lines) - BODY_LINES, 'earlier line')}", style="faint")
    return [earlier, *lines[-BODY_LINES:]]


def _diff(old: str, new: str) -> list[Text]:
    changes = list(difflib.ndiff(clean(old).splitlines(), clean(new).splitlines()))
    styles = {"+ ": "diff.add", "- ": "diff.remove"}
    return [Text(line.expandtabs(4), style=styles.get(line[:2], "faint")) for line in changes if line[:2] != "? "]
