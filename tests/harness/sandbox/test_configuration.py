"""A mistake in the section `sandbox` never makes a sandbox that confines less."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from deerflow.config import AppConfig, ConfigError, ConfigSource, Paths
from deerflow.config.schema import LimitsConfig, MountConfig, NetworkConfig, SandboxConfig, ToolImageConfig
from deerflow.sandbox.auto import AutoSandboxProvider
from deerflow.sandbox.policy import build_sandbox_provider, thread_policy

ANYTHING: list[Any] = ["nonsense", -1, 0.5, [], {}, [None], {"x": 1}, "\0", ["/etc"], [[]]]
LONG = "/etc/" + "x" * 300
BAD: dict[str, list[Any]] = {
    "use": ["", "local", "os:system", "os", "deerflow.sandbox.auto", "deerflow.sandbox.local:Local", ":", [], {}, 1],
    "allow_unsandboxed": [1, 1.0, "maybe", "ja", [True], {"yes": True}, 2, "\0", -1, 0],
    "allow_host_bash": [1, 1.0, "maybe", "ja", [True], {"yes": True}, 2, "\0", -1, 0],
    "network": [1, "hosts", "host ", True, [], {"mode": "all"}, {"mode": ["host"]}, {"mode": True}, "*", 0.5],
    "limits": [False, True, 1, "none", [], [0], {"processes": False}, {"processes": -1}, {"memory_mb": "much"}, 0.5],
    "etc_extra": [
        ["libreoffice"], ["/etc"], ["/etc/"], ["/etc/../root"], ["/etc/x/../../root"], ["/root"], ["/etc/x\0y"], [LONG],
        "/etc/hosts", ["/etc/ssl/private/x"],
    ],
    "mounts": [
        [{"host_path": "data", "container_path": "/mnt/data"}],
        [{"host_path": "/usr", "container_path": "data"}],
        [{"host_path": "/usr", "container_path": "/mnt/../data"}],
        [{"host_path": "/usr/..", "container_path": "/mnt/data"}],
        [{"host_path": "/usr", "container_path": "/mnt/skills/public"}],
        [{"host_path": "/usr", "container_path": "/etc"}],
        [{"host_path": "/usr", "container_path": "/proc/self"}],
        [{"host_path": "/etc/passwd", "container_path": "/mnt/data"}],
        [{"host_path": "/usr"}],
        ["/usr:/mnt/data"],
    ],
    "environment": [["A=1"], "A=1", {"A=B": "1"}, {"": "x"}, {"A": "\0"}, {"A B": "x"}, {"1A": "x"}, {"A": []}, 1, True],
    "network.mode": ["hosts", "Host", True, 1, [], {}, "host,none", "internet ", "*", -1],
    "network.deny": [["http://x.example"], ["x y"], [""], ["x.example/path"], ["*x"], ["10.0.0.0/99"], [{}], "x", [1.5, []], {}],
    "network.allow": [["http://x.example"], ["x y"], [""], ["x.example/path"], ["*x"], ["10.0.0.0/99"], [{}], "x", [[]], {}],
    "network.allow_nets": [["x"], ["10.0.0.0/99"], ["*"], [""], ["::/200"], [{}], "10.0.0.0/8", [[]], {}, ["0/0/0"]],
    "network.ports": [[0], [-1], [70000], ["http"], [None], "80", [[]], {}, [80.5], 80],
    **{f"limits.{name}": [False, True, -1, "much", 0.5, [], {}, 1 << 70, "-1", "\0"] for name in LimitsConfig.model_fields},
    "tool_image": [1, "no way", [], [True], {"enabled": "maybe"}, {"enabled": []}, True, 0.5, "\0", {"requirements": []}],
}  # fmt: skip


@pytest.fixture(scope="module")
def confined(tmp_path_factory: pytest.TempPathFactory) -> Callable[[AppConfig], object]:
    """What a thread is confined by under a configuration; asked of the machine once for equal sections."""
    known: list[tuple[SandboxConfig, object]] = []
    paths = Paths(tmp_path_factory.mktemp("data"))

    def ask(config: AppConfig) -> object:
        ours = config.sandbox.model_copy(
            update={"image": "", "port": 1, "replicas": 1, "environment": {}, "mounts": ()}
        )
        for section, answer in known:
            if section == ours:
                return answer
        provider = build_sandbox_provider(config, paths)
        assert isinstance(provider, AutoSandboxProvider)
        policy = thread_policy(config, paths, "t", "u")
        chosen = provider.choose()
        answer = type(chosen).__name__, chosen.probe().isolation, policy.network.mode, policy.limits
        known.append((ours, answer))
        return answer

    return ask


KEYS = sorted({*SandboxConfig.model_fields, *BAD})


@pytest.mark.parametrize("key", KEYS)
def test_ten_bad_values_of_a_key_leave_the_isolation_as_it_is(
    key: str, tmp_path: Path, confined: Callable[[AppConfig], object]
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("config_version: 9\nsandbox: {}\n")
    source = ConfigSource(cwd=tmp_path, environ={}, probe=lambda *_: ())
    expected = confined(source.current())
    values = BAD.get(key, ANYTHING)
    assert len(values) >= 10
    for value in values:
        inner: Any = value
        for part in reversed(key.split(".")):
            inner = {part: inner}
        file.write_text(yaml.safe_dump({"config_version": 9, "sandbox": inner}))
        assert confined(source.current()) == expected, value
        if key in ("etc_extra", "mounts") and value != ["/etc/ssl/private/x"]:
            assert "config.yaml:" in (source.problem or "") and f"sandbox.{key}" in (source.problem or ""), value


def test_every_key_of_the_section_is_tried() -> None:
    nested = {"network": NetworkConfig, "limits": LimitsConfig, "tool_image": ToolImageConfig, "mounts": MountConfig}
    assert {key.split(".")[0] for key in KEYS} == set(SandboxConfig.model_fields)
    assert {f"network.{name}" for name in nested["network"].model_fields} <= set(KEYS)
    assert {f"limits.{name}" for name in nested["limits"].model_fields} <= set(KEYS)


def test_a_first_file_with_such_a_mistake_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "config_version: 9\nsandbox:\n  etc_extra:\n  - /etc/hosts\n  - libreoffice\n"
    )
    with pytest.raises(ConfigError, match=r"config\.yaml:5: sandbox\.etc_extra\[1\].*below /etc.*'libreoffice'"):
        ConfigSource(cwd=tmp_path, environ={}, probe=lambda *_: ()).current()


@pytest.mark.parametrize("extra", ["libreoffice", "/etc", "/etc/../root"])
def test_code_that_names_such_a_path_gets_no_weaker_sandbox_either(tmp_path: Path, extra: str) -> None:
    with pytest.raises(ValueError, match="should be"):
        AutoSandboxProvider(tmp_path, etc_extra=(extra,), allow_unsandboxed=True)
