"""The floor: what a plain user of LangChain gets with as little as possible. No prompt, no middleware, no sandbox."""

# No `from __future__ import annotations`: LangChain would evaluate the strings at every tool call, which costs the floor.

import asyncio
from pathlib import Path
from typing import Any

from langchain_core.tools import BaseTool, tool


@tool
async def bash(description: str, command: str, timeout: int = 600) -> str:
    """Run a bash command and return its output."""
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await asyncio.wait_for(process.communicate(), timeout)
    return output.decode(errors="replace")


@tool
def ls(description: str, path: str) -> str:
    """List a directory."""
    return "\n".join(sorted(entry.name for entry in Path(path).iterdir()))


@tool
def read_file(description: str, path: str, start_line: int | None = None, end_line: int | None = None) -> str:
    """Read a text file, or some of its lines."""
    lines = Path(path).read_text().splitlines()
    return "\n".join(lines[(start_line or 1) - 1 : end_line])


@tool
def write_file(description: str, path: str, content: str, append: bool = False) -> str:
    """Write a text file."""
    with Path(path).open("a" if append else "w") as file:
        file.write(content)
    return "OK"


@tool
def str_replace(description: str, path: str, old_str: str, new_str: str, replace_all: bool = False) -> str:
    """Replace a string in a file."""
    file = Path(path)
    file.write_text(file.read_text().replace(old_str, new_str, -1 if replace_all else 1))
    return "OK"


@tool
def glob(description: str, pattern: str, path: str, include_dirs: bool = False, max_results: int = 200) -> str:
    """Find files by a pattern."""
    return "\n".join(str(found) for found in sorted(Path(path).glob(pattern))[:max_results])


@tool
def grep(description: str, pattern: str, path: str, literal: bool = False, case_sensitive: bool = False) -> str:
    """Search files for a string."""
    return "\n".join(line for line in Path(path).read_text().splitlines() if pattern in line)


@tool
def present_files(filepaths: list[str]) -> str:
    """Show files to the user."""
    return "Presented " + ", ".join(filepaths)


@tool
def view_image(image_path: str) -> str:
    """Look at an image."""
    return f"{Path(image_path).stat().st_size} bytes"


@tool
def ask_clarification(question: str, options: list[str] | None = None) -> str:
    """Ask the user a question."""
    return question


def tools() -> list[BaseTool]:
    """The same names and about the same arguments as DeerFlow's default tools."""
    return [bash, ls, read_file, write_file, str_replace, glob, grep, present_files, view_image, ask_clarification]


def model(base_url: str) -> Any:
    """The chat model as its package ships it."""
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model="scripted-model", base_url=base_url, api_key="bench", max_retries=0, stream_usage=True)  # type: ignore[arg-type]
