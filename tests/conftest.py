"""What every test gets: an event loop on which nothing may block, and a home of its own."""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import re
import shutil
from collections.abc import AsyncIterator, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from hypothesis import HealthCheck, settings
from pytest_rerunfailures import StatusDB
from tests.servers import PostgresServer, postgres_server
from tests.support.authorities import read_once
from tests.support.shared import shared_directory
from tests.support.warm_python import for_asyncio

from deerflow.sandbox.isolation import namespaces
from deerflow.sandbox.isolation.plan import ensure_etc_tree

if TYPE_CHECKING:
    from deerflow.storage.database import Database

_PROVIDER_VARIABLES = (
    "API_KEY",
    "BASE_URL",
    "API_BASE",
    "OPENAI_MODEL",
    "DEER_FLOW",
    "LANGSMITH",
    "LANGCHAIN",
    "LANGFUSE",
    "AUTH_TOKEN",
    "OAUTH_TOKEN",
)

ALLOWED_SKIPS = re.compile(
    r"does not hold: |test_contract itself ran as an ordinary user"  # a check of a boundary that this launcher does not have
    r"|known gap: "
    r"|this provider promises no reasoning"
    r"|this provider's reasoning stays here"
)
"""A suite that skips itself proves nothing: where ``CI`` is set, any other skip fails the run."""

ABOVE_DATABASES = ("test_protocol_stream.py", "test_states.py", "test_transcript.py")
"""Files of tests of what is made of events and checkpoints, whose own tests have both databases."""

UNSTABLE = 2
"""How many tests may fail once and pass when they are run again, where ``CI`` is set."""


settings.register_profile("untimed", settings(deadline=None, suppress_health_check=[HealthCheck.too_slow]))
settings.load_profile("untimed")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let each worker count the failures of its tests itself: asking the controller takes 42 ms a test, since the socket of the plugin waits
    for acknowledgements. Crashes of workers are not run again then, and fail."""
    if hasattr(config, "workerinput") and hasattr(config, "failures_db"):
        vars(config)["failures_db"] = StatusDB()


def pytest_sessionfinish(session: pytest.Session) -> None:
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") != "true" or terminal is None:  # a worker of xdist has no terminal
        return
    unstable = terminal.stats.get("rerun", ())
    reasons = {str(report.longrepr[2]) for report in terminal.stats.get("skipped", ())}
    refused = sorted(reason for reason in reasons if not ALLOWED_SKIPS.search(reason))
    terminal.write_line("")
    for reason in refused:
        terminal.write_line(f"not allowed to be skipped: {reason}", red=True)
    for report in unstable:
        crash = getattr(report.longrepr, "reprcrash", None)
        terminal.write_line(f"unstable: {report.nodeid}: {str(crash or report.longrepr)[:2000]}", yellow=True)
    terminal.write_line(f"unstable tests: {len(unstable)}, at most {UNSTABLE} are allowed")
    if (refused or len(unstable) > UNSTABLE) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that wait for processes most, so that others compute meanwhile. Leave pairs of databases that differ in nothing
    these tests are about to the night."""
    items.sort(key=lambda item: "e2e" not in item.path.parts)
    for item in items:
        given = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        if "postgres" in given.values() and (item.path.name in ABOVE_DATABASES or given.get("sdk") == "sync"):
            item.add_marker(pytest.mark.nightly)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Let the garbage collector rest while everything is imported, and never look at what is there then."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True, scope="session")
def certificates_read_once() -> Iterator[None]:
    with read_once():
        yield


@pytest.fixture(autouse=True, scope="session")
def etc_copied_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Sandboxes of all tests see the same copy of /etc: 800 files, of which each test's data directory would make its own."""
    directory = shared_directory(tmp_path_factory)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(namespaces, "ensure_etc_tree", lambda _, extra=(): ensure_etc_tree(directory, extra))
        yield


@pytest.fixture(autouse=True)
def blockbuster() -> Iterator[BlockBuster]:
    """A blocking call from our code on an event loop fails the test."""
    with blockbuster_ctx(scanned_modules=["deerflow", "deerflow_app"]) as detector:
        for name in ("threading.Lock.acquire", "threading.Lock.acquire_lock"):
            # Coverage has a lock of its own; an error out of it would strike whatever code happened to run.
            detector.functions[name].can_block_in("coverage/collector.py", "lock_data")
        for function in detector.functions.values():
            function.can_block_in("support/warm_python.py", {"_execute_child"})  # starts a process in our code's place
            function.can_block_in("weakref.py", {"__call__"})  # removes a directory wherever the last reference goes
        yield detector


@pytest.fixture
def warm_programs() -> Iterator[None]:
    """Programs in Python that the product starts begin with what they import, which costs an MCP server a second of CPU."""
    with for_asyncio():
        yield


_numbers = itertools.count()


def _directory(factory: pytest.TempPathFactory, name: str) -> Path:
    """An empty directory. pytest would find its number by listing those of all tests before, which takes 4 ms after some thousand."""
    made = factory.getbasetemp() / f"{name}-{next(_numbers)}"
    made.mkdir(mode=0o700)
    return made


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    return _directory(tmp_path_factory, re.sub(r"\W", "_", request.node.name)[:20])


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """No key, configuration or data of the machine reaches a test; returns the data directory that DeerFlow will use."""
    for name in list(os.environ):
        if any(part in name for part in _PROVIDER_VARIABLES):
            monkeypatch.delenv(name)
    home = _directory(tmp_path_factory, "deer-flow")
    monkeypatch.setenv("DEER_FLOW_HOME", str(home))
    return home


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The PostgreSQL of this pytest process."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """An empty database of the test's own."""
    with postgres.fresh_database() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def database_location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a database can be made: a file, or the URL of an empty database."""
    return str(tmp_path / "deerflow.db") if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database that is empty and up to date, to be copied: that is faster than to migrate one for each test."""
    path = tmp_path_factory.mktemp("template") / "deerflow.db"
    migrate(path)
    return path


@pytest.fixture(scope="session")
def postgres_template(postgres: PostgresServer) -> str:
    """The name of a database that is empty and up to date."""
    migrate(postgres.create("up_to_date"))
    return "up_to_date"


def migrate(location: Path | str) -> None:
    from deerflow.storage.database import Database

    async def migrated() -> None:
        database = Database(location)
        await database.migrate()
        await database.aclose()

    with ThreadPoolExecutor(1) as pool:  # a fixture on an event loop may be the first to need it
        pool.submit(asyncio.run, migrated()).result()


@pytest.fixture
def migrated_url(postgres: PostgresServer, postgres_template: str) -> Iterator[str]:
    """A PostgreSQL database of the test's own that is empty and up to date."""
    with postgres.fresh_database(postgres_template) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def migrated_location(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path / "deerflow.db"))
    else:
        yield request.getfixturevalue("migrated_url")


@pytest.fixture
async def database(migrated_location: str) -> AsyncIterator[Database]:
    """A database that is empty and up to date; the test runs once with SQLite and once with PostgreSQL."""
    from deerflow.storage.database import Database

    made = Database(migrated_location)
    yield made
    await made.aclose()
