"""What one person keeps about skills, in files of the data directory: which are on, and the skills of their own."""

from __future__ import annotations

import difflib
import fcntl
import json
import logging
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, NotRequired

from typing_extensions import TypedDict

from deerflow.config import Paths
from deerflow.config.document import write_text
from deerflow.errors import ConflictError, NotFoundError, RequestError, TooLargeError
from deerflow.features.skills.installer import clone, unpacked
from deerflow.features.skills.parser import (
    MAX_SKILL_FILE_BYTES,
    SKILL_FILE,
    InvalidSkillError,
    Skill,
    checked,
    name_problem,
)
from deerflow.features.skills.scan import Finding, Review, scan, scan_text

FOLDERS = ("references", "templates", "scripts", "assets")
"""Of a skill, whose files can be written one by one."""
MAX_HISTORY = 100
MAX_SUGGESTIONS = 50

logger = logging.getLogger(__name__)


class SkillChange(TypedDict):
    """A change of a file of one's own skill. ``prev_content`` and ``new_content``: None where there is no such file.

    ``author``: a person's id, ``human``, or the agent; ``rollback_from_ts``: ``ts`` of the change that it undid.
    """

    ts: str
    action: str
    author: str
    thread_id: str | None
    file_path: str
    prev_content: str | None
    new_content: str | None
    diff: str
    rollback_from_ts: NotRequired[str]


class SkillSuggestion(SkillChange):
    """A change that an agent suggests. ``action``: create, edit, patch, delete, write_file or remove_file."""

    id: str
    name: str
    findings: list[Finding]
    review: NotRequired[Review | None]


