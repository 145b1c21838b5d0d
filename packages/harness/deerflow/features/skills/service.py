"""Skills as their owners see them: which there are, what is in them, which are on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from typing_extensions import TypedDict

from deerflow.config import AppConfig
from deerflow.errors import ForbiddenError, InvalidRequestError, NotFoundError, RequestError, TooLargeError
from deerflow.features.skills.catalog import SkillCatalog, SkillSet
from deerflow.features.skills.installer import pack
from deerflow.features.skills.own import OwnSkills, SkillChange, SkillSuggestion
from deerflow.features.skills.parser import (
    MAX_SKILL_FILE_BYTES,
    SKILL_FILE,
    Category,
    Skill,
    front_matter,
    notes,
    read_skill_file,
)
from deerflow.features.skills.scan import Finding, Review, files_in, question, review_of, scan, texts_in
from deerflow.features.skills.secrets import SkillSecrets
from deerflow.identity import Principal
from deerflow.security.addresses import Blocked
from deerflow.security.outbound import Outbound
from deerflow.security.text import inline

logger = logging.getLogger(__name__)


class SkillInfo(TypedDict):
    """A skill as the API shows it. ``editable``: it is the person's own; ``path``: where agents see it; ``secrets``: what its scripts
    need."""

    name: str
    description: str
    description_zh: str | None
    license: str | None
    compatibility: str | None
    category: Category
    enabled: bool
    editable: bool
    path: str
    allowed_tools: list[str] | None
    secrets: list[str]


class SkillText(SkillInfo):
    """``content``: the text of SKILL.md; ``digest``: of all its files and its origin; ``unconfirmed_secrets``: those that its scripts
    do not get, since it is not what they were set for."""

    content: str
    digest: str
    unconfirmed_secrets: list[str]


class SkillFile(TypedDict):
    """``path`` in the skill's folder, ``size`` in bytes."""

    path: str
    size: int


class SkillFiles(TypedDict):
    """``findings``: what a scan notices in the files of one's own skill."""

    files: list[SkillFile]
    findings: list[Finding]


class Installed(TypedDict):
    """``findings``: what a scan noticed in its files, ``review``: what a model says of them, for the person to look at."""

    success: bool
    skill_name: str
    message: str
    findings: list[Finding]
    review: Review | None


