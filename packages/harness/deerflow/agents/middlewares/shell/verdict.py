"""Block, warn or pass: advice about a command. The sandbox is the boundary, this only saves the model from accidents.

Every reason names what was seen, so that the model can do it differently.
"""

from __future__ import annotations

from collections.abc import Iterator

from deerflow.agents.middlewares.shell.calls import calls, scripts
from deerflow.agents.middlewares.shell.finding import Finding, block
from deerflow.agents.middlewares.shell.parser import parse
from deerflow.agents.middlewares.shell.rules import CALL_RULES, bombs, redirections, variables
from deerflow.agents.middlewares.shell.tree import Script

MAX_COMMAND = 10_000
"""Characters of a command."""


def judge(command: object) -> Finding | None:
    """The gravest finding about a shell command; None = nothing to say."""
    text = command if isinstance(command, str) else ""
    if not text.strip():
        return block("empty-command", "empty command")
    if len(text) > MAX_COMMAND:
        return block(
            "command-too-long",
            f"command too long: {len(text)} characters, the limit is {MAX_COMMAND}. Write the content to a file with write_file first.",
        )
    if "\0" in text:
        return block("null-byte", "null byte detected")
    script = parse(text)
    if script.unclosed:
        return block(
            "unclosed",
            f"the command ends inside of an unclosed {script.unclosed}: close it, or write the text to a file with write_file first",
        )
    return max(_findings(script), key=lambda finding: finding.verdict, default=None)


def _findings(script: Script) -> Iterator[Finding]:
    for part in scripts(script):
        yield from bombs(part)
        for command in part.commands:
            yield from redirections(command)
            yield from variables(command.assignments)
    for call in calls(script):
        for rule in CALL_RULES:
            if finding := rule(call):
                yield finding
