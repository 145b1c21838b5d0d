from __future__ import annotations

import asyncio
import csv
import random
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import tool
from tests.support.unpaired_calls import unpaired_calls

from deerflow.agents.middlewares.uploads_middleware import UploadsMiddleware
from deerflow.agents.transcript import Transcript
from deerflow.agents.turn import human_message
from deerflow.models import demo
from deerflow.models.demo import DemoChatModel
from deerflow.uploads import Upload

MAX_CALLS = 8


@tool("bash")
def bash(description: str, command: str) -> str:
    """Run a command."""
    return ""


@tool("write_file")
def write_file(description: str, path: str, content: str, append: bool = False) -> str:
    """Write a file."""
    return ""


@tool("present_files")
def present_files(filepaths: list[str]) -> str:
    """Show files."""
    return ""


@tool("write_todos")
def write_todos(todos: list[dict[str, str]]) -> str:
    """Plan."""
    return ""


@tool("ls")
def ls(description: str, path: str) -> str:
    """List."""
    return ""


@tool("read_file")
def read_file(description: str, path: str) -> str:
    """Read."""
    return ""


ALL_TOOLS = (bash, write_file, present_files, write_todos, ls, read_file)


class Machine:
    """Runs the demo's calls for real, with /mnt/user-data standing for a temporary directory."""

    def __init__(self, root: Path, broken: dict[str, str] | None = None) -> None:
        self.root, self.broken = root, broken or {}
        self.presented: list[str] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        for name in ("workspace", "uploads", "outputs"):
            (root / name).mkdir(parents=True, exist_ok=True)

    def here(self, text: str) -> str:
        return text.replace("/mnt/user-data", str(self.root))

    def run(self, name: str, arguments: dict[str, Any]) -> str:
        self.calls.append((name, arguments))
        if name in self.broken:
            return self.broken[name]
        if name == "bash":
            done = subprocess.run(
                ["bash", "-c", self.here(arguments["command"])],
                cwd=self.root / "workspace",
                capture_output=True,
                text=True,
                timeout=60,
            )
            tail = f"\nExit Code: {done.returncode}" if done.returncode else ""
            return (done.stdout + done.stderr + tail).replace(str(self.root), "/mnt/user-data")
        if name == "write_file":
            Path(self.here(arguments["path"])).write_text(arguments["content"], encoding="utf-8")
            return "OK"
        if name == "present_files":
            self.presented += arguments["filepaths"]
            return "Successfully presented files"
        return "Updated"

    @property
    def report(self) -> str:
        return (self.root / "outputs/demo-report.md").read_text(encoding="utf-8")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "data")


@pytest.fixture
def model() -> DemoChatModel:
    return DemoChatModel(chunk_delay=0)


def drive(model: DemoChatModel, machine: Machine, messages: list[Any], tools: Any = ALL_TOOLS) -> list[Any]:
    """The agent loop: model, tools, model ... until a message without calls; the new messages."""
    bound = model.bind_tools(tools) if tools else model
    new: list[Any] = []
    for _ in range(MAX_CALLS):
        answer = bound.invoke([*messages, *new])
        new.append(answer)
        if not answer.tool_calls:
            assert unpaired_calls([*messages, *new]) == []
            return new
        for call in answer.tool_calls:
            new.append(ToolMessage(machine.run(call["name"], call["args"]), tool_call_id=call["id"]))
    raise AssertionError(f"no end after {MAX_CALLS} model calls")


def upload(machine: Machine, name: str, content: str | bytes) -> HumanMessage:
    path = machine.root / "uploads" / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return HumanMessage(
        f"<uploaded_files>\nThe following files were uploaded:\n\n- {name} (0.1 KB)\n"
        f"  Path: /mnt/user-data/uploads/{name}\n</uploaded_files>\n\nPlease analyse this"
    )


def sales(rows: int, seed: int = 1) -> str:
    rng = random.Random(seed)
    lines = ["order_id,date,region,units,revenue"]
    for number in range(rows):
        region = rng.choice(["North", "South", "Wést"])
        lines.append(
            f"{number},2024-01-{number % 28 + 1:02},{region},{rng.randint(1, 9)},{rng.randint(100, 99999) / 100}"
        )
    return "\n".join(lines) + "\n"


# --- the run ---------------------------------------------------------------------------------------------------------


