"""Whatever is in a file, the answer is data or a ConfigError."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deerflow.config import ConfigError, load_config
from deerflow.config.document import parse_json, parse_yaml

FILE = Path("config.yaml")
ALIAS_BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdef", "bcdefg", strict=True)
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 200_000, "nested more than"),
        ("a: " + "{a: " * 500, "nested more than"),
        ("a: &x [*x]", "contains itself"),
        (ALIAS_BOMB, "more than 100000 values"),
        ("a: 1\nb: 2\na: 3", "config.yaml:3: a: is there twice, first on line 1"),
        ("models:\n  - name: x\n    name: y", "config.yaml:3: models[0].name"),
        ("- 1", "should hold keys and values, but holds a list"),
        ("just text", "but holds text"),
        ("a:\n\t- b", "config.yaml:2"),
        ("a: b: c", "Put text that holds ': ' in quotes"),
        ("a: 1\n---\nb: 2", "config.yaml:2"),
        ("a: !!python/object:os.system x", "config.yaml:1"),
        ("a: !!binary aGk=", "not supported"),
        ("a: !!set {x}", "config.yaml:1: a: tag:yaml.org,2002:set is not supported"),
        ("a: !!bool x", "config.yaml:1: a: 'x' is no bool"),
        ("? [a]\n: 1", "a key must be text"),
        ("a: !!int foo", "config.yaml:1: a: 'foo' is no int"),
        ("x: \x00", "config.yaml"),
        ("<<: 5", "needs a mapping"),
    ],
)
def test_broken_yaml_is_explained(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, FILE)
    assert words in str(caught.value)


def test_yaml_is_read_as_its_authors_mean_it() -> None:
    document = parse_yaml(
        "base: &b {x: 1, y: 2}\non: yes\noff: no\nday: 2026-11-21\ncopy:\n  <<: *b\n  y: 3\n8: a\nn: ~\nq: '1'\n", FILE
    )
    assert document.data == {
        "base": {"x": 1, "y": 2},
        "on": True,
        "off": False,
        "day": "2026-11-21",
        "copy": {"x": 1, "y": 3},
        "8": "a",
        "n": None,
        "q": "1",
    }
    assert document.line(("copy", "y")) == 7
    assert document.line(("copy", "z", 0)) == 5


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n", "~"])
def test_an_empty_file_is_an_empty_mapping(text: str) -> None:
    assert parse_yaml(text, FILE).data == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1,}', ":1: not valid JSON"),
        ("\n[1]", "should hold an object, but holds a list"),
        ("{'a': 1}", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ('{"a": 1' + "0" * 5000 + "}", "not valid JSON"),
        ("null", "should hold an object"),
    ],
)
def test_broken_json_is_explained(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_json(text, Path("extensions_config.json"))
    assert words in str(caught.value)


keys = st.sampled_from(
    [
        "models",
        "tools",
        "sandbox",
        "network",
        "name",
        "use",
        "memory",
        "title",
        "subagents",
        "agents",
        "channels",
        "database",
        "config_version",
        "x",
    ]
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["$A", "${A}", "${A:-1}", "", "sqlite", "none"])
    | st.text(max_size=5)
)
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
)


@settings(max_examples=200)
@given(st.dictionaries(keys, trees, max_size=5), st.dictionaries(st.just("A"), st.text(max_size=3)))
def test_any_document_loads_or_is_refused_with_a_config_error(
    tmp_path_factory: pytest.TempPathFactory, tree: dict, environ: dict
) -> None:
    import yaml

    file = tmp_path_factory.mktemp("any") / "config.yaml"
    file.write_text(yaml.safe_dump(tree), encoding="utf-8")
    try:
        config = load_config(file, environ=environ, cwd=file.parent, probe=lambda *_: ())
    except ConfigError as error:
        assert error.problems
    else:
        assert config.id == load_config(file, environ=environ, cwd=file.parent, probe=lambda *_: ()).id


@settings(max_examples=300)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
@example("a: 0b")
@example("a: 1:99999999999999999999:1")
@example("a: 0x")
@example("a: .inf\nb: -.nan")
@example("%YAML 3.0\n--- a")
@example("&a *a")
@example("? ")
@example("a: !!float x")
@example("a: !!timestamp x")
@example("a: !!null x")
@example("a: !!bool x")
@example("!!str\na: 1")
def test_any_text_is_data_or_a_config_error(text: str) -> None:
    for parse in (parse_yaml, parse_json):
        try:
            assert isinstance(parse(text, FILE).data, dict)
        except ConfigError as error:
            assert str(error)
