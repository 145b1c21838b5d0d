"""The contract of adapters: what we send is shown once, and a failure says whether it may have been done."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from tests.contracts.channels.case import Case, Said
from tests.contracts.channels.conftest import Chat
from tests.contracts.channels.receiver import Receiver
from tests.contracts.channels.registry import on
from tests.support.channels.double import LATER, Fault, Operation

from deerflow.features.channels.types import (
    Adapter,
    ChannelError,
    Displaced,
    Later,
    OutFile,
    Part,
    Refused,
    SignedOut,
    Uncertain,
    Unreachable,
)

EXPECTED: dict[Fault, type[ChannelError]] = {
    Fault.LATER: Later,
    Fault.SERVER_ERROR: Uncertain,
    Fault.CUT_BEFORE: Uncertain,
    Fault.CUT_AFTER: Uncertain,
    Fault.GARBAGE: Uncertain,
    Fault.REFUSED: Refused,
    Fault.SIGNED_OUT: SignedOut,
}
REPEATABLE = {Operation.EDIT, Operation.FETCH, Operation.LISTEN, Operation.IDENTIFY}


def expected(operation: Operation, fault: Fault) -> type[ChannelError]:
    """Return the error of a fault. What may be repeated is never uncertain."""
    error = EXPECTED[fault]
    return Unreachable if operation in REPEATABLE and error is Uncertain else error


def out_file(name: str, content: bytes) -> OutFile:
    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(content), 1000):
            yield content[start : start + 1000]

    return OutFile(name, len(content), "application/octet-stream", pieces)


async def act(chat: Chat, operation: Operation) -> None:
    """Do an operation on a chat in which "first" was posted and a file was received."""
    match operation:
        case Operation.IDENTIFY:
            await chat.adapter.identify()
        case Operation.POST:
            await chat.post(Part("second"), "k-2")
        case Operation.EDIT:
            await chat.adapter.edit(chat.asked.place, chat.ref, Part("edited"), 2)
        case Operation.UPLOAD:
            await chat.adapter.upload(chat.asked.place, out_file("a.bin", b"x" * 3000), "k-3", chat.asked.wake)
        case Operation.FETCH:
            message = await chat.receiver.message(await chat.case.say(Said("x", files=[("a.bin", b"x" * 3000)])))
            _ = [piece async for piece in chat.adapter.fetch(message.files[0])]


@on()
async def test_a_text_is_shown(chat: Chat):
    await chat.post(Part("hello back"))

    assert [shown.text for shown in chat.case.shown()] == ["hello back"]


@on("has_edits")
async def test_an_edit_replaces_the_text(chat: Chat):
    ref = await chat.post(Part("…", is_final=False))
    for seq, text in enumerate(("half", "whole", "whole")):
        ref = await chat.adapter.edit(chat.asked.place, ref, Part(text, is_final=text == "whole"), seq + 2)

    assert [shown.text for shown in chat.case.shown()] == ["whole"]


@on("can_find")
@pytest.mark.parametrize("is_private", [True, False])
async def test_a_message_whose_reference_was_lost_is_found(case: Case, adapter: Adapter, is_private: bool):
    async with Receiver(adapter) as receiver:
        asked = await receiver.message(await case.say(Said("hello", is_private=is_private, mentions_us=not is_private)))
        known = [await adapter.post(asked.place, Part("known"), "k-1", asked.wake)]
        case.double.fail(Operation.POST, Fault.CUT_AFTER)
        with pytest.raises(Uncertain):
            await adapter.post(asked.place, Part("…", is_final=False), "k-2", asked.wake)
        found = await adapter.find(asked.place, asked.sent_at, known, asked.wake)
        assert found is not None
        await adapter.edit(asked.place, found, Part("whole"), 2)
        assert await adapter.find(asked.place, asked.sent_at, [*known, found], asked.wake) is None

    assert [shown.text for shown in case.shown()] == ["known", "whole"]


@on()
async def test_a_text_at_the_limit_passes_and_a_longer_one_is_refused(chat: Chat):
    async def say(text: str) -> None:
        if chat.case.limited is Operation.EDIT:
            await chat.adapter.edit(chat.asked.place, ref, Part(text), 2)
        else:
            await chat.post(Part(text), "k-2")

    ref = await chat.post(Part("first"))
    for length in (chat.case.limit - 1, chat.case.limit):
        await say(chat.case.text(length))
    shown = list(chat.case.shown())
    with pytest.raises(Refused):
        await say(chat.case.text(chat.case.limit + 1))
    assert list(chat.case.shown()) == shown


@on()
@pytest.mark.parametrize("name", ["répört 鹿.bin", "a\"b\r\nx: y';\\.bin"])
async def test_a_file_is_sent_whole(chat: Chat, name: str):
    content = bytes(range(256)) * 40
    await chat.adapter.upload(chat.asked.place, out_file(name, content), "k-2", chat.asked.wake)

    ((shown, received),) = chat.case.received()
    assert received == content
    assert shown.endswith(".bin") and not set("\r\n") & set(shown)
    assert shown == name or "\r" in name


@on()
async def test_a_file_larger_than_the_limit_is_not_sent(chat: Chat):
    chat.adapter.caps = replace(chat.adapter.caps, file_out=1000)
    await chat.adapter.upload(chat.asked.place, out_file("a.bin", b"x" * 1000), "k-2", chat.asked.wake)
    with pytest.raises(Refused, match="1,000"):
        await chat.adapter.upload(chat.asked.place, out_file("b.bin", b"x" * 1001), "k-3", chat.asked.wake)

    assert len(chat.case.received()) == 1


@on()
@pytest.mark.parametrize("size", [2999, 3001])
async def test_a_file_that_changes_while_it_is_sent_is_not_shown(chat: Chat, size: int):
    file = replace(out_file("a.bin", b"x" * 3000), size=size)
    with pytest.raises(Unreachable):
        await chat.adapter.upload(chat.asked.place, file, "k-2", chat.asked.wake)

    assert not chat.case.received()


@on()
@pytest.mark.parametrize("fault", EXPECTED)
@pytest.mark.parametrize(
    "operation", [Operation.IDENTIFY, Operation.POST, Operation.EDIT, Operation.UPLOAD, Operation.FETCH]
)
async def test_a_fault_says_whether_it_may_have_been_done(
    chat: Chat, operation: Operation, fault: Fault, caplog: pytest.LogCaptureFixture
):
    if (operation, fault) in chat.case.exempt or (operation is Operation.EDIT and not chat.case.has_edits):
        return
    caplog.set_level(logging.DEBUG)
    chat.ref = await chat.post(Part("first"))
    before = (list(chat.case.shown()), list(chat.case.received()))
    chat.case.double.fail(operation, fault)

    with pytest.raises(ChannelError) as caught:
        await act(chat, operation)

    assert type(caught.value) is expected(operation, fault)
    assert not isinstance(caught.value, Later) or caught.value.after == LATER
    assert ((list(chat.case.shown()), list(chat.case.received())) == before) or fault is Fault.CUT_AFTER
    if fault is not Fault.SIGNED_OUT and (fault is not Fault.CUT_AFTER or operation in REPEATABLE):
        await act(chat, operation)
    assert not leaked(chat.case, caplog, caught.value)


@on()
async def test_an_address_without_a_server_is_unreachable(case: Case, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    adapter = case.adapter()
    await case.double.__aexit__()
    with pytest.raises(Unreachable) as caught:
        await adapter.identify()
    await adapter.aclose()

    assert not leaked(case, caplog, caught.value)


@on()
@pytest.mark.parametrize("fault", [Fault.SERVER_ERROR, Fault.CUT_BEFORE, Fault.CUT_AFTER, Fault.GARBAGE])
async def test_listening_survives_a_fault(case: Case, adapter: Adapter, fault: Fault, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    case.double.fail(Operation.LISTEN, fault, 2)
    async with Receiver(adapter) as receiver:
        await receiver.message(await case.say(Said("after")))

    assert len(receiver.ends) >= 2
    assert not leaked(case, caplog, *filter(None, receiver.ends))


@on()
async def test_a_pause_asked_for_while_listening_is_kept(case: Case, adapter: Adapter):
    if (Operation.LISTEN, Fault.LATER) in case.exempt:
        return
    case.double.fail(Operation.LISTEN, Fault.LATER)
    with pytest.raises(Later) as caught:
        await adapter.listen(_unused, "", lambda: None)

    assert caught.value.after == LATER


@on()
async def test_a_revoked_token_ends_listening(case: Case, adapter: Adapter):
    case.double.fail(Operation.LISTEN, Fault.SIGNED_OUT)
    with pytest.raises(SignedOut):
        await adapter.listen(_unused, "", lambda: None)


@on("can_displace")
async def test_another_program_displaces_us(case: Case, adapter: Adapter):
    async with Receiver(adapter) as receiver:
        await case.displace()
        await receiver.until(lambda: receiver.fatal)

    assert isinstance(receiver.fatal, Displaced)


async def _unused(events: object, cursor: object) -> None:
    pass


def leaked(case: Case, caplog: pytest.LogCaptureFixture, *errors: BaseException) -> list[str]:
    """Return the secrets that an error or a log line shows."""
    text = caplog.text + "".join(f"{error!s} {error!r} {error.__cause__!r}" for error in errors)
    return [secret for secret in case.secrets if secret in text]
