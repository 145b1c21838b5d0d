"""No method of the client is left out: one that a new version brings fails here until somebody has tested it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client, get_sync_client
from tests.sdk_python.conftest import PARTS


def methods(client: Any) -> set[str]:
    return {
        f"{part}.{name}"
        for part in PARTS
        for name in dir(getattr(client, part))
        if not name.startswith("_") and callable(getattr(getattr(client, part), name))
    }


def covered() -> set[str]:
    found: set[str] = set()
    for file in Path(__file__).parent.glob("test_*.py"):
        spec = importlib.util.spec_from_file_location(f"sdk_python_{file.stem}", file)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for test in vars(module).values():
            found.update(getattr(test, "covers", ()))
    return found


@pytest.mark.parametrize("make", [get_client, get_sync_client])
def test_every_method_of_the_client_has_a_test(make: Any):
    known = methods(make(url="http://127.0.0.1:1", api_key=None))
    assert len(known) > 40
    assert known - covered() == set()
    assert covered() - known == set(), "tests of methods that are gone"
