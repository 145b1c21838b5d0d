"""A gateway with people in it: an administrator, a second user, and somebody unknown."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import pytest
import uvicorn
from bench.scripted_openai import ScriptedOpenAI
from fastapi import FastAPI

from deerflow.capability import Package
from deerflow.config import ConfigSource, Paths
from deerflow.runtime import Runtime
from deerflow.storage.database import Database
from deerflow_app.gateway.app import create_app
from deerflow_app.gateway.http.connections import BoundedHttp, ConnectionLimits
from deerflow_app.gateway.settings import GatewaySettings

PASSWORD = "correct horse battery"
ADMIN, USER = "admin@example.org", "user@example.org"
DATABASE = "deerflow.db"
INTERNAL_TOKEN = "internal-token-of-this-test"
MODELS = ("m", "other")


@dataclass
class Gateway:
    """``admin`` and ``user`` are signed in and send their CSRF token; ``anonymous`` shows nothing."""

    app: FastAPI
    settings: GatewaySettings
    stack: AsyncExitStack
    url: str = "http://localhost"
    transport: Callable[[], httpx.AsyncBaseTransport | None] = lambda: None
    admin: httpx.AsyncClient = field(init=False)
    user: httpx.AsyncClient = field(init=False)
    anonymous: httpx.AsyncClient = field(init=False)

    @property
    def runtime(self) -> Any:
        return self.app.state.runtime

    async def client(self, **headers: str) -> httpx.AsyncClient:
        """Another browser, or program, with nothing but these headers."""
        client = httpx.AsyncClient(base_url=self.url, transport=self.transport(), headers=headers, timeout=60)
        return await self.stack.enter_async_context(client)

    async def sign_in(self, email: str, password: str = PASSWORD) -> httpx.AsyncClient:
        """A new session."""
        client = await self.client()
        answer = await client.post("/api/v1/auth/login/local", data={"username": email, "password": password})
        assert answer.status_code == 200, answer.text
        return with_csrf(client)

    async def token(self, owner: httpx.AsyncClient, *scopes: str) -> httpx.AsyncClient:
        """A program with an API token of ``owner``."""
        answer = await owner.post("/api/v1/auth/tokens", json={"name": "test", "scopes": list(scopes)})
        assert answer.status_code == 201, answer.text
        return await self.client(authorization=f"Bearer {answer.json()['token']}")

    async def populate(self) -> None:
        """Make the administrator and the second user, and sign them in."""
        self.anonymous = await self.client()
        self.admin = await self.client()
        made = await self.admin.post("/api/v1/auth/initialize", json={"email": ADMIN, "password": PASSWORD})
        assert made.status_code == 201, made.text
        with_csrf(self.admin)
        made = await self.admin.post("/api/v1/users", json={"email": USER, "password": PASSWORD})
        assert made.status_code == 201, made.text
        self.user = await self.sign_in(USER)

    async def resume(self, population: Population) -> None:
        """Take over the people, and their sessions, of a gateway whose database was copied."""
        self.anonymous, self.admin, self.user = [await self.client() for _ in range(3)]
        host = httpx.URL(self.url).host
        domain = host if "." in host else f"{host}.local"  # as http.cookiejar names it
        for client, cookies in ((self.admin, population.admin), (self.user, population.user)):
            for name, value in cookies.items():
                client.cookies.set(name, value, domain=domain)
            with_csrf(client)


@dataclass(frozen=True)
class Population:
    """A database with people in it, and the cookies of their sessions."""

    database: Path
    admin: dict[str, str]
    user: dict[str, str]

    def copy_to(self, data_dir: Path) -> None:
        data_dir.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.database, data_dir / DATABASE)


def with_csrf(client: httpx.AsyncClient) -> httpx.AsyncClient:
    client.headers["x-csrf-token"] = client.cookies["csrf_token"]
    return client


class DatabaseOnly:
    """A runtime of which only the database is there."""

    packages: Mapping[str, Package] = MappingProxyType({})

    def __init__(self, location: Path) -> None:
        self.database = Database(location)

    async def start(self) -> None:
        await self.database.migrate()

    async def aclose(self) -> None:
        await self.database.aclose()


def settings_for(data_dir: Path, **changes: Any) -> GatewaySettings:
    values = {"auth_secret": "s" * 40, "password_rounds": 4, "internal_token": INTERNAL_TOKEN, "serve_ui": False}
    return GatewaySettings(data_dir=data_dir, **(values | changes))


def app_of(settings: GatewaySettings, runtime: Any) -> FastAPI:
    runtime = runtime or DatabaseOnly(settings.data_dir / DATABASE)
    return create_app(runtime.database, settings, lambda: runtime)


@asynccontextmanager
async def opened(settings: GatewaySettings, runtime: Any = None) -> AsyncIterator[Gateway]:
    """A gateway without people, called in this process."""
    app = await asyncio.to_thread(app_of, settings, runtime)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(app.router.lifespan_context(app))
        await app.state.opening
        yield Gateway(app, settings, stack, transport=lambda: httpx.ASGITransport(app))


@asynccontextmanager
async def listening(
    settings: GatewaySettings, runtime: Any = None, limits: ConnectionLimits | None = None
) -> AsyncIterator[Gateway]:
    """The same behind a real socket, for streams and whatever else ``ASGITransport`` does not do."""
    app = await asyncio.to_thread(app_of, settings, runtime)
    http = partial(BoundedHttp, limits=limits or ConnectionLimits.of_process())
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            port=0,
            log_config=None,
            proxy_headers=False,
            timeout_graceful_shutdown=5,
            http=http,  # type: ignore[arg-type]
        )
    )
    serving = asyncio.create_task(server._serve())
    async with asyncio.timeout(60):
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
    assert server.started, serving.exception()
    await app.state.opening
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        async with AsyncExitStack() as stack:
            yield Gateway(app, settings, stack, url=f"http://127.0.0.1:{port}")
    finally:
        server.should_exit = True
        await serving


@pytest.fixture
def scripted() -> Iterator[ScriptedOpenAI]:
    """The only model."""
    with ScriptedOpenAI() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def population(tmp_path_factory: pytest.TempPathFactory) -> Population:
    """Made once: most of the time that a test takes would be making it."""

    async def make(data_dir: Path) -> Population:
        async with opened(settings_for(data_dir)) as gateway:
            await gateway.populate()
            cookies = [
                {cookie.name: cookie.value or "" for cookie in who.cookies.jar} for who in (gateway.admin, gateway.user)
            ]
        return Population(data_dir / DATABASE, *cookies)

    return asyncio.run(make(tmp_path_factory.mktemp("population")))


@pytest.fixture
async def gateway(tmp_path: Path, population: Population) -> AsyncIterator[Gateway]:
    population.copy_to(tmp_path)
    async with opened(settings_for(tmp_path)) as opened_gateway:
        await opened_gateway.resume(population)
        yield opened_gateway


@pytest.fixture
async def live_gateway(tmp_path: Path, population: Population) -> AsyncIterator[Gateway]:
    """Behind a real socket."""
    population.copy_to(tmp_path)
    async with listening(settings_for(tmp_path)) as listening_gateway:
        await listening_gateway.resume(population)
        yield listening_gateway


WithRuntime = Callable[..., AbstractAsyncContextManager["Gateway"]]


@pytest.fixture
def with_runtime(tmp_path: Path, population: Population, scripted: ScriptedOpenAI) -> WithRuntime:
    """Opens a gateway with a runtime, behind a real socket, given sections of the configuration."""

    @asynccontextmanager
    async def open_it(**sections: Any) -> AsyncIterator[Gateway]:
        if not (tmp_path / "data").exists():
            population.copy_to(Paths(tmp_path).data_dir)
        model = {"use": "langchain_openai:ChatOpenAI", "api_key": "k", "base_url": scripted.base_url}
        overrides = {
            "models": [{**model, "name": name, "model": name} for name in MODELS],
            "sandbox": {"tool_image": {"enabled": False}},
            "title": {"enabled": False},
            **sections,
        }
        source = ConfigSource(cwd=tmp_path, overrides=overrides)
        runtime = await asyncio.to_thread(lambda: Runtime(source, Paths(tmp_path)))
        async with listening(settings_for(tmp_path), runtime) as made:
            await made.resume(population)
            yield made

    return open_it
