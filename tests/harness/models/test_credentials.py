from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from deerflow.models.credentials import load_claude_token, load_codex_credential

NOW = 1_700_000_000.0


def claude_file(path: Path, **entry: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"claudeAiOauth": {"accessToken": "sk-ant-oat-file", **entry}}))
    return path


def codex_file(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def token(environ: dict[str, str], home: Path) -> str | None:
    return load_claude_token(environ, home, now=NOW)


def test_claude_without_any_source_is_none(tmp_path: Path) -> None:
    assert token({}, tmp_path) is None


@pytest.mark.parametrize("name", ["CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"])
def test_claude_token_variables_come_first_and_are_trimmed(tmp_path: Path, name: str) -> None:
    claude_file(tmp_path / ".claude/.credentials.json")
    assert token({name: "  sk-ant-oat-env \n"}, tmp_path) == "sk-ant-oat-env"


def test_claude_blank_variable_is_not_a_token(tmp_path: Path) -> None:
    claude_file(tmp_path / ".claude/.credentials.json")
    assert token({"CLAUDE_CODE_OAUTH_TOKEN": "   "}, tmp_path) == "sk-ant-oat-file"


def test_claude_token_is_read_from_a_descriptor_that_stays_open(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"sk-ant-oat-pipe\n")
    os.close(writer)
    try:
        assert token({"CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR": str(reader)}, tmp_path) == "sk-ant-oat-pipe"
        os.fstat(reader)
    finally:
        os.close(reader)


@pytest.mark.parametrize("number", ["999999", "-1", "x", "99999999999999999999"])
def test_claude_bad_descriptor_falls_through(tmp_path: Path, number: str) -> None:
    claude_file(tmp_path / ".claude/.credentials.json")
    assert token({"CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR": number}, tmp_path) == "sk-ant-oat-file"


def test_claude_descriptor_over_a_mebibyte_is_refused(tmp_path: Path) -> None:
    big = tmp_path / "big"
    big.write_bytes(b"x" * (1024 * 1024 + 1))
    with big.open("rb") as stream:
        assert token({"CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR": str(stream.fileno())}, tmp_path) is None


def test_claude_override_file_wins_over_the_default_file(tmp_path: Path) -> None:
    claude_file(tmp_path / ".claude/.credentials.json")
    override = claude_file(tmp_path / "other.json", accessToken="sk-ant-oat-other")
    assert token({"CLAUDE_CODE_CREDENTIALS_PATH": str(override)}, tmp_path) == "sk-ant-oat-other"


@pytest.mark.parametrize("content", ["directory", "{broken", "[1]", "\udcff"])
def test_claude_unusable_override_falls_through_to_the_default_file(tmp_path: Path, content: str) -> None:
    claude_file(tmp_path / ".claude/.credentials.json")
    override = tmp_path / "other.json"
    if content == "directory":
        override.mkdir()
    else:
        override.write_text(content, errors="surrogateescape")
    assert token({"CLAUDE_CODE_CREDENTIALS_PATH": str(override)}, tmp_path) == "sk-ant-oat-file"


@pytest.mark.parametrize(("seconds_left", "usable"), [(3600, True), (61, True), (59, False), (-5, False)])
def test_claude_expired_sign_in_is_none_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, seconds_left: int, usable: bool
) -> None:
    claude_file(tmp_path / ".claude/.credentials.json", expiresAt=(NOW + seconds_left) * 1000)
    assert (token({}, tmp_path) is not None) == usable
    assert ("expired" in caplog.text) != usable


@pytest.mark.parametrize("entry", [None, [], {"accessToken": ""}, {"accessToken": 5}])
def test_claude_file_without_a_token_is_none(tmp_path: Path, entry: Any) -> None:
    codex_file(tmp_path / ".claude/.credentials.json", {"claudeAiOauth": entry})
    assert token({}, tmp_path) is None


def test_codex_nested_sign_in(tmp_path: Path) -> None:
    codex_file(tmp_path / ".codex/auth.json", {"tokens": {"access_token": " t ", "account_id": "acc"}, "token": "old"})
    credential = load_codex_credential({}, tmp_path)
    assert credential is not None
    assert (credential.access_token, credential.account_id) == ("t", "acc")
    assert "access_token" not in repr(credential)


@pytest.mark.parametrize("key", ["access_token", "token"])
def test_codex_older_flat_sign_in(tmp_path: Path, key: str) -> None:
    codex_file(tmp_path / ".codex/auth.json", {key: "flat", "tokens": None})
    credential = load_codex_credential({}, tmp_path)
    assert credential is not None
    assert credential.access_token == "flat"


def test_codex_override_path(tmp_path: Path) -> None:
    path = codex_file(tmp_path / "elsewhere.json", {"token": "x"})
    credential = load_codex_credential({"CODEX_AUTH_PATH": str(path)}, tmp_path)
    assert credential is not None
    assert credential.access_token == "x"


@pytest.mark.parametrize("document", [[], {}, {"tokens": {"access_token": ""}}])
def test_codex_file_without_a_token_is_none(tmp_path: Path, document: Any) -> None:
    codex_file(tmp_path / ".codex/auth.json", document)
    assert load_codex_credential({}, tmp_path) is None