def test_csv_becomes_a_report_with_the_true_numbers(model: DemoChatModel, machine: Machine) -> None:
    text = sales(500)
    rows = list(csv.DictReader(text.splitlines()))
    revenue = [round(float(row["revenue"]) * 100) for row in rows]
    by_region: dict[str, int] = {}
    for row, cents in zip(rows, revenue, strict=True):
        by_region[row["region"]] = by_region.get(row["region"], 0) + cents

    new = drive(model, machine, [upload(machine, "sales.csv", text)])

    assert "500 rows, 5 columns" in machine.report
    assert f"{sum(revenue) / 100:,.2f}" in machine.report
    assert f"{min(revenue) / 100:,.2f}" in machine.report
    assert f"{max(revenue) / 100:,.2f}" in machine.report
    assert f"{sum(revenue) / 100 / 500:,.2f}" in machine.report
    best = max(by_region, key=by_region.__getitem__)
    assert f"{best} with {by_region[best] / 100:,.2f}" in machine.report
    assert machine.presented[0] == "/mnt/user-data/outputs/demo-report.md"
    assert "500 rows" in new[-1].text


def test_the_run_plans_looks_writes_and_presents_in_this_order(model: DemoChatModel, machine: Machine) -> None:
    drive(model, machine, [upload(machine, "a.csv", sales(10))])
    names = [name for name, _ in machine.calls]
    shortened = [name for name in names if name in ("bash", "present_files")]
    assert names[0] == "write_todos"
    assert shortened[0] == "bash"
    assert shortened[-1] == "present_files"
    assert [
        todo["status"] for todo in [args for name, args in machine.calls if name == "write_todos"][-1]["todos"]
    ] == ["completed"] * 4


def test_descriptions_come_first_and_arguments_fit_the_schemas(model: DemoChatModel, machine: Machine) -> None:
    drive(model, machine, [upload(machine, "a.csv", sales(10))])
    by_name = {tool.name: tool for tool in ALL_TOOLS}
    for name, arguments in machine.calls:
        by_name[name].get_input_schema().model_validate(arguments)
        if "description" in by_name[name].args:
            assert next(iter(arguments)) == "description"


def test_without_a_file_it_reports_on_the_sandbox(model: DemoChatModel, machine: Machine) -> None:
    new = drive(model, machine, [HumanMessage("Show me what you can do with a task")])
    assert re.search(r"\| Python \| 3\.\d+\.\d+ \|", machine.report)
    assert "## The sandbox" in machine.report
    assert demo.LABEL in new[0].text
    assert demo.LABEL in new[-1].text


@pytest.mark.parametrize("name", ["Übersicht 2024 (final).csv", "売上.csv", "it's $HOME `x`; rm -rf.csv", "a&b.csv"])
def test_awkward_file_names_reach_the_script_unharmed(model: DemoChatModel, machine: Machine, name: str) -> None:
    drive(model, machine, [upload(machine, name, sales(7))])
    assert "7 rows, 5 columns" in machine.report


def test_several_files_get_a_section_each(model: DemoChatModel, machine: Machine) -> None:
    one, two = upload(machine, "one.csv", sales(3)), upload(machine, "notes.txt", "hello there\nworld\n")
    drive(model, machine, [HumanMessage(one.text + "\n" + two.text)])
    assert "## one.csv" in machine.report
    assert "2 lines, 3 words" in machine.report


def test_big_file_stays_within_the_limits_of_a_tool_result(model: DemoChatModel, machine: Machine) -> None:
    head = ",".join(f"column with a long name number {i}" for i in range(40))
    body = "\n".join(",".join(f"value {(i * j) % 997} of the row" for i in range(40)) for j in range(5000))
    new = drive(model, machine, [upload(machine, "big.csv", head + "\n" + body)])
    results = [message.text for message in new if isinstance(message, ToolMessage)]
    assert max(map(len, results)) < 20_000
    assert "5,000 rows, 40 columns" in machine.report


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("semicolon.csv", "Ort;Umsatz\nKöln;1,50\nBonn;2,25\nKöln;1.000,25\n", "| 1,004 |"),
        ("utf16.csv", "a,b\nx,1\ny,2\n".encode("utf-16"), "2 rows, 2 columns"),
        ("latin.csv", "name,n\nJosé,5\nAna,6\n".encode("latin-1"), "José"),
        ("empty.csv", "", "0 rows, 0 columns"),
        ("head.csv", "a,b,c\n", "0 rows, 3 columns"),
        ("ragged.csv", "a,b\n1\n2,3,4\n\n", "2 rows, 2 columns"),
        ("bom.csv", "\ufeffid,n\n1,2\n", "1 row, 2 columns"),
        ("table.json", '[{"city":"Oslo","n":1},{"city":"Rome","n":2}]', "2 rows, 2 columns"),
        ("broken.json", "{", "could not be read"),
        ("image.png", b"\x89PNG\r\n\x1a\n\0\0\0", "binary"),
    ],
)
def test_unusual_files_are_told_as_they_are(
    model: DemoChatModel, machine: Machine, name: str, content: str | bytes, expected: str
) -> None:
    drive(model, machine, [upload(machine, name, content)])
    assert expected in machine.report


