"""What the gateway is told, and what it refuses to be told."""

from __future__ import annotations

import multiprocessing
import stat
from ipaddress import ip_network
from pathlib import Path

import pytest

from deerflow_app.gateway.settings import GatewaySettings, SettingsError, load_or_create_secret

from .conftest import settings_for


def test_by_default_it_serves_this_machine_alone_with_accounts(tmp_path: Path) -> None:
    settings = GatewaySettings.from_environ({}, tmp_path)

    assert (settings.host, settings.port, settings.authentication, settings.registration) == (
        "127.0.0.1",
        8001,
        True,
        False,
    )
    assert settings.cors_origins == settings.trusted_proxies == ()
    assert GatewaySettings.from_environ({}, tmp_path).auth_secret == settings.auth_secret
    assert settings.auth_secret not in repr(settings)


def test_the_environment_is_understood_and_arguments_win(tmp_path: Path) -> None:
    environ = {
        "AUTH_JWT_SECRET": "s" * 32,
        "GATEWAY_HOST": "0.0.0.0",
        "GATEWAY_PORT": "9000",
        "GATEWAY_ENABLE_DOCS": "False",
        "GATEWAY_CORS_ORIGINS": "https://A.example.com/, http://localhost:3000",
        "DEER_FLOW_TRUSTED_ORIGINS": "https://b.example.com",
        "GATEWAY_ALLOWED_HOSTS": "A.example.com",
        "AUTH_TRUSTED_PROXIES": "10.0.0.0/8, ::1",
        "AUTH_REGISTRATION": "on",
        "AUTH_SESSION_DAYS": "30",
    }

    settings = GatewaySettings.from_environ(environ, tmp_path, port=0)

    assert (settings.host, settings.port, settings.enable_docs, settings.registration) == ("0.0.0.0", 0, False, True)
    assert settings.cors_origins == ("https://a.example.com", "http://localhost:3000")
    assert "https://b.example.com" in settings.own_origins
    assert settings.trusted_proxies == (ip_network("10.0.0.0/8"), ip_network("::1"))
    assert settings.allowed_hosts == ("a.example.com",)
    assert settings.session_lifetime.days == 30
    assert not (tmp_path / "auth.secret").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AUTH_JWT_SECRET", "short"),
        ("GATEWAY_PORT", "http"),
        ("GATEWAY_PORT", "70000"),
        ("GATEWAY_ENABLE_DOCS", "perhaps"),
        ("GATEWAY_CORS_ORIGINS", "*"),
        ("GATEWAY_CORS_ORIGINS", "https://a.example.com, *"),
        ("GATEWAY_CORS_ORIGINS", "a.example.com"),
        ("GATEWAY_CORS_ORIGINS", "https://a.example.com/path"),
        ("AUTH_TRUSTED_PROXIES", "nginx"),
        ("AUTH_SESSION_DAYS", "0"),
        ("AUTH_SESSION_DAYS", "31"),
    ],
)
def test_a_value_that_cannot_be_followed_is_named(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(SettingsError, match="[Pp]ort" if value == "70000" else name):
        GatewaySettings.from_environ({name: value}, tmp_path)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        *((host, True) for host in ("127.0.0.1", "127.8.8.8", "localhost", "::1", "[::1]")),
        *((host, False) for host in ("0.0.0.0", "::", "192.168.1.2", "localhost.example.com", "")),
    ],
)
def test_without_authentication_it_stays_on_this_machine_unless_told_twice(
    tmp_path: Path, host: str, loopback: bool
) -> None:
    if loopback:
        settings_for(tmp_path, host=host, authentication=False)
    else:
        with pytest.raises(SettingsError, match="GATEWAY_OPEN_TO_NETWORK"):
            settings_for(tmp_path, host=host, authentication=False)
    assert settings_for(tmp_path, host=host, authentication=False, open_to_network=True)


def _secret(data_dir: Path) -> str:
    return load_or_create_secret(data_dir)


def test_processes_that_start_at_once_agree_on_the_secret(tmp_path: Path) -> None:
    with multiprocessing.get_context("fork").Pool(8) as pool:
        secrets = set(pool.map(_secret, [tmp_path / "new"] * 32, chunksize=1))

    assert len(secrets) == 1
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["auth.secret"]
    assert stat.S_IMODE((tmp_path / "new" / "auth.secret").stat().st_mode) == 0o600


def test_a_secret_that_is_none_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "auth.secret").write_text("")

    with pytest.raises(ValueError, match="Delete it"):
        load_or_create_secret(tmp_path)
