from __future__ import annotations

import asyncio
import io
import os
import shutil
import socket
import threading
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from tests.support.descriptors import open_below
from tests.support.files_app import FilesApp, files_app

from deerflow.files.artifacts import MAX_MEMBER_BYTES

URL = "/api/threads/t1/artifacts"
OUT = f"{URL}/mnt/user-data/outputs"


@pytest.fixture
async def site(tmp_path: Path, sqlite_template: Path) -> AsyncIterator[FilesApp]:
    database = await asyncio.to_thread(shutil.copy, sqlite_template, tmp_path / "deerflow.db")
    async with files_app(tmp_path / "home", Path(database)) as app:
        yield app


@pytest.fixture
async def outputs(site: FilesApp) -> Path:
    return await site.thread() / "outputs"


# what leads astray -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("etc/passwd", 400),
        ("mnt/skills/x", 400),
        ("mnt/user-data-2/x", 400),
        ("mnt/user-data", 400),
        ("mnt/user-data/outputs", 400),
        ("mnt/user-data/outputs/..%2f..%2f..%2fsecret", 403),
        ("mnt/user-data/..%2f..%2fetc/passwd", 403),
        ("mnt/user-data/secret", 403),
        ("mnt/user-data/outputs/nul%00", 400),
        ("mnt/user-data/outputs/none", 404),
        ("mnt/user-data/outputs/file.txt/below", 404),
        ("mnt/user-data/outputs/" + "x" * 300, 400),
        ("mnt/user-data/outputs/" + "d/" * 3000, 400),
    ],
)
async def test_no_path_leads_out_and_no_answer_names_the_host(site: FilesApp, outputs: Path, path: str, status: int):
    (outputs / "file.txt").write_text("x")
    (site.paths.base_dir / "secret").write_text("secret")
    answer = await site.client.get(f"{URL}/{path}")
    assert answer.status_code == status, answer.text
    assert answer.json()["detail"] and str(site.paths.base_dir) not in answer.text


@pytest.mark.parametrize("thread_id", ["artifacts", "threads", "runs", "search", "api"])
async def test_threads_may_be_called_like_parts_of_an_address(site: FilesApp, thread_id: str):
    (await site.thread(thread_id) / "outputs" / "artifacts").write_text("kept")
    found = await site.client.get(f"/api/threads/{thread_id}/artifacts/mnt/user-data/outputs/artifacts")
    assert (found.status_code, found.text) == (200, "kept")


async def test_links_lead_only_where_the_sandbox_itself_could_go(site: FilesApp, outputs: Path):
    (site.paths.base_dir / "secret").write_text("secret")
    (outputs.parent / "workspace" / "plan.txt").write_text("plan")
    links = {
        "host": site.paths.base_dir / "secret",
        "relative": "../../../../../../secret",
        "passwd": "/etc/passwd",
        "proc": "/proc/self/environ",
        "loop": "loop",
        "inside": "/mnt/user-data/workspace/plan.txt",
    }
    for name, target in links.items():
        (outputs / name).symlink_to(target)
    (outputs / "dir").symlink_to("/etc")
    answers = {name: await site.client.get(f"{OUT}/{name}") for name in [*links, "dir/passwd"]}
    assert answers.pop("inside").text == "plan"
    assert answers.pop("loop").status_code == 400
    assert {answer.status_code for answer in answers.values()} <= {403, 404}
    assert "secret" not in "".join(answer.text for answer in answers.values())


async def test_a_link_that_takes_the_place_of_a_directory_at_any_moment_never_shows_a_foreign_file(
    site: FilesApp, outputs: Path
):
    (outputs / "dir").mkdir()
    (outputs / "dir" / "secret").write_text("mine")
    foreign = site.paths.base_dir / "foreign"
    foreign.mkdir()
    (foreign / "secret").write_text("foreign")
    (outputs / "link").symlink_to(foreign)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for one, other in (("dir", "spare"), ("link", "dir"), ("dir", "link"), ("spare", "dir")):
                os.rename(outputs / one, outputs / other)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        seen = {(await site.client.get(f"{OUT}/dir/secret")).text[:7] for _ in range(150)}
    finally:
        stop.set()
        await asyncio.to_thread(swapping.join)
    assert "foreign" not in seen


