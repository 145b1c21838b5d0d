"""aiogram against our Telegram."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.contracts.channels.oracle import holds, until
from tests.support.channels.double import LATER, Fault, Operation
from tests.support.channels.telegram_double import ANN, TelegramDouble


async def aiogram_accepts(double: TelegramDouble) -> None:
    from aiogram import Bot, Dispatcher
    from aiogram.client.session.aiohttp import AiohttpSession
    from aiogram.client.telegram import TelegramAPIServer
    from aiogram.enums import ParseMode
    from aiogram.exceptions import (
        TelegramBadRequest,
        TelegramRetryAfter,
        TelegramUnauthorizedError,
    )
    from aiogram.types import BufferedInputFile, InlineKeyboardButton, InlineKeyboardMarkup

    api = TelegramAPIServer.from_base(double.http)
    bot, dispatcher = Bot(double.token, session=AiohttpSession(api=api)), Dispatcher()
    texts: list[str | None] = []
    clicks: list[str | None] = []
    stops: list[int] = []

    async def on_message(message: Any) -> None:
        texts.append(message.text)

    async def on_click(query: Any) -> None:
        clicks.append(query.data)
        await query.answer("seen")

    async def on_stop(stopped: Any) -> None:
        stops.append(stopped.draft_id)

    dispatcher.message.register(on_message)
    dispatcher.callback_query.register(on_click)
    dispatcher.stopped_message_generation.register(on_stop)
    polling = asyncio.create_task(dispatcher.start_polling(bot, handle_signals=False, polling_timeout=1))
    double.write(text="hi 🦌")
    holds("aiogram receives a message", await until(lambda: texts == ["hi 🦌"]))
    keyboard = InlineKeyboardMarkup(inline_keyboard=[[InlineKeyboardButton(text="Yes", callback_data="yes")]])
    sent = await bot.send_message(ANN, "<b>a</b>", parse_mode=ParseMode.HTML, reply_markup=keyboard)
    double.press(ANN, sent.message_id, "yes")
    holds("it receives a click and answers it", await until(lambda: clicks == ["yes"] and double.answers))
    double.push(stopped_message_generation={"chat": {"id": ANN, "type": "private", "first_name": "Ann"}, "draft_id": 5})
    holds("it receives Telegram's own stop", await until(lambda: stops == [5]))
    edited = await bot.edit_message_text("b", chat_id=ANN, message_id=sent.message_id)
    holds("it edits", edited is not True and double.messages[ANN, sent.message_id]["result"]["text"] == "b")
    for error, act in (
        (TelegramBadRequest, lambda: bot.edit_message_text("b", chat_id=ANN, message_id=sent.message_id)),
        (TelegramRetryAfter, _failing(double, Fault.LATER, lambda: bot.send_message(ANN, "x"))),
        (TelegramUnauthorizedError, _failing(double, Fault.SIGNED_OUT, lambda: bot.send_message(ANN, "x"))),
    ):
        try:
            await act()
        except error as caught:
            holds(f"it raises {error.__name__}", getattr(caught, "retry_after", LATER) == LATER)
        else:
            holds(f"it raises {error.__name__}", False)
    await bot.send_document(ANN, BufferedInputFile(b"x" * 5000, "répört.txt"), caption="it")
    holds("it sends a document", double.uploads == [("répört.txt", b"x" * 5000)])
    number = double.keep(b"from a person")["file_id"]
    content = await bot.download_file((await bot.get_file(number)).file_path or "")
    holds("it fetches a file", content is not None and content.read() == b"from a person")
    await dispatcher.stop_polling()
    await asyncio.gather(polling, return_exceptions=True)
    await bot.session.close()


def _failing(double: TelegramDouble, fault: Fault, act: Callable[[], Any]) -> Callable[[], Any]:
    def struck() -> Any:
        double.fail(Operation.POST, fault)
        return act()

    return struck


async def main() -> None:
    async with TelegramDouble() as double:
        await aiogram_accepts(double)


if __name__ == "__main__":
    asyncio.run(main())
