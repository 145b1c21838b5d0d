"""The text of documents, taken from them in the real sandbox with the tool image."""

from __future__ import annotations

import asyncio

import pytest
from tests.documents.conftest import upload
from tests.harness.sandbox_tools.test_tools import Tools

from deerflow.context import RunContext
from deerflow.sandbox.converters import Converters, UnreadableError
from deerflow.sandbox.documents import markdown_of
from deerflow.sandbox.interface import WORKSPACE, Sandbox, SandboxFileError, SandboxFileNotFoundError


async def text_of(sandbox: Sandbox, converters: Converters, name: str) -> str:
    data, _ = await sandbox.read(await markdown_of(sandbox, upload(name), converters, "u"))
    return data.decode()


async def test_a_pdf_keeps_its_pages_and_its_bookmarks_are_headings(sandbox: Sandbox, converters: Converters) -> None:
    text = await text_of(sandbox, converters, "report.pdf")
    assert text.startswith("<!-- text of report.pdf -->\n\n<!-- page 1 of 3 -->\n\n# Harbours\n")
    assert "<!-- page 2 of 3 -->\n\n# Tides\nWater rises." in text
    assert text.rstrip().endswith("<!-- page 3 of 3 -->\n\nThe end.")
    assert "<!-- page 99" not in text, "a page forged a mark"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("plan.docx", ["# Plan", "First, measure.", "| cell |"]),
        ("deck.pptx", ["<!-- slide 1 of 2", "Start", "<!-- slide 2 of 2", "Goal"]),
        ("book.xlsx", ["## Sales", "| year | sum |", "| 2026 | 4711 |"]),
        (
            "mail.eml",
            [
                "**From:** a@example.org",
                "**Subject:** The figures",
                "# Hello",
                "**below**",
                "Attachments: sum.pdf (1 bytes)",
            ],
        ),
    ],
)
async def test_office_and_mail_become_markdown(
    sandbox: Sandbox, converters: Converters, name: str, says: list[str]
) -> None:
    text = await text_of(sandbox, converters, name)
    positions = [text.find(each) for each in says]
    assert -1 not in positions and positions == sorted(positions), text


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("locked.pdf", "locked.pdf needs its password. Ask for it, or for a copy without one."),
        ("broken.pdf", "broken.pdf is damaged"),
        ("odd.docx", "odd.docx is damaged"),
        ("bomb.docx", "bomb.docx unpacks to more than 512 MB."),
        ("large.docx", r"large.docx holds more than 40 MB of text in one part. Read parts of it with Python."),
        ("secret.docx", "secret.docx needs its password."),
        ("old.doc", "old.doc"),
    ],
)
async def test_what_cannot_be_read_says_why_and_leaves_nothing(
    sandbox: Sandbox, converters: Converters, name: str, says: str
) -> None:
    with pytest.raises(SandboxFileError, match=says):
        await markdown_of(sandbox, upload(name), converters, "u")
    assert await sandbox.stat(upload(f"{name}.md")) is None
    entries, _ = await sandbox.list(upload(""))
    assert not [entry.path for entry in entries if "/." in entry.path]


async def test_a_document_that_is_not_there_is_said_to_be_missing(sandbox: Sandbox, converters: Converters) -> None:
    with pytest.raises(SandboxFileNotFoundError):
        await markdown_of(sandbox, upload("none.pdf"), converters, "u")


async def test_text_is_made_once_and_again_when_the_document_has_changed(
    sandbox: Sandbox, converters: Converters
) -> None:
    paths = await asyncio.gather(*[markdown_of(sandbox, upload("report.pdf"), converters, "u") for _ in range(3)])
    assert set(paths) == {upload("report.pdf.md")}
    first = await sandbox.stat(paths[0])
    await sandbox.exec(f"cp {upload('scan.pdf')} {upload('report.pdf')}; touch -d '1 minute' {upload('report.pdf')}")
    await markdown_of(sandbox, upload("report.pdf"), converters, "u")
    assert first != await sandbox.stat(paths[0])
    assert "Harbours" not in await text_of(sandbox, converters, "report.pdf")


async def test_a_file_of_the_person_with_that_name_is_never_replaced(sandbox: Sandbox, converters: Converters) -> None:
    await sandbox.write(upload("plan.docx.md"), b"my notes")
    path = await markdown_of(sandbox, upload("plan.docx"), converters, "u")
    assert path.startswith("/tmp/documents/")
    assert (await sandbox.read(upload("plan.docx.md")))[0] == b"my notes"


async def test_the_agents_shell_is_not_disturbed(sandbox: Sandbox, converters: Converters) -> None:
    await sandbox.exec("cd /tmp; export WORD=kept")
    await markdown_of(sandbox, upload("plan.docx"), converters, "u")
    assert (await sandbox.exec("echo $PWD $WORD")).output.strip() == "/tmp kept"


