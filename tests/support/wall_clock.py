"""The clock on the wall is set, as by an operator or by a machine that learns the time late; what measures durations goes on."""

from __future__ import annotations

import sys
import time
from datetime import datetime, timedelta, tzinfo
from typing import Any

import pytest

_MODULES = ("deerflow", "deerflow_app", "jwt")


def set_clock(monkeypatch: pytest.MonkeyPatch, by: timedelta) -> None:
    """From now on the modules of the product that are imported by now, and those that judge tokens, see another time."""

    class IsDatetime(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, datetime)

    class Shifted(datetime, metaclass=IsDatetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + by

    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in _MODULES and vars(module).get("datetime") is datetime:
            monkeypatch.setattr(module, "datetime", Shifted)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + by.total_seconds())
