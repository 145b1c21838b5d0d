"""The functions and files of ours that a message passes in a warm gateway before the provider is asked."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

from bench.figures import Figure, at_most
from bench.gateway_process import GatewayProcess
from bench.http import WARM, Talk
from bench.worker import Options

SUBJECTS = ("ours",)
ROUNDS = 1
TRACED = 3
"""Messages that are traced: what each of them passes counts, what happens beside one does not."""


async def measure(subject: str, options: Options) -> dict[str, Any]:
    """Return the functions that every traced message passed, as ``file<tab>name``."""
    calls = Path(options.data) / "calls"
    with GatewayProcess(options.base_url, Path(options.data), calls=calls) as gateway:
        talk = Talk(gateway, options)
        for i in range(WARM):
            await talk.turn(str(uuid.uuid4()), f"scenario:plain key:warm-{i}")
        passed: list[set[str]] = []
        for i in range(TRACED):
            await asyncio.sleep(1)
            gateway.trace()
            await talk.turn(str(uuid.uuid4()), f"scenario:plain key:traced-{i}")
            passed.append(set(calls.read_text().splitlines()))
            calls.unlink()
    return {"passed": sorted(set.intersection(*passed))}


def figures(results: dict[str, list[dict[str, Any]]]) -> list[Figure]:
    passed = results["ours"][0]["passed"]
    files = {line.partition("\t")[0] for line in passed}
    return [
        Figure("functions a message passes before the provider is asked", "", len(passed), target=at_most(250)),
        Figure("files a message passes before the provider is asked", "", len(files), target=at_most(45)),
    ]
