from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from bench.scripted_openai import ScriptedOpenAI
from tests.app.cli.conftest import Cli

PROVIDER = "deerflow.models.openai:OpenAIChatModel"


def config(folder: Path, text: str) -> None:
    (folder / "config.yaml").write_text(f"config_version: 9\n{text}")


def test_models_names_what_was_found_and_where(cli: Cli, endpoint: ScriptedOpenAI) -> None:
    told = json.loads(cli("models", "--json").out)["models"]
    assert [(model["model"], model["is_default"]) for model in told] == [("scripted-model", True)]
    assert told[0]["discovered_from"]["name"] == "OPENAI_API_KEY"
    assert "scripted-model" in cli("models").out


def test_config_show_masks_every_secret(cli: Cli, folder: Path) -> None:
    config(
        folder,
        f"""models:
  - {{name: m, use: "{PROVIDER}", model: m, api_key: sk-very-secret, base_url: "http://user:pa55@host/v1"}}
database: {{backend: postgres, postgres_url: "postgresql://me:hunter2@db/x"}}
sandbox: {{environment: {{GITHUB_TOKEN: ghp_secret}}}}
channels: {{slack: {{bot_token: xoxb-secret}}}}
""",
    )
    for ended in (cli("config", "show"), cli("config", "show", "--json")):
        assert ended.code == 0, ended.err
        assert not [s for s in ("sk-very-secret", "pa55", "hunter2", "ghp_secret", "xoxb-secret") if s in ended.out]
        assert "config_version" in ended.out


def test_config_path_tells_the_file_even_if_it_is_broken(cli: Cli, folder: Path) -> None:
    config(folder, "models: [")
    assert cli("config", "path").out.strip() == str(folder / "config.yaml")


def test_config_init_never_overwrites(cli: Cli, folder: Path) -> None:
    assert cli("config", "init", "new.yaml").code == 0
    written = (folder / "new.yaml").read_text()
    assert "models:" in written
    ended = cli("config", "init", "new.yaml")
    assert ended.code == 2 and "exists already" in ended.err
    assert (folder / "new.yaml").read_text() == written


def test_what_config_init_writes_can_be_used(cli: Cli, folder: Path) -> None:
    cli("config", "init", "new.yaml")
    assert cli("config", "show", "--config", "new.yaml").code == 0


def test_a_dry_upgrade_shows_the_change_and_makes_none(cli: Cli, folder: Path) -> None:
    old = "config_version: 1 # mine\nlog_level: debug\n"
    (folder / "config.yaml").write_text(old)
    ended = cli("config", "upgrade", "--dry-run")
    assert ended.code == 0 and "-config_version: 1" in ended.out
    assert (folder / "config.yaml").read_text() == old
    assert [path.name for path in folder.iterdir()] == ["config.yaml"]


def test_an_upgrade_keeps_values_and_comments(cli: Cli, folder: Path) -> None:
    (folder / "config.yaml").write_text("config_version: 1 # mine\nlog_level: debug # noisy\n")
    assert cli("config", "upgrade").code == 0
    assert "log_level: debug # noisy" in (folder / "config.yaml").read_text()
    assert (folder / "config.yaml.bak").exists()
    assert "up to date" in cli("config", "upgrade").out


def test_doctor_finds_a_usable_installation_usable(cli: Cli, endpoint: ScriptedOpenAI) -> None:
    ended = cli("doctor", "--json")
    told = json.loads(ended.out)
    bad = [check for check in told["checks"] if check["status"] == "bad"]
    assert (ended.code, bad) == (0, [])
    model = next(check for check in told["checks"] if check["area"] == "Models")
    assert endpoint.base_url in model["found"] and "reachable" in model["found"]
    assert {check["area"] for check in told["checks"]} == {"System", "Configuration", "Models", "Sandbox", "Storage"}
    limits = next(check["found"] for check in told["checks"] if check["name"] == "limits")
    enforced = limits.partition("enforced: ")[2].split(", ")
    assert {"memory-watch", "disk-watch"} <= {*enforced} and {"nproc", "process-watch"} & {*enforced}


