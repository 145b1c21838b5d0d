"""The product in this very process, as the terminal uses it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING

from deerflow.client import DeerFlowClient
from deerflow.harness import RunOptions
from deerflow_app.thread_folders import file_sizes, thread_folders

if TYPE_CHECKING:
    from deerflow.config import ModelConfig, Paths

PIECE = 8 << 20
"""Bytes read at a time: artifacts may be larger than memory."""


class LocalClient(DeerFlowClient):
    """See ``deerflow_app.cli.client.Client``."""

    url = None
    notice = ""

    @property
    def paths(self) -> Paths:
        return self.harness.paths

    @property
    def models(self) -> Sequence[ModelConfig]:
        return self.harness.config.models

    @property
    def problem(self) -> str | None:
        return self.config_source.problem

    async def aread_artifact(self, thread_id: str, path: str) -> AsyncGenerator[bytes, None]:
        sandbox = await (await self.harness.run_context(thread_id, RunOptions())).sandbox()
        offset, size = 0, 1
        while offset < size:
            data, size = await sandbox.read(path, offset=offset, limit=PIECE)
            yield data
            offset += len(data) or PIECE

    async def afile_sizes(self, thread_id: str) -> dict[str, int]:
        return await asyncio.to_thread(file_sizes, thread_folders(self.paths, thread_id))
