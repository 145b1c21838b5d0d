"""The adapters of OpenAI's family keep the contract of all chat models."""

from __future__ import annotations

import pytest
from tests.harness.models.openai_family.adapters import PROVIDERS
from tests.harness.models.openai_family.contract import ChatModelContract, Provider


class TestOpenAIFamily(ChatModelContract):
    @pytest.fixture(params=PROVIDERS)
    def provider(self, request: pytest.FixtureRequest) -> Provider:
        return PROVIDERS[request.param]
