from __future__ import annotations

import asyncio
import logging
import os
import threading
from pathlib import Path

import pytest
from blockbuster import BlockBuster, BlockingError

from deerflow.config import AppConfig, ConfigError, ConfigSource, get_app_config

MODELS = "models: [{name: m, use: 'a:B', model: x}]\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "config.yaml"
    file.write_text(MODELS + "agents_api: {enabled: false}\n")
    return file


def source(folder: Path, path: Path | None = None, **environ: str) -> ConfigSource:
    return ConfigSource(path, environ=environ, cwd=folder, probe=lambda *_: ())


def test_the_snapshot_stays_the_same_object_until_a_file_changes(file: Path) -> None:
    config = source(file.parent)
    first = config.current()
    assert config.current() is first
    assert get_app_config(config) is first


def test_an_edit_gives_a_new_snapshot_and_the_old_one_stays_as_it_was(file: Path) -> None:
    config = source(file.parent)
    first = config.current()
    file.write_text(MODELS + "title: {max_words: 9}\n")
    second = config.current()
    assert (first.title.max_words, second.title.max_words) == (6, 9)
    assert first.id != second.id


def test_removing_a_section_resets_it(file: Path) -> None:
    config = source(file.parent)
    assert not config.current().agents_api.enabled
    file.write_text(MODELS)
    assert config.current().agents_api.enabled


def test_an_older_time_counts_as_a_change(file: Path) -> None:
    config = source(file.parent)
    first = config.current()
    os.utime(file, ns=(1, 1))
    assert config.current() is not first


def test_a_replaced_file_of_equal_time_and_size_counts_as_a_change(file: Path) -> None:
    config = source(file.parent)
    config.current()
    status = file.stat()
    new = file.with_name("new")
    new.write_text(file.read_text().replace("true ", "true").replace("model: x", "model: y"))
    os.utime(new, ns=(status.st_atime_ns, status.st_mtime_ns))
    new.replace(file)
    assert config.current().models[0].model == "y"


def test_files_that_appear_and_disappear_are_noticed(tmp_path: Path) -> None:
    config = source(tmp_path)
    assert config.current().models[0].name == "demo"
    file = tmp_path / "config.yaml"
    file.write_text(MODELS)
    assert config.current().models[0].name == "m"
    (tmp_path / "extensions_config.json").write_text('{"mcpServers": {"a": {}}}')
    assert list(config.current().extensions.mcp_servers) == ["a"]
    (tmp_path / ".env").write_text("DEER_FLOW_CONFIG_PATH=other.yaml\n")
    (tmp_path / "other.yaml").write_text(MODELS.replace("m,", "other,"))
    assert config.current().models[0].name == "other"
    (tmp_path / ".env").unlink()
    file.unlink()
    assert config.current().models[0].name == "demo"


def test_a_bad_edit_keeps_the_last_good_snapshot_and_is_logged_once(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = source(file.parent)
    good = config.current()
    assert config.problem is None
    file.write_text("memory: {max_facts: 1}\n")
    for _ in range(3):
        assert config.current() is good
    assert config.problem is not None
    assert "memory.max_facts" in config.problem
    assert [record.levelno for record in caplog.records].count(logging.ERROR) == 1
    file.write_text(MODELS)
    assert config.current() is not good
    assert config.problem is None


@pytest.mark.parametrize("name", ["extensions_config.json", ".env"])
def test_a_bad_edit_of_another_file_keeps_the_snapshot_too(file: Path, name: str) -> None:
    config = source(file.parent)
    good = config.current()
    (file.parent / name).write_bytes(b"{\xff")
    assert config.current() is good
    assert config.problem is not None
    assert name in config.problem
    (file.parent / name).unlink()
    config.current()
    assert config.problem is None


def test_a_named_file_that_goes_away_and_comes_back_is_noticed(file: Path) -> None:
    config = source(file.parent, file)
    good = config.current()
    text = file.read_text()
    file.unlink()
    assert config.current() is good
    assert "does not exist" in (config.problem or "")
    file.write_text(text.replace("model: x", "model: y"))
    assert config.current().models[0].model == "y"


def test_the_first_load_must_succeed_and_may_be_repeated(file: Path) -> None:
    text = file.read_text()
    file.write_text("title: 5")
    config = source(file.parent)
    for _ in range(2):
        with pytest.raises(ConfigError):
            config.current()
    file.write_text(text)
    assert config.current().models[0].name == "m"


def test_warnings_are_logged_once(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = source(file.parent)
    config.current()
    file.write_text(file.read_text() + "\n")
    config.current()
    assert len([record for record in caplog.records if "deerflow config upgrade" in record.message]) == 1


def test_reload_looks_at_the_environment_again(tmp_path: Path) -> None:
    environ: dict[str, str] = {}
    config = ConfigSource(environ=environ, cwd=tmp_path, probe=lambda *_: ())
    assert config.current().models[0].name == "demo"
    environ["DEEPSEEK_API_KEY"] = "k"
    assert config.reload().models[0].name == "deepseek-flash"


def test_many_threads_see_whole_snapshots_only(file: Path) -> None:
    config = source(file.parent)
    texts = [f"{MODELS}title: {{max_words: {n}}}\nmemory: {{max_facts: {n * 10}}}\n" for n in range(1, 10)]
    file.write_text(texts[0])
    config.current()
    stop = threading.Event()
    seen: list[AppConfig] = []
    errors: list[BaseException] = []

    def read() -> None:
        try:
            while not stop.is_set():
                seen.append(config.current())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for text in texts * 3:
        new = file.with_name("new")
        new.write_text(text)
        new.replace(file)
    stop.set()
    for thread in threads:
        thread.join()
    assert errors == []
    assert {(one.title.max_words, one.memory.max_facts) for one in seen} <= {(n, n * 10) for n in range(1, 10)}
    assert config.current().title.max_words == 9


async def test_an_event_loop_is_not_blocked(file: Path, blockbuster: BlockBuster) -> None:
    config = source(file.parent)
    first = await config.acurrent()
    assert (await asyncio.gather(config.acurrent(), config.acurrent())) == [first, first]
    with pytest.raises(BlockingError):
        config.reload()


def test_an_unchanged_configuration_is_not_read_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = source(file.parent)
    config.current()
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: pytest.fail("a file was read"))
    for _ in range(10):
        config.current()