class OwnSkills:
    """Every method blocks. Whoever changes something holds :meth:`alone`, so that processes do not undo each other."""

    def __init__(self, paths: Paths, user_id: str) -> None:
        self._paths = paths
        self._user_id = user_id
        self.directory = paths.user_skills_dir(user_id)
        self.custom = self.directory / "custom"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the person's skills, over all processes."""
        self._paths.ensure_skills_dir(self._user_id)
        lock = os.open(self.directory, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def states(self) -> dict[str, bool]:
        """Skills that the person has switched on or off."""
        return {
            name: state["enabled"]
            for name, state in self._extensions().get("skills", {}).items()
            if isinstance(state, dict) and isinstance(state.get("enabled"), bool)
        }

    def set_enabled(self, name: str, enabled: bool) -> None:
        with self.alone():
            self._set_enabled(name, enabled)

    def _set_enabled(self, name: str, enabled: bool) -> None:
        extensions = self._extensions()
        extensions["skills"] = {**extensions.get("skills", {}), name: {"enabled": enabled}}
        write_text(self._paths.user_extensions_file(self._user_id), json.dumps(extensions, indent=2) + "\n")

    def used(self) -> dict[str, int]:
        """How often skills were read, up to yesterday: what is listed first in prompts changes once a day at most."""
        usage = _json(self.directory / "usage.json")
        today = datetime.now(UTC).date().isoformat()
        before, last = usage.get("before", {}), usage.get("today", {}) if usage.get("day") != today else {}
        return {name: before.get(name, 0) + last.get(name, 0) for name in sorted(before.keys() | last.keys())}

    def count(self, name: str) -> None:
        """A skill was read."""
        with self.alone():
            file, today = self.directory / "usage.json", datetime.now(UTC).date().isoformat()
            usage = _json(file)
            if usage.get("day") != today:
                usage = {"day": today, "before": self.used(), "today": {}}
            usage["today"][name] = usage["today"].get(name, 0) + 1
            write_text(file, json.dumps(usage), 0o600)

    # suggestions --------------------------------------------------------------------------------------------------------

    def suggest(self, change: Mapping[str, Any], *, author: str, thread_id: str | None) -> None:
        """Put a change before the person. Raises RequestError: it cannot be made, or too many wait."""
        with self.alone():
            text = self._changed(change)
            waiting = self.suggestions()
            if len(waiting) >= MAX_SUGGESTIONS:
                raise RequestError(f"{MAX_SUGGESTIONS} suggestions wait for the user's review already.")
            path = change.get("path") or SKILL_FILE
            before = self.text(change["name"], path)
            entry = {
                "id": secrets.token_hex(6),
                "ts": datetime.now(UTC).isoformat(),
                "action": change["action"],
                "name": change["name"],
                "file_path": path,
                "prev_content": before,
                "new_content": text,
                "author": author,
                "thread_id": thread_id,
            }
            entry["diff"] = _difference(entry)
            entry["findings"] = scan_text(path, text or "")
            self._keep_suggestions([*waiting, entry])

    def suggestions(self) -> list[SkillSuggestion]:
        """Changes that wait for the person's review, the oldest first."""
        return _json(self.directory / "suggestions.json").get("waiting", [])

    def review(self, suggestion_id: str, *, accept: bool) -> None:
        """Make a suggested change, or drop it. Raises NotFoundError, and what :meth:`write` raises."""
        waiting = self.suggestions()
        found = next((one for one in waiting if one["id"] == suggestion_id), None)
        if found is None:
            raise NotFoundError(f"There is no suggestion {suggestion_id}.")
        if accept:
            name, path = found["name"], found["file_path"]
            why = {"action": f"agent_{found['action']}", "author": found["author"], "thread_id": found["thread_id"]}
            if self.text(name, path) != found["prev_content"]:
                raise ConflictError(
                    f"{path} of {name!r} has changed since this was suggested.", reason="skill_changed", name=name
                )
            if found["action"] == "delete":
                self.delete(name, **why)
            else:
                self.write(name, found["new_content"], path=path, new=found["action"] == "create", **why)
        with self.alone():
            self._keep_suggestions(one for one in self.suggestions() if one["id"] != suggestion_id)

    def note_review(self, suggestion_id: str, review: Mapping[str, Any]) -> None:
        """Keep what a model says of a suggestion."""
        with self.alone():
            self._keep_suggestions(
                {**one, "review": review} if one["id"] == suggestion_id else one for one in self.suggestions()
            )

    def _keep_suggestions(self, waiting: Iterable[Mapping[str, Any]]) -> None:
        write_text(self.directory / "suggestions.json", json.dumps({"waiting": [*waiting]}), 0o600)

    def _changed(self, change: Mapping[str, Any]) -> str | None:
        """The text of the file after a suggested change. Raises RequestError, NotFoundError."""
        action, name, content = change["action"], change["name"], change.get("content")
        path = change.get("path") or SKILL_FILE
        before = self.text(name, path)
        if action == "create":
            self._check_free(name)
        elif self.text(name) is None:
            raise NotFoundError(
                f"Custom skill {name!r} not found. Built-in skills are changed by one of the same name."
            )
        if action in ("delete", "remove_file"):
            return None
        if action == "patch":
            find = change.get("find") or ""
            if not find or before is None or before.count(find) != 1:
                raise RequestError("find must be a text that stands in the file once.")
            content = before.replace(find, change.get("replace") or "")
        if content is None:
            raise RequestError(f"{action} needs content.")
        if path == SKILL_FILE:
            self._check_text(name, content)
        return content

    # skills -------------------------------------------------------------------------------------------------------------

    def origin(self, skill: Skill) -> str:
        """Return the address or the archive that a skill came from; ``own``: the person, or an agent of theirs, has written it."""
        return skill.category if skill.category == "public" else self._origins().get(skill.name, "own")

    def _origins(self) -> dict[str, str]:
        return _json(self.directory / "origins.json")

    def _keep_origin(self, name: str, origin: str | None) -> None:
        others = {key: kept for key, kept in self._origins().items() if key != name}
        write_text(
            self.directory / "origins.json", json.dumps(others if origin is None else {**others, name: origin}), 0o600
        )

    def install(self, data: bytes, *, hold: bool = False, origin: str = "archive") -> tuple[str, list[Finding]]:
        """Name of the skill in an archive, now the person's own, and what the scan found in it; it is off if that is anything.

        Args:
            hold: it is off, whatever is found.
            origin: the git address that it came from.

        Raises:
            RequestError: the archive holds no skill; says why. Nothing is left of it.
            ConflictError: the person has one of that name.
        """
        with self.alone(), unpacked(data, self.directory) as (name, root):
            self._check_free(name)
            found = scan(root)
            self._set_enabled(name, not (found or hold))
            self._keep_origin(name, origin)
            shutil.copymode(self.custom, root)
            root.rename(self.custom / name)
            self._record(name, action="install", author="human", file_path=SKILL_FILE, new_content=self.text(name))
        return name, found

    def cloned(self, address: str, resolve: str = "") -> bytes:
        """The skill at a git address as an archive, see :func:`clone`."""
        self._paths.ensure_skills_dir(self._user_id)
        return clone(address, self.directory, resolve)

    def text(self, name: str, path: str = SKILL_FILE) -> str | None:
        """A file of one of the person's skills; None: there is none."""
        try:
            return self._file(name, path).read_text("utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (UnicodeDecodeError, IsADirectoryError):
            raise RequestError(f"{path} is no text.") from None

    def write(self, name: str, text: str | None, *, path: str = SKILL_FILE, new: bool = False, **why: Any) -> None:
        """Write a file of a skill, or take it away (None), and record the change.

        Args:
            new: the skill must not be there yet; otherwise it must.
            why: ``action``, ``author`` and ``thread_id`` of the record.

        Raises:
            RequestError: the text is no SKILL.md of that name, or the path leads elsewhere.
            NotFoundError: the person has no such skill or file.
            ConflictError: the new skill is there already.
        """
        with self.alone():
            before = self.text(name, path)
            if new:
                self._check_free(name)
            elif not (self.custom / name).is_dir() and why.get("action") != "rollback":
                raise NotFoundError(f"Custom skill {name!r} not found")
            elif text is None and before is None:
                raise NotFoundError(f"Skill {name!r} has no file {path}.")
            file = self._file(name, path)
            if path == SKILL_FILE:
                self._check_text(name, text)
            if text is None:
                file.unlink()
            else:
                for folder in (self.custom / name, *reversed(file.relative_to(self.custom / name).parents[:-1])):
                    (self.custom / name / folder).mkdir(mode=0o755, exist_ok=True)
                write_text(file, text, 0o755 if path.startswith("scripts/") else 0o644)
            self._record(name, file_path=path, prev_content=before, new_content=text, **why)

    def delete(self, name: str, **why: Any) -> None:
        """Delete a skill; its history stays. Raises NotFoundError."""
        with self.alone():
            if name_problem(name) or not (self.custom / name).is_dir():
                raise NotFoundError(f"Custom skill {name!r} not found")
            self._record(name, file_path=SKILL_FILE, prev_content=self.text(name), **why)
            with tempfile.TemporaryDirectory(prefix=".deleted-", dir=self.directory) as place:
                (self.custom / name).rename(Path(place, name))
            self._keep_origin(name, None)

    def history(self, name: str) -> list[SkillChange]:
        """What was done to a skill, the oldest first, also of one that is deleted. Each with the difference."""
        try:
            lines = self._history(name).read_text("utf-8").splitlines()
        except FileNotFoundError:
            return []
        entries: list[SkillChange] = [json.loads(line) for line in lines]
        return [{**entry, "diff": _difference(entry)} for entry in entries]

    def rollback(self, name: str, index: int, **why: Any) -> None:
        """Put a file back to what it was before the change ``index``. Raises RequestError, NotFoundError."""
        entries = self.history(name)
        if not entries:
            raise NotFoundError(f"Custom skill {name!r} has no history.")
        if not -len(entries) <= index < len(entries):
            raise RequestError("history_index is out of range")
        entry = entries[index]
        if entry["prev_content"] is None and entry["file_path"] == SKILL_FILE:
            raise RequestError("This change has no previous content: delete the skill instead.")
        self.write(name, entry["prev_content"], path=entry["file_path"], rollback_from_ts=entry["ts"], **why)

    def _check_free(self, name: str) -> None:
        if (self.custom / name).exists():
            raise ConflictError(f"Skill {name!r} already exists", code="skill_exists", name=name)

    def _check_text(self, name: str, text: str | None) -> None:
        if text is None:
            raise RequestError(f"{SKILL_FILE} cannot be removed; delete the skill.")
        if len(text.encode("utf-8", "replace")) > MAX_SKILL_FILE_BYTES:
            raise TooLargeError(f"{SKILL_FILE} may have {MAX_SKILL_FILE_BYTES >> 20} MB.")
        try:
            checked(text, name)
        except InvalidSkillError as error:
            raise RequestError(f"Invalid skill: {error}", code="invalid_skill", why=str(error)) from None

    def _file(self, name: str, path: str) -> Path:
        """A file of a skill that may be read and written. Raises RequestError: the path leads elsewhere."""
        parts = PurePosixPath(path).parts
        inside = path == SKILL_FILE or (len(parts) > 1 and parts[0] in FOLDERS)
        if (problem := name_problem(name)) or not inside or ".." in parts or "\0" in path:
            raise RequestError(problem or f"{path!r}: use {SKILL_FILE} or a file in {', '.join(FOLDERS)}.")
        file = self.custom.joinpath(name, *parts)
        if any(part.is_symlink() for part in (file, *file.parents[: len(parts)])):
            raise RequestError(f"{path!r} leads elsewhere.")
        return file

    def _history(self, name: str) -> Path:
        if problem := name_problem(name):
            raise NotFoundError(problem)
        return self.directory / "history" / f"{name}.jsonl"

    def _record(self, name: str, **what: Any) -> None:
        """Add to the history of a skill, whose oldest entries go."""
        file = self._history(name)
        file.parent.mkdir(mode=0o700, exist_ok=True)
        entry = {
            "ts": datetime.now(UTC).isoformat(),
            "thread_id": None,
            "prev_content": None,
            "new_content": None,
            **what,
        }
        try:
            lines = file.read_text("utf-8").splitlines()
        except FileNotFoundError:
            lines = []
        write_text(file, "".join(f"{line}\n" for line in [*lines[1 - MAX_HISTORY :], json.dumps(entry)]), 0o600)

    # files --------------------------------------------------------------------------------------------------------------

    def _extensions(self) -> dict[str, Any]:
        file = self._paths.user_extensions_file(self._user_id)
        try:
            found = json.loads(file.read_text("utf-8"))
            if isinstance(found, dict) and isinstance(found.get("skills", {}), dict):
                return found
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            pass
        logger.warning("%s cannot be read; the installation's settings of skills apply.", file)
        return {}


def _json(file: Path) -> dict[str, Any]:
    try:
        return json.loads(file.read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return {}


def _difference(entry: Mapping[str, Any]) -> str:
    before, after = ((entry[key] or "").splitlines() for key in ("prev_content", "new_content"))
    return "\n".join(difflib.unified_diff(before, after, entry["file_path"], entry["file_path"], lineterm=""))
