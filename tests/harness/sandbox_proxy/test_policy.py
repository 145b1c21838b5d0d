"""Which names and addresses a sandbox may reach."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from deerflow.sandbox.interface import Network
from deerflow.security.addresses import Blocked, EgressPolicy, normal_host

INTERNET = EgressPolicy(Network("internet"))


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.255.255.254",
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "100.100.100.200",
        "192.0.0.192",
        "192.88.99.1",
        "3fff::1",
        "192.0.2.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.250",
        "240.0.0.1",
        "255.255.255.255",
        "168.63.129.16",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "::8.8.8.8",
        "64:ff9b::127.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::8.8.8.8",
        "2002:7f00:1::",
        "2002:a00:1::1",
        "2002:a9fe:a9fe::",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2001:db8::1",
        "fe80::1",
        "fec0::1",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "100::1",
        "4000::1",
    ],
)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert not INTERNET.address_ok(ip_address(address))


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "1.1.1.1", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1"],
)
def test_a_public_address_is_allowed(address: str) -> None:
    assert INTERNET.address_ok(ip_address(address))


def test_listed_networks_are_exempt_however_they_are_written() -> None:
    policy = EgressPolicy(Network("internet", allow_nets=("10.1.0.0/16", "fd00::/8")))
    for address in ("10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::10.1.2.3", "fd00::5"):
        assert policy.address_ok(ip_address(address))
    for address in ("10.2.0.1", "127.0.0.1", "fe80::1"):
        assert not policy.address_ok(ip_address(address))


def test_a_denied_network_beats_everything() -> None:
    policy = EgressPolicy(Network("internet", deny=("8.8.8.0/24", "10.1.0.1"), allow_nets=("10.1.0.0/16",)))
    assert not policy.address_ok(ip_address("8.8.8.8"))
    assert not policy.address_ok(ip_address("::ffff:8.8.8.8"))
    assert not policy.address_ok(ip_address("10.1.0.1"))
    assert policy.address_ok(ip_address("10.1.0.2"))


def allowed(network: Network, host: str, port: int = 443) -> bool:
    try:
        EgressPolicy(network).check_name(normal_host(host), port)
    except Blocked:
        return False
    return True


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("packages.test", True),
        ("Packages.Test.", True),
        ("www.packages.test", False),
        ("evilpackages.test", False),
        ("packages.test.evil.com", False),
        ("a.example.com", True),
        ("a.b.example.com", True),
        ("example.com", False),
        ("evilexample.com", False),
        ("bad.example.com", False),
        ("x.bad.example.com", True),
        ("bücher.de", True),
        ("xn--bcher-kva.de", True),
        ("203.0.113.9", True),
        ("198.51.100.1", True),
        ("[2001:db8::1]", True),
        ("8.8.8.8", False),
        ("localhost", False),
    ],
)
def test_names_on_the_allow_list(host: str, expected: bool) -> None:
    network = Network(
        "allowlist",
        allow=("packages.test", "*.example.com", "Bücher.de", "203.0.113.9", "198.51.100.0/24", "2001:db8::/32"),
        deny=("bad.example.com",),
    )
    assert allowed(network, host) is expected


def test_modes_and_ports() -> None:
    assert not allowed(Network("none", allow=("*",)), "packages.test")
    assert not allowed(Network("allowlist"), "packages.test")
    assert allowed(Network("allowlist", allow=("*",)), "anything.org")
    assert allowed(Network("internet"), "anything.org")
    assert not allowed(Network("internet", deny=("*.org",)), "any.thing.org")
    assert not allowed(Network("internet", deny=("*",)), "a.com")
    for port, expected in ((80, True), (443, True), (22, False), (25, False), (8080, False)):
        assert allowed(Network("internet"), "a.com", port) is expected
    assert allowed(Network("internet", ports=(8443,)), "a.com", 8443)


def test_a_refusal_says_what_to_change() -> None:
    with pytest.raises(Blocked, match=r"not on the allow list \(sandbox.network.allow\). Allowed: packages.test"):
        EgressPolicy(Network("allowlist", allow=("packages.test",))).check_name("example.com", 443)
    with pytest.raises(Blocked, match=r"sandbox\.network\.allow_nets"):
        INTERNET.permitted(["127.0.0.1"], "localhost", 443)


def test_only_the_public_ones_among_several_addresses_are_used() -> None:
    usable = INTERNET.permitted(["10.0.0.1", "8.8.8.8", "rubbish", "fe80::1%eth0"], "mixed.org", 443)
    assert [str(address) for address in usable] == ["8.8.8.8"]


@pytest.mark.parametrize(
    "host", ["", "a b", "a/b", "a@b", "a..b", "-a.com", "a\n", "x" * 300, "[::1", "[v1.x]", "a%00b", "*"]
)
def test_what_cannot_be_a_host_is_refused(host: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        normal_host(host)


def test_a_wrong_entry_in_the_configuration_is_reported() -> None:
    for network in (Network(allow=("http://x.org",)), Network(deny=("a b",)), Network(allow_nets=("x.org",))):
        with pytest.raises(ValueError, match=r"."):
            EgressPolicy(network)


@pytest.mark.parametrize(("host", "address"), [("inner.test", "10.1.2.3"), ("10.1.2.3", "10.1.2.3")])
def test_networks_of_the_operator_are_open_on_any_port_and_others_are_not(host: str, address: str) -> None:
    policy = EgressPolicy(Network("internet", allow_nets=("10.1.0.0/16",)))
    policy.check_name(host, 8443)
    assert policy.permitted([address, "8.8.8.8"], host, 8443) == [ip_address(address)]
    assert len(policy.permitted([address, "8.8.8.8"], host, 443)) == 2
    with pytest.raises(Blocked, match=r"Port 8443 is not allowed"):
        policy.permitted(["8.8.8.8"], "public.test", 8443)
    with pytest.raises(Blocked, match=r"Port 8443 is not allowed"):
        policy.check_name("8.8.8.8", 8443)
