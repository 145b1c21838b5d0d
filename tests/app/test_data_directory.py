"""What lies in the data directory is for the user who runs DeerFlow, and for no other user of the machine."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.support.gateway_process import COMMAND, GUARD, gateway_process

FOR_SANDBOXES = re.compile(r"sandbox/etc-|tools|.*/acp-workspace$|.*/skills/custom$")
"""What sandboxes read, each under a user id of its own: copies of public files of the system, Python packages, skills, what an
agent of another protocol wrote."""
OPEN_UMASK = ("sh", "-c", 'umask 0; exec "$@"', "sh")


def reachable(directory: Path, top: Path) -> Iterator[Path]:
    """What another user of the machine could read, list or change below ``directory``."""
    for entry in os.scandir(directory):
        path = Path(entry.path)
        if FOR_SANDBOXES.match(str(path.relative_to(top))) or entry.is_symlink():
            continue
        mode = entry.stat(follow_symlinks=False).st_mode
        if mode & (stat.S_IRWXG | stat.S_IRWXO) & ~0o011 or (mode & 0o011 and not entry.is_dir()):
            yield path
        if entry.is_dir() and mode & 0o011:
            yield from reachable(path, top)


def test_no_other_user_reads_the_data_directory_however_open_the_umask(tmp_path: Path):
    with ScriptedOpenAI() as model:
        model.script(
            ToolCalls(("bash", {"command": "echo secret > /mnt/user-data/outputs/report.md"})),
            ToolCalls(("present_files", {"filepaths": ["/mnt/user-data/outputs/report.md"]})),
            Text("All done."),
        )
        with gateway_process(tmp_path, auth=True, model_url=model.base_url, wrap=OPEN_UMASK) as gateway:
            token = gateway.token("read", "write")
            with gateway.client(authorization=f"Bearer {token}") as client:
                sent = {"files": ("notes.md", b"secret")}
                client.post("/api/threads/t/uploads", files=sent).raise_for_status()
                run = {"input": {"messages": [{"role": "user", "content": "go"}]}, "if_not_exists": "create"}
                values = client.post("/threads/t/runs/wait", json=run).raise_for_status().json()
                assert values["messages"][-1]["content"] == "All done."
            backup = [*OPEN_UMASK, *COMMAND, "backup", str(tmp_path / "all.tar.gz"), "--config", str(gateway.config)]
            subprocess.run(backup, env=gateway.environment, cwd=tmp_path, check=True, timeout=GUARD)
    for file in (tmp_path / "all.tar.gz", gateway.home):
        assert stat.S_IMODE(file.stat().st_mode) & 0o066 == 0, file
    assert list(reachable(gateway.home, gateway.home)) == []


def test_a_directory_of_another_user_is_named_with_its_owner_and_ours(tmp_path: Path):
    """As a bind mount that Docker made, which belongs to root."""
    uid, root = os.geteuid() or 10001, Path(__file__).parents[2]
    needed = map(str, (root, sys.prefix, sys.base_prefix))
    other = [sys.executable, str(root / "tests/support/as_user.py"), str(uid), *needed, "--"]
    environment = {"PATH": os.environ["PATH"], "HOME": "/", "DEER_FLOW_HOME": "/usr/of-a-test"}
    for command in (["doctor"], ["serve", "--no-ui", "--port", "0"]):
        line = [*(other if os.geteuid() == 0 else []), *COMMAND, *command]
        done = subprocess.run(line, env=environment, cwd="/", capture_output=True, text=True, timeout=GUARD)
        said = " ".join((done.stdout + done.stderr).split())
        assert f"/usr belongs to root (0), and DeerFlow runs as user {uid}" in said, said
        assert f"chown -R {uid} /usr" in said