def test_cells_and_names_cannot_write_markup_into_the_report(model: DemoChatModel, machine: Machine) -> None:
    content = 'x,n\n"![a](http://evil.example/?q)",1\n"![a](http://evil.example/?q)",2\n"<script>|",3\n"```\n<b>",3\n"```\n<b>",3\n'
    new = drive(model, machine, [upload(machine, "m.csv", content)])
    for text in (machine.report, new[-1].text):
        outside_code = re.sub(r"^```text\n.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
        assert "![a](" not in outside_code
        assert "<script>" not in outside_code
        assert "<b>" not in outside_code


# --- things that fail ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reason", ["Error: Bash is not available: no isolation was found.", "python3: command not found", ""]
)
def test_without_a_working_shell_it_ends_honestly(model: DemoChatModel, tmp_path: Path, reason: str) -> None:
    machine = Machine(tmp_path, broken={"bash": reason})
    new = drive(model, machine, [upload(machine, "a.csv", sales(3))])
    assert "could not" in new[-1].text
    assert demo._escape(reason) in new[-1].text
    assert demo.LABEL in new[-1].text
    assert machine.presented == []


def test_a_refused_file_tool_is_replaced_by_the_shell(model: DemoChatModel, tmp_path: Path) -> None:
    machine = Machine(tmp_path, broken={"write_file": "Error: the file changed since it was read."})
    drive(model, machine, [upload(machine, "a.csv", sales(3))])
    assert "3 rows, 5 columns" in machine.report
    assert machine.presented[0].endswith("demo-report.md")


def install_matplotlib(machine: Machine, save: str) -> None:
    """A stand-in for the library, beside the program: ``save`` is the body of ``savefig``."""
    package = machine.root / "workspace/matplotlib"
    package.mkdir()
    package.joinpath("__init__.py").touch()
    package.joinpath("figure.py").write_text(
        "class Figure:\n"
        "    def __init__(self, **options): pass\n"
        "    def subplots(self): return self\n"
        "    def barh(self, names, values, color): pass\n"
        f"    def savefig(self, target): {save}\n"
    )


def test_a_broken_chart_is_left_out(model: DemoChatModel, machine: Machine) -> None:
    install_matplotlib(machine, "raise OSError('no display')")
    drive(model, machine, [upload(machine, "a.csv", sales(9))])
    assert "demo-chart.png" not in machine.report
    assert "█" in machine.report
    assert machine.presented == ["/mnt/user-data/outputs/demo-report.md"]


def test_a_drawn_chart_is_presented_and_shown_in_the_report(model: DemoChatModel, machine: Machine) -> None:
    install_matplotlib(machine, "target.write_bytes(b'PNG')")
    drive(model, machine, [upload(machine, "a.csv", sales(9))])
    assert "](demo-chart.png)" in machine.report
    assert machine.presented == ["/mnt/user-data/outputs/demo-report.md", "/mnt/user-data/outputs/demo-chart.png"]


@pytest.mark.parametrize("count", range(len(ALL_TOOLS) + 1))
def test_any_set_of_tools_leads_to_an_end(model: DemoChatModel, machine: Machine, count: int) -> None:
    for tools in (ALL_TOOLS[:count], ALL_TOOLS[count:]):
        new = drive(model, machine, [upload(machine, "a.csv", sales(3))], tools)
        assert demo.LABEL in new[-1].text
        allowed = {tool.name for tool in tools}
        assert {call["name"] for m in new if isinstance(m, AIMessage) for call in m.tool_calls} <= allowed


# --- conversations ---------------------------------------------------------------------------------------------------


def test_a_question_afterwards_is_answered_as_a_script(model: DemoChatModel, machine: Machine) -> None:
    first = [upload(machine, "a.csv", sales(3))]
    history = [*first, *drive(model, machine, list(first)), HumanMessage("Which region will grow most next year?")]
    new = drive(model, machine, history)
    assert len(new) == 1
    assert "scripted" in new[0].text
    assert "again" in new[0].text


