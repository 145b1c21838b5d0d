"""Building the sandbox's Python packages beside the chat, so that the first prompt does not wait for them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from deerflow_app.cli.terminal import one_line

if TYPE_CHECKING:
    from deerflow.harness import Harness

WHAT = "Preparing the sandbox's Python packages"


class Preparation:
    """The build of the tool image, on a thread that does not keep the process alive when the person leaves.

    Attributes:
        step: what it does right now, for a status line; empty when nothing (more) is to be done.
        problem: what is missing and why, once it has ended; empty when all is there.
    """

    def __init__(self, harness: Harness) -> None:
        self.step = ""
        self.problem = ""
        self._harness = harness
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def begin(cls, harness: Harness) -> Self:
        """Start the build if the packages are wanted and not there yet."""
        preparation = cls(harness)
        if harness.config.sandbox.tool_image.enabled and not (await asyncio.to_thread(harness.tool_image.status)).ready:
            preparation.step = f"{WHAT} (once, about a minute)"
            threading.Thread(target=preparation._build, name="tool-image", daemon=True).start()
        else:
            preparation._ended.set()
        return preparation

    async def ended(self, tell: Callable[[str], None] | None = None) -> None:
        """Return when the build is done, well or not; ``tell`` gets each step until then."""
        while not self._ended.is_set():
            if tell is not None:
                tell(self.step)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), 0.2)

    def _build(self) -> None:
        try:
            self._harness.tool_image.build(self._tell)
        except Exception as error:  # the product works without these packages; what is missing is told
            self.problem = one_line(str(error), 500)
        finally:
            self.step = ""
            with contextlib.suppress(RuntimeError):  # the person has left: the loop is closed
                self._loop.call_soon_threadsafe(self._ended.set)

    def _tell(self, text: str) -> None:
        if line := one_line(text):
            self.step = f"{WHAT}: {line}"
