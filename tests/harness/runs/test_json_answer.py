"""Checking an answer against a schema of a stranger fetches nothing and comes to its end."""

from __future__ import annotations

from typing import Any

import pytest

from deerflow.errors import InvalidRequestError
from deerflow.runs.json_answer import check_schema, json_in, problem_of

DOUBLING = {
    "$ref": "#/$defs/x39",
    "$defs": {"x0": {}} | {f"x{n}": {"allOf": [{"$ref": f"#/$defs/x{n - 1}"}] * 2} for n in range(1, 40)},
}


@pytest.mark.parametrize("answer", ['{"n": 1}', ' {"n": 1}\n', '```json\n{"n": 1}\n```', '<think>Hm.</think>{"n": 1}'])
def test_json_alone_or_in_a_fence_is_json(answer: str):
    assert json_in(answer) == {"n": 1}


@pytest.mark.parametrize("answer", ["", "Here: {}", "{'n': 1}", "NaN", "[" * 50_000, "```\n```"])
def test_anything_else_is_not(answer: str):
    assert "not JSON" in problem_of(answer, {})


@pytest.mark.parametrize(
    ("schema", "answer"),
    [
        ({"$ref": "#"}, "1"),
        (DOUBLING, "1"),
        ({"pattern": "^(a|a)+$"}, f'"{"a" * 40}!"'),
        ({"$ref": "#/$defs/missing"}, "1"),
    ],
)
def test_a_schema_without_end_is_given_up(schema: dict[str, Any], answer: str):
    check_schema(schema)
    assert "cannot be checked" in problem_of(answer, schema)


@pytest.mark.parametrize(
    "schema", [{"$ref": "http://127.0.0.1:9/x"}, {"patternProperties": {"a": {}}}, {"$dynamicRef": "#a"}, {"type": 1}]
)
def test_a_schema_that_leads_elsewhere_is_refused(schema: dict[str, Any]):
    with pytest.raises(InvalidRequestError):
        check_schema(schema)


def test_the_place_of_a_fault_is_named():
    schema = {"properties": {"a": {"items": {"type": "integer"}}, "b": {"pattern": "^x"}}, "required": ["a"]}
    check_schema(schema)
    assert problem_of('{"a": [1, "2"]}', schema).startswith("a.1: '2' is not of type")
    assert problem_of('{"a": [], "b": "y"}', schema) == "b: 'y' does not match '^x'"
    assert problem_of('{"a": [1], "b": "xy"}', schema) == ""