@pytest.mark.parametrize("wish", ["again", "Please run it again", "yes", "ok, go ahead", "再来一次"])
def test_again_runs_the_demo_on_the_same_file(model: DemoChatModel, machine: Machine, wish: str) -> None:
    first = [upload(machine, "a.csv", sales(3))]
    history = [*first, *drive(model, machine, list(first))]
    machine.presented.clear()
    drive(model, machine, [*history, HumanMessage(wish)])
    assert machine.presented
    assert "## a.csv" in machine.report


def test_a_new_file_in_a_later_turn_is_analysed(model: DemoChatModel, machine: Machine) -> None:
    first = [upload(machine, "a.csv", sales(3))]
    history = [*first, *drive(model, machine, list(first))]
    drive(model, machine, [*history, upload(machine, "b.csv", sales(4))])
    assert "## b.csv" in machine.report
    assert "## a.csv" not in machine.report


def test_files_attached_without_a_block_are_found(model: DemoChatModel, machine: Machine) -> None:
    upload(machine, "a.csv", sales(6))
    message = HumanMessage("look", additional_kwargs={"files": [{"filename": "a.csv", "size": 1}]})
    drive(model, machine, [message])
    assert "6 rows" in machine.report


def product_message(machine: Machine, text: str, new: list[str], earlier: list[str]) -> HumanMessage:
    """A turn as the product records and renders it."""
    now = datetime(2026, 11, 21, tzinfo=UTC)
    directory = machine.root / "uploads"
    uploads = [Upload(name, directory.joinpath(name).stat().st_size, 0) for name in new]
    message = human_message(text, now=now, files=uploads, uploads_dir=directory)
    compiled = UploadsMiddleware().compile(Transcript((message,)), None).request()[0]
    assert isinstance(compiled, HumanMessage)
    assert all(name in compiled.text for name in earlier)
    return compiled


def test_the_products_own_messages_are_understood(model: DemoChatModel, machine: Machine) -> None:
    upload(machine, "a.csv", sales(3))
    history: list[Any] = [product_message(machine, "Analyse this", ["a.csv"], [])]
    history += drive(model, machine, history)
    assert "## a.csv" in machine.report
    upload(machine, "b.csv", sales(4))
    history.append(product_message(machine, "And this", ["b.csv"], ["a.csv"]))
    history += drive(model, machine, history)
    assert "## b.csv" in machine.report
    assert "## a.csv" not in machine.report
    history.append(product_message(machine, "again", [], ["a.csv", "b.csv"]))
    drive(model, machine, history)
    assert "## a.csv" in machine.report
    assert "## b.csv" in machine.report
    assert "**go**" in drive(model, machine, [product_message(machine, "hi", [], [])])[-1].text


def test_the_named_one_of_several_files_comes_first(model: DemoChatModel, machine: Machine) -> None:
    blocks = upload(machine, "a.csv", "").text + upload(machine, "b.csv", "").text
    drive(model, machine, [HumanMessage(blocks + "\nonly b.csv please")])
    assert machine.report.index("## b.csv") < machine.report.index("## a.csv")


@pytest.mark.parametrize("text", ["hi", "Hello!", "你好", "What can you do?"])
def test_a_greeting_is_greeted_back_with_an_offer(model: DemoChatModel, machine: Machine, text: str) -> None:
    new = drive(model, machine, [HumanMessage(text)])
    assert len(new) == 1
    assert "**go**" in new[0].text or "**开始**" in new[0].text


def test_a_reminder_at_the_tail_does_not_start_the_run_anew(model: DemoChatModel, machine: Machine) -> None:
    history: list[Any] = [upload(machine, "a.csv", sales(3))]
    history += drive(model, machine, list(history))[:-1]
    answer = model.bind_tools(ALL_TOOLS).invoke([*history, HumanMessage("You have open todos", name="todo_reminder")])
    assert answer.tool_calls == []


def test_every_text_that_ends_a_turn_says_what_it_is_and_how_to_connect(model: DemoChatModel, machine: Machine) -> None:
    for request in ("hi", "Show me something", "How do I connect a real model?"):
        text = drive(model, machine, [HumanMessage(request)])[-1].text
        assert "demo model (scripted)" in text.lower()
        assert "OPENAI_API_KEY" in text
        assert "config.yaml" in text


