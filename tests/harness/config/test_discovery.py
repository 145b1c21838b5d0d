"""Finding models without a file, against real servers on this machine."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from deerflow.config import AppConfig, ConfigError, discover_models, load_config
from deerflow.config.discovery import addresses, http_probe, local_servers, providers
from deerflow.models import create_chat_model, model_info

PROVIDERS = tuple(provider for provider in providers() if provider.presets)
ASKED = tuple(provider for provider in providers() if not provider.presets)
Answer = Callable[[BaseHTTPRequestHandler], None]


def listing(*models: str) -> Answer:
    return lambda handler: reply(
        handler, 200, json.dumps({"object": "list", "data": [{"id": model} for model in models]})
    )


def reply(handler: BaseHTTPRequestHandler, status: int, body: str, headers: Mapping[str, str] | None = None) -> None:
    handler.send_response(status)
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body.encode())


@contextmanager
def server(answer: Answer) -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    requests: list[tuple[str, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append((self.path, self.headers.get("Authorization")))
            answer(self)

        def log_message(self, format: str, *args: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}/v1", requests
    finally:
        httpd.shutdown()
        httpd.server_close()


def no_probe(base_url: str, key: str | None, timeout: float) -> list[str]:
    return []


def never(base_url: str, key: str | None, timeout: float) -> list[str]:
    pytest.fail(f"{base_url} was asked")


# keys --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", PROVIDERS, ids=[provider.title for provider in PROVIDERS])
def test_each_provider_is_found_by_each_of_its_keys_and_asks_nobody(provider) -> None:
    for variable in provider.keys:
        models = discover_models({variable: " key "}, never)
        assert [model.model for model in models] == [preset.model for preset in provider.presets]
        for model in models:
            assert model.settings()["api_key"] == "key"
            assert model.settings().get("base_url") == provider.base_url
            assert model.use == provider.use
            assert str(model.discovered_from) == f"{variable} is set"


@pytest.mark.parametrize("provider", ASKED, ids=[provider.title for provider in ASKED])
def test_a_provider_without_presets_is_asked_for_its_models(provider) -> None:
    with server(listing("one", "text-embedding-9")) as (here, requests):
        environ = {f"{provider.prefix}API_KEY": "key"}
        if provider.needs == "address":
            assert [model.name for model in discover_models(environ, no_probe)] == ["demo"]
        (model,) = discover_models(environ | {f"{provider.prefix}BASE_URL": here.removesuffix("/v1")}, http_v1_probe)
        assert (model.name, model.use) == ("one", provider.use)
        assert (model.settings()["base_url"], model.settings()["api_key"]) == (here, "key")
        (named,) = discover_models(
            environ | {f"{provider.prefix}BASE_URL": here, f"{provider.prefix}MODEL": "mine"}, never
        )
        assert named.name == "mine"
    assert requests == [("/v1/models", "Bearer key")]


def http_v1_probe(base_url: str, key: str | None, timeout: float) -> Sequence[str]:
    return http_probe(base_url, key, timeout) if base_url.endswith("/v1") else ()


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("localhost:1234", ["http://localhost:1234", "http://localhost:1234/v1"]),
        ("10.0.0.3:80/", ["http://10.0.0.3:80", "http://10.0.0.3:80/v1"]),
        ("gpu.local:8000/v1", ["http://gpu.local:8000/v1"]),
        ("api.example.com", ["https://api.example.com", "https://api.example.com/v1"]),
        ("http://h/v1/", ["http://h/v1"]),
        ("http://[", ["http://["]),
        ("http://", ["http://"]),
    ],
)
def test_an_address_that_is_not_whole_stands_for_those_that_may_be_meant(text: str, meant: list[str]) -> None:
    assert addresses(text) == meant


def test_a_key_typed_on_the_page_is_not_of_the_environment() -> None:
    environ = {"DEEPSEEK_API_KEY": "k", "MISTRAL_API_KEY": "k"}
    models = discover_models(environ, never, {"MISTRAL_API_KEY"})
    assert list(dict.fromkeys(str(model.discovered_from) for model in models)) == [
        "DEEPSEEK_API_KEY is set",
        "connected on the page",
    ]


def test_providers_come_in_their_order_and_the_first_is_the_default() -> None:
    models = discover_models(
        {
            "OPENROUTER_API_KEY": "o",
            "DEEPSEEK_API_KEY": "d",
            "ANTHROPIC_API_KEY": "a",
            "OPENAI_API_KEY": "p",
            "GEMINI_API_KEY": "g",
        },
        never,
    )
    reasons = list(dict.fromkeys(str(model.discovered_from) for model in models))
    assert [reason.split("_")[0] for reason in reasons] == [
        "ANTHROPIC",
        "OPENAI",
        "DEEPSEEK",
        "GEMINI",
        "OPENROUTER",
    ]


def test_no_two_models_have_one_name() -> None:
    environ = {variable: "k" for provider in PROVIDERS for variable in provider.keys}
    names = [model.name for model in discover_models(environ, never)]
    assert len(names) == len(set(names))
    assert names[0] == "claude-sonnet-5-5"


@pytest.mark.parametrize("value", ["", "   "])
def test_an_empty_key_is_no_key(value: str) -> None:
    assert [model.name for model in discover_models({"OPENAI_API_KEY": value}, no_probe)] == ["demo"]


def test_keys_never_reach_another_provider() -> None:
    environ = {variable: f"key-of-{variable}" for provider in PROVIDERS for variable in provider.keys}
    homes = {provider.keys[0]: provider for provider in PROVIDERS}
    for model in discover_models(environ, never):
        variable = str(model.discovered_from).split()[0]
        settings = model.settings()
        assert settings["api_key"] == f"key-of-{variable}"
        assert settings.get("base_url") == homes[variable].base_url


def test_model_and_address_can_be_set_in_the_environment() -> None:
    (model,) = discover_models(
        {"MOONSHOT_API_KEY": "k", "MOONSHOT_MODEL": "kimi-x", "MOONSHOT_BASE_URL": "https://api.moonshot.cn/v1"}, never
    )
    assert (model.name, model.settings()["base_url"]) == ("kimi-x", "https://api.moonshot.cn/v1")
    (known,) = discover_models({"OPENAI_API_KEY": "k", "OPENAI_MODEL": "gpt-6.1-sol"}, never)
    assert known.supports_vision
    assert known.use == "langchain_openai:ChatOpenAI"


def test_several_models_are_named_with_commas() -> None:
    models = discover_models({"MISTRAL_API_KEY": "k", "MISTRAL_MODEL": "mistral-large-latest, new-one"}, never)
    assert [(model.name, model.display_name) for model in models] == [
        ("mistral-large-latest", "Mistral Large"),
        ("new-one", "new-one"),
    ]


def test_a_server_beside_openai_is_known_by_its_address_alone() -> None:
    own = {"OPENAI_COMPATIBLE_BASE_URL": "http://h:1/v1", "OPENAI_COMPATIBLE_MODEL": "a,b"}
    models = discover_models({"OPENAI_API_KEY": "k", "OPENAI_MODEL": "gpt-6-luna"} | own, never)
    assert [(model.name, model.settings()["api_key"]) for model in models] == [
        ("gpt-6-luna", "k"),
        ("a", "none"),
        ("b", "none"),
    ]
    assert discover_models({"OPENAI_COMPATIBLE_API_KEY": "k"}, no_probe)[0].name == "demo", "no address, no server"


# OpenAI-compatible servers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "OPENAI_API_BASE"])
def test_a_compatible_server_is_asked_for_its_models_with_the_key(variable: str) -> None:
    with server(listing("first", "text-embedding-x", "second")) as (base_url, requests):
        models = discover_models({"OPENAI_API_KEY": "k", variable: base_url}, http_probe)
    assert [model.name for model in models] == ["first", "second"]
    settings = {"model": "first", "api_key": "k", "base_url": base_url, "use_responses_api": False}
    assert models[0].settings() == settings
    assert base_url in str(models[0].discovered_from)
    assert requests == [("/v1/models", "Bearer k")]


def test_a_compatible_server_needs_no_key() -> None:
    with server(listing("local")) as (base_url, requests):
        models = discover_models({"OPENAI_BASE_URL": base_url}, http_probe)
    assert [model.name for model in models] == ["local"]
    assert requests == [("/v1/models", None)]


def test_a_compatible_server_is_not_asked_when_the_model_is_given() -> None:
    (model,) = discover_models(
        {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://h:1/v1", "OPENAI_MODEL": "given"}, never
    )
    assert model.model == "given"


def test_a_server_that_lists_nothing_is_never_answered_by_a_guess() -> None:
    (model,) = discover_models({"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://u:pw@127.0.0.1:9/v1"}, http_probe)
    assert "pw" not in str(model.discovered_from)
    config = AppConfig(models=(model,))
    (info,) = model_info(config)
    assert info.name == "unnamed"
    with pytest.raises(ConfigError) as refused:
        create_chat_model(app_config=config)
    for text in (str(info.problem), str(refused.value)):
        assert "http://127.0.0.1:9/v1 did not list its models" in text
        assert "set OPENAI_MODEL" in text
        assert "gpt" not in text and "pw" not in text


def test_a_slow_server_is_waited_for() -> None:
    with server(slow) as (base_url, _):
        models = discover_models({"OPENAI_BASE_URL": base_url}, http_probe)
    assert [model.name for model in models] == ["late"]


def test_openai_itself_is_not_asked() -> None:
    models = discover_models({"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "https://api.openai.com/v1"}, never)
    assert models[0].use == "langchain_openai:ChatOpenAI"


# the probe -----------------------------------------------------------------------------------------------------------------


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b"x" * 65536)
    except OSError:
        return


def slow(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(1.2)
    listing("late")(handler)


@pytest.mark.parametrize(
    "answer",
    [
        lambda handler: reply(handler, 404, "no"),
        lambda handler: reply(handler, 200, "<html>"),
        lambda handler: reply(handler, 200, "[]"),
        lambda handler: reply(handler, 200, '{"data": {"id": "x"}}'),
        lambda handler: reply(handler, 200, '{"data": [{"id": 5}, "x", null]}'),
        lambda handler: handler.wfile.write(b"not http"),
        endless,
        slow,
    ],
    ids=["404", "html", "list", "mapping", "no-ids", "no-http", "endless", "slow"],
)
def test_whatever_listens_there_the_probe_ends_with_no_models(answer: Answer) -> None:
    with server(answer) as (base_url, _):
        assert list(http_probe(base_url, None, 0.3)) == []


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/v1", "nonsense", "http://[", "file:///etc/passwd"])
def test_no_server_means_no_models(address: str) -> None:
    assert list(http_probe(address, None, 0.3)) == []


def test_a_key_is_not_carried_along_by_a_redirect() -> None:
    with server(listing("evil")) as (elsewhere, received):
        with server(lambda handler: reply(handler, 302, "", {"Location": f"{elsewhere}/models"})) as (base_url, _):
            assert list(http_probe(base_url, "k", 0.3)) == []
    assert received == []


# local servers and the demo ------------------------------------------------------------------------------------------------


def test_local_servers_are_asked_at_their_usual_ports_without_any_key() -> None:
    asked: list[tuple[str, str | None, float]] = []

    def probe(base_url: str, key: str | None, timeout: float) -> list[str]:
        asked.append((base_url, key, timeout))
        return ["qwen3:8b", "nomic-embed-text"] if "11434" in base_url else []

    models = discover_models({"JINA_API_KEY": "k"}, probe)
    assert sorted(asked) == sorted((f"http://127.0.0.1:{port}/v1", None, 0.3) for port in (11434, 8000, 1234))
    assert [(model.name, str(model.discovered_from)) for model in models] == [
        ("qwen3:8b", "Ollama at http://127.0.0.1:11434/v1")
    ]


def test_local_servers_are_asked_at_the_same_time() -> None:
    together = threading.Barrier(len(local_servers()), timeout=5)

    def probe(base_url: str, key: str | None, timeout: float) -> list[str]:
        together.wait()
        return []

    assert discover_models({}, probe)[0].name == "demo"


def test_the_demo_model_comes_last_and_says_what_to_do() -> None:
    (demo,) = discover_models({}, no_probe)
    assert (demo.name, demo.use) == ("demo", "deerflow.models.demo:DemoChatModel")
    assert "OPENAI_API_KEY" in str(demo.description)


def test_models_in_a_file_switch_discovery_off(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("models: [{name: m, use: 'a:B', model: x}]\n")
    config = load_config(environ={"OPENAI_API_KEY": "k"}, cwd=tmp_path, probe=never)
    assert [model.name for model in config.models] == ["m"]


@pytest.mark.parametrize("text", ["", "models:\n", "models: []\n"])
def test_a_file_without_models_uses_discovery(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    assert load_config(environ={"DEEPSEEK_API_KEY": "k"}, cwd=tmp_path, probe=never).models[0].name == "deepseek-flash"
