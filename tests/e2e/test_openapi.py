"""What the API says of itself is true: schemathesis sends what the description allows, and what it does not allow."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest
import requests
import schemathesis
from bench.scripted_openai import ScriptedOpenAI
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from tests.support.gateway_process import GUARD, PASSWORD, GatewayProcess, gateway_process

from deerflow.features.transcription import ENDINGS

SEED = 20_261
EXAMPLES = 2
"""Of each kind, for each operation."""
PATIENCE = 2.0
"""Seconds that are listened to a stream; less than between two heartbeats, so that also what waits for a run ends in time."""
OF_PEOPLE = re.compile(r"^/api/v1/(auth|users)")
"""A token may not manage people, so it is an administrator with a session who does."""
OF_THE_PAGE = re.compile(r"\{full_path\}|^/\{")
WAITING = re.compile(r"/wait$|/join$")
ADMIN = "admin@example.org"
PRIVATE = re.compile(
    r"Traceback \(most recent|site-packages|/home/deerflow|\.py\", line|secret-of-the-test|sqlalchemy|psycopg"
)


@schemathesis.serializer("application/zip", *ENDINGS)
def as_file(_: schemathesis.SerializationContext, value: object) -> bytes:
    """Send bytes that are no such file at all: archives of skills and recordings have tests of their own."""
    return value if isinstance(value, bytes) else str(value).encode()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with (
        ScriptedOpenAI() as endpoint,
        gateway_process(tmp_path_factory.mktemp("gateway"), auth=True, model_url=endpoint.base_url) as process,
    ):
        yield process


@pytest.fixture(scope="module")
def client(gateway: GatewayProcess) -> Iterator[httpx.Client]:
    with gateway.client(authorization=f"Bearer {gateway.token('read', 'write')}") as made:
        yield made


def operations(url: str) -> list[schemathesis.APIOperation]:
    config = schemathesis.config.SchemathesisConfig(
        projects=schemathesis.config.ProjectsConfig(
            default=schemathesis.config.ProjectConfig(
                generation=schemathesis.config.GenerationConfig(deterministic=True, database="none"),
                max_stream_events=20,
            )
        )
    )
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json", config=config)
    found = [result.ok() for result in schema.get_all_operations()]
    return [one for one in found if not OF_THE_PAGE.search(one.path)]


MODES = pytest.mark.parametrize(
    "mode", [GenerationMode.POSITIVE, pytest.param(GenerationMode.NEGATIVE, marks=pytest.mark.nightly)]
)
"""Requests that the description allows, and others."""


@MODES
@pytest.mark.timeout(900)  # alone it takes a minute of CPU
def test_every_answer_is_as_the_description_says_and_none_is_a_fault_of_the_server(
    gateway: GatewayProcess, client: httpx.Client, mode: GenerationMode
):
    """What exists is named now and then, or every answer would be that there is no such thing."""
    thread = client.post("/api/threads", json={}).json()["thread_id"]
    run = client.post(f"/api/threads/{thread}/runs", json={"input": {"messages": []}}).json()["run_id"]
    session = requests.Session()
    session.headers["authorization"] = client.headers["authorization"]
    known = {"thread_id": thread, "run_id": run, "assistant_id": "lead_agent"}
    wrong: list[str] = []
    tried = [one for one in operations(gateway.url) if not OF_PEOPLE.search(one.path)]
    assert len(tried) > 60
    assert sum(map(is_stream, tried)) >= 6
    for operation in tried:
        wrong += exercise(operation, mode, session, gateway.url, known)
    assert gateway.is_healthy(), gateway.output
    assert not wrong, "\n".join(wrong)
    assert "Traceback" not in gateway.output


@pytest.mark.nightly
@MODES
def test_the_routes_of_people_are_as_described_too(gateway: GatewayProcess, client: httpx.Client, mode: GenerationMode):
    assert client  # there is an administrator
    session = sign_in(gateway, requests.Session())
    other = {"email": f"{mode.value}@example.org", "password": PASSWORD}
    made = session.post(f"{gateway.url}/api/v1/users", json=other, headers=dict(session.headers))
    wrong: list[str] = []
    tried = [one for one in operations(gateway.url) if OF_PEOPLE.search(one.path)]
    assert len(tried) > 12
    for operation in tried:
        wrong += exercise(operation, mode, session, gateway.url, {"user_id": made.json()["id"]})
        sign_in(gateway, session)  # it may have signed out, or guessed too often
    assert gateway.is_healthy(), gateway.output
    assert not wrong, "\n".join(wrong)
    assert "Traceback" not in gateway.output


def is_stream(operation: schemathesis.APIOperation) -> bool:
    return "text/event-stream" in str(operation.definition.raw.get("responses"))


def sign_in(gateway: GatewayProcess, session: requests.Session) -> requests.Session:
    session.trust_env = False
    session.headers.pop("x-csrf-token", None)
    form = {"username": ADMIN, "password": PASSWORD}
    session.post(f"{gateway.url}/api/v1/auth/login/local", data=form).raise_for_status()
    session.headers["x-csrf-token"] = session.cookies["csrf_token"]
    return session


def exercise(
    operation: schemathesis.APIOperation,
    mode: GenerationMode,
    session: requests.Session,
    url: str,
    known: dict[str, str],
) -> list[str]:
    wrong: list[str] = []
    choose = random.Random(SEED)
    timeout = PATIENCE if is_stream(operation) or WAITING.search(operation.path) else GUARD

    @seed(SEED)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def send(data: st.DataObject) -> None:
        case = data.draw(operation.as_strategy(generation_mode=mode))
        if choose.random() < 0.7:
            case.path_parameters.update({name: known[name] for name in case.path_parameters if name in known})
        try:
            answer = case.call(base_url=url, session=session, headers=case.headers or {}, timeout=timeout)
        except (requests.Timeout, requests.ConnectionError) as error:
            if timeout == GUARD or "Read timed out" not in str(error):
                wrong.append(f"{error!r} to {case.as_curl_command()}")
            return  # it waits for a run
        if (said := judge(case, answer)) is not None:
            wrong.append(f"{answer.status_code} to {case.as_curl_command()}: {said}")

    with suppress(Unsatisfiable):  # there is nothing to get wrong in a request without parameters
        send()
    return wrong[:3]


def judge(case: schemathesis.Case, answer: schemathesis.Response) -> str | None:
    said = answer.content.decode(errors="replace")
    if answer.status_code >= 500 or PRIVATE.search(said):
        return said[:500]
    try:
        case.validate_response(
            answer,
            checks=[
                schemathesis.checks.not_a_server_error,
                schemathesis.specs.openapi.checks.status_code_conformance,
                schemathesis.specs.openapi.checks.content_type_conformance,
                schemathesis.specs.openapi.checks.response_schema_conformance,
            ],
        )
    except BaseExceptionGroup as failures:
        return "; ".join(str(one).split("Reproduce", 1)[0][:400] for one in failures.exceptions)
    return None
