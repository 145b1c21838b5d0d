from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from bench.scripted_openai import ScriptedOpenAI

from deerflow import DeerFlowClient
from deerflow.config import AppConfig, Paths
from deerflow.features.skills.catalog import SkillCatalog, SkillSet

FIXTURES = Path(__file__).parent
Load = Callable[[str], SkillSet]


def skill_text(name: str, description: str = "Does something.", more: str = "", body: str = "Do it.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n{more}---\n\n{body}\n"


def write_skill(folder: Path, name: str, description: str = "Does something.", more: str = "") -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(skill_text(name, description, more), "utf-8")
    return folder / name


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path / "data")


@pytest.fixture
def load(tmp_path: Path, paths: Paths) -> Load:
    """Load a person's skills in an installation whose public ones lie in ``skills/public`` of the test's directory."""
    config = AppConfig.model_validate({"skills": {"path": str(tmp_path / "skills")}})
    return partial(SkillCatalog(paths).load, config)


@pytest.fixture
async def client(endpoint: ScriptedOpenAI, tmp_path: Path) -> AsyncIterator[DeerFlowClient]:
    """With the two public skills of these tests."""
    made = await asyncio.to_thread(lambda: DeerFlowClient(config=settings(endpoint), base_dir=tmp_path / "data"))
    yield made
    await made.aclose()


def settings(endpoint: ScriptedOpenAI, **sections: Any) -> dict[str, Any]:
    model = {"name": "m", "use": "langchain_openai:ChatOpenAI", "model": "gpt-x", "api_key": "k"}
    return {
        "models": [{**model, "base_url": endpoint.base_url}],
        "skills": {"path": str(FIXTURES)},
        "sandbox": {"tool_image": {"enabled": False}},
        "title": {"enabled": False},
        **sections,
    }
