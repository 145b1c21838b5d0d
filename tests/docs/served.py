"""A server for the pages that show how to use one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support import warm_python
from tests.support.gateway_process import COMMAND
from tests.support.warm_python import WarmPython

GUARD = 120.0
EMAIL, PASSWORD = "ada@example.com", "correct horse"


@contextmanager
def served(folder: Path, environ: Mapping[str, str], *, with_token: bool) -> Iterator[dict[str, str]]:
    """`deerflow serve` with the demo model, as long as the context lasts.

    Args:
        folder: where the server and the blocks run; its ``config.yaml`` counts for both.
        environ: of both; ``DEER_FLOW_HOME`` is where the data goes.
        with_token: make an account and a token of it first.

    Yields what the blocks find in their environment besides: ``DEERFLOW_URL`` and ``DEERFLOW_TOKEN``.
    """
    more = {"DEERFLOW_TOKEN": _token(folder, environ)} if with_token else {}
    announcement, log = Path(environ["DEER_FLOW_HOME"], "server.json"), folder / "serve.log"
    with log.open("w") as output:
        command = [*COMMAND, "serve", "--port", "0"]
        server = WarmPython(command, cwd=folder, env=dict(environ), stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + GUARD
        while not announcement.exists():
            assert server.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield {"DEERFLOW_URL": json.loads(announcement.read_text())["url"], **more}
    finally:
        server.terminate()
        assert server.wait(GUARD) == 0, log.read_text()


def _token(folder: Path, environ: Mapping[str, str]) -> str:
    def deerflow(*arguments: str, stdin: str = "") -> str:
        done = warm_python.run([*COMMAND, *arguments], cwd=folder, env=dict(environ), input=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    deerflow("user", "add", EMAIL, "--password-stdin", stdin=PASSWORD + "\n")
    return deerflow("token", "create", "documentation")
