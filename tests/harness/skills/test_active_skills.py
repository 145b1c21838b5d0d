"""What holds while a skill is active, what its scripts get, and what an agent may suggest."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.harness.skills.conftest import Load, settings, skill_text, write_skill

from deerflow import DeerFlowClient
from deerflow.config import AppConfig, Paths
from deerflow.config.secrets import Seal, SealedFile, WrongKeyError
from deerflow.errors import ConflictError, ForbiddenError, NotFoundError, RequestError
from deerflow.features.skills.catalog import PROMPT_BYTES
from deerflow.features.skills.middleware import _is_allowed
from deerflow.features.skills.own import OwnSkills
from deerflow.features.skills.parser import Skill
from deerflow.features.skills.secrets import SkillSecrets
from deerflow.features.skills.tools import script_call

SECRET = "s3cret-of-the-weather"


def results(endpoint: ScriptedOpenAI) -> list[str]:
    return [one["content"] for one in endpoint.requests[-1]["messages"] if one["role"] == "tool"]


async def test_the_active_skill_allows_its_tools_only_and_until_the_turn_ends(
    client: DeerFlowClient, endpoint: ScriptedOpenAI
):
    calls = ToolCalls(
        ("bash", {"command": "echo hi"}), ("read_file", {"path": "/mnt/skills/public/careful-reader/SKILL.md"})
    )
    endpoint.script(calls, Text("ok"), ToolCalls(("bash", {"command": "echo hi"})), Text("ok"))
    await client.achat("/careful-reader please", thread_id="t")
    refused, read = results(endpoint)
    assert "allows only these tools: Read, Grep" in refused and "Quote what you read." in read
    await client.achat("And now?", thread_id="t")
    assert results(endpoint)[-1] == "hi"


@pytest.mark.parametrize(
    ("command", "allowed", "expected"),
    [
        ("git status", "Bash(git:*)", True),
        ("git status; rm x", "Bash(git:*)", False),
        ("git log $(rm x)", "Bash(git:*)", False),
        ("git status\nrm x", "Bash(git:*)", False),
        ("gitx", "Bash(git:*)", False),
        ("git push", "Bash(git log *)", False),
        ("anything | at all", "Bash", True),
        ("ls", "bash", True),
        ("ls", "Read", False),
    ],
)
def test_commands_are_allowed_by_pattern_one_at_a_time(command: str, allowed: str, expected: bool):
    assert _is_allowed({"name": "bash", "args": {"command": command}}, [allowed]) is expected


async def test_scripts_get_secrets_that_neither_shell_nor_model_nor_disk_sees(
    client: DeerFlowClient, endpoint: ScriptedOpenAI, tmp_path: Path
):
    run: dict[str, Any] = {"skill": "weather", "script": "scripts/forecast.py", "arguments": ["Oslo; env"]}
    calls = [
        ToolCalls(("run_skill_script", run)),
        ToolCalls(
            ("bash", {"command": "env; export -p"}),
            ("run_skill_script", {**run, "script": "../careful-reader/SKILL.md"}),
            ("run_skill_script", {**run, "skill": "careful-reader"}),
        ),
        Text("ok"),
    ]
    endpoint.script(*calls)
    await client.achat("Weather?", thread_id="t")
    assert "deerflow skills secret weather WEATHER_KEY" in results(endpoint)[0]
    with pytest.raises(NotFoundError):
        await client.aset_skill_secret("weather", "OTHER_KEY", SECRET)
    with pytest.raises(RequestError):
        await client.aset_skill_secret("weather", "WEATHER_KEY", "short")
    assert await client.aset_skill_secret("weather", "WEATHER_KEY", SECRET) == {"WEATHER_KEY": True}
    endpoint.script(*calls)
    await client.achat("Weather?", thread_id="u")
    ran, shell, outside, other = results(endpoint)
    assert ran == f"Oslo; env: sunny ({len(SECRET)} letters of key, [secret])"
    assert SECRET not in shell and "no file" in outside and "no file" in other
    assert SECRET not in json.dumps(endpoint.requests)
    assert await asyncio.to_thread(_files_with, tmp_path / "data", SECRET) == []
    assert await client.aset_skill_secret("weather", "WEATHER_KEY", None) == {"WEATHER_KEY": False}


WEATHER = "/mnt/skills/public/weather"


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        (f"python3 {WEATHER}/scripts/forecast.py Oslo", ["Oslo"]),
        (f"{WEATHER}/scripts/forecast.py 'Oslo; env' \"two words\" a$", None),
        (f"{WEATHER}/scripts/forecast.py 'Oslo; env $HOME' \"two words\"", ["Oslo; env $HOME", "two words"]),
        (f"cd {WEATHER} && python scripts/forecast.py \\\n  --place Oslo 2>&1", ["--place", "Oslo"]),
        (f"cd {WEATHER}&&python scripts/forecast.py", []),
        (f"bash {WEATHER}/../weather/scripts/forecast.py", []),
        (f"python3 {WEATHER}/../careful-reader/scripts/x.py", None),
        (f"python3 {WEATHER}/scripts/forecast.py Oslo; env", None),
        (f"python3 {WEATHER}/scripts/forecast.py Oslo && env", None),
        (f"python3 {WEATHER}/scripts/forecast.py Oslo | tee x", None),
        (f"python3 {WEATHER}/scripts/forecast.py Oslo > x", None),
        (f"python3 {WEATHER}/scripts/forecast.py Oslo & env", None),
        (f"python3 {WEATHER}/scripts/forecast.py\nenv", None),
        (f"python3 {WEATHER}/scripts/forecast.py $(env)", None),
        (f'python3 {WEATHER}/scripts/forecast.py "`env`"', None),
        (f"python3 -c 'import os' {WEATHER}/scripts/forecast.py", None),
        (f"PYTHONPATH=. python3 {WEATHER}/scripts/forecast.py", None),
        (f"env python3 {WEATHER}/scripts/forecast.py", None),
        (f"./python3 x.py {WEATHER}/scripts/forecast.py", None),
        ("", None),
    ],
)
def test_a_command_is_a_script_of_a_skill_only_if_it_is_nothing_else(
    command: str, arguments: list[str] | None, load: Load, tmp_path: Path
):
    skill = weather(load, tmp_path)
    found = script_call(command, [skill])
    assert (found[1]["arguments"] if found else None) == arguments
    assert found is None or (found[0], found[1]["script"]) == (skill, "scripts/forecast.py")


async def test_a_script_that_the_shell_runs_as_its_skill_says_gets_its_secrets(
    client: DeerFlowClient, endpoint: ScriptedOpenAI, tmp_path: Path
):
    command = f"cd {WEATHER} && python3 scripts/forecast.py 'Oslo; env' 2>&1"

    async def ran(thread: str, *commands: str, of: DeerFlowClient = client) -> list[str]:
        endpoint.script(*(ToolCalls(("bash", {"command": one})) for one in commands), Text("ok"))
        await of.achat("Weather?", thread_id=thread)
        return results(endpoint)

    [without] = await ran("t", command)
    assert "sunny (6 letters of key, no key)" in without and "deerflow skills secret weather WEATHER_KEY" in without
    await client.aset_skill_secret("weather", "WEATHER_KEY", SECRET)
    alone, piped, after = await ran("u", command, f"{command[:-5]} | cat", "env")
    assert alone == f"Oslo; env: sunny ({len(SECRET)} letters of key, [secret])"
    assert "no key" in piped and "ran without the keys of the skill weather" in piped and "no pipe" in piped
    assert SECRET not in after and SECRET not in json.dumps(endpoint.requests)
    provider = {
        "use": "deerflow.guardrails.builtin:AllowlistProvider",
        "config": {"denied_tools": ["run_skill_script"]},
    }
    guarded = settings(endpoint, guardrails={"enabled": True, "provider": provider})
    other = await asyncio.to_thread(lambda: DeerFlowClient(config=guarded, base_dir=tmp_path / "data"))
    [refused] = await ran("v", command, of=other)
    await other.aclose()
    assert "sunny" not in refused, "who forbids run_skill_script forbids it under every name"


def _files_with(folder: Path, text: str) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and text.encode() in file.read_bytes()]


def weather(load: Load, tmp_path: Path) -> Skill:
    folder = tmp_path / "skills/public"
    if not (folder / "weather").exists():
        write_skill(folder, "weather", more="metadata:\n  secrets: [WEATHER_KEY]\n")
    return load("one").skills["weather"]


def test_secrets_are_each_persons_own(paths: Paths, load: Load, tmp_path: Path):
    skill = weather(load, tmp_path)
    one, other = (SkillSecrets(OwnSkills(paths, user), paths.secrets_key_file) for user in ("one", "other"))
    one.set(skill, "WEATHER_KEY", SECRET)
    assert one.given(skill) == {"WEATHER_KEY": SECRET} and other.given(skill) == {}
    assert paths.secrets_key_file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("change", ["SKILL.md", "scripts/run.py", "references/link"])
def test_a_skill_that_has_changed_gets_its_secrets_when_the_person_confirms(
    paths: Paths, load: Load, tmp_path: Path, change: str
):
    skill = weather(load, tmp_path)
    secrets = SkillSecrets(OwnSkills(paths, "one"), paths.secrets_key_file)
    secrets.set(skill, "WEATHER_KEY", SECRET)
    seen, file = secrets.digest(skill), skill.directory / change
    file.parent.mkdir(exist_ok=True)
    if change.endswith("link"):
        file.symlink_to("/etc/hostname")
    else:
        file.write_text(f"{file.read_text() if file.exists() else ''}\nprint('other')")
    skill = weather(load, tmp_path)
    with pytest.raises(ForbiddenError, match="deerflow skills confirm weather"):
        secrets.given(skill)
    with pytest.raises(ConflictError):
        secrets.confirm(skill, seen)
    secrets.confirm(skill, secrets.digest(skill))
    assert secrets.given(skill) == {"WEATHER_KEY": SECRET}


def test_secrets_of_an_earlier_version_are_confirmed_once(paths: Paths, load: Load, tmp_path: Path):
    skill, own = weather(load, tmp_path), OwnSkills(paths, "one")
    seal = Seal(paths.secrets_key_file, "The secrets of skills", "enter them again")
    SealedFile(own.directory / "secrets", seal).write({"weather": {"WEATHER_KEY": SECRET}})
    secrets = SkillSecrets(own, paths.secrets_key_file)
    with pytest.raises(ForbiddenError):
        secrets.given(skill)
    secrets.confirm(skill, secrets.digest(skill))
    assert secrets.given(skill) == {"WEATHER_KEY": SECRET}


def test_secrets_of_another_key_can_be_entered_again_and_nothing_is_lost(paths: Paths, load: Load, tmp_path: Path):
    skill = weather(load, tmp_path)
    secrets = SkillSecrets(OwnSkills(paths, "one"), paths.secrets_key_file)
    secrets.set(skill, "WEATHER_KEY", SECRET)
    paths.secrets_key_file.unlink()
    with pytest.raises(WrongKeyError, match=r"another key than secrets\.key\. Bring .* back .*, or enter them again\."):
        secrets.given(skill)
    assert not paths.secrets_key_file.exists(), "reading makes no key"
    assert secrets.states(skill) == {}
    secrets.set(skill, "WEATHER_KEY", SECRET + "2")
    assert secrets.given(skill) == {"WEATHER_KEY": SECRET + "2"}
    assert (paths.user_skills_dir("one") / "secrets.unreadable").exists()


def test_many_skills_stay_within_the_budget_and_are_found(load: Load, tmp_path: Path):
    for number in range(500):
        write_skill(tmp_path / "skills/public", f"skill-{number:03}", f"Makes thing number {number} of a kind. " * 3)
    write_skill(tmp_path / "skills/public", "zebra-care", "Feeding and grooming of zebras.")
    found = load("me")
    assert len(found.enabled) == 501 and found.is_cut
    assert len(found.prompt.encode()) <= PROMPT_BYTES and "describe_skill" in found.prompt
    assert found.prompt == load("me").prompt and "zebra" not in found.prompt
    assert next(skill.name for skill in found.search("how do I groom a zebra?")) == "zebra-care"
    assert found.search('"; DROP') == [] and found.search("?!") == []


def test_the_most_used_skills_are_listed_from_the_next_day_on(load: Load, paths: Paths, tmp_path: Path):
    for number in range(100):
        write_skill(tmp_path / "skills/public", f"skill-{number:03}", "Makes something. " * 10)
    own = OwnSkills(paths, "me")
    own.count("skill-099")
    assert "skill-099" not in load("me").prompt
    usage = own.directory / "usage.json"
    usage.write_text(usage.read_text().replace('"day": "2', '"day": "1'))
    assert "skill-099" in load("me").prompt and "skill-099" not in load("other").prompt


async def test_skills_beyond_the_list_are_found_by_the_agent(client: DeerFlowClient, endpoint: ScriptedOpenAI):
    own = client.harness.paths.user_skills_dir("default") / "custom"
    for number in range(60):
        write_skill(own, f"skill-{number:03}", "Makes something. " * 10)
    write_skill(own, "zebra-care", "Feeding zebras.")
    endpoint.script(ToolCalls(("describe_skill", {"query": "zebra"})), Text("ok"))
    await client.achat("Zebras?")
    assert results(endpoint) == ["- /mnt/skills/custom/zebra-care/SKILL.md: Feeding zebras."]


async def test_what_an_agent_suggests_counts_after_review(endpoint: ScriptedOpenAI, tmp_path: Path):
    client = await asyncio.to_thread(
        lambda: DeerFlowClient(config=settings(endpoint, skill_evolution={"enabled": True}), base_dir=tmp_path / "data")
    )
    text = skill_text("notes", "Takes notes.")
    endpoint.script(
        ToolCalls(("skill_manage", {"action": "create", "name": "notes", "content": text})),
        ToolCalls(("skill_manage", {"action": "edit", "name": "weather", "content": text})),
        Text("ok"),
    )
    async with client:
        await client.achat("Remember how.", thread_id="t")
        suggested, refused = results(endpoint)
        assert suggested.startswith("Suggested.") and refused.startswith("Error: Custom skill 'weather' not found")
        assert await client.aget_skill("notes") is None
        paths = client.harness.paths
    await asyncio.to_thread(_review, OwnSkills(paths, "default"), text)


def _review(own: OwnSkills, text: str) -> None:
    [waiting] = own.suggestions()
    assert "+description: Takes notes." in waiting["diff"] and waiting["thread_id"] == "t"
    own.review(waiting["id"], accept=True)
    assert own.text("notes") == text and own.suggestions() == []
    assert own.history("notes")[-1]["action"] == "agent_create"
    change = {"action": "patch", "name": "notes", "find": "Do it.", "replace": "Write it down."}
    for _ in range(2):
        own.suggest(change, author="agent", thread_id=None)
    first, second = own.suggestions()
    own.review(first["id"], accept=True)
    with pytest.raises(ConflictError):
        own.review(second["id"], accept=True)
    own.review(second["id"], accept=False)
    assert "Write it down." in (own.text("notes") or "")


def test_agents_have_no_tool_for_skills_that_they_do_not_need(load: Load, tmp_path: Path):
    from deerflow.features.skills.tools import skill_tools

    write_skill(tmp_path / "skills/public", "plain")
    assert skill_tools(load("me"), evolution=AppConfig().skill_evolution.enabled) == []
    write_skill(tmp_path / "skills/public", "secretive", more="metadata:\n  secrets: [SOME_KEY]\n")
    assert [tool.name for tool in skill_tools(load("me"), evolution=False)] == ["run_skill_script"]


@pytest.mark.parametrize(("content", "state"), [("", "is empty"), ("c2hvcnQ=", "is cut short or changed")])
def test_a_key_file_without_a_key_is_named_with_its_remedy(tmp_path: Path, content: str, state: str) -> None:
    key = tmp_path / "secrets.key"
    key.write_text(content)
    seal = Seal(key, "The secrets of skills", "enter them again")
    for use in (lambda: seal.closed("x"), lambda: seal.opened("x")):
        with pytest.raises(WrongKeyError, match=f"secrets.key, which {state}. Bring that file back"):
            use()
    assert key.read_text() == content
