"""A copy of an installation, however it was made, is one of its own: it never reaches the server of the original."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bench.scripted_openai import ScriptedOpenAI, Text
from tests.support import warm_python
from tests.support.gateway_process import COMMAND, GUARD, GatewayProcess, gateway_process

from deerflow_app.gateway import FILE_NAME

ELSEWHERE = ("unshare", "--user", "--map-root-user", "--net")
"""What runs in another network, as in another container."""


def _run(
    gateway: GatewayProcess, home: Path, *line: str, wrap: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    command = [*wrap, *COMMAND, *line, "--config", str(gateway.config)]
    options = {"cwd": gateway.root, "env": {**gateway.environment, "DEER_FLOW_HOME": str(home)}, "timeout": GUARD}
    if wrap:
        return subprocess.run(command, capture_output=True, text=True, check=False, **options)
    return warm_python.run(command, **options)


def test_a_restored_or_copied_directory_does_not_talk_to_the_original_and_serves_beside_it(tmp_path: Path) -> None:
    restored, copied = tmp_path / "restored", tmp_path / "copied"
    with ScriptedOpenAI() as model, gateway_process(tmp_path, model_url=model.base_url) as original:
        model.script(*[Text("Done.")] * 2)
        (original.home / "deerflow.log").write_text("a log")
        (original.home / "sandbox/probe-1").mkdir(parents=True)
        assert _run(original, original.home, "backup", "b.tar.zst").returncode == 0
        assert _run(original, restored, "restore", "b.tar.zst").returncode == 0
        subprocess.run(["cp", "-a", original.home, copied], check=True)
        assert not (restored / FILE_NAME).exists() and (copied / FILE_NAME).exists()
        assert not (restored / "deerflow.log").exists() and not (restored / "sandbox").exists()
        for home in (restored, copied):
            done = _run(original, home, "run", "hello from the copy", "--json")
            assert done.returncode == 0, done.stderr
            with original.client() as client:
                assert client.post("/threads/search", json={}).json() == []
        with gateway_process(
            tmp_path,
            config=None,
            name="beside",
            model_url=model.base_url,
            environment={"DEER_FLOW_HOME": str(restored)},
        ) as beside:
            with beside.client() as client:
                assert len(client.post("/threads/search", json={}).json()) == 1
            assert original.is_healthy()


def test_a_second_server_of_a_directory_says_where_the_first_one_is(tmp_path: Path) -> None:
    with gateway_process(tmp_path) as first:
        near = _run(first, first.home, "serve", "--no-ui", "--port", "0")
        assert near.returncode == 1 and f"running already: {first.url}" in near.stderr
        far = _run(first, first.home, "serve", "--no-ui", "--port", "0", wrap=ELSEWHERE)
        assert far.returncode == 1 and f"process {first.pid} of" in far.stderr, far.stderr
        assert "another container or machine" in far.stderr


def test_the_server_of_a_directory_is_stopped_by_name_and_no_other(tmp_path: Path) -> None:
    with gateway_process(tmp_path) as server:
        assert "No server is running" in _run(server, tmp_path / "elsewhere", "stop").stdout and server.is_healthy()
        stopped = _run(server, server.home, "stop")
        assert stopped.returncode == 0 and server.url in stopped.stdout
        assert server.wait() == 0
