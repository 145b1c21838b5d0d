from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import deerflow.config

FOLDER = Path(deerflow.config.__file__).parent


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, deerflow.config; print([m for m in ('ruamel.yaml', 'httpx', 'langchain_core') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_reading_a_configuration_imports_no_provider() -> None:
    code = (
        "import sys; from deerflow.config import load_config; load_config(environ={'OPENAI_API_KEY': 'k'});"
        "print([m for m in ('ruamel.yaml', 'httpx', 'langchain_core', 'langchain_openai') if m in sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


@pytest.mark.parametrize(
    "name",
    [
        "get_app_config",
        "Paths",
        "get_paths",
        "SkillsConfig",
        "SkillEvolutionConfig",
        "ExtensionsConfig",
        "get_extensions_config",
        "MemoryConfig",
        "get_memory_config",
        "get_tracing_config",
        "get_explicitly_enabled_tracing_providers",
        "get_enabled_tracing_providers",
        "is_tracing_enabled",
        "validate_enabled_tracing_providers",
    ],
)
def test_names_that_embedders_use_are_there(name: str) -> None:
    assert hasattr(deerflow.config, name)


def test_the_floor_imports_no_higher_one() -> None:
    allowed = ("deerflow.config", "deerflow.reflection", "deerflow.identity", "deerflow.errors")
    for folder in (FOLDER, FOLDER.parent / "reflection"):
        for file in folder.glob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                modules = (
                    [node.module or ""]
                    if isinstance(node, ast.ImportFrom)
                    else [alias.name for alias in node.names]
                    if isinstance(node, ast.Import)
                    else []
                )
                assert all(not module.startswith("deerflow") or module.startswith(allowed) for module in modules), file
