"""The image, run with the engine of this machine: `make test-docker`."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]
PROFILE = ROOT / "deploy/docker/deerflow-seccomp.json"
STRICT = ("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
WHOLE = ("--security-opt", "systempaths=unconfined")
MOST_ABOVE_BASE = 325_000_000
PATIENCE = 60.0


def docker(*arguments: str, check: bool = True) -> str:
    run = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)
    assert not check or run.returncode == 0, run.stderr
    return run.stdout.strip()


def seccomp(profile: Path = PROFILE) -> tuple[str, str]:
    return "--security-opt", f"seccomp={profile}"


def level(*flags: str) -> str:
    """How commands are confined in a container with these flags, as doctor says."""
    report = json.loads(docker("run", "--rm", *flags, "deerflow", "doctor", "--json", check=False))
    [sandbox] = [one for one in report["checks"] if one["name"] in ("bwrap", "userns", "landlock", "none")]
    return sandbox["found"]


@pytest.fixture
def served() -> Iterator[tuple[str, str]]:
    """A container as strict as can be, and its address."""
    container = docker("run", "--detach", "--publish", "127.0.0.1::2026", *STRICT, *seccomp(), "deerflow")
    try:
        yield container, f"http://{docker('port', container, '2026')}"
    finally:
        docker("rm", "--force", "--volumes", container)


def answered(address: str) -> httpx.Response:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return httpx.get(f"{address}/api/ok")
        except httpx.HTTPError:
            assert time.monotonic() < deadline, "it does not answer"
            time.sleep(0.05)


def test_the_image_is_small_and_runs_as_nobody_in_particular():
    facts: dict[str, Any] = json.loads(docker("image", "inspect", "deerflow"))[0]
    base: dict[str, Any] = json.loads(docker("image", "inspect", "debian:bookworm-slim"))[0]
    assert facts["Size"] - base["Size"] <= MOST_ABOVE_BASE
    assert facts["Config"]["User"] == "10001:10001"
    sandbox: dict[str, Any] = json.loads(docker("image", "inspect", "deerflow-sandbox"))[0]
    assert sandbox["Size"] - base["Size"] <= 50_000_000


def test_with_nothing_writable_but_its_data_it_serves_the_page_survives_a_kill_and_stops(served: tuple[str, str]):
    container, address = served
    assert answered(address).json() == {"ok": True}
    assert "<html" in httpx.get(address, follow_redirects=True).text
    assert docker("exec", container, "python3", "-I", "-S", "/opt/deerflow/health.py") == ""
    docker("kill", container)
    docker("start", container)
    again = f"http://{docker('port', container, '2026')}"
    assert answered(again).json() == {"ok": True}
    docker("stop", "--time", "20", container)
    assert docker("inspect", "--format", "{{.State.ExitCode}}", container) == "0"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), "Landlock"),
        (STRICT, "Landlock"),
        ((*STRICT, *seccomp()), "namespaces"),
        ((*STRICT, *seccomp(), *WHOLE), "namespaces"),
    ],
    ids=["default", "strict", "profile", "profile-and-proc"],
)
def test_commands_are_confined_whatever_the_container_is_given(flags: tuple[str, ...], expected: str):
    assert expected.lower() in level(*flags).lower()


@pytest.mark.parametrize("call", ["clone", "mount", "pivot_root", "sethostname", "umount2", "unshare"])
def test_without_one_of_the_calls_there_is_less_isolation_and_never_none(call: str, tmp_path: Path):
    profile = json.loads(PROFILE.read_text())
    for rule in profile["syscalls"]:
        rule["names"] = [name for name in rule["names"] if name != call]
    profile["syscalls"] = [rule for rule in profile["syscalls"] if rule["names"]]
    if call == "clone":  # as Docker has it: no flag of a namespace
        masked = {"index": 0, "value": 0x7E020000, "op": "SCMP_CMP_MASKED_EQ"}
        profile["syscalls"].append({"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [masked]})
    less = tmp_path / "less.json"
    less.write_text(json.dumps(profile))
    found = level(*STRICT, *seccomp(less)).lower()
    assert "landlock" in found or (call == "clone" and "namespaces" in found)


def test_a_sandbox_in_the_container_keeps_the_whole_contract():
    packages = next(Path(ROOT, ".venv/lib").glob("python3*/site-packages"))
    command = (
        *("run", "--rm", *STRICT, *seccomp(), *WHOLE, "--workdir", "/src", "--entrypoint", "/opt/deerflow/bin/python"),
        *("--tmpfs", "/tmp:exec,mode=1777", "--tmpfs", "/var/tmp:exec,mode=1777", "--env", "HOME=/tmp"),
        *("--env", "PYTHONPATH=/packages:/src", "--volume", f"{packages}:/packages:ro", "--volume", f"{ROOT}:/src:ro"),
        *("deerflow", "-m", "pytest", "-p", "no:cacheprovider", "-q", "-n", "0", "-m", "not docker and not nightly"),
        "tests/harness/sandbox/test_contract.py",
    )
    run = subprocess.run(["docker", *command], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-6000:]


def test_the_full_image_has_the_packages_of_sandboxes_inside() -> None:
    strict = ("run", "--rm", "--network", "none", *STRICT, *seccomp())
    report = json.loads(docker(*strict, "deerflow:full", "doctor", "--json", check=False))
    [packages] = [one for one in report["checks"] if one["name"] == "Python packages"]
    assert packages["status"] == "ok" and packages["found"].startswith("/opt/deerflow/share/"), packages
    program = (
        "--entrypoint",
        f"{packages['found']}/bin/python",
        "deerflow:full",
        "-c",
        "import pandas, matplotlib, docx",
    )
    assert docker(*strict, *program) == ""


def test_the_image_of_sandboxes_serves_commands_as_a_pod_runs_it():
    flags = ("--publish", "127.0.0.1::8080", *STRICT, "--user", "10001:10001", "--tmpfs", "/tmp:mode=1777")
    container = docker("run", "--detach", *flags, "--env", "SANDBOX_API_KEY=key", "deerflow-sandbox")
    try:
        address, deadline = f"http://{docker('port', container, '8080')}", time.monotonic() + PATIENCE
        with httpx.Client(base_url=address, headers={"X-AIO-API-Key": "key"}, trust_env=False) as http:
            while True:
                try:
                    assert http.get("/v1/sandbox").status_code == 200
                    break
                except httpx.TransportError:
                    assert time.monotonic() < deadline, docker("logs", container)
                    time.sleep(0.05)
            answer = http.post("/v1/shell/exec", json={"command": "id -u; env; touch /x", "timeout": 20}).json()["data"]
            assert answer["output"].startswith("10001\n") and "Read-only file system" in answer["output"]
            assert "SANDBOX_API_KEY" not in answer["output"] and answer["exit_code"] == 1
            assert http.get("/v1/sandbox", headers={"X-AIO-API-Key": "other"}).status_code == 401
    finally:
        docker("rm", "--force", container)
    refused = subprocess.run(["docker", "run", "--rm", "deerflow-sandbox"], capture_output=True, text=True, check=False)
    assert refused.returncode == 1 and "SANDBOX_API_KEY is not set" in refused.stderr
