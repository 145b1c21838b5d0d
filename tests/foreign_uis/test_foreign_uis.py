"""Chat interfaces of others, as they are published, in Chromium against a real gateway of another origin.

Each ``*.spec.mjs`` is one interface; ``build.mjs`` bundles it into a page, which signs in with an API token.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from bench.scripted_openai import ScriptedOpenAI
from tests.support.gateway_process import gateway_process
from tests.support.node_packages import installed

pytestmark = pytest.mark.nightly

HERE = Path(__file__).parent
SPECS = sorted(path.name for path in HERE.glob("*.spec.mjs"))
CONFIG = """
title: {enabled: false}
tools: [{name: send_mail, group: mail, use: "approval:send_mail"}]
"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources beside their packages, and the pages made of them."""
    folder = tmp_path_factory.mktemp("foreign_uis")
    for source in (*HERE.glob("*.mjs"), *HERE.glob("*.jsx"), HERE.parent / "sdk_js" / "support.mjs"):
        shutil.copy(source, folder)
    (folder / "node_modules").symlink_to(installed(HERE) / "node_modules")
    subprocess.run(["node", "build.mjs", "pages"], cwd=folder, check=True, timeout=120)
    return folder


@pytest.fixture(scope="module")
def environment(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Where the specs find pages, gateway and model."""
    pages = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(suite / "pages")))
    threading.Thread(target=pages.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{pages.server_port}"
    root = tmp_path_factory.mktemp("gateway")
    variables = {"GATEWAY_CORS_ORIGINS": origin, "PYTHONPATH": str(HERE)}
    try:
        with (
            ScriptedOpenAI() as model,
            gateway_process(root, auth=True, model_url=model.base_url, config=CONFIG, environment=variables) as gateway,
        ):
            yield {
                "PAGES_URL": origin,
                "DEERFLOW_URL": gateway.url,
                "DEERFLOW_TOKEN": gateway.token("read", "write"),
                "MODEL_URL": model.base_url.removesuffix("/v1"),
            }
    finally:
        pages.shutdown()
        pages.server_close()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("spec", SPECS)
def test_an_interface_of_others_works(spec: str, suite: Path, environment: dict[str, str]) -> None:
    line = ["node_modules/.bin/playwright", "test", spec]
    done = subprocess.run(
        line, cwd=suite, env={**os.environ, **environment, "NO_PROXY": "127.0.0.1"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
