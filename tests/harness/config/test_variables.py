"""Variables of the process, of ``.env``, and those that are kept encrypted: which counts, and how they are changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from deerflow.config import ConfigError, ConfigSource, load_config
from deerflow.config.env import Variables


def variables(folder: Path, **environ: str) -> Variables:
    return Variables(environ, (folder / ".env", folder / "root.env"), folder / "variables", folder / "secrets.key")


def test_the_process_counts_before_dotenv_and_that_before_what_is_encrypted(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("B=dotenv\n")
    kept = variables(tmp_path, A="process", EMPTY="")
    kept.change({"A": "encrypted", "C": "encrypted", "EMPTY": "encrypted"}, "encrypted")
    assert kept.merged() == {"A": "process", "B": "dotenv", "C": "encrypted", "EMPTY": "encrypted"}
    assert [kept.place_of(name) for name in "ABCD"] == ["environment", "dotenv", "encrypted", None]


def test_a_change_leaves_nothing_behind_in_the_other_store_nor_in_another_file(tmp_path: Path) -> None:
    for name in (".env", "root.env"):
        (tmp_path / name).write_text("# kept\nKEY=old\nexport OTHER='a # b'\n")
    kept = variables(tmp_path)
    kept.change({"KEY": "new"}, "encrypted")
    assert kept.merged() == {"KEY": "new", "OTHER": "a # b"}
    assert "KEY" not in (tmp_path / ".env").read_text() + (tmp_path / "root.env").read_text()
    kept.change({"KEY": "newer", "GONE": None}, "dotenv")
    assert (kept.place_of("KEY"), kept.merged()["KEY"]) == ("dotenv", "newer")
    assert (tmp_path / "root.env").read_text() == "# kept\nexport OTHER='a # b'\n"
    kept.change({"KEY": None}, "encrypted")
    assert kept.place_of("KEY") is None


def test_a_linked_file_stays_a_link_and_becomes_private(tmp_path: Path) -> None:
    real = tmp_path / "elsewhere" / "shared.env"
    real.parent.mkdir()
    real.write_text("A=1")
    (tmp_path / ".env").symlink_to(real)
    variables(tmp_path).change({"KEY": "value"}, "dotenv")
    assert (tmp_path / ".env").is_symlink()
    assert real.read_text() == "A=1\nKEY='value'\n"
    assert real.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".env-")] == []


def test_without_its_key_the_file_is_named_and_what_to_do(tmp_path: Path) -> None:
    variables(tmp_path).change({"KEY": "value"}, "encrypted")
    (tmp_path / "secrets.key").unlink()
    with pytest.raises(ConfigError) as refused:
        variables(tmp_path).merged()
    assert "variables" in str(refused.value) and "another key than secrets.key" in str(refused.value)
    assert "delete the file" in str(refused.value)


def test_a_configuration_that_is_in_use_sees_what_another_process_connects(tmp_path: Path) -> None:
    environ = {"DEER_FLOW_HOME": str(tmp_path / "home")}
    here, there = (ConfigSource(cwd=tmp_path, environ=environ, probe=lambda *_: ()) for _ in range(2))
    assert [model.name for model in here.current().models] == ["demo"]
    there.variables.change({"MISTRAL_API_KEY": "key", "MISTRAL_MODEL": "m"}, "encrypted")
    assert [model.name for model in here.current().models] == ["m"]
    alone = load_config(environ=environ, cwd=tmp_path, probe=lambda *_: ())
    assert alone.models[0].settings()["api_key"] == "key"
