"""Virtual paths in command lines: replaced where they are paths, left alone where they are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deerflow.sandbox.interface import OUTPUTS, SKILLS, UPLOADS, WORKSPACE, Mount
from deerflow.sandbox.isolation.host_paths import HostPaths

ROOT = "/tmp/deerflow-x"
HOST = "/srv/data dir/threads/t1"
PATHS = HostPaths(
    [
        Mount(Path(f"{HOST}/workspace"), WORKSPACE),
        Mount(Path(f"{HOST}/uploads"), UPLOADS),
        Mount(Path(f"{HOST}/outputs"), OUTPUTS),
        Mount(Path("/opt/skills"), SKILLS, read_only=True),
        Mount(Path(f"{HOST}/tmp"), "/tmp"),
        Mount(Path("/srv/books"), "/data/books"),
        Mount(Path("/srv/rare"), "/data/books/rare"),
    ],
    Path(ROOT),
)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (f"cat {WORKSPACE}/a.txt", f"cat {ROOT}{WORKSPACE}/a.txt"),
        (f"ls {WORKSPACE}", f"ls {ROOT}{WORKSPACE}"),
        (f"ls {WORKSPACE}/", f"ls {ROOT}{WORKSPACE}/"),
        (f"rsync -a {WORKSPACE}/. {OUTPUTS}/.", f"rsync -a {ROOT}{WORKSPACE}/. {ROOT}{OUTPUTS}/."),
        (f'cat "{WORKSPACE}/a b"', f'cat "{ROOT}{WORKSPACE}/a b"'),
        (f"cat '{WORKSPACE}/a'", f"cat '{ROOT}{WORKSPACE}/a'"),
        (f"x={WORKSPACE};y=a:{SKILLS}", f"x={ROOT}{WORKSPACE};y=a:{ROOT}{SKILLS}"),
        (f"cp {{{WORKSPACE},{UPLOADS}}}/a .", f"cp {{{ROOT}{WORKSPACE},{ROOT}{UPLOADS}}}/a ."),
        (f"cat<{WORKSPACE}/a>{OUTPUTS}/b", f"cat<{ROOT}{WORKSPACE}/a>{ROOT}{OUTPUTS}/b"),
        (f"gcc -I{WORKSPACE}/include", f"gcc -I{ROOT}{WORKSPACE}/include"),
        (f"tool --out={OUTPUTS}/b", f"tool --out={ROOT}{OUTPUTS}/b"),
        (f"(cd {WORKSPACE})", f"(cd {ROOT}{WORKSPACE})"),
        ("ls /mnt/user-data", f"ls {ROOT}/mnt/user-data"),
        ("ls /mnt/user-data/ /mnt", f"ls {ROOT}/mnt/user-data/ {ROOT}/mnt"),
        ("cat /data/books/a /data/books/rare/b", f"cat {ROOT}/data/books/a {ROOT}/nested-6/b"),
        ("ls > /tmp/out", f"ls > {ROOT}/tmp/out"),
    ],
)
def test_paths_are_replaced(command: str, expected: str) -> None:
    assert PATHS.to_host(command) == expected


@pytest.mark.parametrize(
    "command",
    [
        "curl https://host/mnt/skills/a",
        "curl https://host/mnt/user-data/workspace/a",
        "curl file:///mnt/user-data/workspace/a",
        "ls /mnt/skills-extra /mnt/user-data2 /mnt/user-data/workspaces /mnt/user-data/workspace.bak",
        "ls /var/mnt/skills ./mnt/skills ../mnt/skills ~/mnt/skills $HOME/mnt/skills ${HOME}/mnt/skills",
        "ls /mnt/data /mnt/other/x /home /data /home/agentx",
        "echo $(pwd)/mnt/skills",
        "cat > a.py <<'EOF'\nopen('/mnt/user-data/workspace/a')\nEOF",
        'cat <<A <<-"B"\n/mnt/skills\nA\n\t/mnt/skills\n\tB',
    ],
)
def test_what_is_no_path_of_ours_is_left_alone(command: str) -> None:
    assert PATHS.to_host(command) == command


def test_only_the_body_of_a_here_document_is_data() -> None:
    command = (
        f"cat {SKILLS}/a - <<EOF > {OUTPUTS}/b\n{SKILLS}\nEOF\ncat {SKILLS}/c; echo $((1<<2)) {SKILLS}\ncat <<<{SKILLS}"
    )
    mapped = PATHS.to_host(command)
    assert mapped.splitlines()[1] == SKILLS
    assert mapped.count(ROOT) == command.count("/mnt") - 1
    assert PATHS.in_data(command) and not PATHS.in_data(f"cat {SKILLS}/a")


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (f"{ROOT}{WORKSPACE}/a\n", f"{WORKSPACE}/a\n"),
        (f"{HOST}/workspace/a {HOST}/outputs.", f"{WORKSPACE}/a {OUTPUTS}."),
        (
            f"{HOST}/workspace2 {HOST}/outputs-old /opt/skills-x /opt/skills.d",
            f"{HOST}/workspace2 {HOST}/outputs-old /opt/skills-x /opt/skills.d",
        ),
        (f"{ROOT}/mnt {ROOT}/mnt/user-data {ROOT}/nested-6/b", "/mnt /mnt/user-data /data/books/rare/b"),
        ("/srv/books/x /srv/rare", "/data/books/x /data/books/rare"),
    ],
)
def test_output_shows_virtual_paths(output: str, expected: str) -> None:
    assert PATHS.to_virtual(output) == expected


@given(st.text(alphabet="abc/.-_ \n'\"$:=<E", max_size=60))
def test_a_command_without_our_paths_is_never_changed(text: str) -> None:
    assert PATHS.to_host(text) == text
    assert PATHS.to_virtual(PATHS.to_host(f"ls {WORKSPACE} {text}")) == f"ls {WORKSPACE} {text}"
