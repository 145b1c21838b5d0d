"""The sandbox tools on a real sandbox, called as LangGraph calls them."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.messages import AIMessage
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime

from deerflow.config import AppConfig, Paths
from deerflow.context import RunContext
from deerflow.context.machine import Machine
from deerflow.context.workspace import Workspace
from deerflow.sandbox.auto import AutoSandboxProvider
from deerflow.sandbox.interface import SandboxProvider
from deerflow.sandbox.local import LocalSandboxProvider
from deerflow.sandbox.policy import thread_policy
from deerflow.sandbox.tools import SANDBOX_TOOLS
from deerflow.tools.files import present_file_tool
from deerflow.tools.shell import SAID_OF, bash_tool, cut_middle, cut_short, cut_tail, result_path

W, OUT = "/mnt/user-data/workspace", "/mnt/user-data/outputs"


class Tools:
    """Calls tools by name and gives back what the model would read."""

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self.node = ToolNode([*SANDBOX_TOOLS, present_file_tool])
        self.live: list[Any] = []

    async def __call__(self, name: str, **arguments: Any) -> str:
        call = {"name": name, "args": arguments, "id": "c1", "type": "tool_call"}
        runtime = Runtime(context=self.context, stream_writer=self.live.append)
        state = {"messages": [AIMessage("", tool_calls=[call])]}
        result = await self.node.ainvoke(state, {"configurable": {"__pregel_runtime": runtime}})
        message = result["messages"][-1]
        said = message.artifact.get(SAID_OF) if isinstance(message.artifact, dict) else None
        return f"{message.content}\n{said}" if said else message.content

    async def raw(self, name: str, **arguments: Any) -> Any:
        """The command that a tool returns instead of a message."""
        call = {"name": name, "args": arguments, "id": "c1", "type": "tool_call"}
        runtime = Runtime(context=self.context, stream_writer=self.live.append)
        state = {"messages": [AIMessage("", tool_calls=[call])]}
        [result] = await self.node.ainvoke(state, {"configurable": {"__pregel_runtime": runtime}})
        return result


@pytest.fixture(scope="module", params=["auto", "local"])
def provider(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SandboxProvider, Path]]:
    """One provider for all tests: each test has a thread, and so a sandbox, of its own."""
    base = tmp_path_factory.mktemp("data")
    made = LocalSandboxProvider(allow_host_bash=True) if request.param == "local" else AutoSandboxProvider(base)
    yield made, base
    asyncio.run(made.shutdown())


@pytest.fixture
def tools(provider: tuple[SandboxProvider, Path]) -> Tools:
    made, base = provider
    config = AppConfig.model_validate({"sandbox": {"command_timeout": 20, "allow_host_bash": True}})
    paths, thread = Paths(base), f"t{uuid4().hex}"
    paths.ensure_thread_dirs(thread, "default")
    workspace = Workspace(
        *(make(thread, "default") for make in (paths.thread_dir, paths.workspace, paths.uploads, paths.outputs))
    )
    policy = thread_policy(config, paths, thread, "default")
    machine = Machine(workspace=workspace, provider=made, policy=policy)
    return Tools(RunContext(thread, config=config, machine=machine))


# bash ---------------------------------------------------------------------------------------------------------------


async def test_bash_gives_output_exit_code_and_nothing_else(tools: Tools):
    assert await tools("bash", command="echo hi") == "hi"
    assert await tools("bash", command="true") == "(no output)"
    assert await tools("bash", command="echo out; echo err >&2; exit 3") in (
        "out\nerr\nExit Code: 3",
        "err\nout\nExit Code: 3",
    )


async def test_bash_keeps_its_directory_between_calls(tools: Tools):
    await tools("bash", command="mkdir -p sub && cd sub")
    assert (await tools("bash", command="pwd")).endswith("/sub")


async def test_bash_stops_a_command_that_takes_too_long_and_says_what_to_do(tools: Tools):
    answer = await tools("bash", command="echo begun; sleep 60", timeout=1)
    assert "begun" in answer and "stopped after 1 seconds" in answer and "run_in_background" in answer


async def test_a_name_that_is_not_resolved_without_a_network_names_the_setting(tools: Tools):
    python = "python3 -c \"import socket; socket.getaddrinfo('packages.invalid', 443)\""
    isolated = (await tools.context.sandbox()).isolation.network == "none"
    for command in (f"{python} | tail -1", f"{python} 2>&1 | tail -1", "echo 'npm error code ENOTFOUND'"):
        answer = await tools("bash", command=command)
        assert answer.count("sandbox.network in config.yaml") == isolated, answer
    assert "sandbox.network" not in await tools("bash", command="echo fine; false")


async def test_bash_output_that_is_not_utf8_arrives(tools: Tools):
    assert "a\ufffdb" in await tools("bash", command=r"printf 'a\xffb'")


async def test_bash_output_without_end_is_stopped(tools: Tools):
    answer = await tools("bash", command="yes deerflow")
    assert "printed without end" in answer and len(answer) <= 20_200


async def test_bash_shows_output_while_it_runs(tools: Tools):
    await tools("bash", command="echo one; sleep 0.3; echo two")
    text = "".join(event["text"] for event in tools.live if event["type"] == "tool_output")
    assert "one" in text and "two" in text and tools.live[0]["tool_call_id"] == "c1"


async def test_a_background_process_is_read_and_killed(tools: Tools):
    started = await tools("bash", command="echo ready; sleep 100", run_in_background=True)
    found = re.search(r"Started process (\S+)\.", started)
    assert found
    process = found.group(1)
    await tools("bash", command="sleep 0.3")
    answer = await tools("read_process", process_id=process)
    assert "running" in answer and "ready" in answer
    assert "ended" in await tools("kill_process", process_id=process)
    assert "ended" in await tools("read_process", process_id=process)


async def test_an_unknown_process_is_named_with_those_that_exist(tools: Tools):
    assert re.match(r"Error: .*nothing.*Processes: none", await tools("read_process", process_id="nothing"))


# files --------------------------------------------------------------------------------------------------------------


async def test_what_is_written_is_read_back_and_seen_by_commands(tools: Tools):
    text = "Zeile 1\n報告 😀\nlast"
    written = await tools("write_file", path=f"{W}/a/b/c.txt", content=text)
    assert written == f"OK: 3 lines written, {len(text.encode())} bytes"
    assert await tools("read_file", path=f"{W}/a/b/c.txt") == "1: Zeile 1\n2: 報告 😀\n3: last"
    assert await tools("bash", command=f"cat {W}/a/b/c.txt") == text


async def test_paths_in_contents_are_left_alone(tools: Tools):
    text = f"see {W}/x and https://example.org/mnt/skills/a/../b"
    await tools("write_file", path=f"{W}/t.txt", content=text)
    assert tools.context.machine.workspace is not None
    assert await asyncio.to_thread((tools.context.machine.workspace.workspace / "t.txt").read_text) == text


async def test_appending_adds_to_the_end(tools: Tools):
    await tools("write_file", path=f"{W}/log", content="1\n")
    await tools("write_file", path=f"{W}/log", content="2\n", append=True)
    assert await tools("read_file", path=f"{W}/log") == "1: 1\n2: 2"


async def test_a_range_of_lines_is_read_with_either_bound(tools: Tools):
    await tools("write_file", path=f"{W}/n", content="".join(f"{n}\n" for n in range(1, 11)))
    assert await tools("read_file", path=f"{W}/n", start_line=9) == "9: 9\n10: 10"
    assert await tools("read_file", path=f"{W}/n", end_line=2) == "1: 1\n2: 2"
    assert await tools("read_file", path=f"{W}/n", start_line=3, end_line=3) == "3: 3"
    assert "beyond the end" in await tools("read_file", path=f"{W}/n", start_line=99)


async def test_an_empty_file_says_so(tools: Tools):
    await tools("write_file", path=f"{W}/e", content="")
    assert await tools("read_file", path=f"{W}/e") == "(empty)"


async def test_a_binary_file_is_refused_with_a_way_on(tools: Tools):
    await tools("bash", command=r"printf '\x89PNG\0\0\1' > img.png")
    assert (
        await tools("read_file", path=f"{W}/img.png")
        == f"Error: {W}/img.png is a binary file (7 bytes). Use bash with a suitable program to inspect it."
    )


async def test_old_encodings_are_read_and_kept(tools: Tools):
    await tools("bash", command=r"printf 'Stra\xdfe and more text\n' > latin.txt")
    assert "Stra" in await tools("read_file", path=f"{W}/latin.txt")
    assert (await tools("str_replace", path=f"{W}/latin.txt", old_str="more", new_str="less")).startswith("OK: ")
    assert "53 74 72 61 df 65" in await tools("bash", command="od -An -tx1 latin.txt | tr -s ' \\n' ' '")


async def test_long_files_are_cut_with_a_hint(tools: Tools):
    await tools("write_file", path=f"{W}/long", content="x" * 100_000)
    answer = await tools("read_file", path=f"{W}/long")
    assert len(answer) <= 50_000 and "start_line" in answer[-200:]


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/mnt/user-data/../../etc/passwd", f"{W}/../../../etc/passwd", "../../relative.txt", ""]
)
async def test_paths_outside_are_refused(tools: Tools, path: str):
    for name, more in (
        ("read_file", {}),
        ("write_file", {"content": "x"}),
        ("str_replace", {"old_str": "root", "new_str": "x"}),
        ("ls", {}),
    ):
        answer = await tools(name, path=path, **more)
        assert answer.startswith("Error: "), (name, answer)
        assert "root:x" not in answer


async def test_a_link_that_leads_outside_shows_nothing(tools: Tools):
    await tools("bash", command="ln -s /etc/passwd link; ln -s / rootlink")
    for path in (f"{W}/link", f"{W}/rootlink/etc/passwd"):
        answer = await tools("read_file", path=path)
        assert answer.startswith("Error: ") and "root:" not in answer


async def test_missing_things_are_named(tools: Tools):
    assert await tools("read_file", path=f"{W}/nothing") == f"Error: File not found: {W}/nothing"
    assert await tools("ls", path=f"{W}/nothing") == f"Error: Directory not found: {W}/nothing"
    assert "is a directory" in await tools("read_file", path=W)
    assert await tools("glob", path=f"{W}/x", pattern="*") == f"Error: Directory not found: {W}/x"


async def test_ls_shows_two_levels(tools: Tools):
    await tools("bash", command="mkdir -p d/e/f && touch top d/one d/e/two")
    assert (await tools("ls", path=W)).splitlines() == [f"{W}/d/", f"{W}/d/e/", f"{W}/d/one", f"{W}/top"]
    assert await tools("ls", path=OUT) == "(empty)"


# str_replace and staleness ------------------------------------------------------------------------------------------


async def test_an_ambiguous_replacement_is_refused_and_changes_nothing(tools: Tools):
    await tools("write_file", path=f"{W}/f", content="a b a")
    answer = await tools("str_replace", path=f"{W}/f", old_str="a", new_str="X")
    assert answer.startswith("Error: old_str occurs 2 times") and await tools("read_file", path=f"{W}/f") == "1: a b a"
    assert (await tools("str_replace", path=f"{W}/f", old_str="a", new_str="X", replace_all=True)).startswith("OK: ")
    assert await tools("read_file", path=f"{W}/f") == "1: X b X"


async def test_a_replacement_that_finds_nothing_says_so(tools: Tools):
    await tools("write_file", path=f"{W}/f", content="abc")
    assert "String to replace not found in file" in await tools(
        "str_replace", path=f"{W}/f", old_str="zzz", new_str="X"
    )
    assert "old_str is empty" in await tools("str_replace", path=f"{W}/f", old_str="", new_str="X")


async def test_a_file_that_changed_since_it_was_read_is_not_overwritten(tools: Tools):
    await tools("write_file", path=f"{W}/f", content="mine")
    await tools("bash", command="sleep 0.05; echo theirs >> f")
    for name, more in (("write_file", {"content": "new"}), ("str_replace", {"old_str": "mine", "new_str": "new"})):
        answer = await tools(name, path=f"{W}/f", **more)
        assert answer.startswith("Error: ") and "changed since you last read it" in answer
    assert await tools("bash", command="cat f") == "minetheirs"
    await tools("read_file", path=f"{W}/f")
    assert (await tools("write_file", path=f"{W}/f", content="new")).startswith("OK: ")


async def test_parallel_changes_of_one_file_all_survive(tools: Tools):
    await tools("write_file", path=f"{W}/f", content="".join(f"line{n};" for n in range(8)))
    answers = await asyncio.gather(
        *(tools("str_replace", path=f"{W}/f", old_str=f"line{n};", new_str=f"done{n};") for n in range(8))
    )
    assert [answer.partition(":")[0] for answer in answers] == ["OK"] * 8
    assert await tools("read_file", path=f"{W}/f") == "1: " + "".join(f"done{n};" for n in range(8))


# search -------------------------------------------------------------------------------------------------------------


async def test_glob_numbers_what_it_finds_and_says_when_there_is_more(tools: Tools):
    await tools("bash", command="mkdir -p src/a/b && touch src/x.py src/a/y.py src/a/b/z.py src/n.txt")
    assert await tools("glob", path=W, pattern="src/**/*.py") == (
        f"Found 3 paths under {W} (relative to {W})\n1. src/a/b/z.py\n2. src/a/y.py\n3. src/x.py"
    )
    assert "showing first 1" in await tools("glob", path=W, pattern="*.py", max_results=1)
    assert await tools("glob", path=W, pattern="*.rs") == f"No files matched under {W}"


async def test_grep_shows_path_line_and_text(tools: Tools):
    await tools("bash", command="mkdir -p g && printf 'one\\nTwo words\\n' > g/a.txt && printf 'two\\n' > g/b.md")
    assert (
        await tools("grep", path=f"{W}/g", pattern="two", glob="*.txt")
        == f"Found 1 matches under {W}/g (relative to {W})\ng/a.txt:2: Two words"
    )
    assert "a.txt" not in await tools("grep", path=f"{W}/g", pattern="two", case_sensitive=True)
    assert await tools("grep", path=f"{W}/g", pattern="(", literal=True) == f"No matches found under {W}/g"


async def test_what_a_search_found_can_be_named_to_every_tool_as_it_stands(tools: Tools):
    await tools("bash", command=f"mkdir -p g ../outputs && echo two > g/a.txt && echo two > {OUT}/b.txt && cd /tmp")
    assert "\n1. g/a.txt" in await tools("glob", path="g", pattern="*.txt")
    assert await tools("read_file", path="g/a.txt") == "1: two"
    assert (await tools("str_replace", path="./g/a.txt", old_str="two", new_str="three")).startswith("OK: ")
    assert "g/a.txt:1: three" in await tools("grep", path=f"{W}/g/a.txt", pattern="three")
    assert await tools("grep", path="../outputs", pattern="two") == f"Found 1 matches under {OUT}\n{OUT}/b.txt:1: two"
    assert (await tools("ls", path=".")).splitlines() == [f"{W}/g/", f"{W}/g/a.txt"]


async def test_a_bad_pattern_is_a_message(tools: Tools):
    assert (await tools("grep", path=W, pattern="(unclosed")).startswith("Error: ")


# truncation ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 50, 100, 500, 999])
def test_cut_text_never_exceeds_its_limit(limit: int):
    text = "".join(f"{n:04}" for n in range(300))
    assert len(cut_middle(text, limit)) <= limit
    assert len(cut_tail(text, limit, "hint")) <= limit


def test_cut_text_says_how_much_is_missing():
    text = "a" * 500 + "b" * 500
    lines = "".join(f"line {n} of many\n" for n in range(100))
    for shown in (cut_middle(lines, 300), cut_tail(lines, 300, "hint")):
        kept = [line for line in shown.split("\n") if line and not line.startswith("...")]
        assert all(re.fullmatch(r"line \d+ of many", line) for line in kept), "no line is cut"
    cut = cut_middle(text, 300)
    assert cut.startswith("aaa") and cut.endswith("bbb")
    skipped = re.search(r"\n\.\.\. \[middle truncated: (\d+) chars skipped\] \.\.\.\n", cut)
    assert skipped and int(skipped.group(1)) == 1000 - (len(cut) - len(skipped.group(0)))
    assert cut_middle(text, 0) == text and cut_tail(text, 0, "") == text


async def test_str_replace_keeps_every_byte_of_a_file_that_is_not_utf8(tools: Tools):
    await tools("bash", command=r"printf 'price: caf\xe9' > latin.txt")
    assert (
        await tools("read_file", path=f"{W}/latin.txt")
    ) == "1: price: café\n[read as Windows-1252: str_replace keeps it]"
    assert (await tools("str_replace", path=f"{W}/latin.txt", old_str="price", new_str="cost")).startswith("OK: ")
    assert await tools("bash", command="od -An -tx1 latin.txt | tr -d ' \n'") == b"cost: caf\xe9".hex()


async def test_str_replace_writes_back_in_the_encoding_of_the_file(tools: Tools):
    await tools("bash", command=r"printf '\xff\xfea\x00b\x00' > wide.txt")
    assert await tools("read_file", path=f"{W}/wide.txt") == "1: ab\n[read as UTF-16: str_replace keeps it]"
    assert (await tools("str_replace", path=f"{W}/wide.txt", old_str="a", new_str="ü")).startswith("OK: ")
    assert await tools("bash", command="od -An -tx1 wide.txt | tr -d ' \n'") == "\ufeffüb".encode("utf-16-le").hex()


async def test_what_an_encoding_cannot_say_is_refused(tools: Tools):
    await tools("bash", command=r"printf 'caf\xe9' > latin.txt")
    answer = await tools("str_replace", path=f"{W}/latin.txt", old_str="caf", new_str="北京")
    assert (
        answer.startswith("Error: ") and "Windows-1252, which cannot say all of new_str" in answer and "iconv" in answer
    )
    assert await tools("bash", command="stat -c %s latin.txt") == "4"


async def test_lines_end_at_newlines_alone_as_in_grep(tools: Tools):
    await tools(
        "bash",
        command=r"printf 'line1\x0cline2\nline3\xe2\x80\xa8still3\nline4\x0bstill4\xc2\x85x\nNEEDLE5\n' > ff.txt",
    )
    assert "ff.txt:4: NEEDLE5" in await tools("grep", path=f"{W}/ff.txt", pattern="NEEDLE5")
    assert await tools("read_file", path=f"{W}/ff.txt", start_line=4) == "4: NEEDLE5"


async def test_a_file_beyond_one_read_is_read_to_its_end(tools: Tools):
    await tools("bash", command="(seq 1 7000000; echo ünd) > big.txt; ls -l big.txt")
    assert await tools("read_file", path=f"{W}/big.txt", start_line=7_000_000) == "7000000: 7000000\n7000001: ünd"
    cut = await tools("read_file", path=f"{W}/big.txt", start_line=100)
    assert cut.startswith("100: 100\n") and re.search(r"\[lines 100 to (\d+) are shown; go on with start_line=", cut)
    assert "which has 7000001 lines" in await tools("read_file", path=f"{W}/big.txt", start_line=8_000_000)


async def test_a_search_says_what_it_skipped(tools: Tools):
    await tools(
        "bash",
        command=r"mkdir -p s/node_modules && printf 'a\0b\1' > s/x.bin && echo needle | tee s/node_modules/a > s/b.txt",
    )
    answer = await tools("grep", path=f"{W}/s", pattern="needle")
    assert answer.splitlines()[1:] == ["s/b.txt:1: needle", "Not searched: binary (1): s/x.bin; node_modules/"]
    assert "Not searched: binary" in await tools("grep", path=f"{W}/s", pattern="nothing")


async def test_str_replace_never_cuts_off_what_it_did_not_read(tools: Tools):
    await tools("bash", command="(echo needle; head -c 60000000 /dev/zero | tr '\\0' x) > big.txt")
    assert "too large" in await tools("str_replace", path=f"{W}/big.txt", old_str="needle", new_str="pin")
    assert await tools("bash", command="stat -c %s big.txt") == "60000007"


# as models call them ------------------------------------------------------------------------------------------------


def test_a_call_evaluates_no_annotation():
    """LangChain compiles each one that is a string, at every call."""
    for function in (bash_tool.coroutine, bash_tool._arun):
        assert function and not any(isinstance(hint, str) for hint in function.__annotations__.values())


async def test_arguments_are_taken_by_their_usual_other_names(tools: Tools):
    await tools("write_file", file_path=f"{W}/n", content="".join(f"{n}\n" for n in range(1, 11)))
    assert (await tools("read_file", file_path=f"{W}/n", offset=3, limit=2)) == "3: 3\n4: 4"
    assert (await tools("str_replace", file_path=f"{W}/n", old_string="10", new_string="ten")).startswith("OK: ")
    assert "ten" in await tools("bash", command="tail -1 n")
    assert "showing first 1" in await tools("grep", pattern=".", path=W, head_limit=1)


async def test_an_unknown_argument_is_named_with_those_that_exist(tools: Tools):
    answer = await tools("read_file", path=f"{W}/n", colour="red")
    assert answer.startswith("Error: read_file takes no colour") and "start_line" in answer and "runtime" not in answer


async def test_a_description_is_never_required():
    for tool in SANDBOX_TOOLS:
        assert "description" not in tool.tool_call_schema.model_json_schema().get("required", []), tool.name


async def test_replacing_a_file_that_was_never_read_is_said(tools: Tools):
    await tools("bash", command="echo precious > old.txt")
    assert "replaced a file of 9 bytes that you had not read" in await tools(
        "write_file", path=f"{W}/old.txt", content="new"
    )
    assert (await tools("write_file", path=f"{W}/old.txt", content="newer")).startswith("OK: ")


async def test_a_bad_pattern_names_the_way_to_plain_text(tools: Tools):
    assert "literal" in await tools("grep", path=W, pattern="f(")


# kinds, line ends, encodings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "head", "kind", "way"),
    [
        ("a.pdf", r"%%PDF-1.7\n1 0 obj", "a PDF document", "pypdf"),
        ("a.docx", r"PK\x03\x04rest", "a Word document", "docx"),
        ("a.xlsx", r"PK\x03\x04rest", "an Excel workbook", "pandas"),
        ("a.zip", r"PK\x03\x04rest", "a ZIP archive", "bash"),
        ("a.txt", r"\xff\xd8\xff\xe0text", "a JPEG image", "view_image"),
        ("a.gz", r"\x1f\x8b\x08text", "a gzip archive", "bash"),
    ],
)
async def test_documents_and_images_are_named_and_never_returned_as_text(
    tools: Tools, name: str, head: str, kind: str, way: str
):
    await tools("bash", command=f"printf '{head}' > {name}; head -c 300 /dev/zero | tr '\\0' a >> {name}")
    answer = await tools("read_file", path=f"{W}/{name}")
    assert answer.startswith(f"Error: {W}/{name} is {kind} (") and way in answer
    assert kind in await tools("str_replace", path=f"{W}/{name}", old_str="aa", new_str="b")


async def test_windows_line_ends_are_matched_and_kept(tools: Tools):
    await tools("bash", command=r"printf 'one\r\ntwo\r\nthree\r\n' > dos.txt")
    assert (await tools("read_file", path=f"{W}/dos.txt")).startswith("1: one\n2: two\n3: three\n[Windows line ends")
    assert (await tools("str_replace", path=f"{W}/dos.txt", old_str="one\ntwo", new_str="1\n1.5\n2")).startswith("OK: ")
    assert await tools("bash", command="od -An -c dos.txt | tr -d ' \n'") == r"1\r\n1.5\r\n2\r\nthree\r\n"


async def test_only_the_replaced_lines_of_a_mixed_file_change(tools: Tools):
    await tools("bash", command=r"printf 'a\r\nb\nc\n' > mixed.txt")
    assert (await tools("str_replace", path=f"{W}/mixed.txt", old_str="b\nc", new_str="B\nC")).startswith("OK: ")
    assert await tools("bash", command="od -An -c mixed.txt | tr -d ' \n'") == r"a\r\nB\nC\n"


async def test_a_cut_file_says_which_lines_were_shown_and_where_to_go_on(tools: Tools):
    await tools("bash", command="seq 1 20000 > n.txt")
    seen, start = "", 1
    while True:
        answer = await tools("read_file", path=f"{W}/n.txt", start_line=start)
        found = re.search(r"\n\[lines (\d+) to (\d+) of 20000 are shown; go on with start_line=(\d+)\]$", answer)
        seen += (answer[: found.start()] if found else answer) + "\n"
        if not found:
            break
        assert int(found[1]) == start and len(answer) <= 50_000
        start = int(found[3])
    assert seen == "".join(f"{n}: {n}\n" for n in range(1, 20001))


async def test_a_line_of_a_megabyte_can_be_read_to_its_end(tools: Tools):
    await tools("bash", command="(echo first; head -c 200000 /dev/zero | tr '\\0' x; echo END) > long.txt")
    start = 1
    for _ in range(10):
        answer = await tools("read_file", path=f"{W}/long.txt", start_line=2, start_char=start)
        if "END" in answer:
            break
        found = re.search(r"go on with start_line=2 and start_char=(\d+)", answer)
        assert found, answer[-300:]
        start = int(found[1])
    assert answer.endswith("xEND")


async def test_grep_searches_large_files_to_their_end(tools: Tools):
    await tools("bash", command="mkdir big; (seq 1 600000; echo needle) > big/log.txt; ls -l big/log.txt")
    assert "big/log.txt:600001: needle" in await tools("grep", path=f"{W}/big", pattern="needle")


async def test_a_match_in_a_long_line_is_in_what_is_shown(tools: Tools):
    await tools(
        "bash",
        command="(head -c 50000 /dev/zero | tr '\\0' x; printf needle; head -c 50000 /dev/zero | tr '\\0' y) > wide",
    )
    answer = await tools("grep", path=f"{W}/wide", pattern="needle")
    assert "xxneedleyy" in answer and len(answer) < 1000


# present_files ------------------------------------------------------------------------------------------------------


async def test_what_exists_is_presented_and_the_rest_is_named(tools: Tools):
    await tools(
        "bash", command=f"mkdir -p {OUT}/site/a && echo 1 > {OUT}/report.md && echo 2 > {OUT}/site/a/index.html"
    )
    paths = [
        "report.md",
        f"{OUT}/site",
        "../outputs/report.md",
        f"{OUT}/none.md",
        "/etc/passwd",
        f"{OUT}/../../../etc/passwd",
    ]
    command = await tools.raw("present_files", filepaths=paths)
    assert command.update["artifacts"] == [f"{OUT}/report.md", f"{OUT}/site.zip"]
    text = command.update["messages"][0].content
    assert text.startswith("Successfully presented files") and "No such file: " in text and "none.md" in text
    assert "/etc/passwd" in text.split("Only files in")[1]
    assert "a/index.html" in await tools("bash", command=f"python3 -m zipfile -l {OUT}/site.zip")
    assert await tools("bash", command="pwd | grep -c outputs") == "0\nExit Code: 1"


async def test_a_directory_is_presented_whatever_lies_in_it_and_the_outputs_are_what_lies_in_them(tools: Tools):
    made = (
        f"mkdir -p {OUT}/-app/empty && cd {OUT} && echo 'raise SystemExit(7)' | tee zipfile.py struct.py -- ./-app/a.py"
    )
    odd = "touch -d 1970-01-01 ./-app/old && ln -s nowhere ./-app/broken && mkfifo ./-app/pipe && touch .hidden"
    await tools("bash", command=f"({made} && {odd}) >/dev/null")
    for _ in range(2):
        command = await tools.raw("present_files", filepaths=[f"{OUT}/"])
        assert command.update["artifacts"] == [f"{OUT}/-app.zip", f"{OUT}/struct.py", f"{OUT}/zipfile.py"]
    listed = await tools("bash", command=f"python3 -m zipfile -l {OUT}/-app.zip")
    assert "-app/a.py" in listed and "-app/old" in listed and "-app/empty/" in listed
    assert "broken" not in listed and "pipe" not in listed


# long output, directories, processes --------------------------------------------------------------------------------


async def test_of_a_long_output_nothing_is_lost(tools: Tools):
    answer = await tools("bash", command="seq 1 600000")
    found = re.search(r"The whole output, 4088895 bytes, is in (\S+): ", answer)
    assert found and len(answer) <= 20_200
    assert await tools("bash", command=f"wc -l < {found[1]}; tail -1 {found[1]}") == "600000\n600000"
    assert (await tools("read_file", path=found[1], start_line=300_000, end_line=300_000)).startswith("300000: 300000")


async def test_a_short_output_leaves_no_file(tools: Tools):
    await tools("bash", command="seq 1 100")
    assert "tool-results" not in await tools("bash", command="ls -a")


async def test_a_changed_directory_stands_in_the_result(tools: Tools):
    assert (
        await tools("bash", command="mkdir -p sub && cd sub") == f"(no output)\nThe working directory is {W}/sub now."
    )
    assert await tools("bash", command="true") == "(no output)"
    assert (await tools("bash", command="cd ..; false")).endswith(f"The working directory is {W} now.")


async def test_ids_of_processes_are_never_used_again(tools: Tools):
    first = await tools("bash", command="sleep 50", run_in_background=True)
    sandbox = await tools.context.sandbox()
    await sandbox.reset()
    second = await tools("bash", command="sleep 50", run_in_background=True)
    assert re.fullmatch(r"Started process p1-\w{4}\..*", first) and re.fullmatch(
        r"Started process p2-\w{4}\..*", second
    )
    process = first.split()[2].rstrip(".")
    assert process not in second and "no background process" in await tools("read_process", process_id=process)


async def test_a_cancelled_command_keeps_what_it_had_printed(tools: Tools):
    call = asyncio.create_task(tools("bash", command="echo half a result; sleep 100"))
    async with asyncio.timeout(20):
        while not tools.live:
            await asyncio.sleep(0.05)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    path = result_path("c1")
    async with asyncio.timeout(20):
        while await (await tools.context.sandbox()).stat(path) is None:
            await asyncio.sleep(0.05)
    assert await tools("read_file", path=path) == "1: half a result"
    assert path in cut_short("bash", "c1") and not cut_short("ls", "c1")


async def test_after_a_restart_the_next_result_says_what_is_gone(tools: Tools):
    await tools("bash", command="mkdir -p sub && cd sub && export A=1; sleep 300 &")
    sandbox: Any = await tools.context.sandbox()
    assert sandbox.launcher_pid is not None
    await asyncio.to_thread(subprocess.run, ["kill", "-9", str(sandbox.launcher_pid)], check=True)
    async with asyncio.timeout(20):
        while sandbox.launcher_pid is not None:
            await asyncio.sleep(0.01)
    answer = await tools("bash", command="echo [$A]; pwd")
    notice, *output = answer.splitlines()
    for gone in ("background processes", "working directory", "environment"):
        assert gone in notice
    assert "are gone" in notice and output[:2] == ["[]", W]
    assert "gone" not in await tools("bash", command="echo on")
