"""Writing settings back loses nothing and reveals nothing."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from deerflow.config import DELETE, MASK, ConfigError, edit_json, edit_yaml, load_config, mask_secrets

YAML = """\
# Head of the file.
config_version: 9

models:            # the models
    - name: 'first'   # my favourite
      use: "a:B"
      model: x
      api_key: $KEY
    - {name: second, use: a:C, model: y}

# About titles.
title:
  max_words: 5  # short
mine: {kept: [1, 2]}
when: 2026-11-21
on: yes
# The end.
"""
JSON: dict[str, Any] = {
    "mcpServers": {
        "git": {
            "enabled": True,
            "env": {"TOKEN": "$TOKEN", "PLAIN": "sk-plain"},
            "args": ["--key", "${TOKEN}"],
            "custom": 1,
        }
    },
    "mcpInterceptors": ["a:b"],
    "mine": {"x": 1},
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "config.yaml"
    file.write_text(YAML)
    return file


@pytest.fixture
def extensions(tmp_path: Path) -> Path:
    file = tmp_path / "extensions_config.json"
    file.write_text(json.dumps(JSON))
    return file


# YAML --------------------------------------------------------------------------------------------------------------------


def test_only_the_edited_line_changes(file: Path) -> None:
    edit_yaml(file, {"title": {"max_words": 8}})
    assert file.read_text() == YAML.replace("max_words: 5 ", "max_words: 8 ")


def test_an_edit_that_changes_nothing_writes_nothing(file: Path) -> None:
    before = file.stat()
    edit_yaml(file, {"title": {"max_words": 5}, "models": yaml.safe_load(YAML)["models"]})
    assert file.stat().st_ino == before.st_ino
    assert file.read_text() == YAML


def test_lists_keep_the_comments_of_entries_that_stay(file: Path) -> None:
    models = yaml.safe_load(YAML)["models"]
    edit_yaml(file, {"models": [*models, {"name": "third", "use": "a:D", "model": "z"}]})
    text = file.read_text()
    assert "- name: 'first'   # my favourite" in text
    assert [model["name"] for model in yaml.safe_load(text)["models"]] == ["first", "second", "third"]


def test_keys_are_added_and_removed(file: Path) -> None:
    edit_yaml(file, {"title": DELETE, "memory": {"enabled": False}, "mine": {"kept": DELETE, "new": "a"}})
    data = yaml.safe_load(file.read_text())
    assert "title" not in data
    assert data["memory"] == {"enabled": False}
    assert data["mine"] == {"new": "a"}
    assert "# Head of the file." in file.read_text()


def test_a_file_of_comments_keeps_them(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("# only\n# comments\n")
    edit_yaml(file, {"title": {"max_words": 3}})
    assert file.read_text().startswith("# only\n# comments\n")
    assert yaml.safe_load(file.read_text()) == {"title": {"max_words": 3}}


@pytest.mark.parametrize(
    "value",
    [
        "yes",
        "no",
        "on",
        "~",
        "null",
        "1_0",
        "0x1f",
        "12:30:45",
        "1e3",
        "2026-11-21",
        "",
        " a",
        "a: b",
        "#x",
        "$KEY",
        "é\n\tx",
        "=",
        "<<",
        "- a",
    ],
)
def test_text_is_read_back_as_the_same_text(file: Path, value: str) -> None:
    edit_yaml(file, {"mine": {"value": value}, "list": [value]})
    data = load_config(file, environ={"KEY": "k"}, cwd=file.parent).model_extra or {}
    expected = "k" if value == "$KEY" else value
    assert data["mine"]["value"] == expected
    assert data["list"] == (expected,)


def test_references_are_written_as_they_are_and_resolved_values_never(file: Path) -> None:
    config = load_config(file, environ={"KEY": "sk-secret"}, cwd=file.parent)
    shown = [{**model.settings(), "name": model.name, "use": model.use} for model in config.models]
    edit_yaml(file, {"models": shown}, environ={"KEY": "sk-secret"})
    assert "sk-secret" not in file.read_text()
    assert "$KEY" in file.read_text()


def test_a_file_with_anchors_is_not_damaged(file: Path) -> None:
    file.write_text("base: &b {x: 1}\ncopy: *b\nmerged:\n  <<: *b\n  y: 2\n")
    before = file.read_text()
    edit_yaml(file, {"title": {"max_words": 3}})
    assert file.read_text().startswith(before)
    with pytest.raises(ConfigError, match="by hand"):
        edit_yaml(file, {"copy": {"x": 2}})


def test_a_broken_file_is_not_touched(file: Path) -> None:
    file.write_text("a: [")
    with pytest.raises(ConfigError):
        edit_yaml(file, {"b": 1})
    assert file.read_text() == "a: ["


keys = st.sampled_from(["a", "b", "title", "on", "1", "null"])
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Co"]), max_size=6)
)
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=8
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(keys, trees, max_size=4))
def test_what_is_written_is_what_is_read(tmp_path_factory: pytest.TempPathFactory, tree: dict[str, Any]) -> None:
    from deerflow.config.document import parse_yaml

    file = tmp_path_factory.mktemp("edit") / "config.yaml"
    file.write_text("# head\nold: 'value'  # why\n")
    edit_yaml(file, tree)
    assert parse_yaml(file.read_text(), file).data == {"old": "value", **tree}
    assert "# head\nold: 'value'  # why\n" in file.read_text()


# JSON --------------------------------------------------------------------------------------------------------------------


def test_toggling_a_skill_keeps_references_unknown_keys_and_interceptors(extensions: Path) -> None:
    edit_json(extensions, {"skills": {"pdf": {"enabled": False}}})
    assert json.loads(extensions.read_text()) == {**JSON, "skills": {"pdf": {"enabled": False}}}


def test_a_form_may_send_back_what_it_was_shown(extensions: Path) -> None:
    environ = {"TOKEN": "sk-secret"}
    servers = json.loads(
        load_config(
            extensions_path=extensions, environ=environ, cwd=extensions.parent, probe=lambda *_: ()
        ).extensions.model_dump_json()
    )["mcp_servers"]
    assert servers["git"]["env"]["TOKEN"] == "sk-secret"
    for shown in (servers, mask_secrets(servers), mask_secrets(JSON["mcpServers"])):
        edit_json(
            extensions,
            {
                "mcpServers": {
                    "git": {
                        "env": {"TOKEN": shown["git"]["env"]["TOKEN"]},
                        "args": shown["git"]["args"],
                        "enabled": False,
                    }
                }
            },
            environ=environ,
        )
        written = json.loads(extensions.read_text())["mcpServers"]["git"]
        assert written == {**JSON["mcpServers"]["git"], "enabled": False}


def test_a_masked_secret_leaves_the_secret_and_a_new_one_replaces_it(extensions: Path) -> None:
    change = {"mcpServers": {"git": {"env": {"API_KEY": "sk-old"}}}}
    edit_json(extensions, change)
    edit_json(extensions, {"mcpServers": {"git": {"env": {"API_KEY": MASK}}}})
    assert json.loads(extensions.read_text())["mcpServers"]["git"]["env"]["API_KEY"] == "sk-old"
    edit_json(extensions, {"mcpServers": {"git": {"env": {"API_KEY": "sk-new"}}}})
    assert json.loads(extensions.read_text())["mcpServers"]["git"]["env"]["API_KEY"] == "sk-new"


def test_a_change_may_be_computed_from_the_file_as_written(extensions: Path) -> None:
    edit_json(extensions, lambda data: {"mcpServers": {name: DELETE for name in data["mcpServers"]}})
    assert json.loads(extensions.read_text())["mcpServers"] == {}


def test_a_file_that_is_not_there_is_made_for_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "new" / "extensions_config.json"
    edit_json(file, {"skills": {}})
    assert json.loads(file.read_text()) == {"skills": {}}
    assert file.stat().st_mode & 0o777 == 0o600


# files -------------------------------------------------------------------------------------------------------------------


def test_the_mode_of_the_file_stays_and_nothing_is_left_behind(file: Path) -> None:
    file.chmod(0o640)
    edit_yaml(file, {"mine": 1})
    assert file.stat().st_mode & 0o777 == 0o640
    assert [entry.name for entry in file.parent.iterdir()] == ["config.yaml"]


def test_a_link_stays_a_link(file: Path) -> None:
    link = file.with_name("link.yaml")
    link.symlink_to(file)
    edit_yaml(link, {"mine": 1})
    assert link.is_symlink()
    assert yaml.safe_load(file.read_text())["mine"] == 1


def test_a_failed_write_leaves_the_file_as_it_was(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        edit_yaml(file, {"mine": 1})
    assert file.read_text() == YAML
    assert [entry.name for entry in file.parent.iterdir()] == ["config.yaml"]


def test_a_file_mounted_by_itself_is_written_in_place(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(self: Path, target: Path) -> None:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(Path, "replace", busy)
    edit_yaml(file, {"mine": 1})
    assert yaml.safe_load(file.read_text())["mine"] == 1


def test_edits_at_the_same_time_are_all_kept(extensions: Path) -> None:
    threads = [
        threading.Thread(target=edit_json, args=(extensions, {"skills": {f"s{n}": {"enabled": False}}}))
        for n in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(json.loads(extensions.read_text())["skills"]) == 12
