from __future__ import annotations

from pathlib import Path

import pytest

from deerflow import DeerFlowClient
from deerflow_app.cli.chat.files import copy_out, host_path, human_size, near

OUT = "/mnt/user-data/outputs"


@pytest.fixture
def client(folder: Path, without_tool_image: None) -> DeerFlowClient:
    return DeerFlowClient()


@pytest.fixture
def outputs(client: DeerFlowClient) -> Path:
    """The outputs directory of the thread ``t``."""
    client.harness.paths.ensure_thread_dirs("t", "default")
    return client.harness.paths.outputs("t", "default")


async def test_bytes_arrive_unchanged_whatever_their_size(
    client: DeerFlowClient, outputs: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deerflow.files.artifacts.PIECE", 7)
    data = bytes(range(256)) * 3
    (outputs / "数据.bin").write_bytes(data)
    (outputs / "empty.txt").touch()
    copied = await copy_out(client.aread_artifact, "t", [f"{OUT}/数据.bin", f"{OUT}/empty.txt"], folder / "new" / "out")
    assert [item.file and item.file.read_bytes() for item in copied] == [data, b""]
    await client.aclose()


async def test_a_file_that_is_gone_or_leads_outside_is_told_and_leaves_nothing(
    client: DeerFlowClient, outputs: Path, folder: Path
) -> None:
    secret = folder / "secret"
    secret.write_text("host secret")
    (outputs / "link").symlink_to(secret)
    copied = await copy_out(client.aread_artifact, "t", [f"{OUT}/gone.md", f"{OUT}/link"], folder / "out")
    assert [item.file for item in copied] == [None, None]
    assert all(item.problem for item in copied)
    assert list((folder / "out").iterdir()) == []
    await client.aclose()


async def test_artifacts_of_one_name_do_not_overwrite_each_other(
    client: DeerFlowClient, outputs: Path, folder: Path
) -> None:
    for sub in ("a", "b"):
        (outputs / sub).mkdir()
        (outputs / sub / "report.tar.gz").write_text(sub)
    copied = await copy_out(client.aread_artifact, "t", [f"{OUT}/a/report.tar.gz", f"{OUT}/b/report.tar.gz"], folder)
    assert [item.file and item.file.name for item in copied] == ["report.tar.gz", "report.tar-1.gz"]
    await client.aclose()


def test_a_virtual_path_is_shown_where_it_lies(client: DeerFlowClient, outputs: Path) -> None:
    assert host_path(client.harness.paths, "t", f"{OUT}/a/b.md") == outputs / "a/b.md"
    assert host_path(client.harness.paths, "t", "/etc/passwd") is None


def test_paths_are_shown_as_one_would_type_them_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert near(folder / "out/a.md") == "out/a.md"
    assert near(Path("/home/me/x")) == "~/x"
    assert near(Path("/srv/x")) == "/srv/x"


@pytest.mark.parametrize(
    ("size", "shown"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KB"), (5 << 20, "5.0 MB"), (3 << 30, "3.0 GB")]
)
def test_sizes_read_naturally(size: int, shown: str) -> None:
    assert human_size(size) == shown
