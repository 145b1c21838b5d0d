"""Python's garbage collector in a process that serves for weeks."""

from __future__ import annotations

import gc
import threading
from importlib import import_module

THRESHOLDS = (2_000, 10, 50)
"""Of new objects, of looks at those, and of looks at the ones that outlived them. Python's 700, 10, 10 make it look through
everything a dozen times while some hundred runs begin, and nobody is served for half a second each time; of what it finds
then, nearly all is found by the quick looks, too."""


def collect_seldom(*modules: str) -> None:
    """Let the collector hold up the process seldom and for a short time: it never looks again at what is there now.

    Args:
        modules: imported first, on a thread, since what belongs to them stays as well.
    """
    gc.set_threshold(*THRESHOLDS)
    threading.Thread(target=_set_aside, args=modules, name="collector", daemon=True).start()


def _set_aside(*modules: str) -> None:
    for module in modules:
        import_module(module)
    gc.collect()
    gc.freeze()
