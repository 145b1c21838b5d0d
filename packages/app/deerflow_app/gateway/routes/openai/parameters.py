"""Parameters of OpenAI's API: those that would change what the client gets, and have no effect here, are refused by their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from deerflow.errors import RequestError

AGENT = "The agent has tools and settings of its own."
_NAME = re.compile(r"\w{1,64}", re.ASCII)
_MOST_NAMES = 20
IGNORED = "X-DeerFlow-Ignored"
"""Header of answers: the parameters of the request that had no effect."""


class ParameterError(RequestError):
    """A parameter that cannot be granted."""

    code = "unsupported_parameter"

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}", param=name)


def _is_forced(choice: Any) -> bool:
    return choice not in ("auto", "none")


def _has_logprobs(included: Any) -> bool:
    return any("logprobs" in str(each) for each in included) if isinstance(included, list) else bool(included)


_REFUSED: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "n": (lambda n: n != 1, "an agent gives one answer. Send n = 1, or ask again."),
    "tool_choice": (_is_forced, f"no call can be forced. {AGENT} Send 'auto', 'none', or leave it out."),
    "function_call": (_is_forced, f"no call can be forced. {AGENT} Send 'auto', 'none', or leave it out."),
    "stop": (bool, "answers are not cut at a text. Leave it out."),
    "logprobs": (bool, "there are no probabilities of tokens. Leave it out."),
    "top_logprobs": (bool, "there are no probabilities of tokens. Leave it out."),
    "include": (_has_logprobs, "there are no probabilities of tokens. Leave them out."),
    "logit_bias": (bool, "tokens cannot be weighted. Leave it out."),
    "modalities": (lambda given: given != ["text"], "answers are text. Send ['text'], or leave it out."),
    "audio": (bool, "answers are text. Leave it out."),
    "prompt": (bool, "there are no stored prompts. Send the text itself."),
}


def check_parameters(given: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the header that names the parameters without effect. Raises ParameterError for one that would be missed.

    Args:
        given: what the route does not know, by name.
    """
    sent = {name: value for name, value in (given or {}).items() if value is not None}
    for name, value in sent.items():
        if name in _REFUSED and _REFUSED[name][0](value):
            raise ParameterError(name, _REFUSED[name][1])
    names = [name for name in sent if name not in _REFUSED and _NAME.fullmatch(name)]
    return {IGNORED: ", ".join(names[:_MOST_NAMES])} if names else {}


def schema_of(given: Mapping[str, Any] | None, name: str) -> dict[str, Any] | None:
    """Return the JSON schema that an answer must have; None: it may be any text.

    Args:
        given: ``response_format`` of chat completions, ``text.format`` of responses.
        name: of the parameter.

    Raises:
        ParameterError: there is no such format.
    """
    kind = (given or {}).get("type", "text")
    if given is None or kind == "text":
        return None
    if kind == "json_object":
        return {"type": "object"}
    if kind != "json_schema":
        raise ParameterError(f"{name}.type", f"{kind!r} is not supported. Use text, json_object or json_schema.")
    inner = given.get("json_schema", given)
    schema = inner.get("schema") if isinstance(inner, Mapping) else None
    if not isinstance(schema, dict):
        raise ParameterError(name, "json_schema needs a schema, which is an object.")
    return schema
