"""The launcher's arguments, flag by flag."""

from __future__ import annotations

from pathlib import Path

import pytest

from deerflow.sandbox.isolation.namespaces import Bind, KernelFeatures, build_arguments
from deerflow.sandbox.isolation.plan import SYSTEM_DIRECTORIES

BINDS: list[Bind] = [
    ("--bind", "/mnt/1", "/mnt/user-data/workspace"),
    ("--ro-bind", "/mnt/2", "/mnt/skills"),
    ("--bind-fd", "7", "/home/agent"),
    ("--bind", "/mnt/4", "/tmp"),
    ("--ro-bind-fd", "8", "/run/sbx"),
]


def arguments(*binds: Bind, features: KernelFeatures = KernelFeatures(), share_network: bool = False) -> list[str]:
    return build_arguments(
        ("/usr/bin/python3", "/run/agent.pyc", "9"),
        ("--ro-bind", "/mnt/0", "/etc"),
        binds,
        supervisor=5,
        seccomp=6,
        features=features,
        share_network=share_network,
    )


def options(told: list[str]) -> str:
    return " ".join(told)


def test_the_whole_command_line() -> None:
    system: list[str] = []
    for name in SYSTEM_DIRECTORIES:
        path = Path("/", name)
        if path.is_symlink():
            system += ["--symlink", str(path.readlink()).lstrip("/"), str(path)]
        elif path.is_dir():
            system += ["--ro-bind", str(path), str(path)]
    assert arguments(*BINDS) == [
        *"--unshare-user --unshare-ipc --unshare-pid --unshare-uts --unshare-cgroup-try --unshare-net".split(),
        *"--disable-userns --uid 1000 --gid 1000 --hostname sandbox --cap-drop ALL".split(),
        *"--die-with-parent --new-session --clearenv --as-pid-1".split(),
        *"--ro-bind /usr /usr".split(),
        *system,
        *"--ro-bind /mnt/0 /etc".split(),
        *"--proc /proc --dev /dev --size 67108864 --tmpfs /dev/shm".split(),
        *"--size 1048576 --tmpfs /run".split(),
        *"--bind /mnt/4 /tmp --ro-bind /mnt/2 /mnt/skills --bind-fd 7 /home/agent --ro-bind-fd 8 /run/sbx".split(),
        *"--bind /mnt/1 /mnt/user-data/workspace".split(),
        *"--perms 0444 --ro-bind-data 5 /run/agent.pyc".split(),
        *"--remount-ro /dev --remount-ro /run --remount-ro / --chdir / --seccomp 6".split(),
        *"-- /usr/bin/python3 /run/agent.pyc 9".split(),
    ]


def test_everything_is_mounted_before_it_is_frozen() -> None:
    told = arguments(*BINDS)
    frozen = told.index("--remount-ro")
    mounting = {"--bind", "--ro-bind", "--bind-fd", "--ro-bind-fd", "--tmpfs", "--proc", "--dev", "--ro-bind-data"}
    assert not mounting & set(told[frozen:])


def test_outer_mounts_come_before_inner_ones() -> None:
    told = arguments(("--bind", "/i", "/mnt/a/b/c"), ("--ro-bind", "/o", "/mnt/a"))
    assert told.index("/mnt/a") < told.index("/mnt/a/b/c")


def test_home_and_tmp_without_a_directory_are_small_and_in_memory() -> None:
    shown = options(arguments())
    assert "--perms 1777 --size 268435456 --tmpfs /tmp" in shown
    assert "--perms 0700 --size 268435456 --tmpfs /home/agent" in shown


@pytest.mark.parametrize(
    ("features", "missing", "present"),
    [
        (KernelFeatures(disable_userns=False), "--disable-userns", "--unshare-user"),
        (KernelFeatures(fresh_proc=False), "--proc /proc", "--ro-bind /proc /proc"),
    ],
)
def test_a_missing_feature_leaves_the_rest_as_it_is(features: KernelFeatures, missing: str, present: str) -> None:
    shown = options(arguments(features=features))
    assert missing not in shown
    assert present in shown
    assert "--unshare-net" in shown


def test_only_network_mode_host_shares_the_network() -> None:
    assert "--unshare-net" in arguments()
    assert "--unshare-net" not in arguments(share_network=True)
