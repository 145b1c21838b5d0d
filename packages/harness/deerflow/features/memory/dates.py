"""Relative dates in what a person says ("until next Friday"), counted by our code from the day on which it was said."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta, tzinfo
from typing import NamedTuple

from langchain_core.messages import BaseMessage, HumanMessage

_WEEKDAYS = {
    name: number % 7
    for number, name in enumerate(
        re.findall(
            r"\w+",
            "monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag samstag sonntag "
            "一 二 三 四 五 六 日",
        )
    )
} | {"sonnabend": 5, "天": 6}
_DAYS = {
    **{"today": 0, "tonight": 0, "heute": 0, "今天": 0, "今晚": 0},
    **{"tomorrow": 1, "morgen": 1, "明天": 1, "day after tomorrow": 2, "übermorgen": 2, "后天": 2},
    **{"yesterday": -1, "gestern": -1, "昨天": -1},
}
_WHICH = {"next": 1, "nächst": 1, "下": 1, "明": 1, "last": -1, "letzt": -1, "上": -1, "去": -1, "vorig": -1}
_UNITS = {"day": "day", "tag": "day", "天": "day", "week": "week", "woche": "week", "周": "week", "星期": "week",
          "month": "month", "monat": "month", "月": "month", "year": "year", "jahr": "year", "年": "year"}  # fmt: skip
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "six": 6,
            "einem": 1, "einer": 1, "zwei": 2, "drei": 3, "vier": 4, "sechs": 6}  # fmt: skip
_EN_DAY, _DE_DAY = (
    "(?:mon|tues|wednes|thurs|fri|satur|sun)day",
    "(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|sonnabend",
)
_RELATIVE = re.compile(
    rf"""(?P<until>\b(?:until|till|through|bis)\s+(?:(?:the\s+end\s+of|ende|zum|zur|einschließlich)\s+)?|(?:直到|到))?
    (?: \b(?P<day>day\s+after\s+tomorrow|tomorrow|today|tonight|yesterday|übermorgen|morgen|heute|gestern)\b
      | \b(?P<which>next|this|coming|last|(?:nächst|kommend|dies|letzt|vorig)e[nmrs]?)\s+
          (?:(?P<weekday>{_EN_DAY}|{_DE_DAY})|(?P<unit>week|month|year|woche|monats?|jahre?s?))\b
      | \bin\s+(?P<count>\d{{1,3}}|{"|".join(_NUMBERS)})\s+(?P<units>day|week|month|year|tag|woche|monat|jahr)(?:s|e|en|n)?\b
      | (?P<plain>\b(?:{_EN_DAY}|{_DE_DAY})\b)
      | (?P<cday>今天|今晚|明天|后天|昨天)
      | (?P<cwhich>下|这|本|上)个?(?:(?:周|星期|礼拜)(?P<cweekday>[一二三四五六日天])|(?P<cunit>周|星期|月))
      | (?P<cyear>明|今|去)年 )
    (?!\W{{0,3}}\d{{4}}-\d)""",
    re.IGNORECASE | re.VERBOSE,
)
_EVERY = re.compile(r"(?:every|each|any|jede[nrms]?|guten|am|every other)\s+$", re.IGNORECASE)
_WRITTEN = re.compile(r"(?:\b(?:until|till|through|bis)\s+(?:zum\s+)?|直到|到)(\d{4}-\d\d-\d\d)\b", re.IGNORECASE)


class Dated(NamedTuple):
    """``text`` with the date behind each relative one; ``until``: the last day on which it holds, if it says so."""

    text: str
    until: date | None


def resolved(text: str, today: date) -> Dated:
    """Return ``text`` with its relative dates counted from ``today``. "Next Friday" is the one of the next calendar week."""
    until: date | None = None
    pieces: list[str] = []
    last = 0
    for match in _RELATIVE.finditer(text):
        span = None if _EVERY.search(text, max(0, match.start() - 20), match.start()) else _span(match, today)
        if span is None:
            continue
        shown, end = span
        pieces += text[last : match.end()], f" ({shown})"
        last, until = match.end(), end if match["until"] else until
    if until is None and (written := _WRITTEN.search(text)):
        until = _day(written[1])
    return Dated("".join((*pieces, text[last:])), until)


def said_on(message: BaseMessage, otherwise: date) -> date:
    """Return the day on which a message was sent, in the person's time zone."""
    stamp = message.additional_kwargs.get("timestamp")
    return (_day(stamp[:10]) if isinstance(stamp, str) else None) or otherwise


def at_persons(moment: datetime, messages: Iterable[BaseMessage]) -> datetime:
    """Return a moment as the person's clock shows it, by the newest of their messages; by the server's if none has a time."""
    stamps = (message.additional_kwargs.get("timestamp") for message in messages if isinstance(message, HumanMessage))
    zones = [zone for stamp in stamps if isinstance(stamp, str) and (zone := _zone(stamp)) is not None]
    return moment.astimezone(zones[-1] if zones else None)


def _zone(stamp: str) -> tzinfo | None:
    try:
        return datetime.fromisoformat(stamp).tzinfo
    except ValueError:
        return None


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _span(match: re.Match[str], today: date) -> tuple[str, date] | None:
    """What a relative date stands for, and its last day."""
    if day := match["day"] or match["cday"]:
        known = " ".join(day.lower().split())
        return None if day == "Morgen" else _shown(today + timedelta(_DAYS[known]))
    if which := match["which"] or match["cwhich"]:
        step = next((number for word, number in _WHICH.items() if which.lower().startswith(word)), 0)
        if weekday := match["weekday"] or match["cweekday"]:
            number = _WEEKDAYS[weekday.lower()]
            if match["weekday"] and step < 0:
                return _shown(_weekday(number, today, None) - timedelta(7))
            comes = match["weekday"] and not step
            return _shown(_weekday(number, today, None if comes else step))
        return _period(_key(_UNITS, match["unit"] or match["cunit"]), step, today)
    if count := match["count"]:
        number = _NUMBERS.get(count.lower()) or int(count)
        return _shown(_later(today, number, _key(_UNITS, match["units"])))
    if year := match["cyear"]:
        return _period("year", _WHICH.get(year, 0), today)
    return _shown(_weekday(_WEEKDAYS[match["plain"].lower()], today, None)) if match["until"] else None


def _shown(day: date) -> tuple[str, date]:
    return day.isoformat(), day


def _key(table: Mapping[str, str], word: str) -> str:
    return next(value for name, value in table.items() if word.lower().startswith(name))


def _weekday(number: int, today: date, step: int | None) -> date:
    """A day of the week ``step`` weeks from this one; None: the first from ``today`` on."""
    if step is None:
        return today + timedelta((number - today.weekday()) % 7)
    return today - timedelta(today.weekday()) + timedelta(7 * step + number)


def _period(unit: str, step: int, today: date) -> tuple[str, date]:
    if unit == "week":
        first = _weekday(0, today, step)
        return f"{first}/{first + timedelta(6)}", first + timedelta(6)
    if unit == "year":
        return str(today.year + step), date(today.year + step, 12, 31)
    first = _later(today.replace(day=1), step, "month")
    return f"{first:%Y-%m}", first.replace(day=monthrange(first.year, first.month)[1])


def _later(day: date, number: int, unit: str) -> date:
    if unit in ("day", "week"):
        return day + timedelta(number * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 + number * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
