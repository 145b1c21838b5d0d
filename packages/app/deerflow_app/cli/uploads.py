"""Files that the person hands over."""

from __future__ import annotations

from pathlib import Path

from deerflow_app.cli.failures import usage_failure


def check_files(paths: list[Path]) -> None:
    """Raises Failure for the first path that cannot be given to an agent."""
    for path in paths:
        if path.is_dir():
            raise usage_failure(f"{path} is a directory.", "Name its files one by one, or pack it into an archive.")
        if path.exists() and not path.is_file():
            raise usage_failure(f"{path} is not a regular file.", "Copy what it gives into a file and name that.")
        try:
            with path.open("rb"):
                pass
        except OSError as error:
            raise usage_failure(f"Cannot read {path}: {error.strerror}.") from error
