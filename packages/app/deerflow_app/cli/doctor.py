"""`deerflow doctor`: is everything there, and if not, what to do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from itertools import groupby

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from deerflow_app.cli.checks import (
    Check,
    check_config,
    check_database,
    check_machine,
    check_models,
    check_sandbox,
    check_storage,
    check_tool_image,
)
from deerflow_app.cli.failures import explain
from deerflow_app.cli.opening import open_here
from deerflow_app.cli.settings import Settings
from deerflow_app.cli.terminal import clean

NAME_WIDTH = 16
"""The same in every area, so that findings stand below each other."""

_GLYPHS = {"ok": ("✓", "ok"), "warn": ("!", "warn"), "bad": ("✗", "bad")}


def diagnose(settings: Settings) -> list[Check]:
    """All checks. What cannot be checked because the configuration is broken is left out; the break is told."""
    checks = list(check_machine())
    try:
        client = open_here(settings)
    except Exception as error:
        if settings.debug:
            raise
        failure = explain(error)
        return [*checks, Check("Configuration", "config.yaml", "bad", failure.message, failure.remedy)]
    try:
        checks += check_config(client)
        checks += check_models(client.harness.config)
        for probe in (check_sandbox, check_tool_image, check_storage, check_database):
            checks += probe(client)
    finally:
        asyncio.run(client.aclose())
    return checks


def exit_code(checks: Sequence[Check]) -> int:
    """0: DeerFlow can be used; 1: something essential is broken."""
    return int(any(check.status == "bad" for check in checks))


def report(checks: Sequence[Check]) -> RenderableType:
    """The report as a table by area, remedies under what they mend."""
    parts: list[RenderableType] = []
    for area, group in groupby(checks, key=lambda check: check.area):
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
        table.add_column(width=4, justify="right")
        table.add_column(style="bold", overflow="fold", width=NAME_WIDTH)
        table.add_column(overflow="fold")
        for check in group:
            glyph, style = _GLYPHS[check.status]
            found = Text(clean(check.found))
            if check.fix:
                found.append(f"\n→ {clean(check.fix)}", style="accent")
            table.add_row(Text(glyph, style=style), Text(clean(check.name)), found)
        parts += [Text(f"\n  {area}", style="bold accent"), table]
    bad = sum(check.status == "bad" for check in checks)
    warned = sum(check.status == "warn" for check in checks)
    verdict = Text("\n  ")
    if bad:
        verdict.append(f"✗ {bad} to mend before DeerFlow works as it should.", style="bad")
    elif warned:
        verdict.append("✓ DeerFlow can be used. ", style="ok").append(f"{warned} could be better.", style="warn")
    else:
        verdict.append("✓ All is well.", style="ok")
    return Group(*parts, verdict)


def print_report(checks: Sequence[Check], console: Console, *, as_json: bool) -> None:
    """The report on ``console``, or as one JSON object."""
    if as_json:
        items = [{"area": c.area, "name": c.name, "status": c.status, "found": c.found, "fix": c.fix} for c in checks]
        console.file.write(
            json.dumps({"ok": exit_code(checks) == 0, "checks": items}, ensure_ascii=False, indent=2) + "\n"
        )
    else:
        console.print(report(checks))
