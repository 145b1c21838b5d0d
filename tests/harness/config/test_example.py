"""What we ship and what we document can be used as it stands."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from deerflow.config import AppConfig, ExtensionsConfig, example_file, load_config
from deerflow.config.section import Section, thawed

ROOT = Path(__file__).parents[3]
EXAMPLE = example_file()
DOCUMENT = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
PAGES = {page.name: page.read_text(encoding="utf-8") for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]}
BLOCKS = [
    (page, kind, text)
    for page, whole in sorted(PAGES.items())
    for kind, text in re.findall(r"^```(yaml|json)\n(.*?)^```", whole, re.DOTALL | re.MULTILINE)
    if kind == "yaml" or page == "configuration.md"
]
NO_EFFECT_YET = {
    "run_events", "checkpointer",
}  # fmt: skip
EXAMPLES_ONLY = {
    ("sandbox", "mounts"),
    ("sandbox", "environment"),
    ("subagents", "agents"),
    ("subagents", "custom_agents"),
    ("summarization", "trigger"),
    ("guardrails", "provider"),
    ("guardrails", "unattended"),
}


def uncommented(text: str) -> str:
    return re.sub(r"(?m)^#(?=[^\s#]|  )", "", text)


def load(folder: Path, text: str, **environ: str) -> AppConfig:
    file = folder / "config.yaml"
    file.write_text(text, encoding="utf-8")
    return load_config(file, environ=environ, cwd=folder, probe=lambda *_: ())


@pytest.fixture
def everything(tmp_path: Path) -> AppConfig:
    return load(tmp_path, uncommented(EXAMPLE.read_text(encoding="utf-8")))


def test_the_example_is_the_checkouts() -> None:
    assert EXAMPLE == ROOT / "config.example.yaml"


def test_the_example_loads_as_shipped_and_changes_no_default(tmp_path: Path) -> None:
    config = load(tmp_path, EXAMPLE.read_text(encoding="utf-8"))
    assert config.origin.warnings == ()
    assert (
        config.model_copy(update={"config_version": 0}).id
        == load_config(environ={}, cwd=tmp_path / "nowhere", probe=lambda *_: ()).id
    )


def test_the_example_loads_with_everything_switched_on(everything: AppConfig) -> None:
    named = [warning.rstrip(".").split(": ")[1:3] for warning in everything.origin.warnings]
    assert named == [[name, "has no effect here"] for name in ("checkpointer", "run_events", "stream_bridge")]


def test_the_example_names_every_section(everything: AppConfig, tmp_path: Path) -> None:
    from deerflow.config.document import parse_yaml

    written = parse_yaml(uncommented(EXAMPLE.read_text(encoding="utf-8")), EXAMPLE).data
    assert set(written) == set(AppConfig.model_fields) - {"extensions"}
    for name, value in written.items():
        section = getattr(everything, name)
        if isinstance(section, Section):
            ours = set(type(section).model_fields) - ({"prompt_template"} if name == "title" else set())
            assert set(value) == ours, name


def test_the_example_shows_the_defaults(everything: AppConfig, tmp_path: Path) -> None:
    default = load_config(environ={}, cwd=tmp_path / "nowhere", probe=lambda *_: ())
    for name in set(AppConfig.model_fields) - {
        "models",
        "tools",
        "acp_agents",
        "capabilities",
        "checkpointer",
        "channels",
        "channel_connections",
        "extensions",
        "config_version",
    }:
        shown, usual = getattr(everything, name), getattr(default, name)
        if isinstance(shown, Section):
            for key in set(type(shown).model_fields) - {key for section, key in EXAMPLES_ONLY if section == name}:
                assert getattr(shown, key) == getattr(usual, key), f"{name}.{key}"
        else:
            assert thawed(shown) == thawed(usual), name


def test_the_examples_tools_begin_with_the_default_ones(everything: AppConfig) -> None:
    default = AppConfig().tools
    assert [(tool.name, tool.group, tool.use) for tool in everything.tools[: len(default)]] == [
        (tool.name, tool.group, tool.use) for tool in default
    ]


def test_the_example_of_extensions_loads_with_nothing_switched_on(tmp_path: Path) -> None:
    extensions = load_config(
        extensions_path=ROOT / "extensions_config.example.json", environ={}, cwd=tmp_path, probe=lambda *_: ()
    ).extensions
    assert extensions.enabled_mcp_servers == {}
    assert len(extensions.mcp_servers) >= 3
    assert {"skills", "mcpServers", "mcpInterceptors"} == set(
        json.loads((ROOT / "extensions_config.example.json").read_text())
    )


def test_no_file_tells_a_secret_or_a_machine() -> None:
    for text in (EXAMPLE.read_text(encoding="utf-8"), DOCUMENT):
        assert not re.search(r"sk-[A-Za-z0-9]{8}|/home/|/root/", text)


def test_the_documentation_has_examples() -> None:
    assert len(BLOCKS) >= 8


@pytest.mark.parametrize("index", range(len(BLOCKS)))
def test_every_example_in_the_documentation_loads(index: int, tmp_path: Path) -> None:
    _, kind, text = BLOCKS[index]
    if kind == "yaml" and "services" in (document := yaml.safe_load(text)):  # Docker Compose
        assert document["services"]
        return
    if kind == "json":
        assert ExtensionsConfig.model_validate(json.loads(text))
        return
    config = load(tmp_path, "config_version: 9\n" + text.removeprefix("config_version: 9\n"))
    assert config.origin.warnings == ()


CODE = "".join(
    file.read_text(encoding="utf-8")
    for file in (ROOT / "packages").rglob("*.py")
    if "deerflow/config" not in file.as_posix()
)


@pytest.mark.parametrize("name", sorted(set(AppConfig.model_fields) - {"config_version", "tool_groups"}))
def test_a_section_without_effect_is_marked_where_it_stands(name: str) -> None:
    has_effect = re.search(rf"\b(config|current\(\)|snapshot)\.{name}\b", CODE) is not None
    assert has_effect == (name not in NO_EFFECT_YET)
    if has_effect:
        return
    place = next(line for line in DOCUMENT.splitlines() if line.startswith(f"| `{name}` |"))
    assert "No effect yet" in place
    if name != "extensions":
        above = EXAMPLE.read_text(encoding="utf-8").partition(f"\n#{name}:\n")[0].rpartition("\n\n")[2]
        assert "No effect yet" in above


def documented(key: str) -> bool:
    return f"`{key}`" in DOCUMENT


def keys(section: type[Any], prefix: str) -> list[str]:
    return [f"{prefix}{name}" for name in section.model_fields]


@pytest.mark.parametrize("name", sorted(set(AppConfig.model_fields) - {"extensions"}))
def test_every_section_and_key_is_documented(name: str) -> None:
    assert documented(name)
    section = getattr(AppConfig(), name)
    if isinstance(section, Section):
        for key in type(section).model_fields:
            assert documented(key) or documented(f"{name}.{key}"), f"{name}.{key}"


@pytest.mark.parametrize(
    "section",
    [
        "ModelConfig",
        "PricingConfig",
        "ToolConfig",
        "McpServerConfig",
        "McpOAuthConfig",
        "NetworkConfig",
        "LimitsConfig",
        "AcpAgentConfig",
        "CustomSubagentConfig",
    ],
)
def test_every_key_of_an_entry_is_documented(section: str) -> None:
    import deerflow.config.schema

    for key in getattr(deerflow.config.schema, section).model_fields:
        assert documented(key) or key == "discovered_from", key
