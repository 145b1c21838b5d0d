"""Tries the real recipe on this machine, gives up one feature at a time, and says in words what is missing."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deerflow.sandbox.interface import WORKSPACE, Mount, Policy, Problem

PROBE_UID = 199_999
TRIAL_TIMEOUT = 20.0
MAX_TRIALS = 8


@dataclass(frozen=True, slots=True)
class Cause:
    """A kind of failure: how the launcher words it, what it means, what helps, and which feature can be given up for it."""

    code: str
    pattern: str
    sentence: str
    fix: str
    without: str = ""
    """The feature of the recipe to try without."""

    def problem(self, said: str = "") -> Problem:
        """Return what a person reads; ``said``: the launcher's complaint, where it tells more than the cause."""
        if not (said := shorten(said)):
            return Problem(self.code, self.sentence, self.fix)
        return Problem(self.code, f"{self.sentence} It said: {said}", self.fix, {"said": said})


UNPRIVILEGED = (
    "On Ubuntu 23.10 and later install an AppArmor profile with `userns,` for /usr/bin/bwrap or set "
    "`sysctl kernel.apparmor_restrict_unprivileged_userns=0`. In Docker add `--security-opt seccomp=deerflow-seccomp.json`, the "
    "profile that is shipped for it."
)
CAUSES = (
    Cause(
        "stage-denied",
        r"root launcher: (private mount namespace|mount)",
        "This root may not make a mount namespace.",
        "Run the gateway as an ordinary user.",
        without="stage",
    ),
    Cause(
        "bwrap-too-old",
        r"unknown option.*--(ro-)?bind-fd",
        "This bubblewrap has no --bind-fd.",
        "Install bubblewrap 0.10 or newer.",
        without="bind_fd",
    ),
    Cause(
        "disable-userns-unsupported",
        r"unknown option.*--disable-userns|disable-userns",
        "Nested user namespaces cannot be switched off here.",
        "Install bubblewrap 0.8 or newer. The system-call filter refuses them meanwhile.",
        without="disable_userns",
    ),
    Cause(
        "proc-sys-read-only",
        r"max_user_namespaces: (permission|read-only|operation)|"
        r"(read-only|permission|operation)[^:]*: '/proc/sys/user/max_user_namespaces'",
        "/proc/sys is read-only here, so nested user namespaces cannot be switched off. The system-call filter refuses them.",
        "Nothing needs to be done. `docker run --security-opt systempaths=unconfined` makes /proc/sys writable; a systemd unit "
        "must not set ProtectKernelTunables.",
        without="disable_userns",
    ),
    Cause(
        "proc-masked",
        r"can't mount proc|mount proc on",
        "This container masks parts of /proc, so the sandbox cannot have one of its own.",
        "Isolation is good without it. `docker run --security-opt systempaths=unconfined` lifts the mask; docker-compose 1.29 "
        "cannot, and Kubernetes needs `procMount: Unmasked`.",
        without="fresh_proc",
    ),
    Cause(
        "data-unwritable",
        r"(read-only file system|permission denied|no space left on device|quota exceeded): '(?!/proc/)",
        "The data directory cannot be written, so no sandbox can be tried.",
        "Set DEER_FLOW_HOME to a directory that you may write and that has room.",
    ),
    Cause(
        "userns-limit",
        r"max_\*_namespaces|max_user_namespaces|no space left on device",
        "This machine allows no further user namespaces.",
        "Set `sysctl user.max_user_namespaces=10000`.",
    ),
    Cause(
        "uid-map-denied",
        r"setting up uid map|uid_map|gid_map|setgroups",
        "User namespaces are allowed but not their use: AppArmor restricts them, or a container does.",
        UNPRIVILEGED,
    ),
    Cause(
        "userns-denied",
        r"no permissions to create|creating new namespace failed|new user namespace|new namespaces|no permission|"
        r"unshare user ns",
        "This machine or container refuses user namespaces.",
        UNPRIVILEGED,
    ),
    Cause(
        "mount-denied",
        r"pivot_root|unmount old root|leave the old root|make / slave|failed to mount tmpfs|mount tmpfs on|mount none on|mount .* on /",
        "This machine or container refuses mounts inside a user namespace.",
        UNPRIVILEGED,
    ),
    Cause(
        "calls-denied",
        r"set ?hostname|launcher: \[errno 1\] operation not permitted\s*$",
        "A system-call filter of this container refuses a call that every sandbox needs.",
        UNPRIVILEGED,
    ),
    Cause(
        "loopback-denied",
        r"loopback|rtm_newaddr",
        "The loopback device of a new network namespace cannot be brought up.",
        UNPRIVILEGED,
    ),
    Cause(
        "not-traversable",
        r"cannot create .*permission denied|can't (find|stat|open|get|chdir).*permission denied|can't find source path",
        "The sandbox's own user may not enter the data directory.",
        "Set DEER_FLOW_HOME to a directory that others may enter (chmod o+x on each parent), or run the gateway as an "
        "ordinary user.",
    ),
    Cause(
        "uids-unmapped",
        r"cannot give a directory to uid",
        "This root has no other user id that a sandbox could run under: its user namespace maps one id only.",
        "Run DeerFlow as an ordinary user, or map a range of ids (/etc/subuid, `podman run --userns=auto`).",
    ),
    Cause(
        "python-missing",
        r"execvp.*python|no such file.*python",
        "No Python is to be had inside of the sandbox.",
        "Install python3 (3.9 or newer) from your distribution.",
    ),
)
UNKNOWN = Cause("failed", "", "The sandbox could not be started.", "Run `deerflow doctor` and report what it says.")

NO_BWRAP = Problem(
    "bwrap-missing", "bubblewrap is not installed.", "Install it: apt install bubblewrap (or dnf, pacman, apk)."
)
NOT_LINUX = Problem("not-linux", "Namespaces exist on Linux only.", "Use containers: docs/docker.md.")


def run_trial(argv: Sequence[str], descriptors: Sequence[int]) -> subprocess.CompletedProcess[str]:
    """Execute what a launcher says, as the spawner would, and close the descriptors. Raises OSError, SubprocessError."""
    try:
        return subprocess.run(
            argv, pass_fds=descriptors, env={}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=TRIAL_TIMEOUT, check=False, cwd="/",
        )  # fmt: skip
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def classify(stderr: str) -> Cause:
    """The cause that a launcher's complaint stands for."""
    text = stderr.lower()
    return next((cause for cause in CAUSES if re.search(cause.pattern, text)), UNKNOWN)


@contextmanager
def trial_policy(state_dir: Path, uid: int | None) -> Iterator[Policy]:
    """A policy over directories that exist for the trial only."""
    root = state_dir / f"probe-{secrets.token_hex(6)}"
    try:
        state_dir.mkdir(0o711, parents=True, exist_ok=True)
        root.mkdir()
        for name in ("workspace", "home", "tmp"):
            directory = root / name
            directory.mkdir()
            if uid is not None:
                _give(directory, uid)
        yield Policy(mounts=(Mount(root / "workspace", WORKSPACE),), home=root / "home", tmp=root / "tmp")
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _give(directory: Path, uid: int) -> None:
    try:
        os.chown(directory, uid, uid)
    except OSError as error:
        raise OSError(error.errno, f"cannot give a directory to uid {uid}: {error.strerror}") from error


def shorten(text: str) -> str:
    return " ".join(text.split())[:300]
