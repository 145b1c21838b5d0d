"""Addresses that stay closed."""

from __future__ import annotations

import pytest

from deerflow.security.addresses import Blocked, EgressPolicy, Network, literal_address, without_inner_addresses
from deerflow.security.outbound import Outbound

KEYS = [
    "169.254.169.254",
    "0xA9FEA9FE",
    "[fd00:ec2::254]",
    "100.100.100.200",
    "[::ffff:169.254.169.254]",
    "169.254.1.1",
]


@pytest.mark.parametrize("host", KEYS)
@pytest.mark.parametrize("mode", ["internet", "allowlist"])
async def test_no_message_says_how_to_open_the_addresses_where_clouds_serve_keys(host: str, mode: str) -> None:
    network = Network("internet" if mode == "internet" else "allowlist", allow=("example.org",))
    plain = host.strip("[]")
    said: list[str] = []
    for port in (80, 8080):
        with pytest.raises(Blocked) as blocked:
            EgressPolicy(network).check_name(plain, port)
        said.append(str(blocked.value))
    with pytest.raises(Blocked) as blocked:
        EgressPolicy(network).permitted([str(literal_address(plain))], "inner.example.org", 443)
    said.append(str(blocked.value))
    with pytest.raises(Blocked) as blocked:
        Outbound(network).check(f"http://{host}/latest/meta-data/")
    said.append(str(blocked.value))
    assert all("stays closed" in one and "sandbox.network" not in one for one in said), said


def test_of_other_private_addresses_the_setting_is_named() -> None:
    with pytest.raises(Blocked, match="allow_nets"):
        EgressPolicy(Network("internet")).permitted(["10.0.0.1"], "inner.example.org", 443)
    EgressPolicy(Network("internet", allow_nets=("169.254.0.0/16",))).check_name("169.254.169.254", 80)


def test_addresses_of_a_private_network_are_not_shown() -> None:
    for text, shown in (
        ("http://vllm:8000/v1/chat refused", "[address] refused"),
        ("Cannot connect to host vllm:8000 ssl:default ('127.0.0.1', 80)", "Cannot connect to host [address] ssl:default ('[address]', 80)"),
        ("http://user:pw@10.0.0.4:80/x, localhost:11434, gpu.internal and [::1]:80", "[address], [address], [address] and [address]"),
    ):  # fmt: skip
        assert without_inner_addresses(text) == shown
    for public in (
        "code:400 of gpt-4.1, version 0.1.2: see https://platform.example.com/billing",
        "8.8.8.8:53 a/b 1/2",
    ):
        assert without_inner_addresses(public) == public
