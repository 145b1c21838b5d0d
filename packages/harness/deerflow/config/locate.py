"""Where the files are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CONFIG_VAR, EXTENSIONS_VAR = "DEER_FLOW_CONFIG_PATH", "DEER_FLOW_EXTENSIONS_CONFIG_PATH"
CONFIG_NAME, EXTENSIONS_NAMES, EXAMPLE_NAME = (
    "config.yaml",
    ("extensions_config.json", "mcp_config.json"),
    "config.example.yaml",
)


@dataclass(frozen=True, slots=True)
class ConfigFiles:
    """The files to read."""

    config: Path | None
    extensions: Path | None


@dataclass(frozen=True, slots=True)
class Search:
    """Places of one file, the best first. ``source`` says who named it; such a file must exist."""

    places: tuple[Path, ...]
    source: str | None = None

    def find(self) -> Path | None:
        """The first place that holds a file. Raises FileNotFoundError if a named file is not there."""
        found = next((place for place in self.places if place.is_file()), None)
        if found is None and self.source:
            if self.places[0].is_dir():
                raise FileNotFoundError(
                    f"The configuration file {self.places[0]} ({self.source}) is a directory. Name a file in it."
                )
            raise FileNotFoundError(
                f"The configuration file {self.places[0]} ({self.source}) does not exist. Create it or correct the path."
            )
        return found


def checkout() -> Path | None:
    """The source checkout that this package is imported from, or None if it is installed."""
    for parent in Path(__file__).resolve().parents:
        if (parent / EXAMPLE_NAME).is_file() and (parent / "packages" / "harness").is_dir():
            return parent
    return None


def project_root(cwd: Path | None = None) -> Path:
    """The checkout, or the current directory when the package is installed."""
    return checkout() or (cwd or Path.cwd()).absolute()


def searches(
    path: str | Path | None, extensions_path: str | Path | None, environ: Mapping[str, str], cwd: Path
) -> tuple[Search, Search]:
    """Where ``config.yaml`` and ``extensions_config.json`` may be. Touches no file."""
    folders = dict.fromkeys((cwd, project_root(cwd)))
    return (
        _search(path, CONFIG_VAR, [folder / CONFIG_NAME for folder in folders], environ, cwd),
        _search(
            extensions_path,
            EXTENSIONS_VAR,
            [folder / name for name in EXTENSIONS_NAMES for folder in folders],
            environ,
            cwd,
        ),
    )


def find_files(
    path: str | Path | None, extensions_path: str | Path | None, environ: Mapping[str, str], cwd: Path
) -> ConfigFiles:
    """Find ``config.yaml`` and ``extensions_config.json``.

    Each is taken from the argument, else from its environment variable, else from ``cwd``, else from the project root. The
    extensions file may have its old name, ``mcp_config.json``.

    Raises:
        FileNotFoundError: a file that the argument or the variable names is not there.
    """
    config, extensions = searches(path, extensions_path, environ, cwd)
    return ConfigFiles(config.find(), extensions.find())


def _search(
    given: str | Path | None, variable: str, usual: list[Path], environ: Mapping[str, str], cwd: Path
) -> Search:
    if named := given or environ.get(variable):
        return Search((cwd / Path(named).expanduser(),), "given as argument" if given else f"named by {variable}")
    return Search(tuple(usual))


def example_file() -> Path:
    """``config.example.yaml``: the checkout's, or the copy that is installed with the package."""
    root = checkout()
    return root / EXAMPLE_NAME if root else Path(__file__).with_name(EXAMPLE_NAME)
