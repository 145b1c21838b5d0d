from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from deerflow_app.cli.commands.doctor import reach


@pytest.fixture
def server() -> Iterator[str]:
    """Answers with the status that the path names; waits for ever on /hang."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/hang":
                self.connection.recv(1)
                return
            authorised = self.headers.get("Authorization") == "Bearer good"
            self.send_response(int(self.path[1:]) if authorised else 401)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    httpd = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=httpd.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()


@pytest.mark.parametrize(
    ("path", "key", "status", "words"),
    [
        ("/200", "good", "ok", "reachable"),
        ("/404", "good", "ok", "no listing"),
        ("/200", "bad", "bad", "refuses the key"),
        ("/403", "good", "bad", "refuses the key"),
        ("/503", "good", "warn", "HTTP 503"),
    ],
)
def test_an_endpoint_is_judged_by_what_it_answers(server: str, path: str, key: str, status: str, words: str) -> None:
    answer = reach(server + path, {"Authorization": f"Bearer {key}"})
    assert answer.status == status
    assert words in answer.found


def test_a_silent_endpoint_is_given_up(server: str) -> None:
    answer = reach(server + "/hang", {}, timeout=0.2)
    assert (answer.status, answer.found) == ("bad", "no answer within 0.2 s")


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/v1/models", "http://no-such-host.invalid/v1", "not a url", "http://[::1"]
)
def test_what_cannot_be_reached_is_told_in_words(url: str) -> None:
    answer = reach(url, {})
    assert answer.status == "bad" and answer.found.startswith("cannot be reached")
