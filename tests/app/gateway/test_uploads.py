from __future__ import annotations

import asyncio
import errno
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.files_app import FilesApp, files_app

from deerflow.files.uploads import UploadLimits, UploadService
from deerflow.identity import Principal
from deerflow_app.gateway.routes.uploads import upload_service

URL = "/api/threads/t1/uploads"
BOUNDARY = "----limit"
FORM = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}


@pytest.fixture
async def site(tmp_path: Path, sqlite_template: Path) -> AsyncIterator[FilesApp]:
    database = await asyncio.to_thread(shutil.copy, sqlite_template, tmp_path / "deerflow.db")
    async with files_app(tmp_path / "home", Path(database)) as app:
        yield app


def limit(site: FilesApp, **limits: int) -> None:
    service = UploadService(site.paths, site.threads, UploadLimits(**limits))
    site.app.dependency_overrides[upload_service] = lambda: service


def part(name: str, content: bytes) -> bytes:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n\r\n'
    return head.encode() + content + b"\r\n"


END = f"--{BOUNDARY}--\r\n".encode()


async def test_files_may_come_before_the_first_message_and_their_answer_names_no_host_path(site: FilesApp):
    files = [("files", ("a b.csv", b"x,y\n1,2\n")), ("files", ("報告.pdf", b"%PDF"))]
    answer = await site.client.post(URL, files=files)
    assert answer.status_code == 200, answer.text
    first, second = answer.json()["files"]
    assert first == {
        "filename": "a b.csv",
        "size": 8,
        "path": "/mnt/user-data/uploads/a b.csv",
        "virtual_path": "/mnt/user-data/uploads/a b.csv",
        "artifact_url": "/api/threads/t1/artifacts/mnt/user-data/uploads/a%20b.csv",
    }
    assert second["filename"] == "報告.pdf"
    assert answer.json()["success"] is True and str(site.paths.base_dir) not in answer.text
    assert (await site.threads.get(Principal("anna"), "t1")).status == "idle"
    assert (await site.client.get(first["artifact_url"])).text == "x,y\n1,2\n"


async def test_the_same_name_never_overwrites_and_the_answer_tells_both_names(site: FilesApp):
    for content in (b"one", b"two"):
        answer = await site.client.post(URL, files=[("files", ("data.csv", content)), ("files", ("data.csv", b"same"))])
    names = [(file["filename"], file.get("original_filename")) for file in answer.json()["files"]]
    assert names == [("data_2.csv", "data.csv"), ("data_3.csv", "data.csv")]
    assert (site.paths.uploads("t1", "anna") / "data.csv").read_bytes() == b"one"


async def test_uploads_at_the_same_time_all_get_names_of_their_own(site: FilesApp):
    await site.thread()
    answers = await asyncio.gather(*(site.client.post(URL, files={"files": ("x.txt", str(n))}) for n in range(12)))
    names = {answer.json()["files"][0]["filename"]: n for n, answer in enumerate(answers)}
    assert len(names) == 12
    assert all((site.paths.uploads("t1", "anna") / name).read_text() == str(n) for name, n in names.items())


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("/abs/x.txt", "x.txt"),
        ('say \\"hi\\".txt', "say _hi_.txt"),
        ("semi;colon.txt", "semi;colon.txt"),
    ],
)
async def test_names_lose_their_directories_and_what_could_mislead(site: FilesApp, sent: str, kept: str):
    answer = await site.client.post(URL, content=part(sent, b"x") + END, headers=FORM)
    assert [file["filename"] for file in answer.json()["files"]] == [kept]


async def test_a_name_in_the_extended_form_is_understood(site: FilesApp):
    head = f"--{BOUNDARY}\r\nContent-Disposition: form-data; name=files; filename*=utf-8''%E5%A0%B1.txt\r\n\r\n"
    answer = await site.client.post(URL, content=head.encode() + b"x\r\n" + END, headers=FORM)
    assert answer.json()["files"][0]["filename"] == "報.txt"


