"""The load test counts what a server did, and says what failed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bench.scripted_openai import HttpError, ScriptedOpenAI, Text
from tests.support.gateway_process import gateway_process

from bench import load


def test_runs_are_timed_failures_counted_and_the_servers_figures_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ScriptedOpenAI() as model, gateway_process(tmp_path, auth=True, model_url=model.base_url) as server:
        token = server.token("read", "write")
        model.script(*[Text("Hello.")] * 3, HttpError(401))
        assert load.main([server.url, "--runs", "4", "--at-once", "2", "--token", token]) == 1
        said = capsys.readouterr().out
        assert re.search(r"4 runs in [\d.]+ s, [\d.]+ a second, 1 failed\n  1 x The run ended with ", said), said
        assert re.search(r"first token +half within [\d.]+ s, 95 % within", said) and "whole run" in said
        assert "runs that waited: at most" in said and re.search(r"memory: \d+ MB before, at most \d{2,} MB", said)

        assert load.main([server.url, "--runs", "1", "--at-once", "1", "--token", "df_wrong"]) == 1
        assert "1 x 401:" in capsys.readouterr().out
    assert load.main([server.url, "--runs", "1"]) == 1
    said = capsys.readouterr().out
    assert "Connect call failed" in said and "does not show its figures" in said
