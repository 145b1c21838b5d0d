"""Answers that must be JSON of a schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from deerflow.errors import InvalidRequestError
from deerflow.models.thoughts import without_thoughts

MAX_SCHEMA = 100_000
"""Characters."""
MOST_REFERENCES = 10_000
"""Resolved for one answer: a short schema can refer to itself without end."""
PATTERN_SECONDS = 1.0
_UNSUPPORTED = ("patternProperties", "unevaluatedItems", "unevaluatedProperties", "$dynamicRef")


def json_in(answer: str) -> Any:
    """Return the JSON that an answer consists of, alone or in one code fence. Raises ValueError."""
    text = without_thoughts(answer).strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        text = text.partition("\n")[2][:-3]
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise InvalidRequestError if answers cannot be checked against a schema. Blocks: call it in a thread."""
    import regex
    from jsonschema import Draft202012Validator, SchemaError

    try:
        if len(json.dumps(schema)) > MAX_SCHEMA:
            raise InvalidRequestError(f"The JSON schema is longer than {MAX_SCHEMA:,} characters.")
        Draft202012Validator.check_schema(schema)
        for key, value in _entries(schema):
            if key in _UNSUPPORTED:
                raise InvalidRequestError(f"The JSON schema uses {key}, which is not supported here.")
            if key == "$ref" and isinstance(value, str) and not value.startswith("#"):
                raise InvalidRequestError(f"The JSON schema refers to {value!r}: use references within it (#/$defs/…).")
            if key == "pattern" and isinstance(value, str):
                regex.compile(value)
    except SchemaError as error:
        where = ".".join(map(str, error.absolute_path))
        raise InvalidRequestError(f"This is no JSON schema: {where or 'it'}: {error.message[:300]}") from error
    except regex.error as error:
        raise InvalidRequestError(f"The JSON schema holds a pattern that is none: {error}") from error
    except RecursionError as error:
        raise InvalidRequestError("The JSON schema is nested too deep.") from error


def problem_of(answer: str, schema: Mapping[str, Any]) -> str:
    """Return why an answer is not JSON of a schema; empty if it is. Blocks: call it in a thread."""
    from jsonschema import ValidationError
    from referencing.exceptions import Unresolvable

    try:
        content = json_in(answer)
    except ValueError as error:
        return f"The answer is not JSON: {error}. Answer with the JSON alone."
    try:
        _validator(schema).validate(content)
    except ValidationError as error:
        where = ".".join(map(str, error.absolute_path))
        return f"{where}: {error.message}"[:500] if where else error.message[:500]
    except (RecursionError, Unresolvable, TimeoutError) as error:
        return f"The answer cannot be checked against the schema: {str(error)[:200] or type(error).__name__}."
    return ""


def _validator(schema: Mapping[str, Any]) -> Any:
    """Return a validator that fetches nothing and comes to an end."""
    import regex
    from jsonschema import Draft202012Validator, ValidationError
    from jsonschema.validators import extend
    from referencing import Registry

    left, by_reference = MOST_REFERENCES, Draft202012Validator.VALIDATORS["$ref"]

    def reference(validator: Any, value: Any, instance: Any, within: Any) -> Iterator[Any]:
        nonlocal left
        left -= 1
        if left < 0:
            raise TimeoutError(f"more than {MOST_REFERENCES:,} references were followed")
        yield from by_reference(validator, value, instance, within)

    def pattern(_validator: Any, value: str, instance: Any, _within: Any) -> Iterator[Any]:
        if isinstance(instance, str) and not regex.search(value, instance, timeout=PATTERN_SECONDS):
            yield ValidationError(f"{instance[:100]!r} does not match {value!r}")

    bounded: Any = extend(Draft202012Validator, {"$ref": reference, "pattern": pattern})
    return bounded(schema, registry=Registry())


def _entries(schema: Any) -> Iterator[tuple[str, Any]]:
    """Yield every key of a schema, however deep, with what it stands for."""
    waiting = [schema]
    while waiting:
        here = waiting.pop()
        if isinstance(here, Mapping):
            yield from here.items()
            waiting += here.values()
        elif isinstance(here, list):
            waiting += here


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
