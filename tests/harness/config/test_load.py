from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml

from deerflow.config import (
    AppConfig,
    ConfigError,
    get_app_config,
    get_extensions_config,
    get_memory_config,
    get_paths,
    load_config,
    require,
)
from deerflow.config.env import read_dotenv

NO_SERVERS = lambda *_: ()  # noqa: E731
MODELS = "models:\n  - {name: m, use: 'a:B', model: x}\n"


def load(folder: Path, path: Any = None, **environ: str) -> AppConfig:
    return load_config(path, environ=environ, cwd=folder, probe=NO_SERVERS)


# where files are found ---------------------------------------------------------------------------------------------------


def test_the_argument_beats_the_variable_beats_the_folder(tmp_path: Path) -> None:
    for name in ("config", "named", "given"):
        (tmp_path / f"{name}.yaml").write_text(f"mark: {name}\n")
    named = str(tmp_path / "named.yaml")
    assert load(tmp_path, tmp_path / "given.yaml", DEER_FLOW_CONFIG_PATH=named).model_extra == {"mark": "given"}
    assert load(tmp_path, DEER_FLOW_CONFIG_PATH=named).model_extra == {"mark": "named"}
    assert load(tmp_path).model_extra == {"mark": "config"}


@pytest.mark.parametrize("variable", ["DEER_FLOW_CONFIG_PATH", "DEER_FLOW_EXTENSIONS_CONFIG_PATH"])
def test_a_file_named_by_a_variable_must_exist(tmp_path: Path, variable: str) -> None:
    with pytest.raises(FileNotFoundError, match=rf"nope\.yaml.*{variable}"):
        load(tmp_path, **{variable: "nope.yaml"})


