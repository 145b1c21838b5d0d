"""``present_files``: hand finished files to the person."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from shlex import quote
from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langgraph.types import Command
from pydantic import Field

from deerflow.sandbox.interface import OUTPUTS, WORKSPACE, Sandbox, SandboxError
from deerflow.tools.decorator import Runtime, async_tool
from deerflow.tools.files import receipt


@async_tool("present_files")
async def present_file_tool(
    filepaths: Annotated[list[str], Field(description=f"Paths in {OUTPUTS}; a directory is presented as a ZIP file")],
    runtime: Runtime,
) -> Command[Any]:
    """Show finished files to the user. Only files in /mnt/user-data/outputs can be presented; call it once they are complete."""
    try:
        sandbox = await runtime.context.sandbox()
        found = {path: await _presentable(sandbox, path) for path in filepaths}
        artifacts = list(dict.fromkeys(file for file in found.values() if file))
        written = [await receipt(sandbox, file) for file in artifacts]
    except SandboxError as error:
        return _answer(runtime, f"Error: {error}", status="error")
    outside = [path for path, file in found.items() if file is None]
    missing = [path for path, file in found.items() if file == ""]
    problems = [f"No such file: {', '.join(missing)}. Write the file before presenting it."] if missing else []
    if outside or not filepaths:
        named = ", ".join(outside) or "none was named"
        problems.append(f"Only files in {OUTPUTS} can be presented: {named}. Copy them there first.")
    if not artifacts:
        return _answer(runtime, f"Error: {' '.join(problems)}", status="error")
    packed = [
        f"{path} as {file}"
        for path, file in found.items()
        if file and file.endswith(".zip") and not path.endswith(".zip")
    ]
    text = "Successfully presented files" + (f": {', '.join(packed)}" if packed else "")
    return _answer(runtime, "\n".join([text, *(f"Not presented: {problem}" for problem in problems)]), files=written)


async def _presentable(sandbox: Sandbox, path: str) -> str | None:
    """The file's canonical path, "" if there is none, None if it may not be presented."""
    if path.startswith("/") and ".." in path.split("/"):
        return None
    names = (
        ["/" + path.lstrip("/")] if path.startswith("/") else [f"{OUTPUTS}/{path}", f"{WORKSPACE}/{path}", f"/{path}"]
    )
    inside = [name for name in map(posixpath.normpath, names) if name.startswith(OUTPUTS + "/")]
    for name in inside:
        entry = await sandbox.stat(name)
        if entry is not None and entry.kind == "file":
            return name
        if entry is not None and entry.kind == "directory":
            return await _packed(sandbox, name)
    return "" if inside else None


async def _packed(sandbox: Sandbox, directory: str) -> str:
    """A ZIP file of the directory, beside it."""
    parent, name = posixpath.split(directory)
    # With a variable it runs apart from the session, whose directory it must not change.
    done = await sandbox.exec(
        f"python3 -m zipfile -c ./{quote(name)}.zip ./{quote(name)}", cwd=parent, env={"DEERFLOW_PACK": "1"}
    )
    if done.exit_code:
        raise SandboxError(f"{directory} could not be packed: {done.output.strip()[-300:]}")
    return f"{directory}.zip"


def _answer(
    runtime: Runtime, text: str, *, status: str = "success", files: Sequence[dict[str, Any]] = ()
) -> Command[Any]:
    message = ToolMessage(
        text,
        tool_call_id=runtime.tool_call_id or "",
        name="present_files",
        status=status,  # type: ignore[arg-type]
        artifact={"files": files} if files else None,
    )
    return Command(update={"messages": [message], **({"artifacts": [file["path"] for file in files]} if files else {})})
