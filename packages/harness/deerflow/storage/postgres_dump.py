"""A PostgreSQL database as one file, by PostgreSQL's own tools."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from deerflow.storage.errors import DatabaseError, explained


def dump(url: str, target: Path) -> str:
    """Write the database to ``target`` and return the version of its tables. Raises DatabaseError."""
    version = _version(url)
    _run("pg_dump", url, "--format=custom", "--no-owner", "--no-privileges", f"--file={target}")
    return version or "0000"


def load(url: str, source: Path) -> None:
    """Fill the database, which must be empty, with what :func:`dump` wrote: all of it or nothing. Raises DatabaseError."""
    _run("pg_restore", url, "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges", str(source))


def check_empty(url: str) -> None:
    """Raises DatabaseError if the database has tables of ours."""
    if _version(url) is not None:
        raise DatabaseError(
            "The PostgreSQL database is not empty. Create an empty one, let `database.postgres_url` name it and try again; "
            "so nothing of the present one is lost."
        )


def _version(url: str) -> str | None:
    import psycopg

    with explained(url), psycopg.connect(_plain(url)) as connection:
        row = connection.execute("SELECT to_regclass('alembic_version')").fetchone()
        if row is None or row[0] is None:
            return None
        found = connection.execute("SELECT max(version_num) FROM alembic_version").fetchone()
        return found[0] if found else None


def _run(tool: str, url: str, *arguments: str) -> None:
    from psycopg.conninfo import conninfo_to_dict

    if shutil.which(tool) is None:
        raise DatabaseError(
            f"{tool} was not found. Install PostgreSQL's client programs of the server's version or newer (on Debian and "
            "Ubuntu: apt install postgresql-client) and try again."
        )
    # Arguments are visible to everyone on the machine, the environment is not.
    known = {key: str(value) for key, value in conninfo_to_dict(_plain(url)).items()}
    environment = {name: known.pop(key) for key, name in _VARIABLES.items() if key in known}
    target = ["--dbname", " ".join(f"{key}={_quoted(value)}" for key, value in known.items())] if known else []
    done = subprocess.run(
        [tool, "--no-password", *target, *arguments], env={**os.environ, **environment}, capture_output=True, text=True
    )
    if done.returncode:
        raise DatabaseError(f"{tool} failed: {done.stderr.strip()}")


_VARIABLES = {"password": "PGPASSWORD", "sslpassword": "PGSSLPASSWORD"}


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _plain(url: str) -> str:
    return "postgresql://" + url.split("://", 1)[1]
