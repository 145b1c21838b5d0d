from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from deerflow.config import CONFIG_VERSION, ConfigError, example_file, load_config, upgrade_config

OLD = """\
# mine
config_version: "0"   # long ago
models:
    - name: 'm'      # the model
      use: src.models.patched_openai:PatchedChatOpenAI
      model: x
      api_key: $KEY
#   - use: src.models.vllm_provider:VllmChatModel
sandbox:
  use: "src.sandbox.local:LocalSandboxProvider"
  image: registry/src.models.x   # text that only looks like it
tools:
- name: bash
  group: bash
  use: src.sandbox.tools:bash_tool
mine: {a: 1}
"""
EXAMPLE = "config_version: 3\nlog_level: info\nsandbox:\n  use: auto\n  limits: {cpu_seconds: 5}\ntools: [{name: other}]\nnew:\n  deep: {x: 'yes'}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "config.yaml"
    file.write_text(OLD)
    return file


@pytest.fixture
def example(tmp_path: Path) -> Path:
    example = tmp_path / "example" / "config.example.yaml"
    example.parent.mkdir()
    example.write_text(EXAMPLE)
    return example


def test_old_paths_are_migrated_and_everything_else_stays(file: Path, example: Path) -> None:
    report = upgrade_config(file, example=example)
    text = file.read_text()
    for kept in (
        "# mine",
        "# long ago",
        "- name: 'm'      # the model",
        "api_key: $KEY",
        "mine: {a: 1}",
        '"deerflow.sandbox.local:LocalSandboxProvider"',
    ):
        assert kept in text
    assert "#   - use: deerflow.models.vllm_provider:VllmChatModel" in text
    assert "use: deerflow.models.patched_openai:PatchedChatOpenAI" in text
    assert "use: deerflow.sandbox.tools:bash_tool" in text
    assert report.changed
    assert (report.old_version, report.new_version) == (0, 3)
    assert len(report.migrated) == 1


def test_missing_mapping_keys_are_added_and_lists_and_values_stay(file: Path, example: Path) -> None:
    report = upgrade_config(file, example=example)
    data = yaml.safe_load(file.read_text())
    assert report.added == ("log_level", "sandbox.limits", "new")
    assert data["config_version"] == 3
    assert data["sandbox"]["limits"] == {"cpu_seconds": 5}
    assert data["sandbox"]["use"] == "deerflow.sandbox.local:LocalSandboxProvider"
    assert [tool["name"] for tool in data["tools"]] == ["bash"]
    assert data["new"] == {"deep": {"x": "yes"}}


def test_the_old_file_is_kept_and_older_backups_are_not_overwritten(file: Path, example: Path) -> None:
    file.chmod(0o600)
    for number, name in enumerate(("config.yaml.bak", "config.yaml.bak1", "config.yaml.bak2")):
        old = OLD + f"n: {number}\n"
        file.write_text(old)
        report = upgrade_config(file, example=example)
        assert report.backup is not None
        assert report.backup == file.with_name(name)
        assert report.backup.read_text() == old
        assert report.backup.stat().st_mode & 0o777 == 0o600


def test_a_current_file_is_not_touched(file: Path, example: Path) -> None:
    file.write_text("config_version: 3  # now\n")
    report = upgrade_config(file, example=example)
    assert not report.changed
    assert report.backup is None
    assert file.read_text() == "config_version: 3  # now\n"
    assert [entry.name for entry in file.parent.iterdir() if entry.is_file()] == ["config.yaml"]


@pytest.mark.parametrize(
    ("text", "version"),
    [("log_level: debug  # loud\n", 0), ("# nothing\n", 0), ("config_version: '2'\n", 2), ("config_version: x\n", 0)],
)
def test_a_version_may_be_absent_or_text(file: Path, example: Path, text: str, version: int) -> None:
    file.write_text(text)
    report = upgrade_config(file, example=example)
    assert report.old_version == version
    assert yaml.safe_load(file.read_text())["config_version"] == 3
    assert all(line in file.read_text() for line in text.splitlines() if "config_version" not in line)


def test_an_upgrade_is_done_once(file: Path, example: Path) -> None:
    upgrade_config(file, example=example)
    text = file.read_text()
    assert not upgrade_config(file, example=example).changed
    assert file.read_text() == text


def test_a_broken_file_is_left_alone(file: Path, example: Path) -> None:
    file.write_text("a: [")
    with pytest.raises(ConfigError):
        upgrade_config(file, example=example)
    assert file.read_text() == "a: ["
    with pytest.raises(FileNotFoundError):
        upgrade_config(file.with_name("nope.yaml"))


def test_the_shipped_example_brings_a_file_to_the_current_version(file: Path) -> None:
    assert yaml.safe_load(example_file().read_text())["config_version"] == CONFIG_VERSION
    upgrade_config(file)
    config = load_config(file, environ={"KEY": "k"}, cwd=file.parent)
    assert config.config_version == CONFIG_VERSION
    assert config.origin.warnings == ()
    assert config.models[0].settings()["api_key"] == "k"
