"""Signing in and out, and the accounts of those who may."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass

from email_validator import EmailNotValidError, validate_email

from deerflow.accounts import Role, SessionRepository, User, UserRepository
from deerflow.errors import ConflictError, ForbiddenError, InvalidRequestError, RequestError, UnauthenticatedError
from deerflow.features.site import registration_choice
from deerflow.storage.database import Database
from deerflow_app.gateway.auth import Authenticator, Claims, Device
from deerflow_app.gateway.auth.passwords import Passwords, check_password, is_outdated
from deerflow_app.gateway.auth.throttle import Client, Throttle, ThrottledError
from deerflow_app.gateway.settings import GatewaySettings

_PER_CLIENT_AND_ACCOUNT, _PER_CLIENT, _PER_ACCOUNT = 5, 20, 50
_PER_DEVICE = 10
_SETUPS_PER_CLIENT = 10
_NEW_ACCOUNTS_PER_CLIENT = 20


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A session that has just begun."""

    user: User
    claims: Claims
    device: Device


class Accounts:
    def __init__(self, database: Database, authenticator: Authenticator, settings: GatewaySettings) -> None:
        self._database = database
        self.users = UserRepository(database)
        self._sessions = SessionRepository(database)
        self._authenticator = authenticator
        self._settings = settings
        self._passwords = Passwords(settings.password_rounds)
        self._sign_ins = Throttle(window=300)
        self._new_accounts = Throttle(window=3600)

    async def needs_setup(self) -> bool:
        """Nobody can sign in yet."""
        return self._settings.authentication and not await self.users.any_admin()

    def setup_code_required(self, client: Client) -> bool:
        """Whether ``client`` would have to know the code, were there somebody to be made."""
        return self._settings.setup_code is not None and not client.is_local

    async def sign_in(self, email: str, password: str, client: Client, device: Device | None = None) -> SignedIn:
        """Args:
            device: what the browser is known by. In one that has signed in to the account before, only attempts made in it
                count, so that nobody can lock its owner out by trying from elsewhere.

        Raises:
            UnauthenticatedError: no such account, or another password.
            ForbiddenError: the account is suspended.
            ThrottledError: too many attempts from there, or at this account, or at all.
        """
        account = email.strip().lower()[:320]
        known = device is not None and device.account == account
        if device is not None and known:
            own, others = {f"device {device.id}": _PER_DEVICE}, {}
        else:
            own = {f"pair {client.network} {account}": _PER_CLIENT_AND_ACCOUNT}
            others = {f"client {client.network}": _PER_CLIENT, f"account {account}": _PER_ACCOUNT}
        self._sign_ins.attempt(own | others)
        user = await self.users.by_email(account)
        try:
            is_right = await self._passwords.verify(password, user.password_hash if user else None, known=known)
        except ThrottledError:
            self._sign_ins.take_back([*own, *others])
            raise
        if user is None or not is_right:
            raise UnauthenticatedError("Incorrect email or password.", code="invalid_credentials")
        if user.suspended_at is not None:
            raise ForbiddenError("This account is suspended. Ask an administrator.", code="account_suspended")
        for key in own:
            self._sign_ins.forget(key)
        self._sign_ins.take_back([*others])
        if user.password_hash and is_outdated(user.password_hash):
            await self.users.rehash(user, await self._passwords.hash(password))
        return await self._begin(user, device)

    async def sign_out(self, session_id: str, *, everywhere: bool = False) -> None:
        await self._sessions.delete(session_id, everywhere=everywhere)
        self._authenticator.forget()

    async def initialize(self, email: str, password: str, client: Client, code: str | None = None) -> SignedIn:
        """Make the first administrator.

        Raises:
            ConflictError: there is one.
            ForbiddenError: ``client`` is not on this machine and does not know the setup code.
            ThrottledError: too many attempts from there.
        """
        address = check_email(email)
        if not await self.needs_setup():  # before the work that a hash costs
            raise ConflictError("System already initialized", code="system_already_initialized")
        if self.setup_code_required(client):
            self._check_setup_code(client, code)
        return await self._begin(
            await self.users.create_first_admin(
                address, await self._passwords.hash(check_password(password), known=client.is_local)
            )
        )

    async def registration(self) -> bool:
        """Return whether anyone may make an account, as an administrator has chosen, or else as the server was started."""
        chosen = await self._database.read(registration_choice)
        return self._settings.authentication and (self._settings.registration if chosen is None else chosen)

    async def register(self, email: str, password: str, client: Client) -> SignedIn:
        """Raises ForbiddenError where registration is closed, EmailTakenError, ThrottledError."""
        if not await self.registration():
            raise ForbiddenError(
                "Registration is closed. Ask an administrator for an account.", code="registration_closed"
            )
        if await self.needs_setup():
            raise ForbiddenError("Set up the first administrator before others register.", code="setup_required")
        self._new_accounts.attempt({client.network: _NEW_ACCOUNTS_PER_CLIENT})
        return await self._begin(await self._create(email, password, "user", known=False))

    async def add(self, email: str, password: str | None, role: Role) -> tuple[User, str | None]:
        """Make an account for someone else; without a password it gets a random one, which is returned."""
        chosen = secrets.token_urlsafe(12) if password is None else None
        user = await self._create(email, chosen or password or "", role, needs_setup=True)
        return user, chosen

    async def change_password(
        self,
        user: User,
        current: str,
        new: str,
        new_email: str | None,
        client: Client,
        *,
        end_sessions: bool = True,
    ) -> SignedIn:
        """Begin a session with a new password; all others of the user end unless ``end_sessions`` is false.

        Raises:
            RequestError: ``current`` is not the password, or the new address is another account's.
            ThrottledError: too many attempts.
        """
        check_password(new)
        address = check_email(new_email) if new_email else None
        await self.confirm(user, current, client)
        changed = await self.users.set_password(
            user, await self._passwords.hash(new), email=address, end_sessions=end_sessions
        )
        self._authenticator.forget()
        return await self._begin(changed)

    async def confirm(self, user: User, password: str, client: Client) -> None:
        """Raises RequestError: this is not the password of ``user``; ThrottledError: too many attempts."""
        key = f"change {client.network} {user.id}"
        self._sign_ins.attempt({key: _PER_CLIENT_AND_ACCOUNT})
        if not await self._passwords.verify(password, user.password_hash):
            text = "Current password is incorrect."
            raise RequestError(text, code="invalid_credentials", reason="current_password_wrong")
        self._sign_ins.forget(key)

    async def reset_password(self, user: User) -> str:
        """Set a random password, which its owner must change, end all sessions, and return it."""
        password = secrets.token_urlsafe(12)
        await self.users.set_password(user, await self._passwords.hash(password), needs_setup=True)
        self._authenticator.forget()
        return password

    async def set_role(self, user_id: str, role: Role) -> User:
        """Raises NotFoundError, ConflictError for the last administrator."""
        user = await self.users.set_role(user_id, role)
        self._authenticator.forget()
        return user

    async def delete(self, user_id: str) -> None:
        """Raises NotFoundError, ConflictError for the last administrator."""
        await self.users.delete(user_id)
        self.forget()

    def forget(self) -> None:
        """Look up everybody again: something about accounts was changed elsewhere."""
        self._authenticator.forget()

    async def _create(
        self, email: str, password: str, role: Role, *, needs_setup: bool = False, known: bool = True
    ) -> User:
        address = check_email(email)
        hashed = await self._passwords.hash(check_password(password), known=known)
        return await self.users.create(address, hashed, role, needs_setup=needs_setup)

    async def _begin(self, user: User, device: Device | None = None) -> SignedIn:
        session_id = await self._sessions.create(user.id, self._settings.session_lifetime)
        known = device if device is not None and device.account == user.email else None
        claims = Claims(user.id, session_id, user.token_version)
        return SignedIn(user, claims, known or Device(secrets.token_urlsafe(16), user.email))

    def _check_setup_code(self, client: Client, code: str | None) -> None:
        where = "`deerflow serve` prints it when it starts; `deerflow user add EMAIL` on the server does without."
        if not code or not code.strip():
            raise ForbiddenError(f"From another machine this needs the setup code: {where}", code="setup_code_required")
        self._sign_ins.attempt({f"setup {client.network}": _SETUPS_PER_CLIENT})
        if not hmac.compare_digest(_plain(code).encode(), _plain(self._settings.setup_code or "").encode()):
            raise ForbiddenError(f"This is not the setup code: {where}", code="setup_code_wrong")


def _plain(code: str) -> str:
    """As it may be typed: without hyphens, in any case."""
    return "".join(letter for letter in code.upper() if letter.isalnum())


def check_email(email: str) -> str:
    """``email`` in lower case. Raises InvalidRequestError if nobody can have it."""
    try:
        return validate_email(email.strip(), check_deliverability=False, globally_deliverable=False).normalized.lower()
    except EmailNotValidError as error:
        raise InvalidRequestError(f"This is no e-mail address: {error}", code="invalid_email") from None
