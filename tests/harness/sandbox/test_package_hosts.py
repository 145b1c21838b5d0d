"""Hosts of packages, as pip and npm in a sandbox name them."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from tests.harness.sandbox.conftest import Sandboxes, data_dir, namespace_provider, sandboxes

from deerflow.sandbox.interface import Policy
from deerflow.sandbox.package_hosts import PackageHosts, hosts_of

__all__ = ["data_dir", "namespace_provider", "sandboxes"]


async def test_the_hosts_are_those_that_the_sandboxes_environment_names(sandboxes: Sandboxes) -> None:
    chosen = {
        "PIP_INDEX_URL": "https://user:secret@mirror.test/simple",
        "UV_INDEX": "own=https://wheels.test:8443/x https://mirror.test/y",
        "NPM_CONFIG_REGISTRY": "http://npm.test/",
    }
    thread = await sandboxes.acquire()
    await thread.write("/home/agent/.config/pip/pip.conf", b"[global]\nextra-index-url = https://evil.test/simple\n")
    policy: Policy = replace(await asyncio.to_thread(sandboxes.policy), environment=chosen)
    hosts = await PackageHosts(sandboxes.provider, None).of(policy)
    assert hosts[:2] == ("mirror.test", "wheels.test") and set(hosts) <= {"mirror.test", "wheels.test", "npm.test"}
    assert await PackageHosts(sandboxes.provider, ()).of(policy) == ()
    assert await PackageHosts(sandboxes.provider, ("listed.test",)).of(policy) == ("listed.test",)


def test_what_is_no_address_names_no_host() -> None:
    assert hosts_of("undefined\nfile:///packages\nhttps://A.test/x\nhttp://a.test\n://\nhttps://[::1\n") == ("a.test",)
