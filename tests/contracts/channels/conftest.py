"""The platform of a test of the channels' contract: an entered case, its adapter, and an adapter that a person has written to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from tests.contracts.channels.case import Case, Said
from tests.contracts.channels.receiver import Receiver

from deerflow.features.channels.types import Adapter, Inbound, Part, Ref


@pytest.fixture
async def case(request: pytest.FixtureRequest) -> AsyncIterator[Case]:
    async with request.param() as entered:
        yield entered


@pytest.fixture
async def adapter(case: Case) -> AsyncIterator[Adapter]:
    made = case.adapter()
    await made.identify()
    yield made
    await made.aclose()


@dataclass
class Chat:
    """A private chat in which a person has written to us, and the engine that listens. ``ref``: of a message of ours to edit."""

    case: Case
    adapter: Adapter
    receiver: Receiver
    asked: Inbound
    ref: Ref = field(default_factory=dict)

    async def post(self, part: Part, key: str = "k-1") -> Ref:
        return await self.adapter.post(self.asked.place, part, key, self.asked.wake)


@pytest.fixture
async def chat(case: Case, adapter: Adapter) -> AsyncIterator[Chat]:
    async with Receiver(adapter) as receiver:
        asked = await receiver.message(await case.say(Said("hello")))
        yield Chat(case, adapter, receiver, asked)
