"""What a request showed to say who makes it."""

from __future__ import annotations

from dataclasses import dataclass

from deerflow.accounts.tokens import Scope
from deerflow.accounts.users import User
from deerflow.identity import LOCAL_PRINCIPAL, Principal


@dataclass(frozen=True, slots=True)
class Credential:
    """``user`` is None where nobody signs in (internal callers, authentication off); ``session_id`` only with a cookie."""

    principal: Principal
    scopes: frozenset[Scope] = frozenset(("read", "write", "admin"))
    user: User | None = None
    session_id: str | None = None

    @property
    def is_token(self) -> bool:
        return self.principal.source == "token"


LOCAL = Credential(LOCAL_PRINCIPAL)
"""Everyone, where authentication is off."""

INTERNAL = Credential(Principal(LOCAL_PRINCIPAL.user_id, role="admin", source="internal"))
"""A program of the operating-system user who runs the gateway."""
