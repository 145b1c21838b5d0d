"""Accounts, sessions and tokens, on both databases."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from deerflow.accounts import EmailTakenError, SessionRepository, TokenRepository, UserRepository
from deerflow.errors import ConflictError, InvalidRequestError, NotFoundError
from deerflow.identity import Principal
from deerflow.storage.database import Database
from deerflow.storage.tables import api_tokens, utc_now

DAY = timedelta(days=1)


@pytest.fixture
def users(database: Database) -> UserRepository:
    return UserRepository(database)


async def test_of_many_who_set_up_at_once_exactly_one_is_the_first_administrator(users: UserRepository) -> None:
    made = await asyncio.gather(
        *(users.create_first_admin(f"a{n}@example.org", "hash") for n in range(8)), return_exceptions=True
    )

    winners = [one for one in made if not isinstance(one, BaseException)]
    assert [winner.id for winner in winners] == ["default"]
    assert all(isinstance(one, ConflictError) for one in made if one not in winners)
    assert [user.role for user in await users.list()] == ["admin"]


async def test_an_address_is_one_account_however_it_is_written(users: UserRepository) -> None:
    made = await users.create("Ada@Example.ORG", "hash")

    assert (await users.by_email("ADA@example.org")) == made
    with pytest.raises(EmailTakenError):
        await users.create("ada@example.org", "hash")


async def test_the_same_address_registered_twice_at_once_is_one_account(users: UserRepository) -> None:
    made = await asyncio.gather(*(users.create("a@example.org", "hash") for _ in range(5)), return_exceptions=True)

    assert sum(isinstance(one, EmailTakenError) for one in made) == 4
    assert len(await users.list()) == 1


async def test_two_administrators_cannot_remove_each_other_at_once(users: UserRepository) -> None:
    first, second = (
        await users.create_first_admin("a@example.org", "h"),
        await users.create("b@example.org", "h", "admin"),
    )

    ended = await asyncio.gather(users.delete(first.id), users.set_role(second.id, "user"), return_exceptions=True)

    assert sum(isinstance(one, ConflictError) for one in ended) == 1
    assert sum(user.role == "admin" for user in await users.list()) == 1


async def test_changing_a_password_ends_every_session(users: UserRepository, database: Database) -> None:
    user, sessions = await users.create("a@example.org", "old"), SessionRepository(database)
    session = await sessions.create(user.id, DAY)

    changed = await users.set_password(user, "new", email="B@example.org")

    assert (changed.token_version, changed.email) == (1, "b@example.org")
    assert await sessions.user_of(session) is None


async def test_of_two_password_changes_from_the_same_state_one_wins(users: UserRepository) -> None:
    user = await users.create("a@example.org", "old")

    ended = await asyncio.gather(*(users.set_password(user, new) for new in "xyz"), return_exceptions=True)

    assert sum(isinstance(one, ConflictError) for one in ended) == 2


async def test_a_taken_address_leaves_password_and_sessions_as_they_were(
    users: UserRepository, database: Database
) -> None:
    user, sessions = await users.create("a@example.org", "old"), SessionRepository(database)
    await users.create("b@example.org", "hash")
    session = await sessions.create(user.id, DAY)

    with pytest.raises(EmailTakenError):
        await users.set_password(user, "new", email="b@example.org")

    assert await users.get(user.id) == user
    assert await sessions.user_of(session) == user


async def test_deleting_an_account_ends_its_sessions_and_tokens(users: UserRepository, database: Database) -> None:
    user, sessions, tokens = (
        await users.create("a@example.org", "h"),
        SessionRepository(database),
        TokenRepository(database),
    )
    session = await sessions.create(user.id, DAY)
    _, token = await tokens.create(Principal(user.id), "ci", ("read",))

    await users.delete(user.id)

    assert await sessions.user_of(session) is None
    assert await tokens.find(token) is None
    with pytest.raises(NotFoundError):
        await users.delete(user.id)


async def test_sessions_end_by_themselves_and_are_swept(users: UserRepository, database: Database) -> None:
    user, sessions = await users.create("a@example.org", "h"), SessionRepository(database)
    expired = await sessions.create(user.id, -DAY)

    assert await sessions.user_of(expired) is None
    await sessions.create(user.id, DAY)
    assert (await database.read(lambda c: c.exec_driver_sql("SELECT count(*) FROM sessions").scalar())) == 1


async def test_a_token_is_kept_only_as_a_hash(users: UserRepository, database: Database) -> None:
    user, tokens = await users.create("a@example.org", "h"), TokenRepository(database)

    made, value = await tokens.create(Principal(user.id), " ci ", ("write", "read"))

    assert (made.name, made.scopes) == ("ci", ("read", "write"))
    assert value.startswith(made.hint) and len(made.hint) < 12
    row = await database.read(lambda c: c.execute(select(api_tokens)).one())
    assert value not in str(row)


async def test_a_token_is_worth_nothing_after_its_last_day_or_its_revocation(
    users: UserRepository, database: Database
) -> None:
    owner, tokens = Principal((await users.create("a@example.org", "h")).id), TokenRepository(database)
    _, expired = await tokens.create(owner, "old", ("read",), lifetime=-DAY)
    revoked, value = await tokens.create(owner, "new", ("read",), lifetime=DAY)

    assert await tokens.find(expired) is None
    assert await tokens.find(value) is not None
    await tokens.revoke(owner, revoked.id)
    assert await tokens.find(value) is None


async def test_nobody_sees_or_revokes_tokens_of_others(users: UserRepository, database: Database) -> None:
    owner, tokens = Principal((await users.create("a@example.org", "h")).id), TokenRepository(database)
    made, value = await tokens.create(owner, "ci", ("read",))
    stranger = Principal("stranger", role="admin")

    assert await tokens.list(stranger) == []
    with pytest.raises(NotFoundError):
        await tokens.revoke(stranger, made.id)
    assert await tokens.find(value) is not None


async def test_use_of_a_token_is_noted_at_most_once_a_minute(users: UserRepository, database: Database) -> None:
    owner, tokens = Principal((await users.create("a@example.org", "h")).id), TokenRepository(database)
    _, value = await tokens.create(owner, "ci", ("read",))

    await tokens.find(value)
    first = (await tokens.list(owner))[0].last_used_at
    await tokens.find(value)
    assert first is not None
    assert (await tokens.list(owner))[0].last_used_at == first

    long_ago = utc_now() - DAY
    await database.write(lambda c: c.execute(update(api_tokens).values(last_used_at=long_ago)))
    await tokens.find(value)
    assert (await tokens.list(owner))[0].last_used_at > long_ago  # type: ignore[operator]


@pytest.mark.parametrize(("name", "scopes"), [("", ("read",)), (" ", ("read",)), ("x" * 129, ("read",)), ("x", ())])
async def test_a_token_needs_a_name_and_a_scope(database: Database, name: str, scopes: tuple) -> None:
    with pytest.raises(InvalidRequestError):
        await TokenRepository(database).create(Principal("x"), name, scopes)
