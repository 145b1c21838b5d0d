from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deerflow.config import ConfigError, MissingEnv, is_secret_key, mask_secrets, missing_in, require
from deerflow.config.env import has_reference, resolve, resolve_tree
from deerflow.config.section import frozen, thawed

ENV = {"NAME": "value", "EMPTY": "", "DOLLAR": "$NAME ${NAME} $$"}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("$NAME", "value"),
        ("${NAME}", "value"),
        ("Bearer ${NAME}!", "Bearer value!"),
        ("${NAME}/${NAME}", "value/value"),
        ("${NOPE:-default}", "default"),
        ("${NOPE:-}", ""),
        ("${EMPTY:-default}", "default"),
        ("${NAME:-default}", "value"),
        ("${NOPE:-http://h:1/a}", "http://h:1/a"),
        ("$EMPTY", ""),
        ("${EMPTY}", ""),
        ("$$NAME", "$NAME"),
        ("$${NAME}", "${NAME}"),
        ("a$$b", "a$b"),
        ("$", "$"),
        ("Bearer $NAME", "Bearer $NAME"),
        ("$5 a month", "$5 a month"),
        ("${}", "${}"),
        ("${NAME", "${NAME"),
        ("${NAME-x}", "${NAME-x}"),
        ("$DOLLAR", "$NAME ${NAME} $$"),
        ("x${DOLLAR}", "x$NAME ${NAME} $$"),
        ("", ""),
    ],
)
def test_references_are_replaced_once(written: str, read: str) -> None:
    assert resolve(written, ENV) == read


@pytest.mark.parametrize(
    ("written", "variables"), [("$NOPE", ("NOPE",)), ("a${NOPE}b${ALSO}${NOPE}", ("NOPE", "ALSO"))]
)
def test_a_missing_variable_leaves_a_marker_that_names_it(written: str, variables: tuple[str, ...]) -> None:
    value = resolve(written, ENV, key="a.b")
    assert isinstance(value, MissingEnv)
    assert value == written
    assert value.variables == variables
    with pytest.raises(ConfigError) as caught:
        require(value)
    assert all(name in str(caught.value) for name in variables)
    assert "a.b" in str(caught.value)
    assert pickle.loads(pickle.dumps(value)).variables == variables


def test_references_are_replaced_in_lists_and_mappings() -> None:
    data = {"args": ["$NAME", {"k": "${NOPE}"}], "n": 1, "t": None}
    resolved = resolve_tree(data, ENV)
    assert resolved == {"args": ["value", {"k": "${NOPE}"}], "n": 1, "t": None}
    assert [missing.key for missing in missing_in(resolved)] == ["args[1].k"]


@given(st.text())
def test_escaped_text_is_read_as_it_is(text: str) -> None:
    assert resolve(text.replace("$", "$$"), {}) == text


@given(st.text(alphabet="$A{}:-x"), st.dictionaries(st.sampled_from(["A", "x", "AA"]), st.text(alphabet="$A{}")))
def test_reading_never_fails_and_text_without_references_only_loses_escapes(text: str, environ: dict[str, str]) -> None:
    value = resolve(text, environ)
    if not has_reference(text):
        assert value == (text if "$$" not in text else text.replace("$$", "$"))


trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(trees)
def test_freezing_and_thawing_loses_nothing(tree: Any) -> None:
    assert thawed(frozen(tree)) == tree


@given(trees)
def test_a_tree_without_missing_variables_can_be_required(tree: Any) -> None:
    resolved = resolve_tree(tree, {})
    if not list(missing_in(resolved)):
        assert require(resolved) == resolved


@pytest.mark.parametrize(
    "name",
    [
        "api_key",
        "gemini_api_key",
        "OPENAI_API_KEY",
        "apiKey",
        "X-Api-Key",
        "token",
        "bot_token",
        "SLACK_BOT_TOKEN",
        "client_secret",
        "AWS_SECRET_ACCESS_KEY",
        "password",
        "Authorization",
        "postgres_url",
        "postgres_direct_url",
        "connection_string",
        "refresh_token",
    ],
)
def test_names_of_secrets_are_known(name: str) -> None:
    assert is_secret_key(name)


@pytest.mark.parametrize(
    "name",
    [
        "max_tokens",
        "token_url",
        "token_field",
        "trim_tokens_to_summarize",
        "public_key",
        "model",
        "keep",
        "max_injection_tokens",
        "keyboard",
    ],
)
def test_other_names_are_no_secrets(name: str) -> None:
    assert not is_secret_key(name)


def test_masking_hides_secrets_and_keeps_the_rest() -> None:
    shown = mask_secrets(
        {
            "api_key": "sk-1",
            "env": {"TOKEN": "$TOKEN", "A": "b"},
            "args": ["postgres://u:pw@h/d"],
            "password": "",
            "n": 1,
        }
    )
    assert shown == {
        "api_key": "********",
        "env": {"TOKEN": "$TOKEN", "A": "b"},
        "args": ["postgres://u:********@h/d"],
        "password": "",
        "n": 1,
    }