@pytest.mark.parametrize("name", ["..", "dir/", "back\\\\slash.txt", "x" * 256])
async def test_one_unusable_name_refuses_the_whole_request(site: FilesApp, name: str):
    answer = await site.client.post(URL, content=part("good.txt", b"x") + part(name, b"y") + END, headers=FORM)
    assert answer.status_code == 422 and "ame" in answer.json()["detail"]
    assert site.left_over() == []


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{}", {"content-type": "application/json"}, 422),
        (b"", {"content-type": "multipart/form-data"}, 422),
        (END, FORM, 422),
        (part("a", b"x")[:-2], FORM, 400),
        (part("a", b"x"), FORM, 400),
        (b"no boundary at all", FORM, 400),
        (b"", FORM, 400),
        (b'--%b\r\nContent-Disposition: form-data; name="files"\r\n\r\ntext\r\n' % BOUNDARY.encode() + END, FORM, 422),
        (part("a", b"x").replace(b'"files"', b'"other"') + END, FORM, 422),
    ],
)
async def test_a_broken_or_empty_form_is_refused_and_leaves_nothing(site: FilesApp, body: bytes, headers, status: int):
    answer = await site.client.post(URL, content=body, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.json()["detail"] and site.left_over() == []


@pytest.mark.parametrize("step", [1, 2, 3, 7, 64])
async def test_however_the_body_is_cut_into_pieces_the_files_are_the_same(site: FilesApp, step: int):
    tricky = f"\r\n--{BOUNDARY[:-1]}\r\n--".encode() * 3
    body = part("a.bin", tricky) + part("empty", b"") + part("b.bin", b"\r\n") + END

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), step):
            yield body[start : start + step]

    answer = await site.client.post(URL, content=pieces(), headers=FORM)
    assert answer.status_code == 200, answer.text
    uploads = site.paths.uploads("t1", "anna")
    assert [(uploads / file["filename"]).read_bytes() for file in answer.json()["files"]] == [tricky, b"", b"\r\n"]


@pytest.mark.parametrize(
    ("limits", "sizes", "cause", "values"),
    [
        ({"files": 2}, [1, 1, 1], "upload_too_many", {"count": 2}),
        ({"file_bytes": 1 << 20}, [10, 1 << 21], "file_too_large", {"name": "1.bin", "megabytes": 1, "total": 500}),
        ({"total_bytes": 1 << 20}, [600, 1 << 20], "file_too_large", {"name": "1.bin", "megabytes": 100, "total": 1}),
    ],
)
async def test_past_a_limit_nothing_is_kept_and_the_answer_names_the_limit(
    site: FilesApp, limits: dict[str, int], sizes: list[int], cause: str, values: dict[str, object]
):
    limit(site, **limits)
    files = [("files", (f"{n}.bin", b"x" * size)) for n, size in enumerate(sizes)]
    answer = await site.client.post(URL, files=files)
    refused = answer.json()
    assert (answer.status_code, refused["code"], refused["reason"]) == (413, "too_large", cause)
    assert refused["values"] == values and refused["detail"]
    assert site.left_over() == []


async def test_exactly_the_limit_is_taken(site: FilesApp):
    limit(site, files=2, file_bytes=600, total_bytes=1000)
    files = [("files", ("a", b"x" * 600)), ("files", ("b", b"x" * 400))]
    assert (await site.client.post(URL, files=files)).status_code == 200


async def test_what_is_announced_too_large_is_refused_before_it_is_read_and_the_client_learns_why(site: FilesApp):
    limit(site, total_bytes=1000)
    async with site.served() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            f"POST {URL} HTTP/1.1\r\nHost: x\r\nContent-Type: {FORM['content-type']}\r\n"
            f"Content-Length: {8 << 20}\r\nConnection: close\r\n\r\n".encode()
        )
        for _ in range(8):
            writer.write(b"x" * (1 << 20))
            await writer.drain()
        answer = await asyncio.wait_for(reader.read(), 60)
        writer.close()
    assert answer.startswith(b"HTTP/1.1 413 ") and b"too_large" in answer
    assert site.left_over() == []


async def test_a_file_is_on_disk_before_the_rest_of_it_has_come(site: FilesApp):
    await site.thread()
    incoming = site.paths.thread_dir("t1", "anna") / "incoming"
    behind: list[int] = []

    def on_disk() -> int:
        return sum(file.stat().st_size for file in incoming.iterdir())

    async def body() -> AsyncIterator[bytes]:
        yield part("big.bin", b"")[:-2]
        for sent in range(1, 25):
            yield b"x" * (1 << 20)
            behind.append((sent << 20) - await asyncio.to_thread(on_disk))
        yield b"\r\n" + END

    answer = await site.client.post(URL, content=body(), headers=FORM)
    assert answer.json()["files"][0]["size"] == 24 << 20
    assert max(behind[2:]) <= 2 << 20


