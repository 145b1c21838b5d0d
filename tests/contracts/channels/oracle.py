"""Facts that an official client shows about a double. What it accepts, our adapter may rely on.

``python -m tests.contracts.channels.oracle_telegram``, with what ``requirements/oracles.txt`` installs, prints one line a fact and fails
with the first that does not hold. ``test_oracles.py`` does that nightly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


def holds(fact: str, is_so: object) -> None:
    print("ok  " if is_so else "FAIL", fact)
    assert is_so, fact


async def until(condition: Callable[[], object]) -> bool:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.02)
    return True