@pytest.mark.parametrize(
    ("prompt", "pattern"),
    [
        ("Generate a concise title (max 6 words) for: analyse sales.csv", r"Demo: sales\.csv"),
        ("Suggest 3 follow-up questions as a JSON array", r"\[.*\]"),
        ("Update the memory. Return JSON with newFacts", r"\{.*\}"),
        ("Summarize the conversation so far", r"demo model"),
    ],
)
def test_the_products_small_jobs_get_usable_answers(model: DemoChatModel, prompt: str, pattern: str) -> None:
    answer = model.invoke([HumanMessage(prompt)])
    assert re.search(pattern, answer.text)
    assert len(answer.text) < 200


# --- as a chat model -------------------------------------------------------------------------------------------------


def joined(chunks: list[AIMessageChunk]) -> AIMessageChunk:
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    return whole


async def test_streams_sync_and_async_say_the_same_as_one_call(model: DemoChatModel) -> None:
    messages: list[AnyMessage] = [SystemMessage("You are DeerFlow"), HumanMessage("Show me a task")]
    bound = model.bind_tools(ALL_TOOLS)
    whole = bound.invoke(messages)
    sync_chunks = await asyncio.to_thread(lambda: list(bound.stream(messages)))
    async_chunks = [chunk async for chunk in bound.astream(messages)]
    for chunks in (sync_chunks, async_chunks):
        message = joined(chunks)
        assert len(chunks) > 30
        assert message.content == whole.content
        assert message.tool_calls == whole.tool_calls
        assert message.usage_metadata == whole.usage_metadata
        assert message.response_metadata["model_name"] == "demo"


def test_it_is_labelled(model: DemoChatModel) -> None:
    answer = model.invoke("anything")
    assert model._llm_type == "Demo model (scripted)"
    assert answer.response_metadata["model_name"] == "demo"
    assert answer.usage_metadata is not None


def test_required_arguments_it_does_not_know_are_filled(model: DemoChatModel) -> None:
    @tool("bash")
    def other_bash(command: str, shell: str, tries: int) -> str:
        """Another bash."""
        return ""

    answer = model.bind_tools([other_bash]).invoke([HumanMessage("Show me a task")])
    (call,) = answer.tool_calls
    assert set(call["args"]) == {"command", "shell", "tries"}
    other_bash.get_input_schema().model_validate(call["args"])


results = st.sampled_from(
    ["OK", "", "Error: no", "DEMO-FACTS {", 'DEMO-FACTS {"tables": [], "others": []}', "(no output)"]
)
requests = st.sampled_from(["again", "hi", "why?", "x" * 500, "/mnt/user-data/uploads/a.csv", "thanks", ""])
tool_sets = st.lists(st.sampled_from(ALL_TOOLS), unique_by=lambda tool: tool.name)


@pytest.mark.nightly
@settings(max_examples=150)
@given(st.lists(requests, min_size=1, max_size=4), tool_sets, st.lists(results, min_size=8, max_size=8), st.booleans())
def test_from_any_follow_up_it_ends_within_eight_calls_and_never_repeats_an_id(
    asked: list[str], tools: list[Any], outcomes: list[str], foreign: bool
) -> None:
    model = DemoChatModel(chunk_delay=0)
    bound = model.bind_tools(tools) if tools else model
    messages: list[Any] = []
    if foreign:
        messages += [
            HumanMessage("before"),
            AIMessage("", tool_calls=[{"name": "bash", "args": {}, "id": "call_1", "type": "tool_call"}]),
            ToolMessage("x", tool_call_id="call_1"),
        ]
    for request in asked:
        messages.append(HumanMessage(request))
        for count in range(MAX_CALLS):
            answer = bound.invoke(messages)
            assert bound.invoke(messages).tool_calls == answer.tool_calls
            messages.append(answer)
            for index, call in enumerate(answer.tool_calls):
                messages.append(ToolMessage(outcomes[(count + index) % 8], tool_call_id=call["id"]))
            if not answer.tool_calls:
                break
        assert not messages[-1].tool_calls if isinstance(messages[-1], AIMessage) else False
        assert messages[-1].text
    ids = [call["id"] for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]
    assert len(ids) == len(set(ids))
    assert unpaired_calls(messages) == []


@pytest.mark.parametrize("request_", ["你好", "你是谁？", "谢谢", "怎么接入模型？", "开始"])
def test_a_person_who_writes_chinese_is_answered_in_chinese(
    model: DemoChatModel, machine: Machine, request_: str
) -> None:
    first, *others = (
        message.text for message in drive(model, machine, [HumanMessage(request_)]) if message.type == "ai"
    )
    for text in (first, *others):
        assert re.search("[\u4e00-\u9fff]", text) and not re.search(r"\b(the|Demo model)\b", text.partition("- ")[0]), (
            text
        )
