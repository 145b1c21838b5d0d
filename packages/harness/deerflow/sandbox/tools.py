"""The sandbox tools under the path that configuration files name."""

from deerflow.tools.files import (
    FILE_TOOLS,
    ls_tool,
    read_file_tool,
    str_replace_tool,
    write_file_tool,
)
from deerflow.tools.search import SEARCH_TOOLS, glob_tool, grep_tool
from deerflow.tools.shell import BACKGROUND_TOOLS, bash_tool, kill_process_tool, read_process_tool

SANDBOX_TOOLS = (bash_tool, *BACKGROUND_TOOLS, *FILE_TOOLS, *SEARCH_TOOLS)

__all__ = [
    "BACKGROUND_TOOLS",
    "SANDBOX_TOOLS",
    "bash_tool",
    "glob_tool",
    "grep_tool",
    "kill_process_tool",
    "ls_tool",
    "read_file_tool",
    "read_process_tool",
    "str_replace_tool",
    "write_file_tool",
]
