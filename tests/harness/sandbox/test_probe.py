"""What the probe makes of failures, and how it gives up one feature at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from deerflow.sandbox.interface import Isolation
from deerflow.sandbox.isolation import probe
from deerflow.sandbox.isolation.namespaces import (
    BwrapSandboxProvider,
    Interpreter,
    NamespaceLauncher,
    examine_namespaces,
)
from deerflow.sandbox.isolation.plan import LaunchRequest
from deerflow.sandbox.isolation.probe import CAUSES, classify


@pytest.mark.parametrize(
    ("stderr", "code"),
    [
        ("bwrap: No permissions to create new namespace, likely because the kernel does not allow", "userns-denied"),
        ("bwrap: Creating new namespace failed: Operation not permitted", "userns-denied"),
        ("bwrap: setting up uid map: Permission denied", "uid-map-denied"),
        ("bwrap: setting up uid map: Operation not permitted", "uid-map-denied"),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "proc-masked"),
        ("userns launcher: mount proc on /newroot/proc: Operation not permitted", "proc-masked"),
        ("bwrap: pivot_root: Operation not permitted", "mount-denied"),
        ("bwrap: Failed to make / slave: Permission denied", "mount-denied"),
        ("bwrap: Failed to mount tmpfs: Permission denied", "mount-denied"),
        ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", "loopback-denied"),
        (
            "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)",
            "userns-limit",
        ),
        ("userns launcher: new user namespace: No space left on device", "userns-limit"),
        ("userns launcher: new user namespace: Operation not permitted", "userns-denied"),
        ("bwrap: Unknown option --disable-userns", "disable-userns-unsupported"),
        ("bwrap: Unknown option --ro-bind-fd", "bwrap-too-old"),
        ("bwrap: cannot open /proc/sys/user/max_user_namespaces: Read-only file system", "proc-sys-read-only"),
        (
            "userns launcher: [Errno 30] Read-only file system: '/proc/sys/user/max_user_namespaces'",
            "proc-sys-read-only",
        ),
        ("bwrap: unshare user ns: Operation not permitted", "userns-denied"),
        ("bwrap: unmount old root: Operation not permitted", "mount-denied"),
        ("userns launcher: leave the old root: Operation not permitted", "mount-denied"),
        ("bwrap: Can't set hostname to sandbox: Operation not permitted", "calls-denied"),
        ("userns launcher: [Errno 1] Operation not permitted", "calls-denied"),
        ("root launcher: private mount namespace: Operation not permitted", "stage-denied"),
        ("bwrap: Can't find source path /root/x: Permission denied", "not-traversable"),
        ("bwrap: execvp /usr/bin/python3: No such file or directory", "python-missing"),
        ("[Errno 22] cannot give a directory to uid 199999: Invalid argument", "uids-unmapped"),
        ("[Errno 30] Read-only file system: '/data/sandbox/probe-1'", "data-unwritable"),
        ("[Errno 28] No space left on device: '/data/sandbox/probe-1'", "data-unwritable"),
        ("something new", "failed"),
    ],
)
def test_a_launchers_complaint_has_a_code(stderr: str, code: str) -> None:
    assert classify(stderr).code == code


def test_a_read_only_proc_sys_is_not_blamed_on_bubblewrap_or_on_the_data_directory() -> None:
    cause = classify("bwrap: cannot open /proc/sys/user/max_user_namespaces: Read-only file system")
    assert "/proc/sys is read-only" in cause.sentence and "bubblewrap" not in cause.fix and cause.without


def test_every_cause_says_what_to_do() -> None:
    for cause in CAUSES:
        assert cause.sentence.endswith(".") and cause.fix.rstrip("`").endswith("."), cause
        assert not cause.without or hasattr(probe.UNKNOWN, "without")


class PickyLauncher(NamespaceLauncher):
    """A launcher on a machine that lacks some features: it complains as bwrap would."""

    complaints: tuple[tuple[str, str], ...] = ()

    def arguments(self, request: LaunchRequest, command: tuple[str, ...]) -> tuple[list[str], list[int]]:
        for feature, complaint in self.complaints:
            if getattr(self.features, feature):
                return ["/bin/sh", "-c", 'echo "$0" >&2; exit 1', complaint], []
        return ["/bin/echo", "ok"], []

    def isolation(self, policy: object) -> Isolation:
        level = "namespaces" if self.features.fresh_proc else "namespaces-no-proc"
        return Isolation(level, True, "none", pid=True)


def picky(tmp_path: Path, *complaints: tuple[str, str]) -> NamespaceLauncher:
    kind = type("Launcher", (PickyLauncher,), {"complaints": complaints})
    return kind("/usr/bin/bwrap", tmp_path, Interpreter("/usr/bin/python3", b""))


def test_features_are_given_up_one_by_one(tmp_path: Path) -> None:
    launcher = picky(
        tmp_path,
        ("bind_fd", "bwrap: Unknown option --bind-fd"),
        ("disable_userns", "bwrap: Unknown option --disable-userns"),
        ("fresh_proc", "bwrap: Can't mount proc on /newroot/proc: Operation not permitted"),
    )
    report, found = examine_namespaces("bwrap", launcher, drops_root=False)
    assert report.ok and found is not None
    assert report.isolation is not None and report.isolation.level == "namespaces-no-proc"
    assert [problem.code for problem in report.problems] == [
        "bwrap-too-old",
        "disable-userns-unsupported",
        "proc-masked",
    ]
    assert replace(found.features, stage=False) == replace(
        launcher.features, bind_fd=False, disable_userns=False, fresh_proc=False
    )


def test_a_page_can_word_a_cause_by_its_code_and_show_what_was_said(tmp_path: Path) -> None:
    assert len({cause.code for cause in CAUSES}) == len({cause.sentence for cause in CAUSES}) == len(CAUSES)
    report, _ = examine_namespaces("bwrap", picky(tmp_path, ("bind_fd", "bwrap: odd\n thing")), drops_root=False)
    [problem] = report.problems
    assert (problem.code, problem.values) == ("failed", {"said": "bwrap: odd thing"})
    assert problem.sentence == "The sandbox could not be started. It said: bwrap: odd thing"


def test_what_cannot_be_given_up_fails_with_words_and_a_remedy(tmp_path: Path) -> None:
    launcher = picky(tmp_path, ("bind_fd", "bwrap: No permissions to create new namespace"))
    report, found = examine_namespaces("bwrap", launcher, drops_root=False)
    assert not report.ok and found is None
    [problem] = report.problems
    assert problem.code == "userns-denied"
    assert "seccomp=deerflow-seccomp.json" in problem.fix
    assert "userns-denied" in str(report)


def test_a_launcher_that_always_complains_does_not_loop(tmp_path: Path) -> None:
    launcher = picky(tmp_path, ("command", "bwrap: Can't mount proc on /newroot/proc"))
    kind = type(
        "Stubborn",
        (PickyLauncher,),
        {"arguments": lambda self, *_: (["/bin/sh", "-c", "echo Cannot mount proc on /x >&2; exit 1"], [])},
    )
    report, found = examine_namespaces(
        "bwrap", kind("/usr/bin/bwrap", tmp_path, launcher.interpreter), drops_root=False
    )
    assert (report.ok, found) == (False, None)


def test_a_missing_bubblewrap_is_a_problem_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    [problem] = BwrapSandboxProvider(tmp_path).probe().problems
    assert problem.code == "bwrap-missing"
    assert "apt install bubblewrap" in problem.fix


def test_a_root_that_maps_no_other_user_says_so(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        probe = (
            "import pathlib, sys; from deerflow.sandbox.isolation.namespaces import BwrapSandboxProvider;"
            "print(BwrapSandboxProvider(pathlib.Path(sys.argv[1])).probe())"
        )
        command = ["unshare", "--user", "--map-root-user", sys.executable, "-c", probe]
    else:
        pytest.skip("an ordinary user gives no directories away")
    told = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False)
    assert "uids-unmapped" in told.stdout, told.stderr
    assert "ordinary user" in told.stdout


def test_a_report_is_made_once_per_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    provider = BwrapSandboxProvider(tmp_path)
    assert provider.probe() is provider.probe()


def test_the_probe_leaves_nothing_behind(tmp_path: Path) -> None:
    BwrapSandboxProvider(tmp_path).probe()
    assert not list((tmp_path / "sandbox").glob("probe-*"))
