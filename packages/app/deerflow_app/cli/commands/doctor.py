"""`deerflow doctor`: is everything there, and if not, what to do."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from deerflow_app.cli import Settings
from deerflow_app.cli.backend import is_demo, open_here
from deerflow_app.cli.chat.files import human_size
from deerflow_app.cli.chat.transcript import NETWORK, sandbox_label
from deerflow_app.cli.commands import print_json
from deerflow_app.cli.failures import database_failure, explain, not_writable
from deerflow_app.cli.terminal import clean, make_console

if TYPE_CHECKING:
    from deerflow.config import AppConfig, Paths
    from deerflow.harness import Harness
    from deerflow.models import ModelInfo

Status = Literal["ok", "warn", "bad"]
"""``warn`` leaves the product usable, ``bad`` does not."""
Finding = tuple[Any, ...]
"""A line of an area: what a Check holds behind it."""

CONNECT_A_MODEL = "Set ANTHROPIC_API_KEY, OPENAI_API_KEY or another provider's key, or run `deerflow config init` and name your model in config.yaml."
CHECK_ADDRESS = "Check the network, a proxy, or the model's base_url."

LOW_DISK = 2 << 30
"""Bytes below which a run with large files is likely to end in the middle."""
TIMEOUT = 3.0
"""Seconds. A doctor who lets one wait for half a minute is not asked again."""


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One line of the report."""

    area: str
    name: str
    status: Status
    found: str
    fix: str = ""


def machine() -> Iterator[Finding]:
    yield "Python", "ok", f"{platform.python_version()} ({sys.executable})"
    yield "Platform", "ok", platform.platform()
    if rg := shutil.which("rg"):
        yield "ripgrep", "ok", rg
    else:
        yield "ripgrep", "warn", "not found: searching files is slower", "Install ripgrep with your package manager."
    from deerflow.community.capture.tools import BROWSERS
    from deerflow.tools.registry import program_of

    if browser := program_of(BROWSERS):
        yield "Chromium", "ok", browser
    else:
        found = "not found: there is no web_capture, which opens pages in a browser"
        yield "Chromium", "warn", found, "Install Chromium with your package manager, if agents should see pages."


def configuration(config: AppConfig, problem: str | None) -> Iterator[Finding]:
    if problem:
        yield "config.yaml", "bad", problem, "Until this is mended, the last good configuration is used."
    elif (file := config.origin.config_file) is None:
        yield "config.yaml", "ok", "none: models are found by themselves, the rest is default"
    else:
        yield "config.yaml", "ok", f"{file} (version {config.config_version})"
    for warning in config.origin.warnings:
        yield "note", "warn", warning


def models(config: AppConfig) -> Sequence[Finding]:
    from deerflow.models import model_info

    if not config.models:
        return [("none", "bad", "No model is configured.", CONNECT_A_MODEL)]
    with ThreadPoolExecutor(max_workers=8) as pool:
        return list(pool.map(lambda model: _model(config, model), model_info(config)))


def _model(config: AppConfig, model: ModelInfo) -> Finding:
    """Whether the provider's package is there, a key is set, and the endpoint answers."""
    from deerflow.config import mask_secrets
    from deerflow.models import create_chat_model

    if model.problem:
        return model.name, "bad", model.problem
    label = f"{model.name} ({model.model})" if model.model != model.name else model.name
    if is_demo(model):
        return label, "warn", "the scripted demo, not a real model", CONNECT_A_MODEL
    try:
        endpoint = endpoint_of(create_chat_model(model.name, app_config=config))
    except Exception as error:
        return label, "bad", str(error)
    if endpoint is None:
        return label, "ok", "ready (its endpoint is not one that can be asked)"
    url, headers = endpoint
    answer = reach(url, headers)
    return label, answer.status, f"{mask_secrets(url)}: {answer.found}", answer.fix


class DoctorAnswer(NamedTuple):
    status: Status
    found: str
    fix: str = ""


