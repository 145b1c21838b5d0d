"""The subcommands, and what those share that ask a client for one thing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from deerflow_app.cli.client import Client
    from deerflow_app.cli.options import Settings

T = TypeVar("T")


def with_client(settings: Settings, work: Callable[[Client], Awaitable[T]]) -> T:
    """Open what does the work, do it, and close."""
    from deerflow_app.cli.opening import open_backend

    client = open_backend(settings).client

    async def run() -> T:
        try:
            return await work(client)
        finally:
            await client.aclose()

    return asyncio.run(run())
