"""What the gateway is told at its start: made once at the edge from options and the environment, then only read."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit

from deerflow.config.document import write_text

Network = IPv4Network | IPv6Network
SECRET_FILE = "auth.secret"
_SECRET_LENGTH = 32
"""Characters. RFC 7518 §3.2 asks for a key as long as the hash (32 bytes)."""


class SettingsError(ValueError):
    """A setting that cannot be followed; the message names it and says what to do."""


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """Raises SettingsError for settings that contradict each other or would leave the gateway open by mistake."""

    data_dir: Path
    auth_secret: str = field(repr=False)
    """Signs the cookies of sessions; the same in all processes that serve one site."""
    host: str = "127.0.0.1"
    port: int = 8001
    """0 takes a free one."""
    serve_ui: bool = True
    enable_docs: bool = True
    cors_origins: tuple[str, ...] = ()
    """Other sites whose pages may use this gateway, with the cookies of its users."""
    trusted_origins: tuple[str, ...] = ()
    """Further addresses under which people reach this gateway's own pages, where a proxy does not pass the Host header on."""
    allowed_hosts: tuple[str, ...] = ()
    """Host names that requests may name; empty: local ones on a loopback address, any elsewhere."""
    trusted_proxies: tuple[Network, ...] = ()
    """Peers whose X-Forwarded-* and X-Real-IP headers are believed."""
    authentication: bool = True
    open_to_network: bool = False
    """Serve without authentication although others can reach the address."""
    registration: bool = False
    """Whether anyone may make an account; the first administrator is made by /api/v1/auth/initialize in any case."""
    session_days: int = 7
    password_rounds: int = 12
    """Work factor of bcrypt."""
    max_body_bytes: int = 32 * 1024 * 1024
    """Of all requests but uploads, which have limits of their own."""
    internal_token: str | None = field(default=None, repr=False)
    """What programs of the same operating-system user show instead of a session."""

    def __post_init__(self) -> None:
        if len(self.auth_secret) < _SECRET_LENGTH:
            raise SettingsError(
                f"AUTH_JWT_SECRET is too short: use at least {_SECRET_LENGTH} random characters, e.g. the output of: "
                'python -c "import secrets; print(secrets.token_hex(32))"'
            )
        if not self.authentication and not self.open_to_network and not self.is_loopback:
            raise SettingsError(
                f"Authentication is off and {self.host} can be reached by others, who could then run commands as you. "
                "Listen on 127.0.0.1, turn authentication on, or, if something else guards the address, "
                "set GATEWAY_OPEN_TO_NETWORK=true."
            )
        if not 1 <= self.session_days <= 30:
            raise SettingsError(f"AUTH_SESSION_DAYS is {self.session_days}; use 1 to 30.")
        if not 0 <= self.port <= 65535:
            raise SettingsError(f"Port {self.port} does not exist; use 0 to 65535.")

    @property
    def is_loopback(self) -> bool:
        """Only this machine can connect."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    @property
    def setup_code(self) -> str | None:
        """What whoever makes the first administrator from elsewhere must know; None where nobody can come from elsewhere.

        All processes of a site have the same, as it follows from their secret.
        """
        if not self.authentication or (self.is_loopback and not self.allowed_hosts and not self.trusted_proxies):
            return None
        digest = hmac.new(self.auth_secret.encode(), b"setup code", hashlib.sha256).digest()
        letters = base64.b32encode(digest)[:12].decode()
        return "-".join(letters[start : start + 4] for start in (0, 4, 8))

    @property
    def session_lifetime(self) -> timedelta:
        return timedelta(days=self.session_days)

    @property
    def own_origins(self) -> frozenset[str]:
        return frozenset((*self.cors_origins, *self.trusted_origins))

    @classmethod
    def from_environ(
        cls,
        environ: Mapping[str, str],
        data_dir: Path,
        *,
        host: str | None = None,
        port: int | None = None,
        serve_ui: bool = True,
    ) -> GatewaySettings:
        """Settings from ``environ``; arguments that are not None win. Makes the secret in ``data_dir`` if there is none.

        Raises:
            SettingsError: a variable holds what it may not.
            OSError: the secret cannot be read or written.
        """
        read = _Environ(environ)
        return cls(
            data_dir=data_dir,
            auth_secret=environ.get("AUTH_JWT_SECRET", "").strip() or load_or_create_secret(data_dir),
            host=host or environ.get("GATEWAY_HOST") or "127.0.0.1",
            port=port if port is not None else read.number("GATEWAY_PORT", 8001),
            serve_ui=serve_ui,
            enable_docs=read.flag("GATEWAY_ENABLE_DOCS", default=True),
            cors_origins=read.origins("GATEWAY_CORS_ORIGINS"),
            trusted_origins=read.origins("DEER_FLOW_TRUSTED_ORIGINS"),
            allowed_hosts=tuple(host.lower() for host in read.words("GATEWAY_ALLOWED_HOSTS")),
            trusted_proxies=read.networks("AUTH_TRUSTED_PROXIES"),
            authentication=not read.flag("DEER_FLOW_AUTH_DISABLED", default=False),
            open_to_network=read.flag("GATEWAY_OPEN_TO_NETWORK", default=False),
            registration=read.flag("AUTH_REGISTRATION", default=False),
            session_days=read.number("AUTH_SESSION_DAYS", 7),
        )


@dataclass(frozen=True, slots=True)
class _Environ:
    """Typed reading of variables. An empty one counts as not set."""

    environ: Mapping[str, str]

    def words(self, name: str) -> tuple[str, ...]:
        return tuple(word.strip() for word in self.environ.get(name, "").split(",") if word.strip())

    def flag(self, name: str, *, default: bool) -> bool:
        value = self.environ.get(name, "").strip().lower()
        if value in ("", "1", "true", "yes", "on", "0", "false", "no", "off"):
            return value in ("1", "true", "yes", "on") if value else default
        raise SettingsError(f"{name} is {value!r}; use true or false.")

    def number(self, name: str, default: int) -> int:
        value = self.environ.get(name, "").strip()
        try:
            return int(value) if value else default
        except ValueError:
            raise SettingsError(f"{name} is {value!r}; use a whole number.") from None

    def origins(self, name: str) -> tuple[str, ...]:
        for origin in (found := self.words(name)):
            parts = urlsplit(origin)
            if origin == "*":
                raise SettingsError(
                    f"{name} cannot be '*', as pages of any site could then act for your users. List the addresses, "
                    "e.g. https://app.example.com."
                )
            if parts.scheme not in ("http", "https") or not parts.netloc or parts.path.strip("/"):
                raise SettingsError(f"{name} holds {origin!r}; an origin looks like https://app.example.com:8443.")
        return tuple(origin.rstrip("/").lower() for origin in found)

    def networks(self, name: str) -> tuple[Network, ...]:
        try:
            return tuple(ip_network(word, strict=False) for word in self.words(name))
        except ValueError as error:
            raise SettingsError(f"{name}: {error}. List addresses or networks, e.g. 10.0.0.0/8, 127.0.0.1.") from None


def load_or_create_secret(data_dir: Path) -> str:
    """The secret of ``data_dir``; of several processes that start at once one makes it and all use it.

    Raises:
        OSError: the file cannot be read or written.
        ValueError: the file holds something else.
    """
    path = data_dir / SECRET_FILE
    if not path.exists():
        data_dir.mkdir(0o711, parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        try:
            write_text(temporary, secrets.token_hex(32), 0o600)
            # It appears whole or not at all: this fails when another process was first.
            with suppress(FileExistsError):
                os.link(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    secret = path.read_text().strip()
    if len(secret) < _SECRET_LENGTH:
        raise ValueError(
            f"{path} holds no usable secret. Delete it to get a new one; everyone has to sign in again then."
        )
    return secret
