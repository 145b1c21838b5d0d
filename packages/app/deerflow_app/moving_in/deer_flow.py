"""deer-flow's data: accounts and threads here, what stands in files in ``deer_flow_files``. Each thing comes through the door by
which a person would add it, and what is here already stays."""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from deerflow.accounts import UserRepository
from deerflow.errors import RequestError
from deerflow.identity import ID_PATTERN, LOCAL_PRINCIPAL, Principal
from deerflow.runtime import Runtime
from deerflow.storage.tables import utc_now
from deerflow.threads.adoption import AdoptedConversation
from deerflow_app.gateway.auth.accounts import check_email
from deerflow_app.gateway.auth.passwords import Passwords
from deerflow_app.moving_in.deer_flow_files import FileImport
from deerflow_app.moving_in.deer_flow_home import DEFAULT_USER, ORIGIN, DeerFlowHome, json_object, rows
from deerflow_app.moving_in.deer_flow_messages import MessageState, newest_state
from deerflow_app.moving_in.report import MoveReport
from deerflow_app.moving_in.threads import KIND, ThreadImport, moment, one_line, titled

ACCOUNTS, FILES = "accounts", "files of threads"
LEFT = {
    "runs": "only the messages of their threads come.",
    "feedback": "it belongs to runs.",
    "scheduled_tasks": "they would start by themselves: make them again.",
    "channel_connections": "connect the accounts of chat platforms again.",
}
"""Tables of which nothing comes, and why."""
_OWN = ("user_id", "owner_id", "graph_id", "assistant_id")
"""Keys of a thread's metadata that mean something else here."""
_DIRECTORIES = ("user-data", "acp-workspace")


async def import_deer_flow(home: DeerFlowHome, runtime: Runtime, report: MoveReport, *, dry_run: bool) -> None:
    """Take over everything of ``home``, which is not written to. May be repeated, also after it was cut off.

    Raises:
        InvalidRequestError: deer-flow writes into its database just now.
    """
    if home.database is None:
        report.add(KIND, "not", why=home.problem)
        return await FileImport(home, runtime, report, dry_run=dry_run).all({DEFAULT_USER: LOCAL_PRINCIPAL}, [])
    stack = ExitStack()
    try:
        database = await asyncio.to_thread(stack.enter_context, home.opened())
        people = await _accounts(await asyncio.to_thread(rows, database, "users"), runtime, report, dry_run=dry_run)
        await _Threads(home, database, ThreadImport(runtime.threads, report, dry_run=dry_run), report).all(people)
        agents = await asyncio.to_thread(rows, database, "agents")
        await FileImport(home, runtime, report, dry_run=dry_run).all(people, agents)
        for table, why in LEFT.items():
            counted = await asyncio.to_thread(rows, database, table, columns="count(*) AS count")
            if counted and (count := counted[0]["count"]):
                report.add(table.replace("_", " "), "not", why=why, count=count)
    finally:
        await asyncio.to_thread(stack.close)


async def _accounts(
    found: list[dict[str, Any]], runtime: Runtime, report: MoveReport, *, dry_run: bool
) -> dict[str, Principal]:
    """Return who deer-flow's users are here: those with the same address, or accounts that are made.

    Its oldest administrator is the one who owns what is done here without an account, and becomes the first administrator.
    """
    users, passwords = UserRepository(runtime.database), Passwords()
    people = {DEFAULT_USER: LOCAL_PRINCIPAL}
    admins = [row for row in found if row.get("system_role") == "admin"]
    first = min(admins, key=lambda row: str(row.get("created_at")), default=None)
    for row in found:
        email = one_line(row.get("email"))
        try:
            address = check_email(email)
            if (known := await users.by_email(address)) is not None:
                people[str(row["id"])] = Principal(known.id, role=known.role)
                report.add(ACCOUNTS, "there")
            elif row is first:
                people[str(row["id"])] = LOCAL_PRINCIPAL
                report.add(
                    ACCOUNTS,
                    "there",
                    email,
                    "is the first administrator here, who has what was done without an account.",
                )
            elif dry_run:
                people[str(row["id"])] = Principal(str(row["id"]))
                report.add(ACCOUNTS, "came")
            else:
                made = await users.create(address, await passwords.hash(secrets.token_urlsafe(24)), needs_setup=True)
                people[str(row["id"])] = Principal(made.id)
                why = f"sign-in needs a password first: `deerflow user reset-password {address}`."
                report.add(ACCOUNTS, "came", email, why)
        except (RequestError, ValueError) as error:
            report.add(ACCOUNTS, "not", email, str(error))
    return people


