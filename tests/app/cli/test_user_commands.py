"""`deerflow user …` and `deerflow token …`, on the database that a gateway would use."""

from __future__ import annotations

import asyncio
import json
import stat
import zipfile
from pathlib import Path
from typing import Any

import bcrypt
import pytest
from typer.testing import CliRunner, Result

from deerflow.accounts import TokenRepository, UserRepository
from deerflow.config import Paths
from deerflow.features.store import StoreService
from deerflow.identity import Principal
from deerflow.storage.database import Database
from deerflow.storage.threads import ThreadRepository
from deerflow_app.cli import Settings
from deerflow_app.cli.commands import accounts
from deerflow_app.cli.failures import CommandFailure
from deerflow_app.gateway.auth.passwords import Passwords

pytestmark = pytest.mark.usefixtures("folder", "without_tool_image")


@pytest.fixture(autouse=True)
def quick_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash with the least work: what is tested here is whose password it is."""
    real = bcrypt.gensalt
    monkeypatch.setattr(bcrypt, "gensalt", lambda rounds: real(min(rounds, 4)))


def user(*arguments: str, stdin: str | None = None) -> Result:
    return _invoke(accounts.user_app, *arguments, stdin=stdin)


def token(*arguments: str) -> Result:
    return _invoke(accounts.token_app, *arguments, stdin=None)


def _invoke(app: Any, *arguments: str, stdin: str | None) -> Result:
    result = CliRunner().invoke(app, list(arguments), obj=Settings(), input=stdin)
    if isinstance(result.exception, Exception) and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def with_database(data_dir: Path, work: Any) -> Any:
    async def run() -> Any:
        database = Database(next(data_dir.rglob("deerflow.db")))
        try:
            return await work(database)
        finally:
            await database.aclose()

    return asyncio.run(run())


def password_works(data_dir: Path, email: str, password: str) -> bool:
    async def work(database: Database) -> bool:
        found = await UserRepository(database).by_email(email)
        return await Passwords().verify(password, found.password_hash if found else None)

    return with_database(data_dir, work)


def listed() -> dict[str, dict[str, Any]]:
    return {one["email"]: one for one in json.loads(user("list", "--json").stdout)["users"]}


def test_the_first_account_is_the_local_administrator_and_others_are_not(data_dir: Path) -> None:
    first = user("add", "Ada@example.org")
    user("add", "eve@example.org", "--password-stdin", stdin="one more good horse\n")

    accounts = listed()
    assert (accounts["ada@example.org"]["id"], accounts["ada@example.org"]["system_role"]) == ("default", "admin")
    assert accounts["eve@example.org"]["system_role"] == "user"
    assert password_works(data_dir, "ada@example.org", first.stdout.strip())
    assert password_works(data_dir, "eve@example.org", "one more good horse")


def test_a_reset_password_is_in_a_file_for_its_owner_alone(data_dir: Path) -> None:
    old = user("add", "ada@example.org").stdout.strip()

    told = user("reset-password").stdout

    file = data_dir / accounts.CREDENTIALS_FILE
    lines = dict(line.split(": ") for line in file.read_text().splitlines())
    assert str(file) in told and lines["password"] not in told
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert lines["email"] == "ada@example.org"
    assert password_works(data_dir, "ada@example.org", lines["password"])
    assert not password_works(data_dir, "ada@example.org", old)
    assert listed()["ada@example.org"]["needs_setup"] is True


def test_roles_change_but_an_administrator_is_left() -> None:
    user("add", "ada@example.org")
    with pytest.raises(CommandFailure, match="only administrator"):
        user("role", "ada@example.org", "user")
    with pytest.raises(CommandFailure, match="only administrator"):
        user("delete", "ada@example.org", "--yes")
    user("add", "eve@example.org")

    user("role", "EVE@example.org", "admin")
    user("delete", "ada@example.org", "--yes")

    assert list(listed()) == ["eve@example.org"]


@pytest.mark.parametrize(
    ("options", "answers", "is_kept"),
    [
        (["--with-data", "--yes"], None, False),
        ([], "y\ny\n", False),
        ([], "n\ny\n", True),
        (["--yes"], None, True),
    ],
)
def test_whoever_deletes_an_account_says_what_becomes_of_its_data(
    data_dir: Path, options: list[str], answers: str | None, is_kept: bool
) -> None:
    user("add", "ada@example.org")
    user("add", "eve@example.org")
    ids = {one["email"]: one["id"] for one in listed().values()}
    ada, eve = (ids[f"{name}@example.org"] for name in ("ada", "eve"))
    files = [with_database(data_dir, lambda database, owner=owner: belongings(database, owner)) for owner in (ada, eve)]

    told = user("delete", "eve@example.org", *options, stdin=answers).stdout

    left = with_database(data_dir, lambda database: left_of(database, [ada, eve]))
    assert list(listed()) == ["ada@example.org"]
    assert left == [(2, 1), (2, 1) if is_kept else (0, 0)]
    assert [file.exists() for file in files] == [True, is_kept]
    assert ("2 threads stay" in told and str(files[1].parents[4]) in told) is is_kept


def test_an_account_is_not_deleted_by_who_thinks_better_of_it(data_dir: Path) -> None:
    user("add", "ada@example.org")
    user("add", "eve@example.org")
    [eve] = [one["id"] for one in listed().values() if one["email"].startswith("eve")]
    with_database(data_dir, lambda database: belongings(database, eve))

    assert user("delete", "eve@example.org", stdin="y\nn\n").exit_code != 0

    assert "eve@example.org" in listed()
    assert with_database(data_dir, lambda database: left_of(database, [eve])) == [(2, 1)]


def test_the_only_administrators_data_is_not_deleted_either(data_dir: Path) -> None:
    user("add", "ada@example.org")
    with_database(data_dir, lambda database: belongings(database, "default"))
    with pytest.raises(CommandFailure, match="only administrator"):
        user("delete", "ada@example.org", "--with-data", "--yes")
    assert with_database(data_dir, lambda database: left_of(database, ["default"])) == [(2, 1)]


def test_someone_is_suspended_and_let_in_again(data_dir: Path) -> None:
    user("add", "ada@example.org")
    user("add", "eve@example.org")
    assert "suspended" in user("suspend", "eve@example.org").stdout
    assert listed()["eve@example.org"]["suspended_at"]
    assert "suspended" in user("list").stdout
    user("resume", "eve@example.org")
    assert listed()["eve@example.org"]["suspended_at"] is None
    with pytest.raises(CommandFailure, match="only administrator"):
        user("suspend", "ada@example.org")


def test_ones_data_is_written_into_an_archive_and_never_over_a_file(data_dir: Path, tmp_path: Path) -> None:
    user("add", "ada@example.org")
    user("add", "eve@example.org")
    ids = {one["email"]: one["id"] for one in listed().values()}
    for owner in ids.values():
        with_database(data_dir, lambda database, owner=owner: belongings(database, owner))
    archive = tmp_path / "eve.zip"

    user("export", str(archive), "--user", "eve@example.org")

    with zipfile.ZipFile(archive) as made:
        names = made.namelist()
        assert json.loads(made.read("manifest.json"))["person"]["email"] == "eve@example.org"
    assert [name.rsplit("/", 1)[-1] for name in names].count("report.txt") == 1
    assert not any(ids["ada@example.org"] in name for name in names)
    with pytest.raises(CommandFailure, match="exists already"):
        user("export", str(archive))
    assert sorted(tmp_path.glob("eve*")) == [archive]


async def belongings(database: Database, owner: str) -> Path:
    """Two threads, an item of the store, and a file, which is returned."""
    principal = Principal(owner)
    for name in "ab":
        await ThreadRepository(database).create(principal, f"{name}-{owner}")
    await StoreService(database).of(principal).aput(("memories",), "k", {"v": 1})
    file = Paths().user_data(f"a-{owner}", owner) / "outputs/report.txt"
    await asyncio.to_thread(file.parent.mkdir, parents=True)
    await asyncio.to_thread(file.write_text, "report")
    return file


async def left_of(database: Database, owners: list[str]) -> list[tuple[int, int]]:
    """Threads and items of the store."""
    return [
        (
            await ThreadRepository(database).count(Principal(owner)),
            len(await StoreService(database).of(Principal(owner)).asearch(())),
        )
        for owner in owners
    ]


def test_mistakes_are_told_with_a_remedy() -> None:
    assert "deerflow user add" in user("list").stderr
    with pytest.raises(CommandFailure, match="no administrator yet"):
        user("reset-password")
    with pytest.raises(CommandFailure, match="no e-mail address"):
        user("add", "nobody")
    user("add", "ada@example.org")
    for call, words in (
        (("add", "ADA@example.org"), "already registered"),
        (("role", "nobody@example.org", "admin"), "no account"),
        (("role", "ada@example.org", "root"), "no role"),
    ):
        with pytest.raises(CommandFailure, match=words):
            user(*call)
    with pytest.raises(CommandFailure, match="8 characters"):
        user("add", "eve@example.org", "--password-stdin", stdin="short\n")


def test_a_token_is_printed_once_listed_and_revoked(data_dir: Path) -> None:
    user("add", "ada@example.org")

    value = token("create", "nightly report", "--scope", "read", "--days", "3").stdout.strip()

    one = json.loads(token("list", "--json").stdout)["tokens"][0]
    assert (one["name"], one["scopes"], one["user_id"]) == ("nightly report", ["read"], "default")
    assert value not in token("list").stdout and value.startswith(one["hint"])
    assert with_database(data_dir, lambda database: TokenRepository(database).find(value)) is not None
    token("revoke", one["id"])
    assert with_database(data_dir, lambda database: TokenRepository(database).find(value)) is None
    with pytest.raises(CommandFailure, match="no such token"):
        token("revoke", one["id"])


def test_tokens_belong_to_accounts_and_do_not_exceed_them() -> None:
    user("add", "ada@example.org")
    user("add", "eve@example.org")

    with pytest.raises(CommandFailure, match="administrators"):
        token("create", "x", "--user", "eve@example.org", "--scope", "admin")
    with pytest.raises(CommandFailure, match="no scope"):
        token("create", "x", "--scope", "root")
    token("create", "x", "--user", "eve@example.org")
    assert json.loads(token("list", "--json").stdout)["tokens"] == []