class SkillService:
    """Args:
    catalog: of the installation.
    outbound: which addresses skills may come from.
    config: the snapshot now in force.
    ask: a question to a model.
    """

    def __init__(
        self,
        catalog: SkillCatalog,
        outbound: Outbound,
        config: Callable[[], Awaitable[AppConfig]],
        ask: Callable[..., Awaitable[str]],
    ) -> None:
        self._catalog = catalog
        self._outbound = outbound
        self._config = config
        self._ask = ask

    def forget(self) -> None:
        """Read all files again when they are asked for next."""
        self._catalog.forget()

    async def list(self, principal: Principal, *, enabled_only: bool = False) -> list[SkillInfo]:
        """By name."""
        found = await self._load(principal)
        return [skill_info(skill) for skill in (found.enabled if enabled_only else found.skills).values()]

    async def get(self, principal: Principal, name: str) -> SkillText:
        """Raises NotFoundError."""
        skill = await self._find(principal, name)
        secrets = self._secrets(principal)

        def read() -> SkillText:
            states = secrets.states(skill) if skill.secrets else {}
            return {
                **skill_info(skill),
                "content": read_skill_file(skill.directory / SKILL_FILE),
                "digest": secrets.digest(skill),
                "unconfirmed_secrets": [name for name, confirmed in states.items() if not confirmed],
            }

        return await asyncio.to_thread(read)

    async def files(self, principal: Principal, name: str) -> SkillFiles:
        """What lies in a skill's folder, SKILL.md first. Raises NotFoundError."""
        skill = await self._find(principal, name)

        def look() -> SkillFiles:
            files = files_in(skill.directory)
            return {
                "files": [{"path": path, "size": file.stat().st_size} for path, file in files.items()],
                "findings": scan(skill.directory) if skill.category == "custom" else [],
            }

        return await asyncio.to_thread(look)

    async def file(self, principal: Principal, name: str, path: str) -> str:
        """The text of a file of a skill. Raises NotFoundError; RequestError: it is no text, or too large."""
        skill = await self._find(principal, name)

        def read() -> str:
            if (file := files_in(skill.directory).get(path)) is None:
                raise NotFoundError(f"Skill {name!r} has no file {path}.")
            if file.stat().st_size > MAX_SKILL_FILE_BYTES:
                raise TooLargeError(f"{path} has more than {MAX_SKILL_FILE_BYTES >> 20} MB.")
            try:
                return file.read_text("utf-8")
            except UnicodeDecodeError:
                raise RequestError(f"{path} is no text.", code="no_text") from None

        return await asyncio.to_thread(read)

    async def set_enabled(self, principal: Principal, name: str, enabled: bool) -> SkillInfo:
        """Switch a skill on or off for this person; it counts from the next turn on. Raises NotFoundError."""
        await self._find(principal, name)
        await asyncio.to_thread(self._own(principal).set_enabled, name, enabled)
        return skill_info(await self._find(principal, name))

    # one's own ----------------------------------------------------------------------------------------------------------

    async def install(self, principal: Principal, source: bytes | str, *, enable: bool = True) -> Installed:
        """A skill out of an archive, or from a git address, which only administrators may name.

        Args:
            enable: switch it on if nothing is found in it; otherwise it is off, for the person to look at first.

        Raises:
            RequestError: there is no skill in it, or the address is private; says why. Nothing is left of it.
            ConflictError: there is one of that name.
            ForbiddenError
        """
        own, model = self._own(principal), await self._moderator()
        origin = source if isinstance(source, str) else "archive"
        if isinstance(source, str):
            if principal.role != "admin":
                text = "Only administrators may install from addresses. Send an archive."
                raise ForbiddenError(text, reason="skill_from_address")
            try:
                pinned = await self._outbound.pinned(source)
            except (Blocked, OSError) as error:
                raise InvalidRequestError(f"{source} cannot be used: {error}") from None
            source = await asyncio.to_thread(own.cloned, *pinned)
        hold = model is not None or not enable
        name, findings = await asyncio.to_thread(own.install, source, hold=hold, origin=origin)
        review = None
        if model is not None:
            review = await self._reviewed(principal, model, await asyncio.to_thread(texts_in, own.custom / name))
        is_on = enable and not findings and (review is None or review["verdict"] == "harmless")
        if is_on and hold:
            await asyncio.to_thread(own.set_enabled, name, True)
        text = await asyncio.to_thread(read_skill_file, own.custom / name / SKILL_FILE)
        state = "It is on." if is_on else "It is off until you have looked at it and switch it on."
        return {
            "success": True,
            "skill_name": name,
            "message": " ".join([f"Skill {name!r} installed. {state}", *notes(front_matter(text))]),
            "findings": findings,
            "review": review,
        }

    async def write(self, principal: Principal, name: str, content: str, *, new: bool = False) -> SkillText:
        """Write SKILL.md of one's own skill, which keeps its secrets: the person knows what they have written.

        Raises RequestError, NotFoundError, ConflictError.
        """
        skill = None if new else await self._find(principal, name, own=True)
        own, secrets = self._own(principal), self._secrets(principal)

        def write() -> None:
            states = secrets.states(skill) if skill is not None and skill.secrets else {}
            own.write(name, content, new=new, action="human_edit", author=principal.user_id)
            if skill is not None and (confirmed := [secret for secret, is_confirmed in states.items() if is_confirmed]):
                secrets.confirm(skill, secrets.digest(skill), *confirmed)

        await asyncio.to_thread(write)
        return await self.get(principal, name)

    async def delete(self, principal: Principal, name: str) -> None:
        """Delete one's own skill; its history stays. Raises NotFoundError."""
        why = {"action": "human_delete", "author": principal.user_id}
        await asyncio.to_thread(self._own(principal).delete, name, **why)

    async def history(self, principal: Principal, name: str) -> list[SkillChange]:
        """What was done to one's own skill, the oldest first. Raises NotFoundError."""
        found = await asyncio.to_thread(self._own(principal).history, name)
        if not found:
            await self._find(principal, name, own=True)
        return found

    async def rollback(self, principal: Principal, name: str, index: int) -> SkillText:
        """Undo the change of one's own skill that stands at ``index`` of its history. Raises RequestError, NotFoundError."""
        why = {"action": "rollback", "author": principal.user_id}
        await asyncio.to_thread(self._own(principal).rollback, name, index, **why)
        return await self.get(principal, name)

    async def secrets(self, principal: Principal, name: str) -> dict[str, bool]:
        """Return for each secret that a skill needs, whether its scripts get it. Values leave this only for these scripts."""
        skill = await self._find(principal, name)
        states = await asyncio.to_thread(self._secrets(principal).states, skill)
        return {secret: states.get(secret, False) for secret in skill.secrets}

    async def set_secret(self, principal: Principal, name: str, secret: str, value: str | None) -> dict[str, bool]:
        """Keep a secret of a skill, encrypted, or forget it (None). Raises NotFoundError, RequestError."""
        skill = await self._find(principal, name)
        if secret not in skill.secrets:
            raise NotFoundError(f"Skill {name!r} needs no secret {secret!r}.")
        await asyncio.to_thread(self._secrets(principal).set, skill, secret, value)
        return await self.secrets(principal, name)

    async def confirm_secrets(self, principal: Principal, name: str, digest: str) -> dict[str, bool]:
        """Give a skill that has changed its secrets again. Raises NotFoundError, ConflictError if ``digest`` is not that of :meth:`get`."""
        skill = await self._find(principal, name)
        await asyncio.to_thread(self._secrets(principal).confirm, skill, digest)
        return await self.secrets(principal, name)

    async def suggestions(self, principal: Principal) -> list[SkillSuggestion]:
        """Changes of one's skills that agents suggest, the oldest first; each is reviewed when it is first looked at."""
        own, model = self._own(principal), await self._moderator()
        waiting = await asyncio.to_thread(own.suggestions)

        async def reviewed(one: SkillSuggestion) -> SkillSuggestion:
            if model is None or "review" in one or one["new_content"] is None:
                return {"review": None, **one}
            review = await self._reviewed(principal, model, [(one["file_path"], one["new_content"])])
            if review["verdict"] != "failed":
                await asyncio.to_thread(own.note_review, one["id"], review)
            return {**one, "review": review}

        return list(await asyncio.gather(*map(reviewed, waiting)))

    async def review(self, principal: Principal, suggestion_id: str, *, accept: bool) -> None:
        """Make a suggested change, or drop it. Raises NotFoundError, ConflictError, RequestError."""
        await asyncio.to_thread(self._own(principal).review, suggestion_id, accept=accept)

    async def _moderator(self) -> str | None:
        """The model that reviews skills, if there is one."""
        return (await self._config()).skill_evolution.moderation_model_name

    async def _reviewed(self, principal: Principal, model: str, files: Sequence[tuple[str, str]]) -> Review:
        """Advice: whatever goes wrong is part of it."""
        try:
            asked = self._ask(
                await self._config(), principal, question(files), model_name=model, purpose="skill_review_agent"
            )
            return review_of(await asked, model)
        except Exception as error:
            logger.warning("The model %s could not review a skill: %s", model, error)
            text = f"It could not be asked: {str(error) or type(error).__name__}"
            return {"model": model, "verdict": "failed", "text": inline(text, 500)}

    async def _load(self, principal: Principal) -> SkillSet:
        return await asyncio.to_thread(self._catalog.load, await self._config(), principal.user_id)

    def _own(self, principal: Principal) -> OwnSkills:
        return OwnSkills(self._catalog.paths, principal.user_id)

    def _secrets(self, principal: Principal) -> SkillSecrets:
        return SkillSecrets(self._own(principal), self._catalog.paths.secrets_key_file)

    async def _find(self, principal: Principal, name: str, *, own: bool = False) -> Skill:
        found = (await self._load(principal)).skills.get(name)
        if found is None:
            raise NotFoundError(f"{'Custom skill' if own else 'Skill'} {name!r} not found")
        if own and found.category != "custom":
            raise RequestError(
                f"{name!r} is a built-in skill. Create a skill of your own with that name to replace it.",
                reason="skill_builtin",
                name=name,
            )
        return found


def skill_info(skill: Skill) -> SkillInfo:
    return {
        "name": skill.name,
        "description": skill.description,
        "description_zh": skill.description_zh,
        "license": skill.license,
        "compatibility": skill.compatibility,
        "category": skill.category,
        "enabled": skill.enabled,
        "editable": skill.category == "custom",
        "path": skill.path,
        "allowed_tools": None if skill.allowed_tools is None else list(skill.allowed_tools),
        "secrets": list(skill.secrets),
    }


async def skill_source(source: str | Path) -> bytes | str:
    """What to install from: an archive or a folder, which is packed; or the git address itself. Raises FileNotFoundError."""
    if "://" in str(source):
        return str(source)
    return await asyncio.to_thread(lambda path: path.read_bytes() if path.is_file() else pack(path), Path(source))
