"""`deerflow backup|restore`: everything into one archive, a file or an object of a bucket, and back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deerflow_app.cli import Settings
from deerflow_app.cli.commands.server import alone, opened
from deerflow_app.cli.failures import usage_failure

if TYPE_CHECKING:
    from deerflow.config import ConfigSource, Paths
    from deerflow_app.bucket import Bucket


def backup(
    settings: Settings,
    target: Annotated[
        str,
        typer.Argument(
            help="The archive to write: NAME.tar.zst or NAME.tar.gz, or s3://BUCKET/KEY in the storage of 'backups'."
        ),
    ],
    verify: Annotated[
        bool, typer.Option("--verify", help="Check an archive instead: is all of it as it was written?")
    ] = False,
    without_keys: Annotated[
        bool,
        typer.Option("--without-keys", help="Leave out the keys of encryption and all secrets: for foreign storage."),
    ] = False,
) -> None:
    """Copy everything (database, files, configuration) into one archive; may be done while DeerFlow runs."""
    from deerflow.storage.backup import backup as write_backup
    from deerflow.storage.backup import verify as read_backup

    source, paths = opened(settings)
    if verify:
        with _fetched(target, source, paths) as archive:
            manifest = read_backup(archive)
        typer.echo(f"{target} is whole: a backup of {manifest.created_at}, with a {manifest.database} database.")
        return
    config = source.current()
    location, file = config.database_location(paths, direct=True), config.origin.config_file
    files = [file] if file else []
    with _delivered(target, source, paths) as archive:
        written = write_backup(location, paths, archive, config_files=files, keys=not without_keys)
    holds = "it holds the secrets of your configuration, too"
    if without_keys:
        holds = f"without {', '.join(written.manifest.without) or 'keys, since there are none'}"
    typer.echo(f"Wrote {target}, which only you can read: {holds}.")
    if changed := written.changed:
        more = f" and {len(changed) - 5} more" if len(changed) > 5 else ""
        typer.echo(f"Changed while it was written: {', '.join(changed[:5])}{more}", err=True)


def restore(
    settings: Settings,
    archive: Annotated[
        str,
        typer.Argument(
            help="What 'deerflow backup' wrote; s3://BUCKET/KEY in the storage of 'backups'; a KEY that ends in / means the newest there."
        ),
    ],
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the runs that were at work when it was written.")
    ] = False,
) -> None:
    """Make everything what it was when the archive was written. Stop DeerFlow first; nothing is thrown away."""
    from deerflow.storage.backup import manifest_of
    from deerflow.storage.backup import restore as read_backup

    source, paths = opened(settings)
    with alone(paths.ensure_base_dir()), _fetched(archive, source, paths) as file:
        missing = manifest_of(file).without
        location = source.current().database_location(paths, direct=True)
        aside = read_backup(file, location, paths, config_dir=Path.cwd(), resume=resume)
    typer.echo(f"Restored. What was there before is in {aside}")
    if missing:
        typer.echo(
            f"The backup was made without {', '.join(missing)}. Bring these files back, also from what was there before; otherwise "
            "everyone signs in again, and enters what was encrypted (connections, keys of skills) again."
        )


@contextlib.contextmanager
def _fetched(archive: str, source: ConfigSource, paths: Paths) -> Iterator[Path]:
    """Yield the file of an archive, which is downloaded if it lies in a bucket. Raises BucketError."""
    from deerflow_app.bucket import SCHEME

    if not archive.startswith(SCHEME):
        yield Path(archive)
        return
    with _in_bucket(archive, source, paths) as (bucket, name, directory):
        if not name:
            from deerflow_app.backups import matching

            if not (found := matching(bucket.names())):
                raise usage_failure(
                    f"There is no archive in {bucket} that the server has made.", "Name one by its key."
                )
            name = found[-1]
            typer.echo(f"The newest is {bucket}{name}")
        bucket.get(name, directory / name)
        yield directory / name


@contextlib.contextmanager
def _delivered(archive: str, source: ConfigSource, paths: Paths) -> Iterator[Path]:
    """Yield the file to write an archive to, which is uploaded in the end if it shall lie in a bucket. Raises BucketError."""
    from deerflow_app.bucket import SCHEME

    if not archive.startswith(SCHEME):
        yield Path(archive)
        return
    with _in_bucket(archive, source, paths) as (bucket, name, directory):
        yield directory / name
        bucket.put(directory / name, name)


@contextlib.contextmanager
def _in_bucket(address: str, source: ConfigSource, paths: Paths) -> Iterator[tuple[Bucket, str, Path]]:
    """Yield the bucket, the name of an archive there, and a directory for it."""
    import tempfile

    from deerflow.storage.backup import WORK_PREFIX
    from deerflow_app.bucket import SCHEME, Bucket

    name, _, key = address.removeprefix(SCHEME).partition("/")
    prefix, slash, file = key.rpartition("/")
    with (
        contextlib.closing(Bucket.of(source.current(), name, prefix + slash)) as bucket,
        tempfile.TemporaryDirectory(dir=paths.ensure_base_dir(), prefix=WORK_PREFIX) as directory,
    ):
        yield bucket, file, Path(directory)
