"""The platforms that the contract suite of channels runs on: every ``case_<platform>.py`` beside this file that exports ``CASE``."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from tests.contracts.channels.case import Case


@cache
def cases() -> tuple[type[Case], ...]:
    names = sorted(path.stem for path in Path(__file__).parent.glob("case_*.py"))
    return tuple(import_module(f"tests.contracts.channels.{name}").CASE for name in names)


def on(*needs: str) -> pytest.MarkDecorator:
    """Run a test on every platform of which these class attributes hold."""
    fitting = [case for case in cases() if all(getattr(case, need) for need in needs)]
    return pytest.mark.parametrize("case", fitting, indirect=True, ids=[case.name for case in fitting])
