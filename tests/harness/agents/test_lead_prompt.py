"""The fixed part of every request: small, and the same bytes whoever builds it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from langchain_core.utils.function_calling import convert_to_openai_tool

from deerflow.agents.middlewares.todo_middleware import write_todos_tool
from deerflow.agents.prompt import PACKAGES, apply_prompt_template
from deerflow.capability import AgentSpec
from deerflow.config import AppConfig, Paths, load_config
from deerflow.features.memory.offer import MemoryOffer
from deerflow.features.offers import all_tools
from deerflow.features.skills.catalog import SkillCatalog
from deerflow.features.skills.for_run import SkillsForRun
from deerflow.features.skills.offer import SkillsOffer
from deerflow.features.skills.own import OwnSkills
from deerflow.sandbox.tool_image import PACKAGED_REQUIREMENTS
from deerflow.tools import OWN_NAMES, get_available_tools

BYTES_PER_TOKEN = 3.3
"""English prose and JSON need about four bytes a token with the tokenizers in use: this counts too many rather than too few."""

FIXED = """
import json
from langchain_core.utils.function_calling import convert_to_openai_tool
from deerflow.agents.prompt import apply_prompt_template
from deerflow.config import load_config
from deerflow.features.offers import all_tools
config = load_config()
tools = all_tools(config)
print(apply_prompt_template(plan_mode=True, network=config.sandbox.network.mode))
print(json.dumps([convert_to_openai_tool(tool) for tool in tools]))
"""

KEPT = MemoryOffer().kept(AgentSpec(AppConfig(), is_kept=True), ["memory_save"])


def _config() -> AppConfig:
    return load_config(environ={})


def _tokens(text: str) -> float:
    return len(text.encode()) / BYTES_PER_TOKEN


def test_the_prompt_and_all_default_tools_stay_within_their_budget():
    tools = [*all_tools(_config()), write_todos_tool]
    prompt = apply_prompt_template(agent_name="a" * 64, plan_mode=True, network="allowlist")
    schemas = json.dumps([convert_to_openai_tool(tool) for tool in tools])
    assert len(tools) >= 13
    assert _tokens(prompt) <= 3000
    assert _tokens(prompt + schemas) <= 6000


def test_prompt_and_schemas_are_the_same_bytes_in_every_process(clean_environment: Path):
    outputs = {
        subprocess.run(
            [sys.executable, "-c", FIXED],
            cwd=clean_environment,
            env={"PYTHONHASHSEED": seed, "PATH": "/usr/bin:/bin", "HOME": str(clean_environment)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(outputs) == 1 and b"/mnt/user-data/workspace" in outputs.pop()


def test_a_default_agent_with_the_shipped_skills_stays_within_16_kb(tmp_path: Path):
    """Without a plan, as it is sent: skills that need a network or a key are not listed where there is none."""
    tools = all_tools(_config())
    skills = SkillCatalog(Paths(tmp_path)).load(_config(), "u").working([tool.name for tool in tools])
    prompt = apply_prompt_template(early=[skills.prompt], packages=True, kept=KEPT, programs=("git", "node"))
    schemas = json.dumps([convert_to_openai_tool(tool) for tool in tools])
    assert "public/pdf:" in prompt and "image-generation" not in prompt
    assert len((prompt + schemas).encode()) <= 16 * 1024


def test_a_default_agent_with_a_small_window_stays_within_10_kb(tmp_path: Path):
    tools = all_tools(_config(), small=True)
    names = {tool.name for tool in tools}
    assert {"bash", "read_file", "write_file", "str_replace", "web_search", "present_files"} <= names
    skills = SkillCatalog(Paths(tmp_path)).load(_config(), "u").working(names)
    brief = replace(skills, brief=True)
    prompt = apply_prompt_template(
        early=[brief.prompt], packages=True, kept=KEPT, programs=("git", "node"), tools=names, brief=True
    )
    schemas = json.dumps([convert_to_openai_tool(tool) for tool in tools])
    assert all(f"- public/{name}: " in prompt for name in skills.enabled), "each in one line"
    assert len((prompt + schemas).encode()) <= 10 * 1024


def test_a_small_window_leaves_out_no_tool_that_the_file_lists_or_the_shell_cannot_replace():
    listed = {"tools": [{"name": "grep", "group": "file:read", "use": "deerflow.sandbox.tools:grep_tool"}]}
    config = AppConfig.model_validate(listed)
    assert "grep" in {tool.name for tool in get_available_tools(app_config=config, small=True)}
    looking = get_available_tools(["file:read"], app_config=_config(), small=True)
    assert {"ls", "glob", "grep"} <= {tool.name for tool in looking}, "there is no bash"


FEW = {
    "nothing": [],
    "web": ["web_search", "ask_clarification", "present_files"],
    "reads": ["read_file", "grep"],
    "writes": ["write_file", "present_files"],
    "shell": ["bash", "read_process"],
}


@pytest.mark.parametrize("tools", FEW.values(), ids=FEW)
@pytest.mark.parametrize("role", ["", "You review."])
def test_the_prompt_names_only_tools_that_are_there(tools: list[str], role: str, tmp_path: Path):
    catalog = SkillCatalog(Paths(tmp_path))
    usable = catalog.load(_config(), "u")
    skills = SkillsForRun(usable, OwnSkills(catalog.paths, "u"), catalog.paths.secrets_key_file)
    spec = AgentSpec(AppConfig(), is_kept=True, supplies={SkillsForRun: skills})
    kept, early = MemoryOffer().kept(spec, tools), SkillsOffer(catalog).prompt(spec, tools)
    prompt = apply_prompt_template(tools=tools, role=role, kept=kept, early=[early])
    named = {name for name in OWN_NAMES - {"task"} if re.search(rf"\b{name}\b", prompt)}
    if "bash" in tools:  # skills can be read with either
        named -= {"read_file"}
    assert named <= {*tools}
    assert ("<working_directory>" in prompt) is bool({*tools} - {"web_search", "ask_clarification", "present_files"})
    assert ("<skill_system>" in prompt) is bool({"read_file", "bash"} & {*tools})
    assert ("shell" in prompt) is ("bash" in tools) or role


def test_the_prompt_contradicts_neither_itself_nor_the_person():
    prompt = apply_prompt_template(kept=KEPT)
    assert "Without a source" not in prompt and "in\nthe user's first message" not in prompt
    assert "destroys or publishes something that the user did not order" in prompt
    assert "behind one that waits for the user the later ones wait, too" in prompt
    assert "what they ask you to remember, save with memory_save" in prompt
    tools = [convert_to_openai_tool(tool) for tool in all_tools(_config())]
    asked_why = [
        one["function"]["name"] for one in tools if "description" in one["function"]["parameters"]["properties"]
    ]
    assert asked_why == ["bash"]


def test_an_agent_without_a_sandbox_is_not_told_of_one():
    tools = {tool.name for tool in get_available_tools(app_config=_config(), supports_vision=True, sandbox=False)}
    assert tools == {"ask_clarification", "web_search", "web_fetch"}
    assert "/mnt/user-data" not in apply_prompt_template(sandbox=False, plan_mode=True)


def test_the_prompt_says_what_is_true_here():
    bare = apply_prompt_template(network="none", tools=OWN_NAMES - {"web_search", "web_fetch", "web_capture"})
    assert "no network" in bare and "pandas" not in bare and "install go into" not in bare and "<citations>" not in bare
    full = apply_prompt_template(
        network="allowlist",
        hosts=("data.example.com", "*.example.org"),
        packages=True,
        programs=("git", "node"),
    )
    assert "only these hosts" in full and "data.example.com, *.example.org." in full and "pytest" in full
    assert "Programs besides: git, node." in full and "<citations>" in full
    for prompt in (bare, full):
        assert prompt.count("ask_clarification") == 1 and "Ask first" not in prompt
        assert "must not need each other's results" in prompt and "HTML is shown without network" in prompt
        assert "Nothing is remembered" in prompt and "picture" in prompt and "{" not in prompt


def test_every_package_that_the_prompt_names_is_in_the_tool_image():
    image = PACKAGED_REQUIREMENTS.read_text()
    named = PACKAGES.removeprefix("Python has ").removesuffix(".").replace(" and ", ", ").split(", ")
    assert len(named) > 10
    for package in named:
        assert f"\n{package}==" in "\n" + image, package