async def test_what_is_no_regular_file_is_refused_and_hangs_nobody(site: FilesApp, outputs: Path):
    os.mkfifo(outputs / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        try:
            os.chdir(outputs)  # a socket's path may have 107 bytes only
            listener.bind("socket")
        finally:
            os.chdir(here)
        (outputs / "device").symlink_to("/dev/zero")
        async with asyncio.timeout(60):
            answers = [await site.client.get(f"{OUT}/{name}") for name in ("fifo", "socket", "device")]
    assert [answer.status_code for answer in answers] == [400, 400, 403]


async def test_threads_of_others_and_threads_that_are_not_look_the_same(site: FilesApp, outputs: Path):
    (outputs / "a.txt").write_text("secret")
    for method, url in [
        ("GET", f"{OUT}/a.txt"),
        ("HEAD", f"{OUT}/a.txt"),
        ("PUT", f"{OUT}/a.txt"),
        ("GET", URL),
        ("GET", f"{URL}.zip"),
    ]:
        headers = {"x-user": "bert", "if-match": "*"}
        foreign = await site.client.request(method, url, headers=headers)
        missing = await site.client.request(method, url.replace("t1", "t2"), headers=headers)
        assert foreign.status_code == missing.status_code == 404
        assert foreign.text.replace("t1", "t2") == missing.text


# what a browser is told ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "kind", "disposition"),
    [
        ("report.md", "# Über".encode(), "text/markdown; charset=utf-8", "inline"),
        ("data.csv", "größe".encode("latin-1"), "text/csv; charset=windows-1252", "inline"),
        ("run.bat", "echo größer".encode("cp1252"), "text/plain; charset=windows-1252", "inline"),
        ("LISEZ-MOI", "Déjà vu à l’été".encode("cp1252"), "text/plain; charset=windows-1252", "inline"),
        ("noise.bin", bytes(range(1, 256)) * 4, "application/octet-stream", "attachment"),
        ("wide.txt", "größe".encode("utf-16"), "text/plain; charset=utf-16", "inline"),
        ("page.html", b"<script>x</script>", "text/html; charset=utf-8", "attachment"),
        ("PAGE.HTM", b"<p>", "text/html; charset=utf-8", "attachment"),
        ("x.xhtml", b"<html/>", "application/xhtml+xml", "attachment"),
        ("x.svg", b"<svg/>", "image/svg+xml", "attachment"),
        ("x.xml", b"<x/>", "text/xml; charset=utf-8", "attachment"),
        ("app.js", b"alert(1)", "text/plain; charset=utf-8", "inline"),
        ("style.css", b"*{}", "text/plain; charset=utf-8", "inline"),
        ("chart.png", b"\x89PNG", "image/png", "inline"),
        ("doc.pdf", b"%PDF", "application/pdf", "inline"),
        ("Makefile", b"all:\n", "text/plain; charset=utf-8", "inline"),
        ("core", b"\x7fELF\0", "application/octet-stream", "attachment"),
        ("page.html.weird", b"<script>x</script>", "text/plain; charset=utf-8", "inline"),
        ("empty", b"", "application/octet-stream", "attachment"),
    ],
)
async def test_content_is_named_for_what_it_is_and_nothing_active_is_shown(
    site: FilesApp, outputs: Path, name: str, content: bytes, kind: str, disposition: str
):
    (outputs / name).write_bytes(content)
    answer = await site.client.get(f"{OUT}/{name}")
    assert (answer.content, answer.headers["content-type"]) == (content, kind)
    assert answer.headers["content-disposition"].startswith(disposition + ";")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert ("sandbox" in answer.headers.get("content-security-policy", "")) == (name != "doc.pdf")
    forced = await site.client.get(f"{OUT}/{name}?download=true")
    assert forced.headers["content-disposition"].startswith("attachment;")


