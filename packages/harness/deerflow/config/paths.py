"""Where things are kept on the host.

::

    memory.json  USER.md  SOUL.md
    data/                                            databases
    tools/                                           the tool image of sandboxes
    agents/{name}/{config.yaml,SOUL.md,memory.json}
    users/{user}/{memory.json,agents/{name}/memory.json}
    users/{user}/extensions_config.json              which skills the user has switched on or off
    users/{user}/skills/{custom/{name}/SKILL.md,history,suggestions}
    users/{user}/threads/{thread}/{user-data/{workspace,uploads,outputs},acp-workspace,home,tmp}
    deleted/                                         what is being removed
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from deerflow.identity import check_agent_name, check_id

EXAMPLE_NAME = "config.example.yaml"
HOME_VAR = "DEER_FLOW_HOME"
HOST_BASE_VAR, HOST_SKILLS_VAR = "DEER_FLOW_HOST_BASE_DIR", "DEER_FLOW_HOST_SKILLS_PATH"
ENGINE_VAR, SOCKET_VAR = "DOCKER_HOST", "DEER_FLOW_DOCKER_SOCKET"
VIRTUAL_ROOT = "/mnt/user-data"

# A sandbox runs under another user than we do: it must get through to its thread's directories, without being able to list
# what lies on the way. The provider gives the directories themselves to that user.
_PASSABLE, _READABLE, _PRIVATE = 0o711, 0o755, 0o700
_PATIENCE, _PAUSE = 20.0, 0.05
"""Seconds for which writers of a directory are outlasted, and between two rounds."""


class Paths:
    """The directories of one installation. Making an instance makes no directory.

    Args:
        base_dir: default ``DEER_FLOW_HOME``, else ``.deer-flow`` in the project root (see :func:`project_root`).
        environ: default the process's environment.
        cwd: what relative paths start from; default the current directory.
    """

    def __init__(
        self,
        base_dir: str | Path | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
    ) -> None:
        environ = os.environ if environ is None else environ
        named = base_dir or environ.get(HOME_VAR)
        if named and (given := Path(named).expanduser()).is_absolute():
            self.base_dir = given
        else:
            folder = Path(cwd or Path.cwd()).absolute()
            self.base_dir = folder / Path(named).expanduser() if named else project_root(folder) / ".deer-flow"
        there = environ.get(HOST_BASE_VAR)
        self.host_paths = {self.base_dir: Path(there)} if there else {}
        """Directories of ours by their places on the container engine's machine, if we are in a container ourselves."""
        there = environ.get(HOST_SKILLS_VAR)
        self.host_skills_dir = Path(there) if there else None
        """The same for the directory of public skills."""
        engine = environ.get(ENGINE_VAR) or environ.get(SOCKET_VAR) or "/var/run/docker.sock"
        self.docker_socket = Path(engine.removeprefix("unix://"))
        self.data_dir = self.base_dir / "data"
        """Databases."""
        self.secrets_key_file = self.data_dir / "secrets.key"
        """The key that people's secrets are encrypted with."""
        self.tools_dir = self.base_dir / "tools"
        """The tool image of sandboxes."""
        self.memory_file = self.base_dir / "memory.json"
        """Memory of calls without a user."""
        self.user_md_file = self.base_dir / "USER.md"
        """What all agents should know about the user."""
        self.soul_file = self.base_dir / "SOUL.md"
        """The character of the default agent."""
        self.agents_dir = self.base_dir / "agents"
        """Custom agents."""
        self.users_dir = self.base_dir / "users"
        """What belongs to each user, a directory each."""
        self.deleted_dir = self.base_dir / "deleted"
        """Directories that were moved away to be removed."""

    def of_this_machine(self) -> list[Path]:
        """Return what belongs to this machine and its processes, so that no copy of the installation may hold it: where the
        server is, logs, and the state of sandboxes, whose user ids are allotted by machine and directory."""
        return [*self.base_dir.glob("server.json*"), *self.base_dir.glob("deerflow.log*"), self.base_dir / "sandbox"]

    def __repr__(self) -> str:
        return f"Paths({str(self.base_dir)!r})"

    def ensure_base_dir(self) -> Path:
        """Make the base directory, passable for sandbox users."""
        return _make(self.base_dir, _PASSABLE)

    # one per agent or user ------------------------------------------------------------------------------------------

    def agent_dir(self, name: str) -> Path:
        """A custom agent. Raises ValueError for a name that may not be a directory."""
        return self.agents_dir / check_agent_name(name).lower()

    def agent_memory_file(self, name: str, user_id: str | None = None) -> Path:
        """Memory of a custom agent, of one user or of calls without one."""
        agents = self.agents_dir if user_id is None else self.user_agents_dir(user_id)
        return agents / check_agent_name(name).lower() / "memory.json"

    def user_dir(self, user_id: str) -> Path:
        """Everything of one user. Raises ValueError for an id that may not be a directory."""
        return self.users_dir / check_id(user_id, "user id")

    def user_agents_dir(self, user_id: str) -> Path:
        """Custom agents of one user."""
        return self.user_dir(user_id) / "agents"

    def user_soul_file(self, user_id: str) -> Path:
        """The character of the default agent, as one user wants it."""
        return self.user_dir(user_id) / "SOUL.md"

    def user_profile_file(self, user_id: str) -> Path:
        """What all agents should know about one user."""
        return self.user_dir(user_id) / "USER.md"

    def user_memory_file(self, user_id: str) -> Path:
        """Memory of one user."""
        return self.user_dir(user_id) / "memory.json"

    def user_extensions_file(self, user_id: str) -> Path:
        """Which skills one user has switched on or off: counts more than the installation's ``extensions_config.json``."""
        return self.user_dir(user_id) / "extensions_config.json"

    def user_skills_dir(self, user_id: str) -> Path:
        """Skills of one user, and what belongs to them."""
        return self.user_dir(user_id) / "skills"

    def ensure_skills_dir(self, user_id: str) -> Path:
        """Make the directory of a user's own skills, which sandboxes read."""
        skills = self.user_skills_dir(user_id)
        for directory in (self.base_dir, self.users_dir, self.user_dir(user_id), skills):
            _make(directory, _PASSABLE)
        return _make(skills / "custom", _READABLE)

    # one per thread -------------------------------------------------------------------------------------------------

    def thread_dir(self, thread_id: str, user_id: str, *below: str) -> Path:
        """Everything of one thread, or a place below. Raises ValueError for an id that may not be a directory."""
        return Path(self.users_dir, check_id(user_id, "user id"), "threads", check_id(thread_id, "thread id"), *below)

    def user_data(self, thread_id: str, user_id: str) -> Path:
        """What the model sees as ``/mnt/user-data``."""
        return self.thread_dir(thread_id, user_id, "user-data")

    def workspace(self, thread_id: str, user_id: str) -> Path:
        """``/mnt/user-data/workspace``."""
        return self.thread_dir(thread_id, user_id, "user-data", "workspace")

    def uploads(self, thread_id: str, user_id: str) -> Path:
        """``/mnt/user-data/uploads``."""
        return self.thread_dir(thread_id, user_id, "user-data", "uploads")

    def outputs(self, thread_id: str, user_id: str) -> Path:
        """``/mnt/user-data/outputs``."""
        return self.thread_dir(thread_id, user_id, "user-data", "outputs")

    def acp(self, thread_id: str, user_id: str) -> Path:
        """``/mnt/acp-workspace``."""
        return self.thread_dir(thread_id, user_id, "acp-workspace")

    def home(self, thread_id: str, user_id: str) -> Path:
        """The home directory of the thread's sandbox."""
        return self.thread_dir(thread_id, user_id, "home")

    def tmp(self, thread_id: str, user_id: str) -> Path:
        """``/tmp`` of the thread's sandbox."""
        return self.thread_dir(thread_id, user_id, "tmp")

    def ensure_thread_dir(self, thread_id: str, user_id: str) -> Path:
        """Make a thread's own directory and those above it, where they are not there, and return it."""
        thread = self.thread_dir(thread_id, user_id)
        for directory in (self.base_dir, self.users_dir, self.user_dir(user_id), thread.parent, thread):
            _make(directory, _PASSABLE)
        return thread

    def ensure_thread_dirs(self, thread_id: str, user_id: str) -> Path:
        """Make all directories of a thread that are not there, and return the thread's own. Existing ones keep their modes."""
        thread = self.ensure_thread_dir(thread_id, user_id)
        _make(self.user_data(thread_id, user_id), _PASSABLE)
        for directory in (self.workspace, self.uploads, self.outputs, self.home, self.tmp):
            _make(directory(thread_id, user_id), _PRIVATE)
        # The sandbox only reads it, and its owner is the program on the host that writes it.
        _make(self.acp(thread_id, user_id), _READABLE)
        return thread

    # removing -------------------------------------------------------------------------------------------------------

    def remove(self, directory: Path) -> None:
        """Move a directory away, where nothing finds it, and remove it until nothing is left. Follows no link; may be repeated. Blocks.

        Sandboxes whose directories are moved away end within moments, in every process (``sandbox/provider.py``).

        Raises:
            OSError: something below is still written or protected. It is out of its place; :meth:`remove_leftovers` tries again.
        """
        while (gone := self._move_away(directory)) is not None:
            _remove(gone)

    def remove_leftovers(self) -> None:
        """Remove what an earlier :meth:`remove` could not. Raises OSError as it does."""
        with suppress(FileNotFoundError):
            for left in [*self.deleted_dir.iterdir()]:
                _remove(left)

    def _move_away(self, directory: Path) -> Path | None:
        """Return the new place, or None if there is nothing to move."""
        if not os.path.lexists(directory):
            return None
        gone = _make(self.deleted_dir, _PRIVATE) / uuid.uuid4().hex
        try:
            directory.rename(gone)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            gone = directory.with_name(f".{gone.name}")  # a file system of its own is mounted on the way
            directory.rename(gone)
        return gone


