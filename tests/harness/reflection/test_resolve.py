from __future__ import annotations

import collections
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deerflow.reflection import install_hint, resolve_class, resolve_variable


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_path_gives_the_object_it_names() -> None:
    assert resolve_variable("collections:OrderedDict") is collections.OrderedDict
    assert resolve_variable("os.path:sep", str) == "/"
    assert resolve_class("collections:OrderedDict", dict) is collections.OrderedDict


@pytest.mark.parametrize(
    "path", ["", "collections", "collections:", ":x", ".relative:x", "a..b:c", "a b:c", "collections.OrderedDict"]
)
def test_a_path_of_another_form_is_explained(path: str) -> None:
    with pytest.raises(ImportError, match=r"package\.module:attribute"):
        resolve_variable(path)


@pytest.mark.parametrize(
    ("path", "package_name"),
    [
        ("langchain_google_genai:ChatGoogleGenerativeAI", "langchain-google-genai"),
        ("langchain_ollama.chat_models:ChatOllama", "langchain-ollama"),
        ("exa_py:Exa", "exa-py"),
        ("firecrawl:FirecrawlApp", "firecrawl-py"),
        ("google.genai:Client", "google-genai"),
    ],
)
def test_a_package_that_is_not_installed_is_named_with_both_commands(
    path: str, package_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = path.split(":")[0].split(".")[0]
    for name in [name for name in sys.modules if name.split(".")[0] == top]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, top, None)  # type: ignore[arg-type]
    with pytest.raises(ImportError) as caught:
        resolve_variable(path)
    assert f"`pip install {package_name}`" in str(caught.value)
    assert f"`uv pip install {package_name}`" in str(caught.value)


@pytest.mark.parametrize(
    "module",
    [
        "langchain_openai",
        "langchain_anthropic",
        "langchain_deepseek",
        "langchain_google_genai",
        "langchain_ollama",
        "tavily",
        "exa_py",
        "firecrawl",
        "ddgs",
        "readabilipy",
    ],
)
def test_every_provider_that_a_configuration_may_name_has_a_hint(module: str) -> None:
    assert "uv pip install" in install_hint(module)


def test_a_hint_quotes_what_a_shell_would_expand() -> None:
    assert "pip install 'psycopg[binary]'" in install_hint("psycopg")


def test_an_unknown_package_is_not_advised_without_a_warning() -> None:
    assert "Check the spelling" in install_hint("some_package")


def test_a_missing_dependency_of_the_module_is_named(package: Path) -> None:
    (package / "my_provider.py").write_text("import langchain_ollama_missing_part\nimport langchain_google_genai\n")
    with pytest.raises(
        ImportError, match=r"langchain_ollama_missing_part, which 'my_provider:X' depends on, is not installed"
    ):
        resolve_variable("my_provider:X")


def test_a_misspelt_submodule_is_no_matter_of_installing() -> None:
    for path in ("collections.nope:X", "deerflow.sandbox.toolz:x"):
        with pytest.raises(ImportError, match="Check the spelling") as caught:
            resolve_variable(path)
        assert "install" not in str(caught.value)


def test_a_misspelt_attribute_is_named() -> None:
    with pytest.raises(ImportError, match=r"Module collections has no 'Nope'"):
        resolve_variable("collections:Nope")


def test_another_import_error_keeps_its_reason(package: Path) -> None:
    (package / "half.py").write_text("from collections import nope\n")
    with pytest.raises(ImportError, match=r"Error importing module half.*cannot import name 'nope'"):
        resolve_variable("half:X")


def test_a_module_that_fails_otherwise_fails_with_its_own_error(package: Path) -> None:
    (package / "failing.py").write_text("raise ZeroDivisionError('mine')\n")
    with pytest.raises(ZeroDivisionError, match="mine"):
        resolve_variable("failing:X")


def test_the_kind_of_object_is_checked() -> None:
    with pytest.raises(ValueError, match=r"'os.path:sep' is a str, but an int is needed"):
        resolve_variable("os.path:sep", int)
    with pytest.raises(ValueError, match="a class is needed"):
        resolve_class("os.path:join")
    with pytest.raises(ValueError, match=r"not a subclass of builtins\.list"):
        resolve_class("collections:OrderedDict", list)
    with pytest.raises(ValueError, match="the class OrderedDict, but a str or int is needed"):
        resolve_variable("collections:OrderedDict", (str, int))