@pytest.mark.parametrize(
    "name",
    [
        "new\nline.txt",
        'quo"te.txt',
        "報告 1.txt",
        "semi;colon=.txt",
        "per%cent.txt",
        "#?&+.txt",
        "back\\slash.txt",
        "~é.txt",
    ],
)
async def test_any_name_can_be_listed_read_and_saved(site: FilesApp, outputs: Path, name: str):
    (outputs / name).write_text("content")
    listed = (await site.client.get(URL)).json()["artifacts"][0]
    answer = await site.client.get(listed["artifact_url"] + "?download=1")
    assert answer.text == "content"
    saved = answer.headers["content-disposition"].rsplit("filename*=UTF-8''", 1)[1]
    shown = name.replace("\n", "_").replace('"', "_").replace("\\", "_")
    assert unquote(saved) == shown and "\n" not in answer.headers["content-disposition"]


async def test_a_name_that_is_not_utf8_can_be_listed_and_read(site: FilesApp, outputs: Path):
    (outputs / os.fsdecode(b"caf\xe9\xff.txt")).write_text("content")
    answer = await site.client.get(URL)
    listed = answer.json()["artifacts"][0]
    assert listed["filename"] == "caf\\xe9\\xff.txt"
    assert listed["artifact_url"].endswith("/caf%E9%FF.txt")
    assert (await site.client.get(listed["artifact_url"])).text == "content"


async def test_a_name_cannot_pretend_another_extension(site: FilesApp, outputs: Path):
    (outputs / "invoice\u202efdp.exe").write_text("x")
    listed = (await site.client.get(URL)).json()["artifacts"][0]
    answer = await site.client.get(listed["artifact_url"])
    assert "\u202e" not in listed["filename"] and "%E2%80%AE" not in answer.headers["content-disposition"]


# parts and copies ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "status", "content", "content_range"),
    [
        ("bytes=0-3", 206, b"0123", "bytes 0-3/10"),
        ("bytes=8-", 206, b"89", "bytes 8-9/10"),
        ("bytes=-3", 206, b"789", "bytes 7-9/10"),
        ("bytes=-99", 206, b"0123456789", "bytes 0-9/10"),
        ("bytes=5-999999999999999999", 206, b"56789", "bytes 5-9/10"),
        ("bytes=10-", 416, None, "bytes */10"),
        ("bytes=-0", 416, None, "bytes */10"),
        ("bytes=5-4", 200, b"0123456789", None),
        ("bytes=0-1,3-4", 200, b"0123456789", None),
        ("bytes=", 200, b"0123456789", None),
        ("bytes=a-b", 200, b"0123456789", None),
        ("lines=1-2", 200, b"0123456789", None),
        ("bytes=" + "9" * 5000 + "-", 200, b"0123456789", None),
    ],
)
async def test_parts_are_sent_as_asked(site: FilesApp, outputs: Path, header, status, content, content_range):
    (outputs / "digits.txt").write_text("0123456789")
    answer = await site.client.get(f"{OUT}/digits.txt", headers={"range": header})
    assert (answer.status_code, answer.headers.get("content-range")) == (status, content_range)
    if content is not None:
        assert answer.content == content and answer.headers["content-length"] == str(len(content))
    head = await site.client.head(f"{OUT}/digits.txt", headers={"range": header})
    assert (head.status_code, head.headers["content-length"], head.content) == (200, "10", b"")


async def test_a_part_of_a_file_that_has_changed_is_not_sent(site: FilesApp, outputs: Path):
    (outputs / "a.txt").write_text("0123456789")
    first = await site.client.get(f"{OUT}/a.txt")
    for validator in (first.headers["etag"], first.headers["last-modified"]):
        answer = await site.client.get(f"{OUT}/a.txt", headers={"range": "bytes=0-0", "if-range": validator})
        assert answer.status_code == 206
    (outputs / "a.txt").write_text("changed")
    os.utime(outputs / "a.txt", (1, 1))
    for validator in (first.headers["etag"], first.headers["last-modified"]):
        answer = await site.client.get(f"{OUT}/a.txt", headers={"range": "bytes=0-0", "if-range": validator})
        assert (answer.status_code, answer.text) == (200, "changed")