def test_a_file_given_as_argument_must_exist(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nope\.yaml.*argument"):
        load(tmp_path, tmp_path / "nope.yaml")


def test_the_extensions_file_may_have_its_old_name(tmp_path: Path) -> None:
    (tmp_path / "mcp_config.json").write_text('{"mcpServers": {"old": {}}}')
    assert list(load(tmp_path).extensions.mcp_servers) == ["old"]
    (tmp_path / "extensions_config.json").write_text('{"mcp_servers": {"new": {}}}')
    assert list(load(tmp_path).extensions.mcp_servers) == ["new"]


def test_no_file_means_defaults_with_a_database_that_lasts(tmp_path: Path) -> None:
    config = load(tmp_path)
    assert config.origin.config_file is None
    assert config.database.backend == "sqlite"
    assert [tool.name for tool in config.tools][-1] == "web_fetch"
    assert config.origin.warnings == ()


@pytest.mark.parametrize(
    "text", ["", "database:\n", "database: {}\n", "database: {pool_size: 2}\n", "database: {backend: }\n"]
)
def test_a_file_that_says_nothing_about_its_database_has_sqlite(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    assert load(tmp_path).database.backend == "sqlite"


def test_the_sqlite_directory_does_not_depend_on_the_current_directory(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("database: {sqlite_dir: db}\n")
    data, root = tmp_path / "home/data", tmp_path / "project"
    assert AppConfig().database.sqlite_directory(data, root) == data
    assert load(tmp_path).database.sqlite_directory(data, root) == root / "db"
    assert AppConfig.model_validate({"database": {"sqlite_dir": "/abs"}}).database.sqlite_directory(data, root) == Path(
        "/abs"
    )


def test_skills_start_at_the_project(tmp_path: Path) -> None:
    assert AppConfig().skills.directory(tmp_path) == tmp_path / "skills"
    assert AppConfig.model_validate({"skills": {"path": "/abs"}}).skills.directory(tmp_path) == Path("/abs")


# environment ---------------------------------------------------------------------------------------------------------------


def test_dotenv_completes_a_copy_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=from-file\nB=from-file\nC=${A}-${NOPE:-x}\nD='a$$b'\nE\n")
    environ = {"A": "set"}
    found = read_dotenv(environ, [tmp_path / ".env"])
    assert found == {"A": "set", "B": "from-file", "C": "set-x", "D": "a$$b"}
    assert environ == {"A": "set"}


def test_the_environment_of_a_snapshot_is_passed_on(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("MY_KEY=k\n")
    (tmp_path / "config.yaml").write_text("models: [{name: m, use: 'a:B', model: x, api_key: $MY_KEY}]\n")
    config = load(tmp_path)
    assert config.models[0].settings()["api_key"] == "k"
    assert config.origin.environ["MY_KEY"] == "k"
    assert "MY_KEY" not in repr(config.origin)


def test_dotenv_may_name_the_configuration(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("DEER_FLOW_CONFIG_PATH=other.yaml\n")
    (tmp_path / "other.yaml").write_text("mark: 1\n")
    assert load(tmp_path).model_extra == {"mark": 1}


def test_a_dotenv_that_is_no_text_is_explained(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"A=\xff\xfe\n")
    with pytest.raises(ConfigError, match=r"\.env: not UTF-8"):
        load(tmp_path)


def test_variables_in_json_lists_are_resolved_and_missing_ones_wait(tmp_path: Path) -> None:
    servers = {
        "a": {"args": ["--key", "$KEY"], "env": {"T": "${T:-t}"}},
        "b": {"enabled": False, "headers": {"Authorization": "Bearer ${NOPE}"}},
    }
    (tmp_path / "extensions_config.json").write_text(json.dumps({"mcpServers": servers, "mine": 1}))
    extensions = load(tmp_path, KEY="k").extensions
    assert extensions.mcp_servers["a"].args == ("--key", "k")
    assert extensions.mcp_servers["a"].env == {"T": "t"}
    assert list(extensions.enabled_mcp_servers) == ["a"]
    assert extensions.model_extra == {"mine": 1}
    with pytest.raises(ConfigError, match=r"mcpServers\.b\.headers\.Authorization.*NOPE"):
        require(extensions.mcp_servers["b"])


def test_skills_are_on_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    (tmp_path / "extensions_config.json").write_text(
        '{"skills": {"off": {"enabled": false}, "on": {}}, "mcpInterceptors": "a:b"}'
    )
    extensions = load(tmp_path).extensions
    assert [extensions.is_skill_enabled(name) for name in ("off", "on", "other")] == [False, True, True]
    assert not extensions.is_skill_enabled("other", "strange")
    assert extensions.mcp_interceptors == ("a:b",)


# errors --------------------------------------------------------------------------------------------------------------------


def test_every_problem_is_named_with_line_key_and_value(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "memory:\n  max_facts: 5\nmodels:\n  - use: a:B\n    model: x\n    supports_vision: maybe\ntitle:\n  max_words: many\n"
    )
    with pytest.raises(ConfigError) as caught:
        load(tmp_path)
    assert str(caught.value).splitlines() == [
        f"{file}:4: models[0].name: is required, but missing. Add 'name' there.",
        f"{file}:6: models[0].supports_vision: should be true or false, not 'maybe'.",
        f"{file}:8: title.max_words: should be a whole number, not 'many'.",
        f"{file}:2: memory.max_facts: should be greater than or equal to 10, not 5.",
    ]


def test_no_secret_is_shown_in_an_error(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "database: {postgres_url: [sk-secret]}\nmemory: {max_facts: '$SECRET'}\ntools: [{name: t, group: g, use: 'a:b', api_key: [sk-secret]}]\n"
    )
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, SECRET="sk-secret")
    assert "sk-secret" not in str(caught.value)
    assert "not '$SECRET'" in str(caught.value)
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    "section",
    sorted(
        set(AppConfig.model_fields)
        - {"capabilities", "config_version", "extensions", "models", "tools", "tool_groups", "log_level"}
    ),
)
def test_a_section_of_the_wrong_shape_is_explained(tmp_path: Path, section: str) -> None:
    (tmp_path / "config.yaml").write_text(f"x: 1\n{section}: 5\n")
    with pytest.raises(ConfigError, match=rf"config\.yaml:2: {section}: should hold keys and values, not 5\."):
        load(tmp_path)


def test_errors_in_the_extensions_file_name_it(tmp_path: Path) -> None:
    (tmp_path / "extensions_config.json").write_text('{"mcpServers": {"a": {"enabled": "maybe"}}}')
    with pytest.raises(
        ConfigError, match=r"extensions_config\.json: mcpServers\.a\.enabled: should be true or false, not 'maybe'"
    ):
        load(tmp_path)


def test_a_directory_or_bytes_in_place_of_a_file_are_explained(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load(tmp_path)


def test_a_byte_order_mark_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes(b"\xef\xbb\xbflog_level: debug\r\n")
    assert load(tmp_path).log_level == "debug"


# warnings ------------------------------------------------------------------------------------------------------------------


def test_slips_doubles_and_old_versions_are_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "memory:\n  max_fact: 50\n  zzz: 1\nmodel: []\nmine: 1\nsandbox: {imagee: x, mine: 2, limits: {memory: 5}}\nextensions: {}\n"
        "models: [{name: m, use: 'a:B', model: x}, {name: m, use: 'a:B', model: y}]\n"
    )
    warnings = "\n".join(load(tmp_path).origin.warnings)
    for part in (
        "config_version is 0, the current one is 9. Run 'deerflow config upgrade'",
        "config.yaml:2: memory.max_fact: this key is unknown and ignored; did you mean 'max_facts'?",
        "config.yaml:3: memory.zzz: this key is unknown and ignored.",
        "config.yaml:4: model: this key is unknown; did you mean 'models'?",
        "sandbox.imagee: this key is unknown; did you mean 'image'?",
        "sandbox.limits.memory: this key is unknown and ignored",
        "'extensions' is ignored",
        "models[1]: there is a 'm' above already",
    ):
        assert part in warnings
    assert "mine" not in warnings


def test_slips_in_the_entry_of_a_model_are_named_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "config_version: 9\nmodels:\n  - name: m\n    use: 'a:B'\n    model: x\n    api_base: http://h/v1\n    apiKey: k\n"
        "    temperatur: 1\n    context_length: 9\n    suports_vision: true\n    mine: 1\n    pricing: {inputt: 1}\n"
        "  - {name: d, use: 'langchain_deepseek:ChatDeepSeek', model: x, api_base: 'http://h', top_p: 1, seed: 2}\n"
    )
    found = [warning.partition("config.yaml:")[2] for warning in load(tmp_path).origin.warnings]
    assert found == [
        "6: models[0].api_base: this key is unknown; did you mean 'base_url'?",
        "7: models[0].apiKey: this key is unknown; did you mean 'api_key'?",
        "8: models[0].temperatur: this key is unknown; did you mean 'temperature'?",
        "9: models[0].context_length: this key is unknown; did you mean 'context_window'?",
        "10: models[0].suports_vision: this key is unknown; did you mean 'supports_vision'?",
        "12: models[0].pricing.inputt: this key is unknown and ignored; did you mean 'input'?",
    ]


def test_the_example_of_august_loads_and_what_has_no_effect_is_named() -> None:
    file = Path(__file__).with_name("august.yaml")
    config = load(file.parent, file, SOME_KEY="k")
    pricing = config.models[0].pricing
    assert pricing is not None and (pricing.input, pricing.output, pricing.cache_read) == (1, 2, 0.1)
    assert (config.memory.mode, config.sandbox.command_timeout) == ("passive", 600)
    named = {warning.split(": ")[1] for warning in config.origin.warnings}
    assert named >= {"logging", "token_budget", "tool_output", "scheduler", "memory.backend_config", "run_ownership"}
    known = {key.split(".")[0].split("[")[0] for key in named} | AppConfig.model_fields.keys()
    assert yaml.safe_load(file.read_text()).keys() <= known, "each section has an effect, or is named"


@pytest.mark.parametrize("version", ["9", "'9'", "10"])
def test_a_current_or_newer_version_is_silent(tmp_path: Path, version: str) -> None:
    (tmp_path / "config.yaml").write_text(f"config_version: {version}\n{MODELS}")
    assert load(tmp_path).origin.warnings == ()


# short cuts ----------------------------------------------------------------------------------------------------------------


def test_short_cuts_read_what_is_there_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config.yaml"
    monkeypatch.setenv("DEER_FLOW_CONFIG_PATH", str(file))
    for facts in (50, 60):
        file.write_text(f"{MODELS}memory: {{max_facts: {facts}}}\n")
        assert get_app_config().memory.max_facts == get_memory_config().max_facts == facts
    assert get_extensions_config().mcp_servers == {}
    assert get_paths(tmp_path).base_dir == tmp_path


def test_loading_twice_gives_the_same_settings_and_id(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(MODELS + "channels: {a: {b: [1, {c: $D}]}}\n")
    first, second = load(tmp_path), load(tmp_path)
    assert first is not second
    assert first.id == second.id
    assert hash(first) == hash(second)


def test_loading_logs_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    (tmp_path / "config.yaml").write_text("memory: {zzz: 1}\n" + MODELS)
    load(tmp_path)
    assert caplog.records == []


def test_the_whole_configuration_can_be_serialised(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        MODELS + "channels: {a: {b: [1, {c: $D}]}}\nsandbox: {x: [{y: 1}], environment: {A: b}}\n"
    )
    dumped: dict[str, Any] = json.loads(load(tmp_path).model_dump_json())
    assert dumped["channels"] == {"a": {"b": [1, {"c": "$D"}]}}
    assert dumped["sandbox"]["x"] == [{"y": 1}]
