"""Which provider ``auto`` chooses, and what it does when none works."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from tests.contracts.sandbox.environment import thread_policy

from deerflow.sandbox.auto import AutoSandboxProvider, UnavailableSandboxProvider
from deerflow.sandbox.interface import WORKSPACE, Isolation, Policy, ProbeReport, Problem, SandboxUnavailableError
from deerflow.sandbox.isolation.plan import Launcher
from deerflow.sandbox.local import LocalSandboxProvider
from deerflow.sandbox.provider import IsolatingProvider

PROBLEM = Problem("userns-denied", "This machine refuses user namespaces.", "Set the sysctl.")


class Candidate(IsolatingProvider):
    """A provider whose probe says what the test wants."""

    def __init__(self, data_dir: Path, name: str, level: str | None) -> None:
        super().__init__(data_dir)
        self.name = name
        self.probed = 0
        isolation = Isolation(level, True, "none", True) if level else None  # type: ignore[arg-type]
        self.report = ProbeReport(name, ok=level is not None, isolation=isolation, problems=() if level else (PROBLEM,))

    def _examine(self) -> tuple[ProbeReport, Launcher | None]:
        self.probed += 1
        return self.report, None


def candidates(data_dir: Path, *levels: str | None) -> list[Candidate]:
    return [
        Candidate(data_dir, name, level) for name, level in zip(("bwrap", "userns", "landlock"), levels, strict=True)
    ]


@pytest.mark.parametrize(
    ("levels", "chosen"),
    [
        (("namespaces", "namespaces", "landlock"), "bwrap"),
        ((None, "namespaces", "landlock"), "userns"),
        (("namespaces-no-proc", "namespaces", "landlock"), "userns"),
        (("namespaces-no-proc", "namespaces-no-proc", "landlock"), "bwrap"),
        ((None, "namespaces-no-proc", "landlock"), "userns"),
        ((None, None, "landlock"), "landlock"),
        (("namespaces-no-proc", None, None), "bwrap"),
        ((None, None, None), "none"),
    ],
)
def test_the_best_isolation_is_chosen(tmp_path: Path, levels: tuple[str | None, ...], chosen: str) -> None:
    provider = AutoSandboxProvider(tmp_path, candidates=candidates(tmp_path, *levels))
    assert provider.probe().provider == chosen


def test_weaker_candidates_are_not_even_tried(tmp_path: Path) -> None:
    tried = candidates(tmp_path, "namespaces", "namespaces", "landlock")
    AutoSandboxProvider(tmp_path, candidates=tried).probe()
    assert [candidate.probed for candidate in tried] == [1, 0, 0]


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    return thread_policy(tmp_path, "t")


async def test_without_any_isolation_commands_are_refused_in_words_and_files_work(
    tmp_path: Path, policy: Policy
) -> None:
    provider = AutoSandboxProvider(tmp_path, candidates=candidates(tmp_path, None, None, None))
    sandbox = await provider.acquire("t", user_id="u", policy=policy)
    for attempt in (sandbox.exec("id"), sandbox.exec("id", env={"A": "b"}), sandbox.start_process("id")):
        with pytest.raises(SandboxUnavailableError, match=r"refuses user namespaces.*Set the sysctl"):
            await attempt
    await sandbox.write(f"{WORKSPACE}/a.txt", b"hello\nworld\n")
    assert (await sandbox.read(f"{WORKSPACE}/a.txt"))[0] == b"hello\nworld\n"
    matches, _ = await sandbox.grep(WORKSPACE, "wor")
    assert [(match.line_number, match.line) for match in matches] == [(2, "world")]
    assert await sandbox.list_processes() == []
    await sandbox.reset()
    await provider.shutdown()


async def test_without_any_isolation_root_keeps_the_files_for_itself(tmp_path: Path, policy: Policy) -> None:
    # A root with a single user id, as in a plain user namespace, could give them to nobody.
    provider = AutoSandboxProvider(tmp_path, candidates=candidates(tmp_path, None, None, None))
    await provider.acquire("t", user_id="u", policy=policy)
    assert {mount.host.stat().st_uid for mount in policy.mounts} == {os.geteuid()}
    await provider.shutdown()


def test_without_isolation_it_is_never_silently_local(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    provider = AutoSandboxProvider(tmp_path, candidates=candidates(tmp_path, None, None, None))
    assert isinstance(provider.choose(), UnavailableSandboxProvider)
    assert "No sandbox for commands" in caplog.text


def test_only_on_request_and_with_a_loud_warning_is_it_local(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    offered = candidates(tmp_path, None, None, None)
    provider = AutoSandboxProvider(tmp_path, candidates=offered, allow_unsandboxed=True)
    assert isinstance(provider.choose(), LocalSandboxProvider)
    assert any("NO SANDBOX" in record.message and record.levelno == logging.WARNING for record in caplog.records)


def test_isolation_is_preferred_even_if_none_is_allowed(tmp_path: Path) -> None:
    offered = candidates(tmp_path, None, None, "landlock")
    assert AutoSandboxProvider(tmp_path, candidates=offered, allow_unsandboxed=True).probe().provider == "landlock"


async def test_before_anything_is_acquired_nothing_is_known_and_shutdown_is_harmless(tmp_path: Path) -> None:
    provider = AutoSandboxProvider(tmp_path, candidates=candidates(tmp_path, None, None, None))
    assert provider.get("u:t") is None
    await provider.release("u:t", destroy=True)
    await provider.shutdown()
    await provider.shutdown()


async def test_on_a_machine_with_namespaces_a_command_just_runs(
    namespace_provider: type[IsolatingProvider], tmp_path: Path, policy: Policy
) -> None:
    provider = AutoSandboxProvider(tmp_path)
    sandbox = await provider.acquire("t", user_id="u", policy=policy)
    assert sandbox.isolation.level == "namespaces"
    assert (await sandbox.exec("id -un; pwd")).output == f"agent\n{WORKSPACE}\n"
    assert provider.get(sandbox.id) is sandbox
    await provider.release(sandbox.id, destroy=True)
    assert provider.get(sandbox.id) is None
    await provider.shutdown()
