"""``python -m bench.gateway_probe serve …``: the ``deerflow`` command with a watch on the event loop of its gateway.

SIGUSR1 writes how late the loop was into the file that BENCH_LAGS names, and begins anew. SIGUSR2 begins or ends a
profile of the loop's thread, which goes into BENCH_PROFILE.
"""

from __future__ import annotations

import asyncio
import cProfile
import json
import os
import signal
import time
from pathlib import Path

INTERVAL = 0.01


class Watch:
    """Asks to be called every ten milliseconds; keeps by how much that was late, and the CPU that it took meanwhile."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lags: list[float] = []
        self._held: list[float] = []
        self._worked = time.thread_time()
        self._profile: cProfile.Profile | None = None
        loop.add_signal_handler(signal.SIGUSR1, self._tell)
        loop.add_signal_handler(signal.SIGUSR2, self._toggle)
        self._plan()

    def _plan(self) -> None:
        self._loop.call_later(INTERVAL, self._look, self._loop.time() + INTERVAL)

    def _look(self, due: float) -> None:
        late = max(self._loop.time() - due, 0.0)
        # Whoever would have come while the loop was held up would have waited, too: one late look stands for many.
        self._lags += [late - missed * INTERVAL for missed in range(int(late / INTERVAL) + 1)]
        worked, self._worked = self._worked, time.thread_time()
        held = self._worked - worked
        self._held += [held - missed * INTERVAL for missed in range(int(held / INTERVAL) + 1)]
        self._plan()

    def _tell(self) -> None:
        target = Path(os.environ["BENCH_LAGS"])
        partial = target.with_suffix(".part")
        partial.write_text(json.dumps({"late": self._lags, "held": self._held}))
        partial.replace(target)
        self._lags.clear()
        self._held.clear()

    def _toggle(self) -> None:
        if self._profile is None:
            self._profile = cProfile.Profile()
            self._profile.enable()
        else:
            self._profile.disable()
            self._profile.dump_stats(os.environ["BENCH_PROFILE"])
            self._profile = None


def main() -> None:
    """Run the command."""
    from deerflow.runtime import Runtime
    from deerflow_app.cli.main import main as deerflow

    start = Runtime.start

    async def watched(self: Runtime) -> None:
        Watch(asyncio.get_running_loop())
        await start(self)

    Runtime.start = watched
    deerflow()


if __name__ == "__main__":
    main()
