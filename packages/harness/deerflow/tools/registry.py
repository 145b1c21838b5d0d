"""Which tools an agent gets."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Collection, Iterable, Sequence
from functools import cache

from langchain_core.tools import BaseTool

from deerflow.config import AppConfig, switches
from deerflow.reflection import resolve_variable
from deerflow.sandbox.policy import is_host_bash_allowed
from deerflow.tools.clarification import ask_clarification_tool
from deerflow.tools.files import FILE_TOOLS, present_file_tool
from deerflow.tools.images import view_image_tool
from deerflow.tools.search import SEARCH_TOOLS
from deerflow.tools.shell import BACKGROUND_TOOLS, bash_tool

logger = logging.getLogger(__name__)

BASH_USE = "deerflow.sandbox.tools:bash_tool"
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
"""Where programs are that sandboxes see under the same names."""
NEEDS_PROGRAM = "needs_program"
"""In a tool's metadata: names of programs of which the machine must have one. Without it there is no such tool."""
WEB, OWN_SEARCH = "deerflow.community.", "deerflow.community.searx."


SMALL_WINDOW = 16_384
"""Tokens: a model with at most so many gets fewer tools, and less to read of each skill."""
NOT_IN_SMALL = frozenset({"ask_clarification", "web_capture"})
BY_COMMANDS = frozenset({"ls", "glob", "grep"})
"""Tools whose work a shell does as well."""


class NativeWebToolDisabledError(ValueError):
    """The configuration names a tool for the web that it forbids."""


def get_available_tools(
    groups: Collection[str] | None = None,
    *,
    app_config: AppConfig,
    supports_vision: bool = False,
    sandbox: bool = True,
    small: bool = False,
    brought: Sequence[BaseTool] = (),
    switched_off: Collection[str] = (),
) -> list[BaseTool]:
    """Configured tools in file order, then built-in ones; of two with one name the first is kept, with a warning.

    Args:
        groups: keep only configured tools of these groups; None keeps all. Built-in tools are always there.
        app_config: the configuration snapshot that names the tools.
        supports_vision: adds ``view_image``.
        sandbox: False leaves out the tools that work in one.
        small: leaves out tools that a model with a small window can do without, unless ``tools`` in the file lists them.
        brought: tools of nouns, see :meth:`deerflow.capability.Offer.tools`.
        switched_off: what the person has switched off in the chat.

    Raises:
        ImportError: a tool's ``use`` cannot be resolved; the message says how to install it.
        ValueError: ``use`` names something that is not a tool.
        NativeWebToolDisabledError: a tool is one that ``security.native_web_tools`` forbids.
    """
    configured = list(_configured_tools(groups, app_config, sandbox, web=switches.WEB not in switched_off))
    if any(tool is bash_tool for tool in configured):
        position = configured.index(bash_tool) + 1
        configured[position:position] = BACKGROUND_TOOLS
    built_in = [present_file_tool, ask_clarification_tool, *([view_image_tool] if supports_vision else [])]
    commands_and_files = (bash_tool, *BACKGROUND_TOOLS, *FILE_TOOLS, *SEARCH_TOOLS, present_file_tool, view_image_tool)
    in_sandbox = () if sandbox else commands_and_files
    shell = bash_tool in configured and sandbox
    spared = NOT_IN_SMALL | (BY_COMMANDS if shell else frozenset()) if small else frozenset[str]()
    spared -= {entry.name for entry in app_config.tools} if app_config.lists_tools else frozenset()
    annotated = {entry.name: entry.annotations for entry in app_config.tools if entry.annotations}
    return [
        tool.model_copy(update={"metadata": {**(tool.metadata or {}), **annotated[tool.name]}})
        if tool.name in annotated
        else tool
        for tool in _first_of_each_name(
            [
                *(tool for tool in (*configured, *built_in) if tool not in in_sandbox and tool.name not in spared),
                *brought,
            ]
        )
    ]


def _configured_tools(
    groups: Collection[str] | None, config: AppConfig, sandbox: bool, *, web: bool = True
) -> Iterable[BaseTool]:
    shell_allowed = is_host_bash_allowed(config)
    for entry in config.tools:
        if groups is not None and entry.group not in groups:
            continue
        if not web and (entry.group == switches.WEB or entry.use.startswith(WEB)):
            continue
        if not shell_allowed and (entry.group == "bash" or entry.use == BASH_USE):
            logger.warning(
                "Tool %r is left out: the local sandbox has no isolation and sandbox.allow_host_bash is false.",
                entry.name,
            )
            continue
        if entry.use.startswith(WEB) and not entry.use.startswith(OWN_SEARCH):
            denied = config.security.native_web_tools == "deny"
            if not config.lists_tools and (denied or config.sandbox.network.mode == "allowlist"):
                continue
            if denied:
                raise NativeWebToolDisabledError(
                    f"Tool {entry.name!r} uses {entry.use}, which security.native_web_tools: deny forbids. Take it out of "
                    "config.yaml, or use deerflow.community.searx.tools with a SearXNG of your own."
                )
        tool = resolve_variable(entry.use, BaseTool)
        needed = (tool.metadata or {}).get(NEEDS_PROGRAM)
        if needed and (program_of(needed) is None or not sandbox):
            continue
        if tool.name != entry.name:
            logger.warning(
                "Tool %r in config.yaml calls itself %r; the model sees %r.", entry.name, tool.name, tool.name
            )
        yield tool


@cache
def program_of(names: Sequence[str]) -> str | None:
    """The first of these programs that this machine has. Looked for once."""
    return next((found for name in names if (found := shutil.which(name, path=SYSTEM_PATH))), None)


def _first_of_each_name(tools: Sequence[BaseTool]) -> list[BaseTool]:
    kept: dict[str, BaseTool] = {}
    for tool in tools:
        if kept.setdefault(tool.name, tool) is not tool:
            logger.warning("Two tools are called %r; the first is used.", tool.name)
    return list(kept.values())
