"""Nouns of other packages, by the entry points that ``capabilities`` in config.yaml names."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points

from pydantic import ValidationError

from deerflow.capability import Package
from deerflow.config import AppConfig, ConfigError
from deerflow.config.document import ConfigProblem
from deerflow.config.schema import CapabilityConfig

GROUP = "deerflow.capabilities"


def packages_of(config: AppConfig) -> Mapping[str, Package]:
    """Return the packages that a configuration names, by name, in its order.

    Raises:
        ConfigError: no installed package has this capability, it cannot be imported, or it refuses its settings.
    """
    if not config.capabilities:
        return {}
    known = {found.name: found for found in entry_points(group=GROUP)}
    named = enumerate(config.capabilities)
    return {entry.name: _made(config, f"capabilities[{number}]", entry, known) for number, entry in named}


def _made(config: AppConfig, key: str, entry: CapabilityConfig, known: Mapping[str, EntryPoint]) -> Package:
    def problem(message: str, remedy: str = "", at: str = key) -> ConfigError:
        return ConfigError(ConfigProblem(message, config.origin.config_file, None, at, remedy))

    if (found := known.get(entry.name)) is None:
        remedy = "Install the package that brings it into the environment of DeerFlow"
        there = f"; installed are: {', '.join(known)}." if known else "."
        raise problem(f"no installed package brings the capability {entry.name!r}.", remedy + there)
    try:
        make = found.load()
    except (ImportError, AttributeError) as error:
        raise problem(f"{entry.name!r} ({found.value}) cannot be imported: {error}.", "Install it again.") from error
    try:
        made = make(entry.settings())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise problem(f"{first['msg']}.", at=".".join([key, *map(str, first["loc"])])) from None
    except ValueError as error:
        raise problem(str(error)) from error
    if not isinstance(made, Package):
        raise problem(f"{entry.name!r} ({found.value}) makes a {type(made).__name__}, but a Package is needed.")
    return made