class _Threads:
    def __init__(
        self, home: DeerFlowHome, database: sqlite3.Connection, threads: ThreadImport, report: MoveReport
    ) -> None:
        self._home = home
        self._database = database
        self._threads = threads
        self._report = report

    async def all(self, people: Mapping[str, Principal]) -> None:
        """Take the threads one after the other, those first that were used longest ago."""
        for row in await asyncio.to_thread(self._rows):
            name = one_line(row.get("display_name") or row["thread_id"])
            owner = people.get(str(row.get("user_id") or DEFAULT_USER))
            try:
                if owner is None:
                    raise ValueError("it belongs to an account that does not come.")
                if not ID_PATTERN.fullmatch(str(row["thread_id"])):
                    raise ValueError("its id cannot name a directory.")
                state = await asyncio.to_thread(newest_state, self._database, row["thread_id"])
                if state is None or not state.messages:
                    raise ValueError("it has no messages.")
            except (ValueError, sqlite3.Error) as error:
                self._report.add(KIND, "not", name, str(error))
                continue
            await self._take(row, state, owner)

    async def _take(self, row: Mapping[str, Any], state: MessageState, owner: Principal) -> None:
        files = await asyncio.to_thread(self._directories, row)
        metadata = {key: value for key, value in json_object(row.get("metadata_json")).items() if key not in _OWN}
        updated_at = moment(row.get("updated_at")) or state.at or utc_now()
        given = AdoptedConversation(
            row["thread_id"],
            ORIGIN,
            titled(row.get("display_name") or state.title, state.messages),
            state.messages,
            moment(row.get("created_at")) or updated_at,
            updated_at,
            metadata,
            state.artifacts,
            files,
        )
        if not await self._threads.take(owner, given):
            return
        if state.left_out:
            self._report.add("messages", "not", given.title, "of a kind that is not known.", count=state.left_out)
        if count := await asyncio.to_thread(_count, [*files.values()]):
            self._report.add(FILES, "came", count=count)

    def _rows(self) -> list[dict[str, Any]]:
        """Return what is known of each thread, also of those that have checkpoints alone."""
        known = rows(self._database, "threads_meta", "ORDER BY updated_at, thread_id")
        ids, owners = {row["thread_id"] for row in known}, self._owners()
        found = rows(self._database, "checkpoints", "WHERE checkpoint_ns = '' ORDER BY 1", columns="DISTINCT thread_id")
        others = [{"thread_id": each} for row in found if (each := row["thread_id"]) not in ids]
        return [{**row, "user_id": row.get("user_id") or owners.get(row["thread_id"])} for row in [*known, *others]]

    def _owners(self) -> dict[str, str]:
        """Return the owners of threads by the directories that hold their files, for threads of which no row says it."""
        return {path.name: user for user in self._home.users() for path in self._places(user, "*")}

    def _directories(self, row: Mapping[str, Any]) -> dict[str, Path]:
        user = str(row.get("user_id") or DEFAULT_USER)
        places = self._places(user, row["thread_id"]) if ID_PATTERN.fullmatch(user) else []
        found = [(name, place / name) for place in reversed(places) for name in _DIRECTORIES]
        return {name: directory for name, directory in found if directory.is_dir() and not directory.is_symlink()}

    def _places(self, user: str, thread: str) -> list[Path]:
        return [path for place in self._home.user_dirs(user) for path in (place / "threads").glob(thread)]


def _count(directories: list[Path]) -> int:
    return sum(path.is_file() and not path.is_symlink() for each in directories for path in each.rglob("*"))
