"""Custom events of a run: what clients see beside messages."""

from __future__ import annotations

import logging
from typing import Any

logger = logging.getLogger(__name__)


def emit(runtime: Any, event: dict[str, Any]) -> None:
    """Write ``event`` to the run's custom stream, if there is one. A client that went away must not fail the run."""
    writer = getattr(runtime, "stream_writer", None)
    if writer is None:
        return
    try:
        writer(event)
    except Exception:
        logger.warning("Could not emit the event %s", event.get("type"), exc_info=True)
