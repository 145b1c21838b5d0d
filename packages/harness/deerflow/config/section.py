"""What all sections have in common: they are frozen, forgive nulls, and complain about a missing variable only when it is read."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PrivateAttr,
    WrapValidator,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core.core_schema import ValidatorFunctionWrapHandler

from deerflow.config.env import MissingEnv, missing_in
from deerflow.config.errors import ConfigError
from deerflow.config.frozen import FrozenDict, frozen
from deerflow.config.secrets import MASK, is_secret_key


def _unless_missing(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    return value if isinstance(value, MissingEnv) else validate(value)


def _scalar_text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else value


EnvText = Annotated[str, BeforeValidator(_scalar_text), WrapValidator(_unless_missing)]
"""A string that may refer to a missing variable. YAML's ``true`` and ``8080`` become text."""

TextMapping = Annotated[Mapping[str, EnvText], AfterValidator(frozen)]
Settings = Annotated[Mapping[str, Any], AfterValidator(frozen)]
"""A free mapping: read-only all the way down, possibly with :class:`MissingEnv` in it; use it through ``require``."""


class Section(BaseModel):
    """A section of the configuration.

    A key whose environment variable is missing raises :class:`ConfigError` when it is read, not before. A key set to null
    has its default, unless null means something for it.
    """

    model_config = ConfigDict(
        frozen=True, extra="ignore", populate_by_name=True, protected_namespaces=(), coerce_numbers_to_str=True
    )

    _missing: dict[str, MissingEnv] = PrivateAttr(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _null_means_default(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        strict = _fields_without_null(cls)
        return {key: value for key, value in data.items() if value is not None or key not in strict}

    @field_validator("*", mode="wrap")
    @classmethod
    def _keep_missing(cls, value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
        return _unless_missing(value, validate)

    def model_post_init(self, context: Any, /) -> None:
        for name in [name for name, value in self.__dict__.items() if isinstance(value, MissingEnv)]:
            self._missing[name] = vars(self).pop(name)
        for name, value in (self.__pydantic_extra__ or {}).items():
            (self.__pydantic_extra__ or {})[name] = frozen(value)

    if not TYPE_CHECKING:
        # Only called for what ordinary lookup does not find, so reading settings costs nothing.
        def __getattr__(self, name: str) -> Any:
            missing = (object.__getattribute__(self, "__pydantic_private__") or {}).get("_missing") or {}
            value = missing.get(name) or super().__getattr__(name)
            if isinstance(value, MissingEnv):
                raise ConfigError(value.problem())
            return value

    def missing(self) -> Iterator[MissingEnv]:
        """Every value in this section whose environment variable is not set."""
        yield from self._missing.values()
        for value in (*self.__dict__.values(), *(self.model_extra or {}).values()):
            yield from _missing_below(value)

    def require(self) -> None:
        """Check that the section can be used. Raises ConfigError naming every missing variable and its key."""
        if problems := [missing.problem() for missing in self.missing()]:
            raise ConfigError(problems)

    def options(self) -> dict[str, Any]:
        """The keys that are not ours but the provider's, as a private copy. Raises ConfigError if a variable is missing."""
        from deerflow.config.env import require

        return {key: value for key, value in require(self.model_extra or {}).items() if value is not None}

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, MASK if value and isinstance(value, str) and is_secret_key(name or "") else value


class OpenSection(Section):
    """A section that keeps keys it does not know, for the provider that it configures."""

    model_config = ConfigDict(extra="allow")


def _missing_below(value: object) -> Iterator[MissingEnv]:
    if isinstance(value, Section):
        yield from value.missing()
    elif isinstance(value, tuple):
        for item in value:
            yield from _missing_below(item)
    elif isinstance(value, FrozenDict):
        for item in value.values():
            yield from _missing_below(item)
    else:
        yield from missing_in(value)


@cache
def _fields_without_null(section: type[Section]) -> frozenset[str]:
    names: set[str] = set()
    for name, field in section.model_fields.items():
        if not _allows_null(field.annotation):
            names.update(field_names(name, field))
    return frozenset(names)


def _allows_null(annotation: Any) -> bool:
    if annotation is Any or annotation is type(None):
        return True
    return get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation)


def field_names(name: str, field: FieldInfo) -> set[str]:
    """Every key under which the file may hold this field."""
    alias = field.validation_alias
    choices = getattr(alias, "choices", None) or ([alias] if alias else [])
    return {name, *(choice for choice in choices if isinstance(choice, str))}
