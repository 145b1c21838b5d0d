"""Skills: which there are, which are on, and one's own."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query, Request
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from deerflow.features.skills.own import SkillChange, SkillSuggestion
from deerflow.features.skills.service import Installed, SkillFiles, SkillInfo, SkillText
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import CurrentPrincipal, CurrentRuntime, Deleted, raw_body

router = Router(prefix="/api/skills", tags=["skills"])


class Skills(TypedDict):
    skills: list[SkillInfo]


class History(TypedDict):
    history: list[SkillChange]


class SkillSuggestions(TypedDict):
    suggestions: list[SkillSuggestion]


class FileText(TypedDict):
    content: str


class SecretValue(BaseModel):
    value: str | None = Field(max_length=10_000)


class Seen(BaseModel):
    digest: str = Field(description="As the skill shows it: what the person has looked at.")


class Reloaded(TypedDict):
    success: bool
    scope: Literal["process"]
    message: str


class SkillChanges(BaseModel):
    enabled: bool


class SkillContent(BaseModel):
    content: str


class RollbackRequest(BaseModel):
    history_index: int = Field(default=-1, description="-1: the last change.")


_ENABLE = "Switch it on if nothing is found in it; otherwise it is off until its owner switches it on."


class InstallRequest(BaseModel):
    thread_id: str | None = None
    path: str | None = Field(default=None, examples=["/mnt/user-data/outputs/weather.skill"])
    url: str | None = Field(default=None, examples=["https://example.org/skills.git#weather"])
    enable: bool = Field(default=True, description=_ENABLE)


_ARCHIVE = raw_body("application/zip", {"type": "string", "format": "binary"})


@router.get("", summary="All skills, by name")
async def list_skills(principal: CurrentPrincipal, runtime: CurrentRuntime) -> Skills:
    return {"skills": await runtime.skills.list(principal)}


@router.post("/reload", summary="Read all skills again from their files")
async def reload_skills(principal: CurrentPrincipal, runtime: CurrentRuntime) -> Reloaded:
    """Not needed after a change: it is seen by the times of the files. For drives on which these are not right."""
    runtime.skills.forget()
    found = await runtime.skills.list(principal)
    return {"success": True, "scope": "process", "message": f"{len(found)} skills were read."}


@router.post("/install", summary="Install the archive that lies in a thread, or from a git address")
async def install_skill(asked: InstallRequest, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Installed:
    """An archive `….skill` (a ZIP) at `path` of a thread, or a git repository at `url`, which only administrators may name."""
    return await runtime.install_skill(principal, **asked.model_dump())


@router.post("/archive", summary="Install an archive that is sent", openapi_extra=_ARCHIVE)
async def install_archive(
    request: Request,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    enable: Annotated[bool, Query(description=_ENABLE)] = True,
) -> Installed:
    return await runtime.skills.install(principal, await request.body(), enable=enable)


@router.get("/custom", summary="One's own skills")
async def list_custom_skills(principal: CurrentPrincipal, runtime: CurrentRuntime) -> Skills:
    return {"skills": [one for one in await runtime.skills.list(principal) if one["category"] == "custom"]}


@router.get("/custom/{skill_name}", summary="One's own skill with its text")
async def get_custom_skill(skill_name: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> SkillText:
    return await runtime.skills.get(principal, skill_name)


@router.post("/custom/{skill_name}", status_code=201, summary="Make a skill of one's own")
async def create_custom_skill(
    skill_name: str, given: SkillContent, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> SkillText:
    return await runtime.skills.write(principal, skill_name, given.content, new=True)


@router.put("/custom/{skill_name}", summary="Change the text of one's own skill")
async def edit_custom_skill(
    skill_name: str, given: SkillContent, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> SkillText:
    return await runtime.skills.write(principal, skill_name, given.content)


@router.delete("/custom/{skill_name}", summary="Delete one's own skill; its history stays")
async def delete_custom_skill(skill_name: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Deleted:
    await runtime.skills.delete(principal, skill_name)
    return {"success": True}


@router.get("/custom/{skill_name}/history", summary="What was done to one's own skill, the oldest first")
async def skill_history(skill_name: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> History:
    return {"history": await runtime.skills.history(principal, skill_name)}


@router.post("/custom/{skill_name}/rollback", summary="Undo a change of one's own skill")
async def rollback_skill(
    skill_name: str, asked: RollbackRequest, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> SkillText:
    return await runtime.skills.rollback(principal, skill_name, asked.history_index)


@router.get("/suggestions", summary="Changes of one's skills that agents suggest")
async def list_suggestions(principal: CurrentPrincipal, runtime: CurrentRuntime) -> SkillSuggestions:
    return {"suggestions": await runtime.skills.suggestions(principal)}


@router.post("/suggestions/{suggestion_id}", status_code=204, summary="Accept a suggested change")
async def accept_suggestion(suggestion_id: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> None:
    await runtime.skills.review(principal, suggestion_id, accept=True)


@router.delete("/suggestions/{suggestion_id}", status_code=204, summary="Drop a suggested change")
async def drop_suggestion(suggestion_id: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> None:
    await runtime.skills.review(principal, suggestion_id, accept=False)


@router.get("/{skill_name}/files", summary="What lies in a skill's folder, and what a scan notices in it")
async def list_skill_files(skill_name: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> SkillFiles:
    return await runtime.skills.files(principal, skill_name)


@router.get("/{skill_name}/files/{path:path}", summary="The text of a file of a skill")
async def read_skill_file(skill_name: str, path: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> FileText:
    return {"content": await runtime.skills.file(principal, skill_name, path)}


@router.get("/{skill_name}/secrets", summary="Which secrets a skill needs, and which its scripts get")
async def list_secrets(skill_name: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> dict[str, bool]:
    return await runtime.skills.secrets(principal, skill_name)


@router.put("/{skill_name}/secrets/{secret}", summary="Set a secret of a skill")
async def set_secret(
    skill_name: str, secret: str, given: SecretValue, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> dict[str, bool]:
    """Kept encrypted, and given to scripts of this skill only. null forgets it."""
    return await runtime.skills.set_secret(principal, skill_name, secret, given.value)


@router.post("/{skill_name}/secrets/confirm", summary="Give a skill that has changed its secrets again")
async def confirm_secrets(
    skill_name: str, seen: Seen, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> dict[str, bool]:
    """They belong to what the skill was when they were set. 409: it is not the one of `digest` any more."""
    return await runtime.skills.confirm_secrets(principal, skill_name, seen.digest)


@router.get("/{skill_name}", summary="One skill with its text")
async def get_skill(skill_name: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> SkillText:
    return await runtime.skills.get(principal, skill_name)


@router.put("/{skill_name}", summary="Switch a skill on or off")
async def update_skill(
    skill_name: str, changes: SkillChanges, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> SkillInfo:
    return await runtime.skills.set_enabled(principal, skill_name, changes.enabled)