async def test_read_file_shows_the_text_and_says_where_it_is(context: RunContext, sandbox: Sandbox) -> None:
    tools = Tools(context)
    text = await tools("read_file", path=upload("plan.docx"))
    assert "First, measure." in text and upload("plan.docx.md") in text
    assert "<!-- page 2 of 3 -->" in await tools("read_file", path=upload("report.pdf"), start_line=7, end_line=9)
    refused = await tools("read_file", path=upload("locked.pdf"))
    assert refused.startswith("Error:") and "needs its password" in refused and "pypdf" in refused


async def test_an_uploaded_page_is_read_as_a_page_of_the_web_without_what_a_person_would_not_see(
    context: RunContext, sandbox: Sandbox
) -> None:
    text = await Tools(context)("read_file", path=upload("page.html"))
    assert "Ten deer for sale" in text and "SECRET" not in text
    assert upload("page.html.md") in text and "for its HTML use bash" in text
    assert "SECRET" not in await Tools(context)("read_file", path=upload("page.html.md"))


async def test_a_page_that_the_agent_wrote_itself_is_read_as_it_is(context: RunContext, sandbox: Sandbox) -> None:
    await sandbox.write(f"{WORKSPACE}/page.html", b"<p hidden>mine</p>")
    assert "<p hidden>mine</p>" in await Tools(context)("read_file", path=f"{WORKSPACE}/page.html")


async def test_a_document_is_known_by_what_it_holds(context: RunContext, sandbox: Sandbox) -> None:
    for name, source in (("paper", "report.pdf"), ("plan.txt", "plan.docx")):
        await sandbox.exec(f"cp {upload(source)} {WORKSPACE}/{name}")
    tools = Tools(context)
    assert "Water rises." in await tools("read_file", path="paper")
    assert "First, measure." in await tools("read_file", path="plan.txt")


async def test_grep_finds_text_in_documents_wherever_they_are_and_gives_the_page(
    context: RunContext, sandbox: Sandbox
) -> None:
    await sandbox.exec(
        f"mkdir -p .web sub; cp {upload('report.pdf')} .web/; cp {upload('deck.pptx')} {upload('locked.pdf')} sub/"
    )
    tools = Tools(context)
    found = await tools("grep", path=WORKSPACE, pattern="water rises|goal")
    number = next(line for line in found.splitlines() if "Water" in line).split(":")[1]
    assert f".web/report.pdf:{number}: [page 2] Water rises." in found and "[slide 2] # Goal" in found
    assert "Not searched: " in found and "locked.pdf needs its password" in found
    assert f"{number}: Water rises." in await tools("read_file", path=".web/report.pdf", start_line=int(number))
    for options in ({"path": upload("report.pdf")}, {"path": upload("")[:-1], "glob": "*.pdf"}):
        found = await tools("grep", pattern="Water", **options)
        assert f"{upload('report.pdf')}:{number}: [page 2] Water rises." in found and ".md" not in found
    assert "[Sales] | 2026 | 4711 |" in await tools("grep", path="/mnt/user-data/uploads", pattern="4711", literal=True)


async def test_a_word_is_found_and_changed_in_any_encoding(context: RunContext, sandbox: Sandbox) -> None:
    await sandbox.write(f"{WORKSPACE}/sales.csv", "城市,销售额\n北京,1\n广州,2\n深圳,4\n".encode("gbk"))
    tools = Tools(context)
    assert "sales.csv:2: 北京,1" in await tools("grep", path=WORKSPACE, pattern="北京")
    assert (await tools("read_file", path="sales.csv")).endswith("4: 深圳,4\n[read as GB18030: str_replace keeps it]")
    assert (await tools("str_replace", path="sales.csv", old_str="广州,2", new_str="广州,3")).startswith("OK: ")
    data, _ = await sandbox.read(f"{WORKSPACE}/sales.csv")
    assert data.decode("gbk") == "城市,销售额\n北京,1\n广州,3\n深圳,4\n"


async def test_a_page_that_is_a_picture_can_be_looked_at(context: RunContext, sandbox: Sandbox) -> None:
    assert context.machine.converters is not None
    pdf, _ = await sandbox.read(upload("scan.pdf"))
    picture = await context.machine.converters.picture(pdf, "u", page=1)
    assert picture.mime_type == "image/jpeg" and picture.data.startswith(b"\xff\xd8\xff")
    for name, page, says in (("scan.pdf", 9, "has 2 pages"), ("locked.pdf", 1, "needs its password")):
        data, _ = await sandbox.read(upload(name))
        with pytest.raises(UnreadableError, match=says):
            await context.machine.converters.picture(data, "u", page=page)