def test_a_server_without_a_list_of_models_is_named_with_what_to_do(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    for command in (("doctor",), ("run", "hello")):
        ended = cli(*command)
        assert ended.code != 0
        said = " ".join((ended.out + ended.err).split())
        assert "http://127.0.0.1:9/v1 did not list its models" in said
        assert "set OPENAI_MODEL" in said


def test_doctor_finds_a_wrong_key(cli: Cli, endpoint: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deerflow_app.cli.commands.doctor.reach", _refuses)
    ended = cli("doctor")
    assert ended.code == 1
    assert "refuses the key" in ended.out


def test_doctor_finds_a_missing_provider_package_and_variable(cli: Cli, folder: Path) -> None:
    config(
        folder,
        f"""models:
  - {{name: a, use: "no_such_provider:Chat", model: a}}
  - {{name: b, use: "{PROVIDER}", model: b, api_key: $NO_SUCH_KEY}}
  - {{name: c, use: "{PROVIDER}", model: c, api_key: k, api_base: "http://h/v1"}}
token_budget: {{enabled: true}}
""",
    )
    ended = cli("doctor", "--json")
    checks = json.loads(ended.out)["checks"]
    notes = "\n".join(check["found"] for check in checks if check["name"] == "note")
    assert "models[2].api_base: this key is unknown; did you mean 'base_url'?" in notes
    assert "token_budget: has no effect here: `spending` limits tokens and money." in notes
    found = {check["name"]: check["found"] for check in checks if check["area"] == "Models"}
    assert "models[2].api_base: no client takes this setting" in found["c"]
    assert ended.code == 1
    assert "no_such_provider" in found["a"] and "NO_SUCH_KEY" in found["b"]


def test_doctor_finds_a_damaged_database(cli: Cli, endpoint: ScriptedOpenAI) -> None:
    assert cli("run", "hi scenario:plain-1").code == 0
    checks = json.loads(cli("doctor", "--json").out)["checks"]
    (database,) = [check for check in checks if check["name"] == "database"]
    assert database["status"] == "ok"
    Path(database["found"]).write_bytes(b"nonsense" * 1000)
    ended = cli("doctor")
    assert ended.code == 1
    assert "not a database" in ended.out and "deerflow restore" in ended.out


def test_doctor_reports_a_broken_file_instead_of_breaking(cli: Cli, folder: Path) -> None:
    config(folder, "models: [")
    ended = cli("doctor")
    assert ended.code == 1
    assert "✗" in ended.out and "config.yaml" in ended.out and "Traceback" not in ended.out + ended.err


def test_doctor_says_that_the_demo_is_a_demo(cli: Cli) -> None:
    ended = cli("doctor")
    assert ended.code == 0
    assert "scripted demo" in ended.out and "ANTHROPIC_API_KEY" in ended.out


def test_setup_that_fails_says_what_is_missing(cli: Cli, folder: Path) -> None:
    assert cli("setup", "--quiet").err == ""
    config(folder, "sandbox: {tool_image: {requirements: no-such-file.txt}}\n")
    ended = cli("setup", "--quiet")
    assert ended.code == 1
    assert "no-such-file.txt" in ended.err and "DeerFlow works without them" in ended.err


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom deerflow_app.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'langchain', 'langgraph', 'rich.markdown', 'prompt_toolkit', 'deerflow.client', 'httpx', 'pydantic'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stderr.strip() == "[]"
    assert "doctor" in ended.stdout


def _refuses(*_: object, **__: object) -> object:
    from deerflow_app.cli.commands.doctor import DoctorAnswer

    return DoctorAnswer("bad", "refuses the key (HTTP 401)", "Set the right key.")


@pytest.mark.parametrize("name", ["notes.txt", "notes.tar.gz", "notes.tar.zst"])
def test_a_text_in_place_of_a_backup_is_a_sentence_and_no_fault_of_ours(cli: Cli, folder: Path, name: str) -> None:
    (folder / name).write_text("Remember the milk.\n")
    for command in (("restore", name), ("backup", name, "--verify")):
        ended = cli(*command)
        said = " ".join(ended.err.split())
        assert ended.code == 2 and "is no backup of DeerFlow" in said and "Nothing was changed" in said
        assert "report" not in said and "Traceback" not in said
    assert (folder / name).read_text() == "Remember the milk.\n"
