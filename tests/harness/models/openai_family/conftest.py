from __future__ import annotations

from collections.abc import Iterator

import pytest
from bench.scripted_openai import ScriptedOpenAI


@pytest.fixture
def endpoint() -> Iterator[ScriptedOpenAI]:
    with ScriptedOpenAI() as server:
        yield server
