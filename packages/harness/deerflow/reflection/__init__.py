"""From the ``package.module:attribute`` of a configuration to the object it names."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar, cast, overload

__all__ = ["install_hint", "resolve_class", "resolve_variable"]

T = TypeVar("T")

_SAME_NAME = (
    "agent_sandbox",
    "ddgs",
    "dingtalk_stream",
    "exa_py",
    "kubernetes",
    "langchain_anthropic",
    "langchain_aws",
    "langchain_cohere",
    "langchain_deepseek",
    "langchain_fireworks",
    "langchain_google_genai",
    "langchain_google_vertexai",
    "langchain_groq",
    "langchain_huggingface",
    "langchain_mcp_adapters",
    "langchain_mistralai",
    "langchain_ollama",
    "langchain_openai",
    "langchain_openrouter",
    "langchain_together",
    "langchain_xai",
    "langfuse",
    "lark_oapi",
    "markdownify",
    "pymupdf4llm",
    "readabilipy",
    "slack_bolt",
    "slack_sdk",
)
_PACKAGES = {name: name.replace("_", "-") for name in _SAME_NAME} | {
    "acp": "agent-client-protocol",
    "botpy": "qq-botpy",
    "discord": "discord.py",
    "firecrawl": "firecrawl-py",
    "google.genai": "google-genai",
    "langgraph.checkpoint.postgres": "langgraph-checkpoint-postgres",
    "psycopg": "psycopg[binary]",
    "tavily": "tavily-python",
    "telegram": "python-telegram-bot",
}
"""Which package to install for a module that is missing."""


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
    if missing.split(".")[0] == "deerflow" or (parent and missing not in _PACKAGES and find_spec(parent.split(".")[0])):
        return f"There is no module {missing}, which {path!r} needs. Check the spelling."
    relation = "names" if wanted == missing or wanted.startswith(missing + ".") else "depends on"
    return f"Module {missing}, which {path!r} {relation}, is not installed. {install_hint(wanted if wanted.startswith(missing + '.') else missing)}"


def _what(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else _article(type(value).__name__)


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def install_hint(module: str) -> str:
    """How to install what provides ``module``, e.g. for ``langchain_openai`` or a module below it."""
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    package = next((_PACKAGES[name] for name in names if name in _PACKAGES), None)
    if package is None:
        return f"Check the spelling, or install the package that provides it (perhaps `pip install {parts[0].replace('_', '-')}`)."
    shown = f"'{package}'" if "[" in package else package
    return f"Install it with `uv pip install {shown}` or `pip install {shown}`."