def endpoint_of(model: Any) -> tuple[str, dict[str, str]] | None:
    """Address and headers of the provider's model listing, which both OpenAI's and Anthropic's APIs have. None: there is none."""
    if (client := getattr(model, "root_client", None)) is not None:
        url = str(client.base_url).rstrip("/")
        return f"{url}/models", {"Authorization": f"Bearer {client.api_key}"}
    if (url := getattr(model, "anthropic_api_url", None)) is not None:
        key = getattr(model, "anthropic_api_key", None)
        headers = {"x-api-key": key.get_secret_value() if key else "", "anthropic-version": "2023-06-01"}
        return str(url).rstrip("/").removesuffix("/v1") + "/v1/models", headers
    return None


def reach(url: str, headers: Mapping[str, str], *, timeout: float = TIMEOUT) -> DoctorAnswer:
    """Ask once. Blocks.

    Args:
        timeout: seconds for connecting, and for waiting for the answer.
    """
    import httpx

    try:
        status = httpx.get(url, headers=headers, timeout=timeout).status_code
    except httpx.TimeoutException:
        return DoctorAnswer("bad", f"no answer within {timeout:g} s", CHECK_ADDRESS)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        return DoctorAnswer("bad", f"cannot be reached: {str(error) or type(error).__name__}", CHECK_ADDRESS)
    if status in (401, 403):
        fix = "Set the right key in the environment or in config.yaml."
        return DoctorAnswer("bad", f"refuses the key (HTTP {status})", fix)
    if status >= 500:
        return DoctorAnswer("warn", f"answers with HTTP {status}", "The provider has a problem: try again later.")
    return DoctorAnswer("ok", "reachable" if status == 200 else f"reachable (no listing of models: HTTP {status})")


def sandbox(harness: Harness) -> Iterator[Finding]:
    report = harness.sandbox_provider.probe()
    if report.ok and (isolation := report.isolation) is not None:
        weak = isolation.level == "none" or isolation.warnings
        yield report.provider, "warn" if weak else "ok", sandbox_label(report), " ".join(isolation.warnings)
        limits, enforced = harness.config.sandbox.limits, ", ".join(sorted(isolation.limits)) or "none"
        text = f"{limits.processes} processes, {limits.memory_mb} MB memory, {limits.disk_mb} MB disk; enforced: {enforced}"
        yield "limits", "ok" if isolation.limits else "warn", text
        yield "network", "ok", NETWORK.get(isolation.network, isolation.network)
    for problem in report.problems:
        yield problem.code, "warn" if report.ok else "bad", problem.sentence, problem.fix
    if not report.ok and not report.problems:
        yield report.provider, "bad", "cannot run commands here"


def tool_image(harness: Harness) -> Iterator[Finding]:
    name = "Python packages"
    if not harness.config.sandbox.tool_image.enabled:
        yield name, "warn", "switched off", "Set sandbox.tool_image.enabled to true in config.yaml."
        return
    status = harness.tool_image.status()
    if status.ready:
        yield name, "ok", str(status.path)
    elif status.missing:
        yield name, "warn", status.reason, "The agent works without pandas, matplotlib and the like until then."
    else:
        yield name, "warn", "not built yet", "They are built at the first start; it takes about a minute."


def converters(harness: Harness) -> Iterator[Finding]:
    name = "Converters"
    confined, complete = harness.converters.describe()
    where = f"in a sandbox ({confined})" if confined else "in processes with limits, without a sandbox"
    if complete:
        yield name, "ok" if confined else "warn", f"pages, pictures and documents are read {where}"
    else:
        found = "without the Python packages pages are read as plain text; no document is, and pictures are not made smaller"
        yield name, "warn", found, "See Python packages above."


