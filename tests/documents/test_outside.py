"""The process that people talk to takes no stranger's file apart itself."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.harness.community.conftest import HOST, Web
from tests.harness.community.conftest import web as web  # a fixture
from tests.skills.conftest import SkillRunner
from tests.skills.conftest import skill as runner  # noqa: F401 - a fixture

UPLOADS = "/mnt/user-data/uploads"
RUN = """
import asyncio, json, sys
from pathlib import Path
from deerflow.client import DeerFlowClient

async def main(config, home, documents):
    client = await asyncio.to_thread(lambda: DeerFlowClient(config=json.loads(config), base_dir=Path(home)))
    uploads = client.harness.paths.uploads("t", "default")
    await client.alist_threads()  # files of threads without a database are refused
    client.harness.paths.ensure_thread_dirs("t", "default")
    for name in ("plan.docx", "red.png"):
        (uploads / name).write_bytes((Path(documents) / name).read_bytes())
    await client.achat("Look at all of it.", thread_id="t")
    results = [m["content"] for m in (await client.athread_state("t"))["values"]["messages"] if m["type"] == "tool"]
    await client.aclose()
    bad = ("lxml", "PIL", "html_to_markdown", "cchardet", "docx", "openpyxl", "pypdfium2", "bs4",
           "deerflow.sandbox.converters.documents", "deerflow.sandbox.converters.pages")
    print(json.dumps({"results": results, "loaded": [name for name in bad if name in sys.modules]}))

asyncio.run(main(*sys.argv[1:]))
"""


async def test_after_a_page_a_picture_and_a_document_no_parser_is_loaded(
    runner: SkillRunner,  # noqa: F811
    documents: Path,
    web: Web,
    tmp_path: Path,
) -> None:
    url = web.put("/deer", "<title>Deer</title><p>Deer eat <b>grass</b>.</p><p hidden>SECRET</p>")
    home = tmp_path / "home"

    def files() -> None:
        home.mkdir()
        (home / "tools").symlink_to(runner.image.path().parent)

    await asyncio.to_thread(files)
    with ScriptedOpenAI() as endpoint:
        model = {"name": "m", "use": "langchain_openai:ChatOpenAI", "model": "m", "api_key": "k", "base_url": endpoint.base_url,
                 "supports_vision": True}  # fmt: skip
        config = {
            "models": [model],
            "sandbox": {"network": {"allow_nets": [f"{HOST}/32"]}},
            "title": {"enabled": False},
            "memory": {"enabled": False},
        }
        endpoint.script(
            ToolCalls(
                ("web_fetch", {"url": url}),
                ("view_image", {"image_path": f"{UPLOADS}/red.png"}),
                ("read_file", {"path": f"{UPLOADS}/plan.docx"}),
            ),
            Text("Seen."),
        )
        command = [sys.executable, "-c", RUN, json.dumps(config), str(home), str(documents)]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        said, _ = await process.communicate()
    answer = json.loads(said)
    page, picture, document = answer["results"]
    assert page.startswith("# Deer\n") and "Deer eat" in page and "SECRET" not in page
    assert picture.startswith("Successfully read image: 9 x 9 pixels") and "First, measure." in document
    assert answer["loaded"] == []
