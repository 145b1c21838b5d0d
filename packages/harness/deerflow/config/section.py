"""What all sections have in common: they are frozen, forgive nulls, and complain about a missing variable only when it is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NoReturn, TypeVar, get_args

from pydantic import (
    AfterValidator,
    AliasChoices,
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

from deerflow.config.document import ConfigError
from deerflow.config.env import MASK, MissingEnv, is_secret_key

# read-only containers -----------------------------------------------------------------------------------------------


class FrozenDict(dict[Any, Any]):
    """A dict that refuses to change, yet passes for a dict wherever one is read (``json``, ``**kwargs``, pydantic)."""

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("Configuration is read-only: copy it with dict(...) first, or edit the file.")

    if not TYPE_CHECKING:
        __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)


EMPTY = FrozenDict()


def frozen(value: Any) -> Any:
    """``value`` with every mapping and list in it made read-only."""
    if isinstance(value, Mapping):
        return FrozenDict({key: frozen(item) for key, item in value.items()})
    return tuple(map(frozen, value)) if isinstance(value, list | tuple) else value


def thawed(value: Any) -> Any:
    """A private copy of a frozen value in plain dicts and lists."""
    if isinstance(value, Mapping):
        return {key: thawed(item) for key, item in value.items()}
    return [thawed(item) for item in value] if isinstance(value, list | tuple) else value


# missing variables --------------------------------------------------------------------------------------------------


def missing_in(value: object) -> Iterator[MissingEnv]:
    """Every value in a section, mapping or list whose environment variable is missing."""
    if isinstance(value, MissingEnv):
        yield value
        return
    if isinstance(value, Section):
        value = [*value._missing.values(), *value.__dict__.values(), *(value.model_extra or {}).values()]
    for item in value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ():
        yield from missing_in(item)


def require(value: Any) -> Any:
    """A private, mutable copy of a settings value (dicts, lists, scalars), to be called by whoever is about to use it.

    Raises:
        ConfigError: an environment variable that it refers to is not set; names variable and key.
    """
    if problems := [missing.problem() for missing in missing_in(value)]:
        raise ConfigError(*problems)
    return thawed(value)


def _unless_missing(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    return value if isinstance(value, MissingEnv) else validate(value)


def _scalar_text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else value


EnvText = Annotated[str, BeforeValidator(_scalar_text), WrapValidator(_unless_missing)]
"""A string that may refer to a missing variable. YAML's ``true`` and ``8080`` become text."""

Entry = TypeVar("Entry")
Table = Annotated[Mapping[str, Entry], AfterValidator(frozen)]
TextMapping = Table[EnvText]
Settings = Table[Any]
"""A free mapping: read-only all the way down, possibly with :class:`MissingEnv` in it; use it through :func:`require`."""


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
        without_null = {
            key
            for name, field in cls.model_fields.items()
            if type(None) not in get_args(field.annotation)
            for key in field_names(name, field)
        }
        return {key: value for key, value in data.items() if value is not None or key not in without_null}

    @field_validator("*", mode="wrap")
    @classmethod
    def _keep_missing(cls, value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
        return _unless_missing(value, validate)

    def model_post_init(self, context: Any, /) -> None:
        for name in [name for name, value in self.__dict__.items() if isinstance(value, MissingEnv)]:
            self._missing[name] = vars(self).pop(name)
        extra = self.__pydantic_extra__ or {}
        extra.update({name: frozen(value) for name, value in extra.items()})

    if not TYPE_CHECKING:
        # Only called for what ordinary lookup does not find, so reading settings costs nothing.
        def __getattr__(self, name: str) -> Any:
            missing = (object.__getattribute__(self, "__pydantic_private__") or {}).get("_missing") or {}
            value = missing.get(name) or super().__getattr__(name)
            if isinstance(value, MissingEnv):
                raise ConfigError(value.problem())
            return value

    def options(self) -> dict[str, Any]:
        """The keys that are not ours but the provider's, as a private copy. Raises ConfigError if a variable is missing."""
        return {key: value for key, value in require(self.model_extra or {}).items() if value is not None}

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, MASK if value and isinstance(value, str) and is_secret_key(name or "") else value


class OpenSection(Section):
    """A section that keeps keys it does not know, for the provider that it configures."""

    model_config = ConfigDict(extra="allow")

    slips: ClassVar[Mapping[str, str]] = EMPTY
    """Keys by which others know ours."""

    @classmethod
    def known_options(cls, entry: Mapping[str, Any]) -> frozenset[str]:
        """Return keys of the provider that are no slips."""
        return frozenset()


def field_names(name: str, field: FieldInfo) -> set[str]:
    """Every key under which the file may hold this field."""
    alias = field.validation_alias
    return {name, *map(str, alias.choices)} if isinstance(alias, AliasChoices) else {name}
