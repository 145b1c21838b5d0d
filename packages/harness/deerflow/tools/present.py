"""``present_files``: hand finished files to the person."""

from __future__ import annotations

from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langgraph.types import Command
from pydantic import Field

from deerflow.sandbox.interface import OUTPUTS, Sandbox, SandboxError
from deerflow.tools.decorator import Runtime, async_tool


@async_tool("present_files")
async def present_file_tool(
    filepaths: Annotated[list[str], Field(description=f"Absolute paths of files in {OUTPUTS}")],
    runtime: Runtime,
) -> Command[Any]:
    """Show finished files to the user. Only files in /mnt/user-data/outputs can be presented; call it once they are complete."""
    try:
        artifacts = await _presentable(await runtime.context.sandbox(), filepaths)
    except SandboxError as error:
        return _answer(runtime, f"Error: {error}", status="error")
    return _answer(runtime, "Successfully presented files", artifacts=artifacts)


async def _presentable(sandbox: Sandbox, filepaths: list[str]) -> list[str]:
    """The paths in their canonical form. Raises SandboxError naming every path that cannot be presented."""
    paths = ["/" + path.lstrip("/") for path in filepaths]
    outside = [path for path in paths if not path.startswith(OUTPUTS + "/") or ".." in path.split("/")]
    if outside or not paths:
        raise SandboxError(
            f"Only files in {OUTPUTS} can be presented: {', '.join(outside) or 'none was named'}. Copy them there first."
        )
    entries = [(path, await sandbox.stat(path)) for path in paths]
    missing = [path for path, entry in entries if entry is None or entry.kind != "file"]
    if missing:
        raise SandboxError(f"No such file: {', '.join(missing)}. Write the file before presenting it.")
    return paths


def _answer(
    runtime: Runtime, text: str, *, status: str = "success", artifacts: list[str] | None = None
) -> Command[Any]:
    message = ToolMessage(text, tool_call_id=runtime.tool_call_id or "", name="present_files", status=status)  # type: ignore[arg-type]
    return Command(update={"messages": [message], **({"artifacts": artifacts} if artifacts else {})})
