"""Importing what a configuration names."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar, cast, overload

from deerflow.reflection.install import install_hint, is_known

T = TypeVar("T")


@overload
def resolve_variable(path: str, expected_type: None = None) -> Any: ...
@overload
def resolve_variable(path: str, expected_type: type[T]) -> T: ...
@overload
def resolve_variable(path: str, expected_type: tuple[type, ...]) -> Any: ...


def resolve_variable(path: str, expected_type: type | tuple[type, ...] | None = None) -> Any:
    """The object that ``package.module:attribute`` names.

    Raises:
        ImportError: the path has no colon, the module is missing (then the message says how to install it) or cannot be
            imported, or it has no such attribute.
        ValueError: the object is not an instance of ``expected_type``.

    Any other exception that the module raises while it is imported passes unchanged.
    """
    module_name, colon, attribute = path.rpartition(":")
    if not (colon and attribute and all(part.isidentifier() for part in module_name.split("."))):
        raise ImportError(f"{path!r} is not of the form package.module:attribute, e.g. langchain_openai:ChatOpenAI.")
    module = _import(module_name, path)
    try:
        value = getattr(module, attribute)
    except AttributeError:
        raise ImportError(
            f"Module {module_name} has no {attribute!r}, which {path!r} names. Check the spelling."
        ) from None
    except ModuleNotFoundError as error:
        # Packages that import their parts when first used fail here.
        raise ImportError(_missing(error, path)) from error
    if expected_type is not None and not isinstance(value, expected_type):
        expected = " or ".join(
            kind.__name__ for kind in (expected_type if isinstance(expected_type, tuple) else (expected_type,))
        )
        raise ValueError(f"{path!r} is {_what(value)}, but {_article(expected)} is needed.")
    return value


def resolve_class(path: str, base: type[T] | None = None) -> type[T]:
    """The class that ``package.module:Class`` names.

    Raises:
        ImportError: as :func:`resolve_variable`.
        ValueError: it is no class, or not a subclass of ``base``.
    """
    value: Any = resolve_variable(path)
    if not isinstance(value, type):
        raise ValueError(f"{path!r} is {_what(value)}, but a class is needed.")
    if base is not None and not issubclass(value, base):
        raise ValueError(f"{path!r} is not a subclass of {base.__module__}.{base.__name__}.")
    return cast(type[T], value)


def _import(module_name: str, path: str) -> Any:
    try:
        return import_module(module_name)
    except ModuleNotFoundError as error:
        raise ImportError(_missing(error, path)) from error
    except ImportError as error:
        raise ImportError(f"Error importing module {module_name}, which {path!r} names: {error}") from error


def _missing(error: ModuleNotFoundError, path: str) -> str:
    wanted = path.rpartition(":")[0]
    missing = error.name or wanted
    parent = missing.rpartition(".")[0]
    if missing.split(".")[0] == "deerflow" or (parent and not is_known(missing) and find_spec(parent.split(".")[0])):
        return f"There is no module {missing}, which {path!r} needs. Check the spelling."
    relation = "names" if wanted == missing or wanted.startswith(missing + ".") else "depends on"
    return f"Module {missing}, which {path!r} {relation}, is not installed. {install_hint(wanted if wanted.startswith(missing + '.') else missing)}"


def _what(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else _article(type(value).__name__)


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
