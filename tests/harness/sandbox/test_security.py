from __future__ import annotations

import pytest

from deerflow.config import AppConfig
from deerflow.sandbox.policy import is_host_bash_allowed, uses_local_sandbox_provider

LOCAL = (
    "deerflow.sandbox.local:LocalSandboxProvider",
    "deerflow.sandbox.local.local_sandbox_provider:LocalSandboxProvider",
    "vendor.deerflow.sandbox.local.mine:LocalSandboxProvider",
)
ISOLATED = (
    "auto",
    "deerflow.sandbox.isolation.namespaces:BwrapSandboxProvider",
    "deerflow.community.aio_sandbox:AioSandboxProvider",
)


def config(use: str, **settings: object) -> AppConfig:
    return AppConfig.model_validate({"sandbox": {"use": use, **settings}})


@pytest.mark.parametrize("use", LOCAL)
def test_the_local_provider_runs_commands_only_on_request(use: str) -> None:
    assert uses_local_sandbox_provider(config(use))
    assert not is_host_bash_allowed(config(use))
    assert not is_host_bash_allowed(config(use, allow_host_bash=False))
    assert is_host_bash_allowed(config(use, allow_host_bash=True))


@pytest.mark.parametrize("use", ISOLATED)
def test_isolated_commands_are_always_allowed(use: str) -> None:
    assert not uses_local_sandbox_provider(config(use))
    assert is_host_bash_allowed(config(use))