async def test_what_the_client_has_is_not_sent_again(site: FilesApp, outputs: Path):
    (outputs / "a.txt").write_text("content")
    first = await site.client.get(f"{OUT}/a.txt")
    etag, modified = first.headers["etag"], first.headers["last-modified"]
    fresh = [
        {"if-none-match": etag},
        {"if-none-match": f'"other", W/{etag}'},
        {"if-none-match": "*"},
        {"if-modified-since": modified},
    ]
    for headers in fresh:
        answer = await site.client.get(f"{OUT}/a.txt", headers=headers)
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", etag), headers
    stale = [
        {"if-none-match": '"other"'},
        {"if-none-match": '"other"', "if-modified-since": modified},
        {"if-modified-since": "Thu, 01 Jan 1970 00:00:00 GMT"},
        {"if-modified-since": "nonsense"},
    ]
    for headers in stale:
        assert (await site.client.get(f"{OUT}/a.txt", headers=headers)).text == "content", headers


async def test_the_end_of_a_huge_sparse_file_comes_at_once(site: FilesApp, outputs: Path):
    with open(outputs / "huge.bin", "wb") as file:
        file.truncate(1 << 40)
        file.seek((1 << 40) - 3)
        file.write(b"end")
    answer = await site.client.get(f"{OUT}/huge.bin", headers={"range": "bytes=-3"})
    assert answer.content == b"end"
    head = await site.client.head(f"{OUT}/huge.bin")
    assert head.headers["content-length"] == str(1 << 40)


# files that change while they are read ---------------------------------------------------------------------------------


async def test_a_file_that_grows_is_sent_as_long_as_it_was_and_one_that_shrinks_breaks_the_connection(
    site: FilesApp, outputs: Path
):
    size = 64 << 20
    for name in ("grows", "shrinks"):
        with open(outputs / name, "wb") as file:
            file.truncate(size)
    async with site.served() as port:
        for name, change in (("grows", size * 2), ("shrinks", 1000)):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"GET {OUT}/{name} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            assert f"content-length: {size}".encode() in head.lower()
            os.truncate(outputs / name, change)
            received = 0
            while chunk := await asyncio.wait_for(reader.read(1 << 20), 60):
                received += len(chunk)
            writer.close()
            assert (received == size) if name == "grows" else (received < size)


async def test_the_file_that_was_opened_is_sent_even_if_its_name_is_given_to_another(site: FilesApp, outputs: Path):
    (outputs / "a.bin").write_bytes(b"a" * (8 << 20))
    (outputs / "b.bin").write_bytes(b"b" * (8 << 20))
    async with site.served() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {OUT}/a.bin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        os.replace(outputs / "b.bin", outputs / "a.bin")
        assert await asyncio.wait_for(reader.read(), 60) == b"a" * (8 << 20)
        writer.close()


