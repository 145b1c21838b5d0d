"""Calls written as text are read back as what they were."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deerflow.models.mindie_provider import decode, parse_calls, render_calls

NAMES = st.text("abcdefgh_", min_size=1, max_size=6)
STRINGS = {"type": "string"}


def named(text: str, **properties: Any) -> list[tuple[str, dict[str, Any]]]:
    found = parse_calls(text, {"f": {"properties": properties}} if properties else {})
    return [(call["name"], call["args"]) for call in found.tool_calls]


def wrap(value: str) -> str:
    return f"<tool_call>\n<function=f>\n<parameter=x>\n{value}\n</parameter>\n</function>\n</tool_call>"


@given(st.lists(st.tuples(NAMES, st.dictionaries(NAMES, st.text(max_size=30), max_size=3)), min_size=1, max_size=3))
def test_any_text_survives_the_round_trip(calls: list[tuple[str, dict[str, str]]]) -> None:
    schemas: dict[str, Any] = {}
    for name, args in calls:
        schemas.setdefault(name, {"properties": {}})["properties"].update(dict.fromkeys(args, STRINGS))
    rendered = render_calls([{"name": name, "args": args, "id": None} for name, args in calls])
    found = parse_calls(f"Before.\n{rendered}\nAfter.", schemas)
    assert [(call["name"], call["args"]) for call in found.tool_calls] == calls
    assert found.content.split() == ["Before.", "After."]
    assert found.invalid_tool_calls == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-7", -7),
        ("01", 1),
        ("007", 7),
        ("1.5", 1.5),
        ("-0.25", -0.25),
        ("1e3", 1000.0),
        ("true", True),
        ("False", False),
        ("null", None),
        ("None", None),
        ('{"a": [1]}', {"a": [1]}),
        ("[1, 2]", [1, 2]),
        ('"quoted"', "quoted"),
        ("{not json", "{not json"),
        ("1.2.3", "1.2.3"),
        ("1-2", "1-2"),
        ("word", "word"),
        ("", ""),
    ],
)
def test_without_a_schema_a_value_is_what_it_looks_like(text: str, value: Any) -> None:
    ((_, args),) = named(wrap(text))
    assert args == {"x": value}
    assert type(args["x"]) is type(value)


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (STRINGS, "01", "01"),
        (STRINGS, "true", "true"),
        (STRINGS, '{"a": 1}', '{"a": 1}'),
        ({"type": "integer"}, " 01 ", 1),
        ({"type": "integer"}, "many", "many"),
        ({"type": "number"}, "2.50", 2.5),
        ({"type": "number"}, "3", 3),
        ({"type": "boolean"}, "True", True),
        ({"type": "array", "items": STRINGS}, '["a"]', ["a"]),
        ({"type": "object"}, "{broken", "{broken"),
        ({"anyOf": [STRINGS, {"type": "null"}]}, "null", None),
        ({"anyOf": [STRINGS, {"type": "null"}]}, "12", "12"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "12", 12),
        ({"type": ["array", "string"]}, "[1]", [1]),
        ({"type": ["array", "string"]}, "plain", "plain"),
        ({"enum": ["1", "2"]}, "1", "1"),
    ],
)
def test_with_a_schema_a_value_is_what_was_asked_for(schema: dict[str, Any], text: str, value: Any) -> None:
    decoded = decode(text, schema)
    assert decoded == value
    assert type(decoded) is type(value)


def test_only_the_frame_of_a_value_is_dropped() -> None:
    assert named(wrap("\n  indented\n\n"), x=STRINGS) == [("f", {"x": "\n  indented\n\n"})]


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call><tool_call><function=f><parameter=x>1</parameter></function></tool_call></tool_call>",
        "<tool_call><function=f><parameter=x>1</parameter></tool_call>",
        "<tool_call><function=f><parameter=x>1</parameter></function>",
        "<tool_call>\n<function= f >\n<parameter= x >\n1\n</parameter>\n</function>\n</tool_call>",
    ],
)
def test_superfluous_and_missing_tags_are_forgiven(text: str) -> None:
    assert named(text) == [("f", {"x": 1})]


def test_a_value_may_hold_a_whole_call() -> None:
    inner = "<tool_call><function=g><parameter=y>2</parameter></function></tool_call>"
    assert named(wrap(inner), x=STRINGS) == [("f", {"x": inner})]


def test_a_call_without_parameters_is_a_call() -> None:
    assert named("<tool_call><function=f></function></tool_call>") == [("f", {})]


def test_half_a_command_is_never_run() -> None:
    found = parse_calls("Now:\n<tool_call><function=f><parameter=x>rm -rf /tmp/", {})
    assert found.tool_calls == []
    assert [(call["name"], "breaks off" in (call["error"] or "")) for call in found.invalid_tool_calls] == [("f", True)]
    assert found.content == "Now:"


@pytest.mark.parametrize(
    "text",
    ["", "plain", "a < b", "<tool_call>", "</tool_call>", "Say <function=f> to call.", "<tool_call></tool_call>"],
)
def test_text_without_calls_stays_as_it_is(text: str) -> None:
    found = parse_calls(text, {})
    assert (found.content, found.tool_calls, found.invalid_tool_calls) == (text, [], [])


@given(
    st.lists(
        st.sampled_from(
            ["<tool_call>", "</tool_call>", "<function=f>", "</function>", "<parameter=x>", "</parameter>", "t", "\n"]
        ),
        max_size=14,
    )
)
def test_no_text_breaks_the_parser(parts: list[str]) -> None:
    found = parse_calls("".join(parts), {})
    assert all(call["name"] == "f" and isinstance(call["args"], dict) for call in found.tool_calls)


def test_ids_are_new_each_time() -> None:
    calls = parse_calls(wrap("1") * 5, {}).tool_calls
    ids = {call["id"] for call in calls}
    assert len(ids) == 5
    assert all(id_ and len(id_) == 15 and id_.startswith("call_") for id_ in ids)
