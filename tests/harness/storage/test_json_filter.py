from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import insert, select

from deerflow.storage.database import Database
from deerflow.storage.json_filter import matches
from deerflow.storage.tables import store_items, utc_now

VALUES: list[dict[str, Any]] = [
    {},
    {"a": None},
    {"a": 1},
    {"a": 1.0},
    {"a": 1.5},
    {"a": -3},
    {"a": True},
    {"a": False},
    {"a": "1"},
    {"a": ""},
    {"a": "zebra"},
    {"a": "Äpfel"},
    {"a": []},
    {"a": [1, 2]},
    {"a": [1, 2, 3]},
    {"a": [{"b": 1, "c": 2}]},
    {"a": {}},
    {"a": {"b": 1}},
    {"a": {"b": 1, "c": [True]}},
    {"a": {"b": None}},
    {"a": {"0": 5}},
    {"a.b": 7, "x y": "it's", "100%": "_"},
]
NUMBERS = (int, float)


def kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    return "number" if isinstance(value, NUMBERS) else type(value).__name__


def same(left: Any, right: Any) -> bool:
    if kind(left) != kind(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


def compare(value: Any, operator: str, operand: Any) -> bool:
    if operator in ("$eq", "$ne"):
        return same(value, operand) == (operator == "$eq")
    if kind(value) != kind(operand) or kind(value) not in ("number", "str"):
        return False
    left, right = (value, operand) if kind(value) == "number" else (value.encode(), operand.encode())
    return {"$gt": left > right, "$gte": left >= right, "$lt": left < right, "$lte": left <= right}[operator]


def like(value: Any, wanted: Any) -> bool:
    """The promise of ``matches``, in Python."""
    if isinstance(wanted, dict):
        if any(key.startswith("$") for key in wanted):
            return all(compare(value, operator, operand) for operator, operand in wanted.items())
        return isinstance(value, dict) and all(like(value.get(key), item) for key, item in wanted.items())
    if isinstance(wanted, list):
        return isinstance(value, list) and len(value) == len(wanted) and all(map(like, value, wanted))
    return same(value, wanted)


OPERANDS: list[Any] = [
    None,
    0,
    1,
    1.0,
    2,
    True,
    False,
    "",
    "1",
    "zz",
    "Z",
    [],
    [1, 2],
    {},
    {"b": 1},
    {"b": 1, "c": [True]},
]
FILTERS: list[dict[str, Any]] = [
    {},
    {"a.b": 7},
    {"x y": "it's", "100%": "_"},
    {"missing": None},
    {"missing": {"$ne": 1}},
    {"a": {"b": None}},
    {"a": {"0": 5}},
    {"a": [{"b": 1}]},
    {"a": [1, {"$eq": 2}]},
    {"a": {"b": {"$gte": 1}}},
    {"a": {"$gt": 0, "$lt": 1.2}},
    *({"a": operand} for operand in OPERANDS),
    *({"a": {op: operand}} for op in ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte") for operand in OPERANDS),
]


async def test_every_filter_means_the_same_on_both_databases(database: Database) -> None:
    now = utc_now()
    rows = [
        {"user_id": "u", "namespace": "n", "key": str(i), "value": value, "created_at": now, "updated_at": now}
        for i, value in enumerate(VALUES)
    ]
    await database.write(lambda c: c.execute(insert(store_items), rows))

    def found(c: Any) -> list[list[int]]:
        return [
            sorted(
                int(key)
                for key in c.scalars(
                    select(store_items.c.key).where(matches(c, store_items.c.value, wanted, operators=True))
                )
            )
            for wanted in FILTERS
        ]

    expected = [[i for i, value in enumerate(VALUES) if like(value, wanted)] for wanted in FILTERS]
    got = await database.read(found)
    assert [(f, g) for f, g in zip(FILTERS, got, strict=True)] == [
        (f, e) for f, e in zip(FILTERS, expected, strict=True)
    ]


UNFIT: list[dict[str, Any]] = [
    {"a": {"$regex": "x"}},
    {'a"': 1},
    {"a\\": 1},
    {"a\n": 1},
    {"a": 2**70},
    {"a": "\0"},
    {"a": {"$eq": {"b": ["\0"]}}},
    {"a": {"$gt": 1, "b": 2}},
]


async def test_what_cannot_be_searched_for_is_refused(database: Database) -> None:
    for wanted in UNFIT:
        with pytest.raises(ValueError):
            await database.read(
                lambda c: c.execute(select(store_items).where(matches(c, store_items.c.value, wanted, operators=True)))  # noqa: B023
            )


async def test_without_operators_a_dollar_is_a_letter(database: Database) -> None:
    now = utc_now()
    row = {
        "user_id": "u",
        "namespace": "n",
        "key": "k",
        "value": {"a": {"$gt": 1}},
        "created_at": now,
        "updated_at": now,
    }
    await database.write(lambda c: c.execute(insert(store_items), [row]))
    found = await database.read(
        lambda c: c.execute(select(store_items.c.key).where(matches(c, store_items.c.value, {"a": {"$gt": 1}}))).all()
    )
    assert len(found) == 1