async def test_clients_that_go_away_leave_no_file_open(site: FilesApp, outputs: Path):
    with open(outputs / "huge.bin", "wb") as file:
        file.truncate(1 << 36)
    async with site.served() as port:
        for url in (f"{OUT}/huge.bin", f"{URL}.zip"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"GET {url} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
            writer.transport.abort()
        async with asyncio.timeout(60):
            while await asyncio.to_thread(open_below, outputs / "huge.bin"):
                await asyncio.sleep(0.01)


# lists and archives ----------------------------------------------------------------------------------------------------


async def test_outputs_are_listed_with_sizes_and_times(site: FilesApp, outputs: Path):
    assert (await site.client.get(URL)).json() == {"artifacts": [], "truncated": False}
    (outputs / "sub").mkdir()
    (outputs / "sub" / "b.csv").write_text("x")
    (outputs / "a.md").write_text("# A")
    os.utime(outputs / "a.md", (0, 0))
    (outputs / "link").symlink_to("/etc/passwd")
    os.mkfifo(outputs / "fifo")
    listed = (await site.client.get(URL)).json()["artifacts"]
    assert [entry["path"].removeprefix("/mnt/user-data/outputs/") for entry in listed] == ["a.md", "sub/b.csv"]
    assert listed[0] == {
        "path": "/mnt/user-data/outputs/a.md",
        "filename": "a.md",
        "size": 3,
        "modified": "1970-01-01T00:00:00Z",
        "mime_type": "text/markdown",
        "artifact_url": f"{OUT}/a.md",
    }


async def test_a_thread_that_never_ran_has_no_artifacts(site: FilesApp):
    from deerflow.identity import Principal

    await site.threads.create(Principal("anna"), "t1")
    assert (await site.client.get(URL)).json()["artifacts"] == []
    assert zipfile.ZipFile(io.BytesIO((await site.client.get(f"{URL}.zip")).content)).namelist() == []


async def test_the_archive_holds_all_files_and_no_link(site: FilesApp, outputs: Path):
    (outputs / "sub").mkdir()
    contents = {"a.md": b"# A", "sub/b.bin": os.urandom(3 << 20), "空.txt": b"", "old": b"x"}
    for name, content in contents.items():
        (outputs / name).write_bytes(content)
    os.utime(outputs / "old", (0, 0))
    (outputs / "link").symlink_to("/etc/passwd")
    os.mkfifo(outputs / "fifo")
    (outputs / "..\\evil").write_bytes(b"e")
    (outputs / os.fsdecode(b"\xff")).write_bytes(b"1")
    (outputs / os.fsdecode(b"\xfe")).write_bytes(b"2")
    answer = await site.client.get(f"{URL}.zip")
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    assert archive.testzip() is None
    assert {name: archive.read(name) for name in contents} == contents
    assert set(archive.namelist()) - contents.keys() == {".._evil", "\ufffd", "\ufffd (2)"}
    assert answer.headers["content-disposition"].startswith("attachment;")


# archives that the agent made ------------------------------------------------------------------------------------------


def skill(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


async def test_members_of_a_skill_are_read_by_their_path_or_the_end_of_it(site: FilesApp, outputs: Path):
    skill(outputs / "chart.skill", {"chart/SKILL.md": b"# Chart", "chart/run.html": b"<script>"})
    for member in ("chart/SKILL.md", "SKILL.md"):
        answer = await site.client.get(f"{OUT}/chart.skill/{member}")
        assert (answer.text, answer.headers["content-type"]) == ("# Chart", "text/markdown; charset=utf-8")
        assert answer.headers["cache-control"] == "private, max-age=300"
    page = await site.client.get(f"{OUT}/chart.skill/run.html")
    assert page.headers["content-disposition"].startswith("attachment;")
    for missing in ("none.md", "chart/", "../a"):
        assert (await site.client.get(f"{OUT}/chart.skill/{missing}")).status_code == 404
    assert (await site.client.get(f"{OUT}/chart.skill")).headers["content-type"] == "application/zip"


async def test_a_directory_called_like_a_skill_is_a_directory(site: FilesApp, outputs: Path):
    (outputs / "x.skill").mkdir()
    (outputs / "x.skill" / "SKILL.md").write_text("plain")
    assert (await site.client.get(f"{OUT}/x.skill/SKILL.md")).text == "plain"


async def test_archives_made_to_hurt_are_refused(site: FilesApp, outputs: Path):
    skill(outputs / "bomb.skill", {"SKILL.md": b"\0" * (MAX_MEMBER_BYTES + 1)})
    skill(outputs / "lzma.skill", {"SKILL.md": b"x"}, zipfile.ZIP_LZMA)
    skill(outputs / "many.skill", {f"{n:01500}": b"" for n in range(3000)})
    (outputs / "text.skill").write_text("no archive")
    (outputs / "empty.skill").write_bytes(b"")
    skill(outputs / "cut.skill", {"SKILL.md": os.urandom(10_000)})
    whole = (outputs / "cut.skill").read_bytes()
    (outputs / "cut.skill").write_bytes(whole[:5000] + b"\xff" * 500 + whole[5500:])
    (outputs / "tail.skill").write_bytes(whole[-30:])
    (outputs / "link.skill").symlink_to("/etc/passwd")
    answers = {
        name: (await site.client.get(f"{OUT}/{name}.skill/SKILL.md")).status_code
        for name in ("bomb", "lzma", "many", "text", "empty", "cut", "tail", "link")
    }
    assert answers == {
        "bomb": 413,
        "lzma": 400,
        "many": 413,
        "text": 400,
        "empty": 400,
        "cut": 400,
        "tail": 400,
        "link": 403,
    }


# edits -----------------------------------------------------------------------------------------------------------------


async def test_a_text_is_edited_if_it_is_still_what_was_read(site: FilesApp, outputs: Path):
    (outputs / "a.md").write_text("first")
    etag = (await site.client.get(f"{OUT}/a.md")).headers["etag"]
    edited = await site.client.put(f"{OUT}/a.md", content=b"zweite", headers={"if-match": etag})
    assert edited.status_code == 200, edited.text
    assert (outputs / "a.md").read_text() == "zweite"
    assert edited.json()["etag"] == edited.headers["etag"] != etag
    assert (edited.json()["path"], edited.json()["size"]) == ("/mnt/user-data/outputs/a.md", 6)
    again = await site.client.put(f"{OUT}/a.md", content=b"third", headers={"if-match": etag})
    assert (again.status_code, again.json()["code"]) == (412, "precondition_failed")
    assert (outputs / "a.md").read_text() == "zweite"
    last = await site.client.put(f"{OUT}/a.md", content=b"third", headers={"if-match": edited.headers["etag"]})
    assert last.status_code == 200


async def test_of_many_edits_at_once_one_wins_and_the_others_learn_it(site: FilesApp, outputs: Path):
    (outputs / "a.md").write_text("first")
    etag = (await site.client.get(f"{OUT}/a.md")).headers["etag"]

    async def edit(number: int) -> int:
        answer = await site.client.put(f"{OUT}/a.md", content=str(number), headers={"if-match": etag})
        return answer.status_code

    statuses = await asyncio.gather(*map(edit, range(10)))
    assert statuses.count(200) == 1 and set(statuses) <= {200, 409, 412}
    assert (outputs / "a.md").read_text() == str(statuses.index(200))


async def test_edits_that_cannot_be_made_change_nothing(site: FilesApp, outputs: Path):
    (outputs / "a.md").write_text("first")
    (outputs / "dir").mkdir()
    (outputs / "link").symlink_to(site.paths.base_dir / "victim")
    (site.paths.base_dir / "victim").write_text("safe")
    cases = {
        "a.md": (b"x", {}, 428),
        "b.md": (b"x", {"if-match": "*"}, 404),
        "dir": (b"x", {"if-match": "*"}, 400),
        "link": (b"x", {"if-match": "*"}, 403),
        "./a.md": (b"\xff\xfe", {"if-match": "*"}, 422),
        "dir/../a.md": (b"x" * ((5 << 20) + 1), {"if-match": "*"}, 413),
    }
    for name, (content, headers, status) in cases.items():
        url = f"{OUT}/{name}".replace("/./", "/%2e/").replace("/../", "/%2e%2e/")
        answer = await site.client.put(url, content=content, headers=headers)
        assert answer.status_code == status, (name, answer.text)
    assert (outputs / "a.md").read_text() == "first" and (site.paths.base_dir / "victim").read_text() == "safe"
    assert sorted(path.name for path in outputs.iterdir()) == ["a.md", "dir", "link"]