def _remove(directory: Path) -> None:
    """Remove a directory beside those who still write into it, as long as they last. Raises OSError after ``_PATIENCE`` seconds."""
    until = time.monotonic() + _PATIENCE
    while True:
        errors: list[OSError] = []
        shutil.rmtree(directory, onerror=lambda call, path, info, errors=errors: _open_up(path, info[1], errors))
        if not os.path.lexists(directory):
            return
        if time.monotonic() > until:
            raise errors[-1] if errors else OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(directory))
        time.sleep(_PAUSE)


def _open_up(path: str, error: BaseException, errors: list[OSError]) -> None:
    """Let the next round into a directory that its owner has closed."""
    if not isinstance(error, OSError):
        raise error
    errors.append(error)
    if isinstance(error, PermissionError):
        for closed in (Path(path), Path(path).parent):
            with suppress(OSError):
                if stat.S_ISDIR(closed.lstat().st_mode):
                    closed.chmod(_PRIVATE)


def get_paths(base_dir: str | Path | None = None) -> Paths:
    """The directories of this installation."""
    return Paths(base_dir)


def project_root(cwd: Path | None = None) -> Path:
    """The source checkout that this package is imported from, or the current directory when the package is installed."""
    return _checkout() or (cwd or Path.cwd()).absolute()


def example_file() -> Path:
    """``config.example.yaml``: the checkout's, or the copy that is installed with the package."""
    root = _checkout()
    return root / EXAMPLE_NAME if root else Path(__file__).with_name(EXAMPLE_NAME)


def shipped_skills() -> Path:
    """The public skills: the checkout's, or the copy that is installed with the package."""
    root = _checkout()
    return root / "skills/public" if root else Path(__file__).parents[1] / "skills/public"


def on_host(path: Path, host_paths: Mapping[Path, Path]) -> Path:
    """Return where another machine has a directory of ours: one that runs sandboxes while we are in a container ourselves."""
    resolved = path.resolve()
    for here, there in host_paths.items():
        if resolved.is_relative_to(here):
            return there / resolved.relative_to(here)
    return resolved


def _checkout() -> Path | None:
    for parent in Path(__file__).resolve().parents:
        if (parent / EXAMPLE_NAME).is_file() and (parent / "packages" / "harness").is_dir():
            return parent
    return None


def _make(directory: Path, mode: int) -> Path:
    try:
        directory.mkdir(parents=True)
    except FileExistsError:
        return directory
    # mkdir's own mode is cut by the umask.
    directory.chmod(mode)
    return directory