async def test_a_client_that_goes_away_leaves_nothing_behind(site: FilesApp):
    await site.thread()
    incoming = site.paths.thread_dir("t1", "anna") / "incoming"
    async with site.served() as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        head = (
            f"POST {URL} HTTP/1.1\r\nHost: x\r\nContent-Type: {FORM['content-type']}\r\nContent-Length: 9000000\r\n\r\n"
        )
        writer.write(head.encode() + part("cut.bin", b"x" * (3 << 20)))
        await writer.drain()
        await until(lambda: any(file.stat().st_size for file in incoming.glob("*")))
        writer.transport.abort()
        await until(lambda: not site.left_over())


async def test_a_request_that_is_cancelled_leaves_nothing_behind(site: FilesApp):
    await site.thread()
    held = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield part("cut.bin", b"x" * (2 << 20))[:-2]
        held.set()
        await asyncio.Event().wait()

    request = asyncio.create_task(site.client.post(URL, content=body(), headers=FORM))
    await held.wait()
    request.cancel()
    await asyncio.wait([request])
    await until(lambda: not site.left_over())


async def test_a_full_disk_is_told_and_leaves_nothing(site: FilesApp, monkeypatch: pytest.MonkeyPatch):
    real = os.write

    def full(fd: int, data) -> int:
        if bytes(data[:4]) == b"last":
            raise OSError(errno.ENOSPC, "No space left on device", str(site.paths.base_dir))
        return real(fd, data)

    monkeypatch.setattr("deerflow.uploads.os.write", full)
    answer = await site.client.post(URL, files=[("files", ("a", b"first")), ("files", ("b", b"last"))])
    assert answer.status_code == 507 and answer.json()["code"] == "disk_full"
    assert str(site.paths.base_dir) not in answer.text and site.left_over() == []


async def test_a_thread_of_someone_else_does_not_exist(site: FilesApp):
    uploads = await site.thread("theirs", user="bert") / "uploads"
    (uploads / "secret.txt").write_text("secret")
    base = "/api/threads/theirs/uploads"
    for answer in (
        await site.client.post(base, files={"files": ("x", b"x")}),
        await site.client.get(f"{base}/list"),
        await site.client.delete(f"{base}/secret.txt"),
    ):
        assert answer.status_code == 404, answer.text
    assert [file.name for file in uploads.iterdir()] == ["secret.txt"]


async def test_an_id_that_cannot_be_one_is_refused(site: FilesApp):
    answer = await site.client.post("/api/threads/a.b/uploads", files={"files": ("x", b"x")})
    assert answer.status_code == 422


async def test_uploads_are_listed_and_deleted(site: FilesApp):
    await site.client.post(URL, files=[("files", ("b.tar.gz", b"22")), ("files", ("a", b"1"))])
    listed = (await site.client.get(f"{URL}/list")).json()
    assert [(file["filename"], file["size"], file["extension"]) for file in listed["files"]] == [
        ("a", 1, ""),
        ("b.tar.gz", 2, ".gz"),
    ]
    assert listed["count"] == 2
    assert (await site.client.delete(f"{URL}/a")).json()["success"] is True
    assert (await site.client.delete(f"{URL}/a")).status_code == 404
    assert site.left_over() == ["b.tar.gz"]


async def test_only_files_of_the_uploads_can_be_deleted(site: FilesApp):
    data = await site.thread()
    (data / "outputs" / "keep.txt").write_text("x")
    (data / "uploads" / "link").symlink_to(data / "outputs" / "keep.txt")
    (data / "uploads" / "dir").mkdir()
    for name in ("link", "dir", "..", "%2e%2e"):
        answer = await site.client.delete(f"{URL}/{name}")
        assert answer.status_code in (400, 404), (name, answer.text)
    assert (data / "outputs" / "keep.txt").exists() and (data / "uploads" / "dir").is_dir()


async def until(condition) -> None:
    async with asyncio.timeout(60):
        while not await asyncio.to_thread(condition):
            await asyncio.sleep(0.01)