def storage(paths: Paths) -> Iterator[Finding]:
    base = paths.base_dir
    existing = next(path for path in (base, *base.parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            yield "data", "ok", str(base)
    except OSError as error:
        yield "data", "bad", f"{existing}: {error.strerror}", not_writable(existing)
        return
    free = shutil.disk_usage(existing).free
    if free < LOW_DISK:
        yield "disk", "warn", f"{human_size(free)} free", "Make room: runs stop when the disk is nearly full."
    else:
        yield "disk", "ok", f"{human_size(free)} free"
    if base.exists() and base.stat().st_mode & 0o002 and os.name == "posix":
        yield "permissions", "warn", f"{base} can be written by every user of this machine", f"Run: chmod o-w {base}"


def database(config: AppConfig, paths: Paths) -> Iterator[Finding]:
    """Try to open the database as a server would, and to read the threads."""
    from deerflow.storage.errors import DatabaseError
    from deerflow.storage.migrate import check_usable

    location = config.database_location(paths)
    file, is_postgres = Path(location), config.database.backend == "postgres"
    is_new = not is_postgres and not file.exists() and not next(paths.users_dir.glob("*/threads/*"), None)
    if config.database.backend == "memory" or is_new:
        return
    try:
        if not is_postgres and file.exists():
            _check_pages(file)
        version = check_usable(location, paths.users_dir, config.database.postgres_direct_url)
    except sqlite3.Error as error:
        yield "database", "bad", f"{file}: {error}", database_failure(error).remedy
    except DatabaseError as error:
        yield "database", "bad", str(error)
    else:
        yield "database", "ok", f"PostgreSQL, tables of version {version}" if is_postgres else location


def _check_pages(file: Path) -> None:
    """Raise sqlite3.Error if the file is damaged."""
    from deerflow.storage.sqlite_thread import unchanged

    with contextlib.closing(sqlite3.connect(unchanged(file), uri=True)) as connection:
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise sqlite3.DatabaseError(f"malformed: {found}")


def backups(config: AppConfig) -> Iterator[Finding]:
    """Try the bucket of scheduled backups as they will use it. A failure would stand in the log alone."""
    from deerflow_app.bucket import Bucket, BucketError

    if config.backups.bucket is None:
        return
    try:
        with contextlib.closing(Bucket.of(config, tries=1, timeout=TIMEOUT)) as bucket:
            bucket.try_out()
    except BucketError as error:
        yield "backups", "bad", str(error)
    else:
        yield "backups", "ok", f"{bucket}: can be listed and written"


NAME_WIDTH = 16
"""The same in every area, so that findings stand below each other."""

_GLYPHS = {"ok": ("✓", "ok"), "warn": ("!", "warn"), "bad": ("✗", "bad")}


def diagnose(settings: Settings) -> list[DoctorCheck]:
    """All checks. What cannot be checked because the configuration is broken is left out; the break is told."""
    checks = [DoctorCheck("System", *finding) for finding in machine()]
    from deerflow.storage.errors import DatabaseError

    try:
        client = open_here(settings)
    except DatabaseError as error:
        return [*checks, DoctorCheck("Storage", "database", "bad", str(error))]
    except Exception as error:
        if settings.debug:
            raise
        failure = explain(error)
        return [*checks, DoctorCheck("Configuration", "config.yaml", "bad", failure.message, failure.remedy)]
    from deerflow_app.cli.commands.doctor_channels import channels

    harness = client.harness
    config, paths = harness.config, harness.paths
    try:
        areas = (
            ("Configuration", configuration(config, client.config_source.problem)),
            ("Models", models(config)),
            ("Sandbox", sandbox(harness)),
            ("Sandbox", tool_image(harness)),
            ("Sandbox", converters(harness)),
            ("Storage", storage(paths)),
            ("Storage", database(config, paths)),
            ("Storage", backups(config)),
            ("Channels", channels(config, paths)),
        )
        return [*checks, *(DoctorCheck(area, *finding) for area, found in areas for finding in found)]
    finally:
        asyncio.run(client.aclose())


def exit_code(checks: Sequence[DoctorCheck]) -> int:
    """0: DeerFlow can be used; 1: something essential is broken."""
    return int(any(check.status == "bad" for check in checks))


def report(checks: Sequence[DoctorCheck]) -> RenderableType:
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


def print_report(checks: Sequence[DoctorCheck], *, as_json: bool) -> None:
    """The report on the terminal, or as one JSON object."""
    if as_json:
        print_json({"ok": exit_code(checks) == 0, "checks": [asdict(check) for check in checks]})
    else:
        make_console().print(report(checks))
